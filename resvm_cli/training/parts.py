"""Members trained into a part, each kept when it is finished: shares, resumed and grown models.

A part in a place of its own is a task of an array job, joined to others by merge. A part beside a
model is a training that may be interrupted; it ends as the model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from resvm_cli.errors import FileError, Interrupted, Message, ModelError, ParameterError, Text
from resvm_cli.files.atomic import remove_left_behind
from resvm_cli.model.ensemble import Ensemble
from resvm_cli.model.members import rows_drawn
from resvm_cli.model.out_of_bag import Absences, TrainingRows, stored_values
from resvm_cli.model.parts import JudgedNumbers, Part, train_runs
from resvm_cli.model.plan import ModelPlan
from resvm_cli.model.pu_data import PUData
from resvm_cli.model_files.directory import StoredModel, load_model, read_manifest, stored_plan
from resvm_cli.model_files.members import format_members, read_member
from resvm_cli.model_files.parts import (
    PartDirectory,
    check_part_target,
    is_blank,
    join_parts,
    remove_part,
)
from resvm_cli.parameters import MAX_MEMBERS, RuleName, Setting
from resvm_cli.rows import Rows
from resvm_cli.running import parallel
from resvm_cli.running.array_tasks import Share
from resvm_cli.running.run import Run
from resvm_cli.svm.solver_libraries import silenced
from resvm_cli.training import memory
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.data import TrainingData, as_stored, require_same_data
from resvm_cli.training.expected_performance import Outlook, warnings_of
from resvm_cli.training.input import TrainingInput
from resvm_cli.training.memory import Allotment
from resvm_cli.training.merge import assembled
from resvm_cli.training.train import (
    TrainResult,
    allotted,
    check,
    describe,
    prepared,
    unfinished_note,
    watched,
)

# Members are trained and kept together: few of large bags, so that an interruption costs little.
MEMBERS_A_RUN = 8  # for each worker
ROWS_A_RUN = 4000  # likewise


@dataclass(frozen=True)
class PartResult:
    """What became of a part, for the report."""

    path: str
    members: range
    n_trained: int  # the others were there
    n_models: int  # of the whole


def train_share(
    source: TrainingInput,
    choice: TrainingChoice,
    wanted: Share | range,
    target: str,
    run: Run,
) -> PartResult:
    """Train some members of a model into a part; those that are there already are left alone."""
    check(source, choice)
    source = source.for_kernel(choice.params.kernel)
    check_part_target(target)
    if choice.auto is not None:
        run.notice(
            Message("every task repeats the search of {auto:True}: tune once, then use {params}")
        )
    with (
        parallel.inner_threads_held(),
        silenced(),
        TrainingData(
            source, choice.params.method == "cwsvm", run, memory.kept_nonzeros(run.memory_mb)
        ) as data,
    ):
        plan, decision = prepared(data, choice, run)
        members = wanted.of(plan.n_models) if isinstance(wanted, Share) else wanted
        if members.stop > plan.n_models:
            raise ParameterError(
                "{members} is {start}:{stop}, but the model has members 0 to {last}",
                start=members.start,
                stop=members.stop,
                last=plan.n_models - 1,
            )
        if not members:
            run.notice(
                f"nothing to do: {plan.n_models} members are fewer than the tasks of {wanted}"
            )
            return PartResult(target, members, 0, plan.n_models)
        share = wanted if isinstance(wanted, Share) else None
        telling = run.silent() if choice.auto else run
        allotment = allotted(plan, data, telling, in_rounds=not plan.single)
        part = opened(target, plan, data, decision, members, share)
        n_before = len(members) - len(part.unfinished())
        with _kept_on_interruption(part, run, "the same command continues"):
            for _ in train_missing(part, allotment, data, run):
                pass
    return PartResult(target, members, len(members) - n_before, plan.n_models)


def train_members(
    data: PUData,
    settings: Sequence[Setting],
    members: range,
    target: str,
    run: Run,
    *,
    decision: RuleName = "votes",
    share: Share | None = None,
) -> int:
    """Train these members on sets that are read already; tells how many were left to train."""
    plan = ModelPlan.settled(
        settings,
        len(data.positives),
        data.n_unlabeled,
        data.n_features,
        data.variance,
        data.positive_weights,
    )
    part = opened(target, plan, data, decision, members, share)
    allotment = Allotment(plan, run.jobs or 1)
    return sum(len(trained.members) for trained in train_missing(part, allotment, data, run))


def opened(
    target: str,
    plan: ModelPlan,
    data: PUData,
    decision: RuleName,
    members: range,
    share: Share | None = None,
) -> PartDirectory:
    """The part of this plan, begun or continued."""
    judged = JudgedNumbers.of(plan)
    return PartDirectory.opened(
        target,
        members,
        {**describe(plan, data, plan.groups()), "rule": decision},
        [judged.positive.tolist(), judged.unlabeled.tolist()],
        share,
    )


def train_missing(
    part: PartDirectory, allotment: Allotment, data: PUData, run: Run
) -> Iterator[Part]:
    """Train what a part lacks, and keep batch after batch of members.

    Where rows of all members have no room, they are fetched for some at a time.
    """
    missing = part.unfinished()
    if not missing:
        return
    plan = allotment.plan
    run = replace(run, jobs=allotment.threads)
    watch = watched(plan, len(part.members), run)
    done_before = len(part.members) - len(missing)

    def tick(done: int) -> None:
        watch(done_before + done)

    largest = max(each.bag_size for each in plan.plans)
    length = allotment.threads * max(1, min(MEMBERS_A_RUN, ROWS_A_RUN // largest))
    at_once = allotment.members_at_once or len(missing)
    for first in range(0, len(missing), at_once):
        batches = list(_batches(missing[first : first + at_once], length))
        for trained in train_runs(plan, batches, data, run, tick):
            texts = format_members(trained.fitted.ensemble)
            for place, (number, text) in enumerate(zip(trained.members, texts, strict=True)):
                part.add(number, text, trained.fitted.converged[place], trained.values[place])
            yield trained
        done_before += min(at_once, len(missing) - first)


def _batches(numbers: Sequence[int], length: int) -> Iterator[range]:
    """Numbers that follow each other, a few at a time."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1 or number - first == length:
            yield range(first, last + 1)
            first = number
        last = number
    yield range(first, last + 1)


