"""Training: the same bags and penalties for everyone, models written to disk."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from perf import agreement
from perf.agreement import Agreement
from perf.bench import Bench
from perf.case import Asked, Case, Group
from perf.data import MNIST, MNIST_TEST
from perf.ensembles import Ensemble
from perf.programs import SCRIPTS_ASKED, Program, programs

TITLE = "Training"
OURS = "resvm train, one thread"


def groups(bench: Bench) -> Iterator[Group]:
    problem = bench.data.problem(MNIST, MNIST_TEST, 7, bench.command)
    sizes = bench.sizes
    for n_models in sizes.members:
        for kernel in ("linear", "rbf"):
            ensemble = Ensemble(bench, problem, kernel, n_models)
            cases = [*resvm(ensemble), *(peer(ensemble, each) for each in programs(ensemble))]
            yield Group(
                f"{n_models} {kernel} members of {sizes.n_pos} + {sizes.n_unl} rows"
                f" ({bench.data.describe(MNIST)}, {sizes.rows_pos} + {sizes.rows_unl:,} rows)",
                cases,
                _asked(bench, n_models, kernel),
            )


def peer(ensemble: Ensemble, program: Program) -> Case:
    """A peer that trains these members."""
    return Case(
        program.title,
        program.train(ensemble, program.target(ensemble)),
        check=partial(program.check_members, ensemble),
    )


def resvm(ensemble: Ensemble) -> Iterator[Case]:
    """resvm with one thread, then as many as it likes, then by LIBLINEAR."""

    def manifest(target: Path) -> Path:
        return target / "manifest.json"  # which holds the digest of every member

    def case(name: str, solver: str, threads: int | None) -> Case:
        target = ensemble.folder / f"timed.{solver}.{threads}"

        def check() -> Agreement:
            return agreement.same_bytes(manifest(ensemble.model(solver)), manifest(target))

        return Case(
            name,
            ensemble.resvm_train(target, solver, threads),
            threads=threads,
            reset=partial(ensemble.fresh, target),
            check=check,
        )

    yield case(OURS, "libsvm", 1)
    yield case("resvm train, default threads", "libsvm", None)
    if ensemble.kernel == "linear":
        yield case("resvm train --solver liblinear, one thread", "liblinear", 1)


def _asked(bench: Bench, n_models: int, kernel: str) -> tuple[Asked, ...]:
    if n_models != max(bench.sizes.members):
        return ()
    return tuple(
        Asked(f"{n_models} {kernel} members against {what}", 4.0, OURS, (name,), "least")
        for what, name in SCRIPTS_ASKED.items()
    )
