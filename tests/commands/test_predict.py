"""resvm predict, as a user runs it."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import sys
from contextlib import suppress

import numpy as np
import pytest

from resvm_cli.commands import predict as predict_job
from resvm_cli.commands.predict import BlockScorer, PredictOptions, predict_rows
from resvm_cli.data.inputs import read_file
from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble import decisions
from resvm_cli.ensemble.decisions import decide
from resvm_cli.parameters import Params
from resvm_cli.run import Run
from resvm_cli.storage import model as directory
from resvm_cli.storage.model import load_with_out_of_bag
from resvm_cli.tuning.learn import learn
from tests.conftest import (
    assert_exit,
    hidden_files,
    make_block,
    setting,
    train_arguments,
    write_svm,
)
from tests.ensemble.test_ensemble import kernel_values
from tests.libsvm_oracle import predict_values
from tests.programs import resvm_command, resvm_signaled_at, run, start_resvm, until


def columns(out: bytes) -> np.ndarray:
    return np.array([[float(word) for word in line.split()] for line in out.splitlines()])


def start(*arguments: object, **more):
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return start_resvm(*arguments, env=environment, **more)


@pytest.mark.parametrize(
    ("kernel", "method"),
    [("linear", "resvm"), ("poly", "bagging"), ("rbf", "cwsvm"), ("sigmoid", "resvm")],
)
def test_member_values_are_libsvms_own(kernel, method, problem, resvm, tmp_path):
    size = [] if method == "cwsvm" else ["--n-models", 5]
    ran = resvm(
        *train_arguments(problem), "--method", method, "-t", kernel, *size, "-o", tmp_path / "m"
    )
    assert ran.code == 0, ran.err
    out = resvm("predict", tmp_path / "m", problem / "test.svm", "--member-values", "--votes").out
    found = columns(out)
    rows = read_file(str(problem / "test.svm")).rows
    members = sorted((tmp_path / "m" / "members").iterdir())
    psi = found[:, 3:]
    assert psi.shape == (300, len(members))
    ensemble = directory.load_model(str(tmp_path / "m")).ensemble
    features = np.zeros((300, 5))
    features[rows.row_numbers, rows.indices - 1] = rows.values
    sizes = np.abs(kernel_values(ensemble, features))
    for number, (path, member) in enumerate(zip(members, ensemble.members, strict=True)):
        terms = sizes[:, member.support] @ np.abs(member.coefficients)
        bound = 1e-9 * (abs(member.rho) + terms)
        assert (np.abs(psi[:, number] - predict_values(path, rows)) <= bound).all()
    expected = decide(psi, single=method == "cwsvm")
    assert np.array_equal(found[:, 2], expected.votes)
    assert np.array_equal(found[:, 1], expected.values)
    threshold = directory.load_model(str(tmp_path / "m")).decision.threshold
    assert threshold.chosen == (method == "resvm")
    if not threshold.chosen:
        assert threshold.value == (0.0 if method == "cwsvm" else 0.5)
    assert np.array_equal(found[:, 0], expected.labels(threshold.value))


def test_stdin_a_file_and_a_dash_are_the_same(model, problem, resvm, tmp_path):
    text = (problem / "test.svm").read_bytes()
    expected = resvm("predict", model, problem / "test.svm").out
    assert len(expected.splitlines()) == 300
    assert resvm("predict", model, stdin=text).out == expected
    assert resvm("predict", model, "-", stdin=text).out == expected
    ran = resvm("predict", model, problem / "test.svm", "-o", tmp_path / "out")
    assert ran.out == b""
    assert (tmp_path / "out").read_bytes() == expected


WEIGHTED = ["--scale", "quantile", "--feature-weights", "relevance"]


@pytest.mark.parametrize(
    ("more", "step"),
    [(("-t", "linear"), 7), (("-t", "rbf"), 1), (("-t", "rbf"), 10_000), (WEIGHTED, 7)],
)
def test_output_does_not_depend_on_how_a_pipe_is_fed(step, more, problem, resvm, tmp_path):
    resvm(*train_arguments(problem), *more, "--n-models", 5, "-o", tmp_path / "m")
    lines = (problem / "test.svm").read_bytes().splitlines(keepends=True)[:120]
    (tmp_path / "some.svm").write_bytes(b"".join(lines))
    expected = resvm("predict", tmp_path / "m", tmp_path / "some.svm", "--member-values").out
    received = []
    with start("predict", tmp_path / "m", "--member-values") as running:
        for at in range(0, len(lines), step):
            part = lines[at : at + step]
            running.stdin.write(b"".join(part))
            running.stdin.flush()
            received += [running.stdout.readline() for _ in part]  # answered before more is sent
        running.stdin.close()
        assert running.stdout.read() == b""
    assert running.returncode == 0
    assert b"".join(received) == expected


@pytest.mark.parametrize("more", [("-t", "linear"), ("-t", "rbf"), WEIGHTED], ids=str)
def test_the_number_of_threads_changes_no_byte(more, problem, resvm, tmp_path):
    folder = tmp_path / "m"
    resvm(*train_arguments(problem), *more, "--n-models", 5, "-o", folder)
    rng = np.random.default_rng(4)
    source = write_svm(tmp_path / "many.svm", rng.standard_normal((40_000, 4)))  # several pieces
    outputs = {resvm("predict", folder, source, "-j", jobs).out for jobs in (1, 2, 5)}
    outputs |= {resvm("predict", folder, source).out}
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 40_000


@pytest.mark.parametrize("cells", [1, 2000])
def test_rows_judged_a_few_at_a_time_get_the_same_lines(
    cells, model, problem, monkeypatch, tmp_path
):
    """So that the memory of many members is bounded."""
    judged = []
    judge = BlockScorer.score

    def counted(self, block):
        judged.append(len(block))
        return judge(self, block)

    def written(name):
        options = PredictOptions(
            output=str(tmp_path / name), form="tsv", votes=True, member_values=True, ids=True
        )
        predict_rows(str(model), str(problem / "test.svm"), options, Run())
        return (tmp_path / name).read_bytes()

    whole = written("whole")
    monkeypatch.setattr(BlockScorer, "score", counted)
    monkeypatch.setattr(predict_job, "MAX_CELLS", cells)
    assert written("parts") == whole
    assert sum(judged) == 300
    assert len(judged) > 1


def test_a_bad_line_far_down_is_named_by_its_own_number(model, resvm, tmp_path):
    source = tmp_path / "long.svm"
    lines = ["1:0.25 2:0.5 3:0.125"] * 100_000
    lines[77_776] = "1:0.25 2:x"
    source.write_text("\n".join(lines) + "\n")
    ran = resvm("predict", model, source, "-j", 2)
    assert ran.code == 3
    assert f"{source}:77777:8" in ran.err


def test_the_threshold_moves_labels_and_nothing_else(model, problem, resvm):
    base = columns(resvm("predict", model, problem / "test.svm").out)
    moved = columns(resvm("predict", model, problem / "test.svm", "-T", 0.9).out)
    assert np.array_equal(base[:, 1], moved[:, 1])
    assert np.array_equal(moved[:, 0], np.where(base[:, 1] > 0.9, 1, -1))
    low = columns(resvm("predict", model, problem / "test.svm", "-T", "-1e9").out)
    assert (low[:, 0] == 1).all()


def test_features_the_model_never_saw_count_in_rbf_distances_only(problem, resvm, tmp_path):
    for kernel in ("linear", "rbf"):
        resvm(*train_arguments(problem), "-t", kernel, "--n-models", 3, "-o", tmp_path / kernel)
        known, unseen = b"1:1 2:1\n", b"1:1 2:1 900:3 2147483646:1\n"
        out = resvm("predict", tmp_path / kernel, stdin=known + unseen).out.splitlines()
        assert (out[0] == out[1]) == (kernel == "linear")


def test_the_input_is_not_overwritten(model, problem, resvm, tmp_path):
    rows = tmp_path / "rows.svm"
    rows.write_bytes((problem / "test.svm").read_bytes())
    (tmp_path / "link").symlink_to(rows)
    for target in (rows, tmp_path / "link"):
        ran = resvm("predict", model, rows, "-o", target)
        assert ran.code == 2
        assert f"-o/--output would write to {target}, which is an input (FILE)" in ran.err
    command = shlex.join(resvm_command("predict", model, "-o", rows))
    assert_exit(run(["sh", "-c", f"{command} < {rows}"]), 2, "which is an input (stdin)")
    assert rows.read_bytes() == (problem / "test.svm").read_bytes()


def test_a_bad_row_leaves_no_half_written_file(model, resvm, tmp_path):
    (tmp_path / "out").write_text("old")
    ran = resvm("predict", model, "-o", tmp_path / "out", stdin=b"1 1:1\n" * 5 + b"1 1:x\n")
    assert ran.code == 3
    assert "stdin:6:3" in ran.err
    assert (tmp_path / "out").read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_values_that_overflow_the_kernel_are_refused_by_line(problem, resvm, tmp_path):
    resvm(*train_arguments(problem), "-t", "poly", "--n-models", 2, "-o", tmp_path / "m")
    ran = resvm("predict", tmp_path / "m", stdin=b"1:1\n\n1:1e300\n")
    assert ran.code == 3
    assert "stdin:3: the row's decision value is not finite" in ran.err


def test_a_full_device_is_exit_5(model, problem, resvm):
    with (
        open("/dev/full", "wb") as full,
        start("predict", model, problem / "test.svm", stdout=full) as running,
    ):
        error = running.communicate()[1].decode()
    assert running.returncode == 5
    assert "stdout: cannot write: No space left on device" in error
    assert "Exception ignored" not in error
    ran = resvm("predict", model, problem / "test.svm", "-o", "/dev/full")
    assert ran.code == 5


def test_pipes_and_dev_stdout_can_be_written_to(model, problem, resvm, tmp_path):
    expected = resvm("predict", model, problem / "test.svm").out
    command = f'"{sys.executable}" -m resvm_cli predict "{model}" "{problem}/test.svm"'
    (tmp_path / "log").write_text("kept\n")
    for line in (
        f"{command} -o >(cat > piped); wait $!",
        f"{command} -o /dev/stdout >> log",
    ):
        assert run(["bash", "-c", line], cwd=tmp_path).code == 0
    assert (tmp_path / "log").read_bytes() == b"kept\n" + expected
    until(lambda: (tmp_path / "piped").stat().st_size >= len(expected))  # cat may be the last
    assert (tmp_path / "piped").read_bytes() == expected


def test_counting_from_zero_must_be_the_models_own_way(model, problem, resvm, tmp_path):
    ran = resvm("predict", model, stdin=b"0:1\n")
    assert_exit(ran, 3, "indices start at 1", "train, check or convert with --zero-based")
    assert resvm(*train_arguments(problem), "--zero-based", "-o", tmp_path / "m").code == 0
    assert resvm("predict", tmp_path / "m", stdin=b"0:1\n").code == 0


def test_rows_far_out_are_not_slow(problem, resvm, tmp_path):
    # every pair of rows is hopelessly far apart: no exact distance is needed
    resvm(*train_arguments(problem), "-g", 1e9, "--n-models", 3, "-o", tmp_path / "m")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    text = b"".join(b"%d:1 %d:1\n" % (i, i + 100_000_000) for i in range(1, 3000))
    ran = run(resvm_command("predict", tmp_path / "m"), stdin=text)  # whose time is counted here
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 2999
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert used < 30  # of a processor: the machine may be busy


def test_a_closed_stdout_is_exit_5(model, problem):
    line = f'"{sys.executable}" -m resvm_cli predict "{model}" "{problem}/test.svm" >&-'
    ran = run(["sh", "-c", line])
    assert ran.code == 5
    assert "stdout: cannot write: it is closed" in ran.err


def test_a_reader_that_leaves_ends_it_quietly(model, problem):
    text = (problem / "test.svm").read_bytes()
    with start("predict", model) as running:
        running.stdin.write(text)
        running.stdin.flush()
        assert running.stdout.readline()
        running.stdout.close()
        with suppress(BrokenPipeError):  # it has gone, as it should
            while running.poll() is None:
                running.stdin.write(text)
                running.stdin.flush()
        assert running.wait() == 0
        assert running.stderr.read() == b""


def called(ran):
    assert ran.code == 0, ran.err
    lines = [line.split() for line in ran.out.decode().splitlines()]
    return np.array([int(line[0]) for line in lines]), np.array([float(line[1]) for line in lines])


def out_of_bag(model):
    """(set, row, d, mean, members) of every line of the stored table."""
    lines = [line.split("\t") for line in (model / "out_of_bag.tsv").read_text().splitlines()[1:]]
    return [
        (kind, int(row), float(value), float(mean), int(members))
        for kind, row, value, mean, members in lines
    ]


@pytest.fixture(scope="module")
def fixed_model(problem, resvm, tmp_path_factory):
    """A model with fixed defaults, which decides by votes."""
    path = tmp_path_factory.mktemp("fixed") / "m"
    assert_exit(resvm(*train_arguments(problem), "--n-models", 9, "-o", path), 0)
    return path


@pytest.mark.parametrize("rule", ["votes", "mean"])
def test_rows_are_called_at_the_threshold_that_was_chosen(rule, fixed_model, problem, resvm):
    kept = json.loads((fixed_model / "manifest.json").read_text())["decision"]
    assert kept["rule"] == "votes"
    threshold = kept["thresholds"][rule]
    labels, values = called(resvm("predict", fixed_model, problem / "test.svm", "--decision", rule))
    assert np.array_equal(labels == 1, values > threshold["value"])
    again = called(resvm("predict", fixed_model, problem / "test.svm"))[1]
    assert np.array_equal(values, again) == (rule == "votes")
    column = 2 if rule == "votes" else 3
    for kind, rate in (("P", threshold["recall"]), ("U", threshold["fraction_unlabeled"])):
        judged = np.array([row[column] for row in out_of_bag(fixed_model) if row[0] == kind])
        assert (judged > threshold["value"]).mean() == pytest.approx(rate)


def test_a_recall_of_true_positives_leaves_wrong_ones_out(model, problem, resvm):
    plain = resvm("predict", model, problem / "test.svm", "-T", "recall=0.8")
    told = resvm(
        "predict", model, problem / "test.svm", "-T", "recall=0.8", "--contamination-pos", 0.2
    )
    assert told.code == 0, told.err
    assert called(told)[0].sum() <= called(plain)[0].sum()
    for arguments in (("-T", 0.5, "--contamination-pos", 0.2), ("--contamination-pos", 1)):
        assert resvm("predict", model, problem / "test.svm", *arguments).code == 2
    assert resvm("predict", model, problem / "test.svm", "--decision", "most").code == 2


@pytest.fixture(scope="module")
def model_of_means(problem, resvm):
    path = problem / "means"
    sizes = ["--n-models", 9, "--decision", "mean", "-o", path]
    assert resvm(*train_arguments(problem), *sizes).code == 0
    return path


def test_probability_comes_last_and_changes_no_other_column(model, problem, resvm):
    plain = resvm("predict", model, problem / "test.svm", "--votes", "--member-values").out
    for form in ("text", "tsv", "csv", "jsonl"):
        options = ["--votes", "--member-values", "--ids", "--format", form]
        before = resvm("predict", model, problem / "test.svm", *options).out.splitlines()
        told = ["--probability", "--contamination-unl", 0.2]
        out = resvm("predict", model, problem / "test.svm", *options, *told).out.splitlines()
        if form == "jsonl":
            records = [json.loads(line) for line in out]
            chances = [record.pop("probability") for record in records]
            assert records == [json.loads(line) for line in before]
        else:
            separator = {"text": b" ", "tsv": b"\t", "csv": b","}[form]
            named = [line.partition(b" #")[0] for line in out]
            rest, last = zip(*(line.rsplit(separator, 1) for line in named), strict=True)
            assert [*rest] == [line.partition(b" #")[0] for line in before]
            assert form == "text" or last[0] == b"probability"
            chances = [float(text) for text in last[form != "text" :]]
        values = columns(plain)[:, 1]
        assert (np.diff(np.array(chances)[np.argsort(values, kind="stable")]) >= 0).all()
        assert 0 <= min(chances) < 0.2 < 0.7 < max(chances) <= 1


def test_probability_is_that_of_rank(model_of_means, problem, resvm):
    given = ["--contamination-unl", 0.25, "--contamination-pos", 0.05]
    sets = ["-P", problem / "pos.svm", "-U", problem / "unl.svm"]
    ran = resvm("rank", "--model", model_of_means, *sets, *given, "--format", "jsonl")
    records = [json.loads(line) for line in ran.out.splitlines()]
    ranked = {int(record["id"]): record["probability"] for record in records}
    table = load_with_out_of_bag(str(model_of_means), required=True).out_of_bag
    classes = decisions.fitted_classes(table, "resvm", "mean", 0.05, 0.25)
    chances = classes.probability(table.means[~table.positive]).round(4)  # as rank prints them
    assert dict(zip(table.rows[~table.positive].tolist(), chances, strict=True)) == ranked
    out = columns(
        resvm("predict", model_of_means, problem / "test.svm", "--probability", *given).out
    )
    assert out[:, 2].tolist() == classes.probability(out[:, 1]).tolist()


@pytest.mark.parametrize(("form", "cell"), [("text", b" nan"), ("tsv", b"\t"), ("csv", b",")])
def test_unknown_probability_is_empty_and_says_what_to_give(form, cell, problem, resvm, tmp_path):
    # P and U are the same cloud
    write_svm(tmp_path / "unl.svm", np.random.default_rng(0).standard_normal((200, 5)))
    write_svm(tmp_path / "pos.svm", np.random.default_rng(1).standard_normal((40, 5)))
    assert resvm(*train_arguments(tmp_path), "--n-models", 9, "-o", tmp_path / "m").code == 0
    ran = resvm("predict", tmp_path / "m", problem / "test.svm", "--probability", "--format", form)
    plain = resvm("predict", tmp_path / "m", problem / "test.svm", "--format", form).out
    assert_exit(ran, 0, "overlap too much", "--contamination-unl")
    told = " ".join(ran.err.split())
    assert "--probability: probabilities cannot be estimated: P and U overlap" in told
    assert "; give --contamination-unl, the fraction of U that is positive" in told
    lines = ran.out.splitlines()[form != "text" :]
    assert lines == [line + cell for line in plain.splitlines()[form != "text" :]]
    ran = resvm("predict", tmp_path / "m", problem / "test.svm", "--probability", "--format=jsonl")
    assert {json.loads(line)["probability"] for line in ran.out.splitlines()} == {None}


def test_a_recall_is_placed_by_out_of_bag_values(fixed_model, problem, resvm):
    stored = np.sort([value for kind, _, value, _, _ in out_of_bag(fixed_model) if kind == "P"])[
        ::-1
    ]
    assert len(stored) == 30
    ran = resvm("predict", fixed_model, problem / "test.svm", "-T", "recall=0.8")
    labels, values = called(ran)
    assert np.array_equal(labels == 1, values >= stored[23])  # 24 of 30
    assert "24 of 30 known positives score above it out of bag" in ran.err


def test_the_known_positive_that_sets_a_recall_lies_above_the_threshold(problem, resvm, tmp_path):
    # with bags this small most rows of P are in none: predicted, they get their stored value again
    sizes = ["--n-models", 4, "--n-pos", 2, "--n-unl", 4]
    assert resvm(*train_arguments(problem), *sizes, "-o", tmp_path / "m").code == 0
    table = [row for row in out_of_bag(tmp_path / "m") if row[0] == "P"]
    stored = np.array([value for _, _, value, _, _ in table])
    least = min(value for _, _, value, _, members in table if members == 4 and 0 < value < 1)
    recall = (stored >= least).sum() / len(stored)
    ran = resvm("predict", tmp_path / "m", problem / "pos.svm", "-T", f"recall={recall}")
    labels, values = called(ran)
    assert (values == least).any()
    assert np.array_equal(labels == 1, values >= least)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_json_counts_the_rows_unlike_those_of_training(
    scale, problem, fixed_model, resvm, tmp_path
):
    rows = read_file(str(problem / "test.svm")).rows
    dense = np.zeros((len(rows), 6))
    dense[rows.row_numbers, rows.indices] = scale * rows.values
    write_svm(tmp_path / "new.svm", dense[:, 1:])
    command = ["predict", fixed_model, tmp_path / "new.svm", "-o", tmp_path / "new.pred"]
    ran = resvm(*command, "--json", "-q")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["command"] == "predict"
    labels = [line.split()[0] for line in (tmp_path / "new.pred").read_text().splitlines()]
    assert (told["n_rows"], told["n_positive"]) == (300, labels.count("1"))
    assert told["fraction_unlike"] == told["n_unlike"] / 300
    assert (told["fraction_unlike"] > 0.5) == (scale > 1)
    assert sum("unlike the training rows" in text for text in told["notes"]) == (scale > 1)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_only_rbf_members_tell_which_rows_are_far_away(kernel):
    features = np.random.default_rng(2).normal(size=(60, 3))
    data = MemoryData.from_matrix(features, np.arange(60) < 20)
    kernels = (kernel, "linear")
    settings = [setting(Params(kernel=name, n_models=2)) for name in kernels]
    _, trained = learn(data, Params(settings=tuple(settings), auto=False), Run(jobs=1))
    usual = -np.inf, np.inf  # so that only the distance counts
    scorer = BlockScorer(trained, "rows", PredictOptions(), "mean", 0.0, None, usual)
    for scale, n_far in ((1.0, 0), (1e4, 60 if kernel == "rbf" else 0)):
        assert scorer.score(make_block(scale * features))[2] == n_far


def test_json_has_the_threshold_that_reaches_a_recall(problem, model, resvm, tmp_path):
    command = ["predict", model, problem / "test.svm", "-o", tmp_path / "p", "--json", "-q"]
    told = json.loads(resvm(*command, "-T", "recall=0.5").out)
    assert isinstance(told["threshold"], float)
    assert any("known positives score above it" in text for text in told["notes"])


def test_the_next_run_removes_what_a_killed_predict_left(problem, model, resvm, tmp_path):
    command = ("predict", model, problem / "test.svm", "-o", tmp_path / "out")
    assert run(resvm_signaled_at("fsync", signal.SIGKILL, *command)).code == -signal.SIGKILL
    assert len(hidden_files(tmp_path)) == 1
    assert_exit(resvm(*command), 0)
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_after_the_output_is_in_place_keeps_it(number, problem, model, tmp_path):
    command = ("predict", model, problem / "test.svm", "-o", tmp_path / "out")
    assert_exit(run(resvm_signaled_at("replace", number, *command)), 128 + number)
    assert os.listdir(tmp_path) == ["out"]


def test_temporary_files_of_a_running_process_are_left_alone(problem, model, resvm, tmp_path):
    with start_resvm("predict", model, "-o", tmp_path / "slow") as running:
        running.stdin.write(b"1:1\n")
        running.stdin.flush()
        until(lambda: len(os.listdir(tmp_path)) == 1)
        assert_exit(resvm("predict", model, problem / "test.svm", "-o", tmp_path / "fast"), 0)
        running.stdin.close()
        assert running.wait() == 0
    assert sorted(os.listdir(tmp_path)) == ["fast", "slow"]


def test_ids_that_are_not_utf_8_stay_distinct_in_json_lines(model, resvm):
    rows = b"1 1:3 # \xffid\n-1 1:-3 # \xfeid\n"
    ran = resvm("predict", model, "-", "--ids", "--format", "jsonl", stdin=rows)
    ids = [json.loads(line)["id"] for line in ran.out.splitlines()]
    assert len(set(ids)) == 2
    assert all(name.encode("utf-8") for name in ids)


@pytest.mark.parametrize("side", [-1, 1])
def test_rows_beyond_either_end_of_the_usual_range_are_unlike(side, problem, resvm, tmp_path):
    linear = [*train_arguments(problem), "-t", "linear", "--n-models", 5, "-o", tmp_path / "m"]
    assert resvm(*linear).code == 0
    write_svm(tmp_path / "far.svm", np.full((10, 5), side * 40.0))
    ran = resvm("predict", tmp_path / "m", tmp_path / "far.svm", "-o", tmp_path / "p", "--json")
    assert json.loads(ran.out)["n_unlike"] == 10
