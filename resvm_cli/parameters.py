"""The parameters of a method as the user gives them, and what cannot be asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from resvm_cli.errors import CommandLineError

MethodName: TypeAlias = Literal["resvm", "bagging", "cwsvm"]
METHOD_NAMES: tuple[MethodName, ...] = get_args(MethodName)
MOST_MEMBERS = 100_000
NO_BIAS = -1.0  # of LIBLINEAR, which says it so
MOST_BAG_ROWS = 2**30  # LIBSVM counts the rows of a bag in an int


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
        self._check_numbers()
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
        for name, value, reason in self._foreign():
            if value is not None:
                raise CommandLineError(
                    f"{name} has no meaning for --method {self.method}: {reason}",
                    f"leave {name} out or choose another --method",
                )
        if self.c_pos is not None and self.w_pos is not None:
            raise CommandLineError("--c-pos and --w-pos exclude each other: give one of them")

    def _check_numbers(self) -> None:
        for name, number in (
            ("--c-unl", self.c_unl),
            ("--c-pos", self.c_pos),
            ("--w-pos", self.w_pos),
            ("--tolerance", self.tolerance),
            ("--cache-mb", self.cache_mb),
            ("--bias", None if self.bias == NO_BIAS else self.bias),
            ("--gamma", None if isinstance(self.gamma, str) else self.gamma),
        ):
            if number is not None and not (number > 0 and np.isfinite(number)):
                raise CommandLineError(f"{name} is {number:g}; it must be positive and finite")
        for name, count, most in (
            ("--n-models", self.n_models, MOST_MEMBERS),
            ("--n-pos", self.n_pos, MOST_BAG_ROWS),
            ("--n-unl", self.n_unl, MOST_BAG_ROWS),
            ("--degree", self.degree, MOST_DEGREE),
        ):
            if count is not None and not 1 <= count <= most:
                raise CommandLineError(
                    f"{name} is {count}; it must be at least 1 and at most {most:,}"
                )
        if not np.isfinite(self.coef0):
            raise CommandLineError(f"--coef0 is {self.coef0}; it must be finite")
        if self.seed < 0:
            raise CommandLineError(f"--seed is {self.seed}; it must not be negative")

    def _foreign(self) -> Sequence[tuple[str, Any, str]]:
        """Options that mean nothing to this method, their values, and why."""
        if self.method == "bagging":
            return (
                ("--n-pos", self.n_pos, "bagging trains every member on all of P"),
                ("--w-pos", self.w_pos, "bagging fixes it at 1"),
                ("--c-pos", self.c_pos, "bagging derives it from --c-unl and the sizes"),
            )
        if self.method == "cwsvm":
            reason = "cwsvm is one model of all of P against all of U"
            return (
                ("--n-models", self.n_models, reason),
                ("--n-pos", self.n_pos, reason),
                ("--n-unl", self.n_unl, reason),
            )
        return (("--c-pos", self.c_pos, "resvm derives it from --c-unl and --w-pos"),)


@dataclass(frozen=True)
class Setting:
    """The parameters of some of a model's members, and the weight of their mean value."""

    params: ResvmParams
    weight: float = 1.0


KernelName: TypeAlias = Literal[
    "linear", "poly", "rbf", "sigmoid", "precomputed", "tanimoto", "minmax"
]

KERNEL_NAMES: tuple[KernelName, ...] = get_args(KernelName)

LIBSVM_KERNELS = KERNEL_NAMES[:5]  # in the order of LIBSVM's numbers

MOST_DEGREE = 1000
