"""Conformal p-values of rows, from negatives that no member has seen.

A row of U is judged by the members that have not seen it. To the same members trusted negatives are
as new as the row: if it is a negative like them, its place among their values is any with equal
chance, whatever the members are. So the share of values at its own or above it, counting itself, is
a p-value without any assumption on the model (Vovk; Bates et al. 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resvm_cli.model.ensemble import Decisions, Group, cut, decision_values, mean_values
from resvm_cli.parameters import RuleName
from resvm_cli.rows import FloatArray
from resvm_cli.svm.pool import BLOCK_ROWS

ROUNDING = 1e-9  # values that differ by less are equal: sums are taken in another order


@dataclass(frozen=True, eq=False)
class TrustedNegatives:
    """What each member says of each negative: negatives x members."""

    member_values: FloatArray
    rule: RuleName
    groups: Sequence[Group]

    def p_values(self, own: FloatArray, absent: npt.NDArray[np.bool_]) -> FloatArray:
        """For rows of these values, judged by the members where ``absent``; nan without any."""
        result = np.full(len(own), np.nan)
        for start in range(0, len(own), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            admitted = np.zeros((BLOCK_ROWS, absent.shape[1]))  # one shape: BLAS rounds by it
            admitted[: len(own[part])] = absent[part]
            values = self._values(admitted)[: len(own[part])]
            least = own[part] - ROUNDING * (1 + np.abs(own[part]))
            above = (values >= least[:, None]).sum(axis=1)
            shares = (1 + above) / (1 + len(self.member_values))
            result[part] = np.where(absent[part].any(axis=1), shares, np.nan)
        return result

    def _values(self, admitted: FloatArray) -> FloatArray:
        """rows x negatives: what the members admitted to each row say of each negative."""
        counts = admitted.sum(axis=1, keepdims=True)
        sums = admitted @ self.member_values.T
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.rule == "votes":
                balance = admitted @ np.sign(self.member_values).T
                votes = (counts + balance) / (2 * counts)
                sums = sums * (admitted.shape[1] / counts)
                values = decision_values(votes, sums)
                return Decisions(
                    votes, sums, values, values, counts.astype(np.int64)
                ).values_without_ties()
            if len(self.groups) < 2:
                means: FloatArray = sums / counts
                return means
        parts = [cut(group) for group in self.groups]
        return mean_values(
            [admitted[:, part] @ self.member_values[:, part].T for part in parts],
            [admitted[:, part].sum(axis=1, keepdims=True) for part in parts],
            self.groups,
        )


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """For each p-value the least false discovery rate at which its row is listed; nan stays nan."""
    result = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    ratios = p_values[order] * len(order) / np.arange(1, len(order) + 1)
    result[order] = np.minimum(np.minimum.accumulate(ratios[::-1])[::-1], 1.0)
    return result
