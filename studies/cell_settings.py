"""Run one cell of the benchmark with given, untuned parameters.

``python -m studies.cell_settings --data-dir DIR --task ijcnn1 gamma=1 c_unl=100 w_pos=0.02 n_pos=50
n_unl=1000 --vary gamma=0.3,3 --vary n_pos=25,100`` runs resvm with these values on the draws of the
paper's protocol, then changes one value at a time. If a cell is below the published interval, this
shows whether tuning, the draw or the method is the reason.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from resvm_cli.benchmark.cells import MEMBERS, Protocol, default_grids
from resvm_cli.benchmark.data import PAPER_TASKS, SETTINGS, BenchmarkData, Cell
from resvm_cli.metrics.ranking import ScoredLabels
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import MethodParameters
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm.libsvm import silenced
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.train import train_on

INTEGERS = ("n_pos", "n_unl", "n_models")
NAMES = ("gamma", "c_unl", "w_pos", *INTEGERS)


def values_of(text: str) -> tuple[str, list[float]]:
    """Parse a text such as ``gamma=0.3,3`` into a name and its values."""
    name, _, values = text.partition("=")
    if name not in NAMES:
        raise argparse.ArgumentTypeError(f"unknown name {name!r}; use one of {', '.join(NAMES)}")
    return name, [int(word) if name in INTEGERS else float(word) for word in values.split(",")]


def variants(
    base: MethodParameters, varied: Sequence[tuple[str, list[float]]]
) -> Iterator[tuple[str, MethodParameters]]:
    """Yield the given parameters, then variants with one of them changed."""
    yield "as given", base
    for name, values in varied:
        for value in values:
            changed: dict[str, float] = {name: value}
            if name == "n_pos" and base.n_pos and base.n_unl:  # keep the ratio of the two bag sizes
                changed["n_unl"] = round(value * base.n_unl / base.n_pos)
            yield f"{name} {value:g}", replace(base, **changed)  # type: ignore[arg-type]


def areas(data: BenchmarkData, cell: Cell, params: MethodParameters) -> tuple[float, float]:
    """Return the trapezoidal PR AUC and the average precision on the test rows, in percent."""
    drawn = data.draw(cell)
    known = MemoryData(drawn.positives, drawn.unlabeled, groups=drawn.groups)
    seeded = replace(params, seed=cell.seed(data.seed))
    _, model = train_on(known, TrainingChoice.from_params(seeded, decision="votes"), Run(jobs=1))
    values = Predictor(model.ensemble).decisions(drawn.test).by("votes")
    ranking = ScoredLabels.from_scores(drawn.truth, values)
    return 100 * float(ranking.pr_auc_trapezoid()), 100 * float(ranking.average_precision())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("values", nargs="+", type=values_of, metavar="NAME=VALUE")
    parser.add_argument("--data-dir", default=".")
    parser.add_argument("--task", required=True, choices=PAPER_TASKS, metavar="NAME")
    parser.add_argument("--setting", default=SETTINGS[0], choices=SETTINGS)
    parser.add_argument("--repetitions", type=int, default=1, metavar="N")
    parser.add_argument("--vary", action="append", default=[], type=values_of, metavar="NAME=LIST")
    given = parser.parse_args()
    task = PAPER_TASKS[given.task]
    data = BenchmarkData(given.data_dir, PAPER_TASKS, None, 0)
    base = replace(
        Protocol("paper", default_grids()).params("resvm", task.family, 0),
        n_models=MEMBERS,
        **{name: values[0] for name, values in given.values},
    )
    cells = [
        Cell(given.setting, task.name, repetition, *task.contaminations(given.setting))
        for repetition in range(given.repetitions)
    ]
    with parallel.inner_threads_held(), silenced():
        for name, params in variants(base, given.vary):
            found = np.array([areas(data, cell, params) for cell in cells])
            trapezoid, precision = found.mean(axis=0)
            each = " ".join(f"{area:.1f}" for area in found[:, 0])
            print(f"{name:14} trapezoid {trapezoid:5.1f}  AP {precision:5.1f}  {each}", flush=True)


if __name__ == "__main__":
    main()
