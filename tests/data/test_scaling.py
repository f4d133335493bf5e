"""Scaling against scikit-learn's scalers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from resvm_cli.data import pudata as pu_data
from resvm_cli.data import scaling
from resvm_cli.data.pudata import MemoryData
from resvm_cli.data.scaling import (
    FeatureStats,
    LinearScaling,
    QuantileScaling,
    Scaling,
)
from resvm_cli.errors import DataError
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.storage.model import MAX_MANIFEST
from tests.conftest import train_arguments, write_svm

RNG = np.random.default_rng(6)
X = (RNG.standard_normal((60, 7)) * 10.0 ** RNG.integers(-3, 4, 7) + 3) * (
    RNG.random((60, 7)) < 0.7
)
X[:, 2] = 4.25  # constant
X[:, 3] = np.abs(X[:, 3])
X[:, 5] = 0.0  # never present
SCALERS = {"minmax": MinMaxScaler, "maxabs": MaxAbsScaler, "standard": StandardScaler}
KINDS = list(SCALERS)
OWN = Rows.from_dense(X)


def learned(kind: str, features: np.ndarray = X, cuts: tuple[int, ...] = ()) -> LinearScaling:
    stats = FeatureStats()
    rows = Rows.from_dense(features)
    for start, stop in zip((0, *cuts), (*cuts, len(features)), strict=True):
        stats.add(rows.slice(start, stop))
    return LinearScaling.learn(kind, stats.summary())


def constants(scaler) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(scaler, MinMaxScaler):
        return scaler.min_, scaler.scale_
    if isinstance(scaler, MaxAbsScaler):
        return np.zeros_like(scaler.scale_), scaler.scale_
    return scaler.mean_, scaler.scale_


def with_our_constants(scaling: Scaling, width: int):
    """scikit-learn's scaler, told our constants; features we never saw stay as they are."""
    scaler = SCALERS[scaling.kind]().fit(np.zeros((2, width)))
    shift, factor = np.zeros(width), np.ones(width)
    shift[scaling.indices - 1], factor[scaling.indices - 1] = scaling.shift, scaling.factor
    scaler.scale_ = factor
    if scaling.kind == "minmax":
        scaler.min_ = shift
    elif scaling.kind == "standard":
        scaler.mean_ = shift
    return scaler


def dense(rows: Rows, width: int) -> np.ndarray:
    matrix = np.zeros((len(rows), width))
    matrix[rows.row_numbers, rows.indices - 1] = rows.values
    return matrix


@pytest.mark.parametrize("kind", KINDS)
def test_the_constants_are_scikit_learns(kind):
    scaling = learned(kind)
    shift, factor = constants(SCALERS[kind]().fit(X))
    present = scaling.indices - 1
    assert present.tolist() == [0, 1, 2, 3, 4, 6]
    assert scaling.shift == pytest.approx(shift[present], rel=1e-10, abs=1e-12)
    assert scaling.factor == pytest.approx(factor[present], rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_scaled_rows_are_scikit_learns_to_the_last_bit(kind):
    scaling = learned(kind)
    fresh = np.c_[RNG.standard_normal((30, 7)) * (RNG.random((30, 7)) < 0.5), np.zeros((30, 2))]
    fresh[4, 8] = 2.5  # a feature the training data lacked
    found = scaling.apply(Rows.from_dense(fresh))
    expected = with_our_constants(scaling, 9).transform(fresh)
    assert dense(found, 9).tobytes() == (expected + 0.0).tobytes()
    assert (found.values != 0).all()
    assert all(
        (np.diff(found.indices[a:b]) > 0).all()
        for a, b in zip(found.indptr[:-1], found.indptr[1:], strict=True)
    )


def test_sparse_rows_stay_sparse_where_zero_stays_zero():
    assert not learned("maxabs").moves_zeros
    assert not learned("minmax", np.abs(X) * (np.arange(7) != 2)).moves_zeros
    assert learned("minmax").moves_zeros
    assert learned("standard").moves_zeros
    rows = Rows.from_dense(X)
    assert len(learned("maxabs").apply(rows).values) == len(rows.values)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=4).map(sorted))
def test_constants_do_not_depend_on_how_rows_arrive(cuts):
    for kind in KINDS:
        once, often = learned(kind), learned(kind, X, tuple(cuts))
        assert once.shift.tobytes() == often.shift.tobytes()
        assert once.factor.tobytes() == often.factor.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_the_variance_once_scaled_is_that_of_the_scaled_matrix(kind):
    stats = FeatureStats()
    stats.add(Rows.from_dense(X))
    scaling = learned(kind)
    scaled = with_our_constants(scaling, 9).transform(np.c_[X, np.zeros((60, 2))])
    assert scaling.variance(stats.summary(), 9) == pytest.approx(scaled.var(), rel=1e-10)


