"""Does ``rank`` note that a baseline is as good as the ensemble when it is, and only then?

``python -m studies.baseline_notes --data-dir DIR --log FILE`` ranks draws of the tasks of
``studies.pu_tasks`` and of synthetic sets in which a baseline is hard to beat. The true ROC AUC is
that of the hidden positives in U. A note is correct if the true ROC AUC of the baseline is at least
that of the ensemble.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import resvm_cli
from resvm_cli.commands.rank.baselines import Baseline, nearness
from resvm_cli.metrics.intervals import Interval
from resvm_cli.rows import Rows
from studies.markdown import markdown_table
from studies.pu_tasks import TASKS, draw

N_POS, N_UNL, HIDDEN = 100, 1000, 200
Made = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def noise(rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    """Features that are unrelated to the class."""
    return rng.normal(size=(len(truth), 20))


def one_feature(rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    """Only one of 200 features depends on the class."""
    matrix = rng.normal(size=(len(truth), 200))
    matrix[:, 0] += 2.0 * truth
    return matrix


def clusters(rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    """Positives form 40 tight clusters, spread over the region of the negatives."""
    matrix = rng.normal(size=(len(truth), 10))
    centers = rng.normal(size=(40, 10))[rng.integers(40, size=len(truth))]
    return np.where(truth[:, None], centers + 0.2 * rng.normal(size=matrix.shape), matrix)


def large_noise(rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    """Two features depend on the class, but an unrelated one is 1000 times as large; not scaled."""
    matrix = rng.normal(size=(len(truth), 10))
    matrix[:, :2] += 1.5 * truth[:, None]
    matrix[:, 2] *= 1000
    return matrix


MADE: dict[str, tuple[Made, dict[str, Any]]] = {
    "noise": (noise, {}),
    "one feature of 200": (one_feature, {}),
    "40 small clusters": (clusters, {}),
    "large noise, not scaled": (large_noise, {"auto": False, "scale": "none"}),
}


def drawn_rows(name: str, a: float, number: int, folder: Path) -> tuple[Any, ...]:
    """Return the rows as a matrix, their labels, the truth and the options of ``fit``."""
    if name in MADE:
        make, options = MADE[name]
        truth = np.arange(N_POS + N_UNL) < N_POS + HIDDEN
        matrix = make(np.random.default_rng([number, *name.encode()]), truth)
        return matrix, (np.arange(len(truth)) < N_POS).astype(int), truth, options
    one = draw(name, a, number, folder)
    truth = np.concatenate([one.truth_pos, one.truth_unl]).astype(bool)
    return one.dense(one.training_rows), one.labels, truth, {}


def judged(name: str, a: float, number: int, folder: Path) -> dict[str, Any]:
    """Rank one draw; return the estimated and the true difference from each baseline."""
    matrix, labels, truth, options = drawn_rows(name, a, number, folder)
    options = {"auto": True, "scale": "auto", **options}
    model = resvm_cli.fit(matrix, labels, decision="mean", seed=number, jobs=1, **options)
    ranking = resvm_cli.rank(matrix, labels, model=model, jobs=1)
    unlabeled = labels == 0
    values = np.empty(len(labels))
    # rows in every bag have no value and come last
    values[ranking.rows] = np.nan_to_num(ranking.decision_values, nan=-1e9)
    rows, n_pos = Rows.from_dense(matrix), int(labels.sum())
    found: dict[str, Any] = {"task": name, "a": a, "draw": number}
    for baseline in ranking.result.baselines:
        if baseline.feature is None:
            contents = rows.content_numbers()
            other = nearness(rows, n_pos, model.stored.ensemble, contents, None)
        else:
            column = matrix[:, int(baseline.feature)]
            known, others = column[:n_pos], column[n_pos:]
            other = column * (1 if (known[:, None] > others).mean() >= 0.5 else -1)
        areas = [roc_auc_score(truth[unlabeled], some[unlabeled]) for some in (values, other)]
        found[baseline.name] = {
            "difference": [getattr(baseline.difference, key) for key in ("value", "low", "high")],
            "ensemble": areas[0],
            "true_difference": areas[0] - areas[1],
        }
    return found


def is_noted(found: dict[str, Any]) -> bool:
    return not Baseline("", None, 0.0, 0.0, Interval(*found["difference"])).is_beaten


def table(records: list[dict[str, Any]]) -> str:
    """Count notes by kind of data set."""
    kinds = {name: [one for one in records if one["task"] == name] for name in MADE}
    for a in sorted({one["a"] for one in records}):
        some = [one for one in records if one["a"] == a and one["task"] not in MADE]
        kinds[f"{len({one['task'] for one in some})} tasks, {100 * a:.0f} % of P false"] = some
    lines = []
    for kind, some in kinds.items():
        line = [kind, str(len(some))]
        for name in ("single_feature", "nearest_positive"):
            both = [(is_noted(one[name]), one[name]["true_difference"]) for one in some]
            noted = [true for note, true in both if note]
            silent = [true for note, true in both if not note]
            wrong = sum(true > 0 for true in noted)
            line += [f"{len(noted)} ({wrong})", str(sum(true <= 0 for true in silent))]
        lines.append(line)
    head = ["rows", "draws", "feature: notes (wrong)", "missed"]
    return markdown_table([*head, "nearest: notes (wrong)", "missed"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True, help="results so far, as JSON Lines")
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    arguments.log.touch()
    records = [json.loads(line) for line in arguments.log.read_text().splitlines()]
    done = {(one["task"], one["a"], one["draw"]) for one in records}
    cells = [(name, 0.0) for name in MADE] + [(name, a) for name in TASKS for a in (0.0, 0.3)]
    with arguments.log.open("a") as log:
        for number in range(arguments.draws):
            for name, a in cells:
                if (name, a, number) not in done:
                    records.append(judged(name, a, number, arguments.data_dir))
                    log.write(json.dumps(records[-1]) + "\n")
                    log.flush()
    sys.stdout.write(table(records) + "\n")


if __name__ == "__main__":
    main()
