"""Judge rows with pulearn's bagging SVM: MODEL TEST OUT; votes are all it has."""

from __future__ import annotations

import sys

import joblib
from sklearn.datasets import load_svmlight_file

model, test, out = sys.argv[1:]
ensemble = joblib.load(model)
rows, _ = load_svmlight_file(test, n_features=ensemble.n_features_)
votes = ensemble.predict_proba(rows.toarray())[:, 1].tolist()
with open(out, "w") as handle:
    for vote in votes:
        handle.write(f"{1 if vote > 0.5 else -1} {vote!r} {vote!r}\n")
