"""Fields of lines: numbers are exact and located when wrong, whatever the pieces of text."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.data import _svmlight as tokenizer
from resvm_cli.data.fields import (
    BLANKS,
    Layout,
    line_writer,
    read_columns,
    read_number,
)
from resvm_cli.errors import DataError

TEXT = b"1 0.5 # BRCA1\n\n# a comment\n-1\t-3.25 0.5\r\n  1 -inf\n-1 Infinity"


def test_numbers_come_out_whatever_the_pieces():
    for size in range(1, len(TEXT) + 1):
        pieces = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
        values, labels = read_columns(pieces, "x", Layout(BLANKS, 1, 0))
        assert values.tolist() == [0.5, -3.25, -np.inf, np.inf]
        assert labels.tolist() == [1, -1, 1, -1]


def test_a_quoted_field_hides_separators_and_doubled_quotes():
    text = b'"a,""b""",1,2.5\nplain,-1,1e3\n,1,-0\n'
    values, labels = read_columns([text], "x", Layout(",", 2, 1))
    assert values.tolist() == [2.5, 1000, 0]
    assert labels.tolist() == [1, -1, 1]


def test_a_name_that_starts_with_a_hash_is_a_name_where_columns_have_separators():
    values, _ = read_columns([b"#1\t5\n"], "x", Layout("\t", 1))
    assert values.tolist() == [5]


@given(st.lists(st.floats(allow_nan=False)), st.sampled_from((BLANKS, "\t", ",")))
def test_what_repr_writes_is_read_exactly(numbers, separator):
    between = " " if separator == BLANKS else separator
    text = "".join(f"name{between}{number!r}\n" for number in numbers).encode()
    values, _ = read_columns([text], "x", Layout(separator, 1))
    assert values.tolist() == numbers


@pytest.mark.parametrize(
    ("text", "separator", "message"),
    [
        (b"1 2\n1 nan\n", BLANKS, "x:2:3: 'nan' cannot be ranked; expected a value"),
        (b"1 2\n1\n", BLANKS, "x:2:2: the line is too short"),
        (b"1 2\n1 # 3\n", BLANKS, "x:2:3: the line is too short"),
        (b"1 2x\n", BLANKS, "x:1:3: cannot read '2x'"),
        (b"1 1e999\n", BLANKS, "x:1:3: '1e999' is too large"),
        (b"1 \x002\n", BLANKS, "a NUL byte"),
        (b"a,b\n", ",", "x:1:3: cannot read 'b'"),
        (b"a,\n", ",", "x:1:3: the line is too short"),
        (b"a\n", ",", "x:1:1: the line is too short"),
        (b'"a,1\nb,2\n', ",", "x:1:1: the line is too short"),
        (b"a,1 \n", ",", "cannot read '1'"),
    ],
)
def test_what_is_no_number_is_refused_with_its_place(text, separator, message):
    with pytest.raises(DataError) as caught:
        read_columns([text], "x", Layout(separator, 1, what="a value"))
    assert message in caught.value.message


def test_lines_are_counted_over_pieces():
    good = b"1 2\n" * 1000
    with pytest.raises(DataError, match=r"x:2004:1: cannot read 'spam'"):
        read_columns([good, good, b"spam\n"], "x", Layout(BLANKS, 0), lines_before=3)


def test_the_scanner_itself_bounds_what_it_writes_and_checks_what_it_is_given():
    room = np.empty(1)
    found = tokenizer.columns(b"1\n2\n", 0, 0, -1, room, np.empty(0))
    assert found[:4] == (tokenizer.ROWS_FULL, 1, 2, 1)
    with pytest.raises(ValueError, match="newline"):
        tokenizer.columns(b"1", 0, 0, -1, room, room)
    with pytest.raises(ValueError, match="separator"):
        tokenizer.columns(b"1\n", 10, 0, -1, room, room)
    with pytest.raises(ValueError, match="column"):
        tokenizer.columns(b"1\n", 0, -1, -1, room, room)


def test_underscores_are_no_part_of_a_number():
    assert read_number(" 1e3 ") == 1000.0
    with pytest.raises(ValueError, match="1_000"):
        read_number("1_000")
    assert np.isnan(read_number("nan"))


@given(st.lists(st.tuples(st.integers(), st.text("ab\r\n\"\t, '", max_size=5)), max_size=4))
def test_lines_are_read_back_as_they_were_written(records):
    text = "".join(map(line_writer(","), records))
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found == [[str(number), cell] for number, cell in records]
    assert line_writer("\t")((1, None, "a")) == "1\t\ta\n"
