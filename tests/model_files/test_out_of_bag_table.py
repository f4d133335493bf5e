"""The table of out-of-bag values reads back exactly, and nothing else is taken for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.model_files.out_of_bag_table import HEADER, HEADER_1, OutOfBag

finite = st.floats(allow_nan=False, allow_infinity=False)


row = st.tuples(st.sampled_from("PUN"), st.integers(1, 10**9), finite, finite, st.integers(1, 1000))


@given(st.lists(row))
def test_what_is_written_reads_back(rows):
    columns = list(zip(*rows, strict=True)) or [()] * 5
    table = OutOfBag(
        np.array(columns[0]) == "P",
        np.array(columns[1], np.int64),
        np.array(columns[2], np.float64),
        np.array(columns[3], np.float64),
        np.array(columns[4], np.int64),
        np.array(columns[0]) == "N",
    )
    found = OutOfBag.parse(table.format())
    for name in ("positive", "rows", "values", "means", "members", "negative"):
        assert getattr(found, name).tolist() == getattr(table, name).tolist()
    for rule in ("votes", "mean"):
        known, unlabeled = found.by(rule)
        assert len(known) == sum(table.positive)
        assert len(known) + len(unlabeled) + len(found.negatives_by(rule)) == len(rows)


def test_the_table_of_format_1_has_d_of_known_positives_alone():
    found = OutOfBag.parse(f"{HEADER_1}\n3\t0.5\t7\n".encode())
    assert found.by("mean") is None
    known, unlabeled = found.by("votes")
    assert (known.tolist(), unlabeled.tolist(), found.rows.tolist()) == ([0.5], [], [3])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "row\n",
        f"{HEADER}\nP\t1\t0.5\t0.1\n",
        f"{HEADER}\nP\t1\tx\t0.1\t3\n",
        f"{HEADER}\nP\t1\tnan\t0.1\t3\n",
        f"{HEADER}\nP\t1\t0.5\tinf\t3\n",
        f"{HEADER}\nX\t1\t0.5\t0.1\t3\n",
        f"{HEADER}\nP\t{'1' * 30}\t0.5\t0.1\t3\n",
        f"{HEADER}\nP\t-1\t0.5\t0.1\t3\n",
        f"{HEADER}\nP\t1\t0.5\t0.1\t3",
        f"{HEADER}\nP\t1\t0.5\t0.1\t3\té\n",
        f"{HEADER_1}\n1\t0.5\n",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the model's name is put to it elsewhere
        OutOfBag.parse(text.encode())
