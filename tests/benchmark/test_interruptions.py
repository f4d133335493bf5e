"""A benchmark that is killed repeatedly and resumed writes the same file as one that is not."""

from __future__ import annotations

import json
import signal
import subprocess
from itertools import cycle, islice

import pytest

from tests.benchmark.test_run import ONE_CANDIDATE
from tests.programs import resvm_command, script_command, started, until

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 143, signal.SIGINT: 130}
# as resvm_cli/__main__.py, but array tasks save their results line by line
SAVING_EACH_LINE = (
    "from resvm_cli.files import json_files; json_files.SAVED_SECONDS = -1.0\n"
    "import sys; from resvm_cli.cli import main; sys.argv[0] = 'resvm'; main()"
)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The command without its repetitions and directory."""
    path = tmp_path_factory.mktemp("grids") / "grid.json"
    path.write_text(json.dumps(ONE_CANDIDATE))
    return ["benchmark", "run", "--tasks", "synthetic", "--grid", path, "-q"]


def n_saved(folder, name):
    """Return the number of results in a file of the directory."""
    try:
        return (folder / name).read_bytes().count(b'"pr_auc_trapezoid"')
    except FileNotFoundError:
        return 0


def interrupt(command, folder, name, number, n_more):
    """Run until ``n_more`` more results are in a file, then send a signal."""
    wanted = n_saved(folder, name) + n_more

    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with started(command, **silent) as running:
        until(lambda: n_saved(folder, name) >= wanted or running.poll() is not None)
        assert running.poll() is None, "it ended before it could be interrupted"
        running.send_signal(number)
        said = running.communicate()[1].decode()
    assert running.returncode == CODES[number], said
    assert "Traceback" not in said


def interrupted_run(words, folder, n_interruptions, wanted, resvm):
    """Interrupt a run repeatedly, after one or two more lines in turn, then let it finish."""
    command = [*words, "--resume", "-o", folder]
    for turn, number in enumerate(islice(cycle(SIGNALS), n_interruptions)):
        interrupt(resvm_command(*command), folder, "results.jsonl", number, 1 + turn % 2)
    assert 0 < n_saved(folder, "results.jsonl") < wanted.count(b"\n")
    ran = resvm(*command)
    assert ran.code == 0, ran.err
    assert (folder / "results.jsonl").read_bytes() == wanted
    assert not list(folder.glob(".*"))


def whole_run(words, folder, resvm):
    ran = resvm(*words, "-j", 1, "-o", folder)
    assert ran.code == 0, ran.err
    return (folder / "results.jsonl").read_bytes()


def test_three_interruptions_change_no_byte(words, resvm, tmp_path):
    words = [*words, "--settings", "pu", "--repetitions", 3]
    wanted = whole_run(words, tmp_path / "whole", resvm)
    interrupted_run([*words, "-j", 1], tmp_path / "torn", 3, wanted, resvm)


@pytest.fixture(scope="module")
def many(words, resvm, tmp_path_factory):
    """A command of 72 results, and what it writes without interruption."""
    words = [*words, "--repetitions", 8]
    return words, whole_run(words, tmp_path_factory.mktemp("many") / "whole", resvm)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_ten_interruptions_change_no_byte(jobs, many, resvm, tmp_path):
    words, wanted = many
    interrupted_run([*words, "-j", jobs], tmp_path / "torn", 10, wanted, resvm)


@pytest.mark.slow
def test_ten_interruptions_of_the_tasks_of_an_array_job_change_no_byte(many, resvm, tmp_path):
    words, wanted = many
    folder = tmp_path / "torn"
    for turn, number in enumerate(islice(cycle(SIGNALS), 10)):
        task = 1 + turn % 2
        share = [*words, "-j", 1, "--task", f"{task}/2", "-o", folder]
        name = f"tasks/paper-{task}-of-2.json"
        interrupt(script_command(SAVING_EACH_LINE, *share), folder, name, number, 1 + turn % 3)
    for task in (1, 2):
        ran = resvm(*words, "-j", 1, "--task", f"{task}/2", "-o", folder)
        assert ran.code == 0, ran.err
    ran = resvm(*words, "-j", 1, "-o", folder)
    assert ran.code == 0, ran.err
    assert (folder / "results.jsonl").read_bytes() == wanted