@contextmanager
def _kept_on_interruption(part: PartDirectory, run: Run, advice: Text) -> Iterator[None]:
    """Say, where the program is interrupted, what is kept."""
    try:
        yield
    except Interrupted:
        n_members = len(part.members)
        kept = n_members - len(part.missing())
        run.notice(
            Message(
                "{kept:,} of {total:,} members are kept in {path}; {advice}",
                kept=kept,
                total=n_members,
                path=part.path,
                advice=advice,
            )
        )
        raise


def partial_path(target: str) -> str:
    """Where the members of a training that may be interrupted are kept."""
    return f"{target.rstrip(os.sep)}.part"


def discard_left_beside(target: str) -> None:
    """Take away what a killed training left that holds nothing the model does not have.

    The same run again would find the model there, and be refused.
    """
    place = partial_path(target)
    if not os.path.lexists(place):
        return
    with suppress(OSError):
        if is_blank(Path(place)) or _is_of_model(place, target):
            remove_part(place)
    if os.path.lexists(target):
        remove_left_behind(os.path.dirname(target.rstrip(os.sep)) or os.curdir)


def _is_of_model(place: str, target: str) -> bool:
    """Whether a part would become the model that is there, whatever members it has left."""
    try:
        description = PartDirectory.read(place).description
        manifest = read_manifest(target)
    except (ModelError, FileError):
        return False
    settled = (name for name, value in description.items() if value is not None)
    return all(manifest.get(name) == description[name] for name in settled if name != "rule")


def check_beside(target: str, *, resume: bool, force: bool) -> None:
    """Refuse to forget an interrupted training; with ``force`` it is removed."""
    place = partial_path(target)
    if resume or not os.path.lexists(place):
        return
    if not force:
        raise ParameterError(
            "{path}: an interrupted training is there",
            "continue it with {resume:True}, or start again with {force:True}",
            path=place,
        )
    remove_part(place)


def train_beside(
    data: PUData,
    allotment: Allotment,
    decision: RuleName,
    target: str,
    run: Run,
    *,
    force: bool,
) -> TrainResult:
    """Train into a part beside the target, continue what is there, and end as the model."""
    plan = allotment.plan
    part = opened(partial_path(target), plan, data, decision, range(plan.n_models))
    return _finished(part, data, allotment, target, force, run)


