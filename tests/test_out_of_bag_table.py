"""The table of out-of-bag values reads back exactly, and nothing else is taken for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.files.out_of_bag_table import HEADER, OutOfBag

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(st.integers(1, 10**9), finite, st.integers(1, 1000))))
def test_what_is_written_reads_back(rows):
    table = OutOfBag(
        np.array([row for row, _, _ in rows], np.int64),
        np.array([value for _, value, _ in rows], np.float64),
        np.array([members for _, _, members in rows], np.int64),
    )
    found = OutOfBag.parse(table.format())
    assert found.rows.tolist() == table.rows.tolist()
    assert found.values.tolist() == table.values.tolist()
    assert found.members.tolist() == table.members.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "row\n",
        f"{HEADER}\n1\t0.5\n",
        f"{HEADER}\n1\tx\t3\n",
        f"{HEADER}\n1\tnan\t3\n",
        f"{HEADER}\n1\t0.5\t3",
        f"{HEADER}\n1\t0.5\t3\té\n",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the model's name is put to it elsewhere
        OutOfBag.parse(text.encode())
