"""Cells as numbers, texts, ids and labels."""

from __future__ import annotations

import numpy as np

from resvm_cli.files.delimited import TableBlock
from resvm_cli.tables.cells import (
    ids_of,
    labels_of,
    matcher,
    matrix_of,
    numbers_of,
    texts_of,
)


def integers(*values: int) -> TableBlock:
    array = np.array(values)
    return TableBlock([array], len(array), lambda row, column: f"{row}:{column}")


def test_large_integers_are_exact_as_texts_and_ids_and_doubles_as_numbers():
    block = integers(2**60 + 1, -(2**63))
    assert ids_of(block, 0) == texts_of(block.columns[0]) == [str(2**60 + 1), str(-(2**63))]
    for found in (numbers_of(block, 0, "a"), labels_of(block, 0, "a"), matrix_of(block, [0])[:, 0]):
        assert found.dtype == np.float64
        assert found.tolist() == [2.0**60, -(2.0**63)]


def test_labels_that_are_integers_are_compared_exactly():
    is_positive = matcher([str(2**53), "2.50", "x"])
    texts = (str(2**53), str(2**53 + 1), "2.5", "1e1", "x")
    assert [*filter(is_positive, texts)] == [str(2**53), "2.5", "x"]
    assert matcher(["10"])("1e1")
