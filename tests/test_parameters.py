"""For each parameter in the table, bad values are rejected with a message that names it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import resvm_cli
from resvm_cli import threads as parallel
from resvm_cli.api.functions import TUNED_OPTIONS
from resvm_cli.errors import ResvmError
from resvm_cli.parameters import (
    SHARED_NAMES,
    TUNED_NAMES,
)
from tests.fitting import ESTIMATORS, estimator

NO_NUMBER = (object(), "nonsense", [1, "x"], b"x", {"a": 1}, "1..", "5..1")
BAD = (*NO_NUMBER, -1, 0, float("nan"), float("inf"), -float("inf"), 2.5, [], {}, "")
OPTION = re.compile(r"(?<![\w-])--?(?!inf)[a-zA-Z][\w-]*")
# Values from BAD that are valid for some parameters.
SOUND = {
    "coef0": (-1, 0, 2.5),
    "bias": (-1, 2.5),
    "contamination_pos": (0,),
    "contamination_unl": (0,),
    "seed": (0,),
    "random_state": (0,),
    "n_jobs": (-1,),
    "positive_label": (0,),
    "auto": (0,),  # False
    **dict.fromkeys(("columns", "drop", "categorical"), ([],)),
    "tolerance": (2.5,),  # rejected later, by the solver
    **dict.fromkeys(("w_pos", "w_neg", "c_unl", "c_pos", "gamma", "unl_per_pos"), (2.5,)),
}
PATHS = ("params", "model")  # any text may be a file name
NEEDS = {
    "c_pos": {"method": "cwsvm"},
    "bias": {"kernel": "linear", "solver": "liblinear"},
    "degree": {"kernel": "poly"},
    "coef0": {"kernel": "poly"},
}


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:12] += 1
    return X, np.repeat([1, 0], [12, 28])


@pytest.fixture(autouse=True)
def _threads_held(monkeypatch):
    """Do not set the number of BLAS threads two thousand times: nothing is computed here."""
    monkeypatch.setattr(parallel, "_blas_has_one_thread", True)


def bad_values(name):
    for value in BAD:
        sound = any(type(value) is type(one) and value == one for one in SOUND.get(name, ()))
        if not sound and not (name in PATHS and isinstance(value, str)):
            yield value


def assert_refused(call, name, value):
    with pytest.raises(ValueError, match=r".") as caught:
        call()
    text = str(caught.value)
    assert isinstance(caught.value, ResvmError), f"{name}={value!r}: {text}"
    assert name in text, f"{name}={value!r}: {text}"
    assert not OPTION.search(text), text


@pytest.mark.parametrize("name", [*TUNED_OPTIONS, "groups", "n_jobs", "random_state"])
def test_tune_refuses_bad_values_by_name(rows, name):
    if name in ("oob", "no_extend"):
        pytest.skip("every value is true or false")
    for value in bad_values(name):
        chosen = {"n_models": 2, "trials": 2, **NEEDS.get(name, {}), name: value}
        assert_refused(lambda chosen=chosen: resvm_cli.tune(*rows, **chosen), name, value)


@pytest.mark.parametrize(
    "name",
    ["model", "top", "contamination_pos", "contamination_unl", "fdr", "ids", "n_jobs", "kernel"],
)
def test_rank_refuses_bad_values_by_name(rows, name):
    for value in bad_values(name):
        chosen = {name: value, "audit": name == "contamination_pos"}
        assert_refused(lambda chosen=chosen: resvm_cli.rank(*rows, **chosen), name, value)


@pytest.mark.thorough
@pytest.mark.parametrize("method", ESTIMATORS)
def test_estimators_refuse_bad_values_by_name(rows, method):
    known = set(estimator(method).get_params())
    for name in known - {"auto"}:  # every value is true or false
        for value in bad_values(name):
            few = {"n_models": 2} if "n_models" in known else {}
            needed = {k: v for k, v in NEEDS.get(name, {}).items() if k != "method"}
            model = ESTIMATORS[method](**few | needed | {name: value})
            assert_refused(lambda model=model: model.fit(*rows), name, value)


def test_tuning_chooses_some_parameters_and_takes_others_for_all_candidates():
    others = {"kernel", "feature_weights", "w_neg", "seed"}
    assert set(SHARED_NAMES) == others
    assert not set(SHARED_NAMES) & set(TUNED_NAMES)
    assert {"c_unl", "w_pos", "n_pos", "n_unl", "gamma"} <= set(TUNED_NAMES)
