"""One draw of P, U and test rows of known truth: what every method of a cell is given.

A draw depends on the seed of the benchmark, the task, the contamination and the number of the
repetition, and on nothing else: cells can be run in any order, on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resvm_cli import randomness
from resvm_cli.errors import DataError
from resvm_cli.model.drawing import Sizes, split, synthetic
from resvm_cli.rows import IntArray, Rows

HELD_GROUPS = 0.3  # of all groups, where test rows are whole groups


@dataclass(frozen=True, order=True)
class Cell:
    """What is drawn: a task in a setting, for the so-manieth time."""

    setting: str
    task: str
    repetition: int
    contamination_pos: float
    contamination_unl: float

    @property
    def key(self) -> tuple[int, ...]:
        """Numbers that no other cell has."""
        # paper, section 4: the settings of a task differ by their contamination alone
        shares = (self.contamination_pos, self.contamination_unl)
        return (*self.task.encode(), self.repetition, *(round(1e6 * share) for share in shares))

    def seed(self, seed: int) -> int:
        """The seed of folds and bags, of every method the same."""
        bits = randomness.run_bits(seed, randomness.BENCHMARK_TRAINING, *self.key)
        return int(bits.random_raw() >> np.uint64(32))


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of known class that sets are drawn from; test rows apart, where there are such."""

    rows: Rows
    positive: npt.NDArray[np.bool_]
    groups: IntArray | None = None
    test_rows: Rows | None = None
    test_positive: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Draw:
    """P and U to learn from, and test rows with their truth."""

    positives: Rows
    unlabeled: Rows
    test: Rows
    truth: npt.NDArray[np.bool_]
    groups: IntArray | None  # of P, then of U


def draw(labelled: LabelledRows | None, sizes: Sizes, cell: Cell, seed: int) -> Draw:
    """The rows of a cell; of the synthetic problem where none are given."""
    rng = randomness.keyed_generator(seed, randomness.BENCHMARK_SETS, *cell.key)
    if labelled is None:
        counts = sizes.positives_needed, sizes.negatives_needed
        points = Rows.from_dense(synthetic(*counts, rng))
        labelled = LabelledRows(points, np.repeat([True, False], counts))
    if labelled.groups is not None:
        return _by_groups(labelled, sizes, rng)
    if labelled.test_rows is not None:
        assert labelled.test_positive is not None
        chosen = split(labelled.positive, sizes, rng)
        test, truth = labelled.test_rows, labelled.test_positive
    else:
        chosen = split(labelled.positive, sizes, rng)
        test, truth = labelled.rows.take(chosen.test), labelled.positive[chosen.test]
    _require_both(truth)
    rows = labelled.rows
    return Draw(rows.take(chosen.positives), rows.take(chosen.unlabeled), test, truth, None)


def _by_groups(labelled: LabelledRows, sizes: Sizes, rng: np.random.Generator) -> Draw:
    """Whole groups are held out for testing, so that no test row has kin in P or U."""
    assert labelled.groups is not None
    names = np.unique(labelled.groups)
    n_held = min(max(1, round(HELD_GROUPS * len(names))), len(names) - 1)
    held = np.isin(labelled.groups, rng.permutation(names)[:n_held])
    kept, tested = np.flatnonzero(~held), np.flatnonzero(held)
    chosen = split(labelled.positive[kept], sizes, rng)
    p, u = kept[chosen.positives], kept[chosen.unlabeled]
    truth = labelled.positive[tested]
    _require_both(truth)
    rows = labelled.rows
    groups = labelled.groups[np.concatenate([p, u])]
    return Draw(rows.take(p), rows.take(u), rows.take(tested), truth, groups)


def _require_both(truth: npt.NDArray[np.bool_]) -> None:
    if not truth.any() or truth.all():
        which = "negative" if truth.all() else "positive"
        raise DataError(f"no {which} row is left to test with", "ask for smaller sets P and U")


def pool(labelled: LabelledRows, task: str, n_rows: int, seed: int) -> LabelledRows:
    """So many rows of a large file, the same for every cell of a benchmark."""
    if len(labelled.rows) <= n_rows:
        return labelled
    bits = randomness.run_bits(seed, randomness.BENCHMARK_POOL, *task.encode())
    numbers = randomness.sample(bits, len(labelled.rows), n_rows)
    return LabelledRows(labelled.rows.take(numbers), labelled.positive[numbers])
