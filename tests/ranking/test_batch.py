"""rank --next: the rows to test next."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.errors import DataError, ModelError, ParameterError
from resvm_cli.ranking.batch import BatchSummary
from tests import fitting

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
X[:80] += 1.5
Y = np.repeat([1, 0, -1], [25, 150, 25])
X[39:42] = 0.9  # an unlabeled row and two that are nearly the same; members are not sure of them
X[39:42, 0] += [0, 1e-3, 2e-3]
NAMES = [f"r{number}" for number in range(200)]
KNOWN = {"negative_label": -1}


def ranked(n_models=20, gamma="scale", c_unl=1.0, **more):
    training = {"n_models": n_models, "gamma": gamma, "c_unl": c_unl}
    return fitting.ranked(X, Y, training, ids=NAMES, **(KNOWN | more))


@pytest.fixture(scope="module")
def whole():
    return ranked()


def test_the_batch_is_the_top_of_the_ranking_without_near_duplicates(whole):
    votes = dict(zip(whole.rows.tolist(), whole.columns["votes"].tolist(), strict=True))
    assert 0.5 < votes[40] < 0.9
    batch = ranked(next=60)
    assert len(batch) == 60
    assert len(set(batch.rows) & {39, 40, 41}) == 1  # one row stands for all three
    assert set(batch.rows) < set(whole.rows[:90])
    assert (np.diff(batch.columns["rank"]) > 0).all()
    ranks = dict(zip(whole.index, whole.columns["rank"], strict=True))
    assert batch.columns["rank"].tolist() == [ranks[name] for name in batch.index]
    passed_over = batch.columns["rank"][-1] - 60
    assert passed_over >= 2
    assert batch.batch == BatchSummary(60, passed_over, 0, 0)


def test_near_duplicates_that_are_likely_positives_are_chosen_too():
    sure = X.copy()
    sure[39:42] += 0.4
    batch = fitting.ranked(sure, Y, {"n_models": 20}, next=30, **KNOWN)
    assert batch.columns["votes"][batch.rows == 40] > 0.9
    assert {39, 40, 41} <= set(batch.rows)
    batch = fitting.ranked(sure, Y, {"n_models": 7}, next=30, **KNOWN)  # too few to be sure
    assert len({39, 40, 41} & set(batch.rows)) == 1


@pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")
def test_identical_rows_appear_once():
    copied = X.copy()
    copied[30:70] = copied[39]
    copied[100:140] = copied[100]
    whole = fitting.ranked(copied, Y, {"n_models": 20}, **KNOWN)
    for wanted in (1, 10, 72):
        batch = fitting.ranked(copied, Y, {"n_models": 20}, next=wanted, **KNOWN)
        assert len(batch) == len(np.unique(copied[batch.rows], axis=0)) == wanted
    assert len(fitting.ranked(copied, Y, {"n_models": 20}, next=80, **KNOWN)) == 72
    firsts = [whole.rows.tolist().index(row) for row in batch.rows]
    assert all(
        (copied[whole.rows[:at]] != copied[whole.rows[at]]).any(axis=1).all() for at in firsts
    )
    assert batch.batch.n_near >= 78


def test_near_duplicates_are_chosen_if_nothing_else_is_left(whole):
    batch = ranked(next=150)
    assert batch.index.tolist() == whole.index.tolist()
    assert ranked(next=1000).index.tolist() == whole.index.tolist()


def test_distances_are_relative_to_their_median():
    # all kernel values are near 1: by absolute distance, all rows would be near-duplicates
    batch = ranked(next=60, gamma=1e-4, c_unl=1e3)
    assert len(set(batch.rows) & {39, 40, 41}) <= 1
    assert 2 <= batch.batch.n_near < 30


def test_distances_are_those_of_scaled_features():
    wide = np.column_stack([X, 1e-4 * RNG.normal(size=len(X))])
    wide[39:42, 3] = [-4e-4, 0, 4e-4]  # far apart in units of the feature's deviation
    for scale, n_chosen in (("none", 1), ("standard", 3)):
        training = {"n_models": 20, "scale": scale, "gamma": 0.3}
        batch = fitting.ranked(wide, Y, training, next=80, **KNOWN)
        assert len(set(batch.rows) & {39, 40, 41}) == n_chosen


def test_a_group_has_one_row_while_other_groups_are_left():
    groups = np.arange(200) // 2
    batch = ranked(next=40, groups=groups, n_models=40)
    assert len(set(groups[batch.rows].tolist())) == 40
    assert batch.batch.n_same_group > 1
    passed_over = batch.columns["rank"][-1] - 40
    assert batch.batch.n_near + batch.batch.n_same_group == passed_over
    more = ranked(next=120, groups=groups, n_models=40)
    assert set(groups[more.rows].tolist()) == set(groups[25:175].tolist())
    assert len(more) == 120


def test_tested_rows_are_not_chosen_again(whole):
    tested = {name: number % 2 for number, name in enumerate(whole.index[:4])}
    batch = ranked(next=10, tested=tested)
    assert not set(tested) & set(batch.index)
    assert batch.batch.n_tested == 4
    with pytest.raises(DataError, match=r"^no row of U is left to test") as caught:
        ranked(next=10, tested=dict.fromkeys(whole.index, 0))
    assert caught.value.hint == "every row is already tested"


def test_known_negatives_are_never_listed(whole):
    assert len(whole) == 150
    assert whole.rows.max() < 175


def test_with_known_negatives_precision_is_unknown_unless_a_fraction_is_given(whole):
    # the positives of Y score high: taken for a sample, they would leave almost none to U
    assert np.isnan(whole.columns["probability"]).all()
    assert np.isnan(whole.columns["precision"]).all()
    assert whole.n_suspects is None
    assert whole.fdr_estimate.contamination_unl.high == 1
    assert not whole.fdr_estimate.cases
    assert np.isfinite(ranked(contamination_unl=0.3).columns["probability"]).all()
    model = fitting.fitted(X, Y, n_models=20, negative_label=-1, contamination_unl="estimate")
    with pytest.raises(ModelError, match="positives found by tests are not"):
        model.predict_proba(X)


def test_the_summary_says_why_precision_is_unknown(resvm, tmp_path):
    lines = [f"{y} 1:{a} 2:{b} 3:{c}\n" for y, (a, b, c) in zip(Y, X, strict=True)]
    tmp_path.joinpath("all.svm").write_text("".join(lines))
    known = ("--positive-label", 1, "-N", "label=-1", "--no-auto")
    told = resvm("rank", "--data", tmp_path / "all.svm", *known).err
    assert "unknown: positives found by tests are not a random sample of all positives" in told
    assert "at most" not in told
    told = resvm("rank", "--data", tmp_path / "all.svm", *known, "--next", 7).err
    assert "next  7 rows by rank" in told


def test_the_batch_depends_on_no_threads():
    one, two = (ranked(next=40, n_jobs=n_jobs).to_frame() for n_jobs in (1, 2))
    assert one.equals(two)


@pytest.mark.filterwarnings("ignore:the ensemble ranks no better")
def test_a_precomputed_kernel_and_a_tanimoto_kernel_have_distances_too():
    kernel = np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    training = {"kernel": "precomputed", "n_models": 20}
    batch = fitting.ranked(kernel, Y, training, next=60, **KNOWN)
    assert len(set(batch.rows) & {39, 40, 41}) < 3
    bits = (RNG.random((200, 40)) < np.where(np.arange(200) < 80, 0.6, 0.3)[:, None]).astype(float)
    training = {"kernel": "tanimoto", "n_models": 20}
    assert len(fitting.ranked(bits, Y, training, next=30, **KNOWN)) == 30


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"next": 5, "top": 3}, "`top` and `next` both set the length"),
        ({"next": 5, "audit": True}, "`next` selects rows of U"),
    ],
)
def test_contradictory_requests_are_refused(wrong, expected):
    with pytest.raises(ParameterError, match=expected):
        ranked(**wrong)
