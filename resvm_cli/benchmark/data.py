"""The labelled rows of a benchmark: the paper's files, or one of the user's own."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from resvm_cli.benchmark.draws import Cell, Draw, LabelledRows, draw, pool
from resvm_cli.benchmark.paper_tasks import DataFile, LearningTask
from resvm_cli.commands.simulate.simulate import truth_of
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.row_names import read_names
from resvm_cli.files.streams import name_of
from resvm_cli.files.svmlight import Block, read_file
from resvm_cli.model.drawing import Sizes
from resvm_cli.rows import DataSummary, Rows

ENDINGS = ("", ".bz2", ".gz", ".xz", ".zst")


@dataclass(frozen=True)
class OwnData:
    """A labelled file of the user's, from which sets of these sizes are drawn."""

    path: str
    positive_label: float
    n_pos: int
    n_unl: int
    groups: str | None = None
    zero_based: bool = False

    @property
    def name(self) -> str:
        """What the task is called: the file without what follows the first point."""
        return os.path.basename(self.path).partition(".")[0] or "data"

    def by_whole_path(self) -> OwnData:
        """The same, to be read by a program that was started elsewhere."""
        groups = None if self.groups is None else os.path.abspath(self.groups)
        return replace(self, path=os.path.abspath(self.path), groups=groups)


def find_file(directory: str, file: DataFile) -> str | None:
    """Where a data set's file is, plain or compressed."""
    paths = [os.path.join(directory, file.name + ending) for ending in ENDINGS]
    return next((path for path in paths if os.path.isfile(path)), None)


@dataclass(frozen=True)
class Missing:
    """A file that is not there, and the tasks that wait for it."""

    file: str
    address: str
    tasks: tuple[str, ...]


def missing_files(directory: str, tasks: Sequence[LearningTask]) -> tuple[Missing, ...]:
    """What cannot be found of these tasks' data."""
    wanting: dict[DataFile, list[str]] = {}
    for task in tasks:
        for file in task.files:
            if find_file(directory, file) is None:
                wanting.setdefault(file, []).append(task.name)
    return tuple(Missing(file.name, file.address, tuple(names)) for file, names in wanting.items())


@dataclass(frozen=True)
class BenchmarkData:
    """Rows by task, read when they are first asked for; those that were read travel along."""

    directory: str
    tasks: Mapping[str, LearningTask]
    own: OwnData | None
    seed: int
    _blocks: dict[str, Block] = field(default_factory=dict, compare=False, repr=False)
    _labelled: dict[str, LabelledRows] = field(default_factory=dict, compare=False, repr=False)
    _lock: Any = field(default_factory=threading.RLock, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        named = (self.directory, dict(self.tasks), self.own, self.seed)
        return BenchmarkData, (*named, self._blocks, self._labelled)

    def without_rows(self) -> BenchmarkData:
        """The same, to be read again by a program that was started elsewhere."""
        own = None if self.own is None else self.own.by_whole_path()
        return BenchmarkData(os.path.abspath(self.directory), dict(self.tasks), own, self.seed)

    def seal(self, task: str) -> str:
        """What tells rows, classes and groups of a task from any others."""
        labelled = self.labelled(task)
        if labelled is None:
            return ""
        seal = hashlib.sha256()
        for rows in (labelled.rows, labelled.test_rows):
            seal.update(b"" if rows is None else _digest(rows).encode())
        for array in (labelled.positive, labelled.groups, labelled.test_positive):
            seal.update(b"-" if array is None else array.tobytes())
        return seal.hexdigest()

    def draw(self, cell: Cell) -> Draw:
        """The sets of a cell."""
        return draw(self.labelled(cell.task), self.sizes(cell), cell, self.seed)

    def sizes(self, cell: Cell) -> Sizes:
        shares = (cell.contamination_pos, cell.contamination_unl)
        if self.own is not None:
            return Sizes(self.own.n_pos, self.own.n_unl, *shares)
        task = self.tasks[cell.task]
        test = (0, 0) if task.test_file is not None else (task.test_pos, task.test_neg)
        return Sizes(task.n_pos, task.n_unl, *shares, *test)

    def description(self, task: str) -> dict[str, str]:
        """Which files a task's rows are from, and what tells them from others."""
        if self.own is not None:
            labelled = self.labelled(task)
            assert labelled is not None
            return {"file": name_of(self.own.path), "digest": _digest(labelled.rows)}
        names = [file.name for file in self.tasks[task].files]
        digests = [_digest(self._block(name).rows) for name in names]
        return {"file": ", ".join(names), "digest": ", ".join(digests)}

    def labelled(self, task: str) -> LabelledRows | None:
        """The rows of a task; None of the synthetic one, which has no file."""
        with self._lock:
            if task not in self._labelled:
                found = self._own() if self.own is not None else self._of_paper(self.tasks[task])
                if found is None:
                    return None
                self._labelled[task] = found
            return self._labelled[task]

    def _of_paper(self, task: LearningTask) -> LabelledRows | None:
        if task.file is None:
            return None
        block = self._block(task.file.name)
        positive = truth_of(block, task.positive_label, task.file.name)
        labelled = LabelledRows(block.rows, positive)
        if task.n_pool is not None:
            labelled = pool(labelled, task.name, task.n_pool, self.seed)
        if task.test_file is None:
            return labelled
        test = self._block(task.test_file.name)
        truth = truth_of(test, task.positive_label, task.test_file.name)
        return LabelledRows(labelled.rows, labelled.positive, None, test.rows, truth)

    def _block(self, name: str) -> Block:
        with self._lock:
            if name not in self._blocks:
                path = find_file(self.directory, DataFile(name, "binary"))
                if path is None:
                    raise DataError(f"{os.path.join(self.directory, name)}: is not there any more")
                block = read_file(path)
                block.require_labels(path)
                self._blocks[name] = block
            return self._blocks[name]

    def _own(self) -> LabelledRows:
        assert self.own is not None
        block = read_file(self.own.path, zero_based=self.own.zero_based)
        name = name_of(self.own.path)
        block.require_labels(name)
        positive = truth_of(block, self.own.positive_label, name)
        groups = None
        if self.own.groups is not None:
            names = np.array(read_names(self.own.groups), object)
            if len(names) != len(positive):
                raise DataError(
                    f"{self.own.groups}: {len(names):,} groups, and {name} has"
                    f" {len(positive):,} rows"
                )
            groups = np.unique(names, return_inverse=True)[1].reshape(-1)
            if groups.max() == 0:
                raise CommandLineError(f"{self.own.groups}: all rows are of one group")
        return LabelledRows(block.rows, positive, groups)


def _digest(rows: Rows) -> str:
    survey = DataSummary()
    survey.add(rows)
    return survey.digest()
