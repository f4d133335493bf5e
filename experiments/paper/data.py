"""The paper's tasks, their data files, and draws of P, U and test rows.

A draw depends only on the seed of the run, the task, the contamination and the repetition, so
cells can be run in any order and on any machine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from resvm_cli import randomness
from resvm_cli.commands.simulate import Sizes, draw_synthetic, split, truth_of
from resvm_cli.data.inputs import read_file
from resvm_cli.data.svmlight import Block
from resvm_cli.errors import DataError
from resvm_cli.records import dataclass
from resvm_cli.rows import DataSummary, Rows

SettingName: TypeAlias = Literal["supervised", "pu", "semi-supervised"]
SETTINGS: tuple[SettingName, ...] = get_args(SettingName)
OWN = "own"  # the setting of results whose contamination was given
# Class-weighted SVM as in the published results: LIBLINEAR without a bias, linear tasks only.
PUBLISHED_CWSVM = "cwsvm-published"
METHODS: tuple[str, ...] = ("resvm", "bagging", "cwsvm", PUBLISHED_CWSVM)  # in order of execution
COMPARED = ("cwsvm", "bagging", "resvm")  # in the order of the paper's tables
LIBSVM_PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
FILE_ENDINGS = ("", ".bz2", ".gz", ".xz", ".zst")
# Random streams, each followed by numbers that identify the cell.
POOL = 0x706F6F6C  # rows of a large file that all sets are drawn from
SETS = 0x62656E63
TRAINING = 0x62747261


@dataclass(frozen=True)
class DataFile:
    """A file from the LIBSVM data page."""

    name: str
    folder: Literal["binary", "multiclass"]

    @property
    def address(self) -> str:
        return f"{LIBSVM_PAGE}/{self.folder}/{self.name}.bz2"

    def path_in(self, directory: str) -> str | None:
        """Return the path of the file, plain or compressed; None if it is missing."""
        paths = [os.path.join(directory, self.name + ending) for ending in FILE_ENDINGS]
        return next((path for path in paths if os.path.isfile(path)), None)


@dataclass(frozen=True)
class LearningTask:
    """One class against all others, and the number of rows to draw (paper, table 1)."""

    name: str
    n_pos: int
    n_unl: int
    contamination: float  # of U, or of P and U, in the settings with contamination
    file: DataFile | None = None  # None: the synthetic problem
    test_file: DataFile | None = None  # None: test rows are drawn from the same file
    positive_label: float = 1.0
    test_pos: int | None = None
    test_neg: int | None = None
    n_pool: int | None = None  # size of the subset of a large file that all draws are made from

    @property
    def family(self) -> str:
        """The data set of the task; all of its classes share a grid."""
        return self.name.partition("-")[0]

    @property
    def files(self) -> tuple[DataFile, ...]:
        return tuple(file for file in (self.file, self.test_file) if file is not None)

    def contaminations(self, setting: str) -> tuple[float, float]:
        """Return the contamination of P and of U in one of the paper's settings."""
        of_pos = self.contamination if setting == "semi-supervised" else 0.0
        return of_pos, 0.0 if setting == "supervised" else self.contamination


def _classes(
    name: str, labels: Sequence[int], n_pos: int, n_unl: int, contamination: float, file: str
) -> list[LearningTask]:
    """Return one task per class of a data set that has a separate test file."""
    files = DataFile(file, "multiclass"), DataFile(f"{file}.t", "multiclass")
    return [
        LearningTask(f"{name}-{label}", n_pos, n_unl, contamination, *files, float(label))
        for label in labels
    ]


_IJCNN1 = DataFile("ijcnn1", "binary"), DataFile("ijcnn1.t", "binary")
_CANCER = DataFile("breast-cancer_scale", "binary")  # label 4: malignant
_COVTYPE = DataFile("covtype.libsvm.binary.scale", "binary")
# In the order of the paper's tables.
PAPER_TASKS: dict[str, LearningTask] = {
    task.name: task
    for task in (
        LearningTask("synthetic", 100, 200, 0.3, test_pos=5000, test_neg=5000),
        LearningTask("cancer", 50, 200, 0.3, _CANCER, None, 4.0, test_pos=100, test_neg=100),
        LearningTask("ijcnn1", 100, 10_000, 0.1, *_IJCNN1),
        LearningTask(
            "covtype", 100, 1000, 0.3, _COVTYPE, test_pos=20_000, test_neg=20_000, n_pool=140_000
        ),
        *_classes("mnist", range(10), 50, 2000, 0.1, "mnist.scale"),
        *_classes("sensit", (1, 2, 3), 100, 1000, 0.3, "combined_scale"),
    )
}
FAMILIES: dict[str, tuple[str, ...]] = {  # the tasks of each data set
    family: tuple(name for name, task in PAPER_TASKS.items() if task.family == family)
    for family in dict.fromkeys(task.family for task in PAPER_TASKS.values())
}


