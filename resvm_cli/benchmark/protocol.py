"""How the methods of a cell are tuned and trained: as in the paper, or as we recommend today.

The paper tunes twice: by a grid, and by random search where it varies the contamination.

The paper's grids were not published. Ours are in ``grids.json``, which users can read and replace:
for each data set a kernel and the values of each parameter, those that methods share at one place,
so that they have the same resolution. The same grid serves all settings of a task (section 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias, get_args

from resvm_cli.benchmark.paper_tasks import PUBLISHED_CWSVM
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.parameters import KERNEL_NAMES, KernelName, MethodName, MethodParameters, RuleName
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning.settings import MAX_UNL, TuningSettings
from resvm_cli.tuning.space import AXIS_NAMES, Axis, axes_of, parse_axis

ProtocolName: TypeAlias = Literal["paper", "fast", "search"]
PROTOCOL_NAMES: tuple[ProtocolName, ...] = get_args(ProtocolName)

METHODS: tuple[str, ...] = ("resvm", "bagging", "cwsvm", PUBLISHED_CWSVM)
BASE_METHODS: dict[str, MethodName] = {
    "resvm": "resvm",
    "bagging": "bagging",
    "cwsvm": "cwsvm",
    PUBLISHED_CWSVM: "cwsvm",
}

KIND = "resvm-benchmark-grids"
FORMAT = 1
MOST_CANDIDATES = 48  # of one method, before any range is extended
MEMBERS = 50
PAPER_FOLDS = 10
PAPER_EXTENSIONS = 1
SEARCH_TRIALS = 100  # paper, section "Effect of contamination"
SEARCH_EXTENSIONS = 3
FAST_FOLDS = 5
FAST_TRIALS = 12
GRAM_MB = 2048.0  # kernel values of 10,100 rows, the largest task of the paper
DEFAULT = "default"  # the grid of data that has none of its own
RELATIVE = "x"  # before a number: times the gamma called scale, or times |P|


@dataclass(frozen=True)
class Grid:
    """The kernel of a data set, and the text of each axis of each method."""

    kernel: KernelName
    axes: Mapping[str, Mapping[str, str]]  # by method, then by name

    def axes_of(self, method: str, gamma_scale: float, n_pos: int) -> tuple[Axis, ...]:
        """What is tried, where ``x`` stands for what the data says."""
        units = {"gamma": gamma_scale, "n_pos": float(n_pos)}
        return tuple(
            parse_axis(name, _absolute(name, text, units))
            for name, text in self.axes[BASE_METHODS[method]].items()
        )


def _absolute(name: str, text: str, units: Mapping[str, float]) -> str:
    parts = text.split(",")
    if RELATIVE not in text:
        return text
    if name not in units or not all(part.startswith(RELATIVE) for part in parts):
        raise DataError(
            f"{name} is '{text}'", f"{RELATIVE} goes before every number, of gamma or n_pos alone"
        )
    factors = parse_axis("gamma", ",".join(part[len(RELATIVE) :] for part in parts)).points()
    values = [factor * units[name] for factor in factors]
    if name == "n_pos":
        values = [float(max(1, round(value))) for value in values]
    return ",".join(repr(value) for value in dict.fromkeys(values))


@dataclass(frozen=True)
class Grids:
    """The grids of all data sets, as they are in the file."""

    content: Mapping[str, Any]

    @classmethod
    def checked(cls, content: Mapping[str, Any], name: str) -> Grids:
        """From a file; every grid must make sense, also those that are not used now."""
        if content.get("kind") != KIND or content.get("format") != FORMAT:
            raise DataError(f"{name}: holds no grids", "begin with what resvm benchmark grids says")
        sets = content.get("data_sets")
        if not isinstance(sets, dict):
            raise DataError(f"{name}: data_sets is missing")
        grids = cls(content)
        for family in sets:
            try:
                grid = grids.of(family)
                for method in ("resvm", "bagging", "cwsvm"):
                    _check_axes(grid, method)
            except (CommandLineError, DataError) as error:
                raise DataError(f"{name}: {family}: {error.message}", error.hint) from None
        return grids

    def of(self, family: str) -> Grid:
        """The grid of a data set, or the one of those that have none."""
        sets = self.content["data_sets"]
        entry = sets.get(family, sets.get(DEFAULT))
        if not isinstance(entry, dict):
            raise DataError(f"there is no grid for {family}", f"add it, or one called {DEFAULT}")
        kernel = entry.get("kernel")
        if kernel not in KERNEL_NAMES:
            raise DataError(f"kernel is {str(kernel)[:50]!r}")
        axes = {}
        for method in ("resvm", "bagging", "cwsvm"):
            own = entry.get(method, {})
            if not isinstance(own, dict):
                raise DataError(f"{method} is no object")
            shared = {n: text for n, text in entry.items() if n in AXIS_NAMES}
            known = {**shared, **own}
            for axis, text in known.items():
                if axis not in AXIS_NAMES or not isinstance(text, str):
                    raise DataError(f"{method}: {str(axis)[:50]!r} is no axis with its values")
            axes[method] = {n: known[n] for n in AXIS_NAMES if n in known and n in axes_of(method)}
        return Grid(kernel, axes)


def _check_axes(grid: Grid, method: str) -> None:
    kernel = Kernel(grid.kernel)
    needed = set(axes_of(BASE_METHODS[method])) - {"degree", "coef0"}
    if not kernel.uses_gamma:
        needed.discard("gamma")
    for name in sorted(needed - set(grid.axes[method])):
        raise DataError(f"{method}: {name} is missing")
    counts = []
    for name, text in grid.axes[method].items():
        if ".." in text or ":" in text:
            raise DataError(f"{method}: {name} is '{text}', and a grid lists its values: 1,10,100")
        axis = parse_axis(name, _absolute(name, text, {"gamma": 1.0, "n_pos": 1000.0}))
        counts.append(len(axis.points()))
    if prod(counts) > MOST_CANDIDATES:
        raise DataError(
            f"{method}: {prod(counts)} candidates, and {MOST_CANDIDATES} are allowed",
            "list fewer values",
        )


@dataclass(frozen=True)
class Protocol:
    """How a method is tuned, and how its ensemble decides."""

    name: ProtocolName
    grids: Grids
    trials: int = SEARCH_TRIALS  # of random search

    def kernel(self, family: str) -> KernelName:
        """The paper's choice for a data set; today's is rbf wherever nothing else is known."""
        return "rbf" if self.name == "fast" else self.grids.of(family).kernel

    def methods_of(self, family: str) -> tuple[str, ...]:
        """Those that have a meaning for a data set."""
        published = self.kernel(family) == "linear"
        return METHODS if published else METHODS[:-1]

    @property
    def scale(self) -> Literal["auto"] | None:
        """Today features are scaled where they ask for it; the paper took them as they were."""
        return "auto" if self.name == "fast" else None

    @property
    def decision(self) -> RuleName | None:
        """The paper's, or what the model would decide by."""
        return None if self.name == "fast" else "votes"

    def automatic(self, method: str) -> bool:
        """Whether training chooses the settings itself."""
        return self.name == "fast" and method == "resvm"

    def params(self, method: str, family: str, seed: int) -> MethodParameters:
        """What all candidates of a method have in common."""
        if method == PUBLISHED_CWSVM:
            return MethodParameters(kernel="linear", solver="liblinear", bias=-1.0, seed=seed)
        return MethodParameters(kernel=self.kernel(family), seed=seed)

    def search(
        self, method: str, family: str, seed: int, gamma_scale: float, n_pos: int
    ) -> TuningSettings:
        """How a method's candidates are found and judged."""
        base = self.params(method, family, seed)
        methods = (BASE_METHODS[method],)
        if self.name == "fast":
            return TuningSettings(
                methods=methods,
                base=base,
                folds=FAST_FOLDS,
                search="random",
                trials=FAST_TRIALS,
                n_models=MEMBERS,
                max_extensions=0,
                max_unl=MAX_UNL,
            )
        if self.name == "search":
            return TuningSettings(
                methods=methods,
                base=base,
                metric="pu_score",
                folds=PAPER_FOLDS,
                search="random",
                trials=self.trials,
                n_models=MEMBERS,
                max_extensions=SEARCH_EXTENSIONS,
                max_unl=10**9,
                gram_mb=GRAM_MB,
            )
        return TuningSettings(
            methods=methods,
            base=base,
            axes=self.grids.of(family).axes_of(method, gamma_scale, n_pos),
            metric="pu_score",
            folds=PAPER_FOLDS,
            search="grid",
            n_models=MEMBERS,
            max_extensions=PAPER_EXTENSIONS,
            max_unl=10**9,
            gram_mb=GRAM_MB,
        )