def _finished(
    part: PartDirectory,
    data: PUData,
    allotment: Allotment,
    target: str,
    force: bool,
    run: Run,
) -> TrainResult:
    plan = allotment.plan
    last: Part | None = None
    n_left = len(part.unfinished())
    if n_left < plan.n_models:
        run.notice(f"{plan.n_models - n_left:,} of {plan.n_models:,} members are there already")
    advice = Message("the same command with {resume:True} continues")
    with _kept_on_interruption(part, run, advice):
        for trained in train_missing(part, allotment, data, run):
            last = trained
    manifest, conclusion, n_unconverged = assembled(join_parts([part.path]), target, force=force)
    remove_part(part.path)
    outlook = Outlook.of(conclusion)
    texts = unfinished_note(plan, n_unconverged)
    if last is not None:
        texts += warnings_of(data, last, conclusion, outlook)
    for text in texts:
        run.notice(text)
    return TrainResult(target, manifest, plan, outlook, n_unconverged, tuple(run.notes))


def grow(
    source: TrainingInput,
    target: str,
    n_models: int,
    run: Run,
) -> TrainResult:
    """Make a model one of so many members: those it has stay, the others are trained."""
    discard_left_beside(target)
    stored = load_model(target)
    plan = _grown(stored_plan(stored, target), target, n_models)
    scaling = stored.scaling
    source = as_stored(
        replace(
            source,
            scale=None if scaling is None else scaling.kind,
            features=source.features or stored.manifest["n_features"],
        ),
        stored,
    )
    source.check()
    with (
        parallel.inner_threads_held(),
        silenced(),
        TrainingData(source, False, run, memory.kept_nonzeros(run.memory_mb)) as data,
    ):
        require_same_data(stored, target, data, run)
        plan = plan.with_weights(data.positive_weights)
        for text in data.notes:
            run.notice(text)
        decision = stored.decision.rule
        part = opened(partial_path(target), plan, data, decision, range(n_models))
        _require_same_model(part, stored, target, run)
        _adopt(part, stored, target, plan, data)
        allotment = allotted(plan, data, run, in_rounds=True)
        return _finished(part, data, allotment, target, True, run)


def _grown(plan: ModelPlan, target: str, n_models: int) -> ModelPlan:
    if len(plan.plans) > 1:
        raise ParameterError(
            "{target}: pools {n} settings, so it cannot grow",
            "train it again with a larger {n_models}",
            target=target,
            n=len(plan.plans),
        )
    if plan.single:
        raise ParameterError("{target}: cwsvm is one model, so it cannot grow", target=target)
    if not plan.n_models < n_models <= MAX_MEMBERS:
        raise ParameterError(
            "{grow} must be above {n}, the members of the model, and at most {most:,}, got {value}",
            n=plan.n_models,
            most=MAX_MEMBERS,
            value=n_models,
        )
    return ModelPlan.of(replace(plan.plans[0], n_models=n_models))


def _require_same_model(
    part: PartDirectory,
    stored: StoredModel,
    target: str,
    run: Run,
) -> None:
    """Refuse to add members that this model would not have had."""
    for name in ("scaling", "n_features", "labels", "versions", "numeric_fingerprint"):
        here, there = part.description[name], stored.manifest.get(name)
        if here == there:
            continue
        if name == "numeric_fingerprint":
            run.notice("the model was trained on another kind of machine: not the bytes of one run")
            continue
        remove_part(part.path)
        raise ModelError(
            f"{target}: was trained with other {name}: {there} then, {here} now",
            Message("train it again with a larger {n_models}"),
        )


def _adopt(
    part: PartDirectory,
    stored: StoredModel,
    target: str,
    plan: ModelPlan,
    data: PUData,
) -> None:
    """Put a model's members into a part of the larger one."""
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
        rows = data.scaled(unscaled)
        seen = TrainingRows(data.positives, data.fetch(drawn), drawn, data.groups(), unscaled)
        places = np.concatenate([positive, len(data.positives) + unlabeled])
        absent = Absences(problems, seen).absent(places, unscaled)
        n_columns = data.n_features + (0 if data.zero_based else 1)
        values = np.concatenate(
            [
                stored_values(_alone(stored.ensemble, number), rows, absent[:, [number]], n_columns)
                for number in range(len(entries))
            ]
        )
    for number, entry in enumerate(entries):
        text = read_member(target, number, entry)
        # a manifest counts those that did not converge and does not name them; so does the new one
        converged = number >= stored.manifest["unconverged"]
        part.add(number, text, converged, values[number])


def _alone(ensemble: Ensemble, number: int) -> Ensemble:
    """One member, its support rows in the order it was trained in: sums round by their order."""
    alone = ensemble.part(number, number + 1)
    (member,) = alone.members
    own = replace(member, support=np.arange(len(member.support)))
    return replace(alone, pool=alone.pool.take(member.support), members=[own])
