"""Start-up: what a command costs before it does anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from experiments.speed.bench import Bench
from experiments.speed.contest import Case, Group
from experiments.speed.ensembles import Ensemble
from experiments.speed.measure import command
from experiments.speed.members import AUTHORS

ROUNDS = 4  # short runs vary more, and cost little
TYPER = 'python -c "import typer"'
NUMPY = 'python -c "import typer, numpy"'


def groups(bench: Bench) -> Iterator[Group]:
    yield Group(
        "start-up, nothing to do",
        (
            Case("resvm --version", bench.resvm("--version")),
            Case("resvm --help", bench.resvm("--help")),
            Case(TYPER, command(sys.executable, "-c", "import typer")),
        ),
        repeats=ROUNDS,
    )
    n_models = min(AUTHORS.members)
    problem = bench.data.problem(AUTHORS, bench.command)
    model = Ensemble(bench, problem, "linear", n_models).model()
    row = bench.data.head(problem.test, 1)
    ours = f"resvm predict, one row, {n_models} linear members"
    yield Group(
        "start-up, one row",
        (
            Case(ours, bench.resvm("predict", "-q", model, row, threads=1)),
            Case(NUMPY, command(sys.executable, "-c", "import typer, numpy")),
        ),
        repeats=ROUNDS,
    )
