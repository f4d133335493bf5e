"""resvm tune, and train with its result, as a user runs them."""

from __future__ import annotations

import json
import os
import re
import signal

import numpy as np
import pytest

from resvm_cli.commands.tune import train_command
from resvm_cli.options.shared import DataOptions, TableOptions
from resvm_cli.parameters import MethodParameters
from resvm_cli.running.run import Run
from resvm_cli.training.input import TrainingInput
from resvm_cli.tuning.tune import TuneRequest
from resvm_cli.tuning.tune import tune as run_tune
from tests.conftest import assert_exit, train_arguments, write_svm
from tests.programs import start_resvm, until


def data(problem):
    return train_arguments(problem)[1:]


def quick(problem, folder, *more):
    return [
        "tune", *data(problem), "-o", folder, "--trials", 6, "--n-models", 5, "-v", 3,
        "--no-extend", *more,
    ]  # fmt: skip


def lines(folder, name="trials.jsonl"):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


@pytest.mark.parametrize(
    "more",
    [
        ("--oob",),
        (),
        ("--search", "grid", "-c", "0.1,1", "-g", "0.1", "--n-pos", 5, "--unl-per-pos", 2),
        ("-t", "linear"),
        ("--method", "bagging"),
        ("--method", "cwsvm"),
        ("--metric", "pu_score"),
    ],
)
def test_what_tune_chose_is_what_train_trains(more, problem, resvm, tmp_path):
    ran = resvm(*quick(problem, tmp_path / "t", *more))
    assert ran.code == 0, ran.err
    best = json.loads((tmp_path / "t" / "best.json").read_bytes())
    params = ("--params", tmp_path / "t" / "best.json")
    ran = resvm(*train_arguments(problem), *params, "-o", tmp_path / "m", "--json")
    assert ran.code == 0, ran.err
    manifest = json.loads(ran.out)["manifest"]
    assert manifest["method"] == best["method"]
    (group,) = manifest["groups"]
    assert group["kernel"]["name"] == best["kernel"]
    if best["kernel"] == "rbf":
        assert group["kernel"]["gamma"] == best["gamma"]
    for name in ("c_unl", "n_pos", "n_unl", "n_models"):
        if name in best:
            assert group["parameters"][name] == best[name]
    trials = lines(tmp_path / "t")
    assert [one["trial"] for one in trials] == list(range(len(trials)))
    most = max(one["n_models"] for one in trials)
    metric = best["selected_by"]["metric"]
    full = [one["values"][metric] for one in trials if one["n_models"] == most]
    assert best["selected_by"]["score"] == max(full)


def test_the_summary_tells_scores_and_the_command_to_copy(problem, resvm, tmp_path):
    arguments = [word for word in quick(problem, tmp_path / "t", "--oob") if word != "-q"]
    ran = resvm(*arguments, "--json")
    assert "the best of many trials, so optimistic" in ran.err
    assert re.search(r" ROC AUC  0\.\d{4}, P against U", ran.err)
    command = next(line for line in ran.err.splitlines() if line.strip().startswith("train"))
    words = command.split()[1:]
    assert words[:2] == ["resvm", "train"]
    done = resvm(*words[1:-1], tmp_path / "copied")
    assert done.code == 0, done.err
    found = json.loads(ran.out)
    assert found["kind"] == "tune"
    assert found["best"] == json.loads((tmp_path / "t" / "best.json").read_bytes())
    table = ran.err.splitlines()
    start = next(at for at, line in enumerate(table) if line.split()[:1] == ["trial"])
    assert table[start].split()[-3:] == ["deviation", "recall", "positive"]
    metric = table[start].split()[-4]
    trials = {str(one["trial"]): one for one in lines(tmp_path / "t")}
    shown = [words for line in table[start + 1 :] if (words := line.split()) and words[0] in trials]
    assert len(shown) == min(10, len(trials))
    for number, *_, score, deviation, recall, share, percent in shown:
        trial = trials[number]
        assert score == f"{trial['values'][metric]:.4f}"
        assert (deviation, recall) == (f"{trial['deviation']:.4f}", f"{trial['recall']:.3f}")
        assert (share, percent) == (f"{100 * trial['fraction_positive']:.3g}", "%")


