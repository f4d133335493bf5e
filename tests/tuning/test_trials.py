"""Tuning in an array job gives the same trials and best parameters as on one machine."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from resvm_cli.errors import Interrupted
from resvm_cli.files.json_files import read_sealed, write_sealed
from resvm_cli.running.run import Run, Share
from resvm_cli.training.input import TrainingInput
from resvm_cli.tuning.search import Scores, TuningSettings
from resvm_cli.tuning.space import Candidate
from resvm_cli.tuning.trials import TrialLog
from resvm_cli.tuning.tune import TuneRequest, tune_task

SEARCHES = {
    "informed": [],
    "random extended": ["--search", "random", "--trials", 12, "--n-models", 5, "-g", "0.5..0.6"],
    "grid": [
        *("--search", "grid", "-c", "0.1,1,10", "-g", "0.1,1,10", "--n-pos", 9),
        *("--unl-per-pos", 2, "--w-pos", 1, "--n-models", 9, "--no-extend"),
    ],
    "all by folds": [
        *("--method", "all", "-v", 3, "--search", "random", "--trials", 4),
        *("--n-models", 4, "--no-extend"),
    ],
}


def command(folder: Path, *more: object) -> list[object]:
    return ["tune", "-P", folder / "pos.svm", "-U", folder / "unl.svm", *more]


def results(path: Path) -> dict[str, bytes]:
    return {name: (path / name).read_bytes() for name in ("trials.jsonl", "best.json")}


@pytest.mark.parametrize("name", SEARCHES)
def test_tasks_give_the_bytes_of_one_machine(name, problem, resvm, tmp_path):
    n_tasks = 2
    common = command(problem, *SEARCHES[name])
    assert resvm(*common, "-q", "-o", tmp_path / "whole").code == 0
    shared = tmp_path / "shared"
    n_judged = 0
    for number in range(n_tasks, 0, -1):
        ran = resvm(*common, "-q", "--json", "-o", shared, "--task", f"{number}/{n_tasks}")
        assert ran.code == 0, ran.err
        n_judged += json.loads(ran.out)["n_judged"]
    ran = resvm(*common, "-o", shared)
    assert ran.code == 0, ran.err
    assert results(shared) == results(tmp_path / "whole")
    n_trials = len((shared / "trials.jsonl").read_bytes().splitlines())
    assert 0 < n_judged <= n_trials
    if "extended" not in name:
        assert n_judged == n_trials


def test_the_tuning_judges_what_tasks_have_not(problem, resvm, tmp_path):
    common = command(problem, *SEARCHES["grid"])
    assert resvm(*common, "-q", "-o", tmp_path / "whole").code == 0
    shared = tmp_path / "shared"
    ran = resvm(*common, "-o", shared, "--task", "2/3")
    assert ran.code == 0, ran.err
    assert "3 of 9 candidates" in ran.err
    assert "tasks 1,3 of 3" in ran.err
    assert resvm(*common, "-q", "-o", shared).code == 0
    assert results(shared) == results(tmp_path / "whole")


def test_a_finished_task_run_again_judges_nothing(problem, resvm, tmp_path):
    common = command(problem, "-q", "--json", "-o", tmp_path / "t", "--task", "1/2")
    assert json.loads(resvm(*common).out)["n_judged"] == 7
    assert json.loads(resvm(*common).out)["n_judged"] == 0


def test_tasks_of_another_command_and_damaged_ones_are_refused(problem, resvm, tmp_path):
    target = ["-o", tmp_path / "t"]
    assert resvm(*command(problem, "--task", "1/2", *target)).code == 0
    ran = resvm(*command(problem, "--seed", 1, *target))
    assert (ran.code, "started with different settings: seed" in ran.err) == (2, True)
    ran = resvm(*command(problem, "--seed", 1, "--task", "2/2", *target))
    assert (ran.code, "started with different settings: seed" in ran.err) == (2, True)
    (file,) = (tmp_path / "t/tasks").iterdir()
    file.write_bytes(file.read_bytes().replace(b"0", b"1", 1))
    ran = resvm(*command(problem, "--resume", *target))
    assert (ran.code, file.name in ran.err) == (5, True)


def test_a_task_that_is_stopped_keeps_what_it_has_scored(problem, tmp_path):
    source = TrainingInput(str(problem / "pos.svm"), str(problem / "unl.svm"))
    request = TuneRequest(
        source=source,
        target=str(tmp_path / "t"),
        oob=True,
        trials=40,
        n_models=3,
        no_extend=True,
    )

    def stop(stage, done, total):
        if stage.startswith("tuning") and done == 17:
            raise Interrupted(signal.SIGTERM)

    with pytest.raises(Interrupted):
        tune_task(request, Share(1, 1), Run(jobs=1, on_progress=stop))
    assert tune_task(request, Share(1, 1), Run(jobs=1)).n_scored == 40 - 17


class Recorder:
    """A run directory that writes nothing."""

    def append(self, name, record):
        pass


@pytest.mark.parametrize(
    ("directory", "expected"),
    [(None, ["tuning", "tuning"]), (Recorder(), ["tuning", "tuning, best roc_auc 0.9000"])],
)
def test_the_progress_of_a_run_with_a_log_shows_the_best_score(directory, expected):
    stages = []
    run = Run(on_progress=lambda stage, done, total: stages.append(stage))
    log = TrialLog(TuningSettings(metric="roc_auc"), run, directory=directory)
    log.expect(1)
    scores = Scores({"roc_auc": 0.9}, 0.1, 0.8, 0.2, 10)
    log.finished(log.trial(Candidate("resvm", ()), scores, None), 0.1)
    assert stages == expected


STRANGE_RECORDS = {
    "not an object": lambda records: records.__setitem__(0, [1]),
    "no trial": lambda records: records[0].pop("trial"),
    "no seconds": lambda records: records[0].pop("seconds"),
    "a string score": lambda records: records[0]["trial"]["values"].update(roc_areas="x"),
    "no score": lambda records: records[0]["trial"]["values"].pop("roc_auc_of_mean"),
    "a long deviation": lambda records: records[0]["trial"].update(deviation=10**400),
    "a strange error": lambda records: records[0]["trial"].update(error=[1]),
}


@pytest.mark.parametrize("damage", STRANGE_RECORDS)
def test_what_is_no_trial_is_told_even_with_a_digest(damage, problem, resvm, tmp_path):
    target = ["-q", "-o", tmp_path / "t"]
    assert resvm(*command(problem, "--task", "1/2", *target)).code == 0
    (file,) = (tmp_path / "t/tasks").iterdir()
    content = read_sealed(str(file))
    STRANGE_RECORDS[damage](content["records"])
    write_sealed(str(file), content)
    for more in ((), ("--task", "2/2")):
        ran = resvm(*command(problem, *more, *target))
        assert (ran.code, file.name in ran.err) == (5, True)
        assert "Traceback" not in ran.err


def test_a_directory_that_holds_more_than_tasks_is_not_begun(problem, resvm, tmp_path):
    target = ["-q", "-o", tmp_path / "t"]
    assert resvm(*command(problem, "--task", "1/2", *target)).code == 0
    (tmp_path / "t/notes.txt").write_text("mine")
    ran = resvm(*command(problem, *target))
    assert (ran.code, "already exists" in ran.err) == (2, True)
    ran = resvm(*command(problem, "--resume", *target))
    assert (ran.code, "not written by this command" in ran.err) == (2, True)
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == ["notes.txt", "tasks"]
