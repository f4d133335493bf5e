"""Run one method on one draw: tune it by a protocol, train it on all of P and U, and test it.

The paper tunes by grid search, and by random search in its experiments on contamination. Its grids
were not published. Ours are in ``grids.json``, which users can read and replace; for each data set,
it lists a kernel and the values of each parameter. A parameter used by several methods is listed
once, so that all methods get the same resolution. All settings of a task share one grid (paper,
section 4).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from resvm_cli.benchmark.data import METHODS, PAPER_TASKS, PUBLISHED_CWSVM, BenchmarkData, Cell
from resvm_cli.benchmark.results import CURVE_POINTS
from resvm_cli.errors import DataError, Message, ParameterError
from resvm_cli.files.json_files import read_json
from resvm_cli.files.streams import package_text
from resvm_cli.metrics.curves import Points
from resvm_cli.metrics.ranking import ScoredLabels
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model.setting_plan import gamma_scale
from resvm_cli.parameters import (
    KERNEL_NAMES,
    METHOD_NAMES,
    KernelName,
    MethodName,
    MethodParameters,
    RuleName,
)
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray
from resvm_cli.running.run import Run
from resvm_cli.svm.kernels import Kernel
from resvm_cli.training.choice import TrainingChoice, parameters_of
from resvm_cli.training.train import train_on
from resvm_cli.tuning.search import TuningSettings
from resvm_cli.tuning.space import AXIS_NAMES, Axis, axes_of, parse_axis
from resvm_cli.tuning.tune import choose_settings, tune_on

ProtocolName: TypeAlias = Literal["paper", "fast", "search"]
PROTOCOL_NAMES: tuple[ProtocolName, ...] = get_args(ProtocolName)
BASE_METHODS: dict[str, MethodName] = {name: name for name in METHOD_NAMES}
BASE_METHODS[PUBLISHED_CWSVM] = "cwsvm"

GRIDS_FILE = "benchmark/grids.json"
GRIDS_KIND = "resvm-benchmark-grids"
GRIDS_FORMAT = 1
MAX_CANDIDATES = 48  # per method, before a range is extended
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
DEFAULT = "default"  # the grid for data sets without their own
RELATIVE = "x"  # prefix of a number: relative to gamma's "scale", or to |P|


@dataclass(frozen=True)
class Grid:
    """The kernel for a data set, and the unparsed values of each parameter of each method."""

    kernel: KernelName
    axes: Mapping[str, Mapping[str, str]]  # by method, then by parameter name

    def axes_of(self, method: str, gamma_scale: float, n_pos: int) -> tuple[Axis, ...]:
        """Return the values to try; relative values are resolved from the data."""
        units = {"gamma": gamma_scale, "n_pos": float(n_pos)}
        return tuple(
            parse_axis(name, _absolute(name, text, units))
            for name, text in self.axes[BASE_METHODS[method]].items()
        )

    def check(self, method: str) -> None:
        """Check that a method has all its parameters and not too many candidates."""
        needed = set(axes_of(BASE_METHODS[method])) - {"degree", "coef0"}
        if not Kernel(self.kernel).uses_gamma:
            needed.discard("gamma")
        for name in sorted(needed - set(self.axes[method])):
            raise DataError(f"{method}: {name} is missing")
        for name, text in self.axes[method].items():
            if ".." in text or ":" in text:
                raise DataError(
                    f"{method}: {name} must be a list of values such as 1,10,100, got '{text}'"
                )
        count = prod(len(axis.points()) for axis in self.axes_of(method, 1.0, 1000))
        if count > MAX_CANDIDATES:
            raise DataError(
                f"{method}: {count} candidates; at most {MAX_CANDIDATES} are allowed",
                "list fewer values",
            )


def _absolute(name: str, text: str, units: Mapping[str, float]) -> str:
    parts = text.split(",")
    if RELATIVE not in text:
        return text
    if name not in units or not all(part.startswith(RELATIVE) for part in parts):
        raise DataError(
            f"{name} is '{text}'",
            f"use {RELATIVE} only for gamma and n_pos, and before every number",
        )
    factors = parse_axis("gamma", ",".join(part[len(RELATIVE) :] for part in parts)).points()
    values = [factor * units[name] for factor in factors]
    if name == "n_pos":
        values = [float(max(1, round(value))) for value in values]
    return ",".join(repr(value) for value in dict.fromkeys(values))


@dataclass(frozen=True)
class Grids:
    """The grids of all data sets, as stored in the file."""

    content: Mapping[str, Any]

    @classmethod
    def from_file(cls, content: Mapping[str, Any], name: str) -> Grids:
        """Check every grid in a file, even those not used in this run."""
        if content.get("kind") != GRIDS_KIND or content.get("format") != GRIDS_FORMAT:
            raise DataError(
                f"{name}: contains no grids", "edit the output of resvm benchmark grids"
            )
        sets = content.get("data_sets")
        if not isinstance(sets, dict):
            raise DataError(f"{name}: data_sets is missing")
        grids = cls(content)
        for family in sets:
            try:
                grid = grids.grid(family)
                for method in METHOD_NAMES:
                    grid.check(method)
            except (ParameterError, DataError) as error:
                text = Message("{file}: {family}: {problem}", file=name, family=family,
                               problem=error.message)  # fmt: skip
                raise DataError(text, error.hint) from None
        return grids

    def grid(self, family: str) -> Grid:
        """Return the grid for a data set, or the default grid."""
        sets = self.content["data_sets"]
        entry = sets.get(family, sets.get(DEFAULT))
        if not isinstance(entry, dict):
            raise DataError(f"there is no grid for {family}", f"add one, or add {DEFAULT}")
        kernel = entry.get("kernel")
        if kernel not in KERNEL_NAMES:
            raise DataError(f"kernel is {str(kernel)[:50]!r}")
        shared = {name: text for name, text in entry.items() if name in AXIS_NAMES}
        axes: dict[str, Mapping[str, str]] = {}
        for method in METHOD_NAMES:
            own = entry.get(method, {})
            if not isinstance(own, dict):
                raise DataError(f"{method} is not an object")
            known = {**shared, **own}
            for axis, text in known.items():
                if axis not in AXIS_NAMES or not isinstance(text, str):
                    raise DataError(f"{method}: {str(axis)[:50]!r} is not a parameter with values")
            axes[method] = {n: known[n] for n in AXIS_NAMES if n in known and n in axes_of(method)}
        return Grid(kernel, axes)


def default_grids_text() -> str:
    return package_text(GRIDS_FILE)


def default_grids() -> Grids:
    return Grids.from_file(json.loads(default_grids_text()), GRIDS_FILE)


def read_grids(path: str) -> Grids:
    return Grids.from_file(read_json(path), path)


@dataclass(frozen=True)
class Protocol:
    """How methods are tuned, and the decision rule of their ensembles."""

    name: ProtocolName
    grids: Grids
    trials: int = SEARCH_TRIALS  # for random search

    def kernel(self, family: str) -> KernelName:
        """Return the paper's kernel for a data set; the fast protocol always uses rbf."""
        return "rbf" if self.is_fast else self.grids.grid(family).kernel

    def methods(self, family: str) -> tuple[str, ...]:
        """Return the methods to run on a data set; cwsvm-published is linear only."""
        return METHODS if self.kernel(family) == "linear" else METHODS[:-1]

    @property
    def is_fast(self) -> bool:
        """Whether features are scaled and the model has its own rule, unlike in the paper."""
        return self.name == "fast"

    def params(self, method: str, family: str, seed: int) -> MethodParameters:
        if method == PUBLISHED_CWSVM:
            return MethodParameters(kernel="linear", solver="liblinear", bias=-1.0, seed=seed)
        return MethodParameters(kernel=self.kernel(family), seed=seed)

    def search(
        self, method: str, family: str, seed: int, gamma_scale: float, n_pos: int
    ) -> TuningSettings:
        """Return how to search for and score a method's candidates."""
        common: dict[str, Any] = {
            "methods": (BASE_METHODS[method],),
            "base": self.params(method, family, seed),
            "n_models": MEMBERS,
        }
        if self.is_fast:
            return TuningSettings(
                **common, folds=FAST_FOLDS, search="random", trials=FAST_TRIALS,
                no_extend=True, max_unl=TuningSettings.max_unl,
            )  # fmt: skip
        common |= {
            "metric": "pu_score", "folds": PAPER_FOLDS, "max_unl": ALL_ROWS, "gram_mb": GRAM_MB
        }  # fmt: skip
        if self.name == "search":
            return TuningSettings(
                **common, search="random", trials=self.trials, max_extensions=SEARCH_EXTENSIONS
            )
        axes = self.grids.grid(family).axes_of(method, gamma_scale, n_pos)
        return TuningSettings(**common, search="grid", axes=axes, max_extensions=PAPER_EXTENSIONS)


