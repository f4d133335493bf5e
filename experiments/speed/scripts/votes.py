"""Members' decision values to votes and d, and those to text: the same for every peer."""

from __future__ import annotations

import numpy as np


def write_predictions(values: np.ndarray, path: str) -> None:
    """One line a row: label, d, votes (paper, section 3.2)."""
    n_members = values.shape[1]
    votes = (n_members + np.sign(values).sum(axis=1)) / (2 * n_members)
    sums = values.sum(axis=1)
    d = np.where(votes == 0, sums, np.where(votes == 1, 1 + sums, votes))
    labels = np.where(d > 0.5, 1, -1)
    with open(path, "w") as handle:
        for label, value, vote in zip(labels.tolist(), d.tolist(), votes.tolist(), strict=True):
            handle.write(f"{label} {value!r} {vote!r}\n")
