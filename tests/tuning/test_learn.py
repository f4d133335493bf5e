"""Parts that are trained separately and joined give the same bytes as a single run."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.ensemble import Predictor
from resvm_cli.ensemble.oob import OutOfBagSample, stored_values
from resvm_cli.ensemble.plan import Plan, resolve_defaults
from resvm_cli.ensemble.train import ResourceBudget, Trainer
from resvm_cli.parameters import Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run, as_ranges
from resvm_cli.svm.support_vectors import BLOCK_ROWS
from resvm_cli.tuning.learn import learn, make_plan, merge, open_part, save, train_missing
from resvm_cli.tuning.sample import SharedKernels
from tests.conftest import setting
from tests.fitting import problems, train_part

RNG = np.random.default_rng(12)
N_POS, N_UNL = 30, 90
FEATURES = np.concatenate([RNG.normal(1.0, 1.0, (N_POS, 6)), RNG.normal(0.0, 1.0, (N_UNL, 6))])
FEATURES[[3, N_POS + 5]] = FEATURES[0]  # duplicates in P and between P and U
KNOWN = np.arange(N_POS + N_UNL) < N_POS
SETTINGS = {
    "rbf": ({}, {}),
    "linear": ({"kernel": "linear"}, {}),
    "poly scaled": ({"kernel": "poly"}, {"scale": "standard"}),
    "liblinear": ({"kernel": "linear", "solver": "liblinear"}, {}),
    "bagging": ({"method": "bagging"}, {}),
    "weighted by quantiles": ({"feature_weights": "relevance"}, {"scale": "quantile"}),
    "linear weighted": ({"kernel": "linear", "feature_weights": "relevance:2"}, {}),
}
BAGS = {"n_models": 3, "n_unl": 20, "seed": 5}
MIXED = (
    setting(Params(**BAGS), 2.0),
    setting(Params(kernel="linear", feature_weights="relevance", **BAGS), 1.0),
    setting(Params(feature_weights="relevance:2", **BAGS), 1.5, "quantile"),
    setting(Params(gamma=3.0, **BAGS), 1.0, "quantile"),
)


def data(features=FEATURES, **settings):
    return MemoryData.from_matrix(sparse.csr_matrix(features), KNOWN, **settings)


def files(directory: Path) -> dict[str, bytes]:
    found = sorted(directory.rglob("*"))
    return {str(path.relative_to(directory)): path.read_bytes() for path in found if path.is_file()}


def trained_whole(target: Path, params: Params, **settings) -> dict[str, bytes]:
    _, model = learn(data(**settings), replace(params, auto=False), Run())
    save(model, str(target), force=False)
    return files(target)


def train_members(data, settings, members, target, run, decision="votes"):
    """Train these members into a part, and return how many were missing."""
    params = Params(settings=tuple(settings), decision=decision, auto=False)
    plan = make_plan(data, params, Run())
    part = open_part(target, plan, data, members)
    budget = ResourceBudget(run.jobs or 1)
    return train_missing(part, plan, budget, data, run, "")


def cuts(n_models: int, n_parts: int) -> list[range]:
    bounds = [n_models * part // n_parts for part in range(n_parts + 1)]
    return [range(bounds[part], bounds[part + 1]) for part in range(n_parts)]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("n_parts", [1, 3, 7, 50])
def test_parts_join_to_the_bytes_of_one_run(name, n_parts, tmp_path):
    asked, settings = SETTINGS[name]
    params = Params(n_models=12, n_unl=20, seed=5, **asked)
    whole = trained_whole(tmp_path / "whole", params, **settings)
    paths = []
    for number, members in enumerate(filter(None, cuts(12, n_parts))):
        paths.append(str(tmp_path / f"part-{number}"))
        train_members(
            data(**settings), [setting(params)], members, paths[-1], Run(jobs=1 + number % 2)
        )
    merge(paths[::-1], str(tmp_path / "joined"), Run())
    assert files(tmp_path / "joined") == whole


def test_a_members_values_do_not_depend_on_which_others_there_are():
    for name, (asked, settings) in SETTINGS.items():
        params = Params(n_models=9, n_unl=20, **asked)
        given = data(**settings)
        plan = Plan.resolve(params, given)
        whole = train_part(plan, range(9), given, Run(jobs=1)).values
        for members in (range(1), range(4, 9), range(8, 9)):
            alone = train_part(plan, members, given, Run(jobs=1)).values
            assert alone.tobytes() == whole[members.start : members.stop].tobytes(), name


def test_nor_in_a_model_of_several_kernels_scalings_and_weightings():
    given = data(scale="standard")
    plan = Plan.resolve(Params(settings=tuple(MIXED)), given)
    whole = train_part(plan, range(12), given, Run(jobs=1)).values
    for members in (*(range(one, one + 1) for one in range(12)), range(2, 8)):
        alone = train_part(plan, members, given, Run(jobs=1)).values
        assert alone.tobytes() == whole[members.start : members.stop].tobytes()


@pytest.mark.parametrize("name", ["rbf", "linear", "weighted by quantiles"])
def test_threads_that_share_the_judged_rows_change_no_value(name):
    asked, settings = SETTINGS[name]
    given = data(**settings)
    params = Params(n_models=9, n_unl=20, **asked)
    plan = Plan.resolve(params, given)
    ensemble = train_part(plan, range(9), given, Run(jobs=1)).ensemble
    rows = Rows.from_dense(RNG.normal(0.0, 1.0, (3 * BLOCK_ROWS + 7, 6)))
    absent = RNG.random((len(rows), 9)) < 0.7
    judge = Predictor.with_independent_members(ensemble, rows, 7)
    expected = np.where(absent, judge.member_values(rows), np.nan).T
    for workers in (1, 2, 5):
        assert stored_values(ensemble, rows, absent, 7, workers).tobytes() == expected.tobytes()


def test_what_travels_to_workers_pickles():
    given = data()
    whole = Plan.resolve(Params(n_models=3), given)
    (plan,) = whole.settings
    tasks = list(problems(plan, range(3)))
    unlabeled = given.fetch(np.arange(N_UNL))
    trainer = Trainer.from_data(whole, given, unlabeled, np.arange(N_UNL), 1)
    first = trainer.train_all(tasks)
    again = pickle.loads(pickle.dumps(trainer)).train_all(pickle.loads(pickle.dumps(tasks)))
    for one, other in zip(first, again, strict=True):
        assert one.member.coefficients.tobytes() == other.member.coefficients.tobytes()
    mixed = Plan.resolve(Params(settings=tuple(MIXED)), given)
    trainer = Trainer.from_data(mixed, given, unlabeled, np.arange(N_UNL), 1)
    weighted = mixed.problems(range(6, 8))
    first = trainer.train_all(weighted)
    again = pickle.loads(pickle.dumps(trainer)).train_all(weighted)
    for one, other in zip(first, again, strict=True):
        assert one.rows.values.tobytes() == other.rows.values.tobytes()
    kernels = SharedKernels(given.positives, unlabeled, 10)
    with kernels.trainer(plan.kernel, Run()) as own:
        (expected,) = own.ensemble_values([tasks])
    with pickle.loads(pickle.dumps(kernels)).trainer(plan.kernel, Run()) as other:
        (found,) = other.ensemble_values([tasks])
        assert found.tobytes() == expected.tobytes()


def test_ranges_are_written_as_array_jobs_take_them():
    assert as_ranges([3, 7, 8, 9]) == "3,7-9"
    assert as_ranges([0]) == "0"


@pytest.mark.parametrize(
    ("rows_pos", "rows_unl", "expected"),
    [
        (100, 1000, (100, 1000)),
        (500, 5000, (218, 436)),
        (30, 10**6, (30, 570)),
        (900, 600, (900, 600)),
    ],
)
def test_all_rows_of_small_sets_are_judged_and_some_of_large_ones(rows_pos, rows_unl, expected):
    own = resolve_defaults(Params(), rows_pos, rows_unl, 9, lambda: 1.0)
    plan = Plan((own,))
    judged = OutOfBagSample.from_plan(plan)
    assert (len(judged.positive), len(judged.unlabeled)) == expected
    for numbers, n_rows in ((judged.positive, rows_pos), (judged.unlabeled, rows_unl)):
        assert (np.diff(numbers) > 0).all()
        assert numbers.max() < n_rows
