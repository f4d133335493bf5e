"""The log of trials: what it tells while a search runs."""

from __future__ import annotations

import pytest

from resvm_cli.run import Run
from resvm_cli.tuning.candidates import Scores, SearchOptions
from resvm_cli.tuning.search import TrialLog
from resvm_cli.tuning.space import Candidate


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
    log = TrialLog(SearchOptions(metric="roc_auc"), run, directory=directory)
    log.n_expected = 1
    log.tick()
    scores = Scores({"roc_auc": 0.9}, 0.1, 0.8, 0.2, 10)
    log.add(Candidate("resvm", ()), scores, None)
    log.tick()
    assert stages == expected
