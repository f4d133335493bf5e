"""Out-of-bag values: each row is scored only by members that have not seen it.

Tuning, ranking, auditing and thresholds share one rule: a member has seen a row if its bag contains
that row, an identical row (unless the row has no features at all), or a row of the same group. Bags
are not stored but redrawn from seeds, and only their rows are kept in memory, so U may be of any
size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b

import numpy as np

from resvm_cli import randomness
from resvm_cli import threads as parallel
from resvm_cli.ensemble.decisions import DecisionRule, OutOfBag, Threshold, choose_threshold, decide
from resvm_cli.ensemble.ensemble import Ensemble, Predictor, Section
from resvm_cli.ensemble.plan import Plan
from resvm_cli.metrics.intervals import Interval, roc_auc_interval
from resvm_cli.parameters import RULE_NAMES, RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, Hashes, IntArray, Rows, distinct
from resvm_cli.svm.kernels import Problem
from resvm_cli.svm.support_vectors import BLOCK_ROWS

UNLIKE_ANY = -2  # the content number of all training rows that match no scored row
POOL_CELLS_AT_ONCE = 1 << 22  # support vectors times features, for members scored together
CELLS_AT_ONCE = 1 << 20  # rows times members
# All rows are scored out of bag if there are few. Otherwise, as many are scored as take a fraction
# of the training time (measured in kernel values), and a third of them come from P.
SMALL_SETS = 1500
MIN_SAMPLE, MAX_SAMPLE = 600, 2000
FRACTION_OF_PAIRS = 0.2
FRACTION_OF_POSITIVES = 1 / 3


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


class _SeenIndex:
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
        self._problems = problems = list(problems)
        self._contents = _SeenIndex([training_rows.bag_contents(problem) for problem in problems])
        self._groups: _SeenIndex | None = None
        if training_rows.groups is not None:
            self._groups = _SeenIndex([training_rows.bag_groups(problem) for problem in problems])

    @property
    def n_models(self) -> int:
        return self._contents.n_models

    def unseen(self, numbers: IntArray, rows: Rows) -> BoolArray:
        """Return a rows x members mask: true if the member has not seen the row."""
        return self._unseen(numbers, self._training_rows.contents(numbers, rows))

    def scorers(self, numbers: IntArray, rows: Rows) -> tuple[BoolArray, IntArray]:
        """Return a rows x members mask of the members to rank by, and how many are out of bag.

        A row of U that no member scores out of bag is ranked by all members whose bag lacks the row
        itself, even if it contains an identical row, or else by all members.
        """
        mask = self.unseen(numbers, rows)
        counts: IntArray = mask.sum(axis=1)
        lacking = np.flatnonzero((counts == 0) & (numbers >= self._training_rows.n_positives))
        if len(lacking):
            mask[lacking] = self._without_row.unseen(numbers[lacking])
            mask[lacking[~mask[lacking].any(axis=1)]] = True
        return mask, counts

    @cached_property
    def _without_row(self) -> _SeenIndex:
        first = self._training_rows.n_positives
        return _SeenIndex([distinct(problem.unlabeled + first) for problem in self._problems])

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
    def from_plan(cls, plan: Plan) -> OutOfBagSample:
        """Draw the sample using the seed; it is empty if every member has seen all of P."""
        if plan.method != "resvm":
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        bits = randomness.run_bits(plan.seed, randomness.OUT_OF_BAG_ROWS)
        total = _sample_size(plan)
        positive = randomness.sample(bits, plan.rows_pos, round(FRACTION_OF_POSITIVES * total))
        unlabeled = randomness.sample(bits, plan.rows_unl, total - len(positive))
        negative = randomness.sample(bits, plan.rows_neg, MAX_SAMPLE)
        return cls(positive, np.concatenate([unlabeled, plan.rows_unl + negative]))


def _sample_size(plan: Plan) -> int:
    n_rows = plan.rows_pos + plan.rows_unl
    if n_rows <= SMALL_SETS:
        return 3 * n_rows  # enough for all of P and all of U
    pairs = sum(each.n_models * each.bag_size**2 for each in plan.settings)
    pool = min(n_rows, sum(each.n_models * each.bag_size for each in plan.settings))
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
        predictor = Predictor.with_independent_members(ensemble.part(first, last), rows, n_columns)

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


@dataclass(frozen=True, eq=False)
class OutOfBagSummary:
    """The out-of-bag results of all members, and the decision rule derived from them."""

    sections: tuple[Section, ...]  # standardized
    decision: DecisionRule
    # rows that at least one member has not seen; None if no rows were sampled
    table: OutOfBag | None

    @classmethod
    def from_values(cls, plan: Plan, sample: OutOfBagSample, values: FloatArray) -> OutOfBagSummary:
        """Summarize each member's values (members x rows) for the rows it has not seen."""
        sections = plan.sections()
        decision = DecisionRule.plain(plan.rule, single=plan.single)
        if not len(sample):
            return cls(sections, decision, None)
        if len(sections) > 1:
            # known negatives come after U
            n_u = int(np.searchsorted(sample.unlabeled, plan.rows_unl))
            of_u = slice(len(sample.positive), len(sample.positive) + n_u)
            sections = tuple(_standardized(each, values[each.columns, of_u]) for each in sections)
        blocks = []
        step = max(1, CELLS_AT_ONCE // len(values))
        for start in range(0, len(sample), step):
            by_row = np.ascontiguousarray(values[:, start : start + step].T)
            found = decide(by_row, sections, unseen=np.isfinite(by_row))
            blocks.append((found.values, found.means, found.n_members))
        by_votes, means, n_members = map(np.concatenate, zip(*blocks, strict=True))
        kept = n_members > 0
        positive = np.arange(len(sample)) < len(sample.positive)
        numbers = np.concatenate([sample.positive, sample.unlabeled])
        negative = ~positive & (numbers >= plan.rows_unl)
        table = OutOfBag(
            positive[kept],
            (numbers - plan.rows_unl * negative)[kept] + 1,
            by_votes[kept],
            means[kept],
            n_members[kept],
            negative[kept],
        )
        fraction = plan.rows_neg / (plan.rows_neg + plan.rows_unl)
        for name in RULE_NAMES:
            known, unlabeled = table.by(name)
            threshold = choose_threshold(known, unlabeled, table.negatives_by(name), fraction)
            if threshold is not None:
                decision.thresholds[name] = threshold
        return cls(sections, decision, table)


def _standardized(section: Section, values: FloatArray) -> Section:
    """Return the section with the shift and spread that standardize its mean values over rows of U.

    ``values`` (members x rows) contains the values of the section's members.
    """
    by_row = np.ascontiguousarray(values.T)
    unseen = np.isfinite(by_row)
    counts = unseen.sum(axis=1)
    sums = np.where(unseen, by_row, 0.0).sum(axis=1)
    means = sums[counts > 0] / counts[counts > 0]
    if len(means) < 2:
        return section
    shift, spread = float(means.mean()), float(means.std())
    usable = bool(np.isfinite([shift, spread]).all()) and spread > 0
    return replace(section, shift=shift, spread=spread) if usable else section


@dataclass(frozen=True)
class ExpectedPerformance:
    """A model's threshold with its out-of-bag rates, and how well the model separates P from U."""

    rule: RuleName
    threshold: Threshold
    n_positives: int  # rows scored out of bag
    n_unlabeled: int
    roc_auc: Interval | None  # P against U
    n_negatives: int = 0  # known negatives scored out of bag
    n_false: int = 0  # known negatives that are predicted positive

    @classmethod
    def from_table(cls, decision: DecisionRule, table: OutOfBag | None) -> ExpectedPerformance:
        if table is None:
            return cls(decision.rule, decision.threshold, 0, 0, None)
        known, unlabeled = table.by(decision.rule)
        area = roc_auc_interval(known, unlabeled) if len(known) > 1 and len(unlabeled) > 1 else None
        negative = table.negatives_by(decision.rule)
        n_false = int((negative > decision.threshold.value).sum())
        sizes = len(known), len(unlabeled)
        return cls(decision.rule, decision.threshold, *sizes, area, len(negative), n_false)
