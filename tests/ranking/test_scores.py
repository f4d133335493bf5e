"""Ranks over resampled members, and p-values against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from resvm_cli.ensemble.decisions import decide
from resvm_cli.ranking import scores as out_of_bag_scores
from resvm_cli.ranking.scores import (
    MemberResamples,
    n_resamples,
    rank_bounds,
)
from resvm_cli.rows import Rows
from resvm_cli.svm.support_vectors import BLOCK_ROWS


def resampled(resamples, own, values, absent):
    result = np.empty((resamples.count, len(own)), np.float32)
    resamples.fill(result, own, values, absent, "votes", ())
    return result


def own_values(values, absent):
    return decide(values, unseen=absent).values_without_ties()


def judged(n_rows=500, n_models=20, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n_rows, n_models)) + np.linspace(2, -2, n_rows)[:, None]
    absent = rng.random((n_rows, n_models)) < 0.7
    absent[:, 0] = True
    return values, absent


def test_a_resample_is_the_ensemble_of_the_members_it_drew():
    values, absent = judged(40, 7)
    resamples = MemberResamples(7, 5, 3)
    found = resampled(resamples, own_values(values, absent), values, absent)
    for number in range(5):
        drawn = np.repeat(np.arange(7), resamples._weights[:, number].astype(int))
        assert len(drawn) == 7
        again = decide(values[:, drawn], unseen=absent[:, drawn])
        some = again.n_members > 0
        assert np.allclose(found[number, some], again.values_without_ties()[some], rtol=1e-5)


def test_a_row_that_no_drawn_member_may_judge_keeps_its_value():
    values = np.ones((1, 30))
    absent = np.zeros((1, 30), bool)
    absent[0, 4] = True
    resamples = MemberResamples(30, 50, 0)
    decisions = decide(values, unseen=absent)
    found = resampled(resamples, decisions.values_without_ties(), values, absent)
    missing = resamples._weights[4] == 0
    assert missing.any()
    assert np.all(found[missing, 0] == np.float32(decisions.values[0]))


@given(st.integers(1, 700), st.integers(0, 699))
def test_a_value_does_not_depend_on_its_neighbours(cut, row):
    values, absent = judged(700)
    row = row % cut
    resamples = MemberResamples(20, 200, 1)
    whole = resampled(resamples, own_values(values, absent), values, absent)
    some = values[row:cut], absent[row:cut]
    part = resampled(resamples, own_values(*some), *some)
    assert part.tobytes() == whole[:, row:cut].tobytes()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_small_block_is_rounded_as_a_large_one(size):
    values, absent = judged(192, 50)
    resamples = MemberResamples(50, 200, 1)
    whole = resamples._block(values, absent, "votes", ())
    part = resamples._block(values[:size], absent[:size], "votes", ())
    assert part.tobytes() == whole[:size].tobytes()


def test_bounds_leave_out_a_fortieth_on_either_side():
    rng = np.random.default_rng(2)
    values = rng.standard_normal((200, 30)).astype(np.float32)
    ranks = np.array([rankdata(-line, "ordinal") for line in values])
    own = np.full(30, 15)
    low, high = rank_bounds(values.copy(), own, np.arange(30.0), lowest_first=False)
    ordered = np.sort(ranks, axis=0)
    assert low.tolist() == np.minimum(ordered[5], 15).tolist()
    assert high.tolist() == np.maximum(ordered[-6], 15).tolist()


def test_tied_rows_share_the_ranks_that_they_have_together():
    own = np.repeat([3.0, 2.0, 1.0], [1, 20, 1])
    resampled = np.tile(own, (40, 1)).astype(np.float32)
    low, high = rank_bounds(resampled, np.arange(1, 23), own, lowest_first=False)
    assert (low[0], high[0], low[-1], high[-1]) == (1, 1, 22, 22)
    assert low[1:-1].tolist() == [2] * 20
    assert high[1:-1].tolist() == [21] * 20


def test_bounds_of_an_audit_count_from_the_lowest():
    values = np.tile(np.array([3.0, 1.0, 2.0], np.float32), (40, 1))
    low, high = rank_bounds(values, np.array([3, 1, 2]), values[0].astype(float), lowest_first=True)
    assert low.tolist() == high.tolist() == [3, 1, 2]


@pytest.mark.parametrize("at_once", [7, 1 << 14])
def test_columns_may_be_sorted_some_at_a_time(at_once, monkeypatch):
    rng = np.random.default_rng(2)
    values, own = rng.standard_normal((40, 50)).astype(np.float32), np.arange(50.0) // 2
    expected = rank_bounds(values.copy(), np.arange(1, 51), own, lowest_first=False)
    monkeypatch.setattr(out_of_bag_scores, "COLUMNS_AT_ONCE", at_once)
    found = rank_bounds(values.copy(), np.arange(1, 51), own, lowest_first=False)
    assert np.array_equal(found, expected)


def test_more_rows_get_fewer_resamples_but_never_too_few():
    assert n_resamples(100_000) == 200
    assert n_resamples(1_000_000) == 50
    assert n_resamples(100_000_000) == 40


def test_rows_are_cut_into_tasks_by_their_number_alone():
    rows = Rows.from_dense(np.ones((10_000, 1)), first_index=0)
    tasks = list(out_of_bag_scores._tasks(iter([rows, rows.slice(0, 7)]), 10_007, 50))
    lengths = [len(part) for _, part in tasks]
    assert [start for start, _ in tasks] == [0, *np.cumsum(lengths)[:-1]]
    assert sum(lengths) == 10_007
    assert len(lengths) > 4  # for several threads
    assert all(length % BLOCK_ROWS == 0 for length in lengths[:-2])  # blocks are not split
    few = list(out_of_bag_scores._tasks(iter([rows.slice(0, 1000)]), 1000, 50))
    assert len(few) > 4  # a small set has several tasks, too
