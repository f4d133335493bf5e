"""P and U to a model directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli import __version__, parallel
from resvm_cli.dataset import IntArray, Rows
from resvm_cli.ensemble import bags
from resvm_cli.ensemble.fit import fit, rows_drawn
from resvm_cli.ensemble.methods import Plan, ResvmParams, problems, settle
from resvm_cli.ensemble.model import Ensemble, Predictor, numeric_fingerprint
from resvm_cli.ensemble.oob import judge_positives, sampled_rows
from resvm_cli.errors import CommandLineError
from resvm_cli.files import model_dir
from resvm_cli.files.out_of_bag_table import OutOfBag
from resvm_cli.jobs.training_data import Progress, TrainingData
from resvm_cli.jobs.training_input import TrainingInput
from resvm_cli.svm import liblinear, libsvm
from resvm_cli.svm.problem import Problem

# So many known positives place a recall to a few hundredths; more would only cost time.
MOST_OUT_OF_BAG = 1000
# Below about this many kernel products a second thread is not worth waking.
SMALL_WORK = 1e8
# A number of a dense row: twice as it is joined with others, and once more as bags are cut.
DENSE_BYTES = 40
UNFINISHED = {
    "libsvm": "scale the features or lower -c",
    "liblinear": "they are approximate; lower -c or -B, or use --solver libsvm, which is slower",
}
SOLVER_NAMES = {"libsvm": "LIBSVM", "liblinear": "LIBLINEAR"}


@dataclass(frozen=True)
class TrainResult:
    """What was trained, for the report."""

    path: str
    manifest: dict[str, Any]
    plan: Plan
    n_unconverged: int
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Trained:
    """An ensemble in memory, what it was trained on, and its manifest but for the members."""

    plan: Plan
    ensemble: Ensemble
    problems: Sequence[Problem]  # what its members were trained on
    drawn: IntArray  # the rows of U that any bag holds, ascending
    unlabeled: Rows  # those rows, unscaled
    n_unconverged: int
    description: dict[str, Any]


def train(
    source: TrainingInput,
    params: ResvmParams,
    target: str,
    *,
    auto: Sequence[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    progress: Progress,
    notice: Callable[[str], None] = lambda text: None,
) -> TrainResult:
    """Read P and U, train the ensemble, write the model.

    With ``auto`` parameters are tuned first, except those it names. ``notice`` is told what the
    user should know before it happens.
    """
    check(source, params)
    model_dir.check_target(target, force=force)
    notes: list[str] = []

    def tell(text: str) -> None:
        notes.append(text)
        notice(text)

    with (
        parallel.inner_threads_held(),
        TrainingData(source, params.method == "cwsvm", progress) as data,
    ):
        trained = train_on(data, params, auto=auto, jobs=jobs, progress=progress, notice=tell)
        manifest = save(trained, data, target, force=force)
    return TrainResult(target, manifest, trained.plan, trained.n_unconverged, tuple(notes))


def check(source: TrainingInput, params: ResvmParams) -> None:
    """Refuse what cannot work, before any file is read."""
    source.check()
    params.check()
    if source.unchecked and params.kernel != "linear" and params.gamma == "scale":
        raise CommandLineError(
            "--no-check needs -g NUMBER or -t linear: gamma scale comes from all rows of U"
        )


def train_on(
    data: TrainingData,
    params: ResvmParams,
    *,
    auto: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: Progress,
    notice: Callable[[str], None] = lambda text: None,
) -> Trained:
    """Train an ensemble on sets that are read already."""
    if auto is not None:
        params = _tuned(params, auto, data, jobs, progress, notice)
    plan = settle(params, len(data.positives), data.n_unlabeled, data.n_features, data.variance)
    for text in (*data.notes, *_warnings(plan)):
        notice(text)
    tasks = list(problems(plan, range(plan.n_models)))
    drawn = rows_drawn(tasks)
    unlabeled = data.fetch(drawn)
    ensemble, n_unconverged = _fit(plan, tasks, data, drawn, unlabeled, jobs, progress, notice)
    if n_unconverged:
        notice(
            f"{n_unconverged} of {plan.n_models} members stopped at"
            f" {SOLVER_NAMES[plan.solver]}'s iteration limit: {UNFINISHED[plan.solver]}"
        )
    description = _describe(plan, data, n_unconverged)
    return Trained(plan, ensemble, tasks, drawn, unlabeled, n_unconverged, description)


def save(trained: Trained, data: TrainingData, target: str, *, force: bool) -> dict[str, Any]:
    """Write the model, with what members say of the known positives their bags lack."""
    plan, out_of_bag = trained.plan, None
    if plan.method == "resvm":
        numbers, values, members = judge_positives(
            Predictor(trained.ensemble, data.scaling),
            trained.problems,
            data.positives,
            sampled_rows(len(data.positives), MOST_OUT_OF_BAG, plan.seed),
        )
        out_of_bag = OutOfBag(numbers + 1, values, members)
    return model_dir.save(
        target, trained.ensemble, trained.description, force=force, out_of_bag=out_of_bag
    )


def _tuned(
    params: ResvmParams,
    kept: Sequence[str],
    data: TrainingData,
    jobs: int | None,
    progress: Progress,
    notice: Callable[[str], None],
) -> ResvmParams:
    """The parameters with those that the user left open chosen out of bag."""
    from resvm_cli.jobs.chosen_params import merged
    from resvm_cli.jobs.tune import tune_quickly

    winner = tune_quickly(data, params, kept, jobs, progress, notice)
    scores = winner.trial.scores
    assert scores is not None
    selected = winner.params["selected_by"]
    notice(
        f"tuned out of bag: {selected['metric']} {selected['score']:.4f} (selected, so optimistic),"
        f" the best of {winner.n_trials} candidates; recall {scores.recall:.3f},"
        f" {100 * scores.fraction_positive:.3g} % predicted positive"
    )
    return merged(params, winner.params, kept)


def _fit(
    plan: Plan,
    tasks: Sequence[Problem],
    data: TrainingData,
    drawn: IntArray,
    unlabeled: Rows,
    jobs: int | None,
    progress: Progress,
    notice: Callable[[str], None],
) -> tuple[Ensemble, int]:
    positives = data.positives
    if data.scaling is not None:
        if data.scaling.moves_zeros:
            cells = (len(positives) + len(unlabeled)) * len(data.scaling.indices)
            notice(
                f"--scale {data.scaling.kind} gives zeros a value, so rows become dense:"
                f" about {cells * DENSE_BYTES / 1e6:,.0f} MB; maxabs would keep them sparse"
            )
        positives, unlabeled = data.scaling.apply(positives), data.scaling.apply(unlabeled)
    row_length = (len(positives.values) + len(unlabeled.values)) / (len(positives) + len(drawn))
    work = plan.n_models * plan.bag_size**2 * (row_length + 8)
    workers = jobs or (1 if work < SMALL_WORK else parallel.available_cores())
    return fit(
        tasks,
        positives,
        unlabeled,
        drawn,
        single=plan.method == "cwsvm",
        workers=workers,
        progress=lambda done, total: progress("training", done, total),
    )


def _describe(plan: Plan, data: TrainingData, n_unconverged: int) -> dict[str, Any]:
    """The manifest, without its members: nothing here depends on time, place or paths."""
    kernel: dict[str, Any] = {"name": plan.kernel.name}
    if plan.kernel.uses_gamma:
        kernel["gamma"] = plan.kernel.gamma
    if plan.kernel.uses_coef0:
        kernel["coef0"] = plan.kernel.coef0
    if plan.kernel.uses_degree:
        kernel["degree"] = plan.kernel.degree
    solver = libsvm if plan.solver == "libsvm" else liblinear
    return {
        "method": plan.method,
        "kernel": kernel,
        "parameters": plan.parameters(),
        "seed": plan.seed,
        "bags": bags.RULE,
        "labels": {"positive": 1, "unlabeled": -1, "trained_on": data.input.positive_label},
        "n_features": data.n_features,
        "zero_based": data.input.zero_based,
        "scaling": None if data.scaling is None else data.scaling.description(),
        "data": data.description(),
        "solver": plan.solver,
        "unconverged": n_unconverged,
        "versions": {
            "resvm": __version__,
            "numpy": np.__version__,
            plan.solver: solver.version(),
        },
        "numeric_fingerprint": numeric_fingerprint(),
    }


def _warnings(plan: Plan) -> list[str]:
    """What the user should know of the plan before it is carried out."""
    if plan.method == "cwsvm":
        return []
    return [
        f"bags hold {name} = {size} rows of {which}, which has only {there}:"
        " rows repeat (drawn with replacement)"
        for name, size, there, which in (
            ("n_pos", plan.n_pos, plan.rows_pos, "P"),
            ("n_unl", plan.n_unl, plan.rows_unl, "U"),
        )
        if size > there
    ]
