"""Estimators, scorers and a splitter for scikit-learn (1.6 and later)."""

from resvm_cli.sklearn.estimators import (
    BaggingSVMClassifier,
    ClassWeightedSVMClassifier,
    RESVMClassifier,
)
from resvm_cli.sklearn.scoring import PUStratifiedKFold, pu_roc_auc, pu_score

__all__ = [
    "BaggingSVMClassifier",
    "ClassWeightedSVMClassifier",
    "PUStratifiedKFold",
    "RESVMClassifier",
    "pu_roc_auc",
    "pu_score",
]
