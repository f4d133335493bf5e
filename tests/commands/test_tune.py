"""resvm tune, and train with its result, as a user runs them."""

from __future__ import annotations

import json
import os
import re
import signal

import numpy as np
import pytest

from resvm_cli.cli.options import DataOptions, TableOptions
from resvm_cli.commands.tune import train_command
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.parameters import Params
from resvm_cli.run import Run
from resvm_cli.tuning.candidates import SearchOptions
from resvm_cli.tuning.search import tune as run_tune
from tests.conftest import data_arguments, train_arguments, write_svm
from tests.programs import start_resvm, until


def data(problem):
    return data_arguments(problem)


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
    (setting,) = best["settings"]
    assert group["kernel"]["name"] == setting["kernel"]
    if setting["kernel"] == "rbf":
        assert group["kernel"]["gamma"] == setting["gamma"]
    for name in ("c_unl", "n_pos", "n_unl", "n_models"):
        if name in setting:
            assert group["parameters"][name] == setting[name]
    trials = lines(tmp_path / "t")
    assert [one["trial"] for one in trials] == list(range(len(trials)))
    most = max(one["n_models"] for one in trials)
    metric = best["selected_by"]["metric"]
    full = [one["values"][metric] for one in trials if one["n_models"] == most]
    assert best["selected_by"]["score"] == max(full)


def test_the_summary_tells_scores_and_the_command_to_copy(problem, resvm, tmp_path):
    arguments = [word for word in quick(problem, tmp_path / "t") if word != "-q"]
    ran = resvm(*arguments, "--json")
    assert "the best of many trials, so optimistic" in ran.err
    assert re.search(r" ROC AUC  0\.\d{4}, P against U", ran.err)
    command = next(line for line in ran.err.splitlines() if line.strip().startswith("train"))
    words = command.split()[1:]
    assert words[:2] == ["resvm", "train"]
    done = resvm(*words[1:-1], tmp_path / "copied")
    assert done.code == 0, done.err
    found = json.loads(ran.out)
    assert found["command"] == "tune"
    assert found["best"] == json.loads((tmp_path / "t" / "best.json").read_bytes())
    table = ran.err.splitlines()
    start = next(at for at, line in enumerate(table) if line.split()[:1] == ["trial"])
    assert table[start].split()[-3:] == ["deviation", "recall", "positive"]
    metric = table[start].split()[-4]
    trials = {str(one["trial"]): one for one in lines(tmp_path / "t")}
    shown = [words for line in table[start + 1 :] if (words := line.split()) and words[0] in trials]
    assert len(shown) == min(10, len(trials))
    for number, *_, score, deviation, recall, percent in shown:
        trial = trials[number]
        assert score == f"{trial['values'][metric]:.4f}"
        assert (deviation, recall) == (f"{trial['deviation']:.4f}", f"{trial['recall']:.3f}")
        assert percent == f"{100 * trial['fraction_positive']:.3g}%"


def test_the_command_to_copy_has_every_option_of_the_data():
    data = DataOptions("p", "u", weights="w.txt", zero_based=True)
    table = TableOptions(no_header=True, columns=["a,b", "c d"])
    tuning = SearchOptions(base=Params(seed=3, w_neg=2.0))
    assert train_command(data, table, "qid", tuning, "t/") == (
        "resvm train -P p -U u --weights w.txt --zero-based"
        " --no-header --columns a,b --columns 'c d' --groups qid --w-neg 2.0"
        " --params t/best.json -o model --seed 3"
    )
    data = DataOptions(data="all.csv", positive_label=["a", "b"])
    assert train_command(data, TableOptions(), None, SearchOptions(), "t") == (
        "resvm train --data all.csv --positive-label a --positive-label b"
        " --params t/best.json -o model"
    )


def test_the_number_of_threads_changes_no_byte(problem, resvm, tmp_path):
    written = set()
    for jobs in (1, 2, 3):
        folder = tmp_path / f"t{jobs}"
        assert resvm(*quick(problem, folder, "-j", jobs, "--search", "random")).code == 0
        written.add((folder / "trials.jsonl").read_bytes() + (folder / "best.json").read_bytes())
    assert len(written) == 1


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
        return ["tune", *data(problem), "-o", folder, "--trials", 250, *more]

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
    assert resvm(*quick(problem, tmp_path / "t")).code == 0
    ran = resvm(*quick(problem, tmp_path / "t"))
    assert (ran.code, "already exists" in ran.err) == (2, True)
    ran = resvm(*quick(problem, tmp_path / "t", "--resume", "-c", "1,2"))
    assert ran.code == 2
    assert "different settings: space" in ran.err
    ran = resvm(*quick(problem, tmp_path / "t", "--resume", "--seed", 1))
    assert "different settings: seed" in ran.err
    rows = np.random.default_rng(0).standard_normal((40, 4))
    other = write_svm(tmp_path / "other.svm", rows)
    arguments = quick(problem, tmp_path / "t", "--resume")
    arguments[arguments.index("-U") + 1] = other
    ran = resvm(*arguments)
    assert ran.code == 2
    assert "data" in ran.err