@dataclass(frozen=True)
class Bench:
    """Data and settings shared by all cells of a benchmark."""

    data: BenchmarkData
    protocol: Protocol
    alone: bool  # cells run one at a time, so the CPU time of the process is that of the cell


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
    data = MemoryData(drawn.positives, drawn.unlabeled, groups=drawn.groups, scale=scale)
    choice, chosen = _tune(bench, cell, data)
    run = Run(jobs=1)
    part, model = train_on(data, choose_settings(data, choice, run), run)
    if not chosen:
        chosen = _chosen_by_training(part.plan, choice.params)
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


def _tune(bench: Bench, cell: Cell, data: MemoryData) -> tuple[TrainingChoice, dict[str, Any]]:
    """Tune a method; return what to train, and its record (empty if tuned during training)."""
    protocol, family = bench.protocol, bench.data.family(cell.task)
    seed = cell.seed(bench.data.seed)
    decision: RuleName | None = None if protocol.is_fast else "votes"
    if protocol.is_fast and cell.method == "resvm":
        params = protocol.params(cell.method, family, seed)
        return TrainingChoice.from_params(params, auto="committee", decision=decision), {}
    scale = gamma_scale(data.n_features, data.variance(data.scale))
    settings = protocol.search(cell.method, family, seed, scale, len(data.positives))
    settings.check()
    result = tune_on(data, settings, Run(jobs=1))
    params = result.best.settings[0].params
    chosen = {
        "candidates": len(result.trials),
        "parameters": parameters_of(params),
        "selected_score": result.best.params["selected_by"]["score"],
    }
    return TrainingChoice.from_params(params, decision=decision), chosen


