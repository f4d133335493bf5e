"""Tasks for comparing methods: labeled data, from which P, U and test rows are drawn.

Each task says which class is positive and which fraction of U is positive. A draw depends only on
the task's name, the contamination of P and the draw's number, so every method gets the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from resvm_cli.commands.simulate import Sizes, draw_synthetic, split
from resvm_cli.data.cell_values import fingerprints, texts_of
from resvm_cli.data.delimited import TextTable
from resvm_cli.data.encoding import ColumnRoles
from resvm_cli.data.features import BITS, RADIUS, TableFeatures
from resvm_cli.data.inputs import read_file
from resvm_cli.data.scaling import FeatureStats
from resvm_cli.data.streams import read_pieces
from resvm_cli.data.svmlight import Block
from resvm_cli.rows import Rows

MAX_ROWS = 20_000  # larger files are sampled once; a draw takes about a sixth of the sample


SYNTHETIC = "synthetic"
FAMILIES = {"dna": "splice"}  # both encode the same sequences


@dataclass(frozen=True)
class Task:
    """A file, its positive label, and how many rows are drawn from it."""

    file: str
    positive: float | str  # a string for tables
    hidden: float  # fraction of U that is truly positive
    n_pos: int = 100
    n_unl: int = 1000
    n_test: int = 2000
    column: str | None = None  # the label column of molecules; in other tables, it is the last

    @property
    def family(self) -> str:
        """The data set, shared by all tasks with the same rows."""
        return FAMILIES.get(self.file, self.file)


TASKS = {
    "synthetic": Task(SYNTHETIC, 1, 0.3),
    "cancer": Task("breast-cancer_scale", 4, 0.2, 60, 200, 300),
    "covtype": Task("covtype.libsvm.binary.scale", 2, 0.3),
    "ijcnn1": Task("ijcnn1", 1, 0.1),
    "mnist 3": Task("mnist.scale", 3, 0.2),
    "mnist 7": Task("mnist.scale", 7, 0.1),
    "mnist 8": Task("mnist.scale", 8, 0.1),
    "phishing 0": Task("phishing", 0, 0.2),
    "phishing 1": Task("phishing", 1, 0.3),
    "mushrooms 1": Task("mushrooms", 1, 0.2),
    "splice +": Task("splice", 1, 0.2),
    "splice -": Task("splice", -1, 0.3),
    "svmguide1": Task("svmguide1", 0, 0.2),
    "german": Task("german.numer_scale", 1, 0.2, 80, 500, 300),
    "a9a": Task("a9a", 1, 0.24),
    "magic": Task("magic", 1, 0.3),
    "dna 0": Task("dna", 0, 0.2),
    "dna 1": Task("dna", 1, 0.2),
    "dna 2": Task("dna", 2, 0.3),
    "australian": Task("australian", 1, 0.3, 80, 300),
    "banana": Task("keel/banana.csv", "1.0", 0.3),
    "chess": Task("keel/chess.csv", "won", 0.3),
    "optdigits 8": Task("keel/optdigits.csv", "8", 0.1),
    "optdigits 9": Task("keel/optdigits.csv", "9", 0.1),
    "page-blocks0": Task("keel/page-blocks0.csv", "positive", 0.1),
    "phoneme": Task("keel/phoneme.csv", "1", 0.3),
    "ring": Task("keel/ring.csv", "1", 0.3),
    "segment 3": Task("keel/segment.csv", "3", 0.15, 80, 600),
    "segment 5": Task("keel/segment.csv", "5", 0.15, 80, 600),
    "spambase": Task("keel/spambase.csv", "1", 0.3),
    "yeast1": Task("keel/yeast1.csv", "positive", 0.2, 80, 600),
    "BBBP 0": Task("molecules/BBBP.csv", "0", 0.2, 80, 600, column="p_np"),
    "BBBP 1": Task("molecules/BBBP.csv", "1", 0.5, 100, 400, column="p_np"),
    "tox21 SR-MMP": Task("molecules/tox21.csv", "1", 0.15, column="SR-MMP"),
    "tox21 NR-AhR": Task("molecules/tox21.csv", "1", 0.12, column="NR-AhR"),
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
    def X(self) -> Any:
        """The rows of P, then those of U."""
        return matrix(Rows.concatenate([self.positives, self.unlabeled]), self.n_features)

    @property
    def test_X(self) -> Any:
        return matrix(self.test, self.n_features)

    @property
    def labels(self) -> np.ndarray:
        """The labels of the training rows: 1 for P, 0 for U."""
        return np.repeat([1, 0], [len(self.positives), len(self.unlabeled)])

    @property
    def unscaled(self) -> bool:
        """Whether ``resvm check`` would advise scaling the features."""
        stats = FeatureStats()
        for rows in (self.positives, self.unlabeled):
            stats.add(rows)
        return stats.summary().advice() is not None


def matrix(rows: Rows, n_features: int) -> Any:
    """Return rows as a sparse matrix."""
    return csr_matrix((rows.values, rows.indices - 1, rows.indptr), (len(rows), n_features))


def labeled(task: Task, folder: Path) -> tuple[Rows, np.ndarray]:
    """Return the rows of a task's file and whether each is positive."""
    rows, labels = _read(task.file, task.column, folder)
    return rows, labels == task.positive


