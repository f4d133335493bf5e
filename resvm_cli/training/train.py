"""P and U to a model directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.errors import Message, ParameterError, Text
from resvm_cli.model.bags import require_weighted_draws
from resvm_cli.model.ensemble import Ensemble, Group, numeric_fingerprint
from resvm_cli.model.methods import Plan
from resvm_cli.model.parts import Conclusion, Part, conclude, train_part
from resvm_cli.model.plan import ModelPlan
from resvm_cli.model.pu_data import PUData
from resvm_cli.model_files.directory import check_model_target, save_model
from resvm_cli.model_files.members import format_members
from resvm_cli.model_files.out_of_bag_table import OutOfBag
from resvm_cli.parameters import RuleName, Setting
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.solver_libraries import package_version, silenced
from resvm_cli.training import memory
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.data import TrainingData
from resvm_cli.training.expected_performance import Outlook, warnings_of
from resvm_cli.training.input import TrainingInput

# Below about this many kernel products a second thread is not worth waking.
SMALL_WORK = 1e8
LONG_WORK = 3e11  # one to two and a half minutes on one core: members are kept as they are finished
# A number of a dense row: twice as it is joined with others, and once more as bags are cut.
DENSE_BYTES = 40
SLOW_SECONDS = 60.0  # without a member finished
UNFINISHED = {
    "libsvm": "scale the features ({scale:auto}) or lower {c_unl}",
    "liblinear": "they are approximate; lower {c_unl} or {bias}, or use {solver:libsvm}, which is"
    " slower",
}
SOLVER_NAMES = {"libsvm": "LIBSVM", "liblinear": "LIBLINEAR"}


@dataclass(frozen=True)
class TrainResult:
    """What was trained, for the report."""

    path: str
    manifest: dict[str, Any]
    plan: ModelPlan
    outlook: Outlook
    n_unconverged: int
    notes: tuple[Text, ...]


@dataclass(frozen=True, eq=False)
class Trained:
    """A model in memory, as one part, what follows of it, and its manifest but for the members."""

    part: Part
    conclusion: Conclusion
    outlook: Outlook
    description: dict[str, Any]

    @property
    def plan(self) -> ModelPlan:
        return self.part.plan

    @property
    def ensemble(self) -> Ensemble:
        return replace(self.part.fitted.ensemble, groups=self.conclusion.groups)


def train(
    source: TrainingInput,
    choice: TrainingChoice,
    target: str,
    run: Run,
    *,
    force: bool = False,
    resume: bool = False,
) -> TrainResult:
    """Read P and U, train the ensemble, write the model.

    What takes long, and what is resumed, is kept member by member beside the target until it is
    whole.
    """
    from resvm_cli.training.parts import check_beside, discard_left_beside, train_beside

    check(source, choice)
    source = source.for_kernel(choice.params.kernel)
    discard_left_beside(target)
    check_model_target(target, force=force)
    check_beside(target, resume=resume, force=force)
    with (
        parallel.inner_threads_held(),
        silenced(),
        TrainingData(
            source, choice.params.method == "cwsvm", run, memory.kept_nonzeros(run.memory_mb)
        ) as data,
    ):
        plan, decision = prepared(data, choice, run)
        # tuning has told already what the run will use
        telling = run.silent() if choice.auto else run
        allotment = allotted(plan, data, telling, in_rounds=not plan.single)
        if resume or allotment.members_at_once or _takes_long(plan, data):
            return train_beside(data, allotment, decision, target, run, force=force)
        trained = _trained(data, allotment, decision, run)
        manifest = save(trained, target, force=force)
    n_unconverged = trained.part.fitted.n_unconverged
    return TrainResult(
        target, manifest, trained.plan, trained.outlook, n_unconverged, tuple(run.notes)
    )


def check(source: TrainingInput, choice: TrainingChoice) -> None:
    """Refuse what cannot work, before any file is read."""
    source.check()
    choice.check()
    params = choice.params
    if source.weights is not None:
        require_weighted_draws(params.method)
    if source.unchecked and Kernel(params.kernel).uses_gamma and params.gamma == "scale":
        raise ParameterError(
            "{unchecked:True} needs a number for {gamma}, or {kernel:linear}: {gamma:scale} comes"
            " from all rows of U"
        )


def train_on(
    data: PUData,
    choice: TrainingChoice,
    run: Run,
    *,
    ranked: Callable[[ModelPlan], tuple[float, float]] | None = None,
) -> Trained:
    """Train an ensemble on sets that are read already.

    ``ranked`` tells the memory of what follows.
    """
    plan, decision = prepared(data, choice, run)
    allotment = allotted(plan, data, run, ranked=ranked)
    return _trained(data, allotment, decision, run)


def allotted(
    plan: ModelPlan,
    data: PUData,
    run: Run,
    *,
    in_rounds: bool = False,
    ranked: Callable[[ModelPlan], tuple[float, float]] | None = None,
) -> memory.Allotment:
    """What the training may use, told before it starts."""
    small = _work(plan, _row_length(data)) < SMALL_WORK
    wanted = 1 if small and run.jobs is None else run.workers()
    allotment, need = memory.allot_training(
        plan, data, wanted, run.memory_mb, in_rounds=in_rounds, ranked=ranked
    )
    memory.announce([need], allotment.threads, run)
    return allotment


def prepared(data: PUData, choice: TrainingChoice, run: Run) -> tuple[ModelPlan, RuleName]:
    """All that members are trained by, settled on the data, and how they decide."""
    settings, decision = choice.settings, choice.decision or "votes"
    if choice.auto is not None:
        settings, chosen_decision = _tuned(choice, data, run)
        decision = choice.decision or chosen_decision
    plan = ModelPlan.settled(
        settings,
        len(data.positives),
        data.n_unlabeled,
        data.n_features,
        data.variance,
        data.positive_weights,
    )
    for text in (*data.notes, *_remarks(plan)):
        run.notice(text)
    return plan, decision


def _trained(data: PUData, allotment: memory.Allotment, decision: RuleName, run: Run) -> Trained:
    plan = allotment.plan
    part = train_part(
        plan,
        range(plan.n_models),
        data,
        replace(run, jobs=allotment.threads),
        watched(plan, plan.n_models, run),
        lambda n_rows: _note_density(data, n_rows, run),
    )
    conclusion = conclude(plan, decision, part.judged, part.values)
    outlook = Outlook.of(conclusion)
    n_unconverged = part.fitted.n_unconverged
    warnings = warnings_of(data, part, conclusion, outlook)
    for text in (*unfinished_note(plan, n_unconverged), *warnings):
        run.notice(text)
    description = completed(describe(plan, data, conclusion.groups), conclusion, n_unconverged)
    return Trained(part, conclusion, outlook, description)


def watched(plan: ModelPlan, total: int, run: Run) -> Callable[[int], None]:
    """Progress over ``total`` members that also says, once, when one takes very long."""
    last_change, last_done, told = time.monotonic(), 0, False

    def tick(done: int) -> None:
        nonlocal last_change, last_done, told
        run.progress("training", done, total)
        now = time.monotonic()
        if done != last_done:
            last_change, last_done = now, done
        elif not told and now - last_change > SLOW_SECONDS:
            told = True
            run.notice(
                Message(
                    "member {number} of {total} has been training for over {seconds:.0f} s:"
                    " unscaled features and a large {c_unl} cause that (try {scale:auto}, or lower"
                    " {c_unl})",
                    number=done + 1,
                    total=plan.n_models,
                    seconds=SLOW_SECONDS,
                )
            )

    return tick


def save(trained: Trained, target: str, *, force: bool) -> dict[str, Any]:
    """Write the model, with what members say of the rows they have not seen."""
    return save_model(
        target,
        format_members(trained.ensemble),
        trained.description,
        force=force,
        out_of_bag=stored_table(trained.conclusion),
    )


def stored_table(conclusion: Conclusion) -> OutOfBag | None:
    """The rows of P and U that some member has not seen."""
    judged, decisions = conclusion.judged, conclusion.decisions
    if not len(judged):
        return None
    kept = decisions.n_members > 0
    return OutOfBag(
        (np.arange(len(judged)) < len(judged.positive))[kept],
        np.concatenate([judged.positive, judged.unlabeled])[kept] + 1,
        decisions.values[kept],
        decisions.means[kept],
        decisions.n_members[kept],
    )


def _tuned(choice: TrainingChoice, data: PUData, run: Run) -> tuple[tuple[Setting, ...], RuleName]:
    """Settings chosen out of bag, where the user left them open, and how they decide."""
    from resvm_cli.tuning.auto import settle_scaling, tune_quickly

    settle_scaling(data, choice.params, run)
    winner = tune_quickly(
        data,
        choice.params,
        choice.kept,
        run,
        single=choice.auto == "single",
    )
    what = f"the best of {winner.n_trials} settings has"
    if len(winner.settings) > 1:
        what = f"{len(winner.settings)} of {winner.n_trials} settings pooled, the best of which has"
    area = winner.trial.score("roc_auc_of_mean")
    run.notice(
        f"tuned out of bag: {what} a ROC area of {area:.4f}, P against U (selected, so optimistic)"
    )
    return winner.settings, winner.params.get("decision", "votes")


def unfinished_note(plan: ModelPlan, n_unconverged: int) -> list[Text]:
    """What to do about members that the solver gave up on."""
    if not n_unconverged:
        return []
    solver = plan.plans[0].solver
    return [
        Message(
            "{n} of {total} members stopped at {name}'s iteration limit: " + UNFINISHED[solver],
            n=n_unconverged,
            total=plan.n_models,
            name=SOLVER_NAMES[solver],
        )
    ]


def _note_density(data: PUData, n_rows: int, run: Run) -> None:
    if data.scaling is not None and data.scaling.moves_zeros:
        megabytes = n_rows * len(data.scaling.indices) * DENSE_BYTES / 1e6
        if megabytes >= 1:
            run.notice(
                Message(
                    "{scale:" + data.scaling.kind + "} moves zeros, so rows become dense: about"
                    " {megabytes:,.0f} MB; maxabs would keep them sparse",
                    megabytes=megabytes,
                )
            )


def _work(plan: ModelPlan, row_length: float) -> float:
    """About so many multiplications."""
    return sum(each.n_models * each.bag_size**2 for each in plan.plans) * (row_length + 8)


def _row_length(data: PUData) -> float:
    return data.survey_pos.n_nonzeros / len(data.positives)


def _takes_long(plan: ModelPlan, data: PUData) -> bool:
    """Whether losing all that is trained would hurt."""
    return not plan.single and _work(plan, _row_length(data)) >= LONG_WORK


def describe(plan: ModelPlan, data: PUData, groups: Sequence[Group]) -> dict[str, Any]:
    """The manifest, without what follows from members: no time, place or paths in it."""
    solvers = dict.fromkeys(each.solver for each in plan.plans)
    return {
        **plan.description(groups),
        "decision": None,
        "labels": {"positive": 1, "unlabeled": -1, "trained_on": data.positive_label},
        "n_features": data.n_features,
        "zero_based": data.zero_based,
        "scaling": None if data.scaling is None else data.scaling.description(),
        "data": data.description(),
        "unconverged": None,
        "versions": {
            "resvm": __version__,
            "numpy": np.__version__,
            **{solver: package_version(solver) for solver in solvers},
        },
        "numeric_fingerprint": numeric_fingerprint(),
    }


def completed(
    description: dict[str, Any], conclusion: Conclusion, n_unconverged: int
) -> dict[str, Any]:
    """The manifest with what all members together gave."""
    groups = [
        {**setting, "shift": group.shift, "scale": group.scale}
        for setting, group in zip(description["groups"], conclusion.groups, strict=True)
    ]
    return {
        **description,
        "groups": groups,
        "decision": conclusion.rule.description(),
        "unconverged": n_unconverged,
    }


def _remarks(plan: ModelPlan) -> list[str]:
    """What the user should know of the plan before it is carried out."""
    if plan.method == "cwsvm":
        return []
    largest: Plan = max(plan.plans, key=lambda each: each.bag_size)
    return [
        f"bags hold {name} = {size} rows of {which}, which has only {there}:"
        " rows repeat (drawn with replacement)"
        for name, size, there, which in (
            ("n_pos", largest.n_pos, plan.rows_pos, "P"),
            ("n_unl", largest.n_unl, plan.rows_unl, "U"),
        )
        if size > there
    ]
