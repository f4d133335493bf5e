"""Read a file with LIBSVM's Python reader: FILE [WEIGHTS VALUES], the latter to check it."""

from __future__ import annotations

import sys

import numpy as np
from libsvm.svmutil import svm_read_problem

labels, rows = svm_read_problem(sys.argv[1], return_scipy=True)
if len(sys.argv) > 2:
    weights = np.load(sys.argv[2])
    width = min(len(weights), rows.shape[1])  # either may lack the last features
    np.save(sys.argv[3], rows[:, :width] @ weights[:width])
