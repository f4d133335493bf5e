"""Which known positives look wrong, and how many of the most suspicious are expected to be.

False positives of P are assumed to be like the negatives of U: wrong by chance, not by resemblance.
Their scores then follow the distribution that U and P, whose shares of wrong rows are given, imply
for negatives, and of a |P| of them the share below a score is expected there.
"""

from __future__ import annotations

import numpy as np

from resvm_cli.evaluation.corrected import Contamination
from resvm_cli.evaluation.ranking import FloatArray


def expected_false(
    positives: FloatArray, unlabeled: FloatArray, known: Contamination
) -> FloatArray:
    """For k = 1, 2, ...: expected false positives among the k lowest scores of P.

    ``positives`` ascend. Never falling, never more than k nor than there are, and never fewer than
    k less the true positives.
    """
    n_pos = len(positives)
    depth = np.arange(1, n_pos + 1)
    of_unl = np.sort(unlabeled)
    above_pos = 1 - np.searchsorted(positives, positives, "right") / n_pos
    above_unl = 1 - np.searchsorted(of_unl, positives, "right") / max(1, len(of_unl))
    _, above_negative = known.rates(above_pos, above_unl)
    false = known.a * n_pos
    expected = np.maximum.accumulate(false * np.clip(1 - above_negative, 0.0, 1.0))
    return np.asarray(np.clip(expected, np.maximum(0.0, depth - (n_pos - false)), depth))


def n_suspects(positives: FloatArray, unlabeled: FloatArray) -> int:
    """How many scores of P are more typical of U.

    They lie below the score that tells P and U best apart: where the share of U below it exceeds
    that of P by most (the statistic of Kolmogorov and Smirnov).
    """
    of_pos, of_unl = np.sort(positives), np.sort(unlabeled)
    below_pos = np.searchsorted(of_pos, of_pos, "left") / max(1, len(of_pos))
    below_unl = np.searchsorted(of_unl, of_pos, "left") / max(1, len(of_unl))
    if not len(of_pos):
        return 0
    best = int(np.argmax(below_unl - below_pos))
    return int(np.searchsorted(of_pos, of_pos[best], "left"))
