"""The rows that candidates are judged on: P, some of U, folds, and the ranges they suggest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from resvm_cli import randomness
from resvm_cli.errors import Message
from resvm_cli.model.bags import PositiveWeights, require_weighted_draws
from resvm_cli.model.methods import gamma_scale
from resvm_cli.model.pu_data import PUData
from resvm_cli.model.shared_kernels import SharedKernels
from resvm_cli.parameters import MethodName
from resvm_cli.rows import IntArray
from resvm_cli.running.run import Run
from resvm_cli.svm.kernels import Kernel
from resvm_cli.training.resource_budget import (
    MemoryEstimate,
    bag_bytes,
    held_bytes,
    limit_too_small,
)
from resvm_cli.tuning.committee import informed_candidates, informed_settings
from resvm_cli.tuning.folds import Folds
from resvm_cli.tuning.search import Task
from resvm_cli.tuning.settings import TuningSettings
from resvm_cli.tuning.space import Candidate, Space, axes_of, default_space
from resvm_cli.tuning.validation import Judge

Settings = TypeVar("Settings", bound=TuningSettings)


@dataclass(frozen=True, eq=False)
class TuningSample:
    """The rows that candidates are judged on, as members see them."""

    kernels: SharedKernels
    folds: Folds
    gamma: float  # "scale"
    positive_weights: PositiveWeights | None = None

    @classmethod
    def of(
        cls,
        data: PUData,
        settings: TuningSettings,
        run: Run,
        given_folds: IntArray | None = None,
        folds_name: str = "",
    ) -> TuningSample:
        """Drawn from P and U; ``given_folds`` are of all their rows, P before U."""
        for method in settings.methods if data.positive_weights is not None else ():
            require_weighted_draws(method)
        n_pos, n_unl = len(data.positives), data.n_unlabeled
        bits = randomness.run_bits(settings.base.seed, randomness.JUDGED_UNLABELED)
        numbers = randomness.sample(bits, n_unl, settings.max_unl)
        positives, unlabeled = data.scaled(data.positives), data.scaled(data.fetch(numbers))
        if len(unlabeled) < n_unl:
            run.notice(
                Message(
                    "scoring on {n:,} of {n_unl:,} rows of U, drawn at random; {max_unl} sets how"
                    " many",
                    n=len(unlabeled),
                    n_unl=n_unl,
                )
            )
        groups = data.groups()
        kept = np.concatenate([np.arange(n_pos), n_pos + numbers])
        groups = None if groups is None else groups[kept]
        if given_folds is not None:
            folds = Folds.given(given_folds[kept], n_pos, groups, folds_name)
        else:
            folds = _drawn_folds(n_pos, len(unlabeled), groups, settings)
        kernels = SharedKernels(positives, unlabeled, settings.gram_mb)
        gamma = gamma_scale(data.n_features, data.variance())
        return cls(kernels, folds, gamma, data.positive_weights)

    def without(self, line: IntArray, fold: int, settings: TuningSettings) -> TuningSample:
        """The same without the rows of an outer fold, and folds of its own."""
        n_pos = len(self.kernels.positives)
        kept = np.flatnonzero(line != fold)
        in_pos = kept[kept < n_pos]
        in_unl = kept[kept >= n_pos] - n_pos
        groups = None if self.folds.groups is None else self.folds.groups[kept]
        kernels = SharedKernels(
            self.kernels.positives.take(in_pos),
            self.kernels.unlabeled.take(in_unl),
            settings.gram_mb,
        )
        folds = _drawn_folds(len(in_pos), len(in_unl), groups, settings)
        weights = self.positive_weights
        if weights is not None:
            weights = weights.take(in_pos)
        return TuningSample(kernels, folds, self.gamma, weights)

    def largest_bag(self, settings: TuningSettings, *, extended: bool) -> int:
        """The most rows that a candidate's bag can have, with ranges as they are or extended."""
        n_pos, n_unl = len(self.kernels.positives), len(self.kernels.unlabeled)
        candidates = (
            self.informed(settings)
            if settings.search == "informed"
            else [
                self.space(method, settings).largest(
                    extended=extended and settings.max_extensions > 0
                )
                for method in settings.methods
            ]
        )
        judge = self.judge(settings)
        return max(judge.plan(Task(each, 1), n_pos, n_unl, 0).bag_size for each in candidates)

    def judge(self, settings: TuningSettings) -> Judge:
        return Judge(
            self.kernels,
            settings.base,
            self.folds,
            settings.oob,
            settings.metric,
            settings.up_to,
            self.positive_weights,
        )

    def space(self, method: MethodName, settings: TuningSettings) -> Space:
        """Ranges for the smallest sets that a candidate of this method is trained on."""
        n_pos, n_unl = len(self.kernels.positives), len(self.kernels.unlabeled)
        if not settings.oob:
            line = self.folds.parts[0]
            n_pos -= int(np.bincount(line[:n_pos]).max())
            n_unl -= int(np.bincount(line[len(self.kernels.positives) :]).max())
        axes = settings.axes
        if len(settings.methods) > 1:  # what the user gave applies to the methods that have it
            axes = tuple(axis for axis in axes if axis.name in axes_of(method))
        return default_space(
            method,
            settings.base.kernel,
            n_pos,
            n_unl,
            self.gamma,
            axes,
            settings.contamination_pos,
            settings.contamination_unl,
        )

    def informed(self, settings: TuningSettings) -> list[Candidate]:
        """Sensible settings for these rows, the untuned one first."""
        return informed_candidates(
            informed_settings(Kernel(settings.base.kernel)),
            self.space("resvm", settings),
            len(self.kernels.positives),
            len(self.kernels.unlabeled),
            self.gamma,
            [axis.name for axis in settings.axes],
        )


