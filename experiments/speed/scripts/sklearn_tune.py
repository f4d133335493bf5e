"""Judge a grid by folds with scikit-learn: FOLDS P U OUT.

FOLDS holds for each fold the rows held out and the bags of its members, and the candidates.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from scipy.sparse import vstack
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

folds_path, positives_path, unlabeled_path, out = sys.argv[1:]
given = np.load(folds_path)
n_features = int(given["n_features"])
positives, _ = load_svmlight_file(positives_path, n_features=n_features)
unlabeled, _ = load_svmlight_file(unlabeled_path, n_features=n_features)
rows = vstack([positives, unlabeled]).toarray()
known = np.arange(rows.shape[0]) < positives.shape[0]
n_pos = int(given["n_pos"])
bags, line = given["bags"], given["line"]  # folds x members x rows of a bag
labels = np.where(np.arange(bags.shape[2]) < n_pos, 1, -1)
ratio = (bags.shape[2] - n_pos) / n_pos
scores = []
for gamma, w_pos, c_unl in given["candidates"]:
    areas = []
    for fold, members in enumerate(bags):
        held = np.flatnonzero(line == fold)
        values = np.zeros(len(held))
        for bag in members:
            machine = SVC(
                C=c_unl,
                kernel="rbf" if gamma else "linear",
                gamma=gamma or "scale",
                class_weight={1: w_pos * ratio},
                tol=1e-3,
            )
            values += machine.fit(rows[bag], labels).decision_function(rows[held])
        areas.append(roc_auc_score(known[held], values))
    scores.append(float(np.mean(areas)))
with open(out, "w") as handle:
    json.dump(scores, handle)
