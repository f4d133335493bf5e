"""The plan of a model: its settings with all defaults resolved, and the bags that they imply.

The three methods differ only in their bags and penalties. Members are numbered consecutively across
settings. A member's bag is determined by the seed, the member's number and setting, the sizes of
the sets, and the weights of P. It is therefore redrawn rather than stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from resvm_cli import randomness
from resvm_cli.data.pudata import PositiveWeights, PUData
from resvm_cli.ensemble.ensemble import Section
from resvm_cli.errors import ParameterError
from resvm_cli.parameters import (
    ALL_OF_P,
    FEATURE_KERNELS,
    MAX_BAG_ROWS,
    MAX_MEMBERS,
    NO_BIAS,
    ONE_MODEL,
    RELEVANCE,
    SCALING_NAMES,
    MethodName,
    Params,
    RuleName,
    ScalingName,
    SolverName,
)
from resvm_cli.records import dataclass
from resvm_cli.rows import IntArray
from resvm_cli.svm.kernels import Kernel, Problem
from resvm_cli.threads import available_memory

# LIBSVM's training time is quadratic in the bag size, so LIBLINEAR trains linear members on bags
# larger than this.
LARGE_BAG = 5000
# The solvers' default tolerances are not comparable; LIBLINEAR's 0.1 is too loose.
DEFAULT_TOLERANCE: dict[SolverName, float] = {"libsvm": 1e-3, "liblinear": 1e-2}
MAX_ROWS = 2**53
# Bytes per row of a bag. Peak memory of linear training grew by 97 to 100 bytes per row of a bag
# between 10,000 rows and 1, 4 and 16 million. The row numbers of all members' bags are held while
# members are trained.
BAG_BYTES, HELD_BYTES = 97, 8
SMALL_BYTES = 2**28  # fits anywhere
BAG_RULE = "pcg64-1"  # written to the manifest; a different way of drawing needs a new name
WEIGHTED_RULE = "pcg64-1-weighted"  # rows of P are drawn in proportion to their weights
# Default bag sizes; docs/quality.md compares them with alternatives.
DEFAULT_FRACTION = 1.0  # n_pos / |P|; rows are drawn with replacement
DEFAULT_RATIO = 2.0  # rows of U per row of P
DEFAULT_W_POS = 0.7
# The penalty of known negatives relative to that of rows of U, and the number of rows of U per
# known negative in a bag, both chosen by experiments/quality/campaigns.py. More known negatives, or
# a larger penalty, would crowd out the rest of U.
DEFAULT_W_NEG = 1.0
UNL_PER_NEG = 3
MIN_N_POS, MAX_N_POS = 5, 200
MIN_BAGGED, MAX_BAGGED = 25, 1000  # rows of U per bag for the bagging method: |P|, clamped
_PARAMETERS = ("c_pos", "c_unl", "w_pos", "n_models", "n_pos", "n_unl", "tolerance")
_OF_NEGATIVES = ("n_neg", "w_neg", "c_neg")


@dataclass(frozen=True)
class SettingPlan:
    """One setting with all defaults resolved, as it is trained and written to the manifest."""

    method: MethodName
    kernel: Kernel
    c_pos: float
    c_unl: float
    w_pos: float | None  # None if c_pos was given directly
    n_models: int
    n_pos: int
    n_unl: int
    solver: SolverName
    bias: float | None  # for LIBLINEAR; NO_BIAS: no bias; None: the mean row norm of each bag
    tolerance: float
    seed: int
    rows_pos: int
    rows_unl: int
    positive_weights: PositiveWeights | None = None  # None: all rows of P are equally likely
    scale: ScalingName | None = None  # how its members' rows are scaled
    relevance_power: float | None = None  # None: features are not weighted
    rows_neg: int = 0  # known negatives
    n_neg: int = 0  # known negatives per bag
    w_neg: float | None = None  # None without known negatives
    c_neg: float = 0.0
    # whether our solver is never used; not in the manifest, because it changes no bit of a model
    by_libsvm: bool = False
    weight: float = 1.0  # of its members' mean value

    @property
    def bag_size(self) -> int:
        return self.n_pos + self.n_unl + self.n_neg

    @property
    def feature_weights(self) -> str:
        """The value of the ``feature_weights`` parameter for this plan."""
        if self.relevance_power is None:
            return "none"
        return f"{RELEVANCE}:{float(self.relevance_power)!r}".removesuffix(".0")

    @property
    def solver_parameter(self) -> SolverName | Literal["auto"]:
        """The ``solver`` parameter that gives this plan: auto, unless auto would differ."""
        is_large = self.n_pos + self.n_unl > LARGE_BAG and not self.rows_neg
        if self.solver == "libsvm" and not (self.kernel.name == "linear" and is_large):
            return "auto"
        return self.solver

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that determine the model, for the manifest and reports."""
        *sizes, last = _PARAMETERS
        bias = ["bias"] if self.solver == "liblinear" else []
        power = [] if self.relevance_power is None else ["relevance_power"]
        negative = _OF_NEGATIVES if self.rows_neg else ()
        names = (*sizes, *bias, last, *power, *negative)
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_description(cls, content: dict[str, Any]) -> SettingPlan:
        """Read from the manifest; raise ValueError, KeyError or TypeError if it is invalid."""
        parameters = content["parameters"]
        rows_neg = content.get("data", {}).get("negative", {}).get("rows", 0)
        names = (*_PARAMETERS, *(_OF_NEGATIVES if rows_neg else ()))
        plan = cls(
            method=content["method"],
            kernel=Kernel.from_description(content["kernel"]),
            solver=content["solver"],
            bias=parameters.get("bias"),
            seed=content["seed"],
            rows_pos=content["data"]["positive"]["rows"],
            rows_unl=content["data"]["unlabeled"]["rows"],
            positive_weights=PositiveWeights(np.zeros(0))
            if content.get("bags") == WEIGHTED_RULE
            else None,
            scale=content["scaling"],
            relevance_power=parameters.get("relevance_power"),
            rows_neg=rows_neg,
            **{name: parameters[name] for name in names},
        )
        plan._validate()
        return plan

    def _validate(self) -> None:
        """Raise ValueError if a value is impossible in a plan."""
        whole = (
            (self.n_models, MAX_MEMBERS),
            (self.n_pos, MAX_BAG_ROWS),
            (self.n_unl, MAX_BAG_ROWS),
            (self.rows_pos, MAX_ROWS),
            (self.rows_unl, MAX_ROWS),
            *([(self.rows_neg, MAX_ROWS), (self.n_neg, MAX_BAG_ROWS)] if self.rows_neg else []),
        )
        real = [self.c_pos, self.c_unl, self.tolerance]
        real += [self.c_neg] if self.rows_neg else []
        bias = None if self.bias == NO_BIAS else self.bias
        optional = (self.w_pos, bias, self.relevance_power, self.w_neg)
        real += [number for number in optional if number is not None]
        if (
            self.solver not in get_args(SolverName)
            or self.scale not in (None, *SCALING_NAMES)
            or not all(type(count) is int and 1 <= count <= most for count, most in whole)
            or not all(type(number) in (int, float) for number in real)
            or not all(number > 0 and np.isfinite(number) for number in real)
        ):
            raise ValueError("plan")


