"""Time one cell of the paper against scikit-learn: ``python -m perf.paper_cell --data-dir DIR``.

The cell is mnist, digit 7, semi-supervised, with the paper's protocol. For each method, the time of
resvm on one core is compared with that of a loop over scikit-learn's SVC, which trains on as many
bags of the same sizes in as many folds and scores the held-out rows. The loop is timed for the
candidates with the smallest and the largest bags of the grid. The mean of the two times is
multiplied by the number of candidates that resvm tried.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from sklearn.svm import SVC

from resvm_cli.benchmark.cells import (
    BASE_METHODS,
    MEMBERS,
    PAPER_FOLDS,
    Bench,
    Protocol,
    default_grids,
    measure,
)
from resvm_cli.benchmark.data import PAPER_TASKS, BenchmarkData, Cell, Draw
from resvm_cli.running import parallel
from resvm_cli.svm.libsvm import silenced

TASK = "mnist-7"
SETTING = "semi-supervised"


def dense(drawn: Draw) -> tuple[np.ndarray, np.ndarray]:
    """Return P and U as dense matrices of the same width."""
    width = max(drawn.positives.max_index, drawn.unlabeled.max_index) + 1
    found = []
    for rows in (drawn.positives, drawn.unlabeled):
        matrix = np.zeros((len(rows), width))
        matrix[rows.row_numbers, rows.indices] = rows.values
        found.append(matrix)
    return found[0], found[1]


def loop_seconds(drawn: Draw, method: str, n_pos: int, n_unl: int, penalty: float) -> float:
    """Time one candidate over all folds: 50 members on bags of this size, or one on all rows."""
    positives, unlabeled = dense(drawn)
    rng = np.random.default_rng(0)
    fold_pos, fold_unl = (
        rng.permutation(len(part)) % PAPER_FOLDS for part in (positives, unlabeled)
    )
    started = time.process_time()
    for fold in range(PAPER_FOLDS):
        p, u = positives[fold_pos != fold], unlabeled[fold_unl != fold]
        held = np.concatenate([positives[fold_pos == fold], unlabeled[fold_unl == fold]])
        for _ in range(1 if method == "cwsvm" else MEMBERS):
            bag_p, bag_u = p, u
            if method == "resvm":
                bag_p = p[rng.integers(0, len(p), n_pos)]
            if method != "cwsvm":
                bag_u = u[rng.integers(0, len(u), n_unl)]
            labels = np.repeat([1, -1], [len(bag_p), len(bag_u)])
            weights = {1: penalty * len(bag_u) / len(bag_p), -1: penalty}
            member = SVC(kernel="linear", C=1.0, class_weight=weights)
            member.fit(np.concatenate([bag_p, bag_u]), labels).decision_function(held)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=".")
    arguments = parser.parse_args()
    cell = Cell(SETTING, TASK, 0, *PAPER_TASKS[TASK].contaminations(SETTING))
    data = BenchmarkData(arguments.data_dir, PAPER_TASKS, None, 0)
    bench = Bench(data, Protocol("paper", default_grids()), {TASK: "mnist"}, True)
    drawn = data.draw(cell)
    ours = theirs = 0.0
    with parallel.inner_threads_held(), silenced():
        for method in ("resvm", "bagging", "cwsvm"):
            measured = measure(bench, replace(cell, method=method))
            seconds = measured.times["cpu_seconds"]
            sizes = {"resvm": ((5, 50), (20, 200)), "bagging": ((0, 50), (0, 250))}
            timed = [
                loop_seconds(drawn, BASE_METHODS[method], n_pos, n_unl, 0.01)
                for n_pos, n_unl in sizes.get(method, ((0, 0), (0, 0)))
            ]
            loop = float(np.mean(timed)) * measured.record["candidates"]
            print(
                f"{method:8} {measured.record['candidates']:3} candidates  here {seconds:7.1f} s"
                f"  scikit-learn {loop:8.1f} s  {loop / seconds:5.1f} times"
            )
            ours, theirs = ours + seconds, theirs + loop
    print(f"all      here {ours:.1f} s  scikit-learn {theirs:.1f} s  {theirs / ours:.1f} times")


if __name__ == "__main__":
    main()
