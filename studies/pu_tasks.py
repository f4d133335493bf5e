"""Tasks with known classes for comparing methods: labeled data, and draws of P, U and test rows.

Each task says which class is positive and which fraction of U is positive. A draw depends only on
the task's name, the contamination of P and the draw's number, so every method gets the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from resvm_cli.files.svmlight import read_file
from resvm_cli.model.scaling import FeatureStats
from resvm_cli.model.simulation import Sizes, split, synthetic
from resvm_cli.rows import Rows

MAX_ROWS = 20_000  # rows of a file, sampled once; draws take a sixth of them


@dataclass(frozen=True)
class Task:
    """A file, its positive labels, and how many rows are drawn from it."""

    file: str
    is_positive: Callable[[np.ndarray], np.ndarray]
    hidden: float  # fraction of U that is truly positive
    n_pos: int = 100
    n_unl: int = 1000
    n_test: int = 2000


def _label(number: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda labels: labels == number


SYNTHETIC = "synthetic"
TASKS = {
    "synthetic": Task(SYNTHETIC, _label(1), 0.3),
    "cancer": Task("breast-cancer_scale", _label(4), 0.2, 60, 200, 300),
    "covtype": Task("covtype.libsvm.binary.scale", _label(2), 0.3),
    "ijcnn1": Task("ijcnn1", _label(1), 0.1),
    "mnist 3": Task("mnist.scale", _label(3), 0.2),
    "mnist 7": Task("mnist.scale", _label(7), 0.1),
    "mnist 8": Task("mnist.scale", _label(8), 0.1),
    "phishing 0": Task("phishing", _label(0), 0.2),
    "phishing 1": Task("phishing", _label(1), 0.3),
    "mushrooms 1": Task("mushrooms", _label(1), 0.2),
    "splice +": Task("splice", _label(1), 0.2),
    "splice -": Task("splice", _label(-1), 0.3),
    "svmguide1": Task("svmguide1", _label(0), 0.2),
    "german": Task("german.numer_scale", _label(1), 0.2, 80, 500, 300),
}


@dataclass(frozen=True, eq=False)
class Draw:
    """P, U and test rows with their true classes."""

    positives: Rows
    unlabeled: Rows
    test: Rows
    truth_pos: np.ndarray
    truth_unl: np.ndarray
    truth_test: np.ndarray
    n_features: int

    @property
    def prior(self) -> float:
        """The fraction of U that is truly positive."""
        return float(self.truth_unl.mean())

    @property
    def training_rows(self) -> Rows:
        """The rows of P, then those of U."""
        return Rows.concatenate([self.positives, self.unlabeled])

    @property
    def labels(self) -> np.ndarray:
        """1 for the rows of P, then 0 for those of U."""
        return np.repeat([1, 0], [len(self.positives), len(self.unlabeled)])

    @property
    def unscaled(self) -> bool:
        """Whether ``resvm check`` would advise scaling the features."""
        stats = FeatureStats()
        stats.add(self.positives)
        stats.add(self.unlabeled)
        return stats.summary().advice() is not None

    def dense(self, rows: Rows) -> np.ndarray:
        """Return rows as a dense matrix."""
        matrix = np.zeros((len(rows), self.n_features + 1))
        matrix[rows.row_numbers, rows.indices] = rows.values
        return matrix[:, 1:]


@cache
def labeled(file: str, folder: Path) -> tuple[Rows, np.ndarray]:
    """Return the rows of a file and their labels."""
    if file == SYNTHETIC:
        n_positive = MAX_ROWS * 3 // 10
        points = synthetic(n_positive, MAX_ROWS - n_positive, np.random.default_rng(7))
        return Rows.from_dense(points), np.where(np.arange(MAX_ROWS) < n_positive, 1, -1)
    path = folder / file
    block = read_file(str(path if path.exists() else folder / f"{file}.gz"))
    rows, labels = block.rows, np.asarray(block.labels)
    if len(rows) > MAX_ROWS:
        some = np.random.default_rng(5).choice(len(rows), MAX_ROWS, replace=False)
        rows, labels = rows.take(some), labels[some]
    return rows, labels


def draw(name: str, contamination: float, number: int, folder: Path) -> Draw:
    """Draw P, U and a test set with U's fraction of positives, as far as rows are left."""
    task = TASKS[name]
    rows, labels = labeled(task.file, folder)
    truth = np.asarray(task.is_positive(labels))
    without_test = Sizes(task.n_pos, task.n_unl, contamination, task.hidden, 0, 0)
    left_pos = int(truth.sum()) - without_test.positives_needed
    left_neg = int((~truth).sum()) - without_test.negatives_needed
    n_test = int(min(task.n_test, left_pos / task.hidden, left_neg / (1 - task.hidden)))
    test_pos = round(n_test * task.hidden)
    sizes = Sizes(task.n_pos, task.n_unl, contamination, task.hidden, test_pos, n_test - test_pos)
    seed = [number, round(1000 * contamination), *name.encode()]
    sets = split(truth, sizes, np.random.default_rng(seed))
    chosen = sets.positives, sets.unlabeled, sets.test
    return Draw(
        *(rows.take(numbers) for numbers in chosen),
        *(truth[numbers] for numbers in chosen),
        rows.max_index,
    )
