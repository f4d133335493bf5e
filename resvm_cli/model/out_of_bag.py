"""Out of bag: each row is scored only by the members that have not seen it.

One rule for tuning, ranking, auditing and thresholds: a member has seen a row if its bag holds that
row, one of equal content (unless it has no features at all), or one of its group. Bags are redrawn
from seeds, not stored, and only their content is kept in memory: U may have any number of rows.
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
    decision_values,
    mean_values,
)
from resvm_cli.rows import BoolArray, FloatArray, IntArray, Rows, distinct
from resvm_cli.running import parallel
from resvm_cli.svm.problem import Problem
from resvm_cli.svm.support_vectors import BLOCK_ROWS

UNLIKE_ANY = -2  # the number of contents that no scored row has
POOL_CELLS_AT_ONCE = 1 << 24  # support vectors times features of members that score together


def decide_out_of_bag(
    member_values: FloatArray, unseen: BoolArray, groups: Sequence[Group] | None = None
) -> Decisions:
    """Votes and decision values over the members that have not seen each row; nan without any.

    Sums are scaled from those members to all of them, so that rows compare.
    """
    n_models = member_values.shape[1]
    n_members = unseen.sum(axis=1)
    balance = np.where(unseen, np.sign(member_values), 0.0).sum(axis=1)
    admitted = np.where(unseen, member_values, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        votes = (n_members + balance) / (2 * n_members)
        sums = admitted.sum(axis=1) * (n_models / n_members)
    means = sums / n_models
    if groups is not None and len(groups) > 1:
        means = mean_values(
            [admitted[:, group.columns].sum(axis=1) for group in groups],
            [unseen[:, group.columns].sum(axis=1) for group in groups],
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
        scored: Rows | None = None,
    ) -> None:
        """``unlabeled`` holds the rows of U whose numbers are in ``drawn``, or all of them.

        ``groups`` gives each row of P and U a group. Where only the rows in ``scored`` will be
        asked for, contents that none of them has share one number.
        """
        self.n_positives = len(positives)
        self.groups = groups
        self._drawn = drawn
        self._number_of: dict[bytes, int] = {}
        norms = None if scored is None else distinct(scored.squared_norms())
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
        """The contents of the rows of these numbers; -1 where no bag can hold that content."""
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

    Rows without features are distinguished by their numbers: nothing is known about them, and a
    few of them in every bag would leave none of them out of bag.
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

    def unseen(self, keys: IntArray) -> BoolArray:
        """keys x members: true where the member has not seen the key."""
        first = np.searchsorted(self._seen, keys, "left")
        counts = np.searchsorted(self._seen, keys, "right") - first
        result = np.ones((len(keys), self.n_models), bool)
        row = np.repeat(np.arange(len(keys)), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        result[row, self._members[np.repeat(first, counts) + within]] = False
        return result


class UnseenMask:
    """Which members have not seen which rows; P is numbered first, then U."""

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

    def unseen(self, numbers: IntArray, rows: Rows) -> BoolArray:
        """rows x members: true where the bag lacks the row, equal rows and its group."""
        return self._unseen(numbers, self._training_rows.contents(numbers, rows))

    def all_unseen(self) -> BoolArray:
        """The same for all rows of P, and for those of U that are among the training rows."""
        contents = self._training_rows.all_contents
        return self._unseen(np.arange(len(contents)), contents)

    def _unseen(self, numbers: IntArray, contents: IntArray) -> BoolArray:
        unseen = self._contents.unseen(contents)
        if self._groups is not None:
            assert self._training_rows.groups is not None
            unseen &= self._groups.unseen(self._training_rows.groups[numbers])
        return unseen


def stored_values(
    ensemble: Ensemble, rows: Rows, unseen: BoolArray, n_columns: int, workers: int = 1
) -> FloatArray:
    """members x rows: the value of each member on the rows it has not seen, else nan.

    No member's values depend on the other members, so that parts of an ensemble, scored elsewhere,
    join to the same bytes; and no row's on its neighbors, so that threads may share the rows.
    """
    result = np.full((len(ensemble.members), len(rows)), np.nan)
    pieces = [slice(at, min(at + BLOCK_ROWS, len(rows))) for at in range(0, len(rows), BLOCK_ROWS)]
    for first, last in _batches(ensemble, n_columns):
        predictor = Predictor.apart_from_others(ensemble.part(first, last), rows, n_columns)

        def fill(
            piece: slice, predictor: Predictor = predictor, members: slice = slice(first, last)
        ) -> None:
            values = predictor.member_values(rows.slice(piece.start, piece.stop)).T
            np.copyto(result[members, piece], values, where=unseen[piece, members].T)

        for _ in parallel.run(fill, pieces, workers):
            pass
    return result


def _batches(ensemble: Ensemble, n_columns: int) -> Iterator[tuple[int, int]]:
    """First and last members whose support vectors fit together."""
    most = max(1, POOL_CELLS_AT_ONCE // max(1, n_columns))
    first = size = 0
    for number, member in enumerate(ensemble.members):
        if size and size + len(member.support) > most:
            yield first, number
            first, size = number, 0
        size += len(member.support)
    yield first, len(ensemble.members)
