"""Train pulearn's bagging SVM: BAGS P U OUT.

Its bags hold all of P and are its own, so its members are not comparable one by one.
"""

from __future__ import annotations

import sys

import joblib
import numpy as np
from bags import Bags
from pulearn import BaggingPuClassifier
from scipy.sparse import vstack
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC

bags_path, positives_path, unlabeled_path, out = sys.argv[1:]
bags = Bags(bags_path)
positives, _ = load_svmlight_file(positives_path, n_features=bags.n_features)
unlabeled, _ = load_svmlight_file(unlabeled_path, n_features=bags.n_features)
rows = vstack([positives, unlabeled], format="csr").toarray()
labels = np.repeat([1, 0], [positives.shape[0], unlabeled.shape[0]])
n_unl = bags.unlabeled.shape[1]
ensemble = BaggingPuClassifier(
    SVC(
        C=bags.c_unl,
        kernel=bags.kernel,
        gamma=bags.gamma or "scale",
        class_weight={1: n_unl / positives.shape[0]},
        tol=bags.tolerance,
    ),
    n_estimators=len(bags),
    max_samples=n_unl,
    oob_score=False,
    random_state=0,
)
joblib.dump(ensemble.fit(rows, labels), out)
