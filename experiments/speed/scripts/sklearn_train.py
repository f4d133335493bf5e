"""Train scikit-learn SVMs on given bags: BAGS P U OUT svc|linearsvc sparse|dense."""

from __future__ import annotations

import sys

import joblib
import numpy as np
from bags import Bags
from scipy.sparse import vstack
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC, LinearSVC

bags_path, positives_path, unlabeled_path, out, model, form = sys.argv[1:]
bags = Bags(bags_path)
positives, _ = load_svmlight_file(positives_path, n_features=bags.n_features)
unlabeled, _ = load_svmlight_file(unlabeled_path, n_features=bags.n_features)
rows = vstack([positives, unlabeled], format="csr")
# the loader's indices may be 64 bits wide, which SVC refuses
rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
if form == "dense":
    rows = rows.toarray()
weight = {1: bags.c_pos / bags.c_unl}
members = []
for member in range(len(bags)):
    if model == "svc":
        machine = SVC(
            C=bags.c_unl,
            kernel=bags.kernel,
            gamma=bags.gamma or "scale",
            class_weight=weight,
            tol=bags.tolerance,
        )
    else:
        machine = LinearSVC(
            C=bags.c_unl,
            loss="hinge",
            dual=True,
            class_weight=weight,
            intercept_scaling=float(bags.bias[member]),
            tol=bags.linear_tolerance,
            random_state=member,
        )
    members.append(machine.fit(rows[bags.rows(positives.shape[0], member)], bags.labels))
joblib.dump(members, out)
