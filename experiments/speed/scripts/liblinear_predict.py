"""Judge rows with LIBLINEAR's Python package: MODELS TEST OUT [VALUES].

Its weight vectors become one matrix: that is faster than its own ``predict``, a loop over rows.
"""

from __future__ import annotations

import os
import sys

import numpy as np
from liblinear.liblinearutil import load_model, svm_read_problem
from votes import write_predictions

models, test, out, *values_path = sys.argv[1:]
_, rows = svm_read_problem(test, return_scipy=True)
weights, biases = [], []
for name in sorted(name for name in os.listdir(models) if name.endswith(".model")):
    model = load_model(os.path.join(models, name))
    # liblinear: the decision value is for the class that comes first in the model
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0
    weight, bias = model.get_decfun()
    weights.append(sign * np.array(weight))
    biases.append(sign * bias)
matrix = np.zeros((len(weights), rows.shape[1]))
for number, weight in enumerate(weights):  # each as wide as its bag happened to be
    width = min(rows.shape[1], len(weight))
    matrix[number, :width] = weight[:width]
values = rows @ matrix.T + np.array(biases)
write_predictions(values, out)
if values_path:
    np.save(values_path[0], values)
