"""Train with LIBLINEAR's Python package on given bags: BAGS P U OUT (a directory)."""

from __future__ import annotations

import os
import sys

from bags import Bags
from liblinear.liblinearutil import save_model, svm_read_problem, train
from scipy.sparse import csr_matrix, vstack

bags_path, positives_path, unlabeled_path, out = sys.argv[1:]
bags = Bags(bags_path)
_, positives = svm_read_problem(positives_path, return_scipy=True)
_, unlabeled = svm_read_problem(unlabeled_path, return_scipy=True)
for rows in (positives, unlabeled):
    rows.resize(rows.shape[0], bags.n_features)
rows = csr_matrix(vstack([positives, unlabeled]))
os.makedirs(out, exist_ok=True)
for member in range(len(bags)):
    bag = rows[bags.rows(positives.shape[0], member)]
    options = (
        f"-q -s 3 -c {bags.c_unl!r} -w1 {bags.c_pos / bags.c_unl!r}"
        f" -B {float(bags.bias[member])!r} -e {bags.linear_tolerance!r}"
    )
    model = train(bags.labels.astype(float), bag, options)
    save_model(os.path.join(out, f"{member:05d}.model"), model)
