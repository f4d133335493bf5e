"""Areas by scikit-learn: PREDICTIONS LABELS, average precision and ROC AUC as JSON on stdout."""

from __future__ import annotations

import json
import sys

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

values = np.loadtxt(sys.argv[1], usecols=1)
truth = np.loadtxt(sys.argv[2]) > 0
found = {"average_precision": average_precision_score(truth, values)}
print(json.dumps({**found, "roc_auc": roc_auc_score(truth, values)}))
