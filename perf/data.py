"""The data sets: files named as on the LIBSVM data page, or generated data of the same shape."""

from __future__ import annotations

import gzip
import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perf.measure import command, run
from perf.sizes import Sizes
from resvm_cli.files.svmlight import Block, format_block
from resvm_cli.rows import Rows
from resvm_cli.tables.inputs import read_file

MNIST, MNIST_TEST = "mnist.scale", "mnist.scale.t"
IJCNN, IJCNN_TEST = "ijcnn1", "ijcnn1.t"
COVTYPE = "covtype.libsvm.binary.scale"


@dataclass(frozen=True)
class Problem:
    """Files with P, U and test rows."""

    name: str
    positives: Path
    unlabeled: Path
    test: Path
    n_features: int


class Data:
    """Find, generate, truncate and compress the files of one run in one folder."""

    def __init__(self, folder: Path, given: Path | None, sizes: Sizes) -> None:
        self._folder = folder
        self._given = given
        self._sizes = sizes

    def sized(self, sizes: Sizes) -> Data:
        """Return the same data with different sizes, in a separate folder."""
        folder = self._folder / f"{sizes.rows_pos}+{sizes.rows_unl}"
        folder.mkdir(exist_ok=True)
        return Data(folder, self._given, sizes)

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
                path.write_bytes(format_block(_generated(name, self._sizes)))

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

    def problem(self, name: str, test_name: str, label: int, resvm: list[str]) -> Problem:
        """Draw P and U from a labeled data set; a tenth of U is truly positive."""
        sizes = self._sizes
        test = self.head(self.plain(test_name), sizes.test_rows)

        def make(folder: Path) -> None:
            options = {
                "--data": self.plain(name),
                "--positive-label": label,
                "--n-pos": sizes.rows_pos,
                "--n-unl": sizes.rows_unl,
                "--contamination-unl": 0.1,
                "--test-pos": 1,
                "--test-neg": 1,
                "--output": folder,
            }
            run(command(*resvm, "simulate", "-q", *itertools.chain(*options.items())))

        folder = self._made(f"{name}.problem", make)
        positives, unlabeled = folder / "pos.svm", folder / "unl.svm"
        # test rows may have features that are absent from all training rows
        n_features = max(
            read_file(str(path)).rows.max_index for path in (positives, unlabeled, test)
        )
        return Problem(name, positives, unlabeled, test, n_features)

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


def _generated(name: str, sizes: Sizes) -> Block:
    rng = np.random.default_rng(len(name))
    if name in (MNIST, MNIST_TEST):
        n_rows = sizes.test_rows if name == MNIST_TEST else sizes.generated_rows
        return _pictures(rng, n_rows)
    if name == COVTYPE:
        return _terrain(rng, sizes.generated_rows)
    return _signals(rng, sizes.generated_rows)


def _terrain(rng: np.random.Generator, n_rows: int) -> Block:
    """Generate data like covtype: 10 numbers, 1 of 4 and 1 of 40 indicators, balanced classes."""
    features = np.zeros((n_rows, 54))
    features[:, :10] = np.round(rng.random((n_rows, 10)), 6)
    rows = np.arange(n_rows)
    features[rows, 10 + rng.integers(0, 4, n_rows)] = 1.0
    features[rows, 14 + rng.integers(0, 40, n_rows)] = 1.0
    bend = features[:, 0] + np.sin(6 * features[:, 1]) * features[:, 2]
    return Block.from_rows(Rows.from_dense(features), np.where(bend > np.median(bend), 1, 2))


def _pictures(rng: np.random.Generator, n_rows: int) -> Block:
    """Generate data like mnist: ten classes, 780 features, 19 % non-zero, gray levels / 255."""
    # training and test sets have the same patterns, so that models generalize
    chances = np.random.default_rng(0).beta(0.35, 1.5, (10, 780))
    labels = rng.integers(0, 10, n_rows)
    present = rng.random((n_rows, 780)) < chances[labels]
    levels = np.round(rng.integers(1, 256, (n_rows, 780)) / 255, 6)
    return Block.from_rows(Rows.from_dense(levels * present), labels)


def _signals(rng: np.random.Generator, n_rows: int) -> Block:
    """Generate data like ijcnn1: one of ten indicators, then twelve numbers with six decimals."""
    features = np.zeros((n_rows, 22))
    features[np.arange(n_rows), rng.integers(0, 10, n_rows)] = 1.0
    features[:, 10:] = np.round(rng.normal(0.0, 0.3, (n_rows, 12)), 6)
    ring = (features[:, 10:14] ** 2).sum(axis=1)
    return Block.from_rows(
        Rows.from_dense(features), np.where(ring > np.quantile(ring, 0.9), 1, -1)
    )
