"""Out-of-bag scoring: each row is scored only by members that have not seen it.

Tuning, ranking, auditing and thresholds share one rule: a member has seen a row if its bag contains
that row, an identical row (unless the row has no features at all), or a row of the same group. Bags
are not stored but redrawn from seeds, and only their rows are kept in memory, so U may be of any
size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np

from resvm_cli import randomness
from resvm_cli.model.ensemble import (
    Decisions,
    Ensemble,
    Group,
    Predictor,
    decision_values,
    mean_values,
)
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, Hashes, IntArray, Rows, distinct
from resvm_cli.running import parallel
from resvm_cli.svm.kernels import SERIAL
from resvm_cli.svm.problem import Problem
from resvm_cli.svm.support_vectors import BLOCK_ROWS

UNLIKE_ANY = -2  # the content number of all training rows that match no scored row
POOL_CELLS_AT_ONCE = 1 << 22  # support vectors times features, for members scored together
# All rows are scored out of bag if there are few. Otherwise, as many are scored as take a fraction
# of the training time (measured in kernel values), and a third of them come from P.
SMALL_SETS = 1500
MIN_SAMPLE, MAX_SAMPLE = 600, 2000
FRACTION_OF_PAIRS = 0.2
FRACTION_OF_POSITIVES = 1 / 3


def decide_out_of_bag(
    member_values: FloatArray, unseen: BoolArray, groups: Sequence[Group] | None = None
) -> Decisions:
    """Return each row's votes and decision values over members that have not seen it; nan if none.

    Sums over these members are scaled up to the number of all members, so that rows are comparable.
    """
    n_models = member_values.shape[1]
    n_members = unseen.sum(axis=1)
    admitted = np.where(unseen, member_values, 0.0)
    balance = np.sign(admitted).sum(axis=1)
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
    """The rows that bags may contain, numbered so that identical rows share a number."""

    def __init__(
        self,
        positives: Rows,
        unlabeled: Rows,
        drawn: IntArray | None = None,
        groups: IntArray | None = None,
        scored: Rows | None = None,
    ) -> None:
        """Number the rows; ``unlabeled`` contains the rows of U listed in ``drawn``, or all of U.

        ``groups`` assigns a group to each row of P and U. If ``scored`` is given, only its rows may
        be looked up, and all other rows share one number.
        """
        self.n_positives = len(positives)
        self.groups = groups
        self._drawn = drawn
        self._number_of: dict[bytes, int] = {}
        numbers = np.arange(len(unlabeled)) if drawn is None else drawn
        hashes = [positives.content_hashes(), unlabeled.content_hashes()]
        self._hashes = distinct(
            np.concatenate(hashes) if scored is None else scored.content_hashes()
        )
        self._positive = self._numbered(positives, np.arange(len(positives)), hashes[0])
        self._unlabeled = self._numbered(unlabeled, len(positives) + numbers, hashes[1])

    def _numbered(self, rows: Rows, numbers: IntArray, hashes: Hashes) -> IntArray:
        alike = _found(hashes, self._hashes)
        contents = np.full(len(rows), UNLIKE_ANY)
        contents[alike] = [
            self._number_of.setdefault(key, len(self._number_of))
            for key in _keys(rows.take(alike), numbers[alike])
        ]
        return contents

    @property
    def all_contents(self) -> IntArray:
        """The content numbers of P and of the rows of U given to the constructor."""
        return np.concatenate([self._positive, self._unlabeled])

    def contents(self, numbers: IntArray, rows: Rows) -> IntArray:
        """Return the content numbers of these rows; -1 if no bag can contain that content."""
        alike = _found(rows.content_hashes(), self._hashes)
        contents = np.full(len(rows), -1)
        contents[alike] = [
            self._number_of.get(key, -1) for key in _keys(rows.take(alike), numbers[alike])
        ]
        return contents

    def bag_contents(self, problem: Problem) -> IntArray:
        places = problem.unlabeled
        if self._drawn is not None:
            places = np.searchsorted(self._drawn, places)
        return distinct(np.concatenate([self._positive[problem.positive], self._unlabeled[places]]))

    def bag_groups(self, problem: Problem) -> IntArray:
        assert self.groups is not None
        bag = np.concatenate([problem.positive, problem.unlabeled + self.n_positives])
        return distinct(self.groups[bag])


@dataclass(frozen=True, eq=False)
class EqualRows:
    """The distinct contents of some rows, and the rows of a set that have these contents."""

    contents: IntArray  # each row's content number, in order of first appearance
    found: IntArray  # the content number of each row found in the set
    numbers: IntArray  # the row number in the set of each row found
    rows: Rows

    @classmethod
    def find(cls, rows: Rows, blocks: Iterable[Rows], *, precomputed: bool) -> EqualRows:
        """Find these rows in a set given in blocks, ignoring serial numbers."""

        def content(rows: Rows) -> Rows:
            return rows.entries(rows.indices != SERIAL) if precomputed else rows

        rows = content(rows)
        number_of: dict[bytes, int] = {}
        keys = _keys(rows, -1 - np.arange(len(rows)))  # rows without features match no other row
        contents = np.array([number_of.setdefault(key, len(number_of)) for key in keys], np.int64)
        hashes = distinct(rows.content_hashes())
        found, numbers, equal = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
        start = 0
        for block in blocks:
            own = content(block)
            alike = _found(own.content_hashes(), hashes)
            keys = _keys(own.take(alike), start + alike)
            which = np.array([number_of.get(key, -1) for key in keys], np.int64)
            alike, which = alike[which >= 0], which[which >= 0]
            found.append(which)
            numbers.append(start + alike)
            equal.append(block.take(alike))
            start += len(block)
        return cls(
            contents, np.concatenate(found), np.concatenate(numbers), Rows.concatenate(equal)
        )


def _found(hashes: Hashes, among: Hashes) -> IntArray:
    """Return the positions of the hashes that are in ``among``, which is ascending."""
    first = np.searchsorted(among, hashes, "left")
    return np.flatnonzero(first < np.searchsorted(among, hashes, "right"))


def _keys(rows: Rows, numbers: IntArray) -> list[bytes]:
    """Return short digests of the rows' contents, ignoring explicit zeros.

    Rows without features are identified by row number. Otherwise, a member with one such row in its
    bag would count as having seen all of them, and none would be out of bag.
    """
    keys = rows.without_zeros().content_keys()
    return [
        blake2b(key, digest_size=16).digest() if key else b"row %d" % number
        for key, number in zip(keys, numbers.tolist(), strict=True)
    ]


class _Sightings:
    """Which members have seen which keys; keys are integers, and negative keys are unseen."""

    def __init__(self, seen: Sequence[IntArray]) -> None:
        self.n_models = len(seen)
        members = np.repeat(np.arange(len(seen)), [len(keys) for keys in seen])
        all_seen = np.concatenate(seen) if seen else np.zeros(0, np.int64)
        order = np.argsort(all_seen, kind="stable")
        self._seen = all_seen[order]
        self._members = members[order]

    def unseen(self, keys: IntArray) -> BoolArray:
        """Return a keys x members mask: true if the member has not seen the key."""
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
        """Return a rows x members mask: true if the member has not seen the row."""
        return self._unseen(numbers, self._training_rows.contents(numbers, rows))

    def unseen_like(self, equal: EqualRows) -> BoolArray:
        """Return the mask for rows that may be in U: unseen if all equal rows of U are unseen."""
        masks = np.ones((len(equal.contents), self.n_models), bool)
        numbers = equal.numbers + self._training_rows.n_positives
        np.logical_and.at(masks, equal.found, self.unseen(numbers, equal.rows))
        return masks[equal.contents]

    def all_unseen(self) -> BoolArray:
        """Return the mask for P and for the rows of U among the training rows."""
        contents = self._training_rows.all_contents
        return self._unseen(np.arange(len(contents)), contents)

    def _unseen(self, numbers: IntArray, contents: IntArray) -> BoolArray:
        unseen = self._contents.unseen(contents)
        if self._groups is not None:
            assert self._training_rows.groups is not None
            unseen &= self._groups.unseen(self._training_rows.groups[numbers])
        return unseen


@dataclass(frozen=True, eq=False)
class OutOfBagSample:
    """The rows of P and U whose out-of-bag values are stored with a model."""

    positive: IntArray
    unlabeled: IntArray  # followed by known negatives, which are numbered after the rows of U

    def __len__(self) -> int:
        return len(self.positive) + len(self.unlabeled)

    @classmethod
    def from_plan(cls, plan: ModelPlan) -> OutOfBagSample:
        """Draw the sample using the seed; it is empty if every member has seen all of P."""
        if plan.method != "resvm":
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        bits = randomness.run_bits(plan.seed, randomness.OUT_OF_BAG_ROWS)
        total = _sample_size(plan)
        positive = randomness.sample(bits, plan.rows_pos, round(FRACTION_OF_POSITIVES * total))
        unlabeled = randomness.sample(bits, plan.rows_unl, total - len(positive))
        negative = randomness.sample(bits, plan.rows_neg, MAX_SAMPLE)
        return cls(positive, np.concatenate([unlabeled, plan.rows_unl + negative]))


def _sample_size(plan: ModelPlan) -> int:
    n_rows = plan.rows_pos + plan.rows_unl
    if n_rows <= SMALL_SETS:
        return 3 * n_rows  # enough for all of P and all of U
    pairs = sum(each.n_models * each.bag_size**2 for each in plan.plans)
    pool = min(n_rows, sum(each.n_models * each.bag_size for each in plan.plans))
    return min(MAX_SAMPLE, max(MIN_SAMPLE, int(FRACTION_OF_PAIRS * pairs / pool)))


def stored_values(
    ensemble: Ensemble, rows: Rows, unseen: BoolArray, n_columns: int, workers: int = 1
) -> FloatArray:
    """Return members x rows: each member's value on the rows it has not seen, nan elsewhere.

    A member's values do not depend on other members, so scoring parts of an ensemble separately
    gives bit-for-bit the same result. A row's values do not depend on other rows, so the rows can
    be divided among threads.
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
    """Yield ranges of members whose support vectors fit into memory together."""
    most = max(1, POOL_CELLS_AT_ONCE // max(1, n_columns))
    first = size = 0
    for number, member in enumerate(ensemble.members):
        if size and size + len(member.support) > most:
            yield first, number
            first, size = number, 0
        size += len(member.support)
    yield first, len(ensemble.members)
