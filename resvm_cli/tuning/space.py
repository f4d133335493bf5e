"""The search space: one axis per hyperparameter, given by the user or derived from the data.

An axis is a list of values or an interval. It can be extended beyond its edges, but only within
limits: for example, a bag with more rows than the data has is useless.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from resvm_cli.errors import ParameterError
from resvm_cli.parameters import KernelName, MethodName, Params, ScalingName
from resvm_cli.records import dataclass
from resvm_cli.svm.kernels import Kernel

# The order in which axes are sampled; in a grid the last one varies fastest.
AXIS_NAMES = ("gamma", "degree", "coef0", "n_pos", "unl_per_pos", "w_pos", "c_unl")
LOG_AXES = ("gamma", "n_pos", "unl_per_pos", "w_pos", "c_unl")
WHOLE_AXES = ("degree", "n_pos")
WORDS = ("kernel", "feature_weights", "scale")  # parameters that candidates set without an axis
GRID_POINTS = {"gamma": 5, "c_unl": 4, "w_pos": 3, "n_pos": 3, "unl_per_pos": 2}
OTHER_GRID_POINTS = 3
EDGE_FRACTION = 0.05  # paper, section 5: optima close to the edge are not accepted
EXTENSION = 1 / 3  # fraction of an interval's width


@dataclass(frozen=True)
class Axis:
    """The values of one hyperparameter: a list, or an interval from low to high."""

    name: str
    low: float
    high: float
    log: bool = False
    values: tuple[float, ...] = ()  # if this axis is a list
    floor: float = 0.0
    ceiling: float = math.inf

    @property
    def fixed(self) -> bool:
        return self.low == self.high

    def limited(self, floor: float, ceiling: float) -> Axis:
        """Return the same axis with limits on how far it can be extended."""
        return replace(self, floor=floor, ceiling=ceiling)

    def at(self, fraction: float) -> float:
        """Return the value at this fraction of the way from low to high."""
        if self.values:
            return self.values[min(int(fraction * len(self.values)), len(self.values) - 1)]
        if self.log:
            value = self.low * (self.high / self.low) ** fraction
        else:
            value = self.low + (self.high - self.low) * fraction
        return self._kept(value)

    def _kept(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        return float(round(value)) if self.name in WHOLE_AXES else value

    def points(self) -> tuple[float, ...]:
        if self.values:
            return self.values
        if self.fixed:
            return (self.low,)
        steps = GRID_POINTS.get(self.name, OTHER_GRID_POINTS) - 1
        return tuple(dict.fromkeys(self.at(step / steps) for step in range(steps + 1)))

    def nearest(self, value: float) -> float:
        """Return the value on this axis that is nearest to the given one."""
        if self.values:
            return min(self.values, key=lambda listed: abs(listed - value))
        return self._kept(value)

    def edge(self, value: float) -> int:
        """Return -1 or 1 if the value lies on the lower or upper edge, else 0."""
        if self.fixed:
            return 0
        if self.values:
            return -1 if value == self.values[0] else 1 if value == self.values[-1] else 0
        fraction = self._fraction(value)
        return -1 if fraction <= EDGE_FRACTION else 1 if fraction >= 1 - EDGE_FRACTION else 0

    def _fraction(self, value: float) -> float:
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def beyond(self, side: int) -> Axis | None:
        """Return the adjacent interval or value on one side, or None at the limit."""
        if self.values:
            last, before = (self.values[0], self.values[1]) if side < 0 else self.values[:-3:-1]
            value = last * last / before if self.log else 2 * last - before
            value = min(max(value, self.floor), self.ceiling)
            value = float(round(value)) if self.name in WHOLE_AXES else value
            if value in self.values or not value > 0:
                return None
            return replace(self, low=value, high=value, values=(value,))
        if self.log:
            factor = (self.high / self.low) ** EXTENSION
            low, high = (
                (self.low / factor, self.low) if side < 0 else (self.high, self.high * factor)
            )
        else:
            step = (self.high - self.low) * EXTENSION
            low, high = (self.low - step, self.low) if side < 0 else (self.high, self.high + step)
        part = replace(self, low=max(low, self.floor), high=min(high, self.ceiling))
        if part.low >= part.high or (self.name in WHOLE_AXES and round(part.high - part.low) == 0):
            return None
        return part

    def joined(self, part: Axis) -> Axis:
        """Return this axis joined with the part beyond it."""
        return replace(
            self,
            low=min(self.low, part.low),
            high=max(self.high, part.high),
            values=tuple(sorted({*self.values, *part.values})),
        )

    def __str__(self) -> str:
        if self.values or self.fixed:
            return ",".join(f"{value:.4g}" for value in self.values or (self.low,))
        return f"{self.low:.4g}..{self.high:.4g}" + (":log" if self.log else "")


def parse_axis(name: str, text: str) -> Axis:
    """Parse ``1``, ``0.1,1,10``, ``1..100``, ``1..100:log`` or ``1..100:linear``."""
    body, _, kind = text.partition(":")
    if kind not in ("", "log", "linear"):
        raise _range_error(name, text, f"':{kind}' is neither :log nor :linear")
    log = kind == "log" or (kind == "" and name in LOG_AXES)
    if ".." in body:
        first, _, second = body.partition("..")
        low, high = _number(name, text, first), _number(name, text, second)
        if low > high:
            raise _range_error(name, text, "the range is reversed", f"write {second}..{first}")
        axis = Axis(name, low, high, log)
    else:
        listed = [_number(name, text, part) for part in body.split(",")]
        if len(set(listed)) < len(listed):
            raise _range_error(name, text, "a value is listed twice")
        values = tuple(sorted(listed))
        axis = Axis(name, values[0], values[-1], log, values if len(values) > 1 else ())
    if name != "coef0" and axis.low <= 0:
        raise _range_error(name, text, "values must be positive")
    if axis.log and axis.low <= 0:
        raise _range_error(name, text, "a logarithmic range must be positive")
    if name in WHOLE_AXES and any(
        value != round(value) for value in (axis.low, axis.high, *axis.values)
    ):
        raise _range_error(name, text, "values must be integers")
    return axis


def _range_error(name: str, text: str, problem: str, hint: str | None = None) -> ParameterError:
    return ParameterError(f"`{name}` {text}: {problem}", hint)


def _number(name: str, text: str, part: str) -> float:
    if not part.strip():
        hint = "write a list 1,10 or a range 1..10"
        raise _range_error(name, text, "a number is missing", hint)
    try:
        value = float(part)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        hint = "write a list 1,10 or a range 1..10[:log]"
        raise _range_error(name, text, f"'{part}' is not a number", hint)
    return value


@dataclass(frozen=True)
class Candidate:
    """One setting of the hyperparameters."""

    method: MethodName
    values: tuple[tuple[str, float], ...]  # in the order of AXIS_NAMES
    # None: the value that all candidates share
    kernel: KernelName | None = None
    feature_weights: str | None = None
    scale: ScalingName | None = None

    def __getitem__(self, name: str) -> float | None:
        return dict(self.values).get(name)

    def times(self, name: str, factor: float) -> Candidate:
        """Return the candidate with one value multiplied by a factor."""
        scaled = ((each, v * factor if each == name else v) for each, v in self.values)
        return replace(self, values=tuple(scaled))

    @property
    def named_values(self) -> dict[str, Any]:
        """All values that the candidate sets, by parameter name, as logged."""
        words = {name: getattr(self, name) for name in WORDS}
        return {**{name: word for name, word in words.items() if word}, **dict(self.values)}

    @property
    def kernel_key(self) -> tuple[object, ...]:
        """A key that candidates share if they have the same kernel matrix."""
        view = self.kernel, self.feature_weights, self.scale
        return *view, self["gamma"], self["degree"], self["coef0"]

    def parameters(self, base: Params, n_models: int, rows_pos: int, rows_unl: int) -> Params:
        """Return parameters for this many rows; the candidate's values override ``base``."""
        n_pos = n_unl = None
        if self.method == "resvm":
            n_pos = min(int(self["n_pos"] or 1), rows_pos)
        if self.method != "cwsvm":
            per_pos = self["unl_per_pos"] or 1.0
            n_unl = min(max(1, round(per_pos * (n_pos or rows_pos))), rows_unl)
        values: dict[str, Any] = {
            name: int(value) if name in WHOLE_AXES else value for name, value in self.values
        }
        values.pop("unl_per_pos", None)
        values |= {"method": self.method, "n_pos": n_pos, "n_unl": n_unl}
        values["n_models"] = None if self.method == "cwsvm" else n_models
        words = {"kernel": self.kernel, "feature_weights": self.feature_weights}
        values |= {name: word for name, word in words.items() if word is not None}
        return replace(base, **{"w_pos": None, **values})


