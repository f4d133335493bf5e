"""The entry point: start-up, signals, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from resvm_cli import __version__
from tests.conftest import write_svm


def test_help_and_version_import_no_numbers():
    for argument in ("--help", "--version"):
        script = (
            "import sys; from resvm_cli.cli import main; sys.argv = ['resvm', sys.argv[1]]\n"
            "try: main()\n"
            "except SystemExit: pass\n"
            "print([name for name in ('numpy', 'scipy', 'joblib', 'ctypes', 'resvm_cli.jobs.train')"
            " if name in sys.modules], file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, argument], capture_output=True, timeout=60
        )
        assert done.stderr.decode().strip() == "[]"


def test_a_small_predict_imports_neither_scipy_nor_joblib(model):
    script = (
        "import sys; from resvm_cli.cli import main; sys.argv = ['resvm', 'predict', sys.argv[1]]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('scipy', 'joblib', 'rich.progress', 'threadpoolctl')"
        " if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(model)], input=b"1:1\n", capture_output=True, timeout=60
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr.decode().strip() == "[]"


def test_a_small_training_imports_no_more_than_it_needs(problem, tmp_path):
    script = (
        "import sys; from resvm_cli.cli import main; sys.argv = ['resvm', 'train', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('scipy', 'joblib', 'numpy.ma') if name in sys.modules])"
    )
    options = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-o", tmp_path / "m", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, options)], capture_output=True, timeout=60
    )
    assert done.stdout.decode().strip() == "[]", done.stderr


def test_a_command_imports_no_other_command(model):
    script = (
        "import sys; from resvm_cli.cli import main; sys.argv = ['resvm', 'inspect', sys.argv[1]]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "import resvm_cli.cli\n"
        "print([n for n in resvm_cli.cli.COMMANDS if f'resvm_cli.commands.{n}' in sys.modules],"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(model)], capture_output=True, timeout=60
    )
    imported = done.stderr.decode().strip().splitlines()[-1]
    assert imported == "['inspect']"


def test_a_misspelt_command_is_told_of_the_right_one(resvm):
    ran = resvm("trian")
    assert ran.code == 2
    assert "train" in ran.err


def test_the_version(resvm):
    ran = resvm("--version")
    assert (ran.code, ran.out.decode()) == (0, f"resvm {__version__}\n")


def test_help_is_on_stdout_and_lists_the_commands(resvm):
    for flag in ("-h", "--help"):
        ran = resvm(flag)
        assert ran.code == 0
        assert all(name in ran.out.decode() for name in ("train", "predict", "inspect"))


def test_help_into_nowhere_has_the_usual_exit_codes():
    command = f'"{sys.executable}" -m resvm_cli --help'
    for line, code in (
        (f"{command} | true; exit ${{PIPESTATUS[0]}}", 0),
        (f"{command} > /dev/full", 5),
        (f"{command} >&-", 5),
    ):
        done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=30)
        assert done.returncode == code
        assert b"Traceback" not in done.stderr


def test_an_ignored_interrupt_stays_ignored(model):
    # as for the background jobs of a script
    running = subprocess.Popen(
        [sys.executable, "-m", "resvm_cli", "predict", str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    with running:
        running.stdin.write(b"1:1\n")
        running.stdin.flush()
        first = running.stdout.readline()
        running.send_signal(signal.SIGINT)
        time.sleep(0.2)
        running.stdin.write(b"1:1\n")
        running.stdin.close()
        assert running.stdout.read() == first
    assert running.returncode == 0


def test_an_unknown_command_is_exit_2(resvm):
    ran = resvm("trian")
    assert ran.code == 2
    assert "No such command" in ran.err


def test_completion_is_offered(resvm):
    ran = resvm(
        "--show-completion", "bash", env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    )
    assert ran.code == 0
    assert b"RESVM_COMPLETE" in ran.out


def long_solve(folder) -> list[str]:
    """A command whose only solver call takes minutes: overlapping classes, enormous penalties."""
    rng = np.random.default_rng(0)
    write_svm(folder / "p", rng.standard_normal((3000, 10)))
    write_svm(folder / "u", rng.standard_normal((6000, 10)))
    return [
        sys.executable, "-m", "resvm_cli", "train", "-P", f"{folder}/p", "-U", f"{folder}/u",
        "-o", f"{folder}/m", "--method", "cwsvm", "-t", "linear", "--solver", "libsvm",
        "-c", "1e6", "-e", "1e-9",
    ]  # fmt: skip


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_during_a_long_solve_stops_at_once(number, code, tmp_path):
    running = subprocess.Popen(long_solve(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(3)
    assert running.poll() is None, running.stderr.read()
    sent = time.monotonic()
    running.send_signal(number)
    error = running.communicate(timeout=30)[1].decode()
    assert running.returncode == code
    assert time.monotonic() - sent < 10
    assert "interrupted" in error
    assert "Traceback" not in error
    assert sorted(os.listdir(tmp_path)) == ["p", "u"]


def test_a_signal_during_predict_leaves_no_file_behind(model, tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-m", "resvm_cli", "predict", str(model), "-o", str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    running.stdin.write(b"1:1\n" * 10)
    running.stdin.flush()
    deadline = time.monotonic() + 20
    while not os.listdir(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(os.listdir(tmp_path)) == 1
    running.send_signal(signal.SIGTERM)
    assert running.wait(20) == 143
    running.stdin.close()
    running.stderr.close()
    assert os.listdir(tmp_path) == []


def test_a_terminal_sees_a_progress_bar_and_elsewhere_heartbeats(monkeypatch, capsys):
    from resvm_cli.report import terminal

    clock = [0.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: clock[0])
    with terminal.Progress(quiet=False) as progress:
        for second in range(100):
            clock[0] = float(second)
            progress("training", second, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "resvm: training: 10 of 100, 10 s, about 90 s left"
    assert len(lines) == 3
    with terminal.Progress(quiet=True) as progress:
        clock[0] += 1000
        progress("training", 1, 2)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_progress_is_drawn():
    import pty

    script = (
        "import time; from resvm_cli.report.terminal import Progress\n"
        "with Progress(False) as p:\n"
        "    for i in range(12): p('training', i, 12); time.sleep(0.05)\n"
    )
    primary, secondary = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-c", script], stderr=secondary, env={**os.environ, "TERM": "xterm"}
    )
    os.close(secondary)
    drawn = b""
    try:
        while piece := os.read(primary, 4096):
            drawn += piece
    except OSError:
        pass  # Linux reports the closed end this way
    os.close(primary)
    assert running.wait(20) == 0
    assert b"training" in drawn
    assert b"/12" in drawn


def test_leaving_at_once_loses_nothing():
    script = (
        "import atexit, sys; from resvm_cli.cli import program\n"
        "atexit.register(lambda: (print('bye'), print('farewell', end='', file=sys.stderr)))\n"
        "sys.argv = ['resvm', *sys.argv[1:]]; program()"
    )
    for argument, code in (("--version", 0), ("--nonsense", 2)):
        done = subprocess.run(
            [sys.executable, "-c", script, argument], capture_output=True, timeout=60
        )
        assert done.returncode == code
        assert done.stdout.endswith(b"bye\n")
        assert done.stderr.endswith(b"farewell")
