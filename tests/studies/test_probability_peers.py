"""Tests of the study that compares probabilities with those of other programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.probability_peers import brier_and_calibration, moved_to_b
from studies.pu_tasks import draw


def test_chances_that_are_right_have_no_calibration_error():
    truth = np.tile([True, False, False, False], 100)
    assert brier_and_calibration(np.full(400, 0.25), truth) == pytest.approx((0.1875, 0.0))
    assert brier_and_calibration(np.full(400, 0.75), truth) == pytest.approx((0.4375, 0.5))


def test_odds_are_moved_from_the_fraction_in_both_sets_to_that_in_u():
    drawn = draw("synthetic", 0.0, 0, Path("no-such-folder"))
    n_pos, n_unl, b = len(drawn.positives), len(drawn.unlabeled), drawn.prior
    in_both = (n_pos + b * n_unl) / (n_pos + n_unl)
    found = moved_to_b(np.array([0.0, in_both, 1.0, 1.3]), drawn)
    assert found == pytest.approx([0.0, b, 1.0, 1.0])
