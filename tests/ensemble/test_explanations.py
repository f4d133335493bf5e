"""What values are made of, against a sum over members done by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.decisions import decide
from resvm_cli.ensemble.ensemble import Predictor
from resvm_cli.ensemble.explanations import Explainer
from resvm_cli.ensemble.oob import TrainingRows, UnseenMask
from resvm_cli.ensemble.train import rows_drawn
from resvm_cli.parameters import Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.storage import model as directory
from resvm_cli.tuning.learn import learn, save
from tests.conftest import setting

RNG = np.random.default_rng(3)
KNOWN = np.round(RNG.random((12, 6)) * (RNG.random((12, 6)) < 0.7), 2)
OTHERS = np.round(RNG.random((40, 6)) * (RNG.random((40, 6)) < 0.7), 2)
OTHERS[3] = KNOWN[5]  # a row of U that is equal to one of P
OTHERS[7] = OTHERS[9]
EVERYTHING = 1000  # more parts than there are

COMMITTEE = (
    setting(Params(n_models=4, gamma=0.5, n_pos=6, n_unl=12), 1.0),
    setting(Params(n_models=3, gamma=4.0, n_pos=8, n_unl=9), 2.0),
)
BAGS = {"n_models": 4, "n_pos": 6, "n_unl": 12}
WEIGHTED = Params(feature_weights="relevance", **BAGS)
MIXED = (
    setting(WEIGHTED, 1.0, "quantile"),
    setting(Params(gamma=2.0, **BAGS), 2.0),
    setting(Params(kernel="linear", feature_weights="relevance:2", **BAGS), 1.5),
    setting(Params(kernel="linear", c_unl=0.1, **BAGS), 1.0, "quantile"),
    setting(Params(kernel="poly", feature_weights="relevance:2", **BAGS), 0.5),
)


def fitted(choice, scale=None):
    data = MemoryData(Rows.from_dense(KNOWN, 1), Rows.from_dense(OTHERS, 1), scale=scale)
    return data, learn(data, choice, Run(jobs=1))[1]


def judged(data, trained, ensemble):
    """Parts of the values of all rows, and what the ensemble itself says of them."""
    problems = trained.plan.problems(range(trained.plan.n_models))
    drawn = rows_drawn(problems)
    rows = Rows.concatenate([data.positives, *data.unlabeled()])
    unseen_mask = UnseenMask(problems, TrainingRows(data.positives, data.fetch(drawn), drawn))
    absent = unseen_mask.unseen(np.arange(len(rows)), rows)
    values = Predictor(ensemble).member_values(rows)
    means = decide(values, ensemble.sections, unseen=absent).means
    parts = Explainer(ensemble, data.positives, data.fetch(drawn), drawn, problems)
    return list(parts.explain(rows, absent, EVERYTHING)), means, absent


def kernel_value(kernel, one, other):
    """By the formulas of LIBSVM's manual, and those of fingerprints."""
    dot = float(one @ other)
    if kernel.name == "rbf":
        return np.exp(-kernel.gamma * float((one - other) @ (one - other)))
    if kernel.name == "laplacian":
        return np.exp(-kernel.gamma * np.abs(one - other).sum())
    if kernel.name == "poly":
        return (kernel.gamma * dot + kernel.coef0) ** kernel.degree
    if kernel.name == "sigmoid":
        return np.tanh(kernel.gamma * dot + kernel.coef0)
    if kernel.name == "tanimoto":
        return dot / (one @ one + other @ other - dot)
    smaller = np.minimum(one, other).sum()
    return smaller / (one.sum() + other.sum() - smaller)


