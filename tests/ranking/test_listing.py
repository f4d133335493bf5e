"""Rankings as text."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from resvm_cli.ranking.listing import COLUMNS, Listing, format_ranking


def listing(expected=None):
    return Listing(
        ["a", 'b"\t,', "c"],
        np.array([False, True, False]),
        np.array([1.5, 0.1, np.nan]),
        np.array([1.0, 1 / 3, np.nan]),
        np.array([9, 3, 0]),
        np.array([1, 1, 3]),
        np.array([2, 3, 3]),
        np.arange(1, 4),
        np.arange(3),
        {} if expected is None else {"expected_false": expected},
    )


@pytest.mark.parametrize(("form", "separator"), [("tsv", "\t"), ("csv", ",")])
@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_tables_read_back_exactly(form, separator, at_once, monkeypatch):
    monkeypatch.setattr("resvm_cli.ranking.listing.LINES_AT_ONCE", at_once)
    text = b"".join(format_ranking(form, listing())).decode()
    head, *rows = csv.reader(io.StringIO(text), delimiter=separator)
    assert tuple(head) == COLUMNS
    assert rows == [
        ["1", "a", "0", "1.5", "1.0", "9", "1", "2"],
        ["2", 'b"\t,', "1", "0.1", repr(1 / 3), "3", "1", "3"],
        ["3", "c", "0", "", "", "0", "", ""],
    ]


@pytest.mark.parametrize("separator", ["\t", ","])
@pytest.mark.parametrize(
    "ids", ["plain", "tab\t", "comma,", 'quote"', "return\r", "line\n", "", "é"]
)
def test_lines_are_those_of_the_csv_module(separator, ids):
    figures = np.array([0.12345, 1e-7, 1.0, np.nan, 12345.6789, -0.0])
    whole = replace(
        listing(figures[:3])._take([ids] * 6, np.array([0, 1, 2, 0, 1, 2])),
        values=np.array([1e22, 5e-324, -0.1, 1 / 3, np.nan, 1e16]),
        extra_columns={"expected_false": figures, "p_value": figures},
    )
    written = io.StringIO()
    quoting = csv.writer(written, delimiter=separator, lineterminator="\r\n")
    quoting.writerows(whole.records())
    assert whole.lines(separator) == written.getvalue().replace("\r\n", "\n")


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_json_lines_have_the_same_keys_and_null_for_nothing(at_once, monkeypatch):
    monkeypatch.setattr("resvm_cli.ranking.listing.LINES_AT_ONCE", at_once)
    text = b"".join(format_ranking("jsonl", listing(np.array([0.5, 1.0, np.nan]))))
    rows = [json.loads(line) for line in text.splitlines()]
    assert [tuple(row) for row in rows] == [(*COLUMNS, "expected_false")] * 3
    assert rows[2]["decision_value"] is None
    assert rows[2]["expected_false"] is None
    assert rows[1]["expected_false"] == 1.0


def test_the_head_of_a_list_is_its_first_rows():
    head = listing(np.array([0.5, 1.0, np.nan])).head(2)
    assert len(head) == 2
    assert list(head.records())[1][:3] == (2, 'b"\t,', 1)


def test_figures_are_rounded_like_single_numbers_even_near_ties():
    ties = (np.arange(20_000) + 0.5) / 10_000
    figures = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, 9), [1e9 / 7, -1e-9]])
    columns = listing()._take(["a"] * len(figures), np.zeros(len(figures), int))
    shown = replace(columns, extra_columns={"expected_false": figures}).by_column()[
        "expected_false"
    ]
    assert shown == [round(figure, 4) for figure in figures.tolist()]
