"""Rows, labels and their files, shared by the tests of the Python API."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.conftest import write_svm


class Labeled(NamedTuple):
    """A labeled file and its contents."""

    path: Path
    X: np.ndarray
    y: np.ndarray
    ids: list[str]
    groups: list[str]

    @property
    def arguments(self) -> list[object]:
        return ["--data", self.path, "--positive-label", 1, "-q"]


@pytest.fixture(scope="package")
def labeled(tmp_path_factory: pytest.TempPathFactory) -> Labeled:
    """Return two clouds of rows in random order, so that P and U alternate."""
    rng = np.random.default_rng(3)
    y = (rng.random(130) < 0.3).astype(int)
    centre = np.where((y == 1) | (rng.random(130) < 0.2), 1.0, -1.0)
    X = (rng.standard_normal((130, 6)) + centre[:, None]) * (rng.random((130, 6)) < 0.8)
    X[:, 2] *= 50
    X[3] = X[40]
    ids = [f"row {number}" for number in range(130)]
    groups = [f"g{number}" for number in rng.integers(0, 60, 130)]
    folder = tmp_path_factory.mktemp("labeled")
    path = write_svm(folder / "data.svm", X, y.astype(float), comments=ids)
    (folder / "groups").write_text("\n".join(groups) + "\n")
    return Labeled(path, X, y, ids, groups)


@pytest.fixture(scope="package")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose features have the same scale, and labels 1 and 0."""
    rng = np.random.default_rng(11)
    y = (rng.random(150) < 0.3).astype(int)
    centre = np.where((y == 1) | (rng.random(150) < 0.2), 1.0, -1.0)
    return rng.standard_normal((150, 4)) + centre[:, None], y