def by_hand(trained, member_numbers, row):
    """What each training row adds to the mean of these members of one setting: P, then U."""
    added = np.zeros(len(KNOWN) + len(OTHERS))
    everything = np.vstack([KNOWN, OTHERS])
    ensemble = trained.ensemble
    dense = np.zeros((len(ensemble.pool), 7))
    dense[ensemble.pool.row_numbers, ensemble.pool.indices] = ensemble.pool.values
    dense = dense[:, 1:]
    for number in member_numbers:
        member = ensemble.members[number]
        for place, (support, coefficient) in enumerate(
            zip(member.support, member.coefficients, strict=True)
        ):
            first = 0 if place < member.n_positive else len(KNOWN)
            last = len(KNOWN) if place < member.n_positive else len(added)
            own = first + int((everything[first:last] == dense[support]).all(axis=1).argmax())
            value = kernel_value(ensemble.kernel_of(number), dense[support], row)
            added[own] += coefficient * value / len(member_numbers)
    return added


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid", "tanimoto", "minmax"])
def test_rows_add_what_the_members_say_by_hand(kernel):
    params = Params(kernel=kernel, n_models=7, n_pos=6, n_unl=12, coef0=0.3)
    if kernel in ("tanimoto", "minmax"):
        params = Params(kernel=kernel, n_models=7, n_pos=6, n_unl=12)
    data, trained = fitted(replace(params, auto=False))
    parts, _, absent = judged(data, trained, trained.ensemble)
    everything = np.vstack([KNOWN, OTHERS])
    for number in (0, 5, 13, 15, 40):
        found = parts[number]
        added = by_hand(trained, np.flatnonzero(absent[number]), everything[number])
        assert found.of_positives == pytest.approx(added[: len(KNOWN)].sum(), abs=1e-9)
        assert found.of_unlabeled == pytest.approx(added[len(KNOWN) :].sum(), abs=1e-9)
        for part in (*found.positives, *found.unlabeled):
            assert part.amount == pytest.approx(added[part.number], abs=1e-9)
        assert len(found.positives) == (added[: len(KNOWN)] > 1e-12).sum()
        assert len(found.unlabeled) == (added[len(KNOWN) :] < -1e-12).sum()
        assert [part.number < len(KNOWN) for part in found.positives] == [True] * len(
            found.positives
        )
        amounts = [part.amount for part in found.positives]
        assert amounts == sorted(amounts, reverse=True)


@pytest.mark.parametrize(
    ("choice", "scale"),
    [
        (Params(n_models=7, n_pos=6, n_unl=12, auto=False), None),
        (Params(n_models=7, n_pos=6, n_unl=12, auto=False), "standard"),
        (
            Params(kernel="linear", n_models=7, n_pos=6, n_unl=12, auto=False),
            None,
        ),
        (
            Params(kernel="linear", n_models=7, n_pos=6, n_unl=12, auto=False),
            "minmax",
        ),
        (Params(settings=tuple(COMMITTEE), auto=False), None),
        (Params(settings=tuple(MIXED), auto=False), None),
        (Params(settings=tuple(MIXED), auto=False), "standard"),
    ],
)
def test_parts_add_up_to_the_value_also_of_a_stored_model(choice, scale, tmp_path):
    data, trained = fitted(choice, scale)
    parts, means, _ = judged(data, trained, trained.ensemble)
    sums = [one.constant + one.of_positives + one.of_unlabeled + one.of_features for one in parts]
    assert np.allclose(sums, means, rtol=1e-9, atol=1e-9, equal_nan=True)
    assert np.allclose([one.value for one in parts], means, atol=1e-9, equal_nan=True)
    for one in parts:  # all parts are listed here but those that speak the other way
        assert sum(part.amount for part in one.features) == pytest.approx(one.of_features)
        of_rbf = choice.kernel == "rbf" and choice.settings != MIXED
        if of_rbf and not np.isnan(one.value):
            assert sum(part.amount for part in one.positives) == pytest.approx(one.of_positives)
            assert sum(part.amount for part in one.unlabeled) == pytest.approx(one.of_unlabeled)
    save(trained, str(tmp_path / "m"), force=False)
    stored = directory.load_model(str(tmp_path / "m"))
    assert judged(data, trained, stored.ensemble)[0] == parts


