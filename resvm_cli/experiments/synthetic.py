"""The paper's 2-D problem: positives standard normal, negatives around a circle of radius 4."""

from __future__ import annotations

import numpy as np

from resvm_cli.dataset import FloatArray

RADIUS = 4.0


def synthetic(n_positive: int, n_negative: int, rng: np.random.Generator) -> FloatArray:
    """Points in the plane, the positive ones first."""
    angles = rng.uniform(0.0, 2.0 * np.pi, n_negative)
    circle = RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])
    centres = np.concatenate([np.zeros((n_positive, 2)), circle])
    return centres + rng.standard_normal(centres.shape)