def test_the_command_to_copy_has_every_option_of_the_data():
    data = DataOptions(
        "p", "u", drop_repeated=True, weights="w.txt", zero_based=True, features=9, scale="maxabs"
    )
    table = TableOptions(header=False, separator="tab", columns=["a,b", "c d"])
    source = TrainingInput(groups="qid")
    base = MethodParameters(seed=3, w_neg=2.0)
    request = TuneRequest(source=source, target="t/", base=base)
    assert train_command(data, table, request) == (
        "resvm train -P p -U u --drop-repeated --weights w.txt --zero-based --features 9"
        " --separator tab --no-header --columns a,b --columns 'c d' --groups qid --w-neg 2.0"
        " --params t/best.json -o model --seed 3"
    )
    plain = TuneRequest(source=TrainingInput(), target="t", base=MethodParameters())
    data = DataOptions(data="all.csv", positive_label=["a", "b"])
    assert train_command(data, TableOptions(header=True), plain) == (
        "resvm train --data all.csv --positive-label a --positive-label b --header"
        " --params t/best.json -o model"
    )


def test_the_number_of_threads_changes_no_byte(problem, resvm, tmp_path):
    written = set()
    for jobs in (1, 2, 3):
        folder = tmp_path / f"t{jobs}"
        assert resvm(*quick(problem, folder, "-j", jobs, "--search", "random")).code == 0
        written.add((folder / "trials.jsonl").read_bytes() + (folder / "best.json").read_bytes())
    assert len(written) == 1


def test_without_shared_kernels_scores_are_the_same(problem, tmp_path):
    source = TrainingInput(str(problem / "pos.svm"), str(problem / "unl.svm"))
    few = {"trials": 6, "n_models": 5, "folds": 3, "no_extend": True}
    for name, room in (("shared", 1024.0), ("apart", 0.0)):
        target = str(tmp_path / name)
        run_tune(TuneRequest(source=source, target=target, gram_mb=room, **few), Run(jobs=1))
        settings = json.loads((tmp_path / name / "settings.json").read_bytes())
        assert settings["shared_kernels"] == (name == "shared")
    for one, other in zip(lines(tmp_path / "shared"), lines(tmp_path / "apart"), strict=True):
        assert one["params"] == other["params"]
        for metric, value in one["values"].items():
            assert value == pytest.approx(other["values"][metric], abs=1e-6)


def n_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_after(n_trials, folder, arguments):
    """Run until this many trials are logged, then kill the run."""
    with start_resvm(*arguments) as running:
        # a trial's time is written last
        until(lambda: n_lines(folder / "timings.jsonl") >= n_trials or running.poll() is not None)
        assert running.poll() is None, "it ended before it could be killed"
        running.kill()


def test_a_killed_run_resumes_to_the_same_end(problem, resvm, tmp_path):
    def arguments(folder):
        more = ("--search", "random", "--n-models", 9, "-j", 1, "--resume")
        return ["tune", *data(problem), "-o", folder, "--trials", 60, *more]

    assert resvm(*arguments(tmp_path / "whole")).code == 0
    for n_trials in (1, 4, 9):
        kill_after(n_trials, tmp_path / "torn", arguments(tmp_path / "torn"))
    with open(tmp_path / "torn" / "trials.jsonl", "ab") as log:
        log.write(b'{"trial": 99, "par')
    ran = resvm(*arguments(tmp_path / "torn"))
    assert ran.code == 0, ran.err
    for name in ("trials.jsonl", "best.json", "settings.json"):
        expected = (tmp_path / "whole" / name).read_bytes()
        assert (tmp_path / "torn" / name).read_bytes() == expected
    before = lines(tmp_path / "torn", "timings.jsonl")
    ran = resvm(*arguments(tmp_path / "torn"), "--json")
    found = json.loads(ran.out)
    assert found["n_repeated"] == found["n_trials"] == n_lines(tmp_path / "torn" / "trials.jsonl")
    assert lines(tmp_path / "torn", "timings.jsonl") == before


def test_ctrl_c_keeps_the_trials_and_says_how_to_go_on(problem, tmp_path):
    arguments = ["tune", *data(problem), "-o", tmp_path / "t", "--n-models", 40, "--trials", 20_000]
    words = [word for word in arguments if word != "-q"]
    with start_resvm(*words) as running:
        until(lambda: n_lines(tmp_path / "t" / "trials.jsonl"))
        running.send_signal(signal.SIGINT)
        said = running.communicate()[1]
    assert running.returncode == 130
    assert b"continue by adding --resume to the command" in said
    assert lines(tmp_path / "t")
    assert not (tmp_path / "t" / "best.json").exists()