def test_deviations_keep_their_digits_far_from_zero():
    far = 1.7e9 + RNG.standard_normal((500, 2))
    assert learned("standard", far).factor == pytest.approx(far.std(axis=0), rel=1e-6)


def test_a_description_reads_back_to_the_same_bits():
    for kind in KINDS:
        scaling = learned(kind)
        again = Scaling.from_description(json.loads(json.dumps(scaling.description())))
        assert again.kind == kind
        assert again.indices.tolist() == scaling.indices.tolist()
        assert again.shift.tobytes() == scaling.shift.tobytes()
        assert again.factor.tobytes() == scaling.factor.tobytes()


@pytest.mark.parametrize(
    "changes",
    [{"kind": "log"}, {"shift": [1.0]}, {"factor": [0.0] * 6}, {"features": [3, 2, 1, 4, 5, 6]}],
)
def test_a_description_that_makes_no_sense_is_refused(changes):
    with pytest.raises(ValueError, match="scaling"):
        Scaling.from_description(learned("standard").description() | changes)


def test_an_index_too_large_to_keep_statistics_of_is_refused():
    rows = Rows(np.array([0, 1]), np.array([2**31 - 2], np.int32), np.ones(1))
    with pytest.raises(DataError, match="the largest index allowed is 67,108,863"):
        FeatureStats().add(rows)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("minmax", [1e308, -1e308]),
        ("minmax", [5e-324, 1e-323]),
        ("maxabs", [5e-324, 1e-323]),
        ("standard", [2e154, 1.0]),
    ],
)
def test_a_feature_that_doubles_cannot_scale_is_named(kind, values):
    features = np.ones((3, 3))
    features[:, 1] = [*values, values[0]]
    with pytest.raises(DataError, match=rf"feature 2 ranges from .* {kind} scaling is impossible"):
        learned(kind, features)


def columns(size: int) -> np.ndarray:
    """Dense, mostly zero, integer, constant, with one frequent value, and with some zeros."""
    rng = np.random.default_rng(size)
    return np.column_stack(
        [
            rng.standard_normal(size) ** 3,
            rng.standard_normal(size) * (rng.random(size) < 0.2),
            rng.poisson(2.0, size),
            np.full(size, -3.5),
            np.where(rng.random(size) < 0.4, 1.0, rng.random(size)),
            rng.integers(-2, 3, size) * (rng.random(size) < 0.8),
        ]
    )


def mid_ranks(features: np.ndarray) -> np.ndarray:
    """The rank of each value, from 0 to 1; zero if the value is and most are."""
    ranks = (rankdata(features, axis=0) - 0.5) / len(features)
    for column, own in zip(features.T, ranks.T, strict=True):
        if 2 * (column == 0).sum() > len(column):
            own -= own[column == 0][0]
    return ranks


@pytest.mark.parametrize("size", [1, 2, 37, 200, 5000])
def test_quantiles_are_scipys_ranks(size):
    features = columns(size)
    found = dense(QuantileScaling.learn(Rows.from_dense(features)).apply(rows_of(features)), 6)
    error = 1e-15 if size <= scaling.QUANTILE_STEPS else 1 / scaling.QUANTILE_STEPS
    assert np.abs(found - mid_ranks(features)).max() <= error


def rows_of(features: np.ndarray) -> Rows:
    """The rows with a zero written out, as files may have them."""
    rows = Rows.from_dense(features)
    if features[0, 1]:
        return rows
    first = int(rows.indices[0] == 1)
    return Rows(
        np.concatenate([[0], rows.indptr[1:] + 1]),
        np.insert(rows.indices, first, 2),
        np.insert(rows.values, first, 0.0),
    )


def test_a_mostly_zero_column_stays_sparse_and_others_do_not():
    features = columns(300)
    sparse = QuantileScaling.learn(Rows.from_dense(features[:, [1]]))
    assert not sparse.moves_zeros
    rows = Rows.from_dense(features[:, [1]])
    scaled = sparse.apply(rows)
    assert scaled.indptr.tolist() == rows.indptr.tolist()
    assert (np.sign(scaled.values) == np.sign(rows.values)).all()
    assert QuantileScaling.learn(Rows.from_dense(features[:, [5]])).moves_zeros
    half = np.repeat([0.0, 1.0], 5)[:, None]  # not mostly zero
    assert QuantileScaling.learn(Rows.from_dense(half)).moves_zeros


