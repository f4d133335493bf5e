"""How good are rankings? ``python -m studies.ranking_quality --data-dir DIR --log FILE``.

This study uses data sets with known classes, each drawn several times. In the first part, only U
contains mislabeled rows, its hidden positives. How well does each ranking find them, and how close
is the recall estimated from known positives to the true recall? In the second part, P also contains
false positives. How well does an audit find them? Results already in the log are not computed
again. ``--markdown FILE`` writes the tables between the marks of a document.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from resvm_cli.commands.rank.out_of_bag_scores import OutOfBagScorer
from resvm_cli.metrics.class_mixture import ClassMixture
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.out_of_bag import TrainingRows, UnseenMask
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model.setting_plan import Plan
from resvm_cli.model.simulation import Sizes, split
from resvm_cli.parameters import MethodName, MethodParameters
from resvm_cli.rows import DataSummary, Rows, variance
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.train import train_on
from studies.markdown import put_between_marks
from studies.paper_sets import load

# |P|, |U|, fraction of U that is truly positive
SETS = {"synthetic": (100, 200, 0.3), "cancer": (60, 200, 0.2), "mnist7": (50, 2000, 0.1)}
CONTAMINATIONS = (0.1, 0.3)
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Draw:
    """P and U, and whether each row is truly positive."""

    positives: Rows
    unlabeled: Rows
    truth_pos: np.ndarray
    truth_unl: np.ndarray
    n_features: int
    variance: float

    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all rows as a dense matrix, P first, and the labels 1 for P and 0 for U."""
        rows = Rows.concatenate([self.positives, self.unlabeled])
        matrix = np.zeros((len(rows), self.n_features + 1))
        matrix[rows.row_numbers, rows.indices] = rows.values
        labels = np.repeat([1, 0], [len(self.positives), len(self.unlabeled)])
        return matrix[:, 1:], labels


def draw(source: Any, name: str, contamination: float, number: int) -> Draw:
    n_pos, n_unl, hidden = SETS[name]
    sizes = Sizes(n_pos, n_unl, contamination, hidden, 0, 0)
    sets = split(source.truth, sizes, np.random.default_rng(2000 + number))
    positives, unlabeled = source.rows.take(sets.positives), source.rows.take(sets.unlabeled)
    surveys = DataSummary(), DataSummary()
    surveys[0].add(positives)
    surveys[1].add(unlabeled)
    n_features = max(survey.max_index for survey in surveys)
    return Draw(
        positives,
        unlabeled,
        source.truth[sets.positives],
        source.truth[sets.unlabeled],
        n_features,
        variance(surveys, n_features),
    )


@dataclass(frozen=True, eq=False)
class Values:
    """The values of P and U from one ensemble, both out of bag and from all members."""

    plan: Plan
    out_of_bag: tuple[np.ndarray, np.ndarray]
    naive: tuple[np.ndarray, np.ndarray]


def values_of(drawn: Draw, method: MethodName, seed: int) -> Values:
    """Score rows by mean value, as ``resvm rank`` does, with default parameters."""
    data = MemoryData(drawn.positives, drawn.unlabeled)
    n_pos = len(drawn.positives)
    part, model = train_on(
        data, TrainingChoice.from_params(MethodParameters(method=method, seed=seed)), Run(jobs=1)
    )
    predictor = Predictor(model.ensemble)
    training_rows = TrainingRows(drawn.positives, part.unlabeled, part.drawn)
    judge = OutOfBagScorer(
        predictor,
        UnseenMask(part.problems, training_rows),
        n_pos,
        "mean",
        Run(jobs=1),
    )
    of_pos = judge.positives(drawn.positives, None).values
    of_unl = judge.unlabeled(iter([drawn.unlabeled]), len(drawn.unlabeled), None).values
    naive = tuple(
        predictor.decisions(rows).by("mean") for rows in (drawn.positives, drawn.unlabeled)
    )
    return Values(part.plan.plans[0], (of_pos, of_unl), (naive[0], naive[1]))