def test_resuming_with_other_data_or_another_space_is_refused(problem, resvm, tmp_path):
    assert resvm(*quick(problem, tmp_path / "t", "--oob")).code == 0
    ran = resvm(*quick(problem, tmp_path / "t", "--oob"))
    assert (ran.code, "already exists" in ran.err) == (2, True)
    ran = resvm(*quick(problem, tmp_path / "t", "--oob", "--resume", "-c", "1,2"))
    assert ran.code == 2
    assert "different settings: space" in ran.err
    ran = resvm(*quick(problem, tmp_path / "t", "--oob", "--resume", "--seed", 1))
    assert "different settings: seed" in ran.err
    rows = np.random.default_rng(0).standard_normal((40, 4))
    other = write_svm(tmp_path / "other.svm", rows)
    arguments = quick(problem, tmp_path / "t", "--oob", "--resume")
    arguments[arguments.index("-U") + 1] = other
    ran = resvm(*arguments)
    assert ran.code == 2
    assert "data" in ran.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("-c", "10..1"), "reversed"),
        (("-c", ""), "a number is missing"),
        (("-g", "x"), "'x' is not a number"),
        (("-v", "5000"), "--folds is 5000, but there are only"),
        (("--metric", "accuracy"), "--metric must be"),
        (("--search", "bayes"), "--search must be"),
        (("--method", "bagging", "--oob"), "--oob works only for resvm"),
        (("--w-neg", "2"), "known negatives, but there are none"),
        (("--search", "halving"), "--search must be"),
        (("--n-models", "auto"), "--n-models"),
        (("--outer", "2"), "--outer"),
        (("--n-pos", "100000"), "the widest range that the data allows"),
    ],
)
def test_what_cannot_work_is_exit_2_and_leaves_nothing(more, message, problem, resvm, tmp_path):
    ran = resvm("tune", *data(problem), "-o", tmp_path / "t", "--trials", 2, *more)
    assert ran.code == 2, ran.err
    assert message in ran.err
    assert not (tmp_path / "t").exists()


def test_an_unwritable_place_is_exit_5_before_any_work(problem, resvm, tmp_path):
    ran = resvm("tune", *data(problem), "-o", tmp_path / "no" / "such")
    assert ran.code == 5
    assert "parent directory" in ran.err


def test_all_methods_share_folds_and_train_picks_by_name(problem, resvm, tmp_path):
    ran = resvm(*quick(problem, tmp_path / "t", "--method", "all", "--json"))
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert {one["method"] for one in found["methods"]} == {"resvm", "bagging", "cwsvm"}
    scores = [one["values"]["partial_roc_auc"] for one in found["methods"]]
    assert scores == sorted(scores, reverse=True)
    params = ("--params", tmp_path / "t" / "best.json")
    for method in ("resvm", "bagging", "cwsvm"):
        folder = tmp_path / method
        ran = resvm(*train_arguments(problem), *params, "--method", method, "-o", folder, "--json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["manifest"]["method"] == method


def test_an_explicit_option_wins_over_params(problem, resvm, tmp_path):
    resvm(*quick(problem, tmp_path / "t", "--oob"))
    params = ("--params", tmp_path / "t" / "best.json")
    ran = resvm(*train_arguments(problem), *params, "-c", 1.0, "-o", tmp_path / "m", "--json")
    (group,) = json.loads(ran.out)["manifest"]["groups"]
    best = json.loads((tmp_path / "t" / "best.json").read_bytes())
    assert group["parameters"]["c_unl"] == 1.0 != best["c_unl"]
    assert group["parameters"]["w_pos"] == best["w_pos"]
    ran = resvm(*train_arguments(problem), *params, "-t", "linear", "-o", tmp_path / "l", "--json")
    assert json.loads(ran.out)["manifest"]["groups"][0]["kernel"] == {"name": "linear"}
    ran = resvm(*train_arguments(problem), *params, "--method", "cwsvm", "-o", tmp_path / "n")
    assert ran.code == 2
    assert "not cwsvm" in ran.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "not JSON written by resvm"),
        ("x", "not JSON written by resvm"),
        ('{"kind": "else"}', "contains no parameters"),
        ('{"kind": "resvm-params", "format": 9}', "format 9"),
        (
            '{"kind": "resvm-params", "format": 1, "method": "resvm", "kernel": "rbf",'
            ' "scale": "none", "n_pos": "many"}',
            "invalid n_pos 'many'",
        ),
    ],
)
def test_params_that_are_none_are_refused(content, message, problem, resvm, tmp_path):
    (tmp_path / "p.json").write_text(content)
    ran = resvm(*train_arguments(problem), "--params", tmp_path / "p.json", "-o", tmp_path / "m")
    assert ran.code in (3, 5)
    assert message in ran.err