@cache
def _read(file: str, column: str | None, folder: Path) -> tuple[Rows, np.ndarray]:
    if file == SYNTHETIC:
        n_positive = MAX_ROWS * 3 // 10
        points = draw_synthetic(n_positive, MAX_ROWS - n_positive, np.random.default_rng(7))
        return Rows.from_dense(points), np.where(np.arange(MAX_ROWS) < n_positive, 1, -1)
    path = str(folder / file if (folder / file).exists() else folder / f"{file}.gz")
    if column is not None:
        rows, labels = _read_molecules(path, column)
    elif file.endswith(".csv"):
        rows, labels = _read_table(path)
    else:
        block = read_file(path)
        rows, labels = block.rows, np.asarray(block.labels)
    if len(rows) > MAX_ROWS:
        some = np.random.default_rng(5).choice(len(rows), MAX_ROWS, replace=False)
        rows, labels = rows.take(some), labels[some]
    return rows, labels


def _read_table(path: str) -> tuple[Rows, np.ndarray]:
    """Read a table without a header; its last column is the label."""
    table = TextTable(path, lambda: read_pieces(path), separator=",", header=False)
    roles = ColumnRoles(dropped=(table.columns[-1],))
    rows = Block.concatenate(list(TableFeatures(table, roles).blocks())).rows
    return rows, np.array(_cells(table, table.columns[-1]))


def _read_molecules(path: str, column: str) -> tuple[Rows, np.ndarray]:
    """Compute fingerprints, leaving out molecules without a label and those that cannot be read."""
    table = TextTable(path, lambda: read_pieces(path), separator=",")
    labels, smiles = (np.array(_cells(table, name)) for name in (column, "smiles"))
    labels, smiles = labels[labels != ""], smiles[labels != ""]
    kept = np.ones(len(labels), bool)
    numbers, bits, counts = fingerprints(smiles.tolist(), BITS, RADIUS, False, kept)
    found = csr_matrix((counts, (numbers, bits)), (len(labels), BITS))
    kept &= found.getnnz(axis=1) > 0
    return Rows.from_matrix(found[kept], 1), labels[kept]


def _cells(table: TextTable, column: str) -> list[str]:
    number = table.columns.index(column)
    return [text.strip() for block in table.blocks() for text in texts_of(block.columns[number])]


def draw(name: str, contamination: float, number: int, folder: Path) -> Draw:
    """Draw P, U and test rows; the test set is smaller if too few rows are left.

    U and the test set have the same fraction of positives.
    """
    task = TASKS[name]
    rows, truth = labeled(task, folder)
    without_test = Sizes(task.n_pos, task.n_unl, contamination, task.hidden, 0, 0)
    needed_pos, needed_neg = without_test.needed
    left_pos = int(truth.sum()) - needed_pos
    left_neg = int((~truth).sum()) - needed_neg
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
