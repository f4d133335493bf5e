"""Train a model, or a part of one, from files; resume training and grow models.

Long or resumed runs save finished members in a part directory next to the target until the model is
complete. Each task of an array job writes its part to a separate directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from resvm_cli.errors import FileError, Interrupted, Message, ModelError, ParameterError, Text
from resvm_cli.files.atomic import remove_left_behind
from resvm_cli.model.ensemble import Ensemble
from resvm_cli.model.members import Part, rows_drawn
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.out_of_bag import TrainingRows, UnseenMask, stored_values
from resvm_cli.model.pu_data import PUData
from resvm_cli.model_files.directory import (
    StoredModel,
    check_model_target,
    load_model,
    read_manifest,
    stored_plan,
)
from resvm_cli.model_files.members import read_member
from resvm_cli.model_files.parts import (
    PartDirectory,
    check_part_target,
    is_blank,
    remove_part,
)
from resvm_cli.parameters import MAX_MEMBERS, RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Run, Share
from resvm_cli.svm.libsvm import silenced
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.data import TrainingData
from resvm_cli.training.expected_performance import ExpectedPerformance
from resvm_cli.training.input import TrainingInput
from resvm_cli.training.resource_budget import ResourceBudget, training_budget, work_of
from resvm_cli.training.train import (
    TrainResult,
    announce,
    as_stored,
    check,
    make_plan,
    merge,
    open_part,
    require_same_data,
    save,
    train_missing,
    train_plan,
)

# This many multiplications take 1 to 2.5 minutes on one core. Longer runs save finished members.
LONG_WORK = 3e11


@dataclass(frozen=True)
class PartResult:
    """The part that was written; if it has no members, ``last`` is below ``first``."""

    part: str  # its path
    first: int
    last: int
    n_trained: int  # all other members already existed
    n_members: int  # in the complete model


def train(
    source: TrainingInput,
    choice: TrainingChoice,
    target: str,
    run: Run,
    *,
    force: bool = False,
    resume: bool = False,
) -> TrainResult:
    """Read P and U, train the ensemble and write the model."""
    check(source, choice)
    _discard_finished_part(target)
    check_model_target(target, force=force)
    _check_unfinished_part(target, resume=resume, force=force)
    with _planned(source, choice, run) as (data, plan, rule):
        plan, budget = training_budget(plan, data, run, in_rounds=not plan.single)
        long = not plan.single and work_of(plan, data) >= LONG_WORK
        if resume or budget.members_at_once or long:
            part = open_part(_part_path(target), plan, data, rule, range(plan.n_models))
            return _finish(part, plan, budget, data, target, run, force=force)
        model = train_plan(plan, data, rule, budget, run)[1]  # drop the part, which may be large
        manifest = save(model, target, force=force, workers=budget.threads)
    expected = ExpectedPerformance.from_table(model.decision, model.out_of_bag)
    return TrainResult(target, manifest, plan, expected, tuple(run.notes))


@contextmanager
def _read(source: TrainingInput, choice: TrainingChoice, run: Run) -> Iterator[TrainingData]:
    """Read P and U, and keep the files open while members are trained."""
    keep_all = choice.params.method == "cwsvm"
    with (
        parallel.inner_threads_held(),
        silenced(),
        TrainingData(source, run, keep_all=keep_all) as data,
    ):
        yield data


@contextmanager
def _planned(
    source: TrainingInput, choice: TrainingChoice, run: Run
) -> Iterator[tuple[TrainingData, ModelPlan, RuleName]]:
    """Read P and U and plan the model; out-of-bag scores decide what ``choice`` leaves open."""
    with _read(source.for_kernel(choice.params.kernel), choice, run) as data:
        if choice.auto is not None or data.scaling_is_open:
            from resvm_cli.tuning.tune import choose_settings  # slow to import

            choice = choose_settings(data, choice, run)
        plan = make_plan(data, choice)
        announce(plan, data, run)
        yield data, plan, choice.rule


def train_share(
    source: TrainingInput, choice: TrainingChoice, share: Share, target: str, run: Run
) -> PartResult:
    """Train some members of a model and save them as a part; existing members are kept."""
    check(source, choice)
    check_part_target(target)
    if choice.auto is not None:
        run.notice(
            Message(
                "every task repeats the {auto:True} search; to search once, use tune and {params}"
            )
        )
    with _planned(source, choice, run) as (data, plan, rule):
        members = share.of(plan.n_models)
        if not members:
            run.notice(
                f"nothing to do for task {share}: there are more tasks than members"
                f" ({plan.n_models})"
            )
            return PartResult(target, members.start, members.stop - 1, 0, plan.n_models)
        plan, budget = training_budget(plan, data, run, in_rounds=not plan.single)
        part = open_part(target, plan, data, rule, members, share)
        n_before = len(members) - len(part.unfinished())
        with _say_what_is_kept(part, run, "rerun the same command to continue"):
            for _ in train_missing(part, plan, budget, data, run):
                pass
    n_trained = len(members) - n_before
    return PartResult(target, members[0], members[-1], n_trained, plan.n_models)


@contextmanager
def _say_what_is_kept(part: PartDirectory, run: Run, advice: Text) -> Iterator[None]:
    """If interrupted, report how many members are saved and how to continue."""
    try:
        yield
    except Interrupted:
        n_members = len(part.members)
        run.notice(
            Message(
                "{kept:,} of {total:,} members are saved in {path}; {advice}",
                kept=n_members - len(part.missing()),
                total=n_members,
                path=part.path,
                advice=advice,
            )
        )
        raise


def _part_path(target: str) -> str:
    """Return the path of the part directory where a training run saves its members."""
    return f"{target.rstrip(os.sep)}.part"


def _discard_finished_part(target: str) -> None:
    """Remove a killed run's leftover part if it is empty or its model is complete.

    The check for an existing model would otherwise end the run before the part is removed.
    """
    path = _part_path(target)
    if not os.path.lexists(path):
        return
    with suppress(OSError):
        if is_blank(Path(path)) or _is_part_of_model(path, target):
            remove_part(path)
    if os.path.lexists(target):
        remove_left_behind(os.path.dirname(target.rstrip(os.sep)) or os.curdir)


def _is_part_of_model(path: str, target: str) -> bool:
    """Whether a part belongs to the existing model, even if it lacks some members."""
    try:
        description = PartDirectory.read(path).description
        manifest = read_manifest(target)
    except (ModelError, FileError):
        return False
    known = (name for name, value in description.items() if value is not None)
    return all(manifest.get(name) == description[name] for name in known if name != "rule")


def _check_unfinished_part(target: str, *, resume: bool, force: bool) -> None:
    """Refuse to discard an interrupted training run; with ``force``, remove it."""
    path = _part_path(target)
    if resume or not os.path.lexists(path):
        return
    if not force:
        raise ParameterError(
            "{path}: contains an interrupted training run",
            "continue it with {resume:True}, or start over with {force:True}",
            path=path,
        )
    remove_part(path)


def _finish(
    part: PartDirectory,
    plan: ModelPlan,
    budget: ResourceBudget,
    data: PUData,
    target: str,
    run: Run,
    *,
    force: bool,
) -> TrainResult:
    """Train the members missing from the unfinished model at the target, and finish it."""
    last: tuple[PUData, Part] | None = None
    n_left = len(part.unfinished())
    if n_left < plan.n_models:
        run.announce(f"{plan.n_models - n_left:,} of {plan.n_models:,} members are already trained")
    advice = Message("rerun the same command with {resume:True} to continue")
    with _say_what_is_kept(part, run, advice):
        for trained in train_missing(part, plan, budget, data, run):
            last = data, trained
    result = merge([part.path], target, run, force=force, trained=last)
    remove_part(part.path)
    return result


def grow(source: TrainingInput, target: str, n_models: int, run: Run) -> TrainResult:
    """Add members to a model until it has ``n_models``."""
    _discard_finished_part(target)
    stored = load_model(target)
    plan = _larger_plan(stored_plan(stored, target), target, n_models)
    source = as_stored(
        replace(
            source,
            scale=plan.scalings[0],
            features=source.features or stored.manifest["n_features"],
        ),
        stored,
    )
    source.check()
    with _read(source, TrainingChoice(), run) as data:
        require_same_data(stored, target, data)
        plan = plan.with_weights(data.positive_weights)
        for text in data.notes:
            run.notice(text)
        part = open_part(_part_path(target), plan, data, stored.decision.rule, range(n_models))
        _require_same_model(part, stored, target, run)
        _adopt_members(part, stored, target, plan, data)
        plan, budget = training_budget(plan, data, run, in_rounds=True)
        return _finish(part, plan, budget, data, target, run, force=True)


def _larger_plan(plan: ModelPlan, target: str, n_models: int) -> ModelPlan:
    if len(plan.plans) > 1:
        raise ParameterError(
            "{target}: pools {n} settings, so it cannot grow",
            "train it again with a larger {n_models}",
            target=target,
            n=len(plan.plans),
        )
    if plan.single:
        raise ParameterError("{target}: cwsvm has one member, so it cannot grow", target=target)
    if not plan.n_models < n_models <= MAX_MEMBERS:
        raise ParameterError(
            "{grow} must be above {n}, the model's current size, and at most {most:,}, got {value}",
            n=plan.n_models,
            most=MAX_MEMBERS,
            value=n_models,
        )
    return ModelPlan.from_plan(replace(plan.plans[0], n_models=n_models))


def _require_same_model(part: PartDirectory, stored: StoredModel, target: str, run: Run) -> None:
    """Refuse to add members if retraining would not give the same model."""
    scaled = "scaling" if "scaling" in part.description else "scalings"
    names = (scaled, "n_features", "labels", "encoding", "versions", "numeric_fingerprint")
    for name in names:
        here, there = part.description.get(name), stored.manifest.get(name)
        if here == there:
            continue
        if name == "numeric_fingerprint":
            run.notice(
                "the model was trained on a machine that rounds differently, so the result is not"
                " byte-for-byte identical to what a single run would write"
            )
            continue
        remove_part(part.path)
        if name == "encoding":  # the columns are the model's, so only this rule can differ
            before, now = (each and each.get("missing") for each in (there, here))
            raise ModelError(
                f"{target}: was trained with a different rule for missing values: {before} then,"
                f" {now} now",
                Message("omit {missing} to use the model's rule"),
            )
        raise ModelError(
            f"{target}: was trained with different {name}: {there} then, {here} now",
            Message("train it again with a larger {n_models}"),
        )


def _adopt_members(
    part: PartDirectory, stored: StoredModel, target: str, plan: ModelPlan, data: PUData
) -> None:
    """Copy a model's members into the part of the larger model."""
    entries = stored.manifest["members"]
    if not set(part.unfinished()) & set(range(len(entries))):
        return
    problems = plan.problems(range(len(entries)))
    drawn = rows_drawn(problems)
    positive, unlabeled = (np.array(numbers, np.int64) for numbers in part.judged)
    values = np.zeros((len(entries), 0))
    if len(positive) + len(unlabeled):
        fetched = data.fetch(unlabeled)
        unscaled = Rows.concatenate([data.positives.take(positive), fetched])
        seen = TrainingRows(data.positives, data.fetch(drawn), drawn, data.groups(), unscaled)
        numbers = np.concatenate([positive, len(data.positives) + unlabeled])
        unseen = UnseenMask(problems, seen).unseen(numbers, unscaled)
        n_columns = data.n_features + (0 if data.zero_based else 1)
        values = np.concatenate(
            [
                stored_values(
                    _only(stored.ensemble, number), unscaled, unseen[:, [number]], n_columns
                )
                for number in range(len(entries))
            ]
        )
    for number, entry in enumerate(entries):
        text = read_member(target, number, entry)
        # a manifest stores only the number of unconverged members, so any of them may be marked
        converged = number >= stored.manifest["unconverged"]
        part.add(number, text, converged, values[number])


def _only(ensemble: Ensemble, number: int) -> Ensemble:
    """Return one member with its support vectors in training order, which affects rounding."""
    alone = ensemble.part(number, number + 1)
    (member,) = alone.members
    own = replace(member, support=np.arange(len(member.support)))
    return replace(alone, pool=alone.pool.take(member.support), members=[own])
