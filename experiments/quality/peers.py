"""Other PU learning methods, each run as a careful user of its library would run it.

All methods get dense rows, standardized if ``resvm check`` advises scaling. Methods that need the
class prior get the true prior, which is unknown in practice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from experiments.quality.tasks import Draw

FOLDS = 5
TREES = 500
MIN_LEAF = 5
BAGS = 100


@dataclass(frozen=True, eq=False)
class Answer:
    """Values of the test rows, and which of them are predicted positive."""

    values: np.ndarray
    positive: np.ndarray


class Matrices:
    """The rows of a draw as dense matrices."""

    def __init__(self, drawn: Draw, seed: int) -> None:
        from sklearn.preprocessing import StandardScaler

        self.train, self.test = drawn.X.toarray(), drawn.test_X.toarray()
        self.labels, self.prior, self.seed = drawn.labels, drawn.prior, seed
        if drawn.unscaled:
            scaler = StandardScaler().fit(self.train)
            self.train, self.test = scaler.transform(self.train), scaler.transform(self.test)

    @cached_property
    def gamma(self) -> float:
        """The value of ``gamma="scale"`` in scikit-learn."""
        return 1.0 / (self.train.shape[1] * float(self.train.var()))

    @cached_property
    def folds(self) -> Any:
        from sklearn.model_selection import StratifiedKFold

        return StratifiedKFold(FOLDS, shuffle=True, random_state=self.seed)


def svc(rows: Matrices) -> Answer:
    """Train a class-balanced SVM on P against U; C and gamma maximize cross-validated ROC AUC."""
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    best: tuple[float, Any, float] | None = None
    # compute one kernel matrix per gamma, which is faster than a grid search over both
    for gamma in (0.1 * rows.gamma, rows.gamma, 10 * rows.gamma):
        model = SVC(kernel="precomputed", class_weight="balanced", max_iter=200_000)
        grid = {"C": [0.1, 1.0, 10.0, 100.0]}
        search = GridSearchCV(model, grid, scoring="roc_auc", cv=rows.folds, n_jobs=1)
        search.fit(rbf_kernel(rows.train, gamma=gamma), rows.labels)
        if best is None or search.best_score_ > best[0]:
            best = search.best_score_, search, gamma
    assert best is not None
    values = best[1].decision_function(rbf_kernel(rows.test, rows.train, gamma=best[2]))
    return Answer(values, values > 0)


def logistic(rows: Matrices) -> Answer:
    """Train class-balanced logistic regression on P against U; C maximizes ROC AUC over folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    grid = {"C": [0.01, 0.1, 1.0]}
    search = GridSearchCV(model, grid, scoring="roc_auc", cv=rows.folds, n_jobs=1)
    values = search.fit(rows.train, rows.labels).decision_function(rows.test)
    return Answer(values, values > 0)


def forest(rows: Matrices) -> Answer:
    """Train a random forest on P against U, with at least 5 rows per leaf because U is noisy."""
    from sklearn.ensemble import RandomForestClassifier

    trees = RandomForestClassifier(
        TREES, min_samples_leaf=MIN_LEAF, random_state=rows.seed, n_jobs=1
    )
    values = trees.fit(rows.train, rows.labels).predict_proba(rows.test)[:, 1]
    return Answer(values, values > 0.5)


def bagged_trees(rows: Matrices) -> Answer:
    """Train trees, each on P against a new sample of U of the size of P (Mordelet and Vert)."""
    from pulearn import BaggingPuClassifier
    from sklearn.tree import DecisionTreeClassifier

    ensemble = BaggingPuClassifier(
        DecisionTreeClassifier(),
        n_estimators=BAGS,
        max_samples=int(rows.labels.sum()),
        random_state=rows.seed,
        n_jobs=1,
    )
    values = ensemble.fit(rows.train, rows.labels).predict_proba(rows.test)[:, 1]
    return Answer(values, values > 0.5)


def lightgbm(rows: Matrices) -> Answer:
    """Train class-balanced gradient boosting on P against U."""
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(class_weight="balanced", random_state=rows.seed, n_jobs=1, verbosity=-1)
    values = model.fit(rows.train, rows.labels).predict_proba(rows.test)[:, 1]
    return Answer(values, values > 0.5)


def elkan_noto(rows: Matrices) -> Answer:
    """Predict the probability of being labeled, divided by its mean over held-out positives."""
    from pulearn import ElkanotoPuClassifier
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    model = SVC(gamma=rows.gamma, class_weight="balanced")
    base = CalibratedClassifierCV(model, ensemble=False, cv=FOLDS)
    classifier = ElkanotoPuClassifier(base, hold_out_ratio=0.2, random_state=rows.seed)
    values = classifier.fit(rows.train, rows.labels).predict_proba(rows.test)[:, 1]
    return Answer(values, values > 0.5)


def upu(rows: Matrices) -> Answer:
    """Minimize the unbiased PU risk over rbf functions, given the true prior."""
    from pu_toolbox.estimators.risk.upu import UPUClassifier

    model = UPUClassifier(
        rows.prior,
        basis="rbf",
        kernel_width=(2 * rows.gamma) ** -0.5,
        random_state=rows.seed,
    )
    return _run_toolbox(model, rows)


def nnpu(rows: Matrices) -> Answer:
    """Minimize the non-negative PU risk over a small network, given the true prior."""
    import torch
    from pu_toolbox.estimators.risk.nnpu import NonNegativePUClassifier

    torch.manual_seed(rows.seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(rows.train.shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
    )
    model = NonNegativePUClassifier(network, class_prior=rows.prior, random_state=rows.seed)
    return _run_toolbox(model, rows)


def dist_pu(rows: Matrices) -> Answer:
    """Train a small network whose predictions match the true prior."""
    from pu_toolbox.estimators.risk.dist_pu import DistPUClassifier

    return _run_toolbox(DistPUClassifier(rows.prior, random_state=rows.seed), rows)


def _run_toolbox(model: Any, rows: Matrices) -> Answer:
    model.fit(rows.train, rows.labels)
    values = np.asarray(model.decision_function(rows.test), float)
    return Answer(values, np.asarray(model.predict(rows.test)) == 1)


def label_quality(rows: Matrices) -> np.ndarray:
    """Compute cleanlab's label quality for P from a forest's cross-validated probabilities."""
    from cleanlab.rank import get_label_quality_scores
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict

    trees = RandomForestClassifier(BAGS, random_state=rows.seed)
    chances = cross_val_predict(
        trees, rows.train, rows.labels, cv=rows.folds, method="predict_proba"
    )
    return np.asarray(get_label_quality_scores(rows.labels, chances))[rows.labels == 1]


PEERS: dict[str, Callable[[Matrices], Answer]] = {
    "SVC, grid": svc,
    "logistic regression": logistic,
    "random forest, leaf 5": forest,
    "PU-bagged trees": bagged_trees,
    "LightGBM": lightgbm,
    "Elkan-Noto, SVC": elkan_noto,
    "uPU, rbf, true prior": upu,
    "nnPU, network, true prior": nnpu,
    "Dist-PU, true prior": dist_pu,
}
NEURAL = ("nnPU, network, true prior", "Dist-PU, true prior")  # slow, weak, and need PyTorch