def test_values_beyond_the_training_values_are_clamped():
    features = columns(100)
    learned = QuantileScaling.learn(Rows.from_dense(features))
    beyond = dense(learned.apply(Rows.from_dense(np.array([[1e300] * 6, [-1e300] * 6]))), 6)
    within = dense(learned.apply(Rows.from_dense(features)), 6)
    assert beyond.tolist() == [within.max(axis=0).tolist(), within.min(axis=0).tolist()]
    unknown = learned.apply(Rows.from_dense(np.array([[0.0] * 6 + [7.5]])))
    assert unknown.values[unknown.indices == 7].tolist() == [7.5]


def test_new_values_are_placed_between_their_neighbors():
    learned = QuantileScaling.learn(Rows.from_dense(np.array([[1.0], [2.0], [4.0]])))
    found = learned.apply(Rows.from_dense(np.array([[2.5], [1.5]])))
    assert found.values == pytest.approx([0.5 + 1 / 12, 1 / 3])


@pytest.mark.parametrize("size", [200, 3000])
def test_monotone_transformations_do_not_matter(size):
    features = columns(size)
    other = np.column_stack([np.exp(features[:, 0]), np.cbrt(features[:, 1]), features[:, 2] ** 3])
    scaled = [
        dense(QuantileScaling.learn(Rows.from_dense(each)).apply(Rows.from_dense(each)), 3)
        for each in (features[:, :3], other)
    ]
    if size <= scaling.QUANTILE_STEPS:
        assert scaled[0].tobytes() == scaled[1].tobytes()
    else:
        assert np.abs(scaled[0] - scaled[1]).max() <= 1 / scaling.QUANTILE_STEPS


def test_a_description_of_quantiles_reads_back_to_the_same_bits():
    learned = QuantileScaling.learn(Rows.from_dense(columns(1000)))
    again = Scaling.from_description(json.loads(json.dumps(learned.description())))
    assert again.kind == "quantile"
    for name in ("indices", "starts", "knots", "heights"):
        assert getattr(again, name).tobytes() == getattr(learned, name).tobytes()
    empty = QuantileScaling.learn(Rows.from_dense(np.zeros((3, 2))))
    assert len(Scaling.from_description(empty.description()).indices) == 0


QUANTILES = {
    "kind": "quantile",
    "features": [1, 4],
    "starts": [0, 3, 4],
    "knots": [-1.0, 0.0, 2.0, 1.0],
    "heights": [0.2, 0.5, 0.8, 0.5],
}


@pytest.mark.parametrize(
    "changes",
    [
        {"features": [4, 1]},
        {"features": [1, 1]},
        {"features": [1, 4, 5]},
        {"features": [[1], [4]]},
        {"starts": [0, 3]},
        {"starts": [1, 3, 4]},
        {"starts": [0, 3, 3]},
        {"starts": [0, 4, 4]},
        {"starts": [0, 5, 4]},
        {"starts": []},
        {"knots": [-1.0, 0.0, 2.0]},
        {"knots": [-1.0, 0.0, 0.0, 1.0]},
        {"knots": [0.0, -1.0, 2.0, 1.0]},
        {"knots": [-1.0, 0.0, float("inf"), 1.0]},
        {"knots": [[-1.0], [0.0], [2.0], [1.0]]},
        {"heights": [0.2, 0.5, 0.8]},
        {"heights": [0.2, 0.5, float("nan"), 0.5]},
    ],
    ids=str,
)
def test_damaged_quantiles_are_refused(changes):
    Scaling.from_description(QUANTILES)
    with pytest.raises(ValueError, match="scaling"):
        Scaling.from_description(QUANTILES | changes)


def test_a_manifest_holds_all_knots_and_no_more():
    # a knot and its height, each a number of up to 24 characters and a comma
    assert 1 << 27 < scaling.MAX_KNOTS * 2 * 25 <= MAX_MANIFEST


