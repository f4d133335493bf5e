"""Reading speed beside scikit-learn's loader: ``python benchmarks/reading.py [FILE ...]``.

Without a file, a set of mnist's shape is generated. The matrices must agree before a time counts.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time

import numpy as np
from sklearn.datasets import load_svmlight_file

from resvm_cli.dataset import Rows
from resvm_cli.files.svmlight import Block, format_block, read_file

REPEATS = 3


def generated(folder: str) -> str:
    """10,000 rows x 780 features, a fifth of them present, values of up to six digits."""
    rng = np.random.default_rng(0)
    dense = np.round(rng.random((10_000, 780)), 6) * (rng.random((10_000, 780)) < 0.19)
    path = os.path.join(folder, "generated.svm")
    block = Block.of(Rows.from_dense(dense), rng.integers(0, 10, len(dense)))
    with open(path, "wb") as handle:
        handle.write(format_block(block))
    return path


def measure(path: str) -> None:
    size = os.path.getsize(path) / 1e6
    ours, theirs = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        block = read_file(path)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        matrix, labels = load_svmlight_file(path)
        theirs.append(time.perf_counter() - start)
    same = (
        np.array_equal(block.rows.indptr, matrix.indptr)
        and np.array_equal(block.rows.indices - 1, matrix.indices)
        and np.array_equal(block.rows.values, matrix.data)
        and np.array_equal(block.labels, labels)
    )
    if not same:
        raise SystemExit(f"{path}: the two readers disagree")
    print(
        f"{os.path.basename(path)}: {size:.0f} MB, resvm {size / min(ours):.0f} MB/s, "
        f"scikit-learn {size / min(theirs):.0f} MB/s, ratio {min(theirs) / min(ours):.1f}"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for path in sys.argv[1:] or [generated(folder)]:
            measure(path)


if __name__ == "__main__":
    main()
