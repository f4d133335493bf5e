"""Tables read by their columns, and cells that are named by their places."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.errors import DataError
from resvm_cli.files import tables
from resvm_cli.files.tables import TextTable, read_number


def table(text: bytes, step: int | None = None, **more) -> TextTable:
    size = step or max(1, len(text))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return TextTable("t.csv", lambda: pieces, **more)


def rows(one: TextTable) -> list[tuple[str, ...]]:
    return [row for block in one.blocks() for row in zip(*block.columns, strict=True)]


CELLS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r\0"), max_size=6)


@given(
    st.integers(2, 4).flatmap(lambda n: st.lists(st.tuples(*[CELLS] * n), max_size=8)), st.data()
)
def test_what_csv_writes_is_read_back_cell_by_cell(written, data):
    width = len(written[0]) if written else 2
    names = [f"c{number}" for number in range(width)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=data.draw(st.sampled_from(["\n", "\r\n"])))
    writer.writerows([names, *written])
    step = data.draw(st.integers(1, 40))
    found = table(text.getvalue().encode(), step, separator=",")
    assert found.columns == names
    assert rows(found) == written
    assert rows(found) == written  # and once more


def test_blocks_are_of_one_size_whatever_the_pieces(monkeypatch):
    monkeypatch.setattr(tables, "CELLS_AT_ONCE", 1)
    monkeypatch.setattr(tables, "LEAST_ROWS", 7)
    text = b"a,b\n" + b"".join(b"%d,x\n" % number for number in range(40))
    for step in (1, 5, 1000):
        sizes = [block.n_rows for block in table(text, step).blocks()]
        assert sizes == [7, 7, 7, 7, 7, 5]
        assert [int(row[0]) for row in rows(table(text, step))] == list(range(40))


def test_every_cell_has_its_line_and_column(monkeypatch):
    monkeypatch.setattr(tables, "LEAST_ROWS", 2)
    monkeypatch.setattr(tables, "CELLS_AT_ONCE", 1)
    text = b'\n"a,1",b,c\nx,y,z\n\n"4\n""5",66,7\n88,9,10\n'
    places = [
        [block.place(row, column) for column in range(3)]
        for block in table(text).blocks()
        for row in range(block.n_rows)
    ]
    assert places == [
        ["t.csv:3:1", "t.csv:3:3", "t.csv:3:5"],
        ["t.csv:5:1", "t.csv:6:6", "t.csv:6:9"],
        ["t.csv:7:1", "t.csv:7:4", "t.csv:7:6"],
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a,b\n1,2\n1,2,3\n", r"t\.csv:3:3: a row of 3 columns; 2 were expected"),
        (b"a,b\n\n1,2\n1\n", r"t\.csv:4:1: a row of 1 columns; 2 were expected"),
        (b'a,b\n1,"2\n', r"t\.csv:2: not as CSV is written"),
        (b'a,b\n1,"2"3\n', r"t\.csv:2: not as CSV is written"),
        (b"1,2\n3,4\n", r"t\.csv:1: the first line holds numbers only"),
        (b"a, 4.5 ,g\nb,3,h\n", r"t\.csv:1: '4\.5' is on the first line; are these column names"),
        (b"a,b,a\n1,2,3\n", r"t\.csv:1:5: the column 'a' comes twice, first as column 1"),
        (b"", r"t\.csv: no rows"),
        (b"\n \n", r"t\.csv: no rows"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(text, message):
    with pytest.raises(DataError, match=message):
        rows(table(text))


def test_without_names_columns_go_by_number():
    found = table(b"1;2\n3;4", header=False)
    assert found.columns == ["1", "2"]
    assert rows(found) == [("1", "2"), ("3", "4")]
    assert table(b"1,2\n3,4", header=True).columns == ["1", "2"]
    assert table(b"id,0.5\na,4", header=True).columns == ["id", "0.5"]


def test_a_column_without_a_name_leaves_numbers_to_those_that_have_them():
    assert table(b",a,\n0,3,4").columns == ["1", "a", "3"]
    found = table(b",0,1\n0,3,4")  # as pandas writes an array
    assert found.columns == ["unnamed 1", "0", "1"]
    assert found.unnamed == ["unnamed 1"]


def test_a_byte_order_mark_is_no_part_of_a_name_and_a_column_without_name_has_its_number():
    assert table(b"\xef\xbb\xbf,b\n1,2\n").columns == ["1", "b"]


def test_underscores_are_no_part_of_a_number():
    assert read_number(" 1e3 ") == 1000.0
    with pytest.raises(ValueError, match="1_000"):
        read_number("1_000")
    assert np.isnan(read_number("nan"))
