"""Rows and their summaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from resvm_cli import rows as dataset
from resvm_cli.errors import DataError
from resvm_cli.rows import DataSummary, Rows, variance

RNG = np.random.default_rng(1)
DENSE = np.round(RNG.standard_normal((40, 6)), 3) * (RNG.random((40, 6)) < 0.5)


def dense(rows: Rows, width: int = 6) -> np.ndarray:
    shape = (len(rows), width + 1)
    return csr_array((rows.values, rows.indices, rows.indptr), shape=shape).toarray()[:, 1:]


def test_rows_are_scipys_rows():
    rows = Rows.from_dense(DENSE)
    assert np.array_equal(dense(rows), DENSE)
    assert np.array_equal(dense(rows.slice(3, 9)), DENSE[3:9])
    numbers = np.array([5, 0, 5, 39, 7])
    assert np.array_equal(dense(rows.take(numbers)), DENSE[numbers])
    assert np.array_equal(
        dense(Rows.concatenate([rows, rows.slice(0, 2)])), np.r_[DENSE, DENSE[:2]]
    )
    assert np.allclose(rows.squared_norms(), (DENSE**2).sum(axis=1), rtol=1e-15)
    assert rows.max_index == 6
    assert Rows.empty().max_index == -1
    assert len(Rows.empty()) == 0


def test_explicit_zeros_can_be_left_out():
    rows = Rows(np.array([0, 2, 2, 3]), np.array([1, 4, 2], np.int32), np.array([0.0, 3.0, 0.0]))
    clean = rows.without_zeros()
    assert clean.indptr.tolist() == [0, 1, 1, 1]
    assert clean.indices.tolist() == [4]


def test_content_keys_are_equal_just_where_rows_are():
    rows = Rows.from_dense(np.array([[1.0, 0], [0, 1], [1, 0], [0, 0], [1, 1]]))
    keys = rows.content_keys()
    assert keys[0] == keys[2]
    assert len(set(keys)) == 4


ROWS_OF_FEW = st.lists(
    st.dictionaries(st.integers(0, 3), st.sampled_from([0.0, -0.0, 1.0, 2.5]), max_size=3),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(ROWS_OF_FEW, st.sampled_from([1, 3, 1 << 16]), st.booleans())
def test_content_numbers_say_what_content_keys_say(rows, chunk, sums_tell):
    entries = [entry for row in rows for entry in sorted(row.items())]
    some = Rows(
        np.cumsum([0, *map(len, rows)]),
        np.array([index for index, _ in entries], np.int32),
        np.array([value for _, value in entries], np.float64),
    )
    number_of = {}
    expected = [number_of.setdefault(key, len(number_of)) for key in some.content_keys()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "SUM_CHUNK", chunk)
        if not sums_tell:
            patch.setattr(Rows, "_content_sums", lambda self: np.zeros(len(self), np.uint64))
        assert some.content_numbers().tolist() == expected


def test_sums_of_contents_differ_where_rows_do():
    rows = Rows.from_dense(DENSE)
    swapped = Rows(rows.indptr, rows.indices, rows.values[::-1].copy())
    moved = Rows(rows.indptr, rows.indices + np.int32(1), rows.values)
    both = Rows.concatenate([rows, swapped, moved])
    sums = both._content_sums()
    assert len(set(sums.tolist())) == len(set(both.content_keys()))


def summarized(rows: Rows, cuts: list[int]) -> DataSummary:
    summary = DataSummary()
    for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        summary.add(rows.slice(start, stop))
    return summary


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=5).map(sorted))
def test_a_summary_does_not_depend_on_how_rows_arrive(cuts):
    rows = Rows.from_dense(DENSE)
    once, often = summarized(rows, []), summarized(rows, cuts)
    assert once.digest() == often.digest()
    assert once.moments() == often.moments()
    assert (once.low, once.high) == (often.low, often.high)
    assert (once.n_rows, once.n_nonzeros, once.max_index) == (
        often.n_rows,
        often.n_nonzeros,
        often.max_index,
    )


def test_sums_over_many_chunks_do_not_depend_on_cuts(monkeypatch):
    monkeypatch.setattr(dataset, "SUM_CHUNK", 7)
    rows = Rows.from_dense(DENSE)
    first = summarized(rows, []).moments()
    assert all(summarized(rows, [cut]).moments() == first for cut in range(41))
    entries = DENSE[DENSE != 0]
    assert (first.count, first.mean) == (len(entries), pytest.approx(entries.mean(), rel=1e-13))
    assert first.deviations == pytest.approx(entries.var() * len(entries), rel=1e-13)


def test_the_digest_sees_every_number_and_its_place():
    digests = {summarized(Rows.from_dense(DENSE), []).digest()}
    for row, column in ((0, 0), (17, 3), (39, 5)):
        changed = DENSE.copy()
        changed[row, column] += 1e-12
        digests.add(summarized(Rows.from_dense(changed), []).digest())
    digests.add(summarized(Rows.from_dense(DENSE, first_index=2), []).digest())
    digests.add(summarized(Rows.from_dense(DENSE[::-1]), []).digest())
    digests.add(summarized(Rows.from_dense(np.r_[DENSE, np.zeros((1, 6))]), []).digest())
    assert len(digests) == 7


def test_the_digest_does_not_see_explicit_zeros():
    plain = Rows(np.array([0, 1]), np.array([2], np.int32), np.array([5.0]))
    zeros = Rows(np.array([0, 2]), np.array([1, 2], np.int32), np.array([0.0, 5.0]))
    assert summarized(plain, []).digest() == summarized(zeros, []).digest()


def test_variance_is_numpys_over_all_entries():
    top, bottom = (
        summarized(Rows.from_dense(DENSE[:10]), []),
        summarized(Rows.from_dense(DENSE[10:]), []),
    )
    assert variance((top, bottom), 6) == pytest.approx(DENSE.var(), rel=1e-12)
    assert variance((top, bottom), 9) == pytest.approx(
        np.c_[DENSE, np.zeros((40, 3))].var(), rel=1e-12
    )


@pytest.mark.parametrize(("centre", "spread"), [(1.7e9, 100.0), (1e6, 5.0), (-1e10, 1.0)])
def test_variance_keeps_its_digits_far_from_zero(centre, spread):
    far = centre + spread * np.random.default_rng(0).standard_normal((500, 3))
    parts = summarized(Rows.from_dense(far[:100]), []), summarized(Rows.from_dense(far[100:]), [])
    exact = float((far.astype(np.longdouble)).var())
    assert variance(parts, 3) == pytest.approx(exact, rel=1e-7)


def test_a_variance_beyond_doubles_is_refused():
    with pytest.raises(DataError, match="from -1e\\+200 to 1e\\+200"):
        variance((summarized(Rows.from_dense(np.array([[1e200, -1e200]])), []),), 2)


def test_the_variance_of_equal_entries_is_zero():
    same = summarized(Rows.from_dense(np.full((50, 4), 0.1)), [])
    assert variance((same,), 4) == 0.0
    assert variance((summarized(Rows.empty(), []),), 0) == 0.0
