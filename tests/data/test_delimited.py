"""CSV tables with located cells, whatever the pieces of text."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.data import delimited
from resvm_cli.data.cell_values import numbers_of
from resvm_cli.data.delimited import TextTable
from resvm_cli.errors import DataError


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


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("mark", [";", ",", "\t", "|", ":"])
@pytest.mark.parametrize("step", [1, None])
def test_the_line_in_which_excel_states_the_separator_is_no_row(mark, quote, step):
    lines = [f"{quote}sep={mark}{quote}", mark.join("ab"), mark.join("12"), mark.join("3x"), ""]
    found = table("\r\n".join(lines).encode(), step)
    assert found.columns == ["a", "b"]
    assert rows(found) == [("1", "2"), ("3", "x")]
    with pytest.raises(DataError, match=r"t\.csv:4: 'x' in column 'b'"):
        numbers_of(next(iter(found.blocks())), 1, "b")


@pytest.mark.parametrize("mark", ["", "sep=;\n"])
@pytest.mark.parametrize("blank", [0, 1, 2])
def test_blank_lines_around_the_stated_separator_are_counted_and_skipped(mark, blank):
    before = "\n" * blank + mark + "\n" * blank
    first = 2 * blank + len(mark.splitlines()) + 1
    found = table(f"{before}a;b\n1;2\n3;x\n".encode())
    assert found.columns == ["a", "b"]
    assert rows(found) == [("1", "2"), ("3", "x")]
    with pytest.raises(DataError, match=rf"t\.csv:{first + 2}: 'x' in column 'b'"):
        numbers_of(next(iter(found.blocks())), 1, "b")
    with pytest.raises(DataError, match=rf"t\.csv:{first}: "):
        table(f"{before}a;a\n1;2\n".encode())
    found = table(f"{before}1;2\n3;x\n".encode(), header=False)
    assert found.columns == ["1", "2"]
    with pytest.raises(DataError, match=rf"t\.csv:{first + 1}: 'x' in column '2'"):
        numbers_of(next(iter(found.blocks())), 1, "2")


@pytest.mark.parametrize(
    ("separator", "cell"), [(";", "3.5"), (";", "3,5"), ("\u00a7", "3.5"), ("\u2503", "3.5")]
)
def test_numbers_are_the_same_in_a_second_pass(separator, cell):
    lines = [separator.join(fields) for fields in (("a", "b"), ("1", "2"), (cell, "4"))]
    found = table("\n".join(lines).encode(), separator=separator)
    for _ in range(2):
        (block,) = found.blocks(numbers={0, 1})
        assert numbers_of(block, 0, "a").tolist() == [1.0, 3.5]
        assert numbers_of(block, 1, "b").tolist() == [2.0, 4.0]


def test_a_point_among_decimal_commas_is_refused_in_every_pass():
    found = table(b"a;b\n1;2,5\n1.2.34;4\n")
    for _ in range(2):
        (block,) = found.blocks(numbers={0, 1})
        with pytest.raises(DataError, match=r"t\.csv:3: '1\.2\.34' in column 'a'"):
            numbers_of(block, 0, "a")


def test_a_given_separator_wins_over_the_one_that_the_file_states():
    assert table(b"sep=;\na,b\n1,2\n", separator=",").columns == ["a", "b"]


def test_a_file_that_only_states_its_separator_has_no_rows():
    with pytest.raises(DataError, match="no rows"):
        table(b"sep=;\n")


ODD = ["", "NA", " 1.5", "1_0", "x", "inf", "1e999", "0x1", "-", "nan", "\u0663", "1 2"]
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["1.", ".5", "+2", "-0", "1e-320", "0.1e5", '"3"', *ODD]),
)
LINE = st.tuples(
    NUMBERS, st.sampled_from(["a", "", "ü", '"q"', '"a,b"', '"a""b"', '"a\nb"']), NUMBERS
)


@given(st.lists(LINE, min_size=1, max_size=30), st.integers(1, 60), st.sampled_from(["\n", "\r\n"]))
def test_numbers_read_in_c_are_those_of_the_csv_module(lines, step, end):
    text = end.join(["a,b,c", *map(",".join, lines), ""]).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "CELLS_AT_ONCE", 1)
        patch.setattr(delimited, "MIN_ROWS", 4)
        found = list(table(text, step).blocks(numbers={0, 2}))
        expected = list(table(text, step).blocks())
    assert [block.n_rows for block in found] == [block.n_rows for block in expected]
    for one, other in zip(found, expected, strict=True):
        assert list(one.columns[1]) == list(other.columns[1])
        assert one.lines.tolist() == other.lines.tolist()
        for at in (0, 2):
            try:
                values = numbers_of(other, at, "x")
            except DataError as error:
                with pytest.raises(DataError, match=re.escape(str(error.message))):
                    numbers_of(one, at, "x")
            else:
                assert np.array_equal(numbers_of(one, at, "x"), values, equal_nan=True)
                assert np.array_equal(np.signbit(numbers_of(one, at, "x")), np.signbit(values))


def test_columns_that_are_not_used_are_not_read():
    text = b"a,b,c\n" + b"".join(b"%d,%d.5,t\n" % (n, n) for n in range(9000))
    first, *others = table(text).blocks({0, 1}, {1})
    assert first.n_rows
    assert others
    assert all(isinstance(block.columns[1], np.ndarray) for block in others)
    assert all(len(block.columns[2]) == 0 for block in others)
    whole = [value for block in others for value in block.columns[1]]
    assert whole == [n + 0.5 for n in range(first.n_rows, 9000)]
    assert [cell for block in others for cell in block.columns[0]][-1] == "8999"


def test_blocks_are_of_one_size_whatever_the_pieces(monkeypatch):
    monkeypatch.setattr(delimited, "CELLS_AT_ONCE", 1)
    monkeypatch.setattr(delimited, "MIN_ROWS", 7)
    text = b"a,b\n" + b"".join(b"%d,x\n" % number for number in range(40))
    for step in (1, 5, 1000):
        sizes = [block.n_rows for block in table(text, step).blocks()]
        assert sizes == [7, 7, 7, 7, 7, 5]
        assert [int(row[0]) for row in rows(table(text, step))] == list(range(40))


def test_every_row_has_its_line(monkeypatch):
    monkeypatch.setattr(delimited, "MIN_ROWS", 2)
    monkeypatch.setattr(delimited, "CELLS_AT_ONCE", 1)
    text = b'\n"a,1",b,c\nx,y,z\n\n"4\n""5",66,7\n88,9,10\n'
    blocks = list(table(text).blocks())
    assert [block.lines.tolist() for block in blocks] == [[3, 5], [7]]
    assert blocks[0].where(1) == "t.csv:5"


def test_blocks_are_of_one_size_whatever_the_blank_lines_and_quotes(monkeypatch):
    monkeypatch.setattr(delimited, "CELLS_AT_ONCE", 1)
    monkeypatch.setattr(delimited, "MIN_ROWS", 7)
    lines = [
        b'%d,"a""b"\n' % number if number in (9, 23) else b"%d,x\n" % number for number in range(40)
    ]
    text = b"a,b\n" + b"\n\n\n".join(lines)
    for numbers in ((), {0}):
        sizes = [block.n_rows for block in table(text).blocks(numbers=numbers)]
        assert sizes == [7, 7, 7, 7, 7, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a,b\n1,2\n1,2,3\n", r"t\.csv:3: the row has 3 cells; expected 2"),
        (b"a,b\n\n1,2\n1\n", r"t\.csv:4: the row has 1 cell; expected 2"),
        (b'a,b\n1,"2\n', r"t\.csv:2: not valid CSV"),
        (b'a,b\n1,"2"3\n', r"t\.csv:2: not valid CSV"),
        (b"a,b\n1,2\r3,4\n", r"t\.csv:2: a carriage return in the middle of a line"),
        (b"a,b\r1,2\r3,4\r", r"t\.csv:1: a carriage return in the middle of a line"),
        (b"1,2\n3,4\n", r"t\.csv:1: the first line contains only numbers"),
        (b"a, 4.5 ,g\nb,3,h\n", r"t\.csv:1: the first line contains '4\.5'; is it a header"),
        (b"5,red,1\n6,blue,2\n", r"t\.csv:1: the first line contains '5'; is it a header"),
        (b"red,1\nblue,2\n", r"t\.csv:1: the first line contains '1'"),
        (b"a,0,1\nb,2,3\n", r"t\.csv:1: the first line contains '0'"),
        (b"id,5,6\nb,2,3\n", r"t\.csv:1: the first line contains '5'"),
        (b"x;1,5;u\ny;2;v\n", r"t\.csv:1: the first line contains '1,5'"),
        (b"5\n6\n", r"t\.csv:1: the first line contains only numbers"),
        (b"a,b\n1,2\0\n", r"t\.csv: a NUL byte; expected text"),
        (b"a,b,a\n1,2,3\n", r"t\.csv:1: column 'a' appears twice, first as column 1"),
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


@pytest.mark.parametrize("step", [1, None])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"a (x,y);b\n1;2\n", ["a (x,y)", "b"]),
        (b"a, x,y\tb\n\n \t2\n", ["a, x,y", "b"]),
        (b'a;b\n"1,2,3";4\n', ["a", "b"]),
        (b"sep= \na b\n1 2\n", ["a", "b"]),
    ],
)
def test_the_separator_is_what_the_first_two_lines_have_in_common(text, names, step):
    assert table(text, step).columns == names


def test_two_possible_separators_are_refused_unless_the_file_states_one():
    text = b"\na,b;c\n1,5;2\n"
    with pytest.raises(DataError, match=r"t\.csv:2: columns may be separated by '[,;]' or '[,;]'"):
        table(text)
    assert table(b"sep=;" + text).columns == ["a,b", "c"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,5", "", "7"], True),
        (["0,125"], True),
        (["1,5e3"], True),
        (["1,234"], False),  # perhaps 1234
        (["1,234", "1,2345"], True),
        (["1,5", "x"], False),
        (["1,5", "0.5"], False),
        (["1,2,3", "4"], False),
    ],
)
def test_decimal_commas_are_detected_where_they_can_mean_nothing_else(cells, expected):
    assert delimited.uses_decimal_commas([cells]) == expected
    assert delimited.uses_decimal_commas([["a,b", "c"], cells]) == expected
    assert not delimited.uses_decimal_commas([["0.5", "1"], cells])


@pytest.mark.parametrize("names", ["id,label,1,2", "label,1", ",0,1", ",0", "id,0,1,2"])
def test_numbers_as_convert_and_pandas_write_them_are_names(names):
    text = f"{names}\n{names}\n".encode()
    assert len(rows(table(text))) == 1
    assert len(rows(table(text, header=False))) == 2


def test_a_column_without_a_name_leaves_numbers_to_those_that_have_them():
    assert table(b",a,\n0,3,4").columns == ["1", "a", "3"]
    found = table(b",0,1\n0,3,4")  # as pandas writes an array
    assert found.columns == ["unnamed 1", "0", "1"]


def test_a_byte_order_mark_is_no_part_of_a_name_and_a_column_without_name_has_its_number():
    assert table(b"\xef\xbb\xbf,b\n1,2\n").columns == ["1", "b"]
