"""Feature weights against R^2 computed by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resvm_cli.data import pudata as pu_data
from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.ensemble import Predictor
from resvm_cli.ensemble.plan import Plan
from resvm_cli.ensemble.relevance import FeatureBins, Relevance, learn_bins
from resvm_cli.ensemble.train import Trainer, rows_drawn
from resvm_cli.parameters import Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.svm import products
from resvm_cli.tuning.learn import learn

RNG = np.random.default_rng(2)
N_ROWS, N_POS = 160, 60
KNOWN = np.arange(N_ROWS) < N_POS
X = np.column_stack(
    [
        RNG.standard_normal(N_ROWS) + KNOWN,  # tells P from U
        RNG.standard_normal(N_ROWS),
        RNG.poisson(1.5, N_ROWS) - KNOWN,  # many ties
        (RNG.random(N_ROWS) + 0.1) * (RNG.random(N_ROWS) < 0.1 + 0.3 * KNOWN),  # mostly zero
        RNG.standard_normal(N_ROWS) * (RNG.random(N_ROWS) < 0.2),
        np.full(N_ROWS, 2.5),
        RNG.integers(-1, 2, N_ROWS) * (1.0 + 2.0 * KNOWN),
    ]
)
BAG_P = RNG.integers(0, N_POS, 40)  # with repeats
BAG_U = N_POS + RNG.integers(0, N_ROWS - N_POS, 70)


def bin_of(value, column):
    """The bin of a value: a fifth of the column or, if that is mostly zero, zero, low or high."""
    if 2 * (column == 0).sum() > len(column):
        nonzero = np.sort(column[column != 0])
        return 0 if value == 0 else 1 if value <= nonzero[(len(nonzero) - 1) // 2] else 2
    edges = np.quantile(column, [0.2, 0.4, 0.6, 0.8], method="inverted_cdf")
    return int((value > edges).sum())


def adjusted_r_squared(column, positive, unlabeled):
    """1 - (1 - R^2) (n - 1) / (n - bins), with each bin predicted by its fraction of P."""
    labels = np.repeat([1.0, 0.0], [len(positive), len(unlabeled)])
    bins = np.array([bin_of(column[row], column) for row in [*positive, *unlabeled]])
    predicted = np.array([labels[bins == own].mean() for own in bins])
    total = ((labels - labels.mean()) ** 2).sum()
    unexplained = ((labels - predicted) ** 2).sum() / total
    return 1.0 - unexplained * (len(labels) - 1) / (len(labels) - len(set(bins)))


def by_hand(positive, unlabeled, power=1.0, features=X):
    relevance = np.array([adjusted_r_squared(one, positive, unlabeled) for one in features.T])
    relevance = np.maximum(0.0, relevance) ** power
    return np.sqrt(relevance * len(relevance) / relevance.sum())


def weights(positive=BAG_P, unlabeled=BAG_U, power=1.0, features=X):
    rows = Rows.from_dense(features)
    found = Relevance(rows, FeatureBins.learn(rows)).weights(positive, unlabeled, power)
    factors = np.zeros(features.shape[1])
    factors[found.indices - 1] = found.values
    assert len(found) == 1
    assert (found.values > 0).all()
    return factors


@pytest.mark.parametrize("power", [1.0, 2.0, 0.5])
def test_factors_are_roots_of_adjusted_r_squared(power):
    found = weights(power=power)
    assert found == pytest.approx(by_hand(BAG_P, BAG_U, power), rel=1e-12)
    assert found[5] == 0  # a constant tells nothing
    assert found[[0, 3]].min() > 0
    assert (found**2).mean() == pytest.approx(1.0)


def test_bins_are_learned_from_all_rows_and_applied_to_few():
    for size in (2, 3, 10):
        found = weights(BAG_P[:size], BAG_U[:size])
        expected = by_hand(BAG_P[:size], BAG_U[:size])
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_mostly_zero_feature_is_zero_low_or_high():
    column = np.array([0, 0, 4.0, 1.0, 0, 2.0, 0, 3.0, 0, -1.0, 0, 0, 5.0])[:, None]
    bins = FeatureBins.learn(Rows.from_dense(column))
    assert bins.edges.tolist() == [[-np.inf, 2.0, np.inf, np.inf]]  # the lower median
    assert bins.zero_bin.tolist() == [0]
    half = FeatureBins.learn(Rows.from_dense(column[2:]))  # no longer mostly zero
    assert half.edges.tolist() == [[0.0, 0.0, 1.0, 3.0]]
    assert half.zero_bin.tolist() == [0]


def test_repeats_in_the_bag_count():
    once, often = weights(np.unique(BAG_P), np.unique(BAG_U)), weights()
    assert once == pytest.approx(by_hand(np.unique(BAG_P), np.unique(BAG_U)), rel=1e-12)
    assert not np.allclose(once, often)


def test_features_that_the_bag_lacks_have_no_weight():
    features = np.c_[X, np.zeros(N_ROWS)]
    outside = np.setdiff1d(np.arange(N_ROWS), [*BAG_P, *BAG_U])
    features[outside, -1] = 1.0
    found = weights(features=features)
    assert found[-1] == 0
    assert (found**2).mean() == pytest.approx(1.0)  # over all features, this one included


def test_without_a_relevant_feature_all_weigh_the_same():
    assert weights(features=np.full((N_ROWS, 3), 1.5)).tolist() == [1.0, 1.0, 1.0]
    alternating = np.tile([1.0, 2.0], N_ROWS // 2)[:, None]
    assert weights(np.array([0, 1]), np.array([62, 63]), features=alternating).tolist() == [1.0]
    assert weights(features=np.zeros((N_ROWS, 2))).tolist() == [0.0, 0.0]


def test_explicit_zeros_and_unknown_features_do_not_matter():
    rows = Rows.from_dense(X)
    bins = FeatureBins.learn(rows)
    written = Rows(
        np.arange(N_ROWS + 1) * 8,
        np.tile(np.arange(1, 9, dtype=np.int32), N_ROWS),
        np.c_[X, np.ones(N_ROWS)].ravel(),
    )
    expected = Relevance(rows, bins).weights(BAG_P, BAG_U, 1.0)
    found = Relevance(written, bins).weights(BAG_P, BAG_U, 1.0)
    assert found.indices.tolist() == expected.indices.tolist()
    assert found.values.tobytes() == expected.values.tobytes()
    only_known = Rows(written.indptr, written.indices, np.c_[X, np.zeros(N_ROWS)].ravel())
    assert FeatureBins.learn(only_known).edges.tobytes() == bins.edges.tobytes()


def data(known=KNOWN, features=X, scale=None):
    return MemoryData.from_matrix(features, known, scale=scale)


WEIGHTED = Params(n_models=4, n_pos=20, n_unl=30, feature_weights="relevance:2")


def trained(given, params=WEIGHTED):
    return learn(given, replace(params, auto=False), Run(jobs=1))


def test_a_member_has_the_weights_of_its_own_bag():
    part, model = trained(data())
    for problem, member in zip(part.problems, model.ensemble.members, strict=True):
        expected = weights(problem.positive, N_POS + problem.unlabeled, 2.0)
        factors = np.zeros(7)
        factors[member.weights.indices - 1] = member.weights.values
        assert factors == pytest.approx(expected, rel=1e-12)


def test_only_the_rows_of_the_bag_matter():
    given = data()
    part, _ = trained(given)
    (problem, *_) = part.problems
    # swap a row of P and one of U that the bag lacks: the bins see the same rows
    out_p = np.setdiff1d(np.arange(N_POS), problem.positive)[0]
    out_u = np.setdiff1d(np.arange(N_ROWS - N_POS), problem.unlabeled)[0]
    features = X.copy()
    features[[out_p, N_POS + out_u]] = X[[N_POS + out_u, out_p]]
    members = []
    for each in (given, data(features=features)):
        plan = Plan.resolve(WEIGHTED, each)
        drawn = rows_drawn([problem])
        trainer = Trainer.from_data(plan, each, each.fetch(drawn), drawn, 1)
        members += trainer.train_all([problem])
    one, other = members
    assert one.member.weights.values.tobytes() == other.member.weights.values.tobytes()
    assert one.member.coefficients.tobytes() == other.member.coefficients.tobytes()
    assert one.rows.values.tobytes() == other.rows.values.tobytes()


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear"])
@pytest.mark.parametrize("scale", [None, "quantile"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_model_is_its_members_evaluated_by_numpy(kernel, scale, sparse):
    features = X * (RNG.random(X.shape) < 0.1) if sparse else X
    features = np.c_[features, np.zeros((N_ROWS, 20 if sparse else 0))]
    given = data(features=features, scale=scale)
    _, model = trained(given, replace(WEIGHTED, kernel=kernel))
    queries = np.vstack([features[::3], RNG.standard_normal((5, features.shape[1])) * 1e3])
    rows = Rows.from_dense(queries)
    found = Predictor(model.ensemble).member_values(rows)
    scaled = spread(given.scaled(rows, scale), features.shape[1])
    for number, member in enumerate(model.ensemble.members):
        support = spread(model.ensemble.pool.take(member.support), features.shape[1])
        factors = np.ones(features.shape[1])
        if kernel != "linear":
            factors = spread(member.weights, features.shape[1])[0]
        values = kernel_values(model.ensemble.kernel_of(number), scaled * factors, support)
        expected = values @ member.coefficients - member.rho
        size = np.abs(values) @ np.abs(member.coefficients) + abs(member.rho)
        assert (np.abs(found[:, number] - expected) <= 1e-12 * size).all()


def spread(rows, width):
    matrix = np.zeros((len(rows), width))
    matrix[rows.row_numbers, rows.indices - 1] = rows.values
    return matrix


def kernel_values(kernel, one, other):
    if kernel.name == "rbf":
        apart = one[:, None, :] - other[None]
        return np.exp(-kernel.gamma * (apart * apart).sum(axis=2))
    dots = one @ other.T
    if kernel.name == "poly":
        return (kernel.gamma * dots + kernel.coef0) ** kernel.degree
    return dots if kernel.name == "linear" else np.tanh(kernel.gamma * dots + kernel.coef0)


def test_linear_members_are_ordinary_weight_vectors_of_weighted_rows():
    linear = replace(WEIGHTED, kernel="linear")
    part, model = trained(data(), linear)
    vectors = spread(model.ensemble.pool, 7)
    for number, (problem, member) in enumerate(
        zip(part.problems, model.ensemble.members, strict=True)
    ):
        factors = weights(problem.positive, N_POS + problem.unlabeled, 2.0)
        _, plain = trained(data(features=X * factors), replace(linear, feature_weights="none"))
        expected = spread(plain.ensemble.pool, 7)[number] * factors
        assert member.weights is None
        assert vectors[number] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert member.rho == pytest.approx(plain.ensemble.members[number].rho, rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_bag_too_large_for_its_kernel_values_has_the_same_member(kernel, monkeypatch):
    params = replace(WEIGHTED, kernel=kernel, tolerance=1e-9)
    _, expected = trained(data(), params)
    monkeypatch.setattr(products, "MAX_ROWS", 10)  # LIBSVM then works on the rows themselves
    _, found = trained(data(), params)
    for own, other in zip(found.ensemble.members, expected.ensemble.members, strict=True):
        assert (own.weights is None) == (kernel == "linear")
        if own.weights is not None:
            assert own.weights.values.tobytes() == other.weights.values.tobytes()
    rows = Rows.from_dense(X)
    values = Predictor(expected.ensemble).member_values(rows)
    assert Predictor(found.ensemble).member_values(rows) == pytest.approx(values, abs=1e-6)


def test_liblinear_trains_on_weighted_rows_too():
    settings = {"kernel": "linear", "solver": "liblinear", "tolerance": 1e-6, "bias": 1.0}
    linear = replace(WEIGHTED, **settings)
    part, model = trained(data(), linear)
    vectors = spread(model.ensemble.pool, 7)
    problem = part.problems[0]
    factors = weights(problem.positive, N_POS + problem.unlabeled, 2.0)
    _, plain = trained(data(features=X * factors), replace(linear, feature_weights="none"))
    expected = spread(plain.ensemble.pool, 7)[0] * factors
    assert vectors[0] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_bins_come_from_a_sample_of_large_sets(monkeypatch):
    expected = learn_bins(data(), None).edges
    monkeypatch.setattr(pu_data, "SAMPLE_ROWS", 50)
    found = learn_bins(data(), None).edges
    assert found.shape == expected.shape
    assert not np.array_equal(found, expected)
    assert np.array_equal(found, learn_bins(data(), None).edges)


def test_rows_without_features_are_not_weighted():
    given = data(features=np.zeros((N_ROWS, 2)))
    _, model = trained(given)
    assert all(member.weights is None for member in model.ensemble.members)


@pytest.mark.parametrize("n_rows", [2, 3, 4, 6])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_bins_of_few_rows_are_their_quantiles(n_rows, sign):
    columns = sign * np.column_stack([np.arange(1.0, n_rows + 1), np.arange(n_rows, 0, -1.0) ** 2])
    fractions = [0.2, 0.4, 0.6, 0.8]
    expected = np.quantile(columns, fractions, axis=0, method="inverted_cdf").T
    found = FeatureBins.learn(Rows.from_dense(columns)).edges
    np.testing.assert_array_equal(found, expected)