@dataclass(frozen=True)
class Cell:
    """One method on one draw of a task; the key for results and times."""

    setting: str
    task: str
    repetition: int
    contamination_pos: float = 0.0
    contamination_unl: float = 0.0
    method: str = ""  # not part of the draw, which is the same for all methods

    def record(self, protocol: str) -> dict[str, Any]:
        """Return the fields that identify this cell in a file of results."""
        key = {name: getattr(self, name) for name in ("setting", "task", "method", "repetition")}
        pos, unl = self.contamination
        return {"protocol": protocol, **key, "contamination_pos": pos, "contamination_unl": unl}

    @property
    def contamination(self) -> tuple[float, float]:
        return self.contamination_pos, self.contamination_unl

    @property
    def order(self) -> tuple[Any, ...]:
        """Sort key for the order of a run: by repetition, then small tasks first."""
        size, number = 0, 0
        if self.task in PAPER_TASKS:
            size, number = PAPER_TASKS[self.task].n_unl, list(PAPER_TASKS).index(self.task)
        setting = SETTINGS.index(self.setting) if self.setting in SETTINGS else 0
        cell = (self.task, setting, *self.contamination, METHODS.index(self.method))
        return (self.repetition, size, number, *cell)

    @property
    def draw_key(self) -> tuple[int, ...]:
        """Integers that identify this draw uniquely."""
        # paper, section 4: the settings of a task differ only in their contamination
        levels = (round(1e6 * level) for level in self.contamination)
        return (*self.task.encode(), self.repetition, *levels)

    def seed(self, seed: int) -> int:
        """Return the seed for folds and bags, which is the same for all methods."""
        bits = randomness.run_bits(seed, TRAINING, *self.draw_key)
        return int(bits.random_raw() >> np.uint64(32))

    def __str__(self) -> str:
        return f"{self.method} on {self.task}, {self.setting}, repetition {self.repetition}"


@dataclass(frozen=True, eq=False)
class LabeledRows:
    """Rows of known class to draw from, and separate test rows if the task has them."""

    rows: Rows
    positive: npt.NDArray[np.bool_]
    test_rows: Rows | None = None
    test_positive: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Draw:
    """P and U for training, and test rows with their true classes."""

    positives: Rows
    unlabeled: Rows
    test: Rows
    truth: npt.NDArray[np.bool_]


def draw(labeled: LabeledRows | None, sizes: Sizes, cell: Cell, seed: int) -> Draw:
    """Draw P, U and test rows for a cell; without labeled rows, use the synthetic problem."""
    rng = np.random.default_rng(np.random.SeedSequence((seed, SETS, *cell.draw_key)))
    if labeled is None:
        counts = sizes.needed
        labeled = LabeledRows(
            Rows.from_dense(draw_synthetic(*counts, rng)), np.repeat([True, False], counts)
        )
    rows, positive = labeled.rows, labeled.positive
    chosen = split(positive, sizes, rng)
    if labeled.test_rows is not None and labeled.test_positive is not None:
        test, truth = labeled.test_rows, labeled.test_positive
    else:
        test, truth = rows.take(chosen.test), positive[chosen.test]
    return Draw(rows.take(chosen.positives), rows.take(chosen.unlabeled), test, truth)


@dataclass(frozen=True)
class MissingFile:
    """A data file that was not found, and the tasks that need it."""

    file: str
    address: str
    tasks: tuple[str, ...]


def missing_files(directory: str, tasks: Sequence[LearningTask]) -> tuple[MissingFile, ...]:
    """Return the data files of these tasks that are not in the directory."""
    missing: dict[DataFile, list[str]] = {}
    for task in tasks:
        for file in task.files:
            if file.path_in(directory) is None:
                missing.setdefault(file, []).append(task.name)
    return tuple(MissingFile(file.name, file.address, tuple(of)) for file, of in missing.items())


@dataclass(frozen=True)
class BenchmarkData:
    """The rows of all tasks, read on first use."""

    directory: str
    seed: int
    _blocks: dict[str, Block] = field(default_factory=dict, compare=False, repr=False)
    _labeled: dict[str, LabeledRows] = field(default_factory=dict, compare=False, repr=False)
    _lock: Any = field(default_factory=threading.RLock, compare=False, repr=False)

    def draw(self, cell: Cell) -> Draw:
        return draw(self.labeled(cell.task), self.sizes(cell), cell, self.seed)

    def sizes(self, cell: Cell) -> Sizes:
        task = PAPER_TASKS[cell.task]
        test = (0, 0) if task.test_file is not None else (task.test_pos, task.test_neg)
        return Sizes(task.n_pos, task.n_unl, *cell.contamination, *test)

    def description(self, task: str) -> dict[str, str]:
        """Return the files of a task and their digests, as recorded in run.json."""
        files = PAPER_TASKS[task].files
        digests = [_digest(self._block(file).rows) for file in files]
        return {"file": ", ".join(file.name for file in files), "digest": ", ".join(digests)}

    def labeled(self, task: str) -> LabeledRows | None:
        """Return the rows of a task; None for the synthetic task, which has no file."""
        with self._lock:
            if task not in self._labeled:
                found = self._read(task)
                if found is None:
                    return None
                self._labeled[task] = found
            return self._labeled[task]

    def _read(self, name: str) -> LabeledRows | None:
        task = PAPER_TASKS[name]
        if task.file is None:
            return None
        block = self._block(task.file)
        positive = truth_of(block.labels, task.positive_label, task.file.name)
        rows = block.rows
        if task.n_pool is not None and len(rows) > task.n_pool:
            bits = randomness.run_bits(self.seed, POOL, *name.encode())
            numbers = randomness.sample(bits, len(rows), task.n_pool)
            rows, positive = rows.take(numbers), positive[numbers]
        if task.test_file is None:
            return LabeledRows(rows, positive)
        test = self._block(task.test_file)
        truth = truth_of(test.labels, task.positive_label, task.test_file.name)
        return LabeledRows(rows, positive, test.rows, truth)

    def _block(self, file: DataFile) -> Block:
        with self._lock:
            if file.name not in self._blocks:
                path = file.path_in(self.directory)
                if path is None:
                    raise DataError(f"{os.path.join(self.directory, file.name)}: has been removed")
                block = read_file(path)
                block.require_labels(path)
                self._blocks[file.name] = block
            return self._blocks[file.name]


def _digest(rows: Rows) -> str:
    survey = DataSummary()
    survey.add(rows)
    return survey.digest()
