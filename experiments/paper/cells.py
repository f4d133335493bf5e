"""Run one method on one draw: tune it by a protocol, train it on all of P and U, and test it.

The paper tunes by grid search, and by random search in its experiments on contamination. Its grids
were not published. Ours are in ``grids.json``; for each data set, it lists a kernel and the values
of each parameter. A parameter used by several methods is listed once, so that all methods get the
same resolution. All settings of a task share one grid (paper, section 4).
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from experiments.paper.data import METHODS, PAPER_TASKS, PUBLISHED_CWSVM, BenchmarkData, Cell
from experiments.paper.results import CURVE_POINTS
from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.ensemble import Predictor
from resvm_cli.ensemble.plan import Plan
from resvm_cli.metrics.curves import Points
from resvm_cli.metrics.ranking import ScoredLabels
from resvm_cli.parameters import (
    METHOD_NAMES,
    KernelName,
    MethodName,
    Params,
    RuleName,
)
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray
from resvm_cli.run import Run
from resvm_cli.tuning.candidates import SearchOptions
from resvm_cli.tuning.choice import parameters_of
from resvm_cli.tuning.learn import learn
from resvm_cli.tuning.search import tune_on
from resvm_cli.tuning.space import AXIS_NAMES, Axis, axes_of, parse_axis

ProtocolName: TypeAlias = Literal["paper", "fast", "search"]
PROTOCOL_NAMES: tuple[ProtocolName, ...] = get_args(ProtocolName)
BASE_METHODS: dict[str, MethodName] = {name: name for name in METHOD_NAMES}
BASE_METHODS[PUBLISHED_CWSVM] = "cwsvm"

GRIDS: dict[str, Any] = json.loads(Path(__file__).with_name("grids.json").read_text())
MEMBERS = 50
PAPER_FOLDS = 10
PAPER_EXTENSIONS = 1
SEARCH_TRIALS = 100  # paper, section "Effect of contamination"
SEARCH_EXTENSIONS = 3
FAST_FOLDS = 5
FAST_TRIALS = 12
CURVE_DECIMALS = 4
GRAM_MB = 2048.0  # enough for the kernel matrix of 10,100 rows, the paper's largest task
ALL_ROWS = 10**9  # the paper scores candidates on all of U


@dataclass(frozen=True)
class Protocol:
    """How methods are tuned, and the decision rule of their ensembles."""

    name: ProtocolName
    trials: int = SEARCH_TRIALS  # for random search

    def kernel(self, family: str) -> KernelName:
        """Return the paper's kernel for a data set; the fast protocol always uses rbf."""
        return "rbf" if self.is_fast else GRIDS[family]["kernel"]

    def axes(self, method: str, family: str) -> tuple[Axis, ...]:
        """Return the values of each parameter of a method to try on a data set."""
        base = BASE_METHODS[method]
        listed = {**GRIDS[family], **GRIDS[family][base]}
        names = (name for name in AXIS_NAMES if name in listed and name in axes_of(base))
        return tuple(parse_axis(name, listed[name]) for name in names)

    def methods(self, family: str) -> tuple[str, ...]:
        """Return the methods to run on a data set; cwsvm-published is linear only."""
        return METHODS if self.kernel(family) == "linear" else METHODS[:-1]

    @property
    def is_fast(self) -> bool:
        """Whether features are scaled and models choose their rule, unlike in the paper."""
        return self.name == "fast"

    def params(self, method: str, family: str, seed: int) -> Params:
        if method == PUBLISHED_CWSVM:
            return Params(kernel="linear", solver="liblinear", bias=-1.0, seed=seed)
        return Params(kernel=self.kernel(family), seed=seed)

    def search(self, method: str, family: str, seed: int) -> SearchOptions:
        """Return how to search for and score a method's candidates."""
        common: dict[str, Any] = {
            "base": replace(self.params(method, family, seed), method=BASE_METHODS[method]),
            "n_models": MEMBERS,
        }
        if self.is_fast:
            return SearchOptions(
                **common, folds=FAST_FOLDS, search="random", trials=FAST_TRIALS,
                no_extend=True, max_unl=SearchOptions.max_unl,
            )  # fmt: skip
        common |= {
            "metric": "pu_score", "folds": PAPER_FOLDS, "max_unl": ALL_ROWS, "gram_mb": GRAM_MB
        }  # fmt: skip
        if self.name == "search":
            return SearchOptions(
                **common, search="random", trials=self.trials, max_extensions=SEARCH_EXTENSIONS
            )
        axes = self.axes(method, family)
        return SearchOptions(**common, search="grid", axes=axes, max_extensions=PAPER_EXTENSIONS)


