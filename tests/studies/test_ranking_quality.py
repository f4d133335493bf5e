"""Tests of the study of rankings."""

from __future__ import annotations

import numpy as np

from studies.ranking_quality import recall_gap


def test_recall_is_estimated_from_known_rows_and_compared_with_the_truth():
    truth = np.array([True, True, False, False])
    unlabeled = np.array([0.9, 0.2, 0.5, np.nan])
    assert recall_gap(truth, np.array([0.6, 0.4, 0.5]), unlabeled) == (2 / 3, 1 / 2)