def test_auto_tunes_then_trains_and_keeps_what_was_given(problem, resvm, tmp_path):
    arguments = [word for word in train_arguments(problem) if word != "-q"]
    ran = resvm(*arguments, "--auto", "--n-models", 40, "-c", 2.5, "-o", tmp_path / "a", "--json")
    assert ran.code == 0, ran.err
    assert "tuned out of bag" in ran.err
    assert re.search(r"has an ROC AUC of 0\.\d{4} for P against U", ran.err)
    groups = json.loads(ran.out)["manifest"]["groups"]
    assert {group["parameters"]["c_unl"] for group in groups} == {2.5}
    assert sum(group["members"] for group in groups) == 40
    again = resvm(*arguments, "--auto", "--n-models", 40, "-c", 2.5, "-o", tmp_path / "b", "-j", 2)
    assert again.code == 0
    names = sorted(os.listdir(tmp_path / "a" / "members"))
    for name in names:
        first = (tmp_path / "a" / "members" / name).read_bytes()
        assert first == (tmp_path / "b" / "members" / name).read_bytes()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--method", "bagging"), "--auto scores out of bag"),
        (("--params", "x.json"), "give either --auto or --params"),
        (("--n-unl", 10), "also needs --n-pos"),
    ],
)
def test_auto_refuses_what_it_cannot_do(more, message, problem, resvm, tmp_path):
    ran = resvm(*train_arguments(problem), "--auto", *more, "-o", tmp_path / "m")
    assert ran.code == 2
    assert message in ran.err


def test_groups_have_one_name_per_row(problem, resvm, tmp_path):
    pos, unl = (len((problem / name).read_text().splitlines()) for name in ("pos.svm", "unl.svm"))
    groups = tmp_path / "groups.txt"
    groups.write_text("".join(f"g{number % 30}\n" for number in range(pos + unl)))
    for name, more in (
        ("b", ("--groups", groups)),
        ("c", ("--groups", groups, "--oob")),
    ):
        ran = resvm(*quick(problem, tmp_path / name, *more))
        assert ran.code == 0, ran.err
    short = tmp_path / "short.txt"
    short.write_text("a\nb\n")
    ran = resvm(*quick(problem, tmp_path / "d", "--groups", short))
    assert ran.code == 3
    assert f"2 lines, but the data has {pos + unl:,} rows" in ran.err
    ran = resvm(*quick(problem, tmp_path / "e", "--groups", "qid"))
    assert ran.code == 3
    assert "no qid" in ran.err


def test_groups_by_qid_and_one_labelled_file(resvm, tmp_path):
    rng = np.random.default_rng(2)
    path = tmp_path / "all.svm"
    rows = []
    for number in range(120):
        label = int(number % 4 == 0)
        x = rng.standard_normal(3) + label
        pairs = " ".join(f"{i + 1}:{value:.4f}" for i, value in enumerate(x))
        rows.append(f"{label} qid:{number // 3} {pairs}\n")
    path.write_text("".join(rows))
    ran = resvm(
        "tune", "--data", path, "--positive-label", 1, "--groups", "qid", "-v", 3, "--trials", 3,
        "--n-models", 4, "-o", tmp_path / "t", "-q",
    )  # fmt: skip
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    "removed",
    [{"search": "halving"}, {"outer": 2}, {"n_models": "auto"}, {"repeats": 1}, {"up_to": 0.2}],
)
def test_a_run_begun_with_a_removed_feature_is_not_resumed(removed, problem, resvm, tmp_path):
    arguments = quick(problem, tmp_path / "t", "--oob", "--resume")
    assert resvm(*arguments).code == 0
    settings = tmp_path / "t" / "settings.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | removed))
    ran = resvm(*arguments)
    assert ran.code == 2
    assert f"was started with different settings: {next(iter(removed))}\n" in ran.err
    assert "start over with another -o" in ran.err


