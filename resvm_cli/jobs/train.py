"""P and U to a model directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli import __version__, parallel
from resvm_cli.dataset import FloatArray, IntArray, Rows
from resvm_cli.ensemble.methods import Plan, settle
from resvm_cli.ensemble.model import Ensemble, numeric_fingerprint
from resvm_cli.ensemble.params import ResvmParams
from resvm_cli.ensemble.parts import Part, out_of_bag_decisions, train_part
from resvm_cli.ensemble.pu_data import PUData
from resvm_cli.errors import CommandLineError
from resvm_cli.files import model_dir
from resvm_cli.files.model_text import format_members
from resvm_cli.files.out_of_bag_table import OutOfBag
from resvm_cli.jobs.training_data import Progress, TrainingData
from resvm_cli.jobs.training_input import TrainingInput
from resvm_cli.parallel import available_cores
from resvm_cli.svm import liblinear, libsvm
from resvm_cli.svm.kernels import Kernel

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
    """An ensemble in memory, as one part, and its manifest but for the members."""

    part: Part
    description: dict[str, Any]

    @property
    def plan(self) -> Plan:
        return self.part.plan

    @property
    def ensemble(self) -> Ensemble:
        return self.part.fitted.ensemble

    @property
    def n_unconverged(self) -> int:
        return self.part.fitted.n_unconverged


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
        manifest = save(trained, target, force=force)
    return TrainResult(target, manifest, trained.plan, trained.n_unconverged, tuple(notes))


def check(source: TrainingInput, params: ResvmParams) -> None:
    """Refuse what cannot work, before any file is read."""
    source.check()
    params.check()
    if source.unchecked and Kernel(params.kernel).uses_gamma and params.gamma == "scale":
        raise CommandLineError(
            "--no-check needs -g NUMBER or -t linear: gamma scale comes from all rows of U"
        )


def train_on(
    data: PUData,
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

    def workers(positives: Rows, unlabeled: Rows) -> int:
        _note_density(data, len(positives) + len(unlabeled), notice)
        return jobs or _worthwhile_threads(plan, positives, unlabeled)

    def tick(done: int, total: int) -> None:
        progress("training", done, total)

    part = train_part(plan, range(plan.n_models), data, workers, tick)
    if part.fitted.n_unconverged:
        notice(
            f"{part.fitted.n_unconverged} of {plan.n_models} members stopped at"
            f" {SOLVER_NAMES[plan.solver]}'s iteration limit: {UNFINISHED[plan.solver]}"
        )
    return Trained(part, describe(plan, data, part.fitted.n_unconverged))


def save(trained: Trained, target: str, *, force: bool) -> dict[str, Any]:
    """Write the model, with what members say of the known positives they have not seen."""
    return model_dir.save(
        target,
        format_members(trained.ensemble),
        trained.description,
        force=force,
        out_of_bag=stored_table(trained.part.judged, trained.part.values),
    )


def stored_table(judged: IntArray, values: FloatArray) -> OutOfBag | None:
    """The known positives that some member has not seen, from all members' values of them."""
    if not len(judged):
        return None
    decisions = out_of_bag_decisions(values)
    kept = decisions.n_members > 0
    return OutOfBag(judged[kept] + 1, decisions.values[kept], decisions.n_members[kept])


def _tuned(
    params: ResvmParams,
    kept: Sequence[str],
    data: PUData,
    jobs: int | None,
    progress: Progress,
    notice: Callable[[str], None],
) -> ResvmParams:
    """The parameters with those that the user left open chosen out of bag."""
    from resvm_cli.jobs.params_file import merged
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


def _note_density(data: PUData, n_rows: int, notice: Callable[[str], None]) -> None:
    if data.scaling is not None and data.scaling.moves_zeros:
        cells = n_rows * len(data.scaling.indices)
        notice(
            f"--scale {data.scaling.kind} gives zeros a value, so rows become dense:"
            f" about {cells * DENSE_BYTES / 1e6:,.0f} MB; maxabs would keep them sparse"
        )


def _worthwhile_threads(plan: Plan, positives: Rows, unlabeled: Rows) -> int:
    n_rows = len(positives) + len(unlabeled)
    row_length = (len(positives.values) + len(unlabeled.values)) / n_rows
    work = plan.n_models * plan.bag_size**2 * (row_length + 8)
    return 1 if work < SMALL_WORK else available_cores()


def describe(plan: Plan, data: PUData, n_unconverged: int | None) -> dict[str, Any]:
    """The manifest, without its members: nothing here depends on time, place or paths."""
    drawn = plan.description()
    solver = drawn.pop("solver")
    version = libsvm.version() if solver == "libsvm" else liblinear.version()
    return {
        **drawn,
        "labels": {"positive": 1, "unlabeled": -1, "trained_on": data.positive_label},
        "n_features": data.n_features,
        "zero_based": data.zero_based,
        "scaling": None if data.scaling is None else data.scaling.description(),
        "data": data.description(),
        "solver": solver,
        "unconverged": n_unconverged,
        "versions": {"resvm": __version__, "numpy": np.__version__, solver: version},
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