def test_an_explicit_option_wins_over_params(problem, resvm, tmp_path):
    resvm(*quick(problem, tmp_path / "t"))
    params = ("--params", tmp_path / "t" / "best.json")
    ran = resvm(*train_arguments(problem), *params, "-c", 1.0, "-o", tmp_path / "m", "--json")
    (group,) = json.loads(ran.out)["manifest"]["groups"]
    (best,) = json.loads((tmp_path / "t" / "best.json").read_bytes())["settings"]
    assert group["parameters"]["c_unl"] == 1.0 != best["c_unl"]
    assert group["parameters"]["w_pos"] == best["w_pos"]
    ran = resvm(*train_arguments(problem), *params, "-t", "linear", "-o", tmp_path / "l", "--json")
    assert json.loads(ran.out)["manifest"]["groups"][0]["kernel"] == {"name": "linear"}
    ran = resvm(*train_arguments(problem), *params, "--method", "cwsvm", "-o", tmp_path / "n")
    assert ran.code == 2
    assert "not cwsvm" in ran.err


def test_train_searches_and_keeps_what_was_given(problem, resvm, tmp_path):
    arguments = ["train", *data_arguments(problem)[:-1], "--n-models", 40, "-c", 2.5]
    ran = resvm(*arguments, "-o", tmp_path / "a", "--json")
    assert ran.code == 0, ran.err
    assert "10 settings were scored out of bag in " in ran.err
    groups = json.loads(ran.out)["manifest"]["groups"]
    assert {group["parameters"]["c_unl"] for group in groups} == {2.5}
    assert sum(group["members"] for group in groups) == 40
    again = resvm(*arguments, "-o", tmp_path / "b", "-j", 2)
    assert again.code == 0
    names = sorted(os.listdir(tmp_path / "a" / "members"))
    for name in names:
        first = (tmp_path / "a" / "members" / name).read_bytes()
        assert first == (tmp_path / "b" / "members" / name).read_bytes()


@pytest.mark.parametrize("more", [(), ("--n-pos", 9)])
def test_a_number_of_rows_of_u_is_kept_by_a_search(more, problem, resvm, tmp_path):
    ran = resvm("train", *data_arguments(problem), "--n-unl", 10, *more, "-o", "m", cwd=tmp_path)
    assert ran.code == 0, ran.err
    groups = json.loads((tmp_path / "m" / "manifest.json").read_text())["groups"]
    assert {group["parameters"]["n_unl"] for group in groups} == {10}


def test_bagging_is_not_searched_and_says_so(problem, resvm, tmp_path):
    data = data_arguments(problem)[:-1]
    ran = resvm("train", *data, "--method", "bagging", "-o", tmp_path / "m")
    assert ran.code == 0, ran.err
    assert "bagging is trained with fixed defaults" in ran.err


def test_groups_have_one_name_per_row(problem, resvm, tmp_path):
    pos, unl = (len((problem / name).read_text().splitlines()) for name in ("pos.svm", "unl.svm"))
    groups = tmp_path / "groups.txt"
    groups.write_text("".join(f"g{number % 30}\n" for number in range(pos + unl)))
    assert resvm(*quick(problem, tmp_path / "b", "--groups", groups)).code == 0
    ran = resvm("tune", *data(problem), "--groups", groups, "-o", tmp_path / "c")
    assert ran.code == 0, ran.err
    short = tmp_path / "short.txt"
    short.write_text("a\nb\n")
    ran = resvm(*quick(problem, tmp_path / "d", "--groups", short))
    assert ran.code == 3
    assert f"2 lines, but the data has {pos + unl:,} rows" in ran.err
    ran = resvm(*quick(problem, tmp_path / "e", "--groups", "qid"))
    assert ran.code == 3
    assert "no qid" in ran.err


def test_only_some_rows_of_a_large_u_are_scored(problem, tmp_path):
    source, run = TrainingInput(str(problem / "pos.svm"), str(problem / "unl.svm")), Run(jobs=1)
    run_tune(source, SearchOptions(max_unl=50, trials=3, folds=3), str(tmp_path / "t"), run)
    assert "candidates are scored on 50 of 100 rows of U, drawn at random" in run.notes
    assert all(one["n_judged"] == 30 + 50 for one in lines(tmp_path / "t"))


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
    (setting,) = json.loads(best.read_text())["settings"]
    assert setting["scale"] in ("minmax", "maxabs", "standard")
    assert resvm("train", "--no-auto", *data, "--params", best, "-o", tmp_path / "m").code == 0


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
    settings = best["settings"]
    assert {one["feature_weights"] for one in settings} == {"relevance:2"}
