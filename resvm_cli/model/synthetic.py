"""The paper's 2-D problem: positives standard normal, negatives around a circle of radius 4."""

from __future__ import annotations

import numpy as np

from resvm_cli.rows import FloatArray

RADIUS = 4.0


def synthetic(n_positive: int, n_negative: int, rng: np.random.Generator) -> FloatArray:
    """Points in the plane, the positive ones first."""
    angles = rng.uniform(0.0, 2.0 * np.pi, n_negative)
    circle = RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])
    centres = np.concatenate([np.zeros((n_positive, 2)), circle])
    return centres + rng.standard_normal(centres.shape)


def positive_density(radius: FloatArray) -> FloatArray:
    """Of positives, at a distance from the origin; the same in every direction."""
    density: FloatArray = np.exp(-(radius**2) / 2) / (2 * np.pi)
    return density


def negative_density(radius: FloatArray) -> FloatArray:
    """Of negatives: the normal density, averaged over centres on the circle."""
    from scipy.special import ive

    # the mean of e^(r R cos a) over a is I0(r R); ive is I0 without its growth e^(r R)
    density: FloatArray = (
        np.exp(-((radius - RADIUS) ** 2) / 2) * ive(0, radius * RADIUS) / (2 * np.pi)
    )
    return density
