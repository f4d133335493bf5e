"""Tests of the study that compares lists of informed settings for ``--auto``."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.parameters import MethodParameters
from resvm_cli.tuning.search import informed_settings
from resvm_cli.tuning.space import Candidate
from studies import informed_lists
from studies.informed_lists import (
    FORMER,
    FORMER_NAME,
    LISTS,
    WIDE,
    Measured,
    by_set,
    load,
    save,
    tables,
)

TRUTH = np.arange(40) < 10


def measured(task="german", best=FORMER[3], seed=3):
    """A draw on which one setting knows the truth and the others are noise."""
    rng = np.random.default_rng(seed)
    settings = list(dict.fromkeys(WIDE))
    candidates = {
        one: Candidate("resvm", (("n_pos", float(number)),)) for number, one in enumerate(settings)
    }
    scores = {one: 0.9 if one == best else 0.5 for one in settings}
    values = {
        candidates[one]: TRUTH * 1.0 if one == best else rng.random(len(TRUTH)) for one in settings
    }
    return Measured(task, TRUTH, scores, candidates, values)


def test_the_list_called_todays_is_what_auto_judges():
    assert set(LISTS["today's"]) == set(informed_settings(MethodParameters(), quantiles=True))
    assert all(set(some) <= set(WIDE) for some in LISTS.values())
    assert len(set(FORMER)) == 12


def test_a_committee_answers_by_the_settings_that_did_well():
    one = measured()
    assert one.answer(FORMER, 2)[TRUTH].min() > one.answer(FORMER, 2)[~TRUTH].max()
    noise = one.answer([setting for setting in FORMER if setting != FORMER[3]], 4)
    assert noise[TRUTH].min() < noise[~TRUTH].max()


def test_what_is_kept_of_a_draw_gives_the_same_answers(tmp_path):
    before = measured()
    save(before, tmp_path / "draw.npz")
    after = load(tmp_path / "draw.npz")
    assert after.task == before.task
    for some in LISTS.values():
        np.testing.assert_allclose(after.answer(some, 4), before.answer(some, 4), rtol=1e-6)


def test_the_best_on_other_sets_is_judged_on_the_one_left_out(monkeypatch):
    lists = {name: LISTS[name] for name in (FORMER_NAME, "today's")}
    monkeypatch.setattr(informed_lists, "LISTS", lists)
    of_former = next(one for one in FORMER if one not in LISTS["today's"])
    of_today = next(one for one in LISTS["today's"] if one not in FORMER)
    draws = [
        measured("german", of_former),
        measured("splice +", of_today, 4),
        measured("svmguide1", of_today, 5),
    ]
    told: list[str] = []
    tables(draws, told.append)
    assert told[0].startswith("3 draws of 3 data sets")
    rows = {line.split(" | ")[0]: line.split(" | ")[1:] for line in told if " pooled | " in line}
    assert by_set(draws, (FORMER_NAME, 10))["german.numer_scale"] == pytest.approx(100.0)
    # today's know the truth of the two others, which tells nothing of german
    chosen, gain, _ = rows["| german.numer_scale"]
    assert chosen.startswith("today's")
    assert float(gain) < -10
    (mean,) = (line for line in told if line.startswith("| mean (standard error)"))
    assert mean.count("(") == 3  # of both columns