def pulearn_values(drawn: Draw, plan: Plan, seed: int) -> np.ndarray:
    """Score U out of bag with pulearn's bagging of SVMs, using our bag sizes and penalties."""
    from pulearn import BaggingPuClassifier
    from sklearn.svm import SVC

    matrix, labels = drawn.dense()
    base = SVC(
        C=plan.c_unl,
        gamma=plan.kernel.gamma,
        class_weight={1: plan.n_unl / len(drawn.positives)},
        probability=True,
        random_state=seed,
    )
    ensemble = BaggingPuClassifier(
        base,
        n_estimators=plan.n_models,
        max_samples=plan.n_unl,
        oob_score=True,
        random_state=seed,
    )
    ensemble.fit(matrix, labels)
    return np.asarray(ensemble.oob_decision_function_)[labels == 0, 1]


def cleanlab_quality(drawn: Draw, plan: Plan, seed: int) -> np.ndarray:
    """Compute cleanlab's label quality for P from an SVM's cross-validated probabilities."""
    from cleanlab.rank import get_label_quality_scores
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.svm import SVC

    matrix, labels = drawn.dense()
    base = SVC(C=1.0, gamma=plan.kernel.gamma, class_weight="balanced")
    calibrated = CalibratedClassifierCV(base, ensemble=False, cv=FOLDS)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    chances = cross_val_predict(calibrated, matrix, labels, cv=folds, method="predict_proba")
    return get_label_quality_scores(labels, chances)[labels == 1]


def precision(truth: np.ndarray, values: np.ndarray) -> float:
    lowest = np.nanmin(values) - 1
    return float(average_precision_score(truth, np.where(np.isnan(values), lowest, values)))


def recall_gap(truth: np.ndarray, known: np.ndarray, unlabeled: np.ndarray) -> tuple[float, float]:
    """Return the estimated and the true recall among the top n_hidden rows of U."""
    depth = int(truth.sum())
    unlabeled = np.where(np.isnan(unlabeled), -np.inf, unlabeled)
    cut = np.sort(unlabeled)[::-1][depth - 1]
    order = np.argsort(-unlabeled, kind="stable")
    return float(np.nanmean(known >= cut)), float(truth[order[:depth]].mean())


def hidden(source: Any, name: str, number: int) -> dict[str, Any]:
    """Measure how well the positives in U are found if P is clean."""
    drawn = draw(source, name, 0.0, number)
    robust = values_of(drawn, "resvm", number)
    bagging = values_of(drawn, "bagging", number)
    truth = drawn.truth_unl
    record: dict[str, Any] = {}
    for label, known, unlabeled in (
        ("out_of_bag", *robust.out_of_bag),
        ("naive", *robust.naive),
        # bagging has all of P in every bag and therefore no out-of-bag values for P
        ("bagging", bagging.naive[0], bagging.out_of_bag[1]),
    ):
        promised, true = recall_gap(truth, known, unlabeled)
        record[label] = {
            "ap": precision(truth, unlabeled),
            "promised": promised,
            "recall": true,
        }
    record["pulearn"] = {"ap": precision(truth, pulearn_values(drawn, bagging.plan, number))}
    return record


def audit(source: Any, name: str, number: int, contamination: float) -> dict[str, Any]:
    """Measure how well the false rows of P are found."""
    drawn = draw(source, name, contamination, number)
    robust = values_of(drawn, "resvm", number)
    known, unlabeled = robust.out_of_bag
    false = ~drawn.truth_pos
    order = np.argsort(known, kind="stable")
    depth = int(false.sum())
    mixture = ClassMixture.fit(known, unlabeled, contamination, SETS[name][2])
    assert mixture is not None
    expected = mixture.expected_false(depth).value[-1]
    return {
        "out_of_bag": precision(false, -known),
        "naive": precision(false, -robust.naive[0]),
        "cleanlab": precision(false, -cleanlab_quality(drawn, robust.plan, number)),
        "false": depth,
        "expected": float(expected),
        "found": int(false[order[:depth]].sum()),
    }


