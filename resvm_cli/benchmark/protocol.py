"""How the methods of a cell are tuned: as in the paper, or as recommended today.

The paper tunes by a grid, and by random search where it varies the contamination. Its grids were
not published. Ours are in ``grids.json``, which users can read and replace: for each data set a
kernel and the values of each parameter. A parameter that methods share is listed once, so that all
methods get the same resolution. All settings of a task share one grid (paper, section 4).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias, get_args

from resvm_cli.benchmark.data import METHODS, PUBLISHED_CWSVM
from resvm_cli.errors import CommandLineError, DataError, Message, ParameterError
from resvm_cli.files.package_files import package_text
from resvm_cli.files.run_directory import read_json
from resvm_cli.parameters import KERNEL_NAMES, KernelName, MethodName, MethodParameters, RuleName
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning.settings import TuningSettings
from resvm_cli.tuning.space import AXIS_NAMES, Axis, axes_of, parse_axis

ProtocolName: TypeAlias = Literal["paper", "fast", "search"]
PROTOCOL_NAMES: tuple[ProtocolName, ...] = get_args(ProtocolName)
BASE_METHODS: dict[str, MethodName] = {
    "resvm": "resvm", "bagging": "bagging", "cwsvm": "cwsvm", PUBLISHED_CWSVM: "cwsvm"
}  # fmt: skip

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
GRAM_MB = 2048.0  # kernel values of 10,100 rows, the largest task of the paper
ALL_ROWS = 10**9  # the paper scores candidates on all of U
DEFAULT = "default"  # the grid of data sets that have none of their own
RELATIVE = "x"  # before a number: times gamma's "scale", or times |P|


@dataclass(frozen=True)
class Grid:
    """The kernel of a data set, and the text of each axis of each method."""

    kernel: KernelName
    axes: Mapping[str, Mapping[str, str]]  # by method, then by name

    def axes_of(self, method: str, gamma_scale: float, n_pos: int) -> tuple[Axis, ...]:
        """The values to try, with relative ones computed from the data."""
        units = {"gamma": gamma_scale, "n_pos": float(n_pos)}
        return tuple(
            parse_axis(name, _absolute(name, text, units))
            for name, text in self.axes[BASE_METHODS[method]].items()
        )

    def check(self, method: str) -> None:
        """Check that a method has all its axes, and not too many candidates."""
        needed = set(axes_of(BASE_METHODS[method])) - {"degree", "coef0"}
        if not Kernel(self.kernel).uses_gamma:
            needed.discard("gamma")
        for name in sorted(needed - set(self.axes[method])):
            raise DataError(f"{method}: {name} is missing")
        for name, text in self.axes[method].items():
            if ".." in text or ":" in text:
                raise DataError(f"{method}: {name} is '{text}', but a grid lists values: 1,10,100")
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
            f"{RELATIVE} goes before every number, and only for gamma and n_pos",
        )
    factors = parse_axis("gamma", ",".join(part[len(RELATIVE) :] for part in parts)).points()
    values = [factor * units[name] for factor in factors]
    if name == "n_pos":
        values = [float(max(1, round(value))) for value in values]
    return ",".join(repr(value) for value in dict.fromkeys(values))


@dataclass(frozen=True)
class Grids:
    """The grids of all data sets, as the file has them."""

    content: Mapping[str, Any]

    @classmethod
    def from_file(cls, content: Mapping[str, Any], name: str) -> Grids:
        """Check every grid of a file, also those that this run does not use."""
        if content.get("kind") != GRIDS_KIND or content.get("format") != GRIDS_FORMAT:
            raise DataError(f"{name}: holds no grids", "edit what resvm benchmark grids prints")
        sets = content.get("data_sets")
        if not isinstance(sets, dict):
            raise DataError(f"{name}: data_sets is missing")
        grids = cls(content)
        for family in sets:
            try:
                grid = grids.grid(family)
                for method in ("resvm", "bagging", "cwsvm"):
                    grid.check(method)
            except (CommandLineError, ParameterError, DataError) as error:
                told = Message("{file}: {family}: {problem}", file=name, family=family,
                               problem=error.message)  # fmt: skip
                raise DataError(told, error.hint) from None
        return grids

    def grid(self, family: str) -> Grid:
        """The grid of a data set, or the default one."""
        sets = self.content["data_sets"]
        entry = sets.get(family, sets.get(DEFAULT))
        if not isinstance(entry, dict):
            raise DataError(f"there is no grid for {family}", f"add one, or one named {DEFAULT}")
        kernel = entry.get("kernel")
        if kernel not in KERNEL_NAMES:
            raise DataError(f"kernel is {str(kernel)[:50]!r}")
        shared = {name: text for name, text in entry.items() if name in AXIS_NAMES}
        axes = {}
        for method in ("resvm", "bagging", "cwsvm"):
            own = entry.get(method, {})
            if not isinstance(own, dict):
                raise DataError(f"{method} is not an object")
            known = {**shared, **own}
            for axis, text in known.items():
                if axis not in AXIS_NAMES or not isinstance(text, str):
                    raise DataError(f"{method}: {str(axis)[:50]!r} is not an axis with its values")
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
    """How methods are tuned, and how their ensembles decide."""

    name: ProtocolName
    grids: Grids
    trials: int = SEARCH_TRIALS  # of random search

    def kernel(self, family: str) -> KernelName:
        """The paper's kernel for a data set; today's recommendation is always rbf."""
        return "rbf" if self.name == "fast" else self.grids.grid(family).kernel

    def methods(self, family: str) -> tuple[str, ...]:
        """The methods that make sense for a data set."""
        return METHODS if self.kernel(family) == "linear" else METHODS[:-1]

    @property
    def scale(self) -> Literal["auto"] | None:
        """Whether features are scaled; the paper used them as they were."""
        return "auto" if self.name == "fast" else None

    @property
    def decision(self) -> RuleName | None:
        """The paper's decision rule, or the model's own choice."""
        return None if self.name == "fast" else "votes"

    def is_automatic(self, method: str) -> bool:
        """Whether training chooses the settings itself."""
        return self.name == "fast" and method == "resvm"

    def params(self, method: str, family: str, seed: int) -> MethodParameters:
        """The parameters that all candidates of a method share."""
        if method == PUBLISHED_CWSVM:
            return MethodParameters(kernel="linear", solver="liblinear", bias=-1.0, seed=seed)
        return MethodParameters(kernel=self.kernel(family), seed=seed)

    def search(
        self, method: str, family: str, seed: int, gamma_scale: float, n_pos: int
    ) -> TuningSettings:
        """How a method's candidates are found and scored."""
        common: dict[str, Any] = {
            "methods": (BASE_METHODS[method],),
            "base": self.params(method, family, seed),
            "n_models": MEMBERS,
        }
        if self.name == "fast":
            return TuningSettings(
                **common, folds=FAST_FOLDS, search="random", trials=FAST_TRIALS,
                max_extensions=0, max_unl=TuningSettings.max_unl,
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