@dataclass(frozen=True)
class Space:
    """The axes of one method."""

    method: MethodName
    axes: tuple[Axis, ...]

    def candidate(self, values: Iterable[float]) -> Candidate:
        """Return the candidate with these values, one for each axis."""
        names = [axis.name for axis in self.axes]
        return Candidate(self.method, tuple(zip(names, values, strict=True)))

    def largest(self, *, extended: bool) -> Candidate:
        """Return the candidate with the largest bags, with ranges as they are or fully extended."""
        bags = ("n_pos", "unl_per_pos")
        ends = [axis.ceiling if extended else axis.high for axis in self.axes]
        return self.candidate(
            end if axis.name in bags else axis.low
            for axis, end in zip(self.axes, ends, strict=True)
        )

    def grid(self) -> list[Candidate]:
        """Return all combinations, ordered so that candidates with the same kernel are adjacent."""
        points = [axis.points() for axis in self.axes]
        return [self.candidate(values) for values in itertools.product(*points)]

    def edges(self, candidate: Candidate) -> list[tuple[Axis, int]]:
        """Return the axes on whose edges a candidate lies, and the side of each edge."""
        values = dict(candidate.values)
        sides = [(axis, axis.edge(values[axis.name])) for axis in self.axes]
        return [(axis, side) for axis, side in sides if side]

    def replaced(self, axis: Axis) -> Space:
        axes = tuple(axis if old.name == axis.name else old for old in self.axes)
        return replace(self, axes=axes)