def default_n_pos(rows_pos: int, fraction: float = DEFAULT_FRACTION) -> int:
    """Return a fraction of |P|, clamped: enough rows to learn from, but no more than are useful."""
    return min(MAX_N_POS, max(MIN_N_POS, int(rows_pos * fraction)))


def gamma_scale(n_features: int, variance: float) -> float:
    """Return the value of ``gamma="scale"``; a variance of 0 counts as 1."""
    return 1.0 / (max(1, n_features) * (variance or 1.0))


def _solver(params: Params, bag_size: int, *, with_negatives: bool) -> SolverName:
    if with_negatives and (params.solver != "auto" or params.bias is not None):
        name = "LIBSVM" if params.solver == "libsvm" else "LIBLINEAR"
        raise ParameterError(
            f"{name} supports only one penalty for all rows that are not positive, but known"
            " negatives have their own",
            "leave `solver` and `bias` out",
        )
    if params.solver != "auto":
        return params.solver
    if with_negatives or params.kernel != "linear":
        return "libsvm"
    return "liblinear" if bag_size > LARGE_BAG or params.bias is not None else "libsvm"


def resolve_defaults(
    params: Params,
    rows_pos: int,
    rows_unl: int,
    n_features: int,
    variance: Callable[[], float],
    positive_weights: PositiveWeights | None = None,
    scale: ScalingName | None = None,
    rows_neg: int = 0,
) -> SettingPlan:
    """Derive from the data all parameters that are not set."""
    if positive_weights is not None:
        require_weighted_draws(params.method)
    n_pos, n_unl = rows_pos, rows_unl
    if params.method == "resvm":
        n_pos = params.n_pos or default_n_pos(rows_pos)
        # at least half of U stays out of each bag
        n_unl = params.n_unl or max(1, min(int(DEFAULT_RATIO * n_pos), rows_unl // 2))
    elif params.method == "bagging":
        n_unl = params.n_unl or min(MAX_BAGGED, max(MIN_BAGGED, rows_pos))
    n_neg = min(rows_neg, max(1, n_unl // UNL_PER_NEG))
    if params.method == "cwsvm":
        n_neg = rows_neg
    w_neg = (params.w_neg or DEFAULT_W_NEG) if rows_neg else None
    c_neg = params.c_unl * (w_neg or 0.0)
    usual = DEFAULT_W_POS if params.method == "resvm" else 1.0
    w_pos = None if params.c_pos is not None else (params.w_pos or usual)
    c_pos = params.c_pos or params.c_unl * (w_pos or 1.0) * n_unl / n_pos
    if n_neg and w_pos is not None:  # P must balance known negatives as well
        c_pos += w_pos * c_neg * n_neg / n_pos
    if not (np.isfinite(c_pos) and c_pos > 0):
        raise ParameterError(
            f"the penalty for P must be positive and finite, but it is {c_pos:g}",
            "choose less extreme values of `c_unl`, `w_pos` and the bag sizes",
        )
    require_memory(n_pos + n_unl + n_neg)
    values = {name: getattr(params, name) for name in Kernel(params.kernel).parameters}
    if values.get("gamma") == "scale":
        values["gamma"] = gamma_scale(n_features, variance())
    elif values.get("gamma") == "auto":
        values["gamma"] = 1.0 / max(1, n_features)
    solver = _solver(params, n_pos + n_unl, with_negatives=rows_neg > 0)
    return SettingPlan(
        method=params.method,
        kernel=Kernel(params.kernel, **values),
        c_pos=c_pos,
        c_unl=params.c_unl,
        w_pos=w_pos,
        n_models=1 if params.method == "cwsvm" else params.n_models or 50,
        n_pos=n_pos,
        n_unl=n_unl,
        solver=solver,
        bias=params.bias,
        tolerance=params.tolerance or DEFAULT_TOLERANCE[solver],
        seed=params.seed,
        rows_pos=rows_pos,
        rows_unl=rows_unl,
        positive_weights=positive_weights,
        scale=scale,
        relevance_power=params.relevance_power,
        rows_neg=rows_neg,
        n_neg=n_neg,
        w_neg=w_neg,
        c_neg=c_neg,
        by_libsvm=params.solver == "libsvm",
        weight=params.weight,
    )


def require_memory(bag_size: int, rows_held: int = 0) -> None:
    """Raise ParameterError for bags that cannot be drawn with the memory at hand."""
    needed = BAG_BYTES * bag_size + HELD_BYTES * rows_held
    if needed > SMALL_BYTES and needed > (left := available_memory()):
        bags = (
            f"bags of {bag_size:,} rows take" if rows_held else f"a bag of {bag_size:,} rows takes"
        )
        raise ParameterError(
            f"{bags} at least {needed / 1e9:,.0f} GB of memory, but {left / 1e9:,.1f} GB are left",
            f"choose a smaller `n_pos` or `n_unl`{', or fewer `n_models`' if rows_held else ''}",
        )


def require_weighted_draws(method: MethodName) -> None:
    """Reject weights of P for methods that do not draw from P."""
    if method != "resvm":
        reason = ALL_OF_P if method == "bagging" else ONE_MODEL
        raise ParameterError(
            f"`weights` does not apply to `method={method!r}`: {reason}",
            "leave `weights` out, or use `method='resvm'`, which draws rows of P",
        )


Bag: TypeAlias = tuple[IntArray, IntArray]


def problem_on(bag: Bag, plan: SettingPlan, member: int) -> Problem:
    """Return the training problem of a member with the given bag."""
    return Problem(
        *bag,
        c_pos=plan.c_pos,
        c_unl=plan.c_unl,
        c_neg=plan.c_neg,
        n_negative=plan.n_neg,
        kernel=plan.kernel,
        tolerance=plan.tolerance,
        solver=plan.solver,
        by_libsvm=plan.by_libsvm,
        bias=plan.bias,
        # LIBSVM uses no random numbers
        seed=randomness.solver_seed(plan.seed, member) if plan.solver == "liblinear" else 0,
        name=f"member {member} of seed {plan.seed}",
        scale=plan.scale,
        relevance_power=plan.relevance_power,
    )


def bag_of(plan: SettingPlan, member: int) -> Bag:
    """Draw a member's rows of P and U, which depend only on ``bag_key`` and the member.

    Known negatives follow the drawn rows of U, and are numbered after all rows of U.
    """
    if plan.method == "cwsvm":  # paper, section 2.1
        return np.arange(plan.rows_pos), np.arange(plan.rows_unl + plan.rows_neg)
    bits = randomness.bag_bits(plan.seed, member)
    if plan.method == "bagging":  # paper, section 2.2
        positive = np.arange(plan.rows_pos)
    elif plan.positive_weights is None:  # paper, algorithm 1
        positive = randomness.below(bits, plan.rows_pos, plan.n_pos)
    else:
        assert len(plan.positive_weights.values) == plan.rows_pos
        positive = plan.positive_weights.chosen(randomness.fractions(bits, plan.n_pos))
    unlabeled = randomness.below(bits, plan.rows_unl, plan.n_unl)
    if plan.n_neg:
        bits = randomness.bag_bits(plan.seed, member, randomness.NEGATIVES)
        drawn = randomness.below(bits, plan.rows_neg, plan.n_neg)
        unlabeled = np.concatenate([unlabeled, plan.rows_unl + drawn])
    return positive, unlabeled


def bag_key(plan: SettingPlan) -> tuple[object, ...]:
    """Return a key such that plans with equal keys have the same bags."""
    sizes = (plan.n_models, plan.n_pos, plan.n_unl, plan.n_neg)
    rows = (plan.rows_pos, plan.rows_unl, plan.rows_neg)
    return (plan.method, plan.seed, *sizes, *rows, plan.positive_weights)


def require_negatives(params: Params, data: PUData) -> None:
    """Reject a weight for known negatives if there are none."""
    if params.w_neg is not None and not len(data.negatives):
        raise ParameterError("`w_neg` applies to known negatives, but there are none")


@dataclass(frozen=True)
class Plan:
    """What will be trained: settings with the same method, seed and data, and a decision rule."""

    settings: tuple[SettingPlan, ...]
    rule: RuleName = "votes"
    candidates: tuple[dict[str, Any], ...] = ()  # what a search scored to find the settings

    @classmethod
    def resolve(cls, params: Params, data: PUData) -> Plan:
        """Derive from the data all parameters that are not set."""
        settings = []
        for setting in params.settings or (replace(params, scale=None),):
            require_negatives(setting, data)
            scale: Any = setting.scale or data.scale
            settings.append(
                resolve_defaults(
                    setting,
                    len(data.positives),
                    data.n_unlabeled,
                    data.n_features,
                    partial(data.variance, scale),
                    data.positive_weights,
                    scale,
                    len(data.negatives),
                )
            )
        return cls(tuple(settings), params.rule, params.candidates)

    def with_weights(self, positive_weights: PositiveWeights | None) -> Plan:
        """Return the plan with these weights of P; a manifest stores only their digest."""
        plans = (replace(plan, positive_weights=positive_weights) for plan in self.settings)
        return replace(self, settings=tuple(plans))

    @property
    def method(self) -> MethodName:
        return self.settings[0].method

    @property
    def seed(self) -> int:
        return self.settings[0].seed

    @property
    def rows_pos(self) -> int:
        return self.settings[0].rows_pos

    @property
    def rows_unl(self) -> int:
        return self.settings[0].rows_unl

    @property
    def rows_neg(self) -> int:
        return self.settings[0].rows_neg

    @property
    def scalings(self) -> tuple[ScalingName | None, ...]:
        """The distinct scalings of its members' rows."""
        return tuple(dict.fromkeys(plan.scale for plan in self.settings))

    @property
    def kernel_names(self) -> str:
        *others, last = dict.fromkeys(plan.kernel.name for plan in self.settings)
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def single(self) -> bool:
        return self.method == "cwsvm"

    @property
    def n_models(self) -> int:
        return sum(plan.n_models for plan in self.settings)

    def runs(self, members: range | None = None) -> Iterator[tuple[SettingPlan, range]]:
        """Yield each setting with its members, or with those among ``members``, if any."""
        first = 0
        for plan in self.settings:
            last = first + plan.n_models
            run = range(first, last)
            if members is not None:
                run = range(max(first, members.start), min(last, members.stop))
            if run:
                yield plan, run
            first = last

    def require_memory(self, batches: Sequence[range]) -> None:
        """Raise ParameterError if the bags of these members cannot be held at once."""
        runs = [(plan.bag_size, len(run)) for each in batches for plan, run in self.runs(each)]
        require_memory(max(size for size, _ in runs), sum(size * count for size, count in runs))

    def problems(self, members: range) -> list[Problem]:
        self.require_memory([members])
        return [
            problem_on(bag_of(plan, member), plan, member)
            for plan, run in self.runs(members)
            for member in run
        ]

    def sections(self, members: range | None = None) -> tuple[Section, ...]:
        """The members of each setting, or only these ones, numbered from 0; not standardized."""
        start = 0 if members is None else members.start
        return tuple(
            Section(
                plan.kernel,
                range(run.start - start, run.stop - start),
                plan.weight,
                scaling=plan.scale,
            )
            for plan, run in self.runs(members)
        )

    def description(self, sections: Sequence[Section]) -> dict[str, Any]:
        """Describe everything that members depend on, except the data, for the manifest."""
        settings = []
        for plan, section in zip(self.settings, sections, strict=True):
            settings.append(
                {
                    "members": plan.n_models,
                    "weight": section.weight,
                    "shift": section.shift,
                    "scale": section.spread,
                    "kernel": plan.kernel.description(),
                    "parameters": plan.parameters(),
                    "solver": plan.solver,
                    "scaling": plan.scale,
                }
            )
        weighted = self.settings[0].positive_weights is not None
        rule = WEIGHTED_RULE if weighted else BAG_RULE
        found = {"method": self.method, "seed": self.seed, "bags": rule, "groups": settings}
        return {**found, "candidates": list(self.candidates)} if self.candidates else found

    @classmethod
    def from_description(
        cls, content: dict[str, Any], rule: RuleName = "votes"
    ) -> tuple[Plan, tuple[Section, ...]]:
        """Read from the manifest; raise ValueError, KeyError or TypeError if it is invalid."""
        plans, sections = [], []
        first = 0
        for setting in content["groups"]:
            plan = SettingPlan.from_description({**content, **setting})
            if plan.n_models != setting["members"]:
                raise ValueError("members")
            weight, shift, spread = (float(setting[name]) for name in ("weight", "shift", "scale"))
            if not (np.isfinite([weight, shift, spread]).all() and weight > 0 and spread > 0):
                raise ValueError("group")
            run = range(first, first + plan.n_models)
            sections.append(Section(plan.kernel, run, weight, shift, spread, plan.scale))
            plans.append(replace(plan, weight=weight))
            first = run.stop
        kernels = {plan.kernel.name for plan in plans}
        mixed = len(kernels) > 1 and bool(kernels - set(FEATURE_KERNELS))
        if not plans or mixed or first > MAX_MEMBERS:
            raise ValueError("groups")
        if plans[0].method == "cwsvm" and first != 1:
            raise ValueError("cwsvm has one member")
        return cls(tuple(plans), rule, tuple(content.get("candidates", ()))), tuple(sections)
