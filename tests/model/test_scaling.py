"""Scaling against scikit-learn's scalers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from resvm_cli.errors import DataError
from resvm_cli.model.scaling import FeatureStats, Scaling
from resvm_cli.rows import Rows
from resvm_cli.running.run import Run
from tests.conftest import train_arguments, write_svm
from tests.programs import run, script_command

RNG = np.random.default_rng(6)
X = (RNG.standard_normal((60, 7)) * 10.0 ** RNG.integers(-3, 4, 7) + 3) * (
    RNG.random((60, 7)) < 0.7
)
X[:, 2] = 4.25  # constant
X[:, 3] = np.abs(X[:, 3])
X[:, 5] = 0.0  # never present
SCALERS = {"minmax": MinMaxScaler, "maxabs": MaxAbsScaler, "standard": StandardScaler}
KINDS = list(SCALERS)


def learned(kind: str, features: np.ndarray = X, cuts: tuple[int, ...] = ()) -> Scaling:
    stats = FeatureStats()
    rows = Rows.from_dense(features)
    for start, stop in zip((0, *cuts), (*cuts, len(features)), strict=True):
        stats.add(rows.slice(start, stop))
    return Scaling.learn(kind, stats.summary())


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
    with pytest.raises(DataError, match="too large for scaling; the limit is 67,108,863"):
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
    with pytest.raises(DataError, match=rf"feature 2 ranges from .* cannot scale it by {kind}"):
        learned(kind, features)


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
    scaler = with_our_constants(Scaling.from_description(manifest["scaling"]), 8)
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


def test_rows_that_become_dense_are_announced(resvm, problem, tmp_path):
    arguments = ["train", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "--n-models", 2]
    dense_run = resvm(*arguments, "--scale", "standard", "-o", tmp_path / "a")
    assert "rows become dense" not in dense_run.err  # it would take next to nothing
    assert "scaled by standard" in dense_run.err
    assert resvm(*arguments, "--scale", "maxabs", "-o", tmp_path / "b").code == 0
    script = (
        "import sys; from resvm_cli.training import train; train.DENSE_BYTES = 1e6\n"
        "sys.argv[0] = 'resvm'; from resvm_cli.cli import main; main()"
    )
    for scale, announced in (("standard", True), ("maxabs", False)):
        ran = run(script_command(script, *arguments, "--scale", scale, "-o", tmp_path / scale))
        assert ran.code == 0, ran.err
        assert ("rows become dense" in ran.err) == announced
    assert b"scaled by maxabs" in resvm("inspect", tmp_path / "b").out
    wrong = resvm(*arguments, "--scale", "log", "-o", tmp_path / "c")
    assert wrong.code == 2


def test_a_streamed_and_a_kept_u_give_the_same_scaled_model(problem, tmp_path, monkeypatch):
    from resvm_cli.commands.train.train import train
    from resvm_cli.parameters import MethodParameters
    from resvm_cli.training import data as training_data
    from resvm_cli.training.choice import TrainingChoice
    from resvm_cli.training.input import TrainingInput

    models = []
    for kept in (1 << 22, 0):
        monkeypatch.setattr(training_data, "KEPT_NONZEROS", kept)
        source = TrainingInput(str(problem / "pos.svm"), str(problem / "unl.svm"), scale="standard")
        path = tmp_path / str(kept)
        choice = TrainingChoice.from_params(MethodParameters(n_models=4))
        train(source, choice, str(path), Run())
        models.append({p.name: p.read_bytes() for p in Path(path).rglob("*") if p.is_file()})
    assert models[0] == models[1]
    assert len(models[0]) == 6  # manifest, out-of-bag values and four members
