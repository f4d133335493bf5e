"""Does ``Model.importance`` find the features that matter as well as a random forest does?

``python -m studies.planted_features`` draws 100 features, 5 of which determine the class.
Importance is judged by its ROC AUC for these features: 1 if they all come first, 0.5 by chance. The
forest is trained on P against U. Its importance is scikit-learn's permutation importance by ROC
AUC, computed on a held-out third of the rows.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.metrics import roc_auc_score

import resvm_cli
from studies.markdown import markdown_table

N_ROWS, N_POS, N_FEATURES, PRIOR = 1500, 150, 100, 0.3
PLANTED = np.arange(N_FEATURES) < 5


def linear(x: np.ndarray) -> np.ndarray:
    return x[:, :5].sum(axis=1)


def radial(x: np.ndarray) -> np.ndarray:
    return (x[:, :5] ** 2).sum(axis=1)


def products(x: np.ndarray) -> np.ndarray:
    """A single feature says nothing about the class, as in xor."""
    return x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] + x[:, 0] * x[:, 4]


TRUTHS = (linear, radial, products)


def of_model(**options: object) -> Callable[[np.ndarray, np.ndarray, int], np.ndarray]:
    """Return a function that computes importance with a model trained with these options."""

    def importance(x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
        model = resvm_cli.fit(x, y, seed=seed, jobs=1, **options)
        found = np.zeros(x.shape[1])
        for one in model.importance(x, y):
            found[one.feature] = one.importance
        return found

    return importance


def of_weights(x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Compute importance as the sum of squared feature weights over members."""
    model = resvm_cli.fit(x, y, seed=seed, jobs=1, feature_weights="relevance")
    found = np.zeros(x.shape[1])
    for member in model.stored.ensemble.members:
        found[member.weights.indices - 1] += member.weights.values**2
    return found


def of_forest(x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    order = np.random.default_rng(seed).permutation(len(x))
    seen, unseen = order[: 2 * len(x) // 3], order[2 * len(x) // 3 :]
    forest = RandomForestClassifier(
        200, min_samples_leaf=3, class_weight="balanced", random_state=seed
    ).fit(x[seen], y[seen])
    found = permutation_importance(
        forest, x[unseen], y[unseen], scoring="roc_auc", n_repeats=3, random_state=seed
    )
    return np.asarray(found.importances_mean)


METHODS = {
    "rbf": of_model(),
    "rbf, `--feature-weights relevance`": of_model(feature_weights="relevance"),
    "the same, by the weights themselves": of_weights,
    "`--auto`": of_model(auto=True),
    "linear": of_model(kernel="linear"),
    "forest": of_forest,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", resvm_cli.ResultWarning)
    areas: dict[tuple[str, str], list[float]] = {}
    for number in range(arguments.draws):
        for truth in TRUTHS:
            rng = np.random.default_rng([number, *truth.__name__.encode()])
            x = rng.normal(size=(N_ROWS, N_FEATURES))
            score = truth(x)
            positive = np.flatnonzero(score > np.quantile(score, 1 - PRIOR))
            y = np.zeros(N_ROWS, int)
            y[rng.choice(positive, N_POS, replace=False)] = 1
            for name, method in METHODS.items():
                area = float(roc_auc_score(PLANTED, method(x, y, number)))
                areas.setdefault((name, truth.__name__), []).append(area)
                sys.stderr.write(f"{number} {truth.__name__} {name} {area:.3f}\n")
    lines = [
        [name]
        + [
            f"{np.mean(some):.2f} ({min(some):.2f} to {max(some):.2f})"
            for some in (areas[name, truth.__name__] for truth in TRUTHS)
        ]
        for name in METHODS
    ]
    head = ["importance of", *(truth.__name__ for truth in TRUTHS)]
    sys.stdout.write(markdown_table(head, lines) + "\n")


if __name__ == "__main__":
    main()
