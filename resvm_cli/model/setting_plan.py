"""The plan of one setting: all parameters with defaults resolved, and the bags they imply.

The three methods differ only in their bags and penalties. A member's bag depends only on
(seed, member) and the sizes of the sets, so it is redrawn rather than stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, get_args

import numpy as np

from resvm_cli import randomness
from resvm_cli.errors import ParameterError
from resvm_cli.model.pu_data import PositiveWeights
from resvm_cli.parameters import (
    ALL_OF_P,
    MAX_BAG_ROWS,
    MAX_MEMBERS,
    METHOD_NAMES,
    NO_BIAS,
    ONE_MODEL,
    RELEVANCE,
    SCALING_NAMES,
    MethodName,
    MethodParameters,
    ScalingName,
    SolverName,
)
from resvm_cli.records import dataclass
from resvm_cli.rows import IntArray
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.problem import Problem

# LIBSVM's time is quadratic in the bag size; above this size LIBLINEAR trains linear members.
LARGE_BAG = 5000
# The solvers' default tolerances are not comparable; LIBLINEAR's 0.1 is too loose.
DEFAULT_TOLERANCE: dict[SolverName, float] = {"libsvm": 1e-3, "liblinear": 1e-2}
MAX_ROWS = 2**53
BAG_RULE = "pcg64-1"  # written to the manifest; a different way of drawing needs a new name
WEIGHTED_RULE = "pcg64-1-weighted"  # rows of P are drawn in proportion to their weights
# Default bag sizes; docs/quality.md compares them with alternatives.
DEFAULT_FRACTION = 1.0  # n_pos / |P|; rows are drawn with replacement
DEFAULT_RATIO = 2.0  # rows of U per row of P
DEFAULT_W_POS = 0.7
# Known negatives: their penalty relative to rows of U, and rows of U per known negative in a bag,
# chosen by studies/campaigns.py. More of them, or larger penalties, crowd out the rest of U.
DEFAULT_W_NEG = 1.0
UNL_PER_NEG = 3
MIN_N_POS, MAX_N_POS = 5, 200
MIN_BAGGED, MAX_BAGGED = 25, 1000  # rows of U per bag for the bagging method: |P|, clamped
_PARAMETERS = ("c_pos", "c_unl", "w_pos", "n_models", "n_pos", "n_unl", "tolerance")
_OF_NEGATIVES = ("n_neg", "w_neg", "c_neg")


@dataclass(frozen=True)
class Plan:
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
    cache_mb: float
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

    @property
    def bag_size(self) -> int:
        return self.n_pos + self.n_unl + self.n_neg

    @property
    def feature_weights(self) -> str:
        """The value of the parameter that results in these weights."""
        if self.relevance_power is None:
            return "none"
        return f"{RELEVANCE}:{float(self.relevance_power)!r}".removesuffix(".0")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that determine the model, for the manifest and reports."""
        *sizes, last = _PARAMETERS
        bias = ["bias"] if self.solver == "liblinear" else []
        power = [] if self.relevance_power is None else ["relevance_power"]
        negative = _OF_NEGATIVES if self.rows_neg else ()
        names = (*sizes, *bias, last, *power, *negative)
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_description(cls, content: dict[str, Any]) -> Plan:
        """Read from the manifest; raise ValueError if the content is invalid."""
        parameters, scaling = content["parameters"], content.get("scaling")
        rows_neg = content.get("data", {}).get("negative", {}).get("rows", 0)
        names = (*_PARAMETERS, *(_OF_NEGATIVES if rows_neg else ()))
        plan = cls(
            method=content["method"],
            kernel=Kernel.from_description(content["kernel"]),
            solver=content["solver"],
            bias=parameters.get("bias"),
            cache_mb=MethodParameters.cache_mb,
            seed=content["seed"],
            rows_pos=content["data"]["positive"]["rows"],
            rows_unl=content["data"]["unlabeled"]["rows"],
            positive_weights=PositiveWeights(np.zeros(0))
            if content.get("bags") == WEIGHTED_RULE
            else None,
            # format 2 describes one scaling for all members here; format 3 only names it
            scale=scaling["kind"] if isinstance(scaling, dict) else scaling,
            relevance_power=parameters.get("relevance_power"),
            rows_neg=rows_neg,
            **{name: parameters[name] for name in names},
        )
        plan._require_sense()
        return plan

    def _require_sense(self) -> None:
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
            self.method not in METHOD_NAMES
            or self.solver not in get_args(SolverName)
            or self.scale not in (None, *SCALING_NAMES)
            or not all(type(count) is int and 1 <= count <= most for count, most in whole)
            or not all(type(number) in (int, float) for number in real)
            or not all(number > 0 and np.isfinite(number) for number in real)
            or type(self.seed) is not int
            or self.seed < 0
        ):
            raise ValueError("plan")


