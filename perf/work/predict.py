"""Prediction: all members' values of all test rows, then votes and d, written as text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from perf import agreement
from perf.bench import Bench
from perf.case import Asked, Case, Group
from perf.data import MNIST, MNIST_TEST
from perf.ensembles import Ensemble
from perf.programs import SCRIPTS_ASKED, SVC_STACKED, Program, programs

TITLE = "Prediction"
OURS = "resvm predict, one thread"
THREADED = "resvm predict, default threads"
BOUNDS = {"linear": 60.0, "rbf": 40.0}


def groups(bench: Bench) -> Iterator[Group]:
    problem = bench.data.problem(MNIST, MNIST_TEST, 7, bench.command)
    for n_models in bench.sizes.members:
        for kernel in ("linear", "rbf"):
            ensemble = Ensemble(bench, problem, kernel, n_models)
            peers = list(programs(ensemble))
            if kernel == "linear" and bench.wants(SVC_STACKED.peer):
                peers.insert(2, SVC_STACKED)
            yield Group(
                f"{n_models} {kernel} members, {bench.sizes.test_rows:,} rows x"
                f" {problem.n_features} features ({bench.data.describe(MNIST_TEST)})",
                [*resvm(ensemble), *(peer(ensemble, program) for program in peers)],
                _asked(bench, n_models, kernel),
            )


def resvm(ensemble: Ensemble) -> Iterator[Case]:
    """resvm on the ensemble's test rows with one thread, then as many as it likes."""
    rows, model = ensemble.problem.test, ensemble.model()
    single, threaded = ensemble.folder / "resvm.pred", ensemble.folder / "resvm.threads.pred"

    def case(name: str, threads: int | None) -> Case:
        output = single if threads else threaded
        same = partial(agreement.same_bytes, single, threaded)
        return Case(
            name,
            ensemble.bench.resvm("predict", "-q", "--votes", model, rows, threads=threads),
            output,
            threads=threads,
            check=None if threads else same,
        )

    yield case(OURS, 1)
    yield case(THREADED, None)


def peer(ensemble: Ensemble, program: Program) -> Case:
    """A peer that judges them with the members it trained."""
    rows, model = program.judged(ensemble), program.target(ensemble)
    output = ensemble.folder / f"{program.title}{program.way}.pred"
    cut = program.part(ensemble, model, output)
    return Case(
        program.title + program.way,
        cut[0] if cut else program.predict(ensemble, model, rows, output),
        prepare=partial(program.trained, ensemble),
        check=partial(program.check_predictions, ensemble, rows, output),
        part=cut[1] if cut else None,
    )


def _asked(bench: Bench, n_models: int, kernel: str) -> tuple[Asked, ...]:
    if n_models != max(bench.sizes.members):
        return ()
    asked = [
        Asked(f"{n_models} {kernel} members against {what}", BOUNDS[kernel], OURS, (name,), "least")
        for what, name in SCRIPTS_ASKED.items()
    ]
    if kernel == "rbf":
        asked.append(Asked("default threads against one", 1.6, THREADED, (OURS,), "least"))
    return tuple(asked)
