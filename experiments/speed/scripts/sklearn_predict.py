"""Judge rows with scikit-learn members: MODEL TEST OUT loop|stacked sparse|dense [VALUES]."""

from __future__ import annotations

import sys

import joblib
import numpy as np
from sklearn.datasets import load_svmlight_file
from votes import write_predictions

model, test, out, way, form, *values_path = sys.argv[1:]
members = joblib.load(model)
rows, _ = load_svmlight_file(test, n_features=members[0].n_features_in_)
rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
if form == "dense":
    rows = rows.toarray()
if way == "stacked":
    # what an expert would do with linear members: one weight matrix
    coefficients = [member.coef_ for member in members]
    dense = [
        matrix if isinstance(matrix, np.ndarray) else matrix.toarray() for matrix in coefficients
    ]
    intercepts = np.array([float(member.intercept_[0]) for member in members])
    values = rows @ np.concatenate(dense).T + intercepts
else:
    values = np.column_stack([member.decision_function(rows) for member in members])
write_predictions(values, out)
if values_path:
    np.save(values_path[0], values)