def test_only_some_rows_of_a_large_u_are_scored(problem, resvm, tmp_path):
    arguments = [word for word in quick(problem, tmp_path / "t", "--oob") if word != "-q"]
    ran = resvm(*arguments, "--max-unl", 50)
    assert ran.code == 0, ran.err
    assert "scored on 50 of" in ran.err
    assert all(one["n_judged"] <= 50 + 100 for one in lines(tmp_path / "t"))


def test_a_scaling_that_was_left_open_is_written_as_it_was_learned(resvm, tmp_path):
    rng = np.random.default_rng(2)
    features = rng.standard_normal((60, 4)) * [1.0, 1.0, 1.0, 1000.0]
    write_svm(tmp_path / "pos.svm", features[:20] + 1)
    write_svm(tmp_path / "unl.svm", features[20:])
    data = ["-P", tmp_path / "pos.svm", "-U", tmp_path / "unl.svm", "-q"]
    small = ["--trials", 2, "--n-models", 3]
    ran = resvm("tune", *data, *small, "--scale", "auto", "-o", tmp_path / "t")
    assert ran.code == 0, ran.err
    best = tmp_path / "t" / "best.json"
    assert json.loads(best.read_text())["scale"] in ("minmax", "maxabs", "standard")
    assert resvm("train", *data, "--params", best, "-o", tmp_path / "m").code == 0


def test_candidates_differ_in_what_the_user_left_open(problem, resvm, tmp_path):
    chosen = {"scale": "none", "feature_weights": "relevance:2", "kernel": "rbf"}
    files = ["-P", problem / "pos.svm", "-U", problem / "unl.svm"]
    for name, value in (*chosen.items(), ("seed", "1")):
        option = ["--" + name.replace("_", "-"), value]
        ran = resvm("tune", *files, *option, "--n-models", 12, "-o", tmp_path / name)
        assert ran.code == 0, ran.err
        lines = (tmp_path / name / "trials.jsonl").read_text().splitlines()
        trials = sorted(map(json.loads, lines), key=lambda one: -one["values"]["roc_areas"])
        assert not any(name in one["params"] for one in trials)
        header = next(line for line in ran.err.splitlines() if line.startswith("trial")).split()
        for word in chosen:
            found = [one["params"][word] for one in trials[:10] if word in one["params"]]
            assert (word.replace("_", "-") in header) == bool(found)
            assert all(f" {value} " in ran.err for value in found)
    best = json.loads((tmp_path / "feature_weights" / "best.json").read_text())
    settings = best.get("settings", [best])
    assert {one["feature_weights"] for one in settings} == {"relevance:2"}


@pytest.fixture(scope="module")
def best(problem, resvm, tmp_path_factory):
    """The best.json of a tuning run."""
    folder = tmp_path_factory.mktemp("tuning") / "t"
    assert_exit(resvm(*quick(problem, folder, "--oob")), 0)
    return (folder / "best.json").read_text()


def train_with(params, problem, resvm, tmp_path):
    (tmp_path / "params.json").write_text(params)
    files = ["--params", tmp_path / "params.json", "-o", tmp_path / "m"]
    return resvm(*train_arguments(problem), *files)


def test_parameters_with_a_name_twice_are_refused(best, problem, resvm, tmp_path):
    first = next(iter(json.loads(best)))
    ran = train_with(best.replace("{", f'{{"{first}": 3, ', 1), problem, resvm, tmp_path)
    assert_exit(ran, 5, "params.json: not JSON written by resvm")


def test_deeply_nested_parameters_are_refused(problem, resvm, tmp_path):
    assert_exit(train_with("[" * 100_000, problem, resvm, tmp_path), 5, "params.json")


@pytest.mark.parametrize("name", ["n_pos", "c_unl"])
def test_an_integer_that_a_double_does_not_hold_is_refused(name, best, problem, resvm, tmp_path):
    params = json.dumps(json.loads(best) | {name: 2**53})
    assert_exit(train_with(params, problem, resvm, tmp_path), 3, f"invalid {name} '{2**53}'")


@pytest.mark.parametrize("name", ["n_pos", "n_models", "c_unl", "gamma", "w_pos"])
def test_a_parameter_of_400_digits_is_refused(name, best, problem, resvm, tmp_path):
    params = json.loads(best)
    assert name in params
    ran = train_with(json.dumps(params | {name: int("9" * 400)}), problem, resvm, tmp_path)
    assert ran.code in (2, 3), ran.err
    assert "Traceback" not in ran.err
