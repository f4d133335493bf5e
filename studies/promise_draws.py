"""Store out-of-bag values for draws with known classes, to check estimates against.

``python -m studies.promise_draws --data-dir DIR --store DIR`` draws P and U from the tasks of
``studies.pu_tasks``. P is clean or contaminated, and the rows in it are chosen at random or
depending on their features. For each draw, it stores the out-of-bag values that ``resvm rank``
would use, and the values of negatives that no member was trained on. Draws already in the store are
skipped.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.out_of_bag import TrainingRows, UnseenMask, decide_out_of_bag
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model.simulation import Sizes, biased_chances, split
from resvm_cli.parameters import MethodParameters
from resvm_cli.rows import Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.train import train_on
from resvm_cli.tuning.tune import choose_settings
from studies.pu_tasks import TASKS, labeled

CONTAMINATIONS = (0.0, 0.1, 0.3)
LABELINGS = ("random", "biased")
OTHER_FRACTIONS = (0.05, 0.4)  # fractions of positives in U; every second draw uses one of them
N_POS = (200, 50, 20)
N_UNL, N_NEGATIVES = 2000, 300


@dataclass(frozen=True)
class Cell:
    """One draw of a task."""

    task: str
    contamination: float
    labeling: str
    number: int
    n_pos: int

    @property
    def key(self) -> str:
        """A name for the random draw; file names also include the size of P."""
        task = self.task.replace(" ", "_")
        return f"{task}-{self.contamination:g}-{self.labeling}-{self.number}"

    @property
    def name(self) -> str:
        return f"{self.key}-{self.n_pos}"


@dataclass(frozen=True, eq=False)
class Drawn:
    """P, U and negatives, and which rows of P and U are truly positive."""

    positives: Rows
    unlabeled: Rows
    negatives: Rows
    truth_pos: np.ndarray
    truth_unl: np.ndarray


def drawn(cell: Cell, folder: Path) -> Drawn:
    """Draw the rows of a cell, which depend only on its fields."""
    task = TASKS[cell.task]
    rows, truth = labeled(task, folder)
    share = task.hidden
    if cell.number % 2:
        share = OTHER_FRACTIONS[cell.number // 2 % 2]
    n_true, n_false = int(truth.sum()), int((~truth).sum())
    # leave some rows for the negatives
    n_pos = min(cell.n_pos, n_true // 3)
    n_unl = int(min(N_UNL, 0.9 * (n_true - n_pos) / share, 0.75 * n_false / (1 - share)))
    sizes = Sizes(n_pos, n_unl, cell.contamination, share, 0, None)
    seed = [cell.number, round(1000 * cell.contamination), *cell.key.encode()]
    rng = np.random.default_rng(seed)
    chances = biased_chances(rows, rng) if cell.labeling == "biased" else None
    sets = split(truth, sizes, rng, chances)
    negatives = sets.test[~truth[sets.test]][:N_NEGATIVES]
    return Drawn(
        rows.take(sets.positives),
        rows.take(sets.unlabeled),
        rows.take(negatives),
        truth[sets.positives],
        truth[sets.unlabeled],
    )


def evaluate(cell: Cell, some: Drawn) -> dict[str, np.ndarray]:
    """Compute the values of ``resvm rank`` with its default options.

    By default, it searches for settings and ranks by mean values.
    """
    data = MemoryData(some.positives, some.unlabeled, scale="auto")
    run = Run(jobs=1)
    params = MethodParameters(seed=cell.number)
    choice = choose_settings(data, TrainingChoice.from_params(params, auto="committee"), run)
    part, model = train_on(data, choice, run)
    unseen_mask = UnseenMask(
        part.problems, TrainingRows(some.positives, part.unlabeled, part.drawn, None)
    )
    predictor = Predictor(model.ensemble)
    first = 0
    stored: dict[str, np.ndarray] = {}
    for name, rows in (("pos", some.positives), ("unl", some.unlabeled)):
        values = predictor.member_values(rows)
        absent = unseen_mask.unseen(np.arange(first, first + len(rows)), rows)
        decisions = decide_out_of_bag(values, absent, model.ensemble.groups)
        stored |= {
            name: decisions.means,
            f"{name}_votes": decisions.values_without_ties(),
            f"{name}_members": values.astype(np.float32),
            f"{name}_absent": absent,
        }
        first += len(rows)
    stored["negatives_members"] = predictor.member_values(some.negatives).astype(np.float32)
    return stored | {"truth_pos": some.truth_pos, "truth_unl": some.truth_unl}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=".")
    parser.add_argument("--store", required=True, help="a folder of .npz files")
    parser.add_argument("--draws", type=int, nargs=2, default=(0, 3), help="from and to")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--labelings", nargs="+", choices=LABELINGS, default=LABELINGS)
    parser.add_argument("--contaminations", type=float, nargs="+", default=CONTAMINATIONS)
    parser.add_argument("--n-pos", type=int, nargs="+", default=N_POS, help="sizes of P")
    arguments = parser.parse_args()
    store = Path(arguments.store)
    store.mkdir(exist_ok=True)
    cells = [
        Cell(task, contamination, labeling, number, n_pos)
        for number in range(*arguments.draws)
        for task in arguments.tasks
        for contamination in arguments.contaminations
        for labeling in arguments.labelings
        for n_pos in arguments.n_pos
    ]
    with parallel.inner_threads_held():
        for cell in cells:
            path = store / f"{cell.name}.npz"
            if path.exists():
                continue
            started = time.perf_counter()
            values = evaluate(cell, drawn(cell, Path(arguments.data_dir)))
            partial = path.with_suffix(".part.npz")
            np.savez(partial, **values)
            partial.rename(path)
            print(cell.name, f"{time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
