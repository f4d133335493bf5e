"""Sets with the stated share of wrong labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import kstest

from resvm_cli.errors import DataError
from resvm_cli.model.simulation import Sizes, biased_chances, split, synthetic
from resvm_cli.rows import Rows

TRUTH = np.arange(900) % 3 == 0  # 300 positive, 600 negative


@pytest.mark.parametrize(
    ("n_pos", "n_unl", "a", "b"),
    list(
        itertools.product(
            [1, 7, 50], [1, 33, 200], [0.0, 0.1, 0.3, 0.5, 1.0], [0.0, 0.05, 0.3, 1.0]
        )
    ),
)
def test_counts_are_exact(n_pos, n_unl, a, b):
    for limit in (None, 20):
        sizes = Sizes(n_pos, n_unl, a, b, limit, limit)
        made = split(TRUTH, sizes, np.random.default_rng(0))
        assert len(made.positives) == n_pos
        assert len(made.unlabeled) == n_unl
        assert (~TRUTH[made.positives]).sum() == round(a * n_pos)
        assert TRUTH[made.unlabeled].sum() == round(b * n_unl)
        used = np.concatenate([made.positives, made.unlabeled, made.test])
        assert len(np.unique(used)) == len(used)
        if limit is None:
            assert len(used) == 900
        else:
            assert (TRUTH[made.test].sum(), (~TRUTH[made.test]).sum()) == (20, 20)


def test_too_few_rows_of_a_class_are_named():
    with pytest.raises(DataError, match=r"301 truly positive rows .* only 300"):
        split(TRUTH, Sizes(301, 10), np.random.default_rng(0))
    with pytest.raises(DataError, match="601 truly negative rows"):
        split(TRUTH, Sizes(1, 500, test_neg=101), np.random.default_rng(0))


def test_every_row_is_as_likely_as_another():
    times = np.zeros(900)
    for seed in range(400):
        times[split(TRUTH, Sizes(30, 60), np.random.default_rng(seed)).positives] += 1
    counts = times[TRUTH]
    assert counts.sum() == 400 * 30
    assert counts.mean() == 40
    assert counts.var() == pytest.approx(400 * 0.1 * 0.9, rel=0.3)


def test_biased_labelling_prefers_rows_along_its_direction():
    rng = np.random.default_rng(1)
    rows = Rows.from_dense(rng.standard_normal((900, 5)))
    chances = biased_chances(rows, np.random.default_rng(2))
    assert np.log(chances).std() == pytest.approx(1.0, rel=0.05)
    known = [
        split(TRUTH, Sizes(30, 60, 0.1), np.random.default_rng(seed), chances) for seed in range(60)
    ]
    picked = np.concatenate([one.positives[TRUTH[one.positives]] for one in known])
    assert np.log(chances[picked]).mean() > np.log(chances[TRUTH]).mean() + 0.5
    assert all((~TRUTH[one.positives]).sum() == 3 for one in known)


def test_the_synthetic_problem_is_the_papers():
    points = synthetic(4000, 5000, np.random.default_rng(0))
    assert points.shape == (9000, 2)
    assert kstest(points[:4000].ravel(), "norm").pvalue > 0.01
    # a circle of radius 4 with standard normal noise: E|x|^2 = 16 + 2
    assert (points[4000:] ** 2).sum(axis=1).mean() == pytest.approx(18.0, rel=0.03)
    assert points[4000:].mean(axis=0) == pytest.approx([0, 0], abs=0.15)
    angles = np.arctan2(points[4000:, 1], points[4000:, 0])
    assert kstest((angles + np.pi) / (2 * np.pi), "uniform").pvalue > 0.01


def test_values_too_large_for_biased_labeling_are_refused():
    rows = Rows.from_dense(np.array([[1e308] * 9, [-1e308] * 9]))
    with pytest.raises(DataError, match="too large for biased labeling"):
        biased_chances(rows, np.random.default_rng(0))
