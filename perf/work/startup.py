"""Start-up: what a command costs before it does anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from perf.bench import Bench
from perf.case import Asked, Case, Group
from perf.data import MNIST, MNIST_TEST
from perf.ensembles import Ensemble
from perf.measure import command

TITLE = "Start-up"
ROUNDS = 4  # short runs vary more, and cost little
TYPER = 'python -c "import typer"'
NUMPY = 'python -c "import typer, numpy"'


def groups(bench: Bench) -> Iterator[Group]:
    yield Group(
        "nothing to do",
        (
            Case("resvm --version", bench.resvm("--version")),
            Case("resvm --help", bench.resvm("--help")),
            Case(TYPER, command(sys.executable, "-c", "import typer")),
        ),
        (Asked("--version against importing typer", 1.5, "resvm --version", (TYPER,), "most"),),
        repeats=ROUNDS,
    )
    n_models = min(bench.sizes.members)
    problem = bench.data.problem(MNIST, MNIST_TEST, 7, bench.command)
    model = Ensemble(bench, problem, "linear", n_models).model()
    row = bench.data.head(problem.test, 1)
    ours = f"resvm predict, one row, {n_models} linear members"
    yield Group(
        "one row",
        (
            Case(ours, bench.resvm("predict", "-q", model, row, threads=1)),
            Case(NUMPY, command(sys.executable, "-c", "import typer, numpy")),
        ),
        (Asked("one row against importing typer and numpy", 2.0, ours, (NUMPY,), "most"),),
        repeats=ROUNDS,
    )
