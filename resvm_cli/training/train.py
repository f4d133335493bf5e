"""Train a model on P and U that have already been read: its plan, members and manifest.

Members may also be trained into part directories, which save each member when it is finished. A
model joined from parts is byte-for-byte identical to that of a single run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.errors import Message, ModelError, ParameterError, Text
from resvm_cli.model.ensemble import Group, numeric_fingerprint
from resvm_cli.model.members import Part, rows_drawn, train_part, train_parts
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.out_of_bag import OutOfBagSample, TrainingRows
from resvm_cli.model.pu_data import PUData
from resvm_cli.model.setting_plan import require_weighted_draws
from resvm_cli.model_files.directory import (
    StoredModel,
    check_model_target,
    require_checked,
    save_model,
    stored_plan,
)
from resvm_cli.model_files.members import format_members, member_name, parse_members
from resvm_cli.model_files.parts import MemberRecord, PartDirectory, join_parts
from resvm_cli.parameters import RuleName
from resvm_cli.records import dataclass
from resvm_cli.running.run import Run, Share
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.libsvm import package_version
from resvm_cli.svm.problem import Problem
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.expected_performance import (
    ExpectedPerformance,
    OutOfBagSummary,
    warnings_about,
)
from resvm_cli.training.input import TrainingInput
from resvm_cli.training.resource_budget import ResourceBudget, training_budget

MANY_POSITIVES, MAX_LEFT_OUT = 5000, 0.5  # warn if more than half of a large P is in no bag
SLOW_SECONDS = 60.0  # warn if no member is finished for this long
# Members trained and saved together, per worker: few if bags are large, so that an interruption
# costs little.
MEMBERS_PER_BATCH = 8
ROWS_PER_BATCH = 4000
UNFINISHED = {
    "libsvm": "scale the features ({scale:auto}) or lower {c_unl}",
    "liblinear": "these members are approximate; lower {c_unl} or {bias}, or use {solver:libsvm},"
    " which is slower",
}
SOLVER_NAMES = {"libsvm": "LIBSVM", "liblinear": "LIBLINEAR"}


@dataclass(frozen=True)
class TrainResult:
    """The model that was written, for the report."""

    path: str
    manifest: dict[str, Any]
    plan: ModelPlan
    expected: ExpectedPerformance
    notes: tuple[Text, ...]


def check(source: TrainingInput, choice: TrainingChoice) -> None:
    """Reject inputs and parameters that cannot work, before any file is read."""
    source.check()
    choice.check()
    if source.weights is not None:
        require_weighted_draws(choice.params.method)


def make_plan(data: PUData, choice: TrainingChoice) -> ModelPlan:
    """Resolve everything that the settings leave open."""
    assert choice.auto is None  # tuning comes first
    return ModelPlan.resolve(choice.settings, data)


def announce(plan: ModelPlan, data: PUData, run: Run) -> None:
    """Tell the user what is unusual about the data and the plan."""
    for text in (*data.notes, *_remarks(plan)):
        run.notice(text)


def train_on(data: PUData, choice: TrainingChoice, run: Run) -> tuple[Part, StoredModel]:
    """Train an ensemble on data that has been read; return its members and the model."""
    plan = make_plan(data, choice)
    announce(plan, data, run)
    plan, budget = training_budget(plan, data, run)
    return train_plan(plan, data, choice.rule, budget, run)


def train_plan(
    plan: ModelPlan, data: PUData, rule: RuleName, budget: ResourceBudget, run: Run
) -> tuple[Part, StoredModel]:
    """Train all members of a plan at once."""
    part = train_part(
        plan,
        range(plan.n_models),
        data,
        replace(run, jobs=budget.threads),
        watch_members(plan, plan.n_models, run),
    )
    summary = OutOfBagSummary.from_values(plan, rule, part.sample, part.values)
    for text in (*unfinished_note(plan, part.n_unconverged), *warnings_about(data, part, summary)):
        run.notice(text)
    model = StoredModel(
        complete(describe(plan, data, summary.groups), summary, part.n_unconverged),
        plan,
        summary.decision,
        replace(part.ensemble, groups=summary.groups),
        summary.table,
    )
    return part, model


def watch_members(plan: ModelPlan, total: int, run: Run) -> Callable[[int], None]:
    """Return a progress callback for ``total`` members that warns once if a member is very slow."""
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
                    " unscaled features or a large {c_unl} can cause this (try {scale:auto}, or"
                    " lower {c_unl})",
                    number=done + 1,
                    total=plan.n_models,
                    seconds=SLOW_SECONDS,
                )
            )

    return tick


def save(model: StoredModel, target: str, *, force: bool, workers: int = 1) -> dict[str, Any]:
    return save_model(
        target,
        format_members(model.ensemble),
        model.manifest,
        force=force,
        out_of_bag=model.out_of_bag,
        workers=workers,
    )


def unfinished_note(plan: ModelPlan, n_unconverged: int) -> list[Text]:
    """Return advice about members that reached the solver's iteration limit."""
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