def test_many_features_have_fewer_knots(monkeypatch):
    features = columns(1000)
    usual = QuantileScaling.learn(Rows.from_dense(features))
    monkeypatch.setattr(scaling, "MAX_KNOTS", len(usual.knots) // 3)
    fewer = QuantileScaling.learn(Rows.from_dense(features))
    assert len(fewer.knots) <= len(usual.knots) // 3
    found = dense(fewer.apply(Rows.from_dense(features)), 6)
    assert np.abs(found - mid_ranks(features)).max() <= 1 / 50
    monkeypatch.setattr(scaling, "MAX_KNOTS", 0)
    fewest = QuantileScaling.learn(Rows.from_dense(features[:, [1]]))
    assert (len(fewest.knots), fewest.moves_zeros) == (3, False)


def test_quantiles_come_from_a_sample_of_large_sets(monkeypatch):
    features = columns(400)
    known = np.arange(400) < 100
    whole = MemoryData.from_matrix(features, known, scale="quantile")
    assert len(whole.sampled_rows) == 400
    monkeypatch.setattr(pu_data, "SAMPLE_ROWS", 80)
    sampled = MemoryData.from_matrix(features, known, scale="quantile")
    assert len(sampled.sampled_rows) == 160
    again = MemoryData.from_matrix(features, known, scale="quantile")
    assert again.scaling.knots.tobytes() == sampled.scaling.knots.tobytes()
    assert sampled.scaling.knots.tobytes() != whole.scaling.knots.tobytes()
    rows = Rows.from_dense(features)
    apart = dense(sampled.scaled(rows, "quantile"), 6) - dense(whole.scaled(rows, "quantile"), 6)
    assert np.abs(apart).mean() < 0.05


def test_the_variance_by_quantiles_is_that_of_the_scaled_rows():
    features = columns(120)
    data = MemoryData.from_matrix(features, np.arange(120) < 40, scale="quantile")
    scaled = dense(data.scaled(Rows.from_dense(features), "quantile"), 6)
    assert data.variance("quantile") == pytest.approx(scaled.var(), rel=1e-12)


def test_extreme_values_have_ranks_too():
    features = np.array([[-1.7e308], [1.7e308], [0.0], [5e-324]])
    with np.errstate(all="raise"):
        learned = QuantileScaling.learn(Rows.from_dense(features))
        found = dense(learned.apply(Rows.from_dense(np.vstack([features, [[1e308]]]))), 1)
    assert found[:4, 0] == pytest.approx(mid_ranks(features)[:, 0])
    assert found[4, 0] == pytest.approx(0.625 + 0.25 / 1.7)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_scaled_model_on_raw_rows_is_an_unscaled_one_on_scaled_rows(
    kind, kernel, resvm, tmp_path
):
    raw = {"pos": X[:20] + 1.0, "unl": X[20:], "test": np.c_[X[::2] * 1.5, np.ones(30)]}
    for name, features in raw.items():
        write_svm(tmp_path / f"{name}.svm", features)
    ran = resvm(
        *train_arguments(tmp_path), "--scale", kind, "-t", kernel, "--n-models", 5,
        "-o", tmp_path / "scaled",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    manifest = json.loads((tmp_path / "scaled" / "manifest.json").read_text())
    scaler = with_our_constants(Scaling.from_description(manifest["scalings"][0]), 8)
    other = tmp_path / "by-sklearn"
    other.mkdir()
    for name, features in raw.items():
        padded = np.c_[features, np.zeros((len(features), 8 - features.shape[1]))]
        write_svm(other / f"{name}.svm", scaler.transform(padded))
    gamma = ["-g", repr(manifest["groups"][0]["kernel"]["gamma"])] if kernel == "rbf" else []
    resvm(*train_arguments(other), "-t", kernel, *gamma, "--n-models", 5, "-o", other / "plain")
    expected = resvm("predict", other / "plain", other / "test.svm", "--member-values").out
    found = resvm("predict", tmp_path / "scaled", tmp_path / "test.svm", "--member-values").out
    assert len(found.splitlines()) == 30
    assert found == expected


@pytest.mark.parametrize("kind", ["standard", "quantile"])
def test_a_streamed_and_a_kept_u_give_the_same_scaled_model(kind, problem, tmp_path, monkeypatch):
    from resvm_cli.data import pufiles
    from resvm_cli.data.pu_input import TrainingInput
    from resvm_cli.data.streams import Source
    from resvm_cli.parameters import Params
    from resvm_cli.tuning.learn import train

    models = []
    monkeypatch.setattr(pu_data, "SAMPLE_ROWS", 40)  # fewer than U has
    for kept, piece in ((1 << 22, 1 << 20), (0, 1 << 20), (0, 100)):
        monkeypatch.setattr(pufiles, "KEPT_NONZEROS", kept)
        monkeypatch.setattr(Source.pieces, "__defaults__", (piece,))
        source = TrainingInput(str(problem / "pos.svm"), str(problem / "unl.svm"), scale=kind)
        path = tmp_path / f"{kept}-{piece}"
        weights = "relevance" if kind == "quantile" else "none"
        choice = Params(n_models=4, feature_weights=weights, auto=False)
        train(source, choice, str(path), Run())
        models.append({p.name: p.read_bytes() for p in Path(path).rglob("*") if p.is_file()})
    assert models[0] == models[1] == models[2]
    assert len(models[0]) == 6  # manifest, out-of-bag values and four members
