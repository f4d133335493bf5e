"""The entry point: start-up, signals, exit codes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from resvm_cli import __version__
from resvm_cli.cli.app import COMMANDS, UsageError, command_line, explain_usage_error
from resvm_cli.cli.option_groups import EVERYDAY
from resvm_cli.errors import CommandLineError
from tests.conftest import assert_exit, train_arguments, write_svm
from tests.programs import (
    run,
    script_command,
    start_resvm,
    started,
    until,
)

NUMBERS = ("numpy", "ctypes", "scipy", "joblib")
LIBRARIES = ("scipy", "joblib", "matplotlib", "threadpoolctl", "rich", "html")
OTHERS = (
    "resvm_cli.cluster",
    "resvm_cli.tuning.candidates",
    "resvm_cli.data.features",
)
UNUSED = {
    "--help": (*NUMBERS, "resvm_cli.tuning", "resvm_cli.ensemble", "resvm_cli.storage"),
    "--version": (*NUMBERS, "resvm_cli.tuning", "resvm_cli.ensemble", "resvm_cli.storage"),
    "train": (*LIBRARIES, *OTHERS, "numpy.ma", "numpy.typing", "resvm_cli.svm.liblinear"),
    "predict": (
        *(*LIBRARIES, *OTHERS, "numpy.ma", "numpy.random", "numpy.typing"),
        *("resvm_cli.tuning", "resvm_cli.metrics", "resvm_cli.svm.libsvm"),
        *("resvm_cli.ensemble.train", "resvm_cli.svm.smo", "resvm_cli.data.encoding"),
    ),
    "rank": (
        *(*LIBRARIES, *OTHERS, "numpy.ma"),
        *("resvm_cli.ranking.charts", "resvm_cli.ensemble.explanations"),
    ),
    "score": (
        *("scipy", "joblib", "matplotlib", "rich.progress", *OTHERS, "numpy.ma"),
        "resvm_cli.ensemble",
    ),
}


@pytest.mark.parametrize("command", UNUSED)
def test_a_command_imports_only_what_it_uses(command, problem, model, tmp_path):
    """Imports take most of the time of a small run."""
    sets = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    scores = tmp_path / "scores"
    scores.write_text("1 0.5\n-1 0.2\n1 0.9\n-1 0.6\n")
    labels = tmp_path / "labels.svm"
    labels.write_text("1 1:1\n-1 1:1\n1 1:1\n-1 1:1\n")
    arguments = {
        "train": [*sets, "--no-auto", "-o", tmp_path / "m"],
        "predict": [model],
        "rank": [*sets, "--no-auto"],
        "score": [scores, "--labels", labels],
    }
    script = (
        "import sys; from resvm_cli.cli.app import main; sys.argv[0] = 'resvm'\n"
        "try: main()\n"
        "except SystemExit as done: assert not done.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    ran = run(script_command(script, command, *arguments.get(command, [])), stdin=b"1:1\n")
    imported = set(ran.err.splitlines()[-1].split())
    assert "resvm_cli.cli.app" in imported, ran.err
    assert sorted(imported & set(UNUSED[command])) == []


def test_a_command_imports_no_other_command(model):
    script = (
        "import sys; from resvm_cli.cli.app import main\n"
        "sys.argv = ['resvm', 'inspect', sys.argv[1]]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "import resvm_cli.cli.app\n"
        "print([n for n in resvm_cli.cli.app.COMMANDS if f'resvm_cli.commands.{n}' in sys.modules],"
        " file=sys.stderr)"
    )
    imported = run(script_command(script, model)).err.strip().splitlines()[-1]
    assert imported == "['inspect']"


@pytest.mark.parametrize("word", ["--version", "version"])
def test_the_version(word, resvm):
    ran = resvm(word)
    assert (ran.code, ran.out.decode()) == (0, f"resvm {__version__}\n")


@pytest.mark.parametrize("words", [["-h"], ["--help"], ["help"], []])
def test_help_is_on_stdout_and_lists_everyday_commands_first(words, resvm):
    ran = resvm(*words)
    assert ran.code == 0
    listed = ran.out.decode().partition("Everyday commands")[2]
    places = [re.search(rf"\b{name} ", listed).start() for name in COMMANDS]
    assert places == sorted(places)


def test_help_shows_everyday_options_and_help_all_shows_all(resvm):
    short, same, full = (
        set(re.findall(r"(?<![\w-])--[a-z-]+", resvm(*words).out.decode()))
        for words in (["rank", "--help"], ["help", "rank"], ["rank", "--help-all"])
    )
    assert short == same
    assert {"--positive-ids", "--html", "--help-all"} < short < full
    assert full - short > {"--ids-file", "--cluster", "--no-header"}
    assert "--weights" in resvm("inspect", "--help").out.decode()


def test_every_everyday_option_is_one_of_a_command():
    commands = command_line(COMMANDS).commands.values()
    names = {option.name for command in commands for option in command.params}
    assert EVERYDAY - names <= {"show", "save_model"}  # of rank


def test_help_into_nowhere_has_the_usual_exit_codes():
    command = f'"{sys.executable}" -m resvm_cli --help'
    for line, code in (
        (f"{command} | true; exit ${{PIPESTATUS[0]}}", 0),
        (f"{command} > /dev/full", 5),
        (f"{command} >&-", 5),
    ):
        ran = run(["bash", "-c", line])
        assert ran.code == code
        assert "Traceback" not in ran.err


def test_an_ignored_interrupt_stays_ignored(model):
    # as in background jobs of a script
    def ignoring() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    with start_resvm("predict", model, preexec_fn=ignoring) as running:
        running.stdin.write(b"1:1\n")
        running.stdin.flush()
        first = running.stdout.readline()
        running.send_signal(signal.SIGINT)
        # a signal that has arrived is handled before any output is written
        running.stdin.write(b"1:1\n")
        running.stdin.close()
        assert running.stdout.read() == first
    assert running.returncode == 0


def test_an_unknown_command_is_exit_2(resvm):
    ran = resvm("trian")
    assert ran.code == 2
    assert "No such command 'trian'" in ran.err


def test_completion_is_offered(resvm):
    ran = resvm(
        "--show-completion", "bash", env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    )
    assert ran.code == 0
    assert b"RESVM_COMPLETE" in ran.out


# Less than the solver needs on an idle machine, but more than exiting takes on a busy one.
SOLVE_SECONDS = 60
SOLVING = b"solving\n"


def long_solve(folder) -> list[str]:
    """Return a command whose only solver call takes minutes; it prints a line before the call.

    The call is slow because the classes overlap and the penalties are enormous.
    """
    rng = np.random.default_rng(0)
    write_svm(folder / "p", rng.standard_normal((3000, 10)))
    write_svm(folder / "u", rng.standard_normal((6000, 10)))
    script = (
        "import os, sys; from resvm_cli.cli.app import main; from resvm_cli.svm import libsvm\n"
        "library = libsvm.library(); train = library._train\n"
        f"library._train = lambda *given: os.write(1, {SOLVING!r}) and train(*given)\n"
        "sys.argv[0] = 'resvm'; main()"
    )
    return script_command(
        script, "train", "--no-auto", "-P", folder / "p", "-U", folder / "u", "-o", folder / "m",
        "--method", "cwsvm", "-t", "linear", "--solver", "libsvm", "-c", "1e6", "-e", "1e-9",
    )  # fmt: skip


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_during_a_long_solve_stops_at_once(number, code, tmp_path):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(long_solve(tmp_path), **pipes) as running:
        assert running.stdout.readline() == SOLVING
        sent = time.monotonic()
        running.send_signal(number)
        error = running.communicate()[1].decode()
    assert running.returncode == code
    assert time.monotonic() - sent < SOLVE_SECONDS
    assert "interrupted" in error
    assert "Traceback" not in error
    assert sorted(os.listdir(tmp_path)) == ["p", "u"]


@pytest.mark.parametrize("name", ["TERM", "HUP", "XCPU", "USR1"])
def test_a_signal_during_predict_leaves_no_file_behind(name, model, tmp_path):
    number = signal.Signals[f"SIG{name}"]
    with start_resvm("predict", model, "-o", tmp_path / "out") as running:
        running.stdin.write(b"1:1\n" * 10)
        running.stdin.flush()
        until(lambda: len(os.listdir(tmp_path)) == 1)
        running.send_signal(number)
        assert running.wait() == 128 + number
    assert os.listdir(tmp_path) == []


def test_what_runs_out_of_open_files_is_told(model):
    script = (
        "import sys, errno; from resvm_cli.cli import app; from resvm_cli.data import streams\n"
        "def fail(*given): raise OSError(errno.EMFILE, 'Too many open files', 'scipy.py')\n"
        "app.command_line = fail; app.program()"
    )
    ran = run(script_command(script, "inspect", model))
    assert_exit(ran, 5)
    assert "resvm: error: too many open files" in ran.err


def test_a_working_directory_that_is_gone_is_told_in_a_line(model, tmp_path):
    script = (
        "import os; os.chdir(os.environ['GONE']); os.rmdir(os.environ['GONE'])\n"
        "from resvm_cli.cli.app import program; program()"
    )
    (tmp_path / "x").mkdir()
    ran = run(script_command(script, "inspect", "m"), env={"GONE": str(tmp_path / "x")})
    assert_exit(ran, 5)
    assert ran.err == "resvm: error: m: the working directory no longer exists\n"


def test_leaving_at_once_loses_nothing():
    script = (
        "import atexit, sys; from resvm_cli.cli.app import program\n"
        "atexit.register(lambda: (print('bye'), print('farewell', end='', file=sys.stderr)))\n"
        "sys.argv = ['resvm', *sys.argv[1:]]; program()"
    )
    for argument, code in (("--version", 0), ("--nonsense", 2)):
        ran = run(script_command(script, argument))
        assert ran.code == code
        assert ran.out.endswith(b"bye\n")
        assert ran.err.endswith("farewell")


def test_the_root_directory_is_neither_a_model_nor_an_output(problem, resvm):
    assert_exit(resvm("inspect", "/"), 4)
    assert_exit(resvm("predict", "/", problem / "test.svm"), 4)
    assert_exit(resvm(*train_arguments(problem), "-o", "/"), 2)


def test_a_deleted_working_directory_is_no_bug(problem, model, tmp_path):
    for command in (
        f"train -P {problem}/pos.svm -U {problem}/unl.svm -o m -q",
        f"predict {model} {problem}/test.svm -o out",
        f"tune -P {problem}/pos.svm -U {problem}/unl.svm --trials 2 -o t -q",
        "simulate --synthetic -o s -q",
        "inspect m",
    ):
        (tmp_path / "gone").mkdir()
        line = f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec resvm {command}"
        place = os.path.dirname(script_command("")[0])
        ran = run(["sh", "-c", line], env={"PATH": f"{place}:{os.environ['PATH']}"})
        assert ran.code in (2, 4, 5), (command, ran.code, ran.err)
        assert "Traceback" not in ran.err, command


def test_no_escape_sequence_reaches_the_terminal(problem, model, resvm, tmp_path):
    escape = "\x1b[31m"
    named = tmp_path / f"{escape}.svm"
    named.write_bytes(f"1 1:{escape}2\n".encode())
    pred = tmp_path / f"{escape}.pred"
    pred.write_text("1 0.9\n-1 0.1\n")
    (tmp_path / "known").write_text(f"{escape}id\n")
    (tmp_path / "known too").write_text("x\n")
    (tmp_path / "rows").write_text("1 0.9 # x\n1 0.9 # \x9b31mx\n")
    shutil.copytree(model, tmp_path / f"{escape}m")
    for command in (
        ("check", named),
        ("predict", model, named),
        ("score", pred, "--labels", pred, "--bootstrap", 0),
        ("score", pred, pred, "--labels", pred, "--bootstrap", 0),
        ("score", tmp_path / "rows", "--positive-ids", tmp_path / "known"),
        ("score", tmp_path / "rows", "--positive-ids", tmp_path / "known too"),
        ("inspect", tmp_path / f"{escape}m"),
        ("train", "--no-auto", "-P", problem / "pos.svm", "-U", problem / "unl.svm",
        "--n-models", 2, "-o",
         tmp_path / f"{escape}n"),
        ("rank", "--data", problem / "test.svm", "--positive-ids", tmp_path / "known"),
    ):  # fmt: skip
        ran = resvm(*command)
        assert "\x1b" not in ran.err, (command, ran.err)
        assert "\x9b" not in ran.err
        assert b"\x1b" not in ran.out, (command, ran.out)


def test_too_little_memory_is_exit_5_with_advice(model):
    script = (
        "import sys; from resvm_cli.cli.app import main\n"
        "from resvm_cli.commands import inspect\n"
        "def broken(text): raise MemoryError\n"
        "inspect.print_table = broken; sys.argv[0] = 'resvm'; main()\n"
    )
    ran = run(script_command(script, "inspect", model))
    assert (ran.code, ran.out) == (5, b"")
    assert "error: out of memory" in ran.err
    assert "use fewer or smaller bags" in ran.err


def test_a_bug_is_reported_in_one_line_and_with_a_traceback_by_debug(model):
    script = (
        "import sys; from resvm_cli.cli.app import main\n"
        "from resvm_cli.commands import inspect\n"
        "def broken(text): raise ZeroDivisionError('of all things')\n"
        "inspect.print_table = broken; sys.argv[0] = 'resvm'; main()\n"
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


def refusal(line: str) -> CommandLineError:
    arguments = shlex.split(line)
    with pytest.raises(UsageError) as caught:
        command_line(COMMANDS)(arguments, prog_name="resvm", standalone_mode=False)
    return explain_usage_error(caught.value, arguments)


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("trian", "No such command 'trian'. Did you mean 'train'", "`resvm --help`"),
        (
            "train --foo",
            "No such option: --foo (Possible options: --force)",
            "`resvm train --help-all`",
        ),
        ("train -j 0", "Invalid value for '-j' / '--jobs': 0 is not", "`resvm train --help-all`"),
        ("train -j", "Option '-j' requires an argument.", "`resvm train --help-all`"),
        ("predict", "Missing argument 'MODEL'.", "`resvm predict --help-all` lists all options"),
        ("simulate x y", "Got unexpected extra argument(s) (x y)", "`resvm simulate --help-all`"),
        (
            "train -t 2 -c 10 train.svm model",
            "Got unexpected extra argument(s)",
            "files are options",
        ),
        ("train -s 0", "No such option: -s", "all members are C-SVMs; --method chooses"),
        ("train -w1 5", "No such option: -w", "--w-pos replaces -w1"),
        ("predict model -b 1", "No such option: -b", "resvm predict --probability"),
        ("train -v 5", "No such option: -v", "resvm tune -v"),
        ("tune -log2c -5,15,2", "No such option: -l", "for svm-scale, use resvm train --scale"),
        ("--debug", "Missing command.", "`resvm --help`"),
    ],
)
def test_what_is_refused_is_named_with_what_to_do(line, message, hint):
    error = refusal(line)
    assert error.message.startswith(message)
    assert error.hint is not None
    assert error.hint.startswith(hint)
    assert error.exit_code == 2


def test_the_program_says_it_in_two_lines_and_exits_with_2(resvm):
    ran = resvm("train", "-t", 2, "-c", 10, "train.svm", "model")
    assert (ran.code, ran.out) == (2, b"")
    first, second = ran.err.splitlines()
    assert first.startswith("resvm: error: ")
    assert second.startswith("  hint: ")


def test_nothing_at_all_shows_the_help(resvm):
    ran = resvm()
    assert ran.code == 0
    assert b"Usage: resvm" in ran.out