def describe(plan: ModelPlan, data: PUData, groups: Sequence[Group]) -> dict[str, Any]:
    """Return the manifest before members are trained. It contains no times, hosts or paths."""
    solvers = dict.fromkeys(each.solver for each in plan.plans)
    learned = [data.scaling_by(kind) for kind in plan.scalings]
    scalings: Any = [scaling.description() for scaling in learned if scaling is not None]
    scaled = {"scaling": scalings[0] if scalings else None}
    if plan.needs_format_3:
        scaled = {"scalings": scalings}
    return {
        **plan.description(groups),
        "decision": None,
        "labels": {"positive": 1, "unlabeled": -1, "trained_on": data.positive_label},
        "n_features": data.n_features,
        "zero_based": data.zero_based,
        **scaled,
        **({} if data.encoding is None else {"encoding": data.encoding}),
        "data": data.description(),
        "unconverged": None,
        "versions": {
            "resvm": __version__,
            "numpy": np.__version__,
            **{solver: package_version(solver) for solver in solvers},
        },
        "numeric_fingerprint": numeric_fingerprint(),
    }


def complete(
    description: dict[str, Any], summary: OutOfBagSummary, n_unconverged: int
) -> dict[str, Any]:
    """Add everything that depends on all members to the manifest."""
    groups = [
        {**setting, "shift": group.shift, "scale": group.scale}
        for setting, group in zip(description["groups"], summary.groups, strict=True)
    ]
    return {
        **description,
        "groups": groups,
        "decision": summary.decision.description(),
        "unconverged": n_unconverged,
    }


def _remarks(plan: ModelPlan) -> list[Text]:
    """Return notes about bags that are larger than their set, or that leave most of P out."""
    if plan.method == "cwsvm":
        return []
    n_draws = sum(each.n_models * each.n_pos for each in plan.plans)
    left_out = (1 - 1 / plan.rows_pos) ** n_draws  # expected fraction of P
    if plan.method == "resvm" and plan.rows_pos >= MANY_POSITIVES and left_out > MAX_LEFT_OUT:
        return [
            Message(
                "bags contain at most {largest:,} of the {rows:,} rows of P, and {fraction:.0f} %"
                " of P is in no bag; a larger {n_pos} or {n_models} would use more of them",
                largest=max(each.n_pos for each in plan.plans),
                rows=plan.rows_pos,
                fraction=100 * left_out,
            )
        ]
    largest = max(plan.plans, key=lambda each: each.bag_size)
    return [
        f"bags contain {name} = {size} rows of {which}, which has only {there}:"
        " rows repeat (drawn with replacement)"
        for name, size, there, which in (
            ("n_pos", largest.n_pos, plan.rows_pos, "P"),
            ("n_unl", largest.n_unl, plan.rows_unl, "U"),
        )
        if size > there
    ]


def as_stored(source: TrainingInput, stored: StoredModel) -> TrainingInput:
    """Return the input with the same reading options as when the model was trained."""
    if source.zero_based and not stored.zero_based:
        raise ParameterError(
            "the model was trained on features counted from 1, without {zero_based:True}",
            "leave {zero_based} out",
        )
    source = source.for_kernel(stored.ensemble.groups[0].kernel.name)
    return replace(source, zero_based=stored.zero_based, encoding=stored.encoding)


def redrawn_rows(
    stored: StoredModel, path: str, data: PUData, run: Run
) -> tuple[ModelPlan, Sequence[Problem], TrainingRows]:
    """Check that the data matches the model; return the plan, the redrawn bags and their rows."""
    plan = stored_plan(stored, path)
    require_same_data(stored, path, data)
    plan = plan.with_weights(data.positive_weights)
    problems = plan.problems(range(plan.n_models))
    for text in data.notes:
        run.notice(text)
    drawn = rows_drawn(problems)
    return plan, problems, TrainingRows(data.positives, data.fetch(drawn), drawn, data.groups())


def require_same_data(stored: StoredModel, path: str, data: PUData) -> None:
    """Reject data whose row counts or digests differ from those of the model's training data."""
    trained: dict[str, Any] = stored.manifest["data"]
    require_checked(trained, path)
    given = data.description()
    for name, which, key in (
        ("weights", "positive", "weights_sha256"),
        ("known_negatives", "negative", "sha256"),
    ):
        there, here = ((each.get(which) or {}).get(key) for each in (trained, given))
        _require_same(name, there, here, path)
    for which, letter in (("positive", "P"), ("unlabeled", "U")):
        there, here = trained[which], given[which]
        if there["rows"] != here["rows"]:
            difference = f"{there['rows']:,} rows, but this data has {here['rows']:,}"
        elif there["sha256"] != here["sha256"]:
            same = f"{here['rows']:,} rows, as in this data"
            difference = f"{same}, but different rows or a different order"
        else:
            continue
        raise ModelError(
            f"{path}: trained on different data: its {letter} has {difference}",
            Message("give the files it was trained on, or leave {model} out to train on these"),
        )
    if "groups" in trained:  # format 2 does not record groups
        _require_same("groups", trained["groups"], given.get("groups"), path)


