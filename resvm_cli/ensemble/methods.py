"""The three methods as three functions from parameters to problems; they differ nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from resvm_cli.ensemble.bags import Stream, solver_seed
from resvm_cli.errors import CommandLineError
from resvm_cli.svm.kernels import Kernel, KernelName
from resvm_cli.svm.problem import Problem, SolverName

MethodName: TypeAlias = Literal["resvm", "bagging", "cwsvm"]
# LIBSVM's time grows with the square of a bag; above this LIBLINEAR trains linear members.
LARGE_BAG = 5000
# The solvers' own defaults measure different things; LIBLINEAR's 0.1 is too loose to be compared.
DEFAULT_TOLERANCE: dict[SolverName, float] = {"libsvm": 1e-3, "liblinear": 1e-2}
METHOD_NAMES: tuple[MethodName, ...] = get_args(MethodName)


@dataclass(frozen=True)
class ResvmParams:
    """What the user asked for; None where the default is to be derived from the data."""

    method: MethodName = "resvm"
    kernel: KernelName = "rbf"
    gamma: float | Literal["scale", "auto"] = "scale"
    coef0: float = 0.0
    degree: int = 3
    c_unl: float = 1.0
    w_pos: float | None = None
    c_pos: float | None = None
    n_models: int | None = None
    n_pos: int | None = None
    n_unl: int | None = None
    solver: Literal["auto", "libsvm", "liblinear"] = "auto"
    bias: float | None = None
    tolerance: float | None = None
    cache_mb: float = 100.0
    seed: int = 0

    def check(self) -> None:
        """Refuse what cannot work or would be silently ignored, before any file is read."""
        for name, number in (
            ("--c-unl", self.c_unl),
            ("--c-pos", self.c_pos),
            ("--w-pos", self.w_pos),
            ("--tolerance", self.tolerance),
            ("--cache-mb", self.cache_mb),
            ("--bias", self.bias),
            ("--gamma", None if isinstance(self.gamma, str) else self.gamma),
        ):
            if number is not None and not (number > 0 and np.isfinite(number)):
                raise CommandLineError(f"{name} is {number:g}; it must be positive and finite")
        for name, count, most in (
            ("--n-models", self.n_models, 100_000),
            ("--n-pos", self.n_pos, 2**30),  # LIBSVM counts the rows of a bag in an int
            ("--n-unl", self.n_unl, 2**30),
            ("--degree", self.degree, 1000),
        ):
            if count is not None and not 1 <= count <= most:
                raise CommandLineError(
                    f"{name} is {count}; it must be at least 1 and at most {most:,}"
                )
        if not np.isfinite(self.coef0):
            raise CommandLineError(f"--coef0 is {self.coef0}; it must be finite")
        if self.solver == "liblinear" and self.kernel != "linear":
            raise CommandLineError(
                f"--solver liblinear trains linear members only, and the kernel is {self.kernel}",
                "add -t linear, or leave --solver out",
            )
        if self.bias is not None and (self.kernel != "linear" or self.solver == "libsvm"):
            raise CommandLineError(
                "-B/--bias is for LIBLINEAR, which penalises it; LIBSVM's is free",
                "leave -B out, or add -t linear --solver liblinear",
            )
        if self.seed < 0:
            raise CommandLineError(f"--seed is {self.seed}; it must not be negative")
        foreign: Sequence[tuple[str, Any, str]] = ()
        if self.method == "bagging":
            foreign = (
                ("--n-pos", self.n_pos, "bagging trains every member on all of P"),
                ("--w-pos", self.w_pos, "bagging fixes it at 1"),
                ("--c-pos", self.c_pos, "bagging derives it from --c-unl and the sizes"),
            )
        elif self.method == "cwsvm":
            one = "cwsvm is one model of all of P against all of U"
            foreign = (
                ("--n-models", self.n_models, one),
                ("--n-pos", self.n_pos, one),
                ("--n-unl", self.n_unl, one),
            )
        else:
            foreign = (("--c-pos", self.c_pos, "resvm derives it from --c-unl and --w-pos"),)
        for name, value, reason in foreign:
            if value is not None:
                raise CommandLineError(
                    f"{name} has no meaning for --method {self.method}: {reason}",
                    f"leave {name} out or choose another --method",
                )
        if self.c_pos is not None and self.w_pos is not None:
            raise CommandLineError("--c-pos and --w-pos exclude each other: give one of them")


@dataclass(frozen=True)
class Plan:
    """Everything settled: what will be trained, and what the manifest says was."""

    method: MethodName
    kernel: Kernel
    c_pos: float
    c_unl: float
    w_pos: float | None  # None where c_pos was given directly
    n_models: int
    n_pos: int
    n_unl: int
    solver: SolverName
    bias: float | None  # LIBLINEAR's; None for the mean row norm of each bag
    tolerance: float
    cache_mb: float
    seed: int
    rows_pos: int
    rows_unl: int

    @property
    def bag_size(self) -> int:
        return self.n_pos + self.n_unl

    def parameters(self) -> dict[str, Any]:
        """The parameters that shape the model, for the manifest and for people."""
        kept = asdict(self)
        for name in ("method", "kernel", "solver", "cache_mb", "seed", "rows_pos", "rows_unl"):
            del kept[name]
        if self.solver == "libsvm":
            del kept["bias"]
        return kept


def gamma_scale(n_features: int, variance: float) -> float:
    """The gamma called ``scale``: a variance of 0 counts as 1."""
    return 1.0 / (max(1, n_features) * (variance or 1.0))


def settle(
    params: ResvmParams,
    rows_pos: int,
    rows_unl: int,
    n_features: int,
    variance: Callable[[], float],
) -> Plan:
    """Derive from the data what the user left open."""
    gamma = params.gamma
    if params.kernel == "linear":
        gamma = 0.0
    elif gamma == "scale":
        gamma = gamma_scale(n_features, variance())
    elif gamma == "auto":
        gamma = 1.0 / max(1, n_features)
    kernel = Kernel(
        params.kernel,
        gamma=gamma,
        coef0=params.coef0 if params.kernel in ("poly", "sigmoid") else 0.0,
        degree=params.degree if params.kernel == "poly" else 3,
    )
    default_n_pos = min(200, max(5, rows_pos // 5))
    n_pos, n_unl = rows_pos, rows_unl
    if params.method == "resvm":
        n_pos = params.n_pos or default_n_pos
        n_unl = params.n_unl or 5 * n_pos
    elif params.method == "bagging":
        n_unl = params.n_unl or 5 * default_n_pos
    w_pos = None if params.c_pos is not None else (params.w_pos or 1.0)
    c_pos = params.c_pos or params.c_unl * (w_pos or 1.0) * n_unl / n_pos
    if not (np.isfinite(c_pos) and c_pos > 0):
        raise CommandLineError(
            f"the penalty of P comes out as {c_pos:g}; it must be positive and finite",
            "choose less extreme values of --c-unl, --w-pos and the bag sizes",
        )
    solver: SolverName = "libsvm"
    if params.solver == "liblinear" or (
        params.solver == "auto"
        and params.kernel == "linear"
        and (n_pos + n_unl > LARGE_BAG or params.bias is not None)
    ):
        solver = "liblinear"
    return Plan(
        method=params.method,
        kernel=kernel,
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
    )


Bag: TypeAlias = "tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]"


def problems(plan: Plan, members: range) -> Iterator[Problem]:
    """The problems of these members."""
    return (problem_on(bag_of(plan, member), plan, member) for member in members)


def problem_on(bag: Bag, plan: Plan, member: int) -> Problem:
    """The problem of a member whose bag is known."""
    return Problem(
        *bag,
        plan.c_pos,
        plan.c_unl,
        plan.kernel,
        plan.tolerance,
        plan.cache_mb,
        plan.solver,
        plan.bias,
        # LIBSVM draws nothing
        solver_seed(plan.seed, member) if plan.solver == "liblinear" else 0,
    )


def bag_of(plan: Plan, member: int) -> Bag:
    """Rows of P and of U: all that they depend on is in ``bag_key``."""
    return {"resvm": _resvm, "bagging": _bagging, "cwsvm": _cwsvm}[plan.method](plan, member)


def bag_key(plan: Plan) -> tuple[object, ...]:
    """Plans of one key have the same bags."""
    sizes = (plan.n_models, plan.n_pos, plan.n_unl, plan.rows_pos, plan.rows_unl)
    return (plan.method, plan.seed, *sizes)


def _resvm(plan: Plan, member: int) -> Bag:
    # paper, algorithm 1
    stream = Stream(plan.seed, member)
    positive = stream.draw(plan.rows_pos, plan.n_pos)
    return positive, stream.draw(plan.rows_unl, plan.n_unl)


def _bagging(plan: Plan, member: int) -> Bag:
    # paper, section 2.2
    return np.arange(plan.rows_pos), Stream(plan.seed, member).draw(plan.rows_unl, plan.n_unl)


def _cwsvm(plan: Plan, member: int) -> Bag:
    # paper, section 2.1
    del member
    return np.arange(plan.rows_pos), np.arange(plan.rows_unl)
