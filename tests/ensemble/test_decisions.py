"""Thresholds chosen out of bag: against the definition, and what they cannot do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.ensemble.decisions import (
    HEADER,
    MIN_POSITIVES,
    MIN_UNLABELED,
    SHRINKAGE,
    DecisionRule,
    OutOfBag,
    Threshold,
    choose_threshold,
    threshold_for_recall,
)

RNG = np.random.default_rng(3)


def worth(known, unlabeled, cut):
    recall, share = (known > cut).mean(), (unlabeled > cut).mean()
    return recall**2 / (share + SHRINKAGE / np.sqrt(len(unlabeled)))


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_no_other_threshold_is_worth_more(seed, steps):
    rng = np.random.default_rng(seed)
    # few distinct values: ties between and within the sets
    known = np.round(rng.normal(1, 1, 30) * steps) / steps
    unlabeled = np.round(rng.normal(0, 1, 80) * steps) / steps
    chosen = choose_threshold(known, unlabeled)
    assert chosen is not None
    values = np.unique(np.concatenate([known, unlabeled]))
    cuts = [values[0] - 1, *values]
    best = max(worth(known, unlabeled, cut) for cut in cuts)
    assert worth(known, unlabeled, chosen.value) == pytest.approx(best, rel=1e-12)
    assert chosen.recall == pytest.approx((known > chosen.value).mean())
    assert chosen.fraction_positive == pytest.approx((unlabeled > chosen.value).mean())


def test_a_threshold_lies_between_values_so_that_rounding_does_not_decide():
    known, unlabeled = np.full(20, 3.0), np.full(50, 1.0)
    chosen = choose_threshold(known, unlabeled)
    assert (chosen.value, chosen.recall, chosen.fraction_positive) == (2.0, 1.0, 0.0)


def test_with_too_few_rows_none_is_chosen():
    known, unlabeled = RNG.normal(size=MIN_POSITIVES), RNG.normal(size=MIN_UNLABELED)
    assert choose_threshold(known, unlabeled) is not None
    assert choose_threshold(known[1:], unlabeled) is None
    assert choose_threshold(known, unlabeled[1:]) is None


@given(st.integers(0, 2**32), st.floats(0.05, 1.0))
def test_a_recall_is_reached_by_the_highest_threshold_that_can(seed, recall):
    rng = np.random.default_rng(seed)
    known, unlabeled = np.round(rng.normal(1, 1, 40), 1), rng.normal(0, 1, 90)
    chosen = threshold_for_recall(known, unlabeled, recall)
    assert (known > chosen.value).mean() >= recall - 1e-9
    assert (known > np.nextafter(chosen.value, np.inf)).mean() < recall  # the next one is too high


def test_wrong_ones_among_p_do_not_drag_the_threshold_down():
    # a fifth of P looks like U: nine of ten of P take nearly all of U, of the others few
    unlabeled = RNG.normal(0, 1, 2000)
    known = np.concatenate([RNG.normal(5, 1, 400), RNG.normal(0, 1, 100)])
    plain = threshold_for_recall(known, unlabeled, 0.9)
    told = threshold_for_recall(known, unlabeled, 0.9, 0.2)
    assert (unlabeled > plain.value).mean() > 0.3
    assert (unlabeled > told.value).mean() < 0.01
    assert (known[:400] > told.value).mean() == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("single", [False, True])
def test_plain_rules_read_back(single):
    rule = DecisionRule.plain("mean", single=single)
    assert DecisionRule.from_description(rule.description()) == rule
    assert rule.thresholds["votes"].value == (0.0 if single else 0.5)
    assert rule.threshold == Threshold(0.0)
    assert not rule.threshold.chosen


@pytest.mark.parametrize(
    "content",
    [
        {"value": "x", "recall": None, "fraction_unlabeled": None},
        {"value": float("inf"), "recall": None, "fraction_unlabeled": None},
        {"value": True, "recall": None, "fraction_unlabeled": None},
        {"value": 0.5, "recall": 1.5, "fraction_unlabeled": 0.1},
        {"value": 0.5, "recall": None, "fraction_unlabeled": 0.1},
    ],
)
def test_thresholds_that_make_no_sense_are_refused(content):
    with pytest.raises(ValueError, match=r"threshold|rates"):
        Threshold.from_description(content)


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
        "row\tdecision_value\tmembers\n1\t0.5\t3\n",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the model's name is put to it elsewhere
        OutOfBag.parse(text.encode())
