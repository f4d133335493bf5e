"""The program that compares lists of informed settings for ``--auto``."""

from __future__ import annotations

import numpy as np

from perf import informed_lists
from perf.informed_lists import FORMER, LISTS, UNTUNED, WIDE, Measured, load, save, tables
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning.committee import informed_settings
from resvm_cli.tuning.space import Candidate

TRUTH = np.arange(40) < 10


def measured(task="german", best=FORMER[3]):
    """A draw on which one setting knows the truth and the others are noise."""
    rng = np.random.default_rng(3)
    settings = list(dict.fromkeys([UNTUNED, *WIDE]))
    candidates = {
        one: Candidate("resvm", (("n_pos", float(number)),)) for number, one in enumerate(settings)
    }
    scores = {one: 0.9 if one == best else 0.5 for one in settings}
    values = {
        candidates[one]: TRUTH * 1.0 if one == best else rng.random(len(TRUTH)) for one in settings
    }
    return Measured(task, TRUTH, scores, candidates, values)


def test_the_list_called_todays_is_what_auto_judges():
    assert set(LISTS["today's"]) == set(informed_settings(Kernel("rbf")))
    assert all(set(some) <= set(WIDE) for some in LISTS.values())
    assert len(set(FORMER)) == 30


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


def test_the_best_on_other_sets_is_judged_on_the_one_left_out():
    told: list[str] = []
    tables([measured(), measured("splice +")], told.append)
    text = "\n".join(told)
    assert "2 draws of 2 data sets" in text
    assert f"| the former 30 | 30 | {' | '.join(['100.00'] * len(informed_lists.KEPT))} |" in text
    left_out = [line for line in told if line.startswith("| splice |")]
    assert left_out[0].startswith("| splice | the former 30, 2 pooled | +0.00 |")
