"""Bags larger than in the authors' example, where the lead is thin; and many members, one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

from perf.bench import Bench
from perf.case import Asked, Case, Group
from perf.data import COVTYPE, IJCNN, IJCNN_TEST, MNIST, MNIST_TEST
from perf.ensembles import Ensemble
from perf.programs import INTELEX, programs
from perf.work import predict, train

TITLE = "Larger bags, and many members"
FASTER_THAN_INTELEX = 3.0
KERNELS: tuple[Literal["linear", "rbf"], ...] = ("linear", "rbf")


def groups(bench: Bench) -> Iterator[Group]:
    sizes = bench.sizes
    large = _with_bags(bench, sizes.large_rows, sizes.large_bag)
    problem = large.data.problem(COVTYPE, COVTYPE, 1, bench.command)
    for kernel in KERNELS:
        ensemble = Ensemble(large, problem, kernel, sizes.large_members)
        what = _described(ensemble, COVTYPE)
        yield _training(ensemble, what)
        yield Group(
            f"predict {large.sizes.test_rows:,} rows, {what}",
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
    hard = _with_bags(bench, sizes.hard_rows, sizes.hard_bag)
    problem = hard.data.problem(IJCNN, IJCNN_TEST, 1, bench.command)
    for kernel in KERNELS:
        ensemble = Ensemble(hard, problem, kernel, sizes.large_members, sizes.hard_penalty)
        what = _described(ensemble, IJCNN)
        yield _training(ensemble, f"{what}, C_U {sizes.hard_penalty:g}")
    yield _one_row(bench)


def _with_bags(bench: Bench, rows: tuple[int, int], bag: tuple[int, int]) -> Bench:
    """The same with larger sets and bags."""
    sizes = bench.sizes
    rows_pos, rows_unl = rows
    larger = replace(
        sizes,
        rows_pos=rows_pos,
        rows_unl=rows_unl,
        n_pos=bag[0],
        n_unl=bag[1],
        test_rows=sizes.large_test_rows,
        generated_rows=20 * rows_pos + 2 * rows_unl,  # one in ten may be positive
    )
    return replace(bench, sizes=larger, data=bench.data.sized(larger))


def _described(ensemble: Ensemble, name: str) -> str:
    sizes = ensemble.bench.sizes
    return (
        f"{ensemble.n_models} {ensemble.kernel} members of {sizes.n_pos} + {sizes.n_unl:,} rows"
        f" ({ensemble.bench.data.describe(name)})"
    )


def _training(ensemble: Ensemble, what: str) -> Group:
    peers = (train.peer(ensemble, program) for program in programs(ensemble))
    return Group(f"train {what}", [*train.resvm(ensemble), *peers])


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
