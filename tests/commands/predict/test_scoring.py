"""Notes on rows that look wrong."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from resvm_cli.commands.predict.scoring import BlockScorer, InputNotes, PredictRequest
from resvm_cli.model.decisions import DecisionRule, Threshold
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import MethodParameters, Setting
from resvm_cli.running.run import Run
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.train import train_on


@pytest.fixture(scope="module")
def trained():
    """A model of 20 known positives and 100 unlabeled rows."""
    features = np.random.default_rng(2).normal(size=(120, 3))
    data = MemoryData.from_matrix(features, np.arange(120) < 20)
    choice = TrainingChoice((Setting(MethodParameters(kernel="linear", n_models=9)),))
    return train_on(data, choice, Run(jobs=1))[1]


@pytest.mark.parametrize(
    ("share", "n_positive", "told"),
    [
        (0.25, 0, "0 % of the rows are predicted positive, but in training 25 % of U and 29.2 %"),
        (0.25, 500, None),
        (0.01, 0, None),  # one row of U: chance could have made it none
        (0.01, 20, None),
        (0.01, 2000, "100 % of the rows are predicted positive, but in training 1 % of U and"),
    ],
)
def test_an_unusual_fraction_of_positives_is_noted_unless_chance_explains_it(
    share, n_positive, told, trained
):
    rule = DecisionRule("mean", {"mean": Threshold(0.0, 0.5, share)})
    model = replace(trained, decision=rule)
    scorer = BlockScorer(PredictRequest("m"), model, "mean", 0.0)
    notes = InputNotes(scorer, SimpleNamespace(features=None))
    notes.n_rows = 2000
    found = [text for text in notes.texts(n_positive) if "predicted positive" in text]
    assert len(found) == (told is not None)
    assert told is None or found[0].startswith(told)