def _drawn_folds(
    n_pos: int, n_unl: int, groups: IntArray | None, settings: TuningSettings
) -> Folds:
    n_folds = settings.folds
    if settings.oob:  # they serve only to tell how far the criterion varies
        n_folds = min(n_folds, n_pos if groups is None else len(np.unique(groups[:n_pos])))
    return Folds.drawn(n_pos, n_unl, n_folds, settings.base.seed, settings.repeats, groups)


def within_memory(
    data: PUData, sample: TuningSample, settings: Settings, run: Run
) -> tuple[TuningSample, Settings, Run]:
    """The sample, settings and threads that fit into the run's memory."""
    kernels = sample.kernels
    if run.memory_mb is None:
        return sample, settings, replace(run, jobs=run.workers())
    held = held_bytes(data, len(kernels.positives), len(kernels.unlabeled))
    # ranges may be extended
    bag = sample.largest_bag(settings, extended=True)
    matrix = 8.0 * (len(kernels.positives) + len(kernels.unlabeled)) ** 2
    cache = min(settings.base.cache_mb * 1e6, 8.0 * bag**2)
    if kernels.shares_kernels:
        shared = MemoryEstimate(held + matrix, matrix + cache)
        if threads := shared.threads_within(run.memory_mb, run.workers()):
            return sample, settings, replace(run, jobs=threads)
    apart = MemoryEstimate(held, bag_bytes(data, bag, bag, settings.base.cache_mb))
    threads = apart.threads_within(run.memory_mb, run.workers())
    if not threads:
        raise limit_too_small(run, apart, "fewer rows ({max_unl})")
    if kernels.shares_kernels:
        run.notice(
            Message(
                "{memory_mb} leaves no room for kernel values that candidates share: each bag has"
                " its own, which takes longer, and scores may differ in their last digits"
            )
        )
        kernels = SharedKernels(kernels.positives, kernels.unlabeled, 0.0)
        sample, settings = replace(sample, kernels=kernels), replace(settings, gram_mb=0.0)
    return sample, settings, replace(run, jobs=threads)
