"""Train with LIBSVM's Python package on given bags: BAGS P U OUT (a directory)."""

from __future__ import annotations

import os
import sys

from bags import Bags
from libsvm.svmutil import svm_read_problem, svm_save_model, svm_train
from scipy.sparse import csr_matrix, vstack

bags_path, positives_path, unlabeled_path, out = sys.argv[1:]
bags = Bags(bags_path)
_, positives = svm_read_problem(positives_path, return_scipy=True)
_, unlabeled = svm_read_problem(unlabeled_path, return_scipy=True)
for rows in (positives, unlabeled):
    rows.resize(rows.shape[0], bags.n_features)
rows = csr_matrix(vstack([positives, unlabeled]))
options = (
    f"-q -s 0 -t {0 if bags.kernel == 'linear' else 2} -g {bags.gamma!r} -e {bags.tolerance!r}"
    f" -c {bags.c_unl!r} -w1 {bags.c_pos / bags.c_unl!r}"
)
os.makedirs(out, exist_ok=True)
for member in range(len(bags)):
    bag = rows[bags.rows(positives.shape[0], member)]
    model = svm_train(bags.labels.astype(float), bag, options)
    svm_save_model(os.path.join(out, f"{member:05d}.model"), model)
