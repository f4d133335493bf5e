"""Matrices in files; what convert makes of them is tested with the command."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.errors import DataError
from resvm_cli.files.array_files import open_arrays


def test_an_array_that_is_no_matrix_is_not_reported_as_damage(tmp_path):
    path = str(tmp_path / "x.npy")
    np.save(path, np.zeros(3))
    with pytest.raises(DataError, match=r"x\.npy: an array of 1 dimensions of type float64"):
        open_arrays("x.npy", path, "npy", None)


def test_a_truncated_file_is_reported_as_damage(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((3, 2)))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"x\.npy: cannot be read as a NumPy file"):
        open_arrays("x.npy", str(path), "npy", None)