def axes_of(method: MethodName) -> tuple[str, ...]:
    own = {"resvm": ("n_pos", "unl_per_pos", "w_pos"), "bagging": ("unl_per_pos",)}
    return ("c_unl", "gamma", "degree", "coef0", *own.get(method, ("w_pos",)))


def default_space(
    method: MethodName,
    kernel: KernelName,
    n_positives: int,
    n_unlabeled: int,
    gamma_scale: float,
    given: Sequence[Axis] = (),
) -> Space:
    """Return the user's axes, and ranges derived from the data for all other parameters.

    ``n_positives`` and ``n_unlabeled`` are the smallest numbers of rows that candidates train on.
    """
    axes = {axis.name: axis for axis in given}
    unused = {"gamma", "degree", "coef0"} - {*Kernel(kernel).parameters}
    used = [name for name in axes_of(method) if name not in unused]
    for axis in given:
        if axis.name not in used:
            raise ParameterError(
                f"`{axis.name}` does not apply to `method={method!r}` with the {kernel} kernel"
            )
    chosen = []
    for default in _defaults(n_positives, n_unlabeled, gamma_scale, method == "bagging"):
        if default.name not in used:
            continue
        axis = axes.get(default.name, default).limited(default.floor, default.ceiling)
        if axis.low < axis.floor or axis.high > axis.ceiling:
            raise ParameterError(
                f"`{axis.name}` {axis} is not within {axis.floor:.4g}..{axis.ceiling:.4g},"
                " the widest range allowed"
            )
        chosen.append(axis)
    return Space(method, tuple(chosen))


def _defaults(
    n_positives: int, n_unlabeled: int, gamma_scale: float, all_of_p: bool
) -> tuple[Axis, ...]:
    """Return default ranges, which include the best values on the paper's data."""
    max_pos = float(n_positives)
    low_pos = min(max(3.0, float(n_positives // 15)), 100.0, max_pos)
    high_pos = max(low_pos, min(200.0, float(2 * n_positives // 3)))
    # small bags can have more rows of U per row of P
    high_ratio = min(20.0, n_unlabeled / (n_positives if all_of_p else high_pos))
    low_ratio = min(1.0, high_ratio)
    max_ratio = n_unlabeled / (n_positives if all_of_p else low_pos)
    return (
        Axis("gamma", gamma_scale * 0.03, gamma_scale * 30, True).limited(
            gamma_scale * 1e-6, gamma_scale * 1e6
        ),
        Axis("degree", 2.0, 4.0, False, (2.0, 3.0, 4.0)).limited(1.0, 10.0),
        Axis("coef0", 0.0, 1.0, False, (0.0, 1.0)).limited(-100.0, 100.0),
        Axis("n_pos", low_pos, high_pos, True).limited(1.0, max_pos),
        Axis("unl_per_pos", low_ratio, high_ratio, True).limited(low_ratio / 10, max_ratio),
        Axis("w_pos", 0.25, 16.0, True).limited(1e-4, 1e4),
        Axis("c_unl", 0.01, 1000.0, True).limited(1e-6, 1e6),
    )
