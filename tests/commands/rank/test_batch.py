"""rank --next: the rows to test next."""

from __future__ import annotations

import numpy as np
import pytest

import resvm_cli
from resvm_cli.errors import DataError, ModelError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
X[:80] += 1.5
Y = np.repeat([1, 0, -1], [25, 150, 25])
X[39:42] = 0.9  # an unlabeled row and two copies, of which members are not sure
NAMES = [f"r{number}" for number in range(200)]
SETTINGS = {"n_models": 20, "negative_label": -1, "intervals": False}


def ranked(**more):
    return resvm_cli.rank(X, Y, ids=NAMES, **(SETTINGS | more))


@pytest.fixture(scope="module")
def whole():
    return ranked()


def test_the_batch_is_the_top_of_the_ranking_without_near_duplicates(whole):
    votes = dict(zip(whole.rows.tolist(), whole.votes.tolist(), strict=True))
    assert 0.5 < votes[40] < 0.9
    batch = ranked(next=60)
    assert len(batch) == 60
    assert len(set(batch.rows) & {39, 40, 41}) == 1  # one row stands for all copies
    assert set(batch.rows) < set(whole.rows[:90])
    assert batch.columns["rank"] == sorted(batch.columns["rank"])
    ranks = dict(zip(whole.ids, whole.columns["rank"], strict=True))
    assert batch.columns["rank"] == [ranks[name] for name in batch.ids]
    assert batch.result.batch.n_near >= 2


def test_near_duplicates_that_are_likely_positives_are_chosen_too():
    sure = X.copy()
    sure[39:42] = 1.3
    batch = resvm_cli.rank(sure, Y, next=30, **SETTINGS)
    assert batch.votes[batch.rows == 40] > 0.9
    assert {39, 40, 41} <= set(batch.rows)


def test_near_duplicates_are_chosen_if_nothing_else_is_left(whole):
    batch = ranked(next=150)
    assert batch.ids == whole.ids
    assert ranked(next=1000).ids == whole.ids


def test_distances_are_relative_to_their_median():
    # all kernel values are near 1: by absolute distance, all rows would be near-duplicates
    batch = ranked(next=60, gamma=1e-4, c_unl=1e3)
    assert len(set(batch.rows) & {39, 40, 41}) <= 1
    assert 2 <= batch.result.batch.n_near < 30


def test_distances_are_those_of_scaled_features():
    wide = np.column_stack([X, 1e-4 * RNG.normal(size=len(X))])
    wide[39:42, 3] = [-4e-4, 0, 4e-4]  # far apart in units of the feature's deviation
    for scale, n_chosen in (("none", 1), ("standard", 3)):
        batch = resvm_cli.rank(wide, Y, next=80, scale=scale, gamma=0.3, **SETTINGS)
        assert len(set(batch.rows) & {39, 40, 41}) == n_chosen


@pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")
def test_rows_in_every_bag_are_not_chosen():
    batch = resvm_cli.rank(X[:60], Y[:60], n_models=2, n_unl=30, next=35)
    assert len(batch) < 35
    assert (np.array(batch.columns["members"]) > 0).all()


def test_explored_rows_are_those_on_which_members_disagree(whole):
    batch = ranked(next=20, explore=0.25)
    explored = np.array(batch.columns["explored"], bool)
    assert explored.sum() == 5
    assert batch.result.batch.n_explored == 5
    plain = ranked(next=15)
    assert set(plain.ids) == {
        name for name, one in zip(batch.ids, explored, strict=True) if not one
    }
    doubts = np.sort(np.abs(whole.votes - 0.5))
    assert np.abs(batch.votes[explored] - 0.5).max() <= doubts[9]


def test_a_group_has_one_row_while_other_groups_are_left():
    groups = np.arange(200) // 2
    batch = ranked(next=40, groups=groups, n_models=40)
    assert len(set(groups[batch.rows].tolist())) == 40
    assert batch.result.batch.n_same_group
    more = ranked(next=120, groups=groups, n_models=40)
    assert set(groups[more.rows].tolist()) == set(groups[25:175].tolist())
    assert len(more) == 120


