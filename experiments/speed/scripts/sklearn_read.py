"""Read a file with scikit-learn: FILE [WEIGHTS VALUES], the latter to check what was read."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_svmlight_file

rows, labels = load_svmlight_file(sys.argv[1])
if len(sys.argv) > 2:
    weights = np.load(sys.argv[2])
    width = min(len(weights), rows.shape[1])  # either may lack the last features
    np.save(sys.argv[3], rows[:, :width] @ weights[:width])
