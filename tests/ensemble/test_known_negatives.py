"""Known negatives: how bags draw them, what they cost, and how they are judged."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.decisions import choose_threshold
from resvm_cli.ensemble.ensemble import Predictor
from resvm_cli.ensemble.oob import OutOfBagSample
from resvm_cli.ensemble.plan import Plan, bag_of, resolve_defaults
from resvm_cli.errors import ParameterError
from resvm_cli.parameters import Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from tests.fitting import train_part

RNG = np.random.default_rng(4)
X = RNG.normal(size=(90, 3))
X[:30] += 1
P, U, N = np.split(X, [20, 70])


def data(*sets, **settings):
    return MemoryData(*(Rows.from_dense(each) for each in sets), **settings)


def plan_for(params, n_negatives=20):
    return resolve_defaults(params, 20, 50, 3, lambda: 1.0, rows_neg=n_negatives)


def test_known_negatives_leave_the_rows_of_p_and_u_in_a_bag_as_they_are():
    params = Params(seed=3)
    without, with_some = plan_for(params, 0), plan_for(params)
    for member in range(5):
        positive, unlabeled = bag_of(with_some, member)
        expected = bag_of(without, member)
        assert positive.tolist() == expected[0].tolist()
        assert unlabeled[: without.n_unl].tolist() == expected[1].tolist()
        known = unlabeled[without.n_unl :]
        assert len(known) == with_some.n_neg == with_some.n_unl // 3
        assert known.min() >= 50
        assert known.max() < 70
    assert bag_of(with_some, 0)[1].tolist() != bag_of(with_some, 1)[1].tolist()


def test_p_balances_the_penalties_of_u_and_of_known_negatives():
    plan = plan_for(Params(c_unl=2.0, w_pos=0.5, w_neg=3.0))
    assert plan.c_neg == 6.0
    total = plan.n_unl * plan.c_unl + plan.n_neg * plan.c_neg
    assert plan.n_pos * plan.c_pos == pytest.approx(0.5 * total)


def test_a_bag_holds_a_known_negative_for_three_rows_of_u_except_for_cwsvm():
    assert plan_for(Params(n_unl=7)).n_neg == 2
    assert plan_for(Params(n_unl=1)).n_neg == 1
    assert plan_for(Params(n_unl=30), 4).n_neg == 4
    whole = plan_for(Params(method="cwsvm"))
    assert whole.n_neg == 20
    assert bag_of(whole, 0)[1].tolist() == list(range(70))


def test_a_known_negative_is_judged_by_the_members_whose_bags_lack_it():
    rows = data(P, U, N)
    plan = Plan.resolve(Params(n_models=15), rows)
    part = train_part(plan, range(15), rows, Run(jobs=1))
    sample = OutOfBagSample.from_plan(plan)
    assert sample.unlabeled[-20:].tolist() == list(range(50, 70))
    seen = np.isnan(part.values[:, -20:])
    for member, problem in enumerate(part.problems):
        assert seen[member].tolist() == np.isin(np.arange(50, 70), problem.unlabeled).tolist()
    assert not seen.all(axis=0).any()


def test_a_heavier_penalty_lowers_the_values_of_known_negatives():
    hard = np.concatenate([N, P[:10] + 0.05])  # among the positives
    means = []
    for w_neg in (0.1, 10.0):
        rows = data(P, U, hard)
        params = Params(method="cwsvm", c_pos=2.0, w_neg=w_neg)
        plan = Plan.resolve(params, rows)
        part = train_part(plan, range(1), rows, Run(jobs=1))
        values = Predictor(part.ensemble).member_values(Rows.from_dense(hard[-10:]))
        means.append(float(values.mean()))
    assert means[1] < means[0]


def test_a_known_negative_above_the_threshold_counts_as_a_row_predicted_positive():
    known, unlabeled = np.linspace(1, 3, 20), np.linspace(-3, 1.3, 100)
    plain = choose_threshold(known, unlabeled)
    false = np.full(50, 1.5)
    raised = choose_threshold(known, unlabeled, false, negative_fraction=0.5)
    assert plain.value < 1.5 < raised.value
    true = choose_threshold(known, unlabeled, np.full(50, -2.0), negative_fraction=0.5)
    above = float((unlabeled > true.value).mean())
    assert true.fraction_positive == pytest.approx(
        above / 2
    )  # of U and of known negatives together


def test_files_and_memory_describe_known_negatives_by_a_digest():
    there, other = data(P, U, N).description(), data(P, U, N[::-1]).description()
    assert there["negative"]["rows"] == 20
    assert there["negative"]["sha256"] != other["negative"]["sha256"]
    assert "negative" not in data(P, U).description()


def test_solvers_with_two_penalties_and_a_penalty_without_negatives_are_refused():
    with pytest.raises(ParameterError, match="LIBSVM supports only one penalty"):
        plan_for(Params(solver="libsvm"))
    linear = Params(kernel="linear", solver="liblinear")
    with pytest.raises(ParameterError, match="LIBLINEAR supports only one penalty"):
        plan_for(linear)
    assert plan_for(linear, 0).solver == "liblinear"
    with pytest.raises(ParameterError, match="`w_neg` applies to known negatives"):
        Plan.resolve(Params(w_neg=2.0), data(P, U))


def test_large_bags_are_solved_with_three_penalties_too():
    many = np.random.default_rng(1).normal(size=(2600, 2))
    rows = data(P[:, :2] + 1, many, N[:, :2])
    params = Params(method="cwsvm", w_neg=50.0, c_unl=0.01)
    plan = Plan.resolve(params, rows)
    part = train_part(plan, range(1), rows, Run(jobs=1))
    (member,) = part.ensemble.members
    assert -member.coefficients.min() > 0.01  # only a known negative may exceed C_U
