"""Out of bag: each row judged only by the members whose bags lack it, and its group.

Bags are redrawn from seeds, not stored. What is kept is which group was seen by which member, in
memory by the sample: U may have any number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.dataset import FloatArray, IntArray, Rows
from resvm_cli.ensemble.model import Decisions, Predictor
from resvm_cli.svm.problem import Problem

BoolArray: TypeAlias = npt.NDArray[np.bool_]


class Absences:
    """Which members' bags lack which rows; rows of P are numbered first, those of U after them.

    ``groups`` gives each row of P and U a group; a bag that holds a row has seen its whole group.
    """

    def __init__(
        self, problems: Iterable[Problem], n_positives: int, groups: IntArray | None = None
    ) -> None:
        self._groups = groups
        seen: list[IntArray] = []
        for problem in problems:
            bag = np.concatenate([problem.positive, problem.unlabeled + n_positives])
            seen.append(np.unique(bag if groups is None else groups[bag]))
        self.n_models = len(seen)
        members = np.repeat(np.arange(len(seen)), [len(groups) for groups in seen])
        all_seen = np.concatenate(seen) if seen else np.zeros(0, np.int64)
        order = np.argsort(all_seen, kind="stable")
        self._seen = all_seen[order]
        self._members = members[order]

    def absent(self, rows: IntArray) -> BoolArray:
        """rows x members: true where the member's bag lacks the row and its group."""
        asked = rows if self._groups is None else self._groups[rows]
        first = np.searchsorted(self._seen, asked, "left")
        counts = np.searchsorted(self._seen, asked, "right") - first
        result = np.ones((len(rows), self.n_models), bool)
        row = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        result[row, self._members[np.repeat(first, counts) + within]] = False
        return result


def decide_out_of_bag(member_values: FloatArray, absent: BoolArray) -> Decisions:
    """Votes and d over the members whose bags lack each row; nan where there are none.

    Sums are scaled from those members to all of them, so that rows compare.
    """
    n_models = member_values.shape[1]
    n_members = absent.sum(axis=1)
    balance = np.where(absent, np.sign(member_values), 0.0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        votes = (n_members + balance) / (2 * n_members)
        sums = np.where(absent, member_values, 0.0).sum(axis=1) * (n_models / n_members)
    values = np.where(votes <= 0, sums, np.where(votes >= 1, 1.0 + sums, votes))
    return Decisions(member_values, votes, sums, values, n_members)


def sampled_rows(n_rows: int, most: int, seed: int) -> IntArray:
    """At most so many row numbers, ascending, drawn without replacement from the seed alone."""
    if n_rows <= most:
        return np.arange(n_rows)
    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0, 2)))
    keys = bits.random_raw(n_rows)
    return np.sort(np.argsort(keys, kind="stable")[:most])


def judge_positives(
    predictor: Predictor, problems: Iterable[Problem], positives: Rows, numbers: IntArray
) -> tuple[IntArray, FloatArray, IntArray]:
    """Of these rows of P, those that some member's bag lacks: number, d out of bag, m(x)."""
    nothing = np.zeros(0, np.int64)
    absences = Absences(
        (replace(problem, unlabeled=nothing) for problem in problems), len(positives)
    )
    judged = predictor.decisions(positives.take(numbers))
    found = decide_out_of_bag(judged.member_values, absences.absent(numbers))
    kept = found.n_members > 0
    return numbers[kept], found.values[kept], found.n_members[kept]