@pytest.mark.parametrize("scale", [None, "quantile"])
def test_rows_of_weighted_members_are_found_in_their_own_bags(scale):
    data, trained = fitted(replace(WEIGHTED, auto=False), scale)
    parts, means, absent = judged(data, trained, trained.ensemble)
    assert np.allclose([one.value for one in parts], means, atol=1e-9, equal_nan=True)
    problems = trained.plan.problems(range(4))
    scaled = [dense(data.scaled(rows, scale)) for rows in (data.positives, *data.unlabeled())]
    for number in (0, 5, 13, 40):
        row = np.vstack(scaled)[number]
        unseen = np.flatnonzero(absent[number])
        added = np.zeros(len(KNOWN) + len(OTHERS))
        for place in unseen:
            member, problem = trained.ensemble.members[place], problems[place]
            factors = dense(member.weights)[0]
            support = dense(trained.ensemble.pool.take(member.support))
            bags = np.unique(problem.positive), np.unique(problem.unlabeled)
            for at, coefficient in enumerate(member.coefficients):
                of_unl = int(at >= member.n_positive)
                equal = (scaled[of_unl][bags[of_unl]] * factors == support[at]).all(axis=1)
                own = bags[of_unl][equal.argmax()] + of_unl * len(KNOWN)
                apart = row * factors - support[at]
                value = np.exp(-trained.ensemble.sections[0].kernel.gamma * apart @ apart)
                added[own] += coefficient * value / len(unseen)
        found = parts[number]
        for part in (*found.positives, *found.unlabeled):
            assert part.amount == pytest.approx(added[part.number], abs=1e-9)
        assert len(found.positives) == (added[: len(KNOWN)] > 1e-12).sum()
        assert len(found.unlabeled) == (added[len(KNOWN) :] < -1e-12).sum()


def dense(rows):
    matrix = np.zeros((len(rows), 6))
    matrix[rows.row_numbers, rows.indices - 1] = rows.values
    return matrix


def test_a_feature_of_several_settings_is_listed_once():
    data, trained = fitted(Params(settings=tuple(MIXED), auto=False), "standard")
    parts, _, _ = judged(data, trained, trained.ensemble)
    for one in parts:
        for listed in (one.positives, one.unlabeled, one.features):
            assert len({part.number for part in listed}) == len(listed)
    assert any(len(one.features) == 6 for one in parts)


def test_linear_members_are_made_of_features():
    data, trained = fitted(Params(kernel="linear", n_models=5, n_pos=6, n_unl=12, auto=False))
    parts, _, absent = judged(data, trained, trained.ensemble)
    weights = np.zeros((5, 7))
    for number, member in enumerate(trained.ensemble.members):
        row = trained.ensemble.pool.take(member.support)
        weights[number, row.indices] = row.values * member.coefficients[0]
    mean = weights[absent[20]].mean(axis=0)
    expected = mean[1:] * OTHERS[20 - len(KNOWN)]
    assert {part.number: part.amount for part in parts[20].features} == pytest.approx(
        {feature + 1: amount for feature, amount in enumerate(expected) if amount}
    )
    amounts = [abs(part.amount) for part in parts[20].features]
    assert amounts == sorted(amounts, reverse=True)
    assert not parts[20].positives


def test_no_more_parts_than_asked_for_and_a_row_in_every_bag_has_none():
    data, trained = fitted(Params(n_models=7, n_pos=6, n_unl=12, auto=False))
    problems = trained.plan.problems(range(trained.plan.n_models))
    drawn = rows_drawn(problems)
    maker = Explainer(trained.ensemble, data.positives, data.fetch(drawn), drawn, problems)
    absent = np.ones((2, 7), bool)
    absent[1] = False
    first, second = maker.explain(data.positives.slice(0, 2), absent, 2)
    assert (len(first.positives), len(first.unlabeled)) == (2, 2)
    assert np.isnan(second.value)
    assert second.positives == ()


def test_given_kernel_values_are_looked_up():
    everything = np.vstack([KNOWN, OTHERS])
    gram = everything @ everything.T
    positive = np.arange(len(gram)) < len(KNOWN)
    data = MemoryData.from_matrix(gram, positive, precomputed=True, zero_based=True)
    params = Params(kernel="precomputed", n_models=7, n_pos=6, n_unl=12)
    _, trained = learn(data, replace(params, auto=False), Run(jobs=1))
    parts, means, _ = judged(data, trained, trained.ensemble)
    assert np.allclose([one.value for one in parts], means, atol=1e-9, equal_nan=True)
    assert any(one.positives for one in parts)
