"""Audit P with cleanlab on stored draws, for comparison with resvm.

``python -m studies.audit_peers --data-dir DIR --store DIR`` takes the draws of
``studies.promise_draws`` with contaminated P and random labeling. It computes the label
quality of each row of P from the cross-validated probabilities of three classifiers, and stores it
next to the draws. Stored values are not computed again. For each task, the printed table shows the
average precision at finding false rows of P, and by how much resvm is better, paired by draw.
cleanlab is not a dependency of resvm and is needed only to compute missing values (pip install
cleanlab).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resvm_cli.rows import Rows
from resvm_cli.running import parallel
from studies.promise_draws import CONTAMINATIONS, Cell, drawn
from studies.pu_tasks import TASKS, needs_scaling

FOLDS = 5


def _svc() -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    base = SVC(C=1.0, gamma="scale", class_weight="balanced")
    return CalibratedClassifierCV(base, ensemble=False, cv=3)


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(200, class_weight="balanced", random_state=0)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(class_weight="balanced", max_iter=1000)


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "svc": _svc,
    "forest": _forest,
    "logistic": _logistic,
}


def quality(cell: Cell, folder: Path, name: str) -> np.ndarray:
    """Compute cleanlab's label quality of the rows of P, on standardized features."""
    from cleanlab.rank import get_label_quality_scores
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    some = drawn(cell, folder)
    rows = Rows.concatenate([some.positives, some.unlabeled])
    matrix = np.zeros((len(rows), rows.max_index + 1))
    matrix[rows.row_numbers, rows.indices] = rows.values
    if needs_scaling(some.positives, some.unlabeled):
        matrix = (matrix - matrix.mean(axis=0)) / np.maximum(matrix.std(axis=0), 1e-12)
    labels = np.repeat([1, 0], [len(some.positives), len(some.unlabeled)])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=cell.number)
    model = CLASSIFIERS[name]()
    chances = cross_val_predict(model, matrix, labels, cv=folds, method="predict_proba")
    return np.asarray(get_label_quality_scores(labels, chances)[labels == 1])


def audited(cell: Cell, store: Path) -> dict[str, float] | None:
    """Return the average precision of each auditor on false rows of P; None if any was not run."""
    from sklearn.metrics import average_precision_score

    paths = {name: store / f"{cell.name}.{name}.npy" for name in CLASSIFIERS}
    if not (store / f"{cell.name}.npz").exists() or not all(map(Path.exists, paths.values())):
        return None
    with np.load(store / f"{cell.name}.npz") as stored:
        values, members, truth = (stored[name] for name in ("pos", "pos_members", "truth_pos"))
    judged = ~np.isnan(values)
    scores = {"resvm": values, "naive": members.mean(axis=1, dtype=np.float64)}
    scores |= {name: np.load(path) for name, path in paths.items()}
    return {
        name: float(average_precision_score(~truth[judged], -score[judged]))
        for name, score in scores.items()
    }


def table(cells: Sequence[Cell], store: Path) -> str:
    """Format a Markdown table of tasks, then means and differences with standard errors."""
    names = ["resvm", "naive", *CLASSIFIERS]
    lines = [
        "| task | false in P | draws | resvm | own training rows | cleanlab, SVC | forest |"
        " logistic | resvm less SVC |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    found = {cell: one for cell in cells if (one := audited(cell, store)) is not None}
    for contamination in CONTAMINATIONS[1:]:
        means: list[dict[str, float]] = []
        for task in TASKS:
            group = [
                one
                for cell, one in found.items()
                if (cell.task, cell.contamination) == (task, contamination)
            ]
            if not group:
                continue
            means.append({name: float(np.mean([one[name] for one in group])) for name in names})
            gains = [one["resvm"] - one["svc"] for one in group]
            figures = " | ".join(f"{means[-1][name]:.3f}" for name in names)
            lines.append(
                f"| {task} | {100 * contamination:.0f} % | {len(group)} | {figures} |"
                f" {_with_error(gains)} |"
            )
        if not means:
            continue
        figures = " | ".join(f"{np.mean([one[name] for one in means]):.3f}" for name in names)
        gains = [one["resvm"] - one["svc"] for one in means]
        lines.append(
            f"| **{len(means)} tasks** | {100 * contamination:.0f} % | | {figures} |"
            f" {_with_error(gains)} |"
        )
        for name in CLASSIFIERS:
            gains = [one["resvm"] - one[name] for one in means]
            ahead = sum(gain > 0 for gain in gains)
            lines.append(
                f"| resvm less {name} | {100 * contamination:.0f} % | | {_with_error(gains)},"
                f" ahead in {ahead} of {len(gains)} tasks | | | | | |"
            )
    return "\n".join(lines) + "\n"


def _with_error(gains: Sequence[float]) -> str:
    error = f" ± {np.std(gains, ddof=1) / np.sqrt(len(gains)):.3f}" if len(gains) > 1 else ""
    return f"{np.mean(gains):+.3f}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=".")
    parser.add_argument("--store", required=True)
    parser.add_argument("--draws", type=int, nargs=2, default=(0, 2), help="from and to")
    parser.add_argument("--table", action="store_true", help="only print stored results")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = [
        Cell(task, contamination, "random", number)
        for number in range(*arguments.draws)
        for task in TASKS
        for contamination in CONTAMINATIONS
        if contamination
    ]
    with parallel.inner_threads_held():
        for cell in () if arguments.table else cells:
            for name in CLASSIFIERS:
                path = Path(arguments.store) / f"{cell.name}.{name}.npy"
                if path.exists():
                    continue
                started = time.perf_counter()
                np.save(path, quality(cell, Path(arguments.data_dir), name))
                seconds = time.perf_counter() - started
                print(path.name, f"{seconds:.1f} s", file=sys.stderr, flush=True)
    print(table(cells, Path(arguments.store)))


if __name__ == "__main__":
    main()