@dataclass(frozen=True)
class Bench:
    """Data and settings shared by all cells of a run."""

    data: BenchmarkData
    protocol: Protocol
    alone: bool  # cells run one at a time, so the cell's CPU time is the process's


@dataclass(frozen=True, eq=False)
class CellScores:
    """A trained method's decision values for the test rows of its cell."""

    truth: npt.NDArray[np.bool_]
    values: FloatArray
    chosen: dict[str, Any]  # the parameters, as recorded in a line of results
    cpu_seconds: float  # for scoring the test rows, which is not part of training

    def areas(self) -> dict[str, float]:
        ranking = ScoredLabels.from_scores(self.truth, self.values)
        return {
            "pr_auc_trapezoid": float(ranking.pr_auc_trapezoid()),
            "average_precision": float(ranking.average_precision()),
            "roc_auc": float(ranking.roc_auc()),
        }

    def curve(self) -> list[float]:
        """Return the highest precision at or beyond each recall of 0.01, 0.02, ..., 1."""
        points = Points.from_scores(self.truth, self.values)
        best = np.maximum.accumulate(points.precision[::-1])[::-1]
        recalls = np.arange(1, CURVE_POINTS + 1) / CURVE_POINTS
        at = np.searchsorted(points.recall, recalls - 1e-12)
        return [round(float(precision), CURVE_DECIMALS) for precision in best[at]]


def score_cell(bench: Bench, cell: Cell) -> CellScores:
    drawn, scale = bench.data.draw(cell), "auto" if bench.protocol.is_fast else None
    data = MemoryData(drawn.positives, drawn.unlabeled, scale=scale)
    params, chosen = _tune(bench, cell, data)
    run = Run(jobs=1)
    part, model = learn(data, params, run)
    if not chosen:
        chosen = _chosen_by_training(part.plan, params)
    started = time.process_time()
    predictor = Predictor(model.ensemble)
    values = predictor.decisions(drawn.test).by(model.decision.rule)
    return CellScores(drawn.truth, values, chosen, time.process_time() - started)


def measure(bench: Bench, cell: Cell) -> dict[str, Any]:
    """Score a cell; return its line of results and the matching line of times."""
    started, cpu_started = time.perf_counter(), time.process_time()
    scores = score_cell(bench, cell)
    key = cell.record(bench.protocol.name)
    result = {**key, **scores.areas(), **scores.chosen, "curve": scores.curve()}
    times = {**key, "seconds": round(time.perf_counter() - started, 3)}
    if bench.alone:
        times["cpu_seconds"] = round(time.process_time() - cpu_started, 3)
        times["cpu_seconds_test"] = round(scores.cpu_seconds, 3)
    return {"result": result, "times": times}


def _tune(bench: Bench, cell: Cell, data: MemoryData) -> tuple[Params, dict[str, Any]]:
    """Tune a method; return what to train, and a tuning record (empty if training tunes it)."""
    protocol, family = bench.protocol, PAPER_TASKS[cell.task].family
    seed = cell.seed(bench.data.seed)
    decision: RuleName | None = None if protocol.is_fast else "votes"
    if protocol.is_fast and cell.method == "resvm":
        params = protocol.params(cell.method, family, seed)
        return params, {}
    settings = protocol.search(cell.method, family, seed)
    settings.check()
    result = tune_on(data, settings, Run(jobs=1))
    params = result.settings[0]
    chosen = {
        "candidates": len(result.outcome.trials),
        "parameters": parameters_of(params),
        "selected_score": result.params["selected_by"]["score"],
    }
    return replace(params, auto=False, decision=decision), chosen


def _chosen_by_training(plan: Plan, params: Params) -> dict[str, Any]:
    """Return the record of a committee: the parameters with the largest weight."""
    heaviest = max(range(len(plan.settings)), key=lambda number: plan.weights[number])
    one = plan.settings[heaviest]
    chosen = replace(
        params, gamma=one.kernel.gamma, c_unl=one.c_unl, w_pos=one.w_pos, n_pos=one.n_pos,
        n_unl=one.n_unl, n_models=one.n_models,
    )  # fmt: skip
    return {"parameters": parameters_of(chosen), "settings": len(plan.settings)}