def _require_same(name: str, there: object, here: object, path: str) -> None:
    """Reject weights or groups that differ from those in training; None if there are none."""
    if there == here:
        return
    if there is None:
        raise ModelError(
            Message("{path}: was trained without {" + name + "}", path=path),
            Message("leave {" + name + "} out"),
        )
    difference = "with" if here is None else "with different"
    raise ModelError(
        Message("{path}: was trained " + difference + " {" + name + "}", path=path),
        Message("give the {" + name + "} it was trained with"),
    )


def open_part(
    target: str,
    plan: ModelPlan,
    data: PUData,
    rule: RuleName,
    members: range,
    share: Share | None = None,
) -> PartDirectory:
    """Open the part for these members: create it, or continue an existing one."""
    sample = OutOfBagSample.from_plan(plan)
    return PartDirectory.opened(
        target,
        members,
        {**describe(plan, data, plan.groups()), "rule": rule},
        [sample.positive.tolist(), sample.unlabeled.tolist()],
        share,
    )


def train_missing(
    part: PartDirectory, plan: ModelPlan, budget: ResourceBudget, data: PUData, run: Run
) -> Iterator[Part]:
    """Train the members that are missing from a part, and save each batch."""
    missing = part.unfinished()
    if not missing:
        return
    run = replace(run, jobs=budget.threads)
    watch = watch_members(plan, len(part.members), run)
    done_before = len(part.members) - len(missing)

    def tick(done: int) -> None:
        watch(done_before + done)

    largest = max(each.bag_size for each in plan.plans)
    length = budget.threads * max(1, min(MEMBERS_PER_BATCH, ROWS_PER_BATCH // largest))
    at_once = budget.members_at_once or len(missing)
    for first in range(0, len(missing), at_once):
        batches = list(_batches(missing[first : first + at_once], length))
        for trained in train_parts(plan, batches, data, run, tick):
            texts = format_members(trained.ensemble)
            for place, (number, text) in enumerate(zip(trained.members, texts, strict=True)):
                part.add(number, text(), trained.converged[place], trained.values[place])
            yield trained
        done_before += min(at_once, len(missing) - first)


def _batches(numbers: Sequence[int], length: int) -> Iterator[range]:
    """Split the numbers into ranges of consecutive numbers, each at most ``length`` long."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1 or number - first == length:
            yield range(first, last + 1)
            first = number
        last = number
    yield range(first, last + 1)


def merge(
    paths: Sequence[str],
    target: str,
    run: Run,
    *,
    force: bool = False,
    trained: tuple[PUData, Part] | None = None,
) -> TrainResult:
    """Join the parts in these directories and write the model.

    ``trained`` is the data and the last batch of members, if this run has trained any.
    """
    check_model_target(target, force=force)
    parts, notes = join_parts(paths)
    manifest, plan, summary = _assembled(parts, target, force=force)
    texts = [*notes, *unfinished_note(plan, manifest["unconverged"])]
    if trained is not None:
        texts += warnings_about(*trained, summary)
    for text in texts:
        run.notice(text)
    expected = ExpectedPerformance.from_table(summary.decision, summary.table)
    return TrainResult(target, manifest, plan, expected, tuple(run.notes))


def _assembled(
    parts: Sequence[PartDirectory], target: str, *, force: bool
) -> tuple[dict[str, Any], ModelPlan, OutOfBagSummary]:
    """Write the complete model from its parts; return its manifest, plan and out-of-bag summary."""
    records = [(part, part.record(number)) for part in parts for number in part.members]
    values = np.array([record.values for _, record in records])
    n_unconverged = sum(not record.converged for _, record in records)
    description = dict(parts[0].description)
    rule = description.pop("rule")
    plan, groups = ModelPlan.from_description(description)
    sample = OutOfBagSample(*(np.array(numbers, np.int64) for numbers in parts[0].judged))
    summary = OutOfBagSummary.from_values(plan, rule, sample, values)

    kernels = [group.kernel for group in groups for _ in group.members]
    manifest = save_model(
        target,
        [partial(_text_of, *each, kernel) for each, kernel in zip(records, kernels, strict=True)],
        complete(description, summary, n_unconverged),
        force=force,
        out_of_bag=summary.table,
    )
    return manifest, plan, summary


def _text_of(part: PartDirectory, record: MemberRecord, kernel: Kernel) -> bytes:
    """Return a member's text; reject one that cannot be read back, although its digest is right."""
    name, text = f"{part.path}/{member_name(record.number)}", part.text(record)
    read = parse_members([(name, text)], [Group(kernel, range(1))], single=False)
    if len(read.members[0].support) != record.entry["support_vectors"]:
        raise ModelError(
            f"{name}: the number of support vectors differs from its record", "train the part again"
        )
    return text
