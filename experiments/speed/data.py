"""The data sets: files named as on the LIBSVM data page, or generated data of the same shape."""

from __future__ import annotations

import gzip
import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.speed.measure import command, run
from resvm_cli.data.inputs import read_file
from resvm_cli.data.svmlight import Block, format_block
from resvm_cli.rows import Rows

MNIST, MNIST_TEST = "mnist.scale", "mnist.scale.t"
IJCNN, IJCNN_TEST = "ijcnn1", "ijcnn1.t"
COVTYPE = "covtype.libsvm.binary.scale"
SHAPES = {  # number of features, fraction of nonzero entries, labels
    MNIST: (780, 0.19, range(10)),
    MNIST_TEST: (780, 0.19, range(10)),
    COVTYPE: (54, 0.22, (1, 2)),
    IJCNN: (22, 0.59, (-1, 1)),
    IJCNN_TEST: (22, 0.59, (-1, 1)),
}


@dataclass(frozen=True)
class Scenario:
    """What is drawn from a data set, and the members that are trained on it."""

    data: str
    test_data: str
    label: int
    rows_pos: int
    rows_unl: int
    n_pos: int
    n_unl: int
    members: tuple[int, ...]
    test_rows: int
    c_unl: float = 1.0
    predicts: bool = True

    @property
    def bag(self) -> str:
        penalty = "" if self.c_unl == 1.0 else f", C_U {self.c_unl:g}"
        return f"{self.n_pos} + {self.n_unl:,} rows ({self.data}){penalty}"


@dataclass(frozen=True)
class Problem:
    """Files with P, U and test rows."""

    scenario: Scenario
    positives: Path
    unlabeled: Path
    test: Path
    n_features: int


class Data:
    """Find, generate, truncate and compress the files of one run in one folder."""

    def __init__(self, folder: Path, given: Path | None, generated_rows: int = 100_000) -> None:
        self._folder = folder
        self._given = given
        self._generated_rows = generated_rows

    def describe(self, name: str) -> str:
        """Return the origin of a data set, for the tables."""
        return name if self._find(name) else f"generated in the shape of {name}"

    def plain(self, name: str) -> Path:
        """Return the path of the data set as uncompressed text."""
        source = self._find(name)
        if source is not None and source.suffix != ".gz":
            return source

        def make(path: Path) -> None:
            if source is not None:
                with gzip.open(source, "rb") as packed, path.open("wb") as text:
                    shutil.copyfileobj(packed, text, 1 << 20)
            else:
                path.write_bytes(format_block(_generated(name, self._generated_rows)))

        return self._made(name, make)

    def gzipped(self, path: Path) -> Path:
        """Return a gzip-compressed copy of the file (default level), or the given .gz file."""
        source = self._find(path.name)
        if source is not None and source.suffix == ".gz":
            return source

        def make(target: Path) -> None:
            with path.open("rb") as text, gzip.open(target, "wb", compresslevel=6) as packed:
                shutil.copyfileobj(text, packed, 1 << 20)

        return self._made(f"{path.name}.gz", make)

    def head(self, path: Path, n_rows: int) -> Path:
        """Return a file with the first ``n_rows`` rows; a shorter source is repeated."""

        def make(target: Path) -> None:
            with target.open("wb") as out:
                missing = n_rows
                while missing:
                    with path.open("rb") as source:
                        lines = list(itertools.islice(source, missing))
                    out.writelines(lines)
                    missing -= len(lines)

        return self._made(f"{path.name}.{n_rows}", make)

    def problem(self, scenario: Scenario, resvm: list[str]) -> Problem:
        """Draw P and U from a labeled data set; a tenth of U is truly positive."""
        test = self.head(self.plain(scenario.test_data), scenario.test_rows)

        def make(folder: Path) -> None:
            options = {
                "--data": self.plain(scenario.data),
                "--positive-label": scenario.label,
                "--n-pos": scenario.rows_pos,
                "--n-unl": scenario.rows_unl,
                "--contamination-unl": 0.1,
                "--test-pos": 1,
                "--test-neg": 1,
                "--output": folder,
            }
            run(command(*resvm, "simulate", "-q", *itertools.chain(*options.items())))

        name = f"{scenario.data}.{scenario.rows_pos}+{scenario.rows_unl}"
        folder = self._made(name, make)
        positives, unlabeled = folder / "pos.svm", folder / "unl.svm"
        # test rows may have features that are absent from all training rows
        n_features = max(
            read_file(str(path)).rows.max_index for path in (positives, unlabeled, test)
        )
        return Problem(scenario, positives, unlabeled, test, n_features)

    def _find(self, name: str) -> Path | None:
        if self._given is None:
            return None
        candidates = (self._given / name, self._given / f"{name}.gz")
        return next((path for path in candidates if path.is_file()), None)

    def _made(self, name: str, make: Callable[[Path], None]) -> Path:
        path = self._folder / name
        if not path.exists():
            make(path)
        return path


def _generated(name: str, n_rows: int) -> Block:
    """Generate rows with as many features and entries; each label has its own pattern."""
    n_features, density, labels = SHAPES[name]
    # training and test sets have the same patterns, so that models generalize
    chances = np.random.default_rng(0).beta(2 * density, 2 * (1 - density), (10, n_features))
    rng = np.random.default_rng(len(name))
    numbers = rng.integers(0, len(labels), n_rows)
    present = rng.random((n_rows, n_features)) < chances[numbers]
    values = np.round(rng.random((n_rows, n_features)), 6)
    return Block.from_rows(Rows.from_dense(values * present), np.array(labels)[numbers])