def _chosen_by_training(plan: ModelPlan, params: MethodParameters) -> dict[str, Any]:
    """Return the record of a committee: the parameters with the largest weight."""
    heaviest = max(range(len(plan.plans)), key=lambda number: plan.weights[number])
    one = plan.plans[heaviest]
    chosen = replace(
        params, gamma=one.kernel.gamma, c_unl=one.c_unl, w_pos=one.w_pos, n_pos=one.n_pos,
        n_unl=one.n_unl, n_models=one.n_models,
    )  # fmt: skip
    return {"parameters": parameters_of(chosen), "settings": len(plan.plans)}


class TimeLeft:
    """Estimates the remaining time from the cells already measured."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._seconds: dict[tuple[str, str], list[float]] = {}  # by task and method

    def add(self, cell: Cell, seconds: float) -> None:
        self._seconds.setdefault((cell.task, cell.method), []).append(seconds)

    def phrase(self, cells: Sequence[Cell], workers: int) -> str:
        """Return a phrase like ``, about 3 h left``, or nothing before the first measurement."""
        if not self._seconds:
            return ""
        means = {kind: sum(times) / len(times) for kind, times in self._seconds.items()}
        rate = sum(mean / self._size(*kind) for kind, mean in means.items()) / len(means)
        kinds = [(cell.task, cell.method) for cell in cells]
        seconds = sum(means.get(kind) or rate * self._size(*kind) for kind in kinds) / workers
        if seconds < 120:
            return f", about {seconds:.0f} s left"
        if seconds < 7200:
            return f", about {seconds / 60:.0f} min left"
        return f", about {seconds / 3600:.1f} h left"

    def _size(self, task: str, method: str) -> float:
        """Return the relative cost of a cell: the number of pairs of rows in all bags."""
        data, protocol = self._bench.data, self._bench.protocol
        source = data.own or PAPER_TASKS[task]
        grid = protocol.grids.grid(data.family(task))
        values = {axis.name: axis.points() for axis in grid.axes_of(method, 1.0, source.n_pos)}
        if BASE_METHODS[method] == "cwsvm":
            members, bag = 1, float(source.n_pos + source.n_unl)
        else:
            n_pos = max(values.get("n_pos", (float(source.n_pos),)))
            members, bag = MEMBERS, n_pos * (1.0 + max(values.get("unl_per_pos", (1.0,))))
        n_candidates = prod(len(points) for points in values.values())
        if protocol.name == "search":
            n_candidates = protocol.trials
        return n_candidates * members * bag**2
