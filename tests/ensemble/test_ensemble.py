"""Votes, decision values and pooled prediction."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics.pairwise import pairwise_kernels

from resvm_cli import rows as dataset
from resvm_cli.data.scaling import QuantileScaling
from resvm_cli.ensemble import ensemble as model
from resvm_cli.ensemble.decisions import decide
from resvm_cli.ensemble.ensemble import Ensemble, Member, Predictor, Section
from resvm_cli.rows import Rows
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.products import SparseMatrix
from resvm_cli.svm.support_vectors import BLOCK_ROWS
from tests.conftest import ROOT
from tests.programs import run

RNG = np.random.default_rng(8)
KERNELS = [
    Kernel("linear"),
    Kernel("poly", gamma=0.3, coef0=0.7, degree=3),
    Kernel("rbf", gamma=0.2),
    Kernel("sigmoid", gamma=0.05, coef0=0.1),
]


@pytest.mark.parametrize(
    ("psi", "votes", "value"),
    [
        ([1.0, 2.0, -0.5], 2 / 3, 2 / 3),  # divided: the votes
        ([-1.0, -2.0, -0.5], 0.0, -3.5),  # unanimous negative: the sum
        ([1.0, 2.0, 0.5], 1.0, 4.5),  # unanimous positive: one more than the sum
        ([1.0, 0.0, -1.0], 0.5, 0.5),  # sgn(0) = 0
        ([0.0, 0.0], 0.5, 0.5),
        ([0.0, -1.0], 0.25, 0.25),  # half a vote: not unanimous
        ([0.0, 1.0], 0.75, 0.75),
        ([2.5], 1.0, 3.5),  # one member
        ([-2.5], 0.0, -2.5),
        ([0.0], 0.5, 0.5),
    ],
)
def test_votes_and_decision_values_follow_the_paper(psi, votes, value):
    found = decide(np.array([psi]))
    assert found.votes.tolist() == [votes]
    assert found.values.tolist() == [value]


def test_cwsvm_keeps_the_svms_own_value():
    found = decide(np.array([[2.5], [-0.1], [0.0]]), single=True)
    assert found.values.tolist() == [2.5, -0.1, 0.0]
    assert found.labels(0.0).tolist() == [1, -1, -1]


def test_a_tied_vote_is_not_positive():
    found = decide(np.array([[1.0, -3.0], [1.0, 0.0]]))
    assert found.labels(0.5).tolist() == [-1, 1]


psi_arrays = st.tuples(st.integers(1, 12), st.integers(1, 8)).flatmap(
    lambda shape: arrays(
        np.float64, shape, elements=st.floats(-3, 3).map(lambda value: round(value, 1))
    )
)


@settings(max_examples=100, deadline=None)
@given(psi_arrays)
def test_breaking_ties_orders_by_votes_first_and_then_by_the_sum(psi):
    found = decide(psi)
    broken = found.values_without_ties()
    for a in range(len(psi)):
        for b in range(len(psi)):
            same = found.votes[a] == found.votes[b]
            if found.votes[a] > found.votes[b] or (same and found.sums[a] > found.sums[b] + 1e-3):
                assert broken[a] > broken[b]
    unanimous = (found.votes == 0) | (found.votes == 1)
    assert (broken[unanimous] == found.values[unanimous]).all()


def test_breaking_ties_is_the_documented_formula():
    found = decide(np.array([[1.0, -0.4, -0.1]]))
    expected = 1 / 3 - (1 - (1 + 0.5 / 1.5) / 2) / 12
    assert found.values_without_ties() == pytest.approx([expected], rel=1e-14)


def test_breaking_ties_survives_enormous_sums():
    found = decide(np.array([[1e9, -1.0], [-1e9, 1.0]]))
    assert found.values_without_ties() == pytest.approx([0.5, 0.5 - 1 / 8], abs=1e-9)


def test_large_sums_are_still_told_apart():
    sums = np.array([-93.0, -86.0, -37.5, -37.4, 37.4, 60.0, 93.0])
    found = decide(np.column_stack([sums + 1.0, -np.sign(sums)]) - 0.0)
    broken = found.values_without_ties()
    order = np.argsort(found.sums)
    assert (np.diff(broken[order]) > 0).all()


def ensemble(
    kernel: Kernel, n_models: int = 6, pool_size: int = 30, width: int = 9, size: int = 8
) -> Ensemble:
    rng = np.random.default_rng(3)
    features = rng.standard_normal((pool_size, width)) * (rng.random((pool_size, width)) < 0.6)
    features[4] = features[11]  # equal rows must be joined
    members = [
        Member(
            np.sort(rng.choice(pool_size, size, replace=False)),
            rng.standard_normal(size),
            float(rng.standard_normal()),
            4,
        )
        for _ in range(n_models)
    ]
    return ensemble_of(kernel, Rows.from_dense(features), members, False)


def ensemble_of(kernel: Kernel, pool: Rows, members: list[Member], single: bool) -> Ensemble:
    return Ensemble((Section(kernel, range(len(members))),), pool, members, single)


def weighted(machine: Ensemble) -> Ensemble:
    """The ensemble with members that weight features, each with its own support vectors."""
    rng = np.random.default_rng(4)
    width = machine.pool.max_index
    pools, members = [], []
    for number, member in enumerate(machine.members):
        factors = rng.random(width) * (rng.random(width) < 0.8) + (np.arange(width) == 0)
        pools.append(machine.pool.take(member.support).times(Rows.from_dense([factors])))
        size = len(member.support)
        support, weights = np.arange(size) + number * size, Rows.from_dense([factors])
        members.append(replace(member, support=support, weights=weights))
    return replace(machine, pool=Rows.concatenate(pools), members=members)


def kernel_values(machine: Ensemble, features: np.ndarray) -> np.ndarray:
    """Kernel values of rows (dense, first index 1) with the pool, by scikit-learn."""
    pool = np.zeros((len(machine.pool), features.shape[1]))
    pool[machine.pool.row_numbers, machine.pool.indices - 1] = machine.pool.values
    kernel = machine.sections[0].kernel
    options = kernel.description()
    return pairwise_kernels(features, pool, metric=options.pop("name"), **options)


def reference(machine: Ensemble, features: np.ndarray) -> np.ndarray:
    """Member values straight from the definition."""
    values = kernel_values(machine, features)
    return np.column_stack([values[:, m.support] @ m.coefficients - m.rho for m in machine.members])


# features 10 to 12 are unknown to every member
FEATURES = RNG.standard_normal((300, 12)) * (RNG.random((300, 12)) < 0.7)


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_pooled_values_are_the_members_own(kernel, dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(model, "NEVER_DENSE_CELLS", 0)
    machine = ensemble(kernel)
    found = Predictor(machine).member_values(Rows.from_dense(FEATURES))
    assert found == pytest.approx(reference(machine, FEATURES), rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_large_index_needs_no_large_table(kernel, monkeypatch):
    machine = ensemble(kernel)
    rows = Rows.from_dense(FEATURES)
    expected = Predictor(machine).member_values(rows)
    monkeypatch.setattr(dataset, "LASTING_TABLE", 0)
    monkeypatch.setattr(dataset, "TABLE_REACH", 0)

    def spread(given: Rows) -> Rows:
        return Rows(given.indptr, given.indices * np.int32(100_000_000), given.values)

    wide = ensemble_of(kernel, spread(machine.pool), machine.members, False)
    assert Predictor(wide).member_values(spread(rows)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("width", "pool_size"), [(1, 17), (9, 83), (22, 700), (64, 550), (300, 300)]
)
@pytest.mark.parametrize(
    "kernel", [*KERNELS, "weighted"], ids=lambda one: getattr(one, "name", one)
)
def test_a_rows_value_does_not_depend_on_its_place_in_a_block(
    kernel, width, pool_size, dense, monkeypatch
):
    if not dense:
        monkeypatch.setattr(model, "NEVER_DENSE_CELLS", 0)
    if kernel == "weighted":
        machine = weighted(ensemble(KERNELS[2], 7, pool_size, width, size=pool_size))
    else:
        machine = ensemble(kernel, 7, pool_size, width, size=pool_size)
    predictor = Predictor(machine)
    row = Rows.from_dense(RNG.standard_normal((1, width)))
    everywhere = predictor.member_values(row.take(np.zeros(BLOCK_ROWS, np.int64)))
    alone = predictor.member_values(row)
    assert {value.tobytes() for value in everywhere} == {alone[0].tobytes()}


@pytest.mark.slow
def test_nor_does_it_on_other_processors():
    # OpenBLAS picks its kernels by processor; this one every x86-64 has, elsewhere it is ignored
    name = "test_a_rows_value_does_not_depend_on_its_place_in_a_block"
    chosen = f"tests/ensemble/test_ensemble.py::{name}"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", chosen]
    ran = run(command, env={"OPENBLAS_CORETYPE": "Nehalem"}, cwd=ROOT)
    assert ran.code == 0, ran.out


def test_rbf_values_of_rows_far_out_come_from_differences():
    # from norms the distance to its own copy would be about 1e-4, and the value e^-1e-4
    far = np.array([[1e6 + 0.1, 2.3, 3.7], [1e6 + 1.1, 2.3, 3.7]])
    machine = ensemble_of(
        Kernel("rbf", gamma=1.0),
        Rows.from_dense(far),
        [Member(np.array([0, 1]), np.array([1.0, 10.0]), 0.0, 1)],
        True,
    )
    queries = np.array([[1e6 + 0.1, 2.3, 3.7, 0.0], [1e6 + 0.6, 2.3, 3.7, 2.0]])
    found = Predictor(machine).decisions(Rows.from_dense(queries)).values
    expected = [1 + 10 * np.exp(-1.0), 11 * np.exp(-0.25 - 4.0)]
    assert found == pytest.approx(expected, rel=1e-9)


def mixed_ensemble() -> Ensemble:
    """Groups of members that differ in kernel, scaling and weighting."""
    parts = [
        (ensemble(KERNELS[2]), None),
        (ensemble(KERNELS[2], n_models=1), "quantile"),
        (weighted(ensemble(KERNELS[2], n_models=3)), "quantile"),
        (weighted(ensemble(Kernel("rbf", gamma=0.7), n_models=1)), "quantile"),
        (weighted(ensemble(KERNELS[1], n_models=2)), "quantile"),
        (ensemble(KERNELS[0], n_models=2), "quantile"),
        (ensemble(KERNELS[3], n_models=2), None),
    ]
    scaling = QuantileScaling.learn(Rows.from_dense(FEATURES))
    groups: list[Section] = []
    members: list[Member] = []
    size = 0
    for part, kind in parts:
        (group,) = part.sections
        run = range(len(members), len(members) + len(part.members))
        groups.append(Section(group.kernel, run, 1.0 + len(groups), 0.1, 0.5, kind))
        members += [replace(one, support=one.support + size) for one in part.members]
        size += len(part.pool)
    pool = Rows.concatenate([part.pool for part, _ in parts])
    return Ensemble(tuple(groups), pool, members, False, {"quantile": scaling})


def test_mixed_members_are_scored_section_by_section():
    machine = mixed_ensemble()
    sections = list(machine.uniform_parts())
    assert [len(section.members) for section in sections] == [6, 1, 4, 2, 2, 2]
    rows = Rows.from_dense(FEATURES)
    whole = Predictor(machine)
    values = whole.member_values(rows)
    first = 0
    for section in sections:
        scaled = section.scaled(rows, section.sections[0])
        apart = replace(section, sections=tuple(replace(g, scaling=None) for g in section.sections))
        own = values[:, first : first + len(section.members)]
        assert Predictor(apart).member_values(scaled).tobytes() == own.tobytes()
        first += len(section.members)
    steps = [whole.member_values(rows.slice(at, at + 7)) for at in range(0, 294, 7)]
    assert np.concatenate(steps).tobytes() == values[:294].tobytes()
    means = sum(
        group.weight * (values[:, group.columns].mean(axis=1) - group.shift) / group.spread
        for group in machine.sections
    ) / sum(group.weight for group in machine.sections)
    assert whole.decisions(rows).means == pytest.approx(means, rel=1e-12)


def test_members_of_a_mixed_ensemble_do_not_depend_on_the_others():
    machine = mixed_ensemble()
    rows = Rows.from_dense(FEATURES)
    together = Predictor.with_independent_members(machine, rows, 13).member_values(rows)
    for number in range(len(machine.members)):
        alone = Predictor.with_independent_members(machine.part(number, number + 1), rows, 13)
        assert alone.member_values(rows)[:, 0].tobytes() == together[:, number].tobytes()
    assert together == pytest.approx(Predictor(machine).member_values(rows), rel=1e-11, abs=1e-11)


def test_rows_scored_with_independent_members_decide_what_is_dense():
    machine = ensemble(KERNELS[2])
    rows = Rows.from_dense(FEATURES)
    sparse = rows.entries(np.arange(len(rows.values)) % 50 == 0)
    for scored, multiple in ((rows, BLOCK_ROWS), (sparse, 1)):
        predictor = Predictor.with_independent_members(machine, scored, FEATURES.shape[1] + 1)
        assert predictor.rows_multiple == multiple


def test_values_whose_squares_overflow_are_infinitely_far_away():
    machine = ensemble_of(
        Kernel("rbf", gamma=1.0),
        Rows.from_dense(np.array([[1.0, 2.0]])),
        [Member(np.array([0]), np.array([1.0]), -0.25, 1)],
        True,
    )
    found = Predictor(machine).decisions(Rows.from_dense(np.array([[1e200, 0.0], [0.0, -1e300]])))
    assert found.values.tolist() == [0.25, 0.25]


def test_a_pool_without_any_feature_is_still_a_model():
    empty = Rows(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0))
    for kernel in KERNELS:
        machine = ensemble_of(kernel, empty, [Member(np.array([0]), np.array([2.0]), 0.5, 1)], True)
        found = Predictor(machine).decisions(Rows.from_dense(np.array([[0.0], [3.0]]))).values
        assert np.isfinite(found).all()
        if kernel.name == "rbf":
            assert found == pytest.approx([1.5, 2 * np.exp(-0.2 * 9) - 0.5])


def test_a_few_wide_support_rows_are_dense_only_where_a_block_as_wide_has_room(monkeypatch):
    machine = ensemble(Kernel("rbf", gamma=0.2), pool_size=30, width=9)
    for cells, kind in ((9 * BLOCK_ROWS, np.ndarray), (9 * BLOCK_ROWS - 1, SparseMatrix)):
        monkeypatch.setattr(model, "NEVER_DENSE_CELLS", cells)
        assert isinstance(Predictor(machine)._parts[0].scorer._matrix, kind)


def test_the_fingerprint_is_stable_and_covers_what_kernels_are_made_of(monkeypatch):
    found = model.numeric_fingerprint()
    assert found == model.numeric_fingerprint()
    assert len(found) == 16
    monkeypatch.setattr(model, "exp_in_place", lambda block: np.exp2(block, out=block))
    assert model.numeric_fingerprint() != found


def test_linear_weights_beyond_the_cache_are_sparse_with_the_same_bytes(monkeypatch):
    rng = np.random.default_rng(8)
    weights = rng.standard_normal((6, 9)) * (rng.random((6, 9)) < 0.4)
    members = [Member(np.array([number]), np.ones(1), 0.1 * number, 1) for number in range(6)]
    machine = ensemble_of(Kernel("linear"), Rows.from_dense(weights), members, False)
    queries = Rows.from_dense(rng.standard_normal((9, 11)))  # two features without a weight
    small = Predictor(machine)
    monkeypatch.setattr(model, "MAX_CACHED_WEIGHTS", 53)
    large = Predictor(machine)
    assert not isinstance(small._parts[0].scorer._weights, SparseMatrix)
    assert isinstance(large._parts[0].scorer._weights, SparseMatrix)
    assert large.member_values(queries).tobytes() == small.member_values(queries).tobytes()
    monkeypatch.setattr(model, "MAX_CACHED_WEIGHTS", 54)
    assert not isinstance(Predictor(machine)._parts[0].scorer._weights, SparseMatrix)
