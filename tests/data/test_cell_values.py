"""Cells as numbers, texts, ids and labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resvm_cli.data.cell_values import (
    ids_of,
    is_text,
    labels_of,
    numbers_of,
    texts_of,
)
from resvm_cli.data.delimited import TableBlock, TextTable
from resvm_cli.data.fields import class_of
from resvm_cli.errors import DataError


def column(*cells: str, decimal_comma: bool = False) -> TableBlock:
    text = "".join(f'"{cell}"\n' for cell in ("a", *cells)).encode()
    table = TextTable("t", lambda: [text], separator=";")
    return replace(next(table.blocks()), decimal_comma=decimal_comma)


def integers(*values: int) -> TableBlock:
    array = np.array(values)
    return TableBlock([array], np.arange(len(array)))


def test_large_integers_are_exact_as_texts_and_ids_and_doubles_as_numbers():
    block = integers(2**60 + 1, -(2**63))
    assert ids_of(block, 0) == texts_of(block.columns[0]) == [str(2**60 + 1), str(-(2**63))]
    for found in (numbers_of(block, 0, "a"), labels_of(block, 0, "a")):
        assert found.dtype == np.float64
        assert found.tolist() == [2.0**60, -(2.0**63)]


def test_labels_that_are_integers_are_compared_exactly():
    read_class = class_of([str(2**53), "2.50", "x"], ["10", "nan"])
    texts = (str(2**53), str(2**53 + 1), "2.5", "1e1", "x", "NaN", "nan")
    assert [*map(read_class, texts)] == [1, 0, 1, -1, 1, 0, -1]


def test_a_decimal_comma_is_read_in_numbers_and_labels_and_left_in_ids():
    block = column("1,5", "-,25", "3,5e1", "7", decimal_comma=True)
    for found in (numbers_of(block, 0, "a"), labels_of(block, 0, "a")):
        assert found.tolist() == [1.5, -0.25, 35, 7]
    assert ids_of(block, 0) == ["1,5", "-,25", "3,5e1", "7"]
    assert not is_text([(block, 0)], "a")


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        ("1.234", "remove thousands separators; use , as the decimal mark; to"),
        ("1.234,5", "remove thousands separators; to"),
        ("1.234.567", "remove thousands separators; to"),
        ("0.5", "\nuse , as the decimal mark; to"),
    ],
)
def test_a_point_in_a_number_with_decimal_commas_is_refused_with_its_place(cell, advice):
    with pytest.raises(DataError) as alone:
        is_text([(column(cell, decimal_comma=True), 0)], "a")
    assert f"t:2: '{cell}' in column 'a'; expected a number" in str(alone.value)
    with pytest.raises(DataError) as below:
        numbers_of(column("1,5", cell, decimal_comma=True), 0, "a")
    assert f"t:3: '{cell}' in column 'a'; expected a number" in str(below.value)
    assert advice in str(alone.value)
    assert advice in str(below.value)


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        ("1,234", "remove thousands separators; use . as the decimal mark; to encode"),
        ("1,234,567.5", "remove thousands separators; to encode"),
        ("1 234", "remove thousands separators; to encode"),
        ("12'345", "remove thousands separators; to encode"),
        ("1,5", "\nuse . as the decimal mark; to encode"),
    ],
)
def test_numbers_with_separators_are_no_categories(cell, advice):
    with pytest.raises(DataError) as caught:
        is_text([(column(cell, "", cell), 0)], "a")
    assert advice in str(caught.value)
    assert is_text([(column(cell, "x"), 0)], "a")


@pytest.mark.parametrize("cell", ["31.12.2020", "2020-01-01", "10.0.0.1", "True", "5%", "1.2.3"])
def test_dates_and_the_like_are_texts(cell):
    assert is_text([(column(cell), 0)], "a")
    assert is_text([(column(cell, decimal_comma=True), 0)], "a")


@pytest.mark.parametrize("wrong", ["", " ", "a\nb", "a\rb"])
def test_an_id_is_one_line_that_is_not_empty(wrong):
    block = TableBlock([["a", " b ", wrong, ""]], np.arange(4), "t:")
    with pytest.raises(DataError, match=r"(?s)^t:2: .* is not a valid id"):
        ids_of(block, 0)
    assert ids_of(TableBlock([["a", " b "]], np.arange(2)), 0) == ["a", "b"]


def test_numbers_as_texts_read_back_and_missing_ones_are_empty():
    assert texts_of(np.array([0.1, np.nan, 2.0])) == ["0.1", "", "2"]


def test_a_label_that_is_missing_is_refused_with_its_place():
    block = TableBlock([np.array([1.0, np.nan])], np.arange(2), "t: row ")
    with pytest.raises(DataError, match="row 1: "):
        labels_of(block, 0, "y")
