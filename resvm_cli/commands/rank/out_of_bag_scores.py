"""Out-of-bag scores of every row: decision values, resampled values and p-values.

Resampled values show how much a row's rank depends on which members were drawn. A resample draws
members with replacement, as many as the ensemble has, and scores every row with the drawn members
that have not seen it. Values are stored in single precision and overwritten by ranks to save
memory.

P-values compare a row with trusted negatives. The members that score the row have seen neither it
nor the negatives. So if the row is a negative like them, every rank among their values is equally
likely, and the fraction of values at or above its own, counting itself, is a p-value that assumes
nothing about the model (Vovk; Bates et al. 2023). If a negative is also a row of U,
members that have seen it do not score it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli import randomness
from resvm_cli.errors import DataError, Message
from resvm_cli.model.ensemble import (
    Decisions,
    Group,
    Predictor,
    decision_values,
    mean_values,
)
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.out_of_bag import UnseenMask, decide_out_of_bag
from resvm_cli.model.pu_data import PUData
from resvm_cli.parameters import RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray, Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm import _blocks
from resvm_cli.svm.products import ScratchBuffer
from resvm_cli.svm.support_vectors import BLOCK_ROWS
from resvm_cli.training.resource_budget import (
    MemoryEstimate,
    limit_too_small,
    training_estimate,
)

SingleArray: TypeAlias = npt.NDArray[np.float32]

CELLS_AT_ONCE = 1 << 17  # rows times members of one task
MIN_TASKS = 16  # so that a few threads finish at about the same time
LEVEL = 0.95
MIN_RESAMPLES, MAX_RESAMPLES = 40, 200
MAX_CELLS = 50_000_000  # rows times resamples: 200 MB
COLUMNS_AT_ONCE = 1 << 12
ROUNDING = 1e-9  # smaller differences are rounding errors, because the order of summation varies
SCORE_BYTES = 24  # per row and member
LISTED_BYTES = 150  # per row of a ranking


@dataclass(frozen=True, eq=False)
class OutOfBagScores:
    """Scores of rows from the members that have not seen them; nan if every member has."""

    values: FloatArray  # according to the scorer's decision rule
    votes: FloatArray
    n_members: IntArray
    resampled: SingleArray | None  # resamples x rows
    p_values: FloatArray | None = None  # only with trusted negatives

    @property
    def scored(self) -> BoolArray:
        return self.n_members > 0

    @property
    def present(self) -> FloatArray:
        """The values of the rows that have one."""
        return self.values[self.scored]

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, count: int) -> OutOfBagScores:
        """Return the scores of consecutive rows, as views."""
        rows = slice(start, start + count)
        return OutOfBagScores(
            self.values[rows],
            self.votes[rows],
            self.n_members[rows],
            None if self.resampled is None else self.resampled[:, rows],
            None if self.p_values is None else self.p_values[rows],
        )

    @classmethod
    def joined(cls, first: OutOfBagScores, second: OutOfBagScores) -> OutOfBagScores:
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
class OutOfBagScorer:
    """Scores rows with the members that have not seen them, block by block."""

    predictor: Predictor
    unseen_mask: UnseenMask
    n_positives: int
    rule: RuleName
    run: Run
    break_ties: bool = True  # so that rows can be sorted
    negatives: TrustedNegatives | None = None  # to compute p-values of rows of U

    def positives(self, rows: Rows, resamples: MemberResamples | None) -> OutOfBagScores:
        """Score the rows of P."""
        return self._score(iter([rows]), len(rows), 0, resamples, "P")

    def unlabeled(
        self, blocks: Iterator[Rows], n_rows: int, resamples: MemberResamples | None
    ) -> OutOfBagScores:
        """Score all rows of U, given in order."""
        return self._score(blocks, n_rows, self.n_positives, resamples, "U")

    def member_values(self, rows: Rows, name: str, start: int = 0) -> FloatArray:
        """Return each member's values; ``name`` and ``start`` locate a bad row in errors."""
        values = self.predictor.member_values(rows)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise DataError(
                f"row {start + bad[0] + 1:,} of {name}: its decision value is not finite",
                Message("its features are far from the training data: use {scale}"),
            )
        return values

    def _score(
        self,
        blocks: Iterator[Rows],
        n_rows: int,
        first: int,
        resamples: MemberResamples | None,
        name: str,
    ) -> OutOfBagScores:
        scores = OutOfBagScores(
            np.empty(n_rows),
            np.empty(n_rows),
            np.empty(n_rows, np.int64),
            None if resamples is None else np.empty((resamples.count, n_rows), np.float32),
            np.empty(n_rows) if name == "U" and self.negatives is not None else None,
        )

        def work(task: tuple[int, Rows]) -> int:
            self._fill(scores.part(task[0], len(task[1])), *task, first, resamples, name)
            return len(task[1])

        done = 0
        tasks = _tasks(blocks, n_rows, self.unseen_mask.n_models)
        for count in parallel.stream(work, tasks, self.run.threads):
            done += count
            self.run.progress(f"scoring {name} out of bag", done, n_rows)
        return scores

    def _fill(
        self,
        scores: OutOfBagScores,
        start: int,
        rows: Rows,
        first: int,
        resamples: MemberResamples | None,
        name: str,
    ) -> None:
        """Write the scores of these rows, which begin at row ``start`` of the set."""
        numbers = np.arange(first + start, first + start + len(rows))
        unseen = self.unseen_mask.unseen(numbers, rows)
        member_values = self.member_values(rows, name, start)
        groups = self.predictor.ensemble.groups
        decisions = decide_out_of_bag(member_values, unseen, groups)
        own = decisions.by(self.rule)
        if self.break_ties and self.rule == "votes":
            own = decisions.values_without_ties()
        scores.values[:] = own
        scores.votes[:] = decisions.votes
        scores.n_members[:] = decisions.n_members
        if resamples is not None and scores.resampled is not None:
            resamples.fill(scores.resampled, own, member_values, unseen, self.rule, groups)
        if scores.p_values is not None and self.negatives is not None:
            scores.p_values[:] = self.negatives.p_values(own, unseen)


