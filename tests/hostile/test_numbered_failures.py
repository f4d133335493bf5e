"""Failures that were found by attacking the program, each with the exit code it must have."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import signal
import stat
import time
from pathlib import Path

import numpy as np
import pytest

from resvm_cli.files import atomic
from resvm_cli.running.run import Run
from tests.conftest import SAMPLE, train_arguments, write_svm
from tests.programs import (
    resvm_command,
    run,
    run_resvm,
    script_command,
    start_resvm,
    started,
    until,
)

P, U = SAMPLE / "digits/pos.svm", SAMPLE / "digits/unl.svm"
ESCAPE = "\x1b[31m"
BRACKETS = "[" * 100_000
CODES = (0, 2, 3, 4, 5)


def said(ran, code: int, *words: str) -> None:
    """The program ended so, in words of its own."""
    assert ran.code == code, (ran.code, ran.err)
    assert "Traceback" not in ran.err
    assert all(word in ran.err for word in words), ran.err


def tune(problem, *more, **options):
    return run_resvm(
        "tune", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "--oob", "--trials", 3,
        "--n-models", 5, "--no-extend", "-q", *more, **options,
    )  # fmt: skip


def train(problem, *more, **options):
    return run_resvm(
        "train", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "--n-models", 5, "-q", *more,
        **options,
    )  # fmt: skip


def dying(function: str, number: signal.Signals, *arguments: object) -> list[str]:
    """resvm, which gets a signal as it returns from its first call of a function of os."""
    script = (
        "import os, signal, sys\n"
        f"real = os.{function}\n"
        "def fatal(*arguments, **more):\n"
        f"    os.{function} = real\n"
        "    result = real(*arguments, **more)\n"
        f"    os.kill(os.getpid(), signal.{number.name})\n"
        "    return result\n"
        f"def armed(): os.{function} = fatal\n"
        "from resvm_cli import cli; cli_main = cli.main\n"
        "cli.main = lambda: (armed(), cli_main())\n"
        "sys.argv[0] = 'resvm'; cli.program()\n"
    )
    return script_command(script, *arguments)


def litter(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


# 1


def test_a_tuning_killed_while_it_writes_its_settings_goes_on(problem, tmp_path):
    arguments = (
        "tune", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "--oob", "--trials", 3,
        "--n-models", 5, "--no-extend", "-q", "-o", tmp_path / "t",
    )  # fmt: skip
    for more in ((), ("--resume",)):
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        assert run(dying("fsync", signal.SIGKILL, *arguments)).code == -signal.SIGKILL
        assert not (tmp_path / "t/settings.json").exists()
        said(run_resvm(*arguments, *more), 0)
        assert litter(tmp_path / "t") == []


# 2


def test_a_tuning_on_a_full_disk_is_a_writing_error(problem, tmp_path):
    # a limit on the size of files fails as a full disk does, and needs no rights
    script = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "from resvm_cli.cli import program; sys.argv[0] = 'resvm'; program()\n"
    )
    ran = run(
        script_command(
            script, "tune", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "--oob",
            "--trials", 30, "--n-models", 3, "-q", "-o", tmp_path / "t",
        )
    )  # fmt: skip
    said(ran, 5, "trials.jsonl: cannot write")


# 3


def mutated(model: Path, target: Path, change) -> Path:
    """A copy of a model whose manifest was changed, with its digest made anew."""
    shutil.copytree(model, target)
    rewrite(target, json.loads((target / "manifest.json").read_bytes()), change)
    return target


def rewrite(target: Path, manifest: dict, change) -> None:
    """Put a changed manifest in the place of the one of a model."""
    manifest = change(manifest) or manifest
    content = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    manifest["manifest_sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    (target / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def places(value, path=()):
    """The path to every value inside a manifest."""
    yield path
    entries = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        entries = list(enumerate(value))[:2]
    for key, entry in entries:
        yield from places(entry, (*path, key))


def put(manifest, path, value) -> None:
    for key in path[:-1]:
        manifest = manifest[key]
    manifest[path[-1]] = value


STRANGE = (10**400, -1, 10**12, 0.5, "x", "[/bold]", None, [], {}, True, -3)


@pytest.mark.parametrize("value", [*STRANGE, "1e400", "missing", "extra"], ids=str)
def test_no_manifest_is_a_bug(value, model, problem, tmp_path):
    from resvm_cli.commands.inspect import read_inspection, show_inspection
    from resvm_cli.errors import ResvmError

    text = (model / "manifest.json").read_bytes()
    target = shutil.copytree(model, tmp_path / "m")
    wrong = []
    for path in places(json.loads(text)):
        if not path or path == ("manifest_sha256",):
            continue

        def change(content, path=path):
            if value == "1e400":
                put(content, path, "REPLACED")
            elif value == "missing":
                parent = content
                for key in path[:-1]:
                    parent = parent[key]
                del parent[path[-1]]
            elif value == "extra":
                put(content, path, {"also": 1, "rows": "x"})
            else:
                put(content, path, value)

        rewrite(target, json.loads(text), change)
        if value == "1e400":
            file = target / "manifest.json"
            file.write_text(file.read_text().replace('"REPLACED"', "1e400"))
        try:
            show_inspection(read_inspection(str(target)))
        except ResvmError:
            pass
        except Exception as error:  # noqa: BLE001 - all of them are looked for
            wrong.append(("inspect", path, repr(error)))
    assert wrong == []


@pytest.mark.parametrize("value", STRANGE, ids=str)
def test_no_manifest_is_a_bug_for_ranking(value, model, problem, tmp_path, monkeypatch):
    from resvm_cli.commands.rank.rank import RankRequest, rank
    from resvm_cli.errors import ResvmError
    from resvm_cli.training.input import TrainingInput

    monkeypatch.setattr("resvm_cli.commands.rank.rank.REPLICATES", 10)  # no manifest says how many
    text = (model / "manifest.json").read_bytes()
    target = shutil.copytree(model, tmp_path / "m")
    source = TrainingInput(str(problem / "pos.svm"), str(problem / "unl.svm"), keep_ids=True)
    wrong = []
    for path in places(json.loads(text)):
        if not path or path[0] in ("manifest_sha256", "members", "versions", "labels"):
            continue
        rewrite(target, json.loads(text), lambda content, path=path: put(content, path, value))
        try:
            rank(RankRequest(source, model=str(target)), Run())
        except (ResvmError, MemoryError):
            pass
        except Exception as error:  # noqa: BLE001 - all of them are looked for
            wrong.append(("rank", path, repr(error)))
    assert wrong == []


def test_a_negative_degree_is_refused_whatever_the_kernel(model, tmp_path):
    place = ("groups", 0, "kernel", "degree")
    target = mutated(model, tmp_path / "m", lambda content: put(content, place, -3))
    said(run_resvm("inspect", target), 4)


def test_a_row_of_thirty_digits_is_refused(model, tmp_path):
    def change(content):
        table = tmp_path / "m/out_of_bag.tsv"
        table.write_bytes(table.read_bytes() + b"P\t" + b"9" * 30 + b"\t0.5\t0.1\t3\n")
        entry = content["out_of_bag"]
        entry["bytes"] = table.stat().st_size
        entry["sha256"] = hashlib.sha256(table.read_bytes()).hexdigest()

    mutated(model, tmp_path / "m", change)
    said(run_resvm("inspect", tmp_path / "m"), 4)


# 4


@pytest.mark.parametrize(
    "text",
    [
        b"id,label,decision_value\na,1\r,0.5\nb,-1,0.1\n",
        b"id,label,decision_value\ra,1,0.5\n",
        b"decision_value," + b"x" * 140_000 + b"\n0.5,1\n",
        b"x" * 140_000 + b"\n",
        b"id,label,decision_value\n" + b"y" * 140_000 + b",1,0.5\nb,-1,0.1\n",
        b'id,label,decision_value\n"a\rb",1,0.5\nb,-1,0.1\n',
    ],
    ids=["cr", "cr-head", "long-name", "long-line", "long-id", "quoted-cr"],
)
def test_no_csv_is_a_bug(text, tmp_path):
    (tmp_path / "pred").write_bytes(text)
    (tmp_path / "ids").write_text("b\n")
    (tmp_path / "labels").write_text("1\n-1\n")
    for options in (("--positive-ids", tmp_path / "ids"), ("--labels", tmp_path / "labels")):
        ran = run_resvm("score", tmp_path / "pred", *options, "--bootstrap", 0)
        assert ran.code in (0, 3), ran.err
        assert "Traceback" not in ran.err
    ran = run_resvm("score", "--compare", tmp_path / "pred")
    said(ran, 3)


def test_an_id_with_a_carriage_return_reads_back(model, tmp_path):
    (tmp_path / "rows").write_bytes(b"1 1:3 # one\rid\n-1 1:-3 # another\n")
    (tmp_path / "ids").write_bytes(b"one\rid\n")
    for form in ("tsv", "csv", "jsonl", "text"):
        ran = run_resvm("predict", model, tmp_path / "rows", "--ids", "--format", form)
        (tmp_path / "pred").write_bytes(ran.out)
        ran = run_resvm(
            "score", tmp_path / "pred", "--positive-ids", tmp_path / "ids", "--bootstrap", 0
        )
        said(ran, 0)
        assert b"1 positive, 1 negative" in ran.out


def test_a_long_field_of_repeated_runs_is_read(tmp_path):
    lines = ["data set,repetition,method,value,note"]
    lines += [f"d,{n},{m},0.{n},{'x' * 140_000}" for n in (1, 2, 3) for m in "ab"]
    (tmp_path / "runs.csv").write_text("\n".join(lines))
    said(run_resvm("score", "--compare", tmp_path / "runs.csv"), 0)


# 5


@pytest.mark.parametrize("label", ['"1"', "2", "true", "null", "[1]", '"-1"', "1e400"])
def test_labels_of_json_lines_are_one_or_minus_one(label, tmp_path):
    (tmp_path / "pred").write_text(
        f'{{"label": {label}, "decision_value": 0.9}}\n{{"label": -1, "decision_value": 0.1}}\n'
    )
    (tmp_path / "labels").write_text("1\n-1\n")
    ran = run_resvm("score", tmp_path / "pred", "--labels", tmp_path / "labels")
    said(ran, 3, "pred:1")


def test_a_label_on_some_json_lines_only_is_refused(tmp_path):
    (tmp_path / "pred").write_text('{"label": 1, "decision_value": 0.9}\n{"decision_value": 0.1}\n')
    (tmp_path / "labels").write_text("1\n-1\n")
    ran = run_resvm("score", tmp_path / "pred", "--labels", tmp_path / "labels")
    said(ran, 3, "pred:2")


def test_a_huge_label_is_refused_without_a_warning_of_the_library(tmp_path):
    (tmp_path / "pred").write_text("1e300 0.9\n-1 0.1\n")
    ran = run_resvm("score", tmp_path / "pred", "--labels", tmp_path / "pred")
    said(ran, 3)
    assert "Warning" not in ran.err


# 6


@pytest.mark.parametrize("value", ["1_0", "١", "1e999", "0x1p3", " 1", "nan", "1f"])  # noqa: RUF001
@pytest.mark.parametrize("form", ["tsv", "text"])
def test_ids_do_not_let_other_numbers_in_than_labels_do(value, form, tmp_path):
    rows = {
        "tsv": f"id\tlabel\tdecision_value\na\t1\t{value}\nb\t-1\t0.1\n",
        "text": f"1 {value} # a\n-1 0.1 # b\n",
    }
    (tmp_path / "pred").write_text(rows[form])
    (tmp_path / "ids").write_text("a\n")
    (tmp_path / "labels").write_text("1\n-1\n")
    by_labels, by_ids = (
        run_resvm("score", tmp_path / "pred", *more, "--bootstrap", 0)
        for more in (("--labels", tmp_path / "labels"), ("--positive-ids", tmp_path / "ids"))
    )
    assert by_labels.code in (0, 3)
    assert by_ids.code == by_labels.code, by_ids.err


def test_an_id_on_two_rows_is_told(tmp_path):
    (tmp_path / "pred").write_text("1 0.9 # a\n1 0.8 # a\n-1 0.1 # b\n")
    (tmp_path / "ids").write_text("a\n")
    ran = run_resvm("score", tmp_path / "pred", "--positive-ids", tmp_path / "ids")
    said(ran, 0)
    assert "2 rows have the id 'a'" in ran.out.decode()


# 7


def test_the_root_directory_is_no_model_and_no_target(problem):
    said(run_resvm("inspect", "/"), 4)
    said(run_resvm("predict", "/", problem / "test.svm"), 4)
    said(train(problem, "-o", "/"), 2)


def test_a_deleted_working_directory_is_a_writing_error(problem, model, tmp_path):
    for command in (
        f"train -P {problem}/pos.svm -U {problem}/unl.svm -o m -q",
        f"predict {model} {problem}/test.svm -o out",
        f"tune -P {problem}/pos.svm -U {problem}/unl.svm --oob --trials 2 -o t -q",
        "simulate --synthetic -o s -q",
        "inspect m",
    ):
        (tmp_path / "gone").mkdir()
        line = f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec resvm {command}"
        place = os.path.dirname(script_command("")[0])
        ran = run(["sh", "-c", line], env={"PATH": f"{place}:{os.environ['PATH']}"})
        assert ran.code in (2, 4, 5), (command, ran.code, ran.err)
        assert "Traceback" not in ran.err, command


def finished_tuning(problem, tmp_path) -> Path:
    said(tune(problem, "-o", tmp_path / "t"), 0)
    return tmp_path / "t"


def test_deep_nesting_is_damage(problem, tmp_path):
    place = finished_tuning(problem, tmp_path)
    (tmp_path / "params").write_text(BRACKETS)
    said(train(problem, "--params", tmp_path / "params", "-o", tmp_path / "m"), 5, "params")
    whole = (place / "trials.jsonl").read_bytes()
    (place / "trials.jsonl").write_bytes(BRACKETS.encode() + b"\n" + whole)
    said(tune(problem, "-o", place, "--resume"), 5, "trials.jsonl:1")
    (place / "trials.jsonl").write_bytes(whole)
    (place / "settings.json").write_text(BRACKETS)
    said(tune(problem, "-o", place, "--resume"), 5, "settings.json")


DAMAGE = {
    "lacks a key": lambda record: record.pop("recall"),
    "a string score": lambda record: record["values"].update(roc_areas="x"),
    "no score": lambda record: record["values"].pop("roc_areas"),
    "a list of scores": lambda record: record.update(values=[1]),
    "a long score": lambda record: record["values"].update(roc_areas=10**400),
    "a long deviation": lambda record: record.update(deviation=10**400),
    "a strange error": lambda record: record.update(error=[1]),
    "no parameters": lambda record: record.pop("params"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_trial_is_told_on_resuming(damage, problem, tmp_path):
    place = finished_tuning(problem, tmp_path)
    lines = (place / "trials.jsonl").read_text().splitlines()
    record = json.loads(lines[1])
    DAMAGE[damage](record)
    lines[1] = json.dumps(record)
    (place / "trials.jsonl").write_text("\n".join(lines) + "\n")
    ran = tune(problem, "-o", place, "--resume")
    assert ran.code in (3, 5), ran.err
    assert "Traceback" not in ran.err
    assert "trials.jsonl:2" in ran.err


def test_long_whole_numbers_are_refused(problem, tmp_path):
    long = "9" * 400
    (tmp_path / "pred").write_text(f'{{"decision_value": {long}}}\n{{"decision_value": 0.1}}\n')
    (tmp_path / "labels").write_text("1\n-1\n")
    said(run_resvm("score", tmp_path / "pred", "--labels", tmp_path / "labels"), 3, "pred:1")
    said(tune(problem, "-o", tmp_path / "t"), 0)
    best = json.loads((tmp_path / "t/best.json").read_bytes())
    text = json.dumps(best)
    for name in ("n_pos", "n_models", "c_unl", "gamma", "w_pos"):
        edited = json.loads(text)
        for holder in (edited, edited.get("settings", {})):
            if name in holder:
                holder[name] = int(long)
        (tmp_path / "params").write_text(json.dumps(edited))
        ran = run_resvm(
            "train", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "-o",
            tmp_path / "m", "--params", tmp_path / "params",
        )  # fmt: skip
        assert ran.code in (2, 3), (name, ran.err)
        assert "Traceback" not in ran.err


@pytest.mark.parametrize("digits", [25, 400, 5000])
def test_long_numbers_on_the_command_line_are_refused(digits, problem, model, tmp_path):
    long = "9" * digits
    pred = tmp_path / "pred"
    pred.write_text("1 0.9\n-1 0.1\n")
    data = ("-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q")
    commands = [
        *(("train", *data, "-o", tmp_path / "m", option, long)
          for option in ("--n-models", "--n-pos", "--n-unl", "--degree", "--features", "-j",
                         "--seed")),
        *(("tune", *data, "--oob", "-o", tmp_path / "t", option, long)
          for option in ("--n-models", "--max-unl", "-v", "--repeats", "--outer")),
        ("rank", *data, "-k", long, "--n-models", 3),
        ("score", pred, "--labels", pred, "-k", long),
        ("score", pred, "--labels", pred, "--seed", long),
        ("predict", model, problem / "test.svm", "-T", f"top={long}"),
        ("simulate", "--synthetic", "-o", tmp_path / "s", "--n-pos", long),
        ("simulate", "--synthetic", "-o", tmp_path / "s", "--seed", long, "--decimals", 3),
        ("simulate", "--synthetic", "-o", tmp_path / "s", "--decimals", long),
        ("check", pred, "--max", long),
    ]  # fmt: skip
    for command in commands:
        ran = run_resvm(*command)
        assert ran.code in CODES, (command[0], command[-2], ran.code, ran.err[-300:])
        assert "Traceback" not in ran.err, command[-2]
        shutil.rmtree(tmp_path / "m", ignore_errors=True)
        shutil.rmtree(tmp_path / "s", ignore_errors=True)


def test_too_little_address_space_is_told(problem, tmp_path):
    # with still less, OpenBLAS ends the program itself
    for kilobytes in (400_000, 500_000):
        line = (
            f"ulimit -v {kilobytes}; exec {script_command('')[0]} -m resvm_cli train"
            f" -P {P} -U {U} -o {tmp_path}/m --force -q -j 2"
        )
        ran = run(["bash", "-c", line])
        assert ran.code in (0, 5), (kilobytes, ran.code, ran.err)
        assert "Traceback" not in ran.err, (kilobytes, ran.err)


# 8


def test_no_escape_sequence_reaches_the_terminal(problem, model, tmp_path):
    named = tmp_path / f"{ESCAPE}.svm"
    named.write_bytes(f"1 1:{ESCAPE}2\n".encode())
    pred = tmp_path / f"{ESCAPE}.pred"
    pred.write_text("1 0.9\n-1 0.1\n")
    (tmp_path / "known").write_text(f"{ESCAPE}id\n")
    (tmp_path / "known too").write_text("x\n")
    (tmp_path / "rows").write_text("1 0.9 # x\n1 0.9 # \x9b31mx\n")
    shutil.copytree(model, tmp_path / f"{ESCAPE}m")
    (tmp_path / "runs.csv").write_text(
        "data set,repetition,method,value\n"
        + "".join(f"{ESCAPE}d,{n},{ESCAPE}{m},0.{n}\n" for n in (1, 2) for m in "ab")
    )
    for command in (
        ("check", named),
        ("predict", model, named),
        ("score", pred, "--labels", pred, "--bootstrap", 0),
        ("score", pred, pred, "--labels", pred, "--bootstrap", 0),
        ("score", tmp_path / "rows", "--positive-ids", tmp_path / "known"),
        ("score", tmp_path / "rows", "--positive-ids", tmp_path / "known too"),
        ("score", "--compare", tmp_path / "runs.csv"),
        ("inspect", tmp_path / f"{ESCAPE}m"),
        ("train", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "--n-models", 2, "-o",
         tmp_path / f"{ESCAPE}n"),
        ("rank", "--data", problem / "test.svm", "--positive-ids", tmp_path / "known"),
    ):  # fmt: skip
        ran = run_resvm(*command)
        assert "\x1b" not in ran.err, (command, ran.err)
        assert "\x9b" not in ran.err
        assert b"\x1b" not in ran.out, (command, ran.out)


# 9


def test_what_a_killed_run_left_is_removed_by_the_next(problem, tmp_path):
    for function in ("mkdir", "fsync"):
        for _ in range(3):
            ran = run(
                dying(
                    function, signal.SIGKILL, "train", "-P", problem / "pos.svm", "-U",
                    problem / "unl.svm", "--n-models", 5, "-q", "-o", tmp_path / "m",
                )
            )  # fmt: skip
            assert ran.code == -signal.SIGKILL
    assert len(litter(tmp_path)) == 1  # each run removes what the one before left
    said(train(problem, "-o", tmp_path / "m"), 0)
    assert os.listdir(tmp_path) == ["m"]


def test_so_is_what_a_killed_predict_left(problem, model, tmp_path):
    command = ("predict", model, problem / "test.svm", "-o", tmp_path / "out")
    assert run(dying("fsync", signal.SIGKILL, *command)).code == -signal.SIGKILL
    assert len(litter(tmp_path)) == 1
    said(run_resvm(*command), 0)
    assert os.listdir(tmp_path) == ["out"]


def test_what_a_running_process_has_made_is_left_to_it(problem, model, tmp_path):
    with start_resvm("predict", model, "-o", tmp_path / "slow") as running:
        running.stdin.write(b"1:1\n")
        running.stdin.flush()
        until(lambda: len(os.listdir(tmp_path)) == 1)
        said(run_resvm("predict", model, problem / "test.svm", "-o", tmp_path / "fast"), 0)
        running.stdin.close()
        assert running.wait() == 0
    assert sorted(os.listdir(tmp_path)) == ["fast", "slow"]


@pytest.mark.parametrize("function", ["mkdir", "open", "fsync"])
def test_a_signal_at_any_call_leaves_nothing(function, problem, model, tmp_path):
    ran = run(
        dying(
            function, signal.SIGTERM, "train", "-P", problem / "pos.svm", "-U", problem / "unl.svm",
            "--n-models", 5, "-q", "-o", tmp_path / "m",
        )
    )  # fmt: skip
    assert ran.code == 128 + signal.SIGTERM, ran.err
    assert "Traceback" not in ran.err
    assert os.listdir(tmp_path) == []


# 10


def test_a_refused_tuning_leaves_a_foreign_directory_alone(problem, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").write_text("x")
    said(tune(problem, "-o", tmp_path / "thesis", "--resume"), 2)
    assert os.listdir(tmp_path / "thesis") == ["chapter.tex"]


def test_a_refused_tuning_leaves_no_lock_in_its_own_directory(problem, tmp_path):
    place = finished_tuning(problem, tmp_path)
    said(tune(problem, "-o", place, "--resume", "--seed", 7), 2, "seed")
    assert litter(place) == []


# 11


def test_a_reader_leaves_alone_what_is_no_model(problem, model, tmp_path):
    (tmp_path / ".x.resvm-old").mkdir()
    (tmp_path / ".x.resvm-old/thesis.tex").write_text("x")
    said(run_resvm("inspect", tmp_path / "x"), 4)
    shutil.copytree(model, tmp_path / "x")
    said(run_resvm("inspect", tmp_path / "x"), 0)
    ran = train(problem, "-o", tmp_path / "x", "--force")
    assert ran.code in (0, 5), ran.err
    assert (tmp_path / ".x.resvm-old/thesis.tex").read_text() == "x"


def test_a_model_that_was_left_aside_is_put_back(model, tmp_path):
    shutil.copytree(model, tmp_path / ".x.resvm-old")
    said(run_resvm("inspect", tmp_path / "x"), 0)
    assert os.listdir(tmp_path) == ["x"]


# 12


@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may write anywhere"
)
def test_a_read_only_model_can_be_replaced_again_and_again(problem, tmp_path):
    plain = ["setpriv", "--bounding-set=-dac_override", "--"] if os.geteuid() == 0 else []
    target = tmp_path / "m"
    for _ in range(3):
        command = resvm_command(*train_arguments(problem), "--n-models", 5, "-o", target, "--force")
        said(run([*plain, *command]), 0)
        assert os.listdir(tmp_path) == ["m"]
        (target / "members").chmod(0o555)
        target.chmod(0o555)
    for folder in (target, target / "members"):
        folder.chmod(0o755)


# 13


def replace_often(target: Path, contents: list[dict[str, bytes]], count: int) -> list[str]:
    script = (
        "import sys; from pathlib import Path\n"
        "from resvm_cli.files.atomic import whole_directory\n"
        "target, count, *sources = sys.argv[1:]\n"
        "for number in range(int(count)):\n"
        "    source = Path(sources[number % len(sources)])\n"
        "    with whole_directory(target, may_replace=lambda path: True) as new:\n"
        "        (new / 'members').mkdir()\n"
        "        for file in sorted(source.rglob('*')):\n"
        "            if file.is_file():\n"
        "                (new / file.relative_to(source)).write_bytes(file.read_bytes())\n"
    )
    return script_command(script, target, count, *contents)


def test_a_reader_during_replacements_sees_old_or_new(problem, model, tmp_path):
    from resvm_cli.commands.inspect import read_inspection

    said(train(problem, "-o", tmp_path / "other", "--seed", 5), 0)
    shutil.copytree(model, tmp_path / "m")
    loads = 0
    seeds = set()
    with started(replace_often(tmp_path / "m", [tmp_path / "other", model], 60)) as running:
        while running.poll() is None:
            seeds.add(read_inspection(str(tmp_path / "m")).manifest["seed"])
            loads += 1
    assert running.returncode == 0
    assert loads > 5
    assert seeds == {0, 5}


# 14


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_after_the_output_is_in_place_changes_nothing(number, problem, model, tmp_path):
    data = ("-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "--n-models", 5)
    ran = run(dying("rename", number, "train", *data, "-o", tmp_path / "m"))
    said(ran, 0)
    ran = run(
        dying("replace", number, "predict", model, problem / "test.svm", "-o", tmp_path / "out")
    )
    said(ran, 0)
    assert sorted(os.listdir(tmp_path)) == ["m", "out"]
    said(run(dying("rename", number, "simulate", "--synthetic", "-o", tmp_path / "s", "-q")), 0)


def test_where_stdout_is_owed_a_signal_after_the_model_still_counts(problem, tmp_path):
    data = ("-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "--n-models", 5)
    ran = run(dying("rename", signal.SIGTERM, "train", *data, "-o", tmp_path / "m", "--json"))
    assert ran.code == 143
    assert os.listdir(tmp_path) == ["m"]


# 15


@pytest.mark.parametrize("module", ["typer", "numpy"])
def test_an_interrupt_while_modules_are_imported_is_no_traceback(module, model, tmp_path):
    # as Python begins a module, it gets the signal
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            sys.meta_path.remove(self)\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    ran = run_resvm("inspect", model, env={"PYTHONPATH": str(tmp_path)})
    assert ran.code == 130, ran.err
    assert "Traceback" not in ran.err


# 16


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="its memory is not told here")
def test_a_line_has_a_limit(model, tmp_path):
    with gzip.open(tmp_path / "bomb.gz", "wb", compresslevel=1) as handle:
        for _ in range(200):
            handle.write(bytes(1 << 20))
    with gzip.open(tmp_path / "ones.gz", "wb", compresslevel=1) as handle:
        for _ in range(200):
            handle.write(b"1" * (1 << 20))
    script = (
        "import sys; from resvm_cli.cli import main\n"
        "sys.argv[0] = 'resvm'\n"
        "try: main()\n"
        "except SystemExit as done: code = done.code\n"
        # not getrusage, which also counts what the process was forked from
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print(next(int(line.split()[1]) for line in lines if line.startswith('VmHWM')) // 1024)\n"
        "sys.exit(code)\n"
    )
    for bomb in (tmp_path / "bomb.gz", tmp_path / "ones.gz"):
        for command in (
            ("predict", model, bomb),
            ("check", bomb),
            ("score", bomb, "--labels", bomb),
            ("score", "--compare", bomb),
            ("rank", "--data", SAMPLE / "digits/test.svm", "--positive-ids", bomb),
        ):
            ran = run(script_command(script, *command))
            assert ran.code == 3, (command, ran.err)
            assert int(ran.out.split()[-1]) < 400, (command, ran.out)


# 17


def test_a_name_that_is_not_utf_8_leaves_pages_and_json_whole(problem, model, tmp_path):
    pred = os.fsencode(tmp_path) + b"/\xff.pred"
    with open(pred, "wb") as handle:
        handle.write(b"1 0.9 # \xffid\n-1 0.1 # b\n")
    (tmp_path / "labels").write_text("1\n-1\n")
    name = os.fsdecode(pred)
    ran = run_resvm("score", name, "--labels", tmp_path / "labels", "--html", tmp_path / "page",
                    "--bootstrap", 0)  # fmt: skip
    said(ran, 0)
    page = (tmp_path / "page").read_bytes().decode("utf-8")
    assert "\\udcff" not in page
    ran = run_resvm("score", name, "--labels", tmp_path / "labels", "--json", "--bootstrap", 0)
    assert b"\\udcff" not in ran.out
    json.loads(ran.out)
    (tmp_path / "rows").write_bytes(b"1 1:3 # \xffid\n-1 1:-3 # \xfeid\n")
    ran = run_resvm("predict", model, tmp_path / "rows", "--ids", "--format", "jsonl")
    ids = [json.loads(line)["id"] for line in ran.out.splitlines()]
    assert len(set(ids)) == 2
    assert all(part.encode("utf-8") for part in ids)


# 18


def test_a_pipe_in_the_place_of_a_log_is_refused(problem, tmp_path):
    place = finished_tuning(problem, tmp_path)
    for name in ("trials.jsonl", "settings.json"):
        os.rename(place / name, tmp_path / name)
        os.mkfifo(place / name)
        said(tune(problem, "-o", place, "--resume", patience=60), 5, name, "regular file")
        os.unlink(place / name)
        os.rename(tmp_path / name, place / name)


# 19


def test_a_test_that_is_killed_takes_its_child_with_it():
    family = []

    def waiting() -> None:
        with started(["sleep", "600"], patience=0.2) as running:
            family.append(running.pid)
            time.sleep(1)

    with pytest.raises(TimeoutError):
        waiting()
    with pytest.raises(ProcessLookupError):
        os.kill(family[0], 0)


# a bug


def test_a_bug_is_one_line_and_its_traceback_is_behind_debug(model):
    script = (
        "import sys; from resvm_cli.cli import main\n"
        "from resvm_cli.commands import inspect\n"
        "def broken(path, **more): raise ZeroDivisionError('of all things')\n"
        "inspect.read_inspection = broken; sys.argv[0] = 'resvm'; main()\n"
    )
    ran = run(script_command(script, "inspect", model))
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert "bug" in ran.err
    assert "ZeroDivisionError" in ran.err
    for arguments, env in ((("--debug",), {}), ((), {"RESVM_DEBUG": "1"})):
        ran = run(script_command(script, *arguments, "inspect", model), env=env)
        assert ran.code == 1
        assert "Traceback" in ran.err


def test_temporaries_are_private_and_named_after_their_process(tmp_path):
    with atomic.whole_file(str(tmp_path / "out")) as handle:
        (made,) = litter(tmp_path)
        assert f"-{os.getpid()}-" in made
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o600
        handle.write(b"x")


# a solver that does not end


@pytest.mark.parametrize("command", ["train", "tune", "rank"])
def test_a_solver_that_does_not_end_is_named(command, tmp_path):
    rng = np.random.default_rng(0)
    write_svm(tmp_path / "p", rng.standard_normal((400, 10)) * 1e4)
    write_svm(tmp_path / "u", rng.standard_normal((800, 10)) * 1e4)
    # the limit is passed at the first look, however fast the machine is
    more = {"train": ["-o", tmp_path / "m"], "rank": ["-o", tmp_path / "m"]}
    more["tune"] = ["-o", tmp_path / "t", "--oob", "--trials", 2, "--no-extend"]
    ran = run_resvm(
        command, "-P", tmp_path / "p", "-U", tmp_path / "u", "-t", "linear", "-c", "1e6", "-e",
        "1e-12", "-j", 1, "--n-pos", 400, "-q", "--member-timeout", "0.01", *more[command],
    )  # fmt: skip
    said(ran, 4, "member ", "of seed 0: the solver has not ended", "--scale")
    assert not (tmp_path / "m").exists()
    assert litter(tmp_path) == []


def test_a_limit_that_is_not_reached_changes_nothing(problem, tmp_path):
    said(train(problem, "-o", tmp_path / "a"), 0)
    said(train(problem, "-o", tmp_path / "b", "--member-timeout", 600), 0)
    assert (tmp_path / "a/manifest.json").read_bytes() == (
        tmp_path / "b/manifest.json"
    ).read_bytes()
    for limit in ("0", "-1", "nan"):
        said(train(problem, "-o", tmp_path / "c", "--member-timeout", limit), 2)
