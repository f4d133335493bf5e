"""Out of bag: the formulas over the members that have not seen a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble import oob as out_of_bag
from resvm_cli.ensemble.decisions import decide
from resvm_cli.ensemble.oob import (
    TrainingRows,
    UnseenMask,
    stored_values,
)
from resvm_cli.ensemble.plan import Plan, resolve_defaults
from resvm_cli.parameters import Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.tuning.learn import learn
from tests.fitting import problems

N_POS, N_UNL = 7, 23


def plan(method="resvm", n_models=9, **settings):
    params = Params(method=method, n_models=n_models, n_unl=6, seed=3, **settings)
    return resolve_defaults(params, N_POS, N_UNL, 5, lambda: 1.0)


ROWS = Rows.from_dense(np.arange(1.0, N_POS + N_UNL + 1)[:, None])  # no two are equal


def unseen_mask(chosen, groups=None, rows=ROWS):
    unlabeled = rows.slice(N_POS, N_POS + N_UNL)
    training_rows = TrainingRows(rows.slice(0, N_POS), unlabeled, groups=groups)
    return UnseenMask(problems(chosen, range(chosen.n_models)), training_rows)


def absent_from_all(chosen, groups=None):
    found = unseen_mask(chosen, groups)
    everything = np.arange(N_POS + N_UNL)
    assert np.array_equal(found.unseen(everything, ROWS), found.all_unseen())
    return found.all_unseen()


def test_a_member_is_absent_from_a_row_exactly_when_its_bag_lacks_it():
    chosen = plan(n_pos=3)
    found = absent_from_all(chosen)
    for member, problem in enumerate(problems(chosen, range(chosen.n_models))):
        bag = {*problem.positive.tolist(), *(problem.unlabeled + N_POS).tolist()}
        for row in range(N_POS + N_UNL):
            assert found[row, member] == (row not in bag)


def test_a_row_of_u_that_all_have_seen_is_ranked_by_bags_that_lack_the_row_itself():
    chosen = plan(n_pos=60)  # every bag has all of P, with which the first rows of U are identical
    rows = np.arange(1.0, N_POS + N_UNL + 1)
    rows[N_POS : N_POS + 3] = rows[0]
    rows = Rows.from_dense(rows[:, None])
    found, numbers = unseen_mask(chosen, rows=rows), np.arange(N_POS + N_UNL)
    unseen = found.unseen(numbers, rows)
    mask, counts = found.scorers(numbers, rows)
    assert np.array_equal(counts, unseen.sum(axis=1))
    bags = [problem.unlabeled for problem in problems(chosen, range(chosen.n_models))]
    for row in numbers:
        lacking = [row - N_POS not in bag for bag in bags]
        in_u = N_POS <= row < N_POS + 3
        assert mask[row].tolist() == (lacking if in_u else unseen[row].tolist())
    assert not mask[:N_POS].any()
    many = replace(chosen, n_unl=900)  # every bag has every row
    mask, counts = unseen_mask(many, rows=rows).scorers(numbers, rows)
    assert not counts.any()
    assert mask[N_POS:].all()


def test_rows_may_be_asked_in_any_order_and_twice():
    chosen = unseen_mask(plan(n_pos=3))
    asked = np.array([29, 0, 5, 5, 11])
    found = chosen.unseen(asked, ROWS.take(asked))
    assert np.array_equal(found, chosen.all_unseen()[asked])


def test_a_bag_has_seen_the_whole_group_of_each_of_its_rows():
    chosen = plan(n_pos=3)
    groups = np.arange(N_POS + N_UNL) // 4  # one group has rows of P and of U
    found = absent_from_all(chosen, groups)
    for member, problem in enumerate(problems(chosen, range(chosen.n_models))):
        seen = {*groups[problem.positive].tolist(), *groups[problem.unlabeled + N_POS].tolist()}
        assert [bool(x) for x in found[:, member]] == [g not in seen for g in groups.tolist()]


def test_bagging_holds_all_of_p_in_every_bag():
    found = absent_from_all(plan("bagging"))
    assert not found[:N_POS].any()
    assert found[N_POS:].any()


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_where_every_bag_lacks_every_row_it_is_the_plain_decision(seed, n_models):
    values = np.random.default_rng(seed).normal(0.3, 1, (20, n_models))
    plain = decide(values)
    judged = decide(values, unseen=np.ones(values.shape, bool))
    assert np.array_equal(judged.votes, plain.votes)
    np.testing.assert_allclose(judged.values, plain.values, rtol=1e-12)
    np.testing.assert_allclose(
        judged.values_without_ties(), plain.values_without_ties(), rtol=1e-12
    )


@given(st.integers(0, 2**32))
def test_each_row_is_judged_by_its_own_members_alone(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(rng.choice([-2, 0, 2]), 1, (15, 6))
    absent = rng.random((15, 6)) < 0.5
    judged = decide(values, unseen=absent)
    for row in range(15):
        own = values[row, absent[row]]
        assert judged.n_members[row] == len(own)
        if not len(own):
            assert np.isnan(judged.values[row])
            continue
        votes = (len(own) + np.sign(own).sum()) / (2 * len(own))
        assert judged.votes[row] == votes
        scaled = own.sum() * 6 / len(own)
        expected = scaled if votes == 0 else 1 + scaled if votes == 1 else votes
        assert judged.values[row] == pytest.approx(expected, rel=1e-12)


def test_a_bag_has_seen_the_duplicates_of_its_rows():
    chosen = plan(n_pos=3)
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, (N_POS + N_UNL, 3)).astype(float)  # many repeat
    rows = Rows.from_dense(features)
    tasks = list(problems(chosen, range(chosen.n_models)))
    drawn = np.unique(np.concatenate([task.unlabeled for task in tasks]))
    unlabeled = rows.take(N_POS + np.arange(N_UNL)).take(drawn)
    training_rows = TrainingRows(rows.slice(0, N_POS), unlabeled, drawn)
    found = UnseenMask(tasks, training_rows).unseen(np.arange(N_POS + N_UNL), rows)
    for member, task in enumerate(tasks):
        bag = np.concatenate([task.positive, task.unlabeled + N_POS])
        seen = {tuple(one) for one in features[bag].tolist()}
        numbers = set(bag.tolist())
        assert found[:, member].tolist() == [
            # rows without features are like no other
            tuple(one) not in seen if any(one) else number not in numbers
            for number, one in enumerate(features.tolist())
        ]


def test_written_zeros_make_no_other_row():
    chosen = plan(n_pos=3, n_models=1)
    tasks = list(problems(chosen, range(1)))
    zeros = Rows(np.array([0, 2]), np.array([1, 2], np.int32), np.array([5.0, 0.0]))
    plain = Rows(np.array([0, 1]), np.array([1], np.int32), np.array([5.0]))
    drawn = np.unique(tasks[0].unlabeled)
    positives = Rows.concatenate([zeros] * N_POS)
    unlabeled = Rows.from_dense(np.ones((len(drawn), 2)))
    found = UnseenMask(tasks, TrainingRows(positives, unlabeled, drawn))
    assert not found.unseen(np.arange(1), plain).any()
    assert found.unseen(np.arange(1), Rows.from_dense([[4.0]])).all()


def test_of_rows_that_are_not_judged_contents_need_not_be_told_apart():
    chosen = plan(n_pos=3)
    rng = np.random.default_rng(1)
    rows = Rows.from_dense(rng.integers(0, 2, (N_POS + N_UNL, 3)).astype(float))
    sets = rows.slice(0, N_POS), rows.slice(N_POS, N_POS + N_UNL)
    judged = np.array([0, 2, 5])
    tasks = list(problems(chosen, range(chosen.n_models)))
    everything = UnseenMask(tasks, TrainingRows(*sets)).all_unseen()
    some = UnseenMask(tasks, TrainingRows(*sets, scored=rows.take(judged)))
    assert np.array_equal(some.unseen(judged, rows.take(judged)), everything[judged])


def test_a_duplicate_and_a_group_each_hide_a_row():
    rows = Rows.from_dense(np.array([[1.0], [2.0], [1.0], [3.0]]))
    groups = np.array([0, 1, 2, 1])
    problem = next(
        iter(problems(resolve_defaults(Params(n_pos=1, n_unl=1), 2, 2, 1, lambda: 1.0), range(1)))
    )
    bag = replace(problem, positive=np.array([1]), unlabeled=np.array([0]))  # rows 1 and 2
    found = UnseenMask([bag], TrainingRows(rows.slice(0, 2), rows.slice(2, 4), groups=groups))
    # row 0 equals row 2, row 3 is of row 1's group
    assert not found.all_unseen().any()


def test_rows_without_features_are_judged_by_members_that_saw_others_of_them():
    chosen = plan(n_pos=3)
    features = np.random.default_rng(3).standard_normal((N_POS + N_UNL, 2))
    features[:2] = features[N_POS::2] = 0.0
    rows = Rows.from_dense(features)
    tasks = list(problems(chosen, range(chosen.n_models)))
    training_rows = TrainingRows(rows.slice(0, N_POS), rows.slice(N_POS, N_POS + N_UNL))
    found = UnseenMask(tasks, training_rows).unseen(np.arange(N_POS + N_UNL), rows)
    for member, task in enumerate(tasks):
        bag = np.concatenate([task.positive, task.unlabeled + N_POS])
        assert np.flatnonzero(~found[:, member]).tolist() == np.unique(bag).tolist()


def test_members_are_scored_in_as_many_batches_as_memory_needs(monkeypatch):
    rng = np.random.default_rng(4)
    params = Params(n_models=5, n_pos=8, n_unl=10)
    data = MemoryData.from_matrix(rng.standard_normal((40, 3)), np.arange(40) < 15)
    _, model = learn(data, replace(params, auto=False), Run(jobs=1))
    rows, unseen = Rows.from_dense(rng.standard_normal((30, 3))), rng.random((30, 5)) < 0.6
    together = stored_values(model.ensemble, rows, unseen, 4)
    assert np.array_equal(np.isnan(together), ~unseen.T)
    sizes = [len(member.support) for member in model.ensemble.members]
    cells = 4 * (sizes[0] + sizes[1])
    for room, batches in (
        (cells, [(0, 2)]),
        (cells - 1, [(0, 1)]),
        (1, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]),
    ):
        monkeypatch.setattr(out_of_bag, "POOL_CELLS_AT_ONCE", room)
        assert list(out_of_bag._batches(model.ensemble, 4))[: len(batches)] == batches
        assert stored_values(model.ensemble, rows, unseen, 4).tobytes() == together.tobytes()


@pytest.mark.parametrize(
    ("rows", "sizes", "n_models", "expected"),
    [
        ((500, 1000), (10, 20), 50, 3 * 1500),  # small sets: all rows
        ((501, 1000), (10, 20), 50, 600),  # the least
        ((2000, 3000), (200, 300), 100, 1000),  # 0.2 * 100 * 500^2 / 5,000
        ((10_000, 90_000), (1000, 3000), 10, 800),  # 0.2 * 10 * 4,000^2 / 40,000, all rows of bags
        ((2000, 3000), (1000, 1500), 100, 2000),  # the most
    ],
)
def test_a_sample_takes_a_fifth_of_the_time_of_training(rows, sizes, n_models, expected):
    params = Params(n_models=n_models, n_pos=sizes[0], n_unl=sizes[1])
    chosen = Plan((resolve_defaults(params, *rows, 5, lambda: 1.0),))
    assert out_of_bag._sample_size(chosen) == expected
    sample = out_of_bag.OutOfBagSample.from_plan(chosen)
    assert len(sample.positive) == min(rows[0], round(expected / 3))
    assert len(np.unique(sample.unlabeled)) == len(sample.unlabeled)
