"""The rows that candidates are judged on: P, some of U, folds, and the ranges they suggest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.dataset import IntArray, Rows
from resvm_cli.ensemble.methods import MethodName, gamma_scale
from resvm_cli.ensemble.workbench import Workbench
from resvm_cli.files.row_names import read_names
from resvm_cli.jobs.training_data import TrainingData
from resvm_cli.jobs.tune_request import TuneRequest
from resvm_cli.tuning.folds import Folds
from resvm_cli.tuning.space import Space, default_space
from resvm_cli.tuning.validation import Judge

SAMPLE_KEY = 0x73616D70


@dataclass(frozen=True, eq=False)
class Ground:
    """The rows that candidates are judged on."""

    workbench: Workbench
    folds: Folds
    gamma: float  # "scale"

    @classmethod
    def of(cls, request: TuneRequest, data: TrainingData, notice: Callable[[str], None]) -> Ground:
        positives, unlabeled, numbers = judged_rows(data, request.max_unl, request.base.seed)
        if len(unlabeled) < data.n_unlabeled:
            notice(
                f"judging on {len(unlabeled):,} of {data.n_unlabeled:,} rows of U,"
                " drawn at random; --max-unl takes more"
            )
        n_pos = len(positives)
        groups = data.groups()
        kept = np.concatenate([np.arange(n_pos), n_pos + numbers])
        groups = None if groups is None else groups[kept]
        if request.folds_file is not None:
            parts = data.in_order(_fold_numbers(request.folds_file), request.folds_file)[kept]
            folds = Folds.given(parts, n_pos, groups, request.folds_file)
        else:
            n_folds = min(request.n_folds, n_pos) if request.out_of_bag else request.n_folds
            if request.out_of_bag and groups is not None:
                n_folds = min(n_folds, len(np.unique(groups[:n_pos])))
            folds = Folds.drawn(
                n_pos, len(unlabeled), n_folds, request.base.seed, request.repeats, groups
            )
        workbench = Workbench(positives, unlabeled, request.gram_mb)
        return cls(workbench, folds, gamma_scale(data.n_features, data.variance()))

    def without(self, line: IntArray, fold: int, request: TuneRequest) -> Ground:
        """The same without the rows of an outer fold, and folds of its own."""
        n_pos = len(self.workbench.positives)
        kept = np.flatnonzero(line != fold)
        in_pos = kept[kept < n_pos]
        in_unl = kept[kept >= n_pos] - n_pos
        groups = None if self.folds.groups is None else self.folds.groups[kept]
        n_folds = min(request.n_folds, len(in_pos)) if request.out_of_bag else request.n_folds
        folds = Folds.drawn(
            len(in_pos), len(in_unl), n_folds, request.base.seed, request.repeats, groups
        )
        workbench = Workbench(
            self.workbench.positives.take(in_pos),
            self.workbench.unlabeled.take(in_unl),
            request.gram_mb,
        )
        return Ground(workbench, folds, self.gamma)

    def judge(self, request: TuneRequest) -> Judge:
        return Judge(
            self.workbench,
            request.base,
            self.folds,
            request.out_of_bag,
            request.metric,
            request.up_to,
        )

    def space(self, method: MethodName, request: TuneRequest) -> Space:
        """Ranges for the smallest sets that a candidate of this method is trained on."""
        n_pos, n_unl = len(self.workbench.positives), len(self.workbench.unlabeled)
        if not request.out_of_bag:
            line = self.folds.parts[0]
            n_pos -= int(np.bincount(line[:n_pos]).max())
            n_unl -= int(np.bincount(line[len(self.workbench.positives) :]).max())
        axes = request.axes
        if len(request.methods) > 1:  # what the user gave applies to the methods that have it
            axes = tuple(axis for axis in axes if axis.name in _axes_of(method))
        return default_space(
            method,
            request.base.kernel,
            n_pos,
            n_unl,
            self.gamma,
            axes,
            request.contamination_pos,
            request.contamination_unl,
        )


def _axes_of(method: MethodName) -> tuple[str, ...]:
    own = {"resvm": ("n_pos", "unl_per_pos", "w_pos"), "bagging": ("unl_per_pos",)}
    return ("c_unl", "gamma", "degree", "coef0", *own.get(method, ("w_pos",)))


def judged_rows(data: TrainingData, max_unl: int, seed: int) -> tuple[Rows, Rows, IntArray]:
    """P, at most so many rows of U drawn at random, both scaled, and the numbers of the latter."""
    n_unl = data.n_unlabeled
    numbers = np.arange(n_unl)
    if n_unl > max_unl:
        bits = np.random.PCG64(np.random.SeedSequence((seed, SAMPLE_KEY)))
        numbers = np.sort(np.argsort(bits.random_raw(n_unl), kind="stable")[:max_unl])
    positives, unlabeled = data.positives, data.fetch(numbers)
    if data.scaling is not None:
        positives, unlabeled = data.scaling.apply(positives), data.scaling.apply(unlabeled)
    return positives, unlabeled, numbers


def _fold_numbers(path: str) -> IntArray:
    """Folds named by anything, numbered from 0 in the order of their names."""
    names = np.array(read_names(path), object)
    return np.unique(names, return_inverse=True)[1].reshape(-1)


def settings_of(request: TuneRequest, data: TrainingData, ground: Ground) -> dict[str, Any]:
    """All that decides what the trials are; a run is resumed only with the same."""
    base = asdict(request.base)
    return {
        "kind": "resvm-tuning",
        "format": 1,
        "resvm": __version__,
        "data": data.description(),
        "scale": request.source.scale,
        "zero_based": request.source.zero_based,
        "groups": request.source.groups is not None,
        "methods": list(request.methods),
        "kernel": base["kernel"],
        "seed": base["seed"],
        "tolerance": base["tolerance"],
        "space": {
            method: {axis.name: str(axis) for axis in ground.space(method, request).axes}
            for method in request.methods
        },
        "metric": request.metric,
        "up_to": request.up_to,
        "estimate": "oob" if request.out_of_bag else "folds",
        "folds": ground.folds.n_folds,
        "repeats": request.repeats,
        "folds_file": request.folds_file is not None,
        "search": request.strategy,
        "trials": request.trials,
        "n_models": request.n_models,
        "max_extensions": request.max_extensions,
        "outer": request.outer,
        "contamination": [request.contamination_pos, request.contamination_unl],
        "max_unl": request.max_unl,
        "shared_kernels": ground.workbench.shares_kernels,
    }
