"""LIBSVM's kernels and two for fingerprints, over blocks of products.

LIBSVM's have its formulas and parameter names. The similarity of Tanimoto, x.y / (|x|^2 + |y|^2 -
x.y), is the share of bits that two sets of them have in common; minmax is the same for counts, with
the smaller of two counts in place of their product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.parameters import KERNEL_NAMES, LIBSVM_KERNELS, MAX_DEGREE, KernelName
from resvm_cli.rows import FloatArray, Rows
from resvm_cli.svm import _blocks

# Squared distances from norms and a dot product lose about this many units of the norms' last bit.
CANCELLATION = 16 * np.finfo(np.float64).eps
EXPONENT_TOLERANCE = 1e-10
UNDERFLOW = -746.0  # exp of less than this is 0
DENSE_CHUNK = 1 << 22


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters; those it does not use stay at LIBSVM's defaults."""

    name: KernelName
    gamma: float = 0.0
    coef0: float = 0.0
    degree: int = 3

    @property
    def number(self) -> int:
        return LIBSVM_KERNELS.index(self.name)

    @property
    def known_to_libsvm(self) -> bool:
        return self.name in LIBSVM_KERNELS

    @property
    def compares_fingerprints(self) -> bool:
        """Whether rows are bits or counts, which scaling would turn into something else."""
        return not self.known_to_libsvm

    @property
    def looks_up(self) -> bool:
        """Whether its values are given, and rows have no features."""
        return self.name == "precomputed"

    @property
    def takes_scaling(self) -> bool:
        return not (self.compares_fingerprints or self.looks_up)

    @property
    def counts_smaller(self) -> bool:
        """Whether the smaller of two numbers stands for their product."""
        return self.name == "minmax"

    @property
    def uses_gamma(self) -> bool:
        return self.name in ("poly", "rbf", "sigmoid")

    @property
    def uses_coef0(self) -> bool:
        return self.name in ("poly", "sigmoid")

    @property
    def uses_degree(self) -> bool:
        return self.name == "poly"

    def description(self) -> dict[str, Any]:
        """For the manifest: the name, and the parameters that it uses."""
        content: dict[str, Any] = {"name": self.name}
        if self.uses_gamma:
            content["gamma"] = self.gamma
        if self.uses_coef0:
            content["coef0"] = self.coef0
        if self.uses_degree:
            content["degree"] = self.degree
        return content

    @classmethod
    def from_description(cls, content: dict[str, Any]) -> Kernel:
        """From the manifest; ValueError where it makes no sense."""
        kernel = cls(
            content["name"],
            gamma=float(content.get("gamma", 0.0)),
            coef0=float(content.get("coef0", 0.0)),
            degree=content.get("degree", 3),
        )
        if (
            kernel.name not in KERNEL_NAMES
            or kernel.description() != content
            or not (np.isfinite(kernel.gamma) and np.isfinite(kernel.coef0))
            or kernel.gamma < 0
            or type(kernel.degree) is not int
            or not 1 <= kernel.degree <= MAX_DEGREE
        ):
            raise ValueError("kernel")
        return kernel

    def norms(self, rows: Rows) -> FloatArray:
        """The product of each row with itself."""
        if not self.counts_smaller:
            return rows.squared_norms()
        if len(rows.values) and rows.values.min() < 0:
            place = int(rows.values.argmin())
            raise DataError(
                f"feature {rows.indices[place]} is {rows.values[place]:g} in some row;"
                " the minmax kernel compares counts, which are never negative",
                "leave out --scale, or choose another kernel",
            )
        return np.bincount(rows.row_numbers, rows.values, len(rows)).astype(float)

    def values(self, dots: FloatArray, norms: FloatArray, pool_norms: FloatArray) -> FloatArray:
        """Kernel values of a block (rows x pool) from its products, which are overwritten."""
        if self.name == "linear" or self.looks_up:
            return dots
        if not self.known_to_libsvm:
            _blocks.shares(dots, pool_norms, norms)
            return dots
        if self.name == "rbf":
            return powers(self.exponents(dots, norms, pool_norms))
        dots *= self.gamma
        dots += self.coef0
        if self.name == "sigmoid":
            return np.tanh(dots, out=dots)
        return _integer_power(dots, self.degree)

    def exponents(self, dots: FloatArray, norms: FloatArray, pool_norms: FloatArray) -> FloatArray:
        """rbf: minus gamma times the squared distances, in place of the dot products."""
        _blocks.exponents(dots, pool_norms, norms, self.gamma)
        return dots

    def exponent_errors(self, norms: Any, pool_norms: Any) -> Any:
        """rbf: how far off exponents may be, having come from norms."""
        return self.gamma * CANCELLATION * (norms + pool_norms)


def powers(exponents: FloatArray) -> FloatArray:
    """e^x in place of each x <= 0: numpy's, unless this build has its own, which is then faster."""
    if not _blocks.OWN_POWERS:
        return np.exp(exponents, out=exponents)
    _blocks.powers(exponents)
    return exponents


def _integer_power(base: FloatArray, exponent: int) -> FloatArray:
    """Repeated squaring, as LIBSVM does it."""
    result = np.ones_like(base)
    square = base
    while exponent > 0:
        if exponent % 2:
            result *= square
        exponent //= 2
        if exponent:
            square = square * square
    return result


def squared_distances(row: Rows, pool: Rows, width: int) -> FloatArray:
    """Distances of one row to each row of a pool, from differences: slow, and exact to rounding."""
    dense = np.zeros(width)
    dense[row.indices] = row.values
    distances = np.empty(len(pool))
    step = max(1, DENSE_CHUNK // max(1, width))
    for start in range(0, len(pool), step):
        part = pool.slice(start, min(start + step, len(pool)))
        difference = np.tile(dense, (len(part), 1))
        difference[part.row_numbers, part.indices] -= part.values
        distances[start : start + len(part)] = np.einsum("ij,ij->i", difference, difference)
    return distances
