"""RelativeSetting settings, and models that pool several of them."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.decisions import decide
from resvm_cli.ensemble.ensemble import Ensemble, Member, Predictor, Section
from resvm_cli.parameters import Params
from resvm_cli.ranking.scores import MemberResamples
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning.candidates import (
    LOW_RECALL,
    MAX_SETTINGS,
    SETTING_MEMBERS,
    TEMPERATURE,
    Scores,
    SearchOptions,
    Trial,
    informed_candidates,
    informed_settings,
    pool_best,
    search,
)
from resvm_cli.tuning.learn import learn
from resvm_cli.tuning.space import default_space, parse_axis
from tests.conftest import setting

RNG = np.random.default_rng(31)
FEATURES = np.concatenate([RNG.normal(0.8, 1.0, (30, 5)), RNG.normal(0.0, 1.0, (120, 5))])
KNOWN = np.arange(150) < 30
WORDS = ("kernel", "feature_weights", "scale")
TEST = RNG.normal(0.4, 1.0, (60, 5))
RBF = Params()
GAMMAS = {None: 0.1, "quantile": 0.4}
SETTINGS = (
    setting(Params(gamma=0.05, n_models=4, n_pos=10, n_unl=20, seed=2), 0.5),
    setting(Params(gamma=0.5, n_models=3, n_pos=15, n_unl=40, c_unl=10.0, seed=2), 0.3),
    setting(Params(gamma=0.05, n_models=5, n_pos=15, n_unl=30, seed=2), 0.2),
)


def data():
    return MemoryData.from_matrix(sparse.csr_matrix(FEATURES), KNOWN)


@pytest.fixture
def trained():
    return learn(data(), Params(settings=tuple(SETTINGS), decision="mean", auto=False), Run())[1]


def candidates(**given):
    axes = [parse_axis(name, text) for name, text in given.items()]
    space = default_space("resvm", "rbf", 100, 1000, 0.1, axes)
    settings = informed_settings(RBF, quantiles=True)
    return informed_candidates(settings, space, 100, 1000, GAMMAS, list(given))


def trials_of(some, scores):
    pairs = zip(some, scores, strict=True)
    return [Trial(number, one, 10, score) for number, (one, score) in enumerate(pairs)]


def test_the_first_informed_setting_is_the_untuned_one():
    plain = learn(data(), Params(n_models=2, auto=False), Run())[0].plan.settings[0]
    space = default_space("resvm", "rbf", 30, 120, plain.kernel.gamma)
    gammas = {None: plain.kernel.gamma}
    first = informed_candidates(informed_settings(RBF), space, 30, 120, gammas)[0]
    assert first["n_pos"] == plain.n_pos
    assert first["unl_per_pos"] * first["n_pos"] == plain.n_unl
    assert (first["w_pos"], first["c_unl"]) == (plain.w_pos, plain.c_unl)
    assert first["gamma"] == pytest.approx(plain.kernel.gamma)


def test_informed_settings_are_distinct_and_keep_to_what_was_given():
    everything = candidates()
    assert len(everything) == 10 == len(set(everything))
    fixed = candidates(gamma="0.7", c_unl="1..5")
    assert {one.kernel for one in fixed} == {None, "linear"}  # gamma was given for rbf
    assert {one["gamma"] for one in fixed if one.kernel is None} == {0.7}
    assert all(1 <= one["c_unl"] <= 5 for one in fixed)
    assert len(fixed) == len(set(fixed)) < len(everything)


def test_informed_settings_leave_out_what_the_user_has_fixed():
    def words(*fixed, quantiles=True):
        settings = informed_settings(replace(RBF, said=frozenset(fixed)), quantiles=quantiles)
        space = default_space("resvm", "rbf", 100, 1000, 0.1)
        found = informed_candidates(settings, space, 100, 1000, GAMMAS)
        return [{getattr(one, name) for one in found} for name in WORDS]

    every = [
        {None, "linear", "laplacian"},
        {None, "relevance:1", "relevance:2"},
        {None, "quantile"},
    ]
    assert words() == every
    assert words("kernel")[0] == {None}
    assert words("feature_weights")[1] == {None}
    assert words(quantiles=False)[2] == {None}


def test_linear_candidates_have_penalties_relative_to_the_scale_of_the_rows():
    linear = [one for one in candidates() if one.kernel == "linear"]
    assert [(one.scale, one["gamma"]) for one in linear] == [(None, None), ("quantile", None)]
    assert [one["c_unl"] for one in linear] == pytest.approx([0.1, 4.0])


@pytest.mark.parametrize("kernel", ["linear", "precomputed", "tanimoto", "minmax"])
def test_informed_settings_of_kernels_without_gamma_differ_in_bags_and_penalties(kernel):
    space = default_space("resvm", kernel, 100, 1000, 0.1)
    settings = informed_settings(Params(kernel=kernel))
    found = informed_candidates(settings, space, 100, 1000, GAMMAS)
    untuned = informed_settings(RBF)[0]
    assert len(found) == len(set(found)) == len(settings)
    assert all(one["gamma"] is None for one in found)
    assert (found[0]["w_pos"], found[0]["c_unl"]) == (untuned.w_pos, untuned.c_unl)
    # similarities are at most 1, products can be large, and precomputed values can be either
    ends = min(one["c_unl"] for one in found), max(one["c_unl"] for one in found)
    expected = {"linear": (0.001, 10.0), "precomputed": (0.001, 100.0)}
    assert ends == expected.get(kernel, (0.1, 100.0))


def test_settings_of_one_kernel_follow_each_other():
    keys = [one.kernel_key for one in candidates()]
    changes = sum(a != b for a, b in itertools.pairwise(keys))
    assert changes == len(set(keys)) - 1


@pytest.mark.parametrize(("recall", "factor"), [(0.2, 1.0), (0.16, 1.25 / 0.7), (0, 2.0 / 0.7)])
def test_w_pos_follows_the_positives_in_u_unless_given(recall, factor):
    everything = candidates()
    plain = [one for one in everything if not one.feature_weights]
    for given in ((), (parse_axis("w_pos", "0.7"),)):
        settings = SearchOptions(search="informed", axes=given)
        going = search(None, settings, everything)
        assert next(going) == plain
        found = going.send(scored_trials(plain, recall))
        if recall > LOW_RECALL or given:
            assert {*found} == {*everything} - {*plain}
            continue
        assert [one["w_pos"] for one in found] == pytest.approx(
            [one["w_pos"] * factor for one in everything]
        )
        with pytest.raises(StopIteration) as ended:
            going.send(scored_trials(found, 0.3))
        assert len(ended.value.value.trials) == len(everything)  # the first ones are not pooled


def scored_trials(some, recall):
    values = Scores({"partial_roc_auc_of_mean": recall}, 0.0, 0.5, 0.1, 100)
    return [Trial(number, one, 8, 0.8, values) for number, one in enumerate(some)]


def test_the_best_are_pooled_by_their_scores():
    some = candidates()[:6]
    scores = [0.70, 0.80, None, 0.79, 0.50, 0.78]
    found = pool_best(trials_of(some, scores), max_settings=3)
    assert [trial.number for trial, _, _ in found] == [1, 3, 5]
    powers = np.exp(np.array([0.0, -0.01, -0.02]) / TEMPERATURE)
    assert [weight for _, weight, _ in found] == pytest.approx((powers / powers.sum()).tolist())


def test_a_committee_is_of_six_settings_with_the_same_number_of_members(resvm):
    trials = trials_of(candidates()[:8], [0.5, *(0.6 + 0.01 * step for step in range(7))])
    found = pool_best(trials)
    assert [trial.number for trial, _, _ in found] == [7, 6, 5, 4, 3, 2]
    assert [count for _, _, count in found] == [SETTING_MEMBERS] * MAX_SETTINGS
    assert f"{MAX_SETTINGS} with --search informed, else 1" in " ".join(
        resvm("tune", "--help-all").out.decode().split()
    )


@pytest.mark.parametrize("total", [3, 9, 100, 1000])
def test_as_many_members_as_were_asked_for_are_shared_out(total):
    trials = trials_of(candidates()[:4], (0.7, 0.8, 0.81, 0.82))
    counts = [count for _, _, count in pool_best(trials, total)]
    assert all(counts)
    assert (sum(counts), len(counts)) == (total, min(total, 4))
    assert max(counts) - min(counts) <= 1


def test_members_are_numbered_through_all_settings(trained):
    plan = trained.plan
    assert plan.n_models == 12
    _, alone = learn(data(), replace(SETTINGS[0], auto=False), Run())
    first, again = trained.ensemble.members[0], alone.ensemble.members[0]
    assert first.coefficients.tobytes() == again.coefficients.tobytes()
    bags = [tuple(problem.positive.tolist()) for problem in plan.problems(range(12))]
    assert len(set(bags)) == 12  # no two members share a random stream


def test_groups_are_standardised_by_their_values_on_unlabeled_rows(trained):
    part, _ = learn(data(), Params(settings=tuple(SETTINGS), decision="mean", auto=False), Run())
    by_row = part.values.T
    of_u = slice(30, 150)
    for group in trained.ensemble.sections:
        own = by_row[of_u, group.members.start : group.members.stop]
        scored = ~np.isnan(own).all(axis=1)
        means = np.nanmean(own[scored], axis=1)
        assert group.shift == pytest.approx(means.mean())
        assert group.spread == pytest.approx(means.std())


def test_a_group_that_may_not_judge_a_row_does_not_count():
    groups = [
        Section(Kernel("rbf", 1.0), range(2), 0.75),
        Section(Kernel("rbf", 2.0), range(2, 3), 0.25),
    ]
    values = np.array([[1.0, 3.0, 10.0]])
    for absent, expected in (
        ([True, True, True], 0.75 * 2 + 0.25 * 10),
        ([True, False, True], 0.75 * 1 + 0.25 * 10),
        ([False, True, False], 3.0),
        ([False, False, False], math.nan),
    ):
        found = decide(values, groups, unseen=np.array([absent])).means[0]
        assert found == pytest.approx(expected, nan_ok=True)


def test_resampled_means_are_those_of_the_members_drawn():
    groups = [
        Section(Kernel("rbf", 1.0), range(3), 0.7, 0.1, 2.0),
        Section(Kernel("rbf", 2.0), range(3, 7), 0.3),
    ]
    values = RNG.normal(size=(50, 7))
    absent = RNG.random((50, 7)) < 0.7
    own = decide(values, groups, unseen=absent).means
    resamples = MemberResamples(7, 6, 1)
    found = np.empty((6, 50), np.float32)
    resamples.fill(found, own, values, absent, "mean", groups)
    for number in range(6):
        times = resamples._weights[:, number]
        for row in range(50):
            total = weight = 0.0
            for group in groups:
                counts = times[group.members] * absent[row, group.members]
                if counts.sum():
                    mean = (counts * values[row, group.members]).sum() / counts.sum()
                    total += group.weight * (mean - group.shift) / group.spread
                    weight += group.weight
            expected = total / weight if weight else own[row]
            assert found[number, row] == pytest.approx(expected, rel=1e-5, abs=1e-6, nan_ok=True)


def test_far_rows_of_a_pool_of_several_kernels_come_from_differences():
    far = np.array([[1e6 + 0.1, 2.3], [1e6 + 1.1, 2.3], [0.5, 0.5]])
    members = [
        Member(np.array([0, 2]), np.ones(2), 0.0, 1),
        Member(np.array([1, 2]), np.ones(2), 0.0, 1),
    ]
    groups = (Section(Kernel("rbf", 1.0), range(1)), Section(Kernel("rbf", 0.25), range(1, 2)))
    machine = Ensemble(groups, Rows.from_dense(far), members, False)
    found = Predictor(machine).member_values(Rows.from_dense(far[:1]))
    assert found[0] == pytest.approx([1.0, math.exp(-0.25)], rel=1e-9)


def test_auto_is_tuning_and_training_in_one_go(problem, resvm, tmp_path):
    files = ("-P", problem / "pos.svm", "-U", problem / "unl.svm", "--seed", 5, "-q")
    assert resvm("train", *files, "-o", tmp_path / "auto").code == 0
    assert resvm("tune", *files, "-o", tmp_path / "t").code == 0
    best = tmp_path / "t" / "best.json"
    assert resvm("train", "--no-auto", *files, "--params", best, "-o", tmp_path / "two").code == 0
    manifest = json.loads((tmp_path / "auto" / "manifest.json").read_text())
    trials = [
        json.loads(line) for line in (tmp_path / "t" / "trials.jsonl").read_text().splitlines()
    ]
    assert manifest.pop("candidates") == [
        {"parameters": trial["params"], "score": trial["values"]["roc_auc_of_mean"]}
        for trial in trials
    ]
    two = json.loads((tmp_path / "two" / "manifest.json").read_text())
    assert manifest["members"] == two["members"]
    assert manifest["groups"] == two["groups"]
    assert manifest["decision"] == two["decision"]
    assert manifest["decision"]["rule"] == "mean"
    n_groups = len(manifest["groups"])
    assert n_groups > 1
    assert [one["members"] for one in manifest["groups"]] == [SETTING_MEMBERS] * n_groups
    content = json.loads(best.read_text())
    assert [one["weight"] for one in content["settings"]] == [
        one["weight"] for one in manifest["groups"]
    ]


def test_one_known_positive_is_trained_with_fixed_defaults(problem, resvm, tmp_path):
    (tmp_path / "one.svm").write_text((problem / "pos.svm").read_text().splitlines()[0] + "\n")
    ran = resvm("train", "-P", "one.svm", "-U", problem / "unl.svm", "-o", "m", cwd=tmp_path)
    assert ran.code == 0
    assert "no setting could be scored out of bag with 1 row of P" in ran.err
