"""Bags larger than in the authors' example, where the lead is thin; and many members, one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from perf.bench import Bench
from perf.case import Asked, Case, Group
from perf.data import COVTYPE, MNIST, MNIST_TEST
from perf.ensembles import Ensemble
from perf.programs import INTELEX, programs
from perf.work import predict, train

TITLE = "Larger bags, and many members"
FASTER_THAN_INTELEX = 3.0


def groups(bench: Bench) -> Iterator[Group]:
    sizes = bench.sizes
    larger = replace(
        sizes,
        rows_pos=sizes.large_rows[0],
        rows_unl=sizes.large_rows[1],
        n_pos=sizes.large_bag[0],
        n_unl=sizes.large_bag[1],
        test_rows=sizes.large_test_rows,
        generated_rows=2 * sum(sizes.large_rows),
    )
    large = replace(bench, sizes=larger, data=bench.data.sized(larger))
    problem = large.data.problem(COVTYPE, COVTYPE, 1, bench.command)
    for kernel in ("linear", "rbf"):
        ensemble = Ensemble(large, problem, kernel, sizes.large_members)
        what = (
            f"{sizes.large_members} {kernel} members of {larger.n_pos} + {larger.n_unl:,} rows"
            f" ({large.data.describe(COVTYPE)})"
        )
        yield Group(
            f"train {what}",
            [
                *train.resvm(ensemble),
                *(train.peer(ensemble, program) for program in programs(ensemble)),
            ],
        )
        yield Group(
            f"predict {larger.test_rows:,} rows, {what}",
            [
                *predict.resvm(ensemble),
                *(predict.peer(ensemble, program) for program in programs(ensemble)),
            ],
            (
                Asked(
                    f"{kernel} against scikit-learn-intelex",
                    FASTER_THAN_INTELEX,
                    predict.OURS,
                    (INTELEX.title,),
                    "least",
                ),
            ),
        )
    yield _one_row(bench)


def _one_row(bench: Bench) -> Group:
    """What it takes to read a model."""
    problem = bench.data.problem(MNIST, MNIST_TEST, 7, bench.command)
    row = bench.data.head(problem.test, 1)
    cases = []
    for n_models in (min(bench.sizes.members), bench.sizes.many_members):
        ensemble = Ensemble(bench, problem, "rbf", n_models)
        model = ensemble.folder / "resvm.libsvm"
        cases += [
            Case(
                f"resvm predict, {n_models:,} members, {words}",
                bench.resvm("predict", "-q", model, row, threads=threads),
                threads=threads,
                prepare=partial(ensemble.model, "libsvm"),
            )
            for words, threads in (("one thread", 1), ("default threads", None))
        ]
    return Group("one row", cases)
