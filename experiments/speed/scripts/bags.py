"""The bags all programs train on, and the problem they pose."""

from __future__ import annotations

import numpy as np


class Bags:
    """Row numbers of P and U by member, with the penalties and the kernel."""

    def __init__(self, path: str) -> None:
        with np.load(path) as stored:
            self.positive = stored["positive"]
            self.unlabeled = stored["unlabeled"]
            self.bias = stored["bias"]
            self.kernel = str(stored["kernel"])
            self.gamma = float(stored["gamma"])
            self.c_pos = float(stored["c_pos"])
            self.c_unl = float(stored["c_unl"])
            self.tolerance = float(stored["tolerance"])
            self.linear_tolerance = float(stored["linear_tolerance"])
            self.n_features = int(stored["n_features"])
        n_pos, n_unl = self.positive.shape[1], self.unlabeled.shape[1]
        self.labels = np.repeat([1, -1], [n_pos, n_unl])

    def __len__(self) -> int:
        return len(self.positive)

    def rows(self, n_positives: int, member: int) -> np.ndarray:
        """The bag of a member, as rows of P followed by U."""
        return np.concatenate([self.positive[member], n_positives + self.unlabeled[member]])
