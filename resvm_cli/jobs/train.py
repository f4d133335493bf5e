"""P and U to a model directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli import __version__, parallel
from resvm_cli.ensemble import bags
from resvm_cli.ensemble.fit import fit, rows_drawn
from resvm_cli.ensemble.methods import Plan, ResvmParams, problems, settle
from resvm_cli.ensemble.model import Ensemble, Predictor, numeric_fingerprint
from resvm_cli.ensemble.oob import judge_positives, sampled_rows
from resvm_cli.errors import CommandLineError
from resvm_cli.files import model_dir
from resvm_cli.files.out_of_bag import OutOfBag
from resvm_cli.jobs.training_data import Progress, TrainingData, TrainingInput
from resvm_cli.svm import liblinear, libsvm

# So many known positives place a recall to a few hundredths; more would only cost time.
MOST_OUT_OF_BAG = 1000
# Below about this many kernel products a second thread is not worth waking.
SMALL_WORK = 5e8
# A number of a dense row: twice as it is joined with others, and once as a node.
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
    source.check()
    params.check()
    if source.unchecked and params.kernel != "linear" and params.gamma == "scale":
        raise CommandLineError(
            "--no-check needs -g NUMBER or -t linear: gamma scale comes from all rows of U"
        )
    model_dir.check_target(target, force=force)
    with (
        parallel.inner_threads_held(),
        TrainingData(source, params.method == "cwsvm", progress) as data,
    ):
        if auto is not None:
            params = _tuned(params, auto, data, jobs, progress, notice)
        plan = settle(params, len(data.positives), data.n_unlabeled, data.n_features, data.variance)
        notes: list[str] = []

        def tell(text: str) -> None:
            notes.append(text)
            notice(text)

        for text in (*data.notes, *_warnings(plan)):
            tell(text)
        ensemble, n_unconverged, out_of_bag = _fit(plan, data, jobs, progress, tell)
        if n_unconverged:
            tell(
                f"{n_unconverged} of {plan.n_models} members stopped at"
                f" {SOLVER_NAMES[plan.solver]}'s iteration limit: {UNFINISHED[plan.solver]}"
            )
        description = _describe(plan, data, source, n_unconverged)
        manifest = model_dir.save(target, ensemble, description, force=force, out_of_bag=out_of_bag)
    return TrainResult(target, manifest, plan, n_unconverged, tuple(notes))


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
    data: TrainingData,
    jobs: int | None,
    progress: Progress,
    notice: Callable[[str], None],
) -> tuple[Ensemble, int, OutOfBag | None]:
    tasks = list(problems(plan, range(plan.n_models)))
    drawn = rows_drawn(tasks)
    positives, unlabeled = data.positives, data.fetch(drawn)
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
    ensemble, n_unconverged = fit(
        tasks,
        positives,
        unlabeled,
        drawn,
        single=plan.method == "cwsvm",
        workers=workers,
        progress=lambda done, total: progress("training", done, total),
    )
    out_of_bag = None
    if plan.method == "resvm":
        chosen = sampled_rows(len(positives), MOST_OUT_OF_BAG, plan.seed)
        numbers, values, members = judge_positives(Predictor(ensemble), tasks, positives, chosen)
        out_of_bag = OutOfBag(numbers + 1, values, members)
    return ensemble, n_unconverged, out_of_bag


def _describe(
    plan: Plan, data: TrainingData, source: TrainingInput, n_unconverged: int
) -> dict[str, Any]:
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
        "labels": {"positive": 1, "unlabeled": -1, "trained_on": source.positive_label},
        "n_features": data.n_features,
        "zero_based": source.zero_based,
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
