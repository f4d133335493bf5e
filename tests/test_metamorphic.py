"""Models do not depend on the form of the data, or on how and where they are trained.

Values are multiples of 1/8, so kernel values are exact in any order of summation. With rounded
kernel values, a solver may take different steps before it stops at its tolerance, and results would
agree only to about 1e-3.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

import resvm_cli
from resvm_cli.commands.predict.predict import predict
from resvm_cli.commands.predict.scoring import PredictRequest
from resvm_cli.commands.train.train import train, train_share
from resvm_cli.running.run import Run, Share
from resvm_cli.training.choice import training_choice
from resvm_cli.training.input import TrainingInput
from resvm_cli.training.train import merge
from tests.api.test_functions import FORMATS, snapshot
from tests.conftest import write_svm

# random rows are often badly scaled or hard to separate
pytestmark = pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")

GAMMA = 0.125
few = settings(max_examples=10, deadline=None)


class Drawn(NamedTuple):
    """Rows, their labels and the training parameters."""

    X: np.ndarray
    y: np.ndarray
    parameters: dict[str, Any]

    def model(self, X: Any = None, **changed: Any) -> resvm_cli.Model:
        return resvm_cli.fit(self.X if X is None else X, self.y, **{**self.parameters, **changed})


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows, n_columns = draw(st.integers(25, 50)), draw(st.integers(2, 6))
    y = np.zeros(n_rows, int)
    y[rng.permutation(n_rows)[: draw(st.integers(8, 15))]] = 1
    X = np.rint(8 * (rng.normal(size=(n_rows, n_columns)) + y[:, None])) / 8
    X *= rng.random(X.shape) < draw(st.sampled_from([0.4, 1.0]))
    X[0] = 1  # no column is all zeros: text files do not store zeros
    kernel = draw(st.sampled_from([{"kernel": "linear"}, {"kernel": "rbf", "gamma": GAMMA}]))
    method = draw(st.sampled_from([{"n_models": 3}, {"n_models": 3, "method": "bagging"}]))
    seed, decision = draw(st.integers(0, 99)), draw(st.sampled_from(["votes", "mean"]))
    return Drawn(X, y, {**kernel, **method, "seed": seed, "decision": decision})


def assert_same_values(
    found: resvm_cli.Model, X: Any, expected: resvm_cli.Model, rows: np.ndarray
) -> None:
    values = expected.decision_values(rows)
    np.testing.assert_allclose(found.decision_values(X), values, rtol=1e-9, atol=1e-9)
    assert found.threshold.value == pytest.approx(expected.threshold.value, rel=1e-9, abs=1e-9)


@few
@given(data=drawn(), form=st.sampled_from(FORMATS))
@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
def test_a_sparse_matrix_gives_the_model_of_the_dense_one(data, form):
    dense, other = data.model(), data.model(getattr(sparse, form)(data.X))
    assert other.manifest == dense.manifest
    values = dense.decision_values(data.X)
    np.testing.assert_array_equal(other.decision_values(data.X), values)
    np.testing.assert_array_equal(dense.decision_values(getattr(sparse, form)(data.X)), values)


@few
@given(data=drawn(), shuffle=st.randoms(use_true_random=False))
def test_the_order_of_the_features_does_not_matter(data, shuffle):
    order = list(range(data.X.shape[1]))
    shuffle.shuffle(order)
    assert_same_values(data.model(data.X[:, order]), data.X[:, order], data.model(), data.X)


@few
@given(data=drawn(), places=st.lists(st.integers(0, 6), min_size=1, max_size=3))
def test_columns_of_zeros_change_nothing(data, places):
    wide = np.insert(data.X, [min(place, data.X.shape[1]) for place in places], 0, axis=1)
    assert wide.shape[1] == data.X.shape[1] + len(places)
    assert_same_values(data.model(wide), wide, data.model(), data.X)


@few
@given(data=drawn(), power=st.integers(-6, 6))
def test_other_units_change_nothing_if_the_kernel_is_scaled_too(data, power):
    by = 2.0**power
    scaled = (
        {"c_unl": by**-2} if data.parameters["kernel"] == "linear" else {"gamma": GAMMA / by**2}
    )
    assert_same_values(data.model(data.X * by, **scaled), data.X * by, data.model(), data.X)


def trained(source: TrainingInput, data: Drawn, target: Path) -> dict[str, bytes]:
    choice, _ = training_choice(data.parameters)
    train(source, choice, str(target), Run())
    return snapshot(target)


def labeled_file(folder: Path, data: Drawn) -> TrainingInput:
    path = write_svm(folder / "all.svm", data.X, data.y.astype(float))
    return TrainingInput(data=str(path), positive_label=1.0)


def two_files(folder: Path, data: Drawn) -> TrainingInput:
    positives = write_svm(folder / "pos.svm", data.X[data.y == 1])
    unlabeled = write_svm(folder / "unl.svm", data.X[data.y == 0])
    return TrainingInput(positives=str(positives), unlabeled=str(unlabeled))


@few
@given(data=drawn())
def test_python_gives_the_model_and_the_values_of_the_commands(data):
    with TemporaryDirectory() as name:
        folder = Path(name)
        written = trained(labeled_file(folder, data), data, folder / "command")
        model = data.model()
        model.save(folder / "python")
        assert snapshot(folder / "python") == written
        request = PredictRequest(
            str(folder / "command"), str(folder / "all.svm"), str(folder / "predicted")
        )
        predict(request, Run())
        table = np.loadtxt(folder / "predicted", ndmin=2)
        np.testing.assert_array_equal(table[:, 1], model.decision_values(data.X))
        np.testing.assert_array_equal(table[:, 0], model.predict(data.X))


@few
@given(data=drawn())
def test_one_labeled_file_or_two_files_give_the_same_model(data):
    with TemporaryDirectory() as name:
        folder = Path(name)
        one = trained(labeled_file(folder, data), data, folder / "one")
        two = trained(two_files(folder, data), data, folder / "two")
        # the manifests differ only in the positive label of the single file
        manifests = [json.loads(files.pop("manifest.json")) for files in (one, two)]
        assert one == two
        for manifest, label in zip(manifests, (1.0, None), strict=True):
            assert manifest["labels"].pop("trained_on") == label
            del manifest["manifest_sha256"]
        assert manifests[0] == manifests[1]


@few
@given(data=drawn(), n_tasks=st.integers(1, 3))
def test_merged_parts_are_the_whole_model(data, n_tasks):
    with TemporaryDirectory() as name:
        folder = Path(name)
        source, (choice, _) = two_files(folder, data), training_choice(data.parameters)
        whole = trained(source, data, folder / "whole")
        parts = [str(folder / str(number)) for number in range(n_tasks)]
        for number, part in enumerate(parts, 1):
            train_share(source, choice, Share(number, n_tasks), part, Run())
        merge(parts, str(folder / "merged"), Run())
        assert snapshot(folder / "merged") == whole


@few
@given(data=drawn())
def test_compressed_files_give_the_same_bytes(data):
    with TemporaryDirectory() as name:
        folder = Path(name)
        plain = two_files(folder, data)
        packed = [folder / "pos.svm.gz", folder / "unl.svm.gz"]
        for path in packed:
            path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
        compressed = TrainingInput(positives=str(packed[0]), unlabeled=str(packed[1]))
        written = trained(plain, data, folder / "plain")
        assert trained(compressed, data, folder / "compressed") == written


@few
@given(data=drawn(), shuffle=st.randoms(use_true_random=False))
def test_rows_keep_their_values_in_another_order_and_among_others(data, shuffle):
    model = data.model()
    order = [shuffle.randrange(len(data.X)) for _ in range(70)]  # with repeats
    values = model.decision_values(data.X)
    np.testing.assert_allclose(model.decision_values(data.X[order]), values[order], 1e-9, 1e-9)
    np.testing.assert_array_equal(model.predict(data.X[order]), model.predict(data.X)[order])


@few
@given(data=drawn(), shuffle=st.randoms(use_true_random=False))
def test_where_known_positives_lie_among_the_others_does_not_matter(data, shuffle):
    sides = list(data.y)
    shuffle.shuffle(sides)
    # mix the rows of P and U differently, but keep the order within each set
    order = np.empty(len(data.y), int)
    for side in (0, 1):
        order[np.flatnonzero(np.array(sides) == side)] = np.flatnonzero(data.y == side)
    moved = resvm_cli.fit(data.X[order], data.y[order], **data.parameters)
    assert moved.manifest == data.model().manifest


def every_row(data: Drawn) -> dict[str, Any]:
    """Return parameters for training one SVM on all rows, almost to the optimum."""
    kernel = {
        name: data.parameters[name] for name in ("kernel", "gamma") if name in data.parameters
    }
    return {**kernel, "method": "cwsvm", "tolerance": 1e-9}


def has_unique_bias(values: np.ndarray) -> bool:
    """Whether a row lies on the margin of the SVM; otherwise, a range of biases is optimal."""
    return bool(np.isclose(np.abs(values), 1.0, atol=1e-4).any())


@few
@given(data=drawn(), shuffle=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter_to_a_model_of_all_rows(data, shuffle):
    order = list(range(len(data.y)))
    shuffle.shuffle(order)
    expected = resvm_cli.fit(data.X, data.y, **every_row(data)).decision_values(data.X)
    model = resvm_cli.fit(data.X[order], data.y[order], **every_row(data))
    found = model.decision_values(data.X)
    assume(has_unique_bias(expected) and has_unique_bias(found))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@few
@given(data=drawn(), times=st.integers(2, 3), c_unl=st.sampled_from([0.5, 1.0, 2.0]))
def test_rows_given_several_times_at_a_lower_penalty_change_nothing(data, times, c_unl):
    once = resvm_cli.fit(data.X, data.y, **every_row(data), c_unl=c_unl)
    expected = once.decision_values(data.X)
    X, y = np.tile(data.X, (times, 1)), np.tile(data.y, times)
    found = resvm_cli.fit(X, y, **every_row(data), c_unl=c_unl / times).decision_values(data.X)
    assume(has_unique_bias(expected) and has_unique_bias(found))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def predicted(model: Path, source: Path) -> np.ndarray:
    target = source.with_suffix(".predicted")
    predict(PredictRequest(str(model), str(source), str(target)), Run())
    return np.loadtxt(target, ndmin=2)


@few
@given(data=drawn(), step=st.integers(2, 5))
def test_features_with_other_numbers_give_the_same_values(data, step):
    spread = np.zeros((len(data.X), step * data.X.shape[1] + 1))
    spread[:, step::step] = data.X
    with TemporaryDirectory() as name:
        folders = [Path(name, "as drawn"), Path(name, "spread")]
        answers = []
        for folder, X in zip(folders, (data.X, spread), strict=True):
            folder.mkdir()
            trained(two_files(folder, data._replace(X=X)), data, folder / "m")
            answers.append(predicted(folder / "m", write_svm(folder / "all.svm", X)))
        np.testing.assert_allclose(answers[1], answers[0], rtol=1e-9, atol=1e-9)


def write_table(path: Path, X: np.ndarray, names: list[str]) -> Path:
    lines = [",".join(names), *(",".join(repr(float(value)) for value in row) for row in X)]
    path.write_text("\n".join(lines) + "\n")
    return path


@few
@given(data=drawn(), shuffle=st.randoms(use_true_random=False))
def test_a_table_gives_the_values_of_svmlight_text_whatever_its_columns_are_called(data, shuffle):
    letters = list("abcdefghij")
    shuffle.shuffle(letters)
    with TemporaryDirectory() as name:
        folder = Path(name)
        trained(two_files(folder, data), data, folder / "text")
        expected = predicted(folder / "text", write_svm(folder / "all.svm", data.X))
        for names in (letters[: data.X.shape[1]], [f"x{at}" for at in range(data.X.shape[1])]):
            source = TrainingInput(
                positives=str(write_table(folder / "pos.csv", data.X[data.y == 1], names)),
                unlabeled=str(write_table(folder / "unl.csv", data.X[data.y == 0], names)),
            )
            model = folder / f"of {names[0]}"
            trained(source, data, model)
            found = predicted(model, write_table(folder / "all.csv", data.X, names))
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
            # columns are found by name, in any order
            turned = write_table(folder / "turned.csv", data.X[:, ::-1], names[::-1])
            np.testing.assert_array_equal(predicted(model, turned), found)
