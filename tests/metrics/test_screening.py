"""The top of a ranking against sums over every order of tied rows, done row by row."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resvm_cli.metrics import screening
from resvm_cli.metrics.ranking import Ranking
from tests.metrics.test_ranking import rankings


def orders(positive, scores):
    """Every order of the rows that sorts the scores, as lists of labels."""
    found = [
        [positive[number] for number in order]
        for order in permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    return np.array(found, float)


@st.composite
def small(draw):
    size = draw(st.integers(2, 6))
    scores = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    positive = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    positive[0], positive[-1] = True, False
    return np.array(positive), np.array(scores, float)


@settings(max_examples=50)
@given(small())
def test_figures_at_k_are_means_over_all_orders_of_ties(case):
    ranking, every = Ranking.of(*case), orders(*case)
    n_rows, n_pos = every.shape[1], every[0].sum()
    for depth in range(1, n_rows + 1):
        found = every[:, :depth].sum(axis=1).mean()
        assert screening.recovered_at(ranking, depth) == pytest.approx(found)
        assert screening.precision_at(ranking, depth) == pytest.approx(found / depth)
        assert screening.recall_at(ranking, depth) == pytest.approx(found / n_pos)
        random = depth * n_pos / n_rows
        assert screening.enrichment_at(ranking, depth) == pytest.approx(found / random)


@settings(max_examples=50)
@given(small(), st.sampled_from(screening.RECOVERED))
def test_the_depth_to_recover_is_a_mean_over_all_orders_of_ties(case, share):
    ranking, every = Ranking.of(*case), orders(*case)
    wanted = np.ceil(share * every[0].sum())
    depths = [np.flatnonzero(np.cumsum(order) >= wanted)[0] + 1 for order in every]
    expected = np.mean(depths) / every.shape[1]
    assert screening.screened_to_recover(ranking, share) == pytest.approx(expected)


def published_bedroc(order, alpha):
    """RIE and BEDROC as printed by Truchon and Bayly (2007), equations 18 and 36."""
    n_rows, n_pos = len(order), int(sum(order))
    ratio = n_pos / n_rows
    total = sum(np.exp(-alpha * (rank + 1) / n_rows) for rank in np.flatnonzero(order))
    random = (1 - np.exp(-alpha)) / (np.exp(alpha / n_rows) - 1) * ratio
    rie = total / random
    factor = ratio * np.sinh(alpha / 2) / (np.cosh(alpha / 2) - np.cosh(alpha / 2 - alpha * ratio))
    return rie * factor + 1 / (1 - np.exp(alpha * (1 - ratio)))


@settings(max_examples=50)
@given(small(), st.sampled_from((0.5, 20.0, 80.5)))
def test_bedroc_is_the_published_formula_averaged_over_orders(case, alpha):
    expected = np.mean([published_bedroc(order, alpha) for order in orders(*case)])
    assert screening.bedroc(Ranking.of(*case), alpha) == pytest.approx(expected, abs=1e-9)


def test_bedroc_on_many_rows_is_the_published_formula():
    rng = np.random.default_rng(0)
    positive = rng.random(3000) < 0.02
    scores = rng.permutation(3000) + 900.0 * positive
    expected = published_bedroc(positive[np.argsort(-scores, kind="stable")], 20.0)
    assert len(np.unique(scores)) < 3000  # a few ties, of which the order matters little
    assert screening.bedroc(Ranking.of(positive, scores), 20.0) == pytest.approx(expected, rel=1e-3)


def test_the_best_and_worst_rankings_have_bedroc_1_and_0():
    positive = np.arange(100) < 5
    assert screening.bedroc(Ranking.of(positive, -np.arange(100.0)), 20.0) == pytest.approx(1)
    assert screening.bedroc(Ranking.of(positive, np.arange(100.0)), 20.0) == pytest.approx(0)


@settings(max_examples=50)
@given(rankings())
def test_everything_is_recovered_at_the_end_and_enrichment_is_then_1(case):
    ranking = Ranking.of(*case)
    n_rows = len(case[0])
    assert screening.recall_at(ranking, n_rows) == pytest.approx(1)
    assert screening.enrichment_at(ranking, n_rows) == pytest.approx(1)


@pytest.mark.parametrize(
    ("fraction", "n_rows", "depth"), [(0.07, 100, 7), (0.01, 50, 1), (0.005, 1001, 6), (1.0, 3, 3)]
)
def test_a_fraction_takes_whole_rows(fraction, n_rows, depth):
    assert screening.depth_of(fraction, n_rows) == depth
