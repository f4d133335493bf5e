"""Predictions as text, beside plain Python formatting."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from resvm_cli.files.predictions import PredictionBlock, format_block

NAMES = ["a b", "", 'say "no"', "x,y", "t\tab", "car\rriage", "\udcff\u00e9"]


def block(*, votes: bool, members: bool, ids: bool) -> PredictionBlock:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(len(NAMES)) * 10.0 ** rng.integers(-20, 20, len(NAMES))
    return PredictionBlock(
        labels=np.where(values > 0, 1, -1),
        decision_values=values,
        votes=rng.integers(0, 5, len(NAMES)) / 4 if votes else None,
        # one member behind the other, as the pool makes them
        member_values=rng.standard_normal((3, len(NAMES))).T if members else None,
        ids=NAMES if ids else None,
    )


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("members", [False, True])
@pytest.mark.parametrize("votes", [False, True])
@pytest.mark.parametrize("form", ["text", "tsv", "csv"])
def test_a_line_holds_the_columns_asked_for(form, votes, members, ids):
    some = block(votes=votes, members=members, ids=ids)
    text = io.StringIO()
    writer = csv.writer(text, delimiter="," if form == "csv" else "\t", lineterminator="\n")
    for row, name in enumerate(NAMES):
        fields = [str(some.labels[row]), repr(float(some.decision_values[row]))]
        fields += [repr(float(some.votes[row]))] if votes else []
        fields += [repr(float(value)) for value in some.member_values[row]] if members else []
        if form == "text":
            fields += ["#", name] if ids else []
            text.write(" ".join(filter(None, fields)) + "\n")
        else:
            writer.writerow([name, *fields] if ids else fields)
    expected = text.getvalue()
    assert format_block(form, some) == expected.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("form", ["text", "tsv", "csv"])
def test_no_rows_are_no_lines(form):
    nothing = PredictionBlock(np.zeros(0, np.int64), np.zeros(0), None, None, [])
    assert format_block(form, nothing) == b""
