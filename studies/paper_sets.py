"""The paper's data sets as labeled rows, from which P, U and test sets are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resvm_cli.rows import Rows
from resvm_cli.tables.inputs import read_file


@dataclass(frozen=True, eq=False)
class Source:
    """Labeled rows, and a test set if the data set has one."""

    rows: Rows
    truth: np.ndarray
    test_rows: Rows | None = None
    test_truth: np.ndarray | None = None


def load(name: str, folder: Path) -> Source:
    """Read one of the paper's data sets."""

    def read(stem: str) -> tuple[Rows, np.ndarray]:
        path = folder / stem
        block = read_file(str(path if path.exists() else folder / f"{stem}.gz"))
        return block.rows, block.labels

    if name == "synthetic":
        rng = np.random.default_rng(77)
        angle = rng.random(10_000) * 2 * np.pi
        ring = 4 * np.column_stack([np.cos(angle), np.sin(angle)])
        dense = np.vstack(
            [rng.standard_normal((10_000, 2)), ring + rng.standard_normal((10_000, 2))]
        )
        return Source(Rows.from_dense(dense), np.arange(20_000) < 10_000)
    if name == "cancer":
        rows, labels = read("breast-cancer_scale")
        return Source(rows, labels == 4)
    if name == "covtype":
        rows, labels = read("covtype.libsvm.binary.scale")
        some = np.random.default_rng(1).choice(len(rows), 100_000, replace=False)
        return Source(rows.take(some), labels[some] == 1)
    if name == "ijcnn1":
        (rows, labels), (test, test_labels) = read("ijcnn1"), read("ijcnn1.t")
        return Source(rows, labels == 1, test, test_labels == 1)
    digit = int(name[-1])
    (rows, labels), (test, test_labels) = read("mnist.scale"), read("mnist.scale.t")
    return Source(rows, labels == digit, test, test_labels == digit)
