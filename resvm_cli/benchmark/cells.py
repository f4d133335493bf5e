"""One method on the rows of one cell: tuned on P and U, trained on all of them, tested."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.benchmark.data import BenchmarkData
from resvm_cli.benchmark.draws import Cell
from resvm_cli.benchmark.protocol import Protocol
from resvm_cli.benchmark.results import CURVE_POINTS
from resvm_cli.errors import DataError
from resvm_cli.metrics.curves import Points
from resvm_cli.metrics.ranking import Ranking
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.plan import ModelPlan, gamma_scale
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import MethodParameters
from resvm_cli.rows import FloatArray
from resvm_cli.running.run import Run
from resvm_cli.training.best_json import parameters_of
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.train import train_on
from resvm_cli.tuning.auto import choose_settings
from resvm_cli.tuning.tune import tune_on

CURVE_DECIMALS = 4


@dataclass(frozen=True)
class Work:
    """A method, and the cell whose rows it is given."""

    cell: Cell
    method: str

    def key(self, protocol: str) -> dict[str, Any]:
        """What names it in a file."""
        cell = self.cell
        return {
            "protocol": protocol,
            "setting": cell.setting,
            "task": cell.task,
            "method": self.method,
            "repetition": cell.repetition,
            "contamination_pos": cell.contamination_pos,
            "contamination_unl": cell.contamination_unl,
        }

    def __str__(self) -> str:
        cell = self.cell
        return f"{self.method} on {cell.task}, {cell.setting}, repetition {cell.repetition}"


@dataclass(frozen=True)
class Measured:
    """A line of results, and what it took."""

    record: dict[str, Any]
    times: dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """All that the works of a benchmark share."""

    data: BenchmarkData
    protocol: Protocol
    families: Mapping[str, str]  # the data set of each task
    alone: bool  # one work at a time: what the process takes, it takes

    def reference(self) -> BenchReference:
        """The same, where its rows are to be read by their paths."""
        seals = {task: self.data.seal(task) for task in self.families}
        return BenchReference(replace(self, data=self.data.without_rows()), seals)


@dataclass(frozen=True)
class BenchReference:
    """A bench whose rows lie in files, with what tells them from others."""

    bench: Bench
    seals: Mapping[str, str]

    def load(self) -> Bench:
        """The bench with its rows; DataError where other rows lie there."""
        for task, seal in self.seals.items():
            if self.bench.data.seal(task) != seal:
                raise DataError(f"other rows of {task} lie where the benchmark was given them")
        return self.bench


@dataclass(frozen=True, eq=False)
class Tested:
    """What a tuned and trained method says of the test rows of its cell."""

    truth: npt.NDArray[np.bool_]
    values: FloatArray  # decision values of the test rows
    chosen: dict[str, Any]  # by tuning or training, as a line of results tells it
    cpu_seconds: float  # of judging the test rows, which is no part of making a model

    def areas(self) -> dict[str, float]:
        """By their names in a line of results."""
        ranking = Ranking.of(self.truth, self.values)
        return {
            "pr_auc_trapezoid": float(ranking.pr_auc_trapezoid()),
            "average_precision": float(ranking.average_precision()),
            "roc_auc": float(ranking.roc_auc()),
        }


def tested(bench: Bench, work: Work) -> Tested:
    """Tune, train and test one method on one cell."""
    drawn = bench.data.draw(work.cell)
    data = MemoryData(
        drawn.positives, drawn.unlabeled, groups=drawn.groups, scale=bench.protocol.scale
    )
    choice, found = _tuned(bench, work, data)
    run = Run(jobs=1)
    part, model = train_on(data, choose_settings(data, choice, run), run)
    if not found:
        found = _chosen_by_training(part.plan, choice.params)
    started = time.process_time()
    predictor = Predictor(model.ensemble, data.scaling)
    values = predictor.decisions(drawn.test).by(model.decision.rule)
    return Tested(drawn.truth, values, found, time.process_time() - started)


def measure(bench: Bench, work: Work) -> Measured:
    """One method on one cell as a line of results, and what it took."""
    started, cpu_started = time.perf_counter(), time.process_time()
    test = tested(bench, work)
    key = work.key(bench.protocol.name)
    record = {
        **key,
        **test.areas(),
        **test.chosen,
        "curve": _curve(test.truth, test.values),
    }
    times = {**key, "seconds": round(time.perf_counter() - started, 3)}
    if bench.alone:
        times["cpu_seconds"] = round(time.process_time() - cpu_started, 3)
        times["cpu_seconds_test"] = round(test.cpu_seconds, 3)
    return Measured(record, times)


def _tuned(bench: Bench, work: Work, data: MemoryData) -> tuple[TrainingChoice, dict[str, Any]]:
    """What to train, and what is told of it; nothing yet where training chooses itself."""
    protocol, family = bench.protocol, bench.families[work.cell.task]
    seed = work.cell.seed(bench.data.seed)
    if protocol.automatic(work.method):
        params = protocol.params(work.method, family, seed)
        return TrainingChoice.from_params(params, auto="committee", decision=protocol.decision), {}
    scale = gamma_scale(data.n_features, data.variance())
    settings = protocol.search(work.method, family, seed, scale, len(data.positives))
    settings.check()
    result = tune_on(data, settings, Run(jobs=1))
    chosen = result.best.settings[0].params
    found = {
        "candidates": len(result.trials),
        "parameters": parameters_of(chosen),
        "selected_score": result.best.params["selected_by"]["score"],
    }
    return TrainingChoice.from_params(chosen, decision=protocol.decision), found


def _chosen_by_training(plan: ModelPlan, params: MethodParameters) -> dict[str, Any]:
    """The heaviest setting of a committee stands for it."""
    heaviest = max(range(len(plan.plans)), key=lambda number: plan.weights[number])
    one = plan.plans[heaviest]
    chosen = replace(
        params,
        gamma=one.kernel.gamma,
        c_unl=one.c_unl,
        w_pos=one.w_pos,
        n_pos=one.n_pos,
        n_unl=one.n_unl,
        n_models=one.n_models,
    )
    return {"parameters": parameters_of(chosen), "settings": len(plan.plans)}


def _curve(truth: npt.NDArray[np.bool_], values: FloatArray) -> list[float]:
    """The highest precision at this recall or a higher one, at each hundredth of recall."""
    points = Points.of(truth, values)
    best = np.maximum.accumulate(points.precision[::-1])[::-1]
    wanted = np.arange(1, CURVE_POINTS + 1) / CURVE_POINTS
    place = np.searchsorted(points.recall, wanted - 1e-12)
    return [round(float(number), CURVE_DECIMALS) for number in best[place]]
