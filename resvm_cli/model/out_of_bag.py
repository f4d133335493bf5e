"""Out of bag: each row judged only by the members that have not seen it.

One rule for tuning, ranking, auditing and thresholds: a member has seen a row if its bag holds that
row, one of equal content (unless it has no features at all), or one of its group. Bags are redrawn
from seeds, not stored, and only what they hold is remembered: U may have any number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message
from resvm_cli.model.ensemble import (
    Decisions,
    Ensemble,
    Group,
    Predictor,
    cut,
    decision_values,
    mean_values,
)
from resvm_cli.model.rank_intervals import MemberResamples, SingleArray
from resvm_cli.model.trusted_negatives import TrustedNegatives
from resvm_cli.parameters import RuleName
from resvm_cli.rows import FloatArray, IntArray, Rows, distinct
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm.pool import BLOCK_ROWS
from resvm_cli.svm.problem import Problem

BoolArray: TypeAlias = npt.NDArray[np.bool_]

UNLIKE_ANY = -2  # number of the content of rows that no judged row is like
CELLS_AT_ONCE = 1 << 21  # rows times members of one task
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


@dataclass(frozen=True, eq=False)
class OutOfBagValues:
    """What is said of each row of a set; nan where every member has seen it."""

    values: FloatArray  # by the judge's rule
    votes: FloatArray
    n_members: IntArray
    resampled: SingleArray | None  # resamples x rows
    p_values: FloatArray | None = None  # where there are trusted negatives

    @property
    def judged(self) -> BoolArray:
        return self.n_members > 0

    @property
    def n_unjudged(self) -> int:
        return int((self.n_members == 0).sum())

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def joined(cls, first: OutOfBagValues, second: OutOfBagValues) -> OutOfBagValues:
        resampled = None
        if first.resampled is not None and second.resampled is not None:
            resampled = np.concatenate([first.resampled, second.resampled], axis=1)
        return cls(
            np.concatenate([first.values, second.values]),
            np.concatenate([first.votes, second.votes]),
            np.concatenate([first.n_members, second.n_members]),
            resampled,
        )


@dataclass(frozen=True, eq=False)
class _JudgedBlock:
    decisions: Decisions
    values: FloatArray
    resampled: SingleArray | None
    p_values: FloatArray | None


@dataclass(frozen=True, eq=False)
class OutOfBagJudge:
    """An ensemble with what its members have seen; judges sets of any size, block by block.

    Of each row only its value, votes, number of members and resampled values are kept.
    """

    predictor: Predictor
    absences: Absences
    n_positives: int
    rule: RuleName
    run: Run
    break_ties: bool = True  # so that rows can be put in order
    negatives: TrustedNegatives | None = None  # to compare rows of U with

    def positives(self, rows: Rows, resamples: MemberResamples | None) -> OutOfBagValues:
        """The rows of P."""
        return self._judge(iter([rows]), len(rows), 0, resamples, "P")

    def unlabeled(
        self, blocks: Iterator[Rows], n_rows: int, resamples: MemberResamples | None
    ) -> OutOfBagValues:
        """The rows of U, all of them in order."""
        return self._judge(blocks, n_rows, self.n_positives, resamples, "U")

    def _judge(
        self,
        blocks: Iterator[Rows],
        n_rows: int,
        first: int,
        resamples: MemberResamples | None,
        name: str,
    ) -> OutOfBagValues:
        values, votes = np.empty(n_rows), np.empty(n_rows)
        n_members = np.empty(n_rows, np.int64)
        resampled: SingleArray | None = None
        if resamples is not None:
            resampled = np.empty((resamples.count, n_rows), np.float32)

        p_values = np.empty(n_rows) if name == "U" and self.negatives is not None else None

        def work(task: tuple[int, Rows]) -> _JudgedBlock:
            return self._block(task[1], first, task[0], resamples, name)

        done = 0
        tasks = _blocks_of(blocks, self.absences.n_models)
        for block in parallel.stream(work, tasks, self.run.threads):
            part = slice(done, done + len(block.values))
            values[part] = block.values
            votes[part] = block.decisions.votes
            n_members[part] = block.decisions.n_members
            if resampled is not None and block.resampled is not None:
                resampled[:, part] = block.resampled
            if p_values is not None:
                p_values[part] = block.p_values
            done += len(block.values)
            self.run.progress(f"judging {name} out of bag", done, n_rows)
        return OutOfBagValues(values, votes, n_members, resampled, p_values)

    def _block(
        self, rows: Rows, first: int, start: int, resamples: MemberResamples | None, name: str
    ) -> _JudgedBlock:
        numbers = np.arange(first + start, first + start + len(rows))
        absent = self.absences.absent(numbers, rows)
        member_values = self.predictor.member_values(rows)
        bad = np.flatnonzero(~np.isfinite(member_values).all(axis=1))
        if len(bad):
            raise DataError(
                f"row {start + bad[0] + 1:,} of {name}: its decision value is not finite",
                Message("its values are far from those that members were trained on: {scale} them"),
            )
        groups = self.predictor.ensemble.groups
        decisions = decide_out_of_bag(member_values, absent, groups)
        own = decisions.by(self.rule)
        if self.break_ties and self.rule == "votes":
            own = decisions.values_without_ties()
        again = p_values = None
        if resamples is not None:
            again = resamples.values(own, member_values, absent, self.rule, groups)
        if name == "U" and self.negatives is not None:
            p_values = self.negatives.p_values(own, absent)
        return _JudgedBlock(decisions, own, again, p_values)


def _blocks_of(blocks: Iterator[Rows], n_models: int) -> Iterator[tuple[int, Rows]]:
    """Blocks cut to a size that suits the members, each with the number of its first row."""
    most = max(1, CELLS_AT_ONCE // n_models // BLOCK_ROWS) * BLOCK_ROWS
    done = 0
    for rows in blocks:
        for start in range(0, len(rows), most):
            part = rows.slice(start, min(start + most, len(rows)))
            yield done, part
            done += len(part)
