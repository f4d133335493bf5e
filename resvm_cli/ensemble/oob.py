"""Out of bag: each row judged only by the members whose bags lack it, and its group.

Bags are redrawn from seeds, not stored. What is kept is which group was seen by which member, in
memory by the sample: U may have any number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.dataset import FloatArray, IntArray, Rows, distinct
from resvm_cli.ensemble.model import Decisions, Predictor
from resvm_cli.svm.problem import Problem

BoolArray: TypeAlias = npt.NDArray[np.bool_]


class Sightings:
    """Which member has seen which keys; keys are whole numbers, negative ones were never seen."""

    def __init__(self, seen: Sequence[IntArray]) -> None:
        self.n_models = len(seen)
        members = np.repeat(np.arange(len(seen)), [len(keys) for keys in seen])
        all_seen = np.concatenate(seen) if seen else np.zeros(0, np.int64)
        order = np.argsort(all_seen, kind="stable")
        self._seen = all_seen[order]
        self._members = members[order]

    def absent(self, keys: IntArray) -> BoolArray:
        """keys x members: true where the member has not seen the key."""
        first = np.searchsorted(self._seen, keys, "left")
        counts = np.searchsorted(self._seen, keys, "right") - first
        result = np.ones((len(keys), self.n_models), bool)
        row = np.repeat(np.arange(len(keys)), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        result[row, self._members[np.repeat(first, counts) + within]] = False
        return result


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
            seen.append(distinct(bag if groups is None else groups[bag]))
        self._sightings = Sightings(seen)

    @property
    def n_models(self) -> int:
        return self._sightings.n_models

    def absent(self, rows: IntArray) -> BoolArray:
        """rows x members: true where the member's bag lacks the row and its group."""
        return self._sightings.absent(rows if self._groups is None else self._groups[rows])


class ContentAbsences:
    """Which members' bags lack every row of some content: a duplicate tells as much as the row.

    Only what bags hold is remembered, so U may have any number of rows.
    """

    def __init__(
        self, problems: Iterable[Problem], positives: Rows, unlabeled: Rows, drawn: IntArray
    ) -> None:
        """``unlabeled`` holds the rows of U whose numbers are in ``drawn``."""
        self._number_of: dict[bytes, int] = {}
        of_pos, of_unl = (
            np.array([self._number_of.setdefault(key, len(self._number_of)) for key in keys])
            for keys in (_keys(positives), _keys(unlabeled))
        )
        seen = []
        for problem in problems:
            in_unl = of_unl[np.searchsorted(drawn, problem.unlabeled)]
            seen.append(distinct(np.concatenate([of_pos[problem.positive], in_unl])))
        self._sightings = Sightings(seen)

    def absent(self, rows: Rows) -> BoolArray:
        """rows x members: true where the member's bag lacks the row's content."""
        return self._sightings.absent(
            np.array([self._number_of.get(key, -1) for key in _keys(rows)], np.int64)
        )


def _keys(rows: Rows) -> list[bytes]:
    """Short digests of the rows' contents; written zeros make no difference."""
    keys = rows.without_zeros().content_keys()
    return [blake2b(key, digest_size=16).digest() for key in keys]


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
