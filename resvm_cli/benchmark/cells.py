"""One method on one draw: tuned on P and U, trained on all of them, tested; and what that costs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.benchmark.data import BenchmarkData, Cell
from resvm_cli.benchmark.protocol import BASE_METHODS, MEMBERS, PAPER_FOLDS, Protocol
from resvm_cli.benchmark.results import CURVE_POINTS
from resvm_cli.errors import DataError
from resvm_cli.metrics.curves import Points
from resvm_cli.metrics.ranking import Ranking
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.methods import gamma_scale
from resvm_cli.model.plan import ModelPlan
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import MethodParameters
from resvm_cli.rows import FloatArray
from resvm_cli.running.run import Run
from resvm_cli.training.best_json import parameters_of
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.train import train_on
from resvm_cli.tuning.tune import tune_on

CURVE_DECIMALS = 4
EXTENDED = 1.5  # a guess of how many times as many candidates extended ranges have


@dataclass(frozen=True)
class Bench:
    """What all cells of a benchmark share."""

    data: BenchmarkData
    protocol: Protocol
    families: Mapping[str, str]  # the data set of each task
    alone: bool  # one cell at a time, so that the processor time of the process is the cell's

    def reference(self) -> BenchReference:
        """The bench without rows, for workers that can read them by path."""
        fingerprints = {task: self.data.fingerprint(task) for task in self.families}
        return BenchReference(replace(self, data=self.data.without_rows()), fingerprints)


@dataclass(frozen=True)
class BenchReference:
    """A bench whose rows are to be read from files, with their fingerprints."""

    bench: Bench
    fingerprints: Mapping[str, str]

    def load(self) -> Bench:
        """The bench with its rows; DataError if the files hold other rows."""
        for task, fingerprint in self.fingerprints.items():
            if self.bench.data.fingerprint(task) != fingerprint:
                raise DataError(f"the files of {task} hold other rows than those of the benchmark")
        return self.bench


@dataclass(frozen=True, eq=False)
class CellScores:
    """The decision values of a trained method for the test rows of its cell."""

    truth: npt.NDArray[np.bool_]
    values: FloatArray
    chosen: dict[str, Any]  # the parameters, as a line of results has them
    cpu_seconds: float  # for scoring the test rows, which is no part of making a model

    def areas(self) -> dict[str, float]:
        """By their names in a line of results."""
        ranking = Ranking.of(self.truth, self.values)
        return {
            "pr_auc_trapezoid": float(ranking.pr_auc_trapezoid()),
            "average_precision": float(ranking.average_precision()),
            "roc_auc": float(ranking.roc_auc()),
        }

    def curve(self) -> list[float]:
        """The highest precision at each hundredth of recall or any higher one."""
        points = Points.of(self.truth, self.values)
        best = np.maximum.accumulate(points.precision[::-1])[::-1]
        recalls = np.arange(1, CURVE_POINTS + 1) / CURVE_POINTS
        at = np.searchsorted(points.recall, recalls - 1e-12)
        return [round(float(precision), CURVE_DECIMALS) for precision in best[at]]


def score_cell(bench: Bench, cell: Cell) -> CellScores:
    """Tune, train and test one method on one draw."""
    drawn = bench.data.draw(cell)
    data = MemoryData(
        drawn.positives, drawn.unlabeled, groups=drawn.groups, scale=bench.protocol.scale
    )
    choice, chosen = _tune(bench, cell, data)
    trained = train_on(data, choice, Run(jobs=1))
    if not chosen:
        chosen = _chosen_by_training(trained.plan, choice.params)
    started = time.process_time()
    predictor = Predictor(trained.ensemble, data.scaling)
    values = predictor.decisions(drawn.test).by(trained.conclusion.rule.rule)
    return CellScores(drawn.truth, values, chosen, time.process_time() - started)


@dataclass(frozen=True)
class Measured:
    """A line of results and its line of times."""

    record: dict[str, Any]
    times: dict[str, Any]


def measure(bench: Bench, cell: Cell) -> Measured:
    """Score a cell, and record the result and the time it took."""
    started, cpu_started = time.perf_counter(), time.process_time()
    scores = score_cell(bench, cell)
    key = cell.record(bench.protocol.name)
    record = {**key, **scores.areas(), **scores.chosen, "curve": scores.curve()}
    times = {**key, "seconds": round(time.perf_counter() - started, 3)}
    if bench.alone:
        times["cpu_seconds"] = round(time.process_time() - cpu_started, 3)
        times["cpu_seconds_test"] = round(scores.cpu_seconds, 3)
    return Measured(record, times)


def _tune(bench: Bench, cell: Cell, data: MemoryData) -> tuple[TrainingChoice, dict[str, Any]]:
    """What to train, and its record; the record is empty where training chooses itself."""
    protocol, family = bench.protocol, bench.families[cell.task]
    seed = cell.seed(bench.data.seed)
    if protocol.is_automatic(cell.method):
        params = protocol.params(cell.method, family, seed)
        return TrainingChoice.from_params(params, auto="committee", decision=protocol.decision), {}
    scale = gamma_scale(data.n_features, data.variance())
    settings = protocol.search(cell.method, family, seed, scale, len(data.positives))
    settings.check()
    result = tune_on(data, settings, Run(jobs=1))
    params = result.best.settings[0].params
    chosen = {
        "candidates": len(result.trials),
        "parameters": parameters_of(params),
        "selected_score": result.best.params["selected_by"]["score"],
    }
    return TrainingChoice.from_params(params, decision=protocol.decision), chosen


def _chosen_by_training(plan: ModelPlan, params: MethodParameters) -> dict[str, Any]:
    """The record of a committee: its setting of the largest weight."""
    heaviest = max(range(len(plan.plans)), key=lambda number: plan.weights[number])
    one = plan.plans[heaviest]
    chosen = replace(
        params, gamma=one.kernel.gamma, c_unl=one.c_unl, w_pos=one.w_pos, n_pos=one.n_pos,
        n_unl=one.n_unl, n_models=one.n_models,
    )  # fmt: skip
    return {"parameters": parameters_of(chosen), "settings": len(plan.plans)}


class TimeLeft:
    """Estimates the seconds that cells take from those already measured."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._seconds: dict[tuple[str, str], list[float]] = {}  # by task and method

    @property
    def known(self) -> bool:
        """Whether anything was measured."""
        return bool(self._seconds)

    def add(self, cell: Cell, seconds: float) -> None:
        self._seconds.setdefault((cell.task, cell.method), []).append(seconds)

    def phrase(self, cells: Sequence[Cell], workers: int) -> str:
        """Such as ``, about 3 h left``; empty before the first measurement."""
        if not self._seconds:
            return ""
        means = {kind: sum(times) / len(times) for kind, times in self._seconds.items()}
        rate = sum(mean / self._size(*kind) for kind, mean in means.items()) / len(means)
        total = 0.0
        for cell in cells:
            kind = cell.task, cell.method
            total += means[kind] if kind in means else rate * self._size(*kind)
        seconds = total / workers
        if seconds < 120:
            return f", about {seconds:.0f} s left"
        if seconds < 7200:
            return f", about {seconds / 60:.0f} min left"
        return f", about {seconds / 3600:.1f} h left"

    def _size(self, task: str, method: str) -> float:
        """The relative cost of a cell: pairs of rows in all bags that are trained."""
        data, protocol = self._bench.data, self._bench.protocol
        source = data.tasks[task] if data.own is None else data.own
        grid = protocol.grids.grid(self._bench.families[task])
        axes = grid.axes_of(method, 1.0, source.n_pos)
        values = {axis.name: axis.points() for axis in axes}
        base = BASE_METHODS[method]
        members, bag = MEMBERS, float(source.n_pos)
        if base == "cwsvm":
            members, bag = 1, float(source.n_pos + source.n_unl)
        else:
            if base == "resvm":
                bag = max(values.get("n_pos", (bag,)))
            bag *= 1.0 + max(values.get("unl_per_pos", (1.0,)))
        n_candidates = prod(len(points) for points in values.values())
        if protocol.name == "search":
            n_candidates = protocol.trials
        return EXTENDED * n_candidates * PAPER_FOLDS * members * bag**2
