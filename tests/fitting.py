"""Estimators by the names that the commands use, for tests that compare or need a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import resvm_cli
from resvm_cli.api.base import PUClassifier
from resvm_cli.ensemble.plan import Plan, SettingPlan, bag_of, problem_on
from resvm_cli.ensemble.train import Part, train_parts
from resvm_cli.run import Run
from resvm_cli.svm.kernels import Problem

ESTIMATORS = {
    "resvm": resvm_cli.RESVMClassifier,
    "bagging": resvm_cli.BaggingSVMClassifier,
    "cwsvm": resvm_cli.ClassWeightedSVMClassifier,
}


def estimator(method: str = "resvm", *, seed: int = 0, **parameters: Any) -> PUClassifier:
    """Return an estimator, with the paper's fixed defaults unless told otherwise."""
    if parameters.get("params") is None:
        parameters.setdefault("auto", False)
    return ESTIMATORS[method](random_state=seed, **parameters)


def fitted(X: Any, y: Any, *, groups: Any = None, weights: Any = None, **parameters: Any) -> Any:
    """Return a fitted estimator."""
    return estimator(**parameters).fit(X, y, groups=groups, weights=weights)


def ranked(X: Any, y: Any, training: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """Rank with an estimator that is fitted with these training parameters."""
    shared = {name: options[name] for name in ("groups", "weights") if name in options}
    shared |= {name: options[name] for name in ("negative_label",) if name in options}
    return resvm_cli.rank(X, y, model=fitted(X, y, **shared, **(training or {})), **options)


def options_of(parameters: Mapping[str, Any]) -> list[Any]:
    """Return training parameters as options of ``resvm train``."""
    options: list[Any] = []
    for name, value in parameters.items():
        if name != "auto":
            options += ["--" + name.replace("_", "-"), value]
    return options if parameters.get("auto") else [*options, "--no-auto"]


def problems(plan: SettingPlan, members: range) -> Iterator[Problem]:
    """Return the problems of a setting's members."""
    return (problem_on(bag_of(plan, member), plan, member) for member in members)


def train_part(plan: Plan, members: range, data: Any, run: Run) -> Part:
    """Train these members of the plan as one batch."""
    return next(train_parts(plan, [members], data, run))