def _tasks(blocks: Iterator[Rows], n_rows: int, n_models: int) -> Iterator[tuple[int, Rows]]:
    """Yield blocks sized for the number of members, each with the number of its first row."""
    most = min(CELLS_AT_ONCE // n_models, n_rows // MIN_TASKS)
    most = max(1, most // BLOCK_ROWS) * BLOCK_ROWS
    done = 0
    for rows in blocks:
        for start in range(0, len(rows), most):
            part = rows.slice(start, min(start + most, len(rows)))
            yield done, part
            done += len(part)


def ranking_threads(plan: ModelPlan, data: PUData, run: Run, *, intervals: bool) -> int:
    """Return how many threads fit into the run's memory while every row is scored."""
    n_rows = plan.rows_pos + plan.rows_unl
    held = training_estimate(plan, data, plan.n_models).held + LISTED_BYTES * n_rows
    if intervals:
        held += 4.0 * n_rows * n_resamples(n_rows)
    estimate = MemoryEstimate(held, SCORE_BYTES * min(CELLS_AT_ONCE, plan.n_models * n_rows))
    if threads := estimate.threads_within(run.memory_mb, run.threads()):
        return threads
    raise limit_too_small(run, estimate, "smaller bags ({n_pos}, {n_unl}), or {intervals:False}")


def n_resamples(n_rows: int) -> int:
    """Return how many resamples fit into memory for this many rows."""
    return max(MIN_RESAMPLES, min(MAX_RESAMPLES, MAX_CELLS // max(1, n_rows)))


class MemberResamples:
    """Resamples of the members, drawn with replacement and the same for every row."""

    def __init__(self, n_models: int, n_resamples: int, seed: int) -> None:
        bits = randomness.run_bits(seed, randomness.RESAMPLES)
        drawn = randomness.below(bits, n_models, n_models * n_resamples)
        self._weights = np.zeros((n_models, n_resamples))
        for number, members in enumerate(drawn.reshape(n_resamples, n_models)):
            self._weights[:, number] = np.bincount(members, minlength=n_models)

    @property
    def count(self) -> int:
        return self._weights.shape[1]

    def values(
        self,
        own: FloatArray,
        member_values: FloatArray,
        unseen: BoolArray,
        rule: RuleName = "votes",
        groups: Sequence[Group] = (),
    ) -> SingleArray:
        """Return decision values by this rule, with ties broken: resamples x rows.

        A row that every drawn member has seen keeps its own value.
        """
        result = np.empty((self.count, len(own)), np.float32)
        self.fill(result, own, member_values, unseen, rule, groups)
        return result

    def fill(
        self,
        result: SingleArray,
        own: FloatArray,
        member_values: FloatArray,
        unseen: BoolArray,
        rule: RuleName,
        groups: Sequence[Group],
    ) -> None:
        """Write ``values`` into an array: resamples x rows."""
        for start in range(0, len(own), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            values = self._block(member_values[part], unseen[part], rule, groups)
            np.copyto(values, own[part, None], where=np.isnan(values))
            with np.errstate(over="ignore"):  # infinities keep their order
                result[:, part] = values.T

    def _block(
        self, values: FloatArray, unseen: BoolArray, rule: RuleName, groups: Sequence[Group]
    ) -> FloatArray:
        # the same shape for every block, because BLAS rounding depends on it
        admitted = np.zeros((BLOCK_ROWS, len(self._weights)))
        np.copyto(admitted[: len(values)], values, where=unseen)
        mask = np.zeros(admitted.shape, bool)
        mask[: len(values)] = unseen
        return _combined(admitted, mask, self._weights, rule, groups)[: len(values)]


def _combined(
    member_values: FloatArray,
    unseen: BoolArray,
    weights: FloatArray,
    rule: RuleName,
    groups: Sequence[Group],
) -> FloatArray:
    """Return decision values, with ties broken, for each column of weights: rows x columns.

    A member counts with its weight, an integer (members x columns), for the rows in ``unseen``; its
    values for other rows must be 0. Values are nan if there is no such member.
    """

    def total(part: FloatArray, members: slice = slice(None)) -> FloatArray:
        return part[:, members] @ weights[members]

    def count(members: slice = slice(None)) -> FloatArray:
        # integers, which even single precision adds without rounding, in any order
        some = np.flatnonzero(~unseen[:, members].all(axis=1))
        counts = np.tile(weights[members].sum(axis=0), (len(unseen), 1))
        mask = unseen[some, members].astype(np.float32)
        counts[some] = mask @ weights[members].astype(np.float32)
        return counts

    if rule == "mean" and len(groups) > 1:
        sums = [total(member_values, group.columns) for group in groups]
        return mean_values(sums, [count(group.columns) for group in groups], groups)
    summed, counts = total(member_values), count()
    with np.errstate(divide="ignore", invalid="ignore"):
        if rule == "mean":
            return summed / counts
        votes = (counts + total(np.sign(member_values))) / (2 * counts)
        summed = summed * (len(weights) / counts)
    values = decision_values(votes, summed)
    decisions = Decisions(votes, summed, values, values, counts.astype(np.int64))
    return decisions.values_without_ties()


def rank_bounds(
    resampled: SingleArray,
    ranks: IntArray,
    values: FloatArray,
    *,
    lowest_first: bool,
    workers: int = 1,
) -> tuple[IntArray, IntArray]:
    """Return the bounds of each row's rank; ``resampled`` (resamples x rows) is overwritten.

    Rows with equal values have no order, so their bounds come from the ranks of all of them.
    Bounds are widened to include the row's own rank.
    """
    n_resamples, n_rows = resampled.shape
    all_ranks = resampled.view(np.int32)  # ranks overwrite the values they come from
    buffer = ScratchBuffer(np.uint64)

    def rank(number: int) -> None:
        scratch = buffer.first(2 * n_rows)
        _blocks.rank(resampled[number], not lowest_first, scratch, all_ranks[number])

    for _ in parallel.run(rank, range(n_resamples), workers):
        pass
    tail = int((1 - LEVEL) / 2 * n_resamples)  # resamples left out at either end
    low, high = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)

    def bound(start: int) -> None:
        part = slice(start, start + COLUMNS_AT_ONCE)
        sorted_ranks = np.sort(all_ranks[:, part].T.copy(), axis=1)
        low[part], high[part] = sorted_ranks[:, tail], sorted_ranks[:, n_resamples - 1 - tail]

    for _ in parallel.run(bound, range(0, n_rows, COLUMNS_AT_ONCE), workers):
        pass
    for rows in _tied_rows(ranks, values):
        pooled = np.sort(all_ranks[:, rows], axis=None)
        low[rows], high[rows] = pooled[tail * len(rows)], pooled[-1 - tail * len(rows)]
    return np.minimum(low, ranks), np.maximum(high, ranks)


def _tied_rows(ranks: IntArray, values: FloatArray) -> list[IntArray]:
    """Return the numbers of the rows in each set of two or more with equal values."""
    order = np.argsort(ranks)
    equal = np.concatenate([[False], values[order[1:]] == values[order[:-1]], [False]])
    edges = np.flatnonzero(equal[1:] != equal[:-1]).tolist()
    runs = zip(edges[::2], edges[1::2], strict=True)
    return [order[first : last + 1] for first, last in runs]


@dataclass(frozen=True, eq=False)
class TrustedNegatives:
    """The members' decision values for trusted negatives: negatives x members."""

    member_values: FloatArray  # 0 if the member has seen the negative
    unseen: BoolArray  # a single row if no negative was seen
    rule: RuleName
    groups: Sequence[Group]

    @classmethod
    def from_values(
        cls, values: FloatArray, unseen: BoolArray, rule: RuleName, groups: Sequence[Group]
    ) -> TrustedNegatives:
        """Keep the values of members that have not seen the negative: negatives x members."""
        if unseen.all():
            return cls(values, np.ones((1, values.shape[1]), bool), rule, groups)
        return cls(np.where(unseen, values, 0.0), unseen, rule, groups)

    def decisions(self) -> Decisions:
        """Return the out-of-bag decision values of the negatives."""
        unseen = np.broadcast_to(self.unseen, self.member_values.shape)
        return decide_out_of_bag(self.member_values, unseen, self.groups)

    def p_values(self, own: FloatArray, unseen: BoolArray) -> FloatArray:
        """Return p-values of rows with these values; nan if every member has seen the row.

        ``unseen`` (rows x members) marks the members that have not.
        """
        result = np.full(len(own), np.nan)
        for start in range(0, len(own), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            admitted = np.zeros((BLOCK_ROWS, unseen.shape[1]))  # the same shape for all blocks
            admitted[: len(own[part])] = unseen[part]
            columns = admitted.T
            values = _combined(self.member_values, self.unseen, columns, self.rule, self.groups)
            values = values.T[: len(own[part])]
            least = own[part] - ROUNDING * (1 + np.abs(own[part]))
            above = (values >= least[:, None]).sum(axis=1)
            fractions = (1 + above) / (1 + (~np.isnan(values)).sum(axis=1))
            result[part] = np.where(unseen[part].any(axis=1), fractions, np.nan)
        return result


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """Return q-values: the lowest false discovery rate at which a row is listed; nan stays nan."""
    result = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    ratios = p_values[order] * len(order) / np.arange(1, len(order) + 1)
    result[order] = np.minimum(np.minimum.accumulate(ratios[::-1])[::-1], 1.0)
    return result
