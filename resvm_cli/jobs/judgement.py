"""Every row of P and of U judged by the members that have not seen it, block by block.

U streams by a second time; of each row only its value, votes, number of members and resampled
values are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from resvm_cli import parallel
from resvm_cli.dataset import FloatArray, IntArray, Rows
from resvm_cli.ensemble.model import Decisions, Predictor
from resvm_cli.ensemble.oob import Absences, BoolArray, ContentAbsences, decide_out_of_bag
from resvm_cli.ensemble.rank_intervals import MemberResamples, SingleArray
from resvm_cli.errors import DataError
from resvm_cli.svm.pool import BLOCK_ROWS
from resvm_cli.svm.problem import Problem

CELLS_AT_ONCE = 1 << 21  # rows times members of one task


@dataclass(frozen=True, eq=False)
class Judged:
    """What was found of each row of a set; nan where every bag holds it."""

    values: FloatArray  # d without ties
    votes: FloatArray
    n_members: IntArray
    resampled: SingleArray | None  # resamples x rows

    @property
    def n_unjudged(self) -> int:
        return int((self.n_members == 0).sum())

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class OutOfBagJudge:
    """An ensemble with what its members have seen."""

    predictor: Predictor
    absences: Absences
    content: ContentAbsences
    n_positives: int
    jobs: int | None
    progress: Callable[[str, int, int | None], None]

    @classmethod
    def of(
        cls,
        predictor: Predictor,
        problems: Sequence[Problem],
        positives: Rows,
        unlabeled: Rows,
        drawn: IntArray,
        groups: IntArray | None,
        jobs: int | None,
        progress: Callable[[str, int, int | None], None],
    ) -> OutOfBagJudge:
        """``unlabeled`` holds the rows of U whose numbers are in ``drawn``, unscaled."""
        return cls(
            predictor,
            Absences(problems, len(positives), groups),
            ContentAbsences(problems, positives, unlabeled, drawn),
            len(positives),
            jobs,
            progress,
        )

    def positives(self, rows: Rows, resamples: MemberResamples | None) -> Judged:
        """The rows of P."""
        return self._judge(iter([rows]), len(rows), 0, resamples, "P")

    def unlabeled(
        self, blocks: Iterator[Rows], n_rows: int, resamples: MemberResamples | None
    ) -> Judged:
        """The rows of U, all of them in order."""
        return self._judge(blocks, n_rows, self.n_positives, resamples, "U")

    def _judge(
        self,
        blocks: Iterator[Rows],
        n_rows: int,
        first: int,
        resamples: MemberResamples | None,
        name: str,
    ) -> Judged:
        values, votes = np.empty(n_rows), np.empty(n_rows)
        n_members = np.empty(n_rows, np.int64)
        resampled: SingleArray | None = None
        if resamples is not None:
            resampled = np.empty((resamples.count, n_rows), np.float32)

        def work(task: tuple[int, Rows]) -> tuple[Decisions, SingleArray | None]:
            start, rows = task
            numbers = np.arange(first + start, first + start + len(rows))
            absent: BoolArray = self.absences.absent(numbers) & self.content.absent(rows)
            member_values = self.predictor.decisions(rows).member_values
            bad = np.flatnonzero(~np.isfinite(member_values).all(axis=1))
            if len(bad):
                raise DataError(
                    f"row {start + bad[0] + 1:,} of {name}: its decision value is not finite",
                    "its values are far from those that members were trained on: --scale them",
                )
            decisions = decide_out_of_bag(member_values, absent)
            again = None if resamples is None else resamples.values(decisions, absent)
            return decisions, again

        done = 0
        tasks = _tasks(blocks, self.absences.n_models)
        for decisions, again in parallel.stream(
            work, tasks, lambda: self.jobs or parallel.available_cores()
        ):
            part = slice(done, done + len(decisions.values))
            values[part] = decisions.values_without_ties()
            votes[part] = decisions.votes
            n_members[part] = decisions.n_members
            if resampled is not None and again is not None:
                resampled[:, part] = again
            done += len(decisions.values)
            self.progress(f"judging {name} out of bag", done, n_rows)
        return Judged(values, votes, n_members, resampled)


def _tasks(blocks: Iterator[Rows], n_models: int) -> Iterator[tuple[int, Rows]]:
    """Blocks cut to a size that suits the members, each with the number of its first row."""
    most = max(1, CELLS_AT_ONCE // n_models // BLOCK_ROWS) * BLOCK_ROWS
    done = 0
    for rows in blocks:
        for start in range(0, len(rows), most):
            part = rows.slice(start, min(start + most, len(rows)))
            yield done, part
            done += len(part)