def run(arguments: argparse.Namespace) -> None:
    log = Path(arguments.log)
    lines = log.read_text().splitlines() if log.exists() else []
    done = {
        (record["set"], record["draw"], record["what"], record["contamination"])
        for record in map(json.loads, lines)
    }
    works: list[tuple[str, float, Callable[..., dict[str, Any]]]] = [("hidden", 0.0, hidden)]
    works += [("audit", share, audit) for share in CONTAMINATIONS]
    for name in arguments.sets:
        source = load(name, Path(arguments.data_dir))
        for number in range(arguments.draws):
            for what, share, work in works:
                if (name, number, what, share) in done:
                    continue
                started = time.perf_counter()
                more = (share,) if what == "audit" else ()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # peers use deprecated functions
                    figures = work(source, name, number, *more)
                record = {"set": name, "draw": number, "what": what, "contamination": share}
                with log.open("a") as handle:
                    handle.write(json.dumps(record | figures) + "\n")
                seconds = time.perf_counter() - started
                print(name, number, what, share, f"{seconds:.1f} s", file=sys.stderr, flush=True)


def _cell(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) if len(values) > 1 else 0:.3f}"


def tables(records: list[dict[str, Any]]) -> str:
    """Format Markdown tables of means and standard deviations over draws."""
    groups: dict[tuple[str, str, float], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[record["what"], record["set"], record["contamination"]].append(record)
    draws = max(len(group) for group in groups.values())
    lines = [
        f"Means and standard deviations over {draws} draws; default parameters, 50 members.",
        "",
        "**Average precision at finding the hidden positives of U**",
        "",
        "| set | rows of P, of U, hidden | out of bag | naive: own training rows |"
        " bagging out of bag | pulearn bagging out of bag |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for name, (n_pos, n_unl, share) in SETS.items():
        if group := groups.get(("hidden", name, 0.0)):
            cells = [
                _cell([record[way]["ap"] for record in group])
                for way in ("out_of_bag", "naive", "bagging", "pulearn")
            ]
            sizes = f"{n_pos}, {n_unl}, {round(share * n_unl)}"
            lines.append(f"| {name} | {sizes} | {' | '.join(cells)} |")
    lines += [
        "",
        "**Recall within the first k rows of U, k as many as are hidden: what the known positives"
        " promise, less the truth**",
        "",
        "| set | true recall | out of bag | naive: own training rows | bagging, P in every bag |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in SETS:
        if group := groups.get(("hidden", name, 0.0)):
            cells = [
                _cell([record[way]["promised"] - record[way]["recall"] for record in group])
                for way in ("out_of_bag", "naive", "bagging")
            ]
            true = _cell([record["out_of_bag"]["recall"] for record in group])
            lines.append(f"| {name} | {true} | {' | '.join(cells)} |")
    lines += [
        "",
        "**Audit: average precision at finding the false rows of P**",
        "",
        "| set | contamination of P | out of bag | naive: own training rows | cleanlab, SVM |"
        " false among the first k, and expected |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name in SETS:
        for share in CONTAMINATIONS:
            if group := groups.get(("audit", name, share)):
                cells = [
                    _cell([record[way] for record in group])
                    for way in ("out_of_bag", "naive", "cleanlab")
                ]
                false = np.mean([record["found"] for record in group])
                expected = np.mean([record["expected"] for record in group])
                last = f"{false:.1f}, {expected:.1f} of {group[0]['false']}"
                lines.append(f"| {name} | {100 * share:.0f} % | {' | '.join(cells)} | {last} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=".")
    parser.add_argument("--log", required=True, help="JSON lines; a run continues where they end")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--markdown", help="a document whose tables are replaced")
    arguments = parser.parse_args()
    with parallel.inner_threads_held():
        run(arguments)
    text = tables([json.loads(line) for line in Path(arguments.log).read_text().splitlines()])
    print(text)
    if arguments.markdown:
        put_between_marks(Path(arguments.markdown), text + "\n")


if __name__ == "__main__":
    main()
