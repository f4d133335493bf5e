"""Models do not depend on the form of the data, or on how and where they are trained.

Values are multiples of 1/8, so kernel values are exact in any order of summation. With rounded
kernel values, a solver may take different steps before it stops at its tolerance, and results would
agree only to about 1e-3.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from resvm_cli.commands.predict import PredictOptions, predict_rows
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.run import Run
from resvm_cli.tuning.choice import read_params
from resvm_cli.tuning.learn import train
from tests.commands.test_train import snapshot
from tests.conftest import write_svm
from tests.fitting import fitted

# random rows are often badly scaled or hard to separate
pytestmark = pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")

GAMMA = 0.125
few = settings(max_examples=10, deadline=None)


class Drawn(NamedTuple):
    """Rows, their labels and the training parameters."""

    X: np.ndarray
    y: np.ndarray
    parameters: dict[str, Any]

    def model(self, X: Any = None, **changed: Any) -> Any:
        return fitted(self.X if X is None else X, self.y, **{**self.parameters, **changed})


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


def assert_same_values(found: Any, X: Any, expected: Any, rows: np.ndarray) -> None:
    values = expected.decision_values(rows)
    np.testing.assert_allclose(found.decision_values(X), values, rtol=1e-9, atol=1e-9)
    assert found.threshold_ == pytest.approx(expected.threshold_, rel=1e-9, abs=1e-9)


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
    train(source, read_params({**data.parameters, "auto": False}), str(target), Run())
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
@given(data=drawn(), shuffle=st.randoms(use_true_random=False))
def test_where_known_positives_lie_among_the_others_does_not_matter(data, shuffle):
    sides = list(data.y)
    shuffle.shuffle(sides)
    # mix the rows of P and U differently, but keep the order within each set
    order = np.empty(len(data.y), int)
    for side in (0, 1):
        order[np.flatnonzero(np.array(sides) == side)] = np.flatnonzero(data.y == side)
    moved = fitted(data.X[order], data.y[order], **data.parameters)
    assert moved.manifest_ == data.model().manifest_


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
    expected = fitted(data.X, data.y, **every_row(data)).decision_values(data.X)
    model = fitted(data.X[order], data.y[order], **every_row(data))
    found = model.decision_values(data.X)
    assume(has_unique_bias(expected) and has_unique_bias(found))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@few
@given(data=drawn(), times=st.integers(2, 3), c_unl=st.sampled_from([0.5, 1.0, 2.0]))
def test_rows_given_several_times_at_a_lower_penalty_change_nothing(data, times, c_unl):
    once = fitted(data.X, data.y, **every_row(data), c_unl=c_unl)
    expected = once.decision_values(data.X)
    X, y = np.tile(data.X, (times, 1)), np.tile(data.y, times)
    found = fitted(X, y, **every_row(data), c_unl=c_unl / times).decision_values(data.X)
    assume(has_unique_bias(expected) and has_unique_bias(found))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def predicted(model: Path, source: Path) -> np.ndarray:
    target = source.with_suffix(".predicted")
    predict_rows(str(model), str(source), PredictOptions(output=str(target), form="text"), Run())
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
