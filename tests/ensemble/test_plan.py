"""Bags, defaults and penalties of the three methods."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli import randomness
from resvm_cli.ensemble.plan import Plan, SettingPlan, resolve_defaults
from resvm_cli.errors import ParameterError
from resvm_cli.parameter_types import check_values
from resvm_cli.parameters import TUNING_TABLE, Params, TuningParameters
from tests.fitting import problems


def plan(n_pos: int = 100, n_unl: int = 1000, **options) -> SettingPlan:
    return resolve_defaults(Params(**options), n_pos, n_unl, 3, lambda: 1.0)


def test_a_members_bag_depends_on_seed_and_number_alone():
    def bags(n_models: int, seed: int = 3) -> list[list[int]]:
        settled = plan(n_models=n_models, seed=seed)
        return [
            [*task.positive.tolist(), *task.unlabeled.tolist()]
            for task in problems(settled, range(n_models))
        ]

    few, many = bags(3), bags(8)
    assert many[:3] == few
    assert len({tuple(bag) for bag in many}) == 8
    assert bags(3, seed=4) != few


def test_the_draw_is_the_one_that_models_on_disk_were_made_with():
    # golden: a change here breaks the out-of-bag values of every stored model
    bits = randomness.bag_bits(0, 0)
    assert randomness.below(bits, 1000, 8).tolist() == [942, 316, 722, 125, 422, 648, 56, 818]
    assert randomness.below(bits, 10, 8).tolist() == [2, 6, 8, 0, 9, 9, 1, 5]
    bits = randomness.bag_bits(7, 49)
    assert randomness.below(bits, 2**31, 3).tolist() == [1408112917, 886036003, 1488164110]


def test_every_member_has_a_solver_seed_of_its_own():
    drawing = {"kernel": "linear", "solver": "liblinear"}  # LIBSVM draws nothing
    seeds = [task.seed for task in problems(plan(n_models=50, **drawing), range(50))]
    assert len(set(seeds)) == 50
    assert seeds[:3] == [task.seed for task in problems(plan(n_models=3, **drawing), range(3))]
    assert seeds[0] != next(problems(plan(seed=1, **drawing), range(1))).seed
    # not from the stream of the bag, which has the key (member,)
    keys = [np.random.SeedSequence(0, spawn_key=(member, 1)) for member in range(50)]
    assert seeds == [int(key.generate_state(1)[0]) for key in keys]


def test_draws_are_uniform_with_replacement_and_in_range():
    drawn = randomness.below(randomness.bag_bits(1, 0), 7, 70_000)
    counts = np.bincount(drawn, minlength=7)
    assert len(counts) == 7
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(10_000)
    assert randomness.below(randomness.bag_bits(1, 0), 1, 5).tolist() == [0] * 5


def test_the_largest_random_number_still_gives_a_row():
    class AllOnes:
        def random_raw(self, size: int) -> np.ndarray:
            return np.full(size, 2**64 - 1, np.uint64)

    for n_rows in (1, 3, 10, 2**31 - 2, 2**40 + 1):
        assert randomness.below(AllOnes(), n_rows, 1).tolist() == [n_rows - 1]


@pytest.mark.parametrize(
    ("n_pos", "expected"),
    [(1, 5), (5, 5), (6, 6), (50, 50), (199, 199), (200, 200), (9999, 200)],
)
def test_default_bag_sizes(n_pos, expected):
    settled = plan(n_pos)
    assert (settled.n_pos, settled.n_unl, settled.n_models) == (expected, 2 * expected, 50)
    assert settled.w_pos == 0.7


def test_half_of_u_or_more_stays_out_of_a_bag_by_default():
    assert plan(n_pos=60, n_unl=200).n_unl == 100
    assert plan(n_pos=60, n_unl=1).n_unl == 1


def test_resvm_penalties_follow_the_papers_formula():
    settled = plan(n_pos=50, n_unl=2000, c_unl=0.1, w_pos=4.8)
    (task,) = problems(settled, range(1))
    assert (len(task.positive), len(task.unlabeled)) == (50, 100)
    assert task.c_unl == 0.1
    assert task.c_pos == pytest.approx(0.1 * 4.8 * 100 / 50, rel=1e-15)
    smaller = Params(n_pos=10, n_unl=30, c_unl=0.1, w_pos=4.8)  # than P has rows
    settled = resolve_defaults(smaller, 50, 2000, 3, lambda: 1.0)
    assert settled.c_pos == pytest.approx(0.1 * 4.8 * 30 / 10, rel=1e-15)


def test_bagging_takes_all_of_p_and_balances_the_penalties():
    settled = plan(40, 500, method="bagging", c_unl=2.0)
    for task in problems(settled, range(3)):
        assert task.positive.tolist() == list(range(40))
        assert len(task.unlabeled) == 40
        assert task.c_pos * 40 == pytest.approx(task.c_unl * 40)
    assert settled.w_pos == 1.0


def test_cwsvm_is_one_model_of_everything():
    settled = plan(40, 500, method="cwsvm", c_unl=2.0, w_pos=3.0)
    assert settled.n_models == 1
    (task,) = problems(settled, range(1))
    assert task.positive.tolist() == list(range(40))
    assert task.unlabeled.tolist() == list(range(500))
    assert task.c_pos == pytest.approx(2.0 * 3.0 * 500 / 40)
    given = plan(40, 500, method="cwsvm", c_pos=9.0)
    assert given.c_pos == 9.0
    assert given.w_pos is None


def test_gamma_scale_comes_from_the_variance_and_auto_is_libsvms():
    def gamma(**options) -> float:
        return resolve_defaults(Params(**options), 20, 30, 4, lambda: 0.5).kernel.gamma

    assert gamma() == 1 / (4 * 0.5)
    assert gamma(gamma="auto") == 0.25
    assert gamma(gamma=0.7) == 0.7


def test_gamma_scale_survives_data_without_variance_and_without_features():
    for n_features, expected in ((4, 0.25), (0, 1.0)):
        settled = resolve_defaults(Params(), 20, 30, n_features, lambda: 0.0)
        assert settled.kernel.gamma == expected


def test_the_solver_is_chosen_by_kernel_and_bag_size():
    assert plan(kernel="linear").solver == "libsvm"
    for n_unl, expected in ((4900, "libsvm"), (4901, "liblinear")):  # and 100 rows of P
        sized = Params(kernel="linear", n_unl=n_unl)
        assert resolve_defaults(sized, 100, 9999, 3, lambda: 1.0).solver == expected
    large = {"kernel": "linear", "n_unl": 5000}
    assert resolve_defaults(Params(**large), 100, 9999, 3, lambda: 1.0).solver == "liblinear"
    rbf = resolve_defaults(Params(n_unl=5000), 100, 9999, 3, lambda: 1.0)
    assert rbf.solver == "libsvm"
    forced = resolve_defaults(Params(**large, solver="libsvm"), 100, 9999, 3, lambda: 1.0)
    assert (forced.solver, forced.tolerance) == ("libsvm", 1e-3)
    assert forced.by_libsvm
    assert not rbf.by_libsvm
    assert forced.solver_parameter == "libsvm"  # auto would use LIBLINEAR
    assert plan(solver="libsvm").solver_parameter == rbf.solver_parameter == "auto"
    given = plan(kernel="linear", bias=3.0)
    assert given.solver_parameter == "liblinear"
    assert (given.solver, given.bias, given.tolerance) == ("liblinear", 3.0, 1e-2)


def test_parameters_a_kernel_does_not_use_stay_out_of_it():
    assert (
        plan(kernel="linear", gamma=3.0, coef0=2.0, degree=5).kernel == plan(kernel="linear").kernel
    )
    assert plan(kernel="rbf", gamma=1.0, coef0=2.0).kernel == plan(kernel="rbf", gamma=1.0).kernel


@pytest.mark.parametrize("extreme", [1e300, 1e-200])
def test_a_penalty_that_overflows_or_vanishes_is_refused(extreme):
    with pytest.raises(ParameterError, match="the penalty for P must be positive"):
        plan(c_unl=extreme, w_pos=extreme)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"c_unl": 0.0}, "`c_unl` must be positive and finite, got 0"),
        ({"c_unl": -1.0}, "`c_unl` must be positive and finite, got -1"),
        ({"c_unl": float("nan")}, "`c_unl` must be positive and finite, got nan"),
        ({"c_unl": float("inf")}, "`c_unl` must be positive and finite, got inf"),
        ({"w_pos": 0.0}, "`w_pos` must be positive and finite, got 0"),
        ({"method": "cwsvm", "c_pos": -2.0}, "`c_pos` must be positive and finite, got -2"),
        ({"gamma": 0.0}, "`gamma` must be positive and finite, got 0"),
        ({"tolerance": 0.0}, "`tolerance` must be positive and finite, got 0"),
        ({"n_models": 0}, "`n_models` must be at least 1, got 0"),
        ({"n_pos": 0}, "`n_pos` must be at least 1, got 0"),
        ({"n_unl": -5}, "`n_unl` must be at least 1, got -5"),
        ({"degree": 0}, "`degree` must be at least 1, got 0"),
        ({"coef0": float("inf")}, "`coef0` must be finite, got inf"),
        ({"seed": -1}, "`seed` must be at least 0, got -1"),
        ({"degree": 2**32 + 2}, "`degree` must be at most 1,000, got 4294967298"),
        ({"n_models": 10**8}, "`n_models` must be at most 100,000, got 100000000"),
        ({"n_unl": 10**12}, "`n_unl` must be at most 1,073,741,824, got 1000000000000"),
        (
            {"solver": "liblinear"},
            "`solver='liblinear'` trains only linear members, but `kernel` is rbf",
        ),
        ({"bias": 1.0}, "`bias` applies to LIBLINEAR only; LIBSVM does not penalize the bias"),
        (
            {"kernel": "linear", "solver": "libsvm", "bias": 1.0},
            "`bias` applies to LIBLINEAR only; LIBSVM does not penalize the bias",
        ),
        ({"kernel": "linear", "bias": -2.0}, "`bias` must be positive and finite, got -2"),
        (
            {"method": "bagging", "n_pos": 5},
            "`n_pos` does not apply to `method='bagging'`",
        ),
        (
            {"method": "bagging", "w_pos": 2.0},
            "`w_pos` does not apply to `method='bagging'`",
        ),
        (
            {"method": "bagging", "c_pos": 2.0},
            "`c_pos` does not apply to `method='bagging'`",
        ),
        (
            {"method": "cwsvm", "n_models": 5},
            "`n_models` does not apply to `method='cwsvm'`",
        ),
        (
            {"method": "cwsvm", "n_unl": 5},
            "`n_unl` does not apply to `method='cwsvm'`",
        ),
        (
            {"method": "resvm", "c_pos": 2.0},
            "`c_pos` does not apply to `method='resvm'`",
        ),
        (
            {"method": "cwsvm", "c_pos": 2.0, "w_pos": 2.0},
            "give either `c_pos` or `w_pos`, not both",
        ),
    ],
)
def test_parameters_that_cannot_work_are_refused(options, message):
    with pytest.raises(ParameterError) as caught:
        Params(**options).check()
    assert message in str(caught.value)


def test_more_trials_than_a_search_could_hold_are_refused():
    with pytest.raises(ParameterError, match="`trials` must be at most 100,000"):
        check_values(TuningParameters(trials=10**9), TUNING_TABLE)


def test_a_bag_that_memory_cannot_hold_is_refused_with_the_figure(monkeypatch):
    monkeypatch.setattr("resvm_cli.ensemble.plan.available_memory", lambda: 3e10)
    assert resolve_defaults(Params(n_pos=10**8), 100, 1000, 5, lambda: 1.0)
    with pytest.raises(
        ParameterError, match=r"a bag of 1,0.* takes at least 97 GB .* but 30\.0 GB"
    ):
        resolve_defaults(Params(n_pos=10**9), 100, 1000, 5, lambda: 1.0)
    many = resolve_defaults(Params(n_pos=10**5, n_models=10**5), 100, 1000, 5, lambda: 1.0)
    with pytest.raises(ParameterError, match=r"bags of 100,500 rows take at least 80 GB"):
        Plan((many,)).problems(range(10**5))