def test_excluded_rows_are_not_chosen(whole):
    first = whole.ids[:3]
    batch = ranked(next=10, exclude=first)
    assert not set(first) & set(batch.ids)
    assert batch.result.batch.n_excluded == 3
    with pytest.raises(DataError, match="exclude: 'r3' is not the id of a row of U"):
        ranked(next=10, exclude=["r3"])  # a known positive


def test_tested_rows_are_not_chosen_again(whole):
    tested = {name: number % 2 for number, name in enumerate(whole.ids[:4])}
    batch = ranked(next=10, tested=tested)
    assert not set(tested) & set(batch.ids)
    assert batch.result.batch.n_tested == 4
    with pytest.raises(DataError, match="no row of U is left to test") as caught:
        ranked(next=10, tested=dict.fromkeys(whole.ids, 0))
    assert "already tested" in str(caught.value.hint)


def test_known_negatives_are_never_listed(whole):
    assert len(whole) == 150
    assert whole.rows.max() < 175


def test_with_known_negatives_precision_is_unknown_unless_a_fraction_is_given(whole):
    # the positives of Y score high: taken for a sample, they would leave almost none to U
    assert np.isnan(whole.probability).all()
    assert np.isnan(whole.precision).all()
    assert whole.n_suspects is None
    assert whole.promise.contamination_unl.high == 1
    assert not whole.promise.cases
    assert np.isfinite(ranked(contamination_unl=0.3).probability).all()
    with pytest.raises(DataError, match="positives found by tests are not a random sample"):
        ranked(fdr=0.2)
    model = resvm_cli.fit(X, Y, n_models=20, negative_label=-1)
    with pytest.raises(ModelError, match="positives found by tests are not"):
        model.predict_proba(X)


def test_the_summary_says_why_precision_is_unknown(resvm, tmp_path):
    lines = [f"{y} 1:{a} 2:{b} 3:{c}\n" for y, (a, b, c) in zip(Y, X, strict=True)]
    tmp_path.joinpath("all.svm").write_text("".join(lines))
    known = ("--positive-label", 1, "--negative-label", -1, "--no-auto", "--n-models", 20)
    told = resvm("rank", "--data", tmp_path / "all.svm", *known).err
    assert "unknown: positives found by tests are not a random sample of all positives" in told
    assert "at most" not in told
    told = resvm("rank", "--data", tmp_path / "all.svm", *known, "--next", 7).err
    assert "next  7 rows by rank" in told


def test_the_batch_depends_on_no_threads():
    texts = [ranked(next=40, explore=0.1, jobs=jobs).text() for jobs in (1, 2)]
    assert texts[0] == texts[1]
    assert "\texplored\n" in texts[0]


@pytest.mark.filterwarnings("ignore:the ensemble ranks no better")
def test_a_precomputed_kernel_and_a_tanimoto_kernel_have_distances_too():
    kernel = np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    batch = resvm_cli.rank(kernel, Y, kernel="precomputed", next=60, **SETTINGS)
    assert len(set(batch.rows) & {39, 40, 41}) < 3
    bits = (RNG.random((200, 40)) < np.where(np.arange(200) < 80, 0.6, 0.3)[:, None]).astype(float)
    assert len(resvm_cli.rank(bits, Y, kernel="tanimoto", next=30, **SETTINGS)) == 30


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"next": 5, "top": 3}, "top and next both set the length"),
        ({"next": 5, "audit": True}, "next selects rows of U"),
        ({"explore": 0.1}, "explore requires next"),
        ({"exclude": ["r30"]}, "exclude requires next"),
        ({"next": 5, "explore": 1.5}, "explore must be at most 1"),
    ],
)
def test_contradictory_requests_are_refused(wrong, expected):
    with pytest.raises(ParameterError, match=expected):
        ranked(**wrong)


def test_a_trusted_negative_that_is_trained_on_is_refused():
    with pytest.raises(DataError, match="row 1: this trusted negative is also a known negative"):
        ranked(negatives=X[-2:])
