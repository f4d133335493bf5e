"""Out-of-bag scores of every row: decision values and resampled values.

Resampled values show how much a row's rank depends on which members were drawn. A resample draws
members with replacement, as many as the ensemble has, and scores every row with the drawn members
that have not seen it. Values are stored in single precision and overwritten by ranks to save
memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli import randomness
from resvm_cli import threads as parallel
from resvm_cli.data.pudata import PUData
from resvm_cli.ensemble.decisions import Decisions, decide, mean_values
from resvm_cli.ensemble.ensemble import Predictor, Section
from resvm_cli.ensemble.oob import UnseenMask
from resvm_cli.ensemble.plan import Plan
from resvm_cli.ensemble.train import threads_within, training_bytes
from resvm_cli.errors import DataError
from resvm_cli.parameters import RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray, Rows
from resvm_cli.run import Run
from resvm_cli.svm import _blocks
from resvm_cli.svm.products import ScratchBuffer
from resvm_cli.svm.support_vectors import BLOCK_ROWS

SingleArray: TypeAlias = npt.NDArray[np.float32]

CELLS_AT_ONCE = 1 << 17  # rows times members of one task
MIN_TASKS = 16  # so that a few threads finish at about the same time
LEVEL = 0.95
MIN_RESAMPLES, MAX_RESAMPLES = 40, 200
MAX_CELLS = 50_000_000  # rows times resamples: 200 MB
COLUMNS_AT_ONCE = 1 << 12
SCORE_BYTES = 24  # per row and member
LISTED_BYTES = 150  # per row of a ranking


@dataclass(frozen=True, eq=False)
class OutOfBagScores:
    """Scores of rows from the members that have not seen them.

    If every member has seen a row, ``n_members`` is 0. Its value is nan or, to rank a row of U,
    that of the members whose bag lacks the row itself.
    """

    values: FloatArray  # according to the scorer's decision rule
    votes: FloatArray
    n_members: IntArray
    resampled: SingleArray | None  # resamples x rows

    @property
    def scored(self) -> BoolArray:
        return self.n_members > 0

    @property
    def present(self) -> FloatArray:
        """The values of the rows that are out of bag for any member."""
        return self.values[self.scored]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class OutOfBagScorer:
    """Scores rows with the members that have not seen them, block by block."""

    predictor: Predictor
    unseen_mask: UnseenMask
    rule: RuleName
    run: Run

    def score(
        self,
        name: str,
        blocks: Iterable[Rows],
        first: int,
        n_rows: int,
        resamples: MemberResamples | None = None,
    ) -> OutOfBagScores:
        """Score the rows of P, U or known negatives; ``first`` is the number of the first row."""
        scores = OutOfBagScores(
            np.empty(n_rows),
            np.empty(n_rows),
            np.empty(n_rows, np.int64),
            None if resamples is None else np.empty((resamples.count, n_rows), np.float32),
        )
        groups = self.predictor.ensemble.sections

        def work(task: tuple[int, Rows]) -> int:
            start, rows = task
            part = slice(start, start + len(rows))
            numbers = first + np.arange(part.start, part.stop)
            mask, n_unseen = self.unseen_mask.scorers(numbers, rows)
            member_values = self.predictor.member_values(rows)
            bad = np.flatnonzero(~np.isfinite(member_values).all(axis=1))
            if len(bad):
                raise DataError(
                    f"row {start + bad[0] + 1:,} of {name}: its decision value is not finite",
                    "its features are too large for this kernel; scale them: resvm train"
                    " `scale='auto'`",
                )
            decisions = decide(member_values, groups, unseen=mask)
            own = decisions.by(self.rule)
            if self.rule == "votes":
                own = decisions.values_without_ties()
            scores.values[part] = own
            scores.votes[part] = decisions.votes
            scores.n_members[part] = n_unseen
            if resamples is not None and scores.resampled is not None:
                resampled = scores.resampled[:, part]
                resamples.fill(resampled, own, member_values, mask, self.rule, groups)
            return len(rows)

        done = 0
        tasks = _tasks(blocks, n_rows, self.unseen_mask.n_models)
        for count in parallel.stream(work, tasks, self.run.threads):
            done += count
            self.run.progress(f"scoring {name} out of bag", done, n_rows)
        return scores


def _tasks(blocks: Iterable[Rows], n_rows: int, n_models: int) -> Iterator[tuple[int, Rows]]:
    """Yield blocks sized for the number of members, each with the number of its first row."""
    most = min(CELLS_AT_ONCE // n_models, n_rows // MIN_TASKS)
    most = max(1, most // BLOCK_ROWS) * BLOCK_ROWS
    done = 0
    for rows in blocks:
        for start in range(0, len(rows), most):
            part = rows.slice(start, min(start + most, len(rows)))
            yield done, part
            done += len(part)


def ranking_threads(plan: Plan, data: PUData, run: Run) -> int:
    """Return how many threads the memory at hand allows while every row is scored."""
    n_rows = plan.rows_pos + plan.rows_unl
    held = training_bytes(plan, data, plan.n_models)[0] + LISTED_BYTES * n_rows
    held += 4.0 * n_rows * n_resamples(n_rows)
    per_thread = SCORE_BYTES * min(CELLS_AT_ONCE, plan.n_models * n_rows)
    return max(1, threads_within(held, per_thread, run.threads()))


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

    def fill(
        self,
        result: SingleArray,
        own: FloatArray,
        member_values: FloatArray,
        unseen: BoolArray,
        rule: RuleName,
        groups: Sequence[Section],
    ) -> None:
        """Write decision values by this rule, with ties broken, into ``result``: resamples x rows.

        A row that every drawn member has seen keeps its own value.
        """
        for start in range(0, len(own), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            values = self._block(member_values[part], unseen[part], rule, groups)
            np.copyto(values, own[part, None], where=np.isnan(values))
            with np.errstate(over="ignore"):  # infinities keep their order
                result[:, part] = values.T

    def _block(
        self, values: FloatArray, unseen: BoolArray, rule: RuleName, groups: Sequence[Section]
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
    groups: Sequence[Section],
) -> FloatArray:
    """Return decision values, with ties broken, for each column of weights: rows x columns.

    ``unseen`` marks the rows that a member scores; its values for other rows must be 0. Weights are
    integers, members x columns. The result is nan for a row that no weighted member scores.
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
        by_section = [total(member_values, group.columns) for group in groups]
        return mean_values(by_section, [count(group.columns) for group in groups], groups)
    sums, counts = total(member_values), count()
    if rule == "mean":
        with np.errstate(divide="ignore", invalid="ignore"):
            return sums / counts
    balance = total(np.sign(member_values))
    return Decisions.from_totals(balance, sums, counts, len(weights)).values_without_ties()


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
    """For each set of two or more tied rows, return the row numbers."""
    order = np.argsort(ranks)
    equal = np.concatenate([[False], values[order[1:]] == values[order[:-1]], [False]])
    edges = np.flatnonzero(equal[1:] != equal[:-1]).tolist()
    runs = zip(edges[::2], edges[1::2], strict=True)
    return [order[first : last + 1] for first, last in runs]
