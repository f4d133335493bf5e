"""Are the predicted probabilities of new rows as accurate as those of pulearn's models?

``python -m studies.probability_peers --data-dir DIR`` draws P, U and test rows from the tasks of
``studies.pu_tasks``. P is clean, and every method is given b, the true fraction of positives in U.
Test rows are drawn like U. pulearn's models predict for rows drawn from P and U combined, so their
odds are adjusted to b.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import resvm_cli
from studies.markdown import markdown_table
from studies.pu_peers import FOLDS, Matrices
from studies.pu_tasks import TASKS, Draw, draw

N_BINS = 10
# in half of these tasks, the classes overlap
CHOSEN = (
    *("synthetic", "mnist 7", "mushrooms 1", "svmguide1", "optdigits 8", "segment 5", "spambase"),
    *("a9a", "australian", "covtype", "german", "magic", "phoneme", "yeast1"),
)


def brier_and_calibration(chances: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Return the Brier score and the expected calibration error with bins of equal size."""
    order = np.argsort(chances, kind="stable")
    gaps = [
        len(some) * abs(chances[some].mean() - truth[some].mean())
        for some in np.array_split(order, N_BINS)
    ]
    return float(((chances - truth) ** 2).mean()), float(sum(gaps) / len(truth))


def moved_to_b(chances: np.ndarray, drawn: Draw) -> np.ndarray:
    """Adjust the odds from the fraction of positives in P and U combined to that in U."""
    n_pos, n_unl, b = len(drawn.positives), len(drawn.unlabeled), drawn.prior
    both = (n_pos + b * n_unl) / (n_pos + n_unl)
    factor = b / (1 - b) * (1 - both) / both
    chances = np.clip(chances, 0.0, 1.0)
    return factor * chances / (factor * chances + 1 - chances)


def of_resvm(drawn: Draw, rows: Matrices) -> np.ndarray:
    train, test = drawn.dense(drawn.training_rows), drawn.dense(drawn.test)
    model = resvm_cli.fit(train, rows.labels, auto=True, scale="auto", seed=rows.seed, jobs=1)
    return model.predict_proba(test, contamination_unl=drawn.prior)[:, 1]


def calibrated_svm(rows: Matrices) -> object:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    return CalibratedClassifierCV(
        SVC(gamma=rows.gamma, class_weight="balanced"), ensemble=False, cv=FOLDS
    )


def of_elkan_noto(drawn: Draw, rows: Matrices) -> np.ndarray:
    """Divide by the fraction of positives that are labeled, as pulearn estimates it."""
    from pulearn import ElkanotoPuClassifier

    model = ElkanotoPuClassifier(calibrated_svm(rows), hold_out_ratio=0.2, random_state=rows.seed)
    return moved_to_b(model.fit(rows.train, rows.labels).predict_proba(rows.test)[:, 1], drawn)


def of_known_frequency(drawn: Draw, rows: Matrices) -> np.ndarray:
    """Divide by the true fraction of positives that are labeled, which follows from b."""
    from pulearn.metrics import calibrate_posterior_p_y1

    model = calibrated_svm(rows).fit(rows.train, rows.labels)  # type: ignore[attr-defined]
    n_pos = len(drawn.positives)
    frequency = n_pos / (n_pos + drawn.prior * len(drawn.unlabeled))
    chances = calibrate_posterior_p_y1(model.predict_proba(rows.test)[:, 1], frequency)
    return moved_to_b(chances, drawn)


METHODS: dict[str, Callable[[Draw, Matrices], np.ndarray]] = {
    "`predict --probability`": of_resvm,
    "pulearn, Elkan-Noto": of_elkan_noto,
    "pulearn, calibrated with b": of_known_frequency,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=".")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(CHOSEN))
    arguments = parser.parse_args()
    table = []
    for task in arguments.tasks:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
        for number in range(arguments.draws):
            drawn = draw(task, 0.0, number, Path(arguments.data_dir))
            rows = Matrices(drawn, number)
            for name, method in METHODS.items():
                chances = method(drawn, rows)
                found[name].append(brier_and_calibration(chances, drawn.truth_test))
        table.append(np.array([np.mean(found[name], axis=0) for name in METHODS]))
        print(task, table[-1].round(3).tolist(), file=sys.stderr, flush=True)
    means = np.mean(table, axis=0)
    best = np.argmin([each[:, 0] for each in table], axis=1)
    print(
        markdown_table(
            ["method", "Brier score", "calibration error", "best Brier score"],
            [
                [name, f"{means[i, 0]:.3f}", f"{means[i, 1]:.3f}", f"{(best == i).sum()} tasks"]
                for i, name in enumerate(METHODS)
            ],
        )
    )


if __name__ == "__main__":
    main()
