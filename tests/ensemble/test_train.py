"""Members of a plan: the same whichever solver trains them."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.plan import Plan
from resvm_cli.parameters import KERNEL_NAMES, Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.svm import libsvm, products, smo
from resvm_cli.svm.kernels import with_serials
from tests.fitting import train_part

RNG = np.random.default_rng(7)
P, U = np.round(3 * RNG.random((25, 4))) + 1, np.round(3 * RNG.random((80, 4)))


def train(params, positives=P, unlabeled=U):
    sets = Rows.from_dense(np.concatenate([positives, unlabeled]))
    if params.kernel == "precomputed":
        both = np.concatenate([positives, unlabeled])
        sets = with_serials(Rows.from_dense(both @ both.T))
    n_positive = len(positives)
    data = MemoryData(sets.slice(0, n_positive), sets.slice(n_positive, len(sets)))
    plan = Plan.resolve(params, data)
    return plan, train_part(plan, range(plan.n_models), data, Run(jobs=1))


def bits(part):
    members = [
        (member.support.tolist(), member.coefficients.tobytes(), member.rho, member.n_positive)
        for member in part.ensemble.members
    ]
    return members, part.ensemble.pool.content_keys(), part.values.tobytes()


@pytest.mark.parametrize("method", ["resvm", "bagging", "cwsvm"])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_auto_and_libsvm_give_the_same_bits(kernel, method, monkeypatch):
    n_models = None if method == "cwsvm" else 3
    settings = {"kernel": kernel, "method": method, "n_models": n_models, "c_unl": 3.0}
    auto, ours = train(Params(**settings))
    monkeypatch.delattr(smo._blocks, "solve")
    given, theirs = train(Params(solver="libsvm", **settings))
    assert bits(theirs) == bits(ours)
    assert given.settings[0].parameters() == auto.settings[0].parameters()
    assert given.settings[0].solver == auto.settings[0].solver == "libsvm"


def test_auto_leaves_large_bags_to_libsvm(monkeypatch):
    monkeypatch.setattr(products, "MAX_ROWS", 20)
    monkeypatch.delattr(smo._blocks, "solve")
    called = []
    train_one = libsvm.train
    monkeypatch.setattr(libsvm, "train", lambda *args: called.append(1) or train_one(*args))
    train(Params(n_models=2))
    assert called == [1, 1]


def test_with_feature_weights_too_libsvm_is_called_for_every_bag(monkeypatch):
    params = {"feature_weights": "relevance", "n_models": 2}
    _, ours = train(Params(**params))
    monkeypatch.delattr(smo._blocks, "solve")
    _, theirs = train(Params(solver="libsvm", **params))
    assert bits(theirs) == bits(ours)
