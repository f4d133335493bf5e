"""Judge rows with LIBSVM's Python package: MODELS TEST OUT [VALUES].

The loop calls the C function on rows made into nodes once: ``svm_predict`` would make them anew for
every member, which takes most of its time.
"""

from __future__ import annotations

import os
import sys
from ctypes import c_double

import numpy as np
from libsvm.svm import libsvm, svm_problem
from libsvm.svmutil import svm_load_model, svm_read_problem
from votes import write_predictions

models, test, out, *values_path = sys.argv[1:]
labels, rows = svm_read_problem(test, return_scipy=True)
problem = svm_problem(labels, rows)
names = sorted(name for name in os.listdir(models) if name.endswith(".model"))
values = np.empty((rows.shape[0], len(names)))
value = (c_double * 1)()
for member, name in enumerate(names):
    model = svm_load_model(os.path.join(models, name))
    for row in range(len(values)):
        libsvm.svm_predict_values(model, problem.x[row], value)
        values[row, member] = value[0]
write_predictions(values, out)
if values_path:
    np.save(values_path[0], values)
