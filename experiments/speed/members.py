"""Training and prediction: the same bags and penalties for everyone, models written to disk.

Training includes reading and checking P and U; prediction includes the values of all members, votes
and d, written as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from experiments.speed import agreement
from experiments.speed.agreement import Agreement
from experiments.speed.bench import Bench
from experiments.speed.contest import Case, Group
from experiments.speed.data import COVTYPE, IJCNN, IJCNN_TEST, MNIST, MNIST_TEST, Scenario
from experiments.speed.ensembles import Ensemble
from experiments.speed.programs import SVC_STACKED, Program, programs

AUTHORS = Scenario(MNIST, MNIST_TEST, 7, 50, 2_000, 10, 100, (50, 200), 10_000)
SCENARIOS = (
    AUTHORS,
    # larger bags, with which the lead is smaller, and the same with large penalties
    Scenario(COVTYPE, COVTYPE, 1, 1_000, 40_000, 100, 1_000, (40,), 20_000),
    Scenario(IJCNN, IJCNN_TEST, 1, 1_000, 20_000, 100, 500, (40,), 1_000, 100.0, predicts=False),
)


def ensembles(bench: Bench, scenarios: tuple[Scenario, ...]) -> Iterator[Ensemble]:
    for scenario in scenarios:
        problem = bench.data.problem(scenario, bench.command)
        for n_models in scenario.members:
            for kernel in ("linear", "rbf"):
                yield Ensemble(bench, problem, kernel, n_models)


def training(bench: Bench, scenarios: tuple[Scenario, ...] = SCENARIOS) -> Iterator[Group]:
    for ensemble in ensembles(bench, scenarios):
        cases = [*resvm_train(ensemble)]
        cases += [train_case(ensemble, program) for program in programs(ensemble)]
        yield Group(f"train {ensemble.title}", cases)


def prediction(bench: Bench, scenarios: tuple[Scenario, ...] = SCENARIOS) -> Iterator[Group]:
    wanted = tuple(scenario for scenario in scenarios if scenario.predicts)
    for ensemble in ensembles(bench, wanted):
        peers = list(programs(ensemble))
        if ensemble.kernel == "linear" and bench.wants(SVC_STACKED.peer):
            peers.insert(2, SVC_STACKED)
        cases = [*resvm_predict(ensemble)]
        cases += [predict_case(ensemble, program) for program in peers]
        n_rows = ensemble.problem.scenario.test_rows
        yield Group(f"predict {n_rows:,} rows, {ensemble.title}", cases)


def resvm_train(ensemble: Ensemble) -> Iterator[Case]:
    """resvm with one thread, then as many as it likes, then by LIBLINEAR."""

    def case(name: str, solver: str, threads: int | None) -> Case:
        target = ensemble.folder / f"timed.{solver}.{threads}"

        def check() -> Agreement:
            # the manifest holds the digest of every member
            paths = [path / "manifest.json" for path in (ensemble.model(solver), target)]
            return agreement.same_bytes(*paths)

        return Case(
            name,
            ensemble.resvm_train(target, solver, threads),
            threads=threads,
            reset=partial(ensemble.set_aside, target),
            check=check,
        )

    yield case("resvm train, one thread", "libsvm", 1)
    yield case("resvm train, default threads", "libsvm", None)
    if ensemble.kernel == "linear":
        yield case("resvm train --solver liblinear, one thread", "liblinear", 1)


def train_case(ensemble: Ensemble, program: Program) -> Case:
    """A peer that trains these members."""
    steps = program.train(ensemble, program.target(ensemble))
    return Case(program.title, steps, check=partial(program.check_members, ensemble))


def resvm_predict(ensemble: Ensemble) -> Iterator[Case]:
    """resvm on the test rows with one thread, then as many as it likes."""
    rows, model = ensemble.problem.test, ensemble.model()
    single, threaded = ensemble.folder / "resvm.pred", ensemble.folder / "resvm.threads.pred"

    def case(name: str, output: Path, threads: int | None) -> Case:
        steps = ensemble.bench.resvm("predict", "-q", "--votes", model, rows, threads=threads)
        check = None if threads else partial(agreement.same_bytes, single, threaded)
        return Case(name, steps, output, threads=threads, check=check)

    yield case("resvm predict, one thread", single, 1)
    yield case("resvm predict, default threads", threaded, None)


def predict_case(ensemble: Ensemble, program: Program) -> Case:
    """A peer that scores the rows with the members that it trained."""
    rows, model = ensemble.problem.test, program.target(ensemble)
    output = ensemble.folder / f"{program.title}{program.how}.pred"
    return Case(
        program.title + program.how,
        program.predict(ensemble, model, rows, output),
        prepare=partial(program.trained, ensemble),
        check=partial(program.check_predictions, ensemble, rows, output),
    )