def default_n_pos(rows_pos: int, fraction: float = DEFAULT_FRACTION) -> int:
    """Return a fraction of |P|, clamped: enough rows to learn from, but no more than are useful."""
    return min(MAX_N_POS, max(MIN_N_POS, int(rows_pos * fraction)))


def gamma_scale(n_features: int, variance: float) -> float:
    """Return the value of ``gamma="scale"``; a variance of 0 counts as 1."""
    return 1.0 / (max(1, n_features) * (variance or 1.0))


def _kernel(params: MethodParameters, n_features: int, variance: Callable[[], float]) -> Kernel:
    values = {name: getattr(params, name) for name in Kernel(params.kernel).parameters}
    if values.get("gamma") == "scale":
        values["gamma"] = gamma_scale(n_features, variance())
    elif values.get("gamma") == "auto":
        values["gamma"] = 1.0 / max(1, n_features)
    return Kernel(params.kernel, **values)


def _solver(params: MethodParameters, bag_size: int, *, with_negatives: bool) -> SolverName:
    if with_negatives and (params.solver == "liblinear" or params.bias is not None):
        raise ParameterError(
            "LIBLINEAR supports only one penalty for all rows that are not positive, but known"
            " negatives have their own",
            "leave {solver} and {bias} out",
        )
    if params.solver != "auto":
        return params.solver
    if with_negatives or params.kernel != "linear":
        return "libsvm"
    return "liblinear" if bag_size > LARGE_BAG or params.bias is not None else "libsvm"


def resolve_defaults(
    params: MethodParameters,
    rows_pos: int,
    rows_unl: int,
    n_features: int,
    variance: Callable[[], float],
    positive_weights: PositiveWeights | None = None,
    scale: ScalingName | None = None,
    rows_neg: int = 0,
) -> Plan:
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
            "the penalty for P must be positive and finite, but it is {value:g}",
            "choose less extreme values of {c_unl}, {w_pos} and the bag sizes",
            value=c_pos,
        )
    solver = _solver(params, n_pos + n_unl, with_negatives=rows_neg > 0)
    return Plan(
        method=params.method,
        kernel=_kernel(params, n_features, variance),
        c_pos=c_pos,
        c_unl=params.c_unl,
        w_pos=w_pos,
        n_models=1 if params.method == "cwsvm" else params.n_models or 50,
        n_pos=n_pos,
        n_unl=n_unl,
        solver=solver,
        bias=params.bias,
        tolerance=params.tolerance or DEFAULT_TOLERANCE[solver],
        cache_mb=params.cache_mb,
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
    )


def require_weighted_draws(method: MethodName) -> None:
    """Reject weights of P for methods that do not draw from P."""
    if method != "resvm":
        reason = ALL_OF_P if method == "bagging" else ONE_MODEL
        raise ParameterError(
            "{weights} does not apply to {method:" + method + "}: " + reason,
            "leave {weights} out, or use {method:resvm}, which draws rows of P",
        )


Bag: TypeAlias = tuple[IntArray, IntArray]


def problems(plan: Plan, members: range) -> Iterator[Problem]:
    return (problem_on(bag_of(plan, member), plan, member) for member in members)


def problem_on(bag: Bag, plan: Plan, member: int) -> Problem:
    """Return the training problem of a member with the given bag."""
    return Problem(
        *bag,
        plan.c_pos,
        plan.c_unl,
        plan.kernel,
        plan.tolerance,
        plan.cache_mb,
        plan.solver,
        plan.bias,
        # LIBSVM uses no random numbers
        randomness.solver_seed(plan.seed, member) if plan.solver == "liblinear" else 0,
        f"member {member} of seed {plan.seed}",
        plan.scale,
        plan.relevance_power,
        plan.n_neg,
        plan.c_neg,
    )


def bag_of(plan: Plan, member: int) -> Bag:
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


def bag_key(plan: Plan) -> tuple[object, ...]:
    """Return a key such that plans with equal keys have the same bags."""
    sizes = (plan.n_models, plan.n_pos, plan.n_unl, plan.n_neg)
    rows = (plan.rows_pos, plan.rows_unl, plan.rows_neg)
    return (plan.method, plan.seed, *sizes, *rows, plan.positive_weights)
