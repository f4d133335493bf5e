"""Out of bag: each row judged only by the members that have not seen it.

One rule for tuning, ranking, auditing and thresholds: a member has seen a row if its bag holds that
row, one of equal content (unless it has no features at all), or one of its group. Bags are redrawn
from seeds, not stored, and only what they hold is remembered: U may have any number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np

from resvm_cli.model.ensemble import (
    Decisions,
    Ensemble,
    Group,
    Predictor,
    cut,
    decision_values,
    mean_values,
)
from resvm_cli.rows import BoolArray, FloatArray, IntArray, Rows, distinct
from resvm_cli.running import parallel
from resvm_cli.svm.pool import BLOCK_ROWS
from resvm_cli.svm.problem import Problem

UNLIKE_ANY = -2  # number of the content of rows that no judged row is like
POOL_CELLS_AT_ONCE = 1 << 24  # support rows times features of members judged together


def decide_out_of_bag(
    member_values: FloatArray, absent: BoolArray, groups: Sequence[Group] | None = None
) -> Decisions:
    """Votes and decision values over the members that have not seen each row; nan without any.

    Sums are scaled from those members to all of them, so that rows compare.
    """
    n_models = member_values.shape[1]
    n_members = absent.sum(axis=1)
    balance = np.where(absent, np.sign(member_values), 0.0).sum(axis=1)
    admitted = np.where(absent, member_values, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        votes = (n_members + balance) / (2 * n_members)
        sums = admitted.sum(axis=1) * (n_models / n_members)
    means = sums / n_models
    if groups is not None and len(groups) > 1:
        means = mean_values(
            [admitted[:, cut(group)].sum(axis=1) for group in groups],
            [absent[:, cut(group)].sum(axis=1) for group in groups],
            groups,
        )
    return Decisions(votes, sums, decision_values(votes, sums), means, n_members)


class TrainingRows:
    """The rows that bags may hold, numbered so that rows of equal content have one number."""

    def __init__(
        self,
        positives: Rows,
        unlabeled: Rows,
        drawn: IntArray | None = None,
        groups: IntArray | None = None,
        judged: Rows | None = None,
    ) -> None:
        """``unlabeled`` holds the rows of U whose numbers are in ``drawn``, or all of them.

        ``groups`` gives each row of P and U a group. Where only the rows in ``judged`` will be
        asked for, the contents of rows unlike them need not be told apart.
        """
        self.n_positives = len(positives)
        self.groups = groups
        self._drawn = drawn
        self._number_of: dict[bytes, int] = {}
        norms = None if judged is None else distinct(judged.squared_norms())
        self._positive = self._numbered(positives, np.arange(len(positives)), norms)
        numbers = np.arange(len(unlabeled)) if drawn is None else drawn
        self._unlabeled = self._numbered(unlabeled, len(positives) + numbers, norms)

    def _numbered(self, rows: Rows, numbers: IntArray, norms: FloatArray | None) -> IntArray:
        alike = np.arange(len(rows))
        if norms is not None:
            own = rows.squared_norms()
            first = np.searchsorted(norms, own, "left")
            alike = np.flatnonzero(first < np.searchsorted(norms, own, "right"))
        contents = np.full(len(rows), UNLIKE_ANY)
        contents[alike] = [
            self._number_of.setdefault(key, len(self._number_of))
            for key in _keys(rows.take(alike), numbers[alike])
        ]
        return contents

    @property
    def all_contents(self) -> IntArray:
        """The numbers of all rows of P and of those of U that are known here."""
        return np.concatenate([self._positive, self._unlabeled])

    def contents(self, numbers: IntArray, rows: Rows) -> IntArray:
        """The contents of the rows of these numbers; -1 where no bag can hold the like."""
        return np.array([self._number_of.get(key, -1) for key in _keys(rows, numbers)], np.int64)

    def bag_contents(self, problem: Problem) -> IntArray:
        places = problem.unlabeled
        if self._drawn is not None:
            places = np.searchsorted(self._drawn, places)
        return distinct(np.concatenate([self._positive[problem.positive], self._unlabeled[places]]))

    def bag_groups(self, problem: Problem) -> IntArray:
        assert self.groups is not None
        bag = np.concatenate([problem.positive, problem.unlabeled + self.n_positives])
        return distinct(self.groups[bag])


def _keys(rows: Rows, numbers: IntArray) -> list[bytes]:
    """Short digests of the rows' contents; written zeros make no difference.

    Rows without features are told apart by their numbers: they have nothing in common but that
    nothing is known of them, and a few of them in every bag would leave all without a judge.
    """
    keys = rows.without_zeros().content_keys()
    return [
        blake2b(key, digest_size=16).digest() if key else b"row %d" % number
        for key, number in zip(keys, numbers.tolist(), strict=True)
    ]


class _Sightings:
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
    """Which members have not seen which rows; rows of P are numbered first, then those of U."""

    def __init__(self, problems: Iterable[Problem], training_rows: TrainingRows) -> None:
        self._training_rows = training_rows
        problems = list(problems)
        self._contents = _Sightings([training_rows.bag_contents(problem) for problem in problems])
        self._groups: _Sightings | None = None
        if training_rows.groups is not None:
            self._groups = _Sightings([training_rows.bag_groups(problem) for problem in problems])

    @property
    def n_models(self) -> int:
        return self._contents.n_models

    def absent(self, numbers: IntArray, rows: Rows) -> BoolArray:
        """rows x members: true where the bag lacks the row, its like and its group."""
        return self._absent(numbers, self._training_rows.contents(numbers, rows))

    def all_absent(self) -> BoolArray:
        """The same of all rows of P, and of those of U that are known to the training rows."""
        contents = self._training_rows.all_contents
        return self._absent(np.arange(len(contents)), contents)

    def _absent(self, numbers: IntArray, contents: IntArray) -> BoolArray:
        absent = self._contents.absent(contents)
        if self._groups is not None:
            assert self._training_rows.groups is not None
            absent &= self._groups.absent(self._training_rows.groups[numbers])
        return absent


def stored_values(
    ensemble: Ensemble, rows: Rows, absent: BoolArray, n_columns: int, workers: int = 1
) -> FloatArray:
    """members x rows: what each member says of the rows it has not seen, nan of the others.

    No member's values depend on which others there are, so that parts of an ensemble, judged
    elsewhere, join to the same bytes; and none of a row on its neighbours, so that threads may each
    take some.
    """
    result = np.full((len(ensemble.members), len(rows)), np.nan)
    pieces = [slice(at, min(at + BLOCK_ROWS, len(rows))) for at in range(0, len(rows), BLOCK_ROWS)]
    for first, last in _batches(ensemble, n_columns):
        judge = Predictor.apart_from_others(ensemble.part(first, last), rows, n_columns)

        def fill(
            piece: slice, judge: Predictor = judge, members: slice = slice(first, last)
        ) -> None:
            values = judge.member_values(rows.slice(piece.start, piece.stop)).T
            np.copyto(result[members, piece], values, where=absent[piece, members].T)

        for _ in parallel.run(fill, pieces, workers):
            pass
    return result


def _batches(ensemble: Ensemble, n_columns: int) -> Iterator[tuple[int, int]]:
    """Members from and to, as many as have room for their support rows."""
    most = max(1, POOL_CELLS_AT_ONCE // max(1, n_columns))
    first = size = 0
    for number, member in enumerate(ensemble.members):
        if size and size + len(member.support) > most:
            yield first, number
            first, size = number, 0
        size += len(member.support)
    yield first, len(ensemble.members)
