"""From data to a model: read P and U, plan, train, and write the model, at once or in parts.

Training, ranking and the estimators share this road. Long or resumed runs save finished members in
a part directory next to the target until the model is complete, and each task of an array job
writes a part of its own. A model joined from parts is byte-for-byte identical to that of one run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from resvm_cli import __version__
from resvm_cli import threads as parallel
from resvm_cli.data import notes
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pudata import PUData
from resvm_cli.data.pufiles import PUFiles
from resvm_cli.data.scaling import scaling_advice
from resvm_cli.ensemble.decisions import MIN_POSITIVES, MIN_UNLABELED
from resvm_cli.ensemble.ensemble import Section, numeric_fingerprint
from resvm_cli.ensemble.oob import (
    ExpectedPerformance,
    OutOfBagSample,
    OutOfBagSummary,
    TrainingRows,
)
from resvm_cli.ensemble.plan import Plan, require_weighted_draws
from resvm_cli.ensemble.train import (
    Part,
    ResourceBudget,
    rows_drawn,
    train_parts,
    training_budget,
    work_of,
)
from resvm_cli.errors import Interrupted, ModelError, ParameterError
from resvm_cli.parameters import Params
from resvm_cli.records import dataclass
from resvm_cli.run import Run, Share
from resvm_cli.storage.members import format_members, member_name, parse_members
from resvm_cli.storage.model import StoredModel, check_model_target, save_model
from resvm_cli.storage.parts import (
    MemberRecord,
    PartDirectory,
    check_part_target,
    check_unfinished_part,
    discard_finished_part,
    join_parts,
    remove_part,
)
from resvm_cli.svm.kernels import Kernel, Problem
from resvm_cli.svm.libsvm import package_version, silenced

# This many multiplications take 1 to 2.5 minutes on one core. Longer runs save finished members.
LONG_WORK = 3e11
# Members trained and saved together, per worker: few if bags are large, so that an interruption
# costs little.
MEMBERS_PER_BATCH = 8
ROWS_PER_BATCH = 4000


@dataclass(frozen=True)
class TrainResult:
    """The model that was written, for the report."""

    path: str
    manifest: dict[str, Any]
    plan: Plan
    expected: ExpectedPerformance
    notes: tuple[str, ...]


def train(
    source: TrainingInput,
    params: Params,
    target: str,
    run: Run,
    *,
    force: bool = False,
    resume: bool = False,
) -> TrainResult:
    """Read P and U, train the ensemble and write the model."""
    check(source, params)
    part_path = f"{target.rstrip(os.sep)}.part"
    discard_finished_part(part_path, target)
    check_model_target(target, force=force)
    if not resume:
        check_unfinished_part(part_path, force=force)
    with _planned(source, params, run) as (data, plan, budget):
        long = not plan.single and work_of(plan, data) >= LONG_WORK
        if resume or budget.members_at_once or long:
            part = open_part(part_path, plan, data, range(plan.n_models))
            n_done = plan.n_models - len(part.unfinished())
            if n_done:
                run.note(f"{n_done:,} of {plan.n_models:,} members are already trained")
            advice = "rerun the same command with `resume=True` to continue"
            train_missing(part, plan, budget, data, run, advice)
            result = merge([part.path], target, run, force=force)
            remove_part(part.path)
            return result
        model = train_plan(plan, data, budget, run)[1]  # drop the part, which may be large
        manifest = save(model, target, force=force)
    expected = ExpectedPerformance.from_table(model.decision, model.out_of_bag)
    return TrainResult(target, manifest, plan, expected, tuple(run.notes))


@contextmanager
def _planned(
    source: TrainingInput, params: Params, run: Run
) -> Iterator[tuple[PUFiles, Plan, ResourceBudget]]:
    """Read P and U and plan the model; the files stay open while members are trained."""
    source = source.for_kernel(params.kernel)
    keep_all = params.method == "cwsvm"
    with parallel.one_blas_thread(), silenced(), PUFiles(source, run, keep_all=keep_all) as data:
        plan = make_plan(data, params, run)
        yield data, plan, training_budget(plan, data, run, in_rounds=not plan.single)


def check(source: TrainingInput, params: Params) -> None:
    """Reject inputs and parameters that cannot work, before any file is read."""
    source.check()
    params.check()
    if source.weights is not None:
        require_weighted_draws(params.method)


def make_plan(data: PUData, params: Params, run: Run) -> Plan:
    """Choose the settings, resolve everything that they leave open, and say what looks wrong."""
    if (params.auto and not params.settings) or data.scaling_is_open:
        from resvm_cli.tuning.search import search_settings  # slow to import

        params = search_settings(data, params, run)
    plan = Plan.resolve(params, data)
    for text in data.notes:
        run.warn(text)
    scaled = data.scale is not None or data.scaling_is_auto
    takes_scaling = plan.settings[0].kernel.takes_scaling
    if not scaled and takes_scaling and (advice := scaling_advice(data.positives)):
        run.note(f"the features are not scaled: {advice}; try `scale='auto'`")
    return plan


def learn(data: PUData, params: Params, run: Run) -> tuple[Part, StoredModel]:
    """Train an ensemble on data that has been read; return its members and the model."""
    plan = make_plan(data, params, run)
    return train_plan(plan, data, training_budget(plan, data, run), run)


def train_plan(
    plan: Plan, data: PUData, budget: ResourceBudget, run: Run
) -> tuple[Part, StoredModel]:
    """Train all members of a plan at once."""
    part = next(
        train_parts(
            plan,
            [range(plan.n_models)],
            data,
            replace(run, jobs=budget.threads),
            lambda done: run.progress("training", done, plan.n_models),
        )
    )
    summary = OutOfBagSummary.from_values(plan, part.sample, part.values)
    for text in notes_on_model(plan, part.n_unconverged, summary):
        run.warn(text)
    model = StoredModel(
        complete(describe(plan, data, summary.sections), summary, part.n_unconverged),
        plan,
        summary.decision,
        replace(part.ensemble, sections=summary.sections),
        summary.table,
    )
    return part, model


def save(model: StoredModel, target: str, *, force: bool) -> dict[str, Any]:
    return save_model(
        target,
        format_members(model.ensemble),
        model.manifest,
        force=force,
        out_of_bag=model.out_of_bag,
    )


def notes_on_model(plan: Plan, n_unconverged: int, summary: OutOfBagSummary) -> Iterator[str]:
    """Yield what the user should read before trusting the model."""
    if note := notes.unconverged(n_unconverged, plan.n_models, plan.settings[0].solver):
        yield note
    expected = ExpectedPerformance.from_table(summary.decision, summary.table)
    if summary.table is not None and not expected.threshold.chosen:
        yield (
            f"T is {expected.threshold.value:g}: {expected.n_positives:,} rows of P and"
            f" {expected.n_unlabeled:,} of U are out of bag; choosing a threshold requires at least"
            f" {MIN_POSITIVES} and {MIN_UNLABELED}"
        )
    area = expected.roc_auc
    if area and (note := notes.hardly_separable(area.value, area.low, area.high)):
        yield note


def describe(plan: Plan, data: PUData, sections: Sequence[Section]) -> dict[str, Any]:
    """Return the manifest as it is before training. It contains no times, hosts or paths."""
    solvers = dict.fromkeys(each.solver for each in plan.settings)
    learned = [data.scaling_by(kind) for kind in plan.scalings]
    return {
        **plan.description(sections),
        "decision": None,
        "labels": {"positive": 1, "unlabeled": -1, "trained_on": data.positive_label},
        "n_features": data.n_features,
        "zero_based": data.zero_based,
        "scalings": [scaling.description() for scaling in learned if scaling is not None],
        "encoding": data.encoding,
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
    """Add to the manifest everything that depends on all members."""
    groups = [
        {**setting, "shift": section.shift, "scale": section.spread}
        for setting, section in zip(description["groups"], summary.sections, strict=True)
    ]
    return {
        **description,
        "groups": groups,
        "decision": summary.decision.description(),
        "unconverged": n_unconverged,
    }


def train_share(
    source: TrainingInput, params: Params, share: Share, target: str, run: Run
) -> dict[str, Any]:
    """Train some members of a model into a part; existing members are kept. Describe the part."""
    check(source, params)
    check_part_target(target)
    if params.searched:
        run.note("every task repeats the search; to search once, use tune and `params`")
    with _planned(source, params, run) as (data, plan, budget):
        members, n_trained = share.of(plan.n_models), 0
        if members:
            part = open_part(target, plan, data, members, share)
            advice = "rerun the same command to continue"
            n_trained = train_missing(part, plan, budget, data, run, advice)
        else:
            run.warn(
                f"nothing to do for task {share}: there are more tasks than members"
                f" ({plan.n_models})"
            )
    return {
        "part": target,
        "first": members.start,
        "last": members.stop - 1,  # below ``first`` if the part has no members
        "n_trained": n_trained,
        "n_members": plan.n_models,  # in the complete model
    }


def open_part(
    target: str, plan: Plan, data: PUData, members: range, share: Share | None = None
) -> PartDirectory:
    """Open the part for these members: create it, or continue an existing one."""
    sample = OutOfBagSample.from_plan(plan)
    return PartDirectory.opened(
        target,
        members,
        {**describe(plan, data, plan.sections()), "rule": plan.rule},
        [sample.positive.tolist(), sample.unlabeled.tolist()],
        share,
    )


def train_missing(
    part: PartDirectory, plan: Plan, budget: ResourceBudget, data: PUData, run: Run, advice: str
) -> int:
    """Train the members that are missing from a part, save each batch, and return how many.

    If interrupted, warn how many are saved, with ``advice`` on how to continue.
    """
    missing = part.unfinished()
    run = replace(run, jobs=budget.threads)
    n_before = len(part.members) - len(missing)

    def tick(done: int) -> None:
        run.progress("training", n_before + first + done, len(part.members))

    largest = max(each.bag_size for each in plan.settings)
    length = budget.threads * max(1, min(MEMBERS_PER_BATCH, ROWS_PER_BATCH // largest))
    at_once = budget.members_at_once or len(missing)
    try:
        for first in range(0, len(missing), at_once or 1):
            batches = list(_batches(missing[first : first + at_once], length))
            for trained in train_parts(plan, batches, data, run, tick):
                texts = format_members(trained.ensemble)
                for place, (number, text) in enumerate(zip(trained.members, texts, strict=True)):
                    part.add(number, text, trained.converged[place], trained.values[place])
    except Interrupted:
        n_members = len(part.members)
        run.warn(
            f"{n_members - len(part.missing()):,} of {n_members:,} members are saved in"
            f" {part.path}; {advice}"
        )
        raise
    return len(missing)


def _batches(numbers: Sequence[int], length: int) -> Iterator[range]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1 or number - first == length:
            yield range(first, last + 1)
            first = number
        last = number
    yield range(first, last + 1)


def merge(paths: Sequence[str], target: str, run: Run, *, force: bool = False) -> TrainResult:
    """Join the parts in these directories and write the model."""
    check_model_target(target, force=force)
    parts, differences = join_parts(paths)
    manifest, plan, summary = _assembled(parts, target, force=force)
    for text in (*differences, *notes_on_model(plan, manifest["unconverged"], summary)):
        run.warn(text)
    expected = ExpectedPerformance.from_table(summary.decision, summary.table)
    return TrainResult(target, manifest, plan, expected, tuple(run.notes))


def _assembled(
    parts: Sequence[PartDirectory], target: str, *, force: bool
) -> tuple[dict[str, Any], Plan, OutOfBagSummary]:
    """Write the complete model from its parts; return its manifest, plan and out-of-bag summary."""
    records = [(part, part.record(number)) for part in parts for number in part.members]
    values = np.array([record.values for _, record in records])
    n_unconverged = sum(not record.converged for _, record in records)
    description = dict(parts[0].description)
    rule = description.pop("rule")
    plan, sections = Plan.from_description(description, rule)
    sample = OutOfBagSample(*(np.array(numbers, np.int64) for numbers in parts[0].judged))
    summary = OutOfBagSummary.from_values(plan, sample, values)

    kernels = [section.kernel for section in sections for _ in section.members]
    manifest = save_model(
        target,
        (_text_of(*each, kernel) for each, kernel in zip(records, kernels, strict=True)),
        complete(description, summary, n_unconverged),
        force=force,
        out_of_bag=summary.table,
    )
    return manifest, plan, summary


def _text_of(part: PartDirectory, record: MemberRecord, kernel: Kernel) -> bytes:
    """Return a member's text; reject text that cannot be parsed, even if its digest is right."""
    name, text = f"{part.path}/{member_name(record.number)}", part.text(record)
    read = parse_members([(name, text)], [Section(kernel, range(1))], single=False)
    if len(read.members[0].support) != record.entry["support_vectors"]:
        raise ModelError(
            f"{name}: the number of support vectors does not match the record of this part",
            "train the part again",
        )
    return text


def as_stored(source: TrainingInput, stored: StoredModel) -> TrainingInput:
    """Return the input with the same reading options as when the model was trained."""
    if source.zero_based and not stored.zero_based:
        raise ParameterError(
            "the model was trained on features counted from 1, without `zero_based=True`",
            "leave `zero_based` out",
        )
    source = source.for_kernel(stored.ensemble.sections[0].kernel.name)
    return replace(source, zero_based=stored.zero_based, encoding=stored.encoding)


def redrawn_rows(
    stored: StoredModel, path: str, data: PUData, run: Run
) -> tuple[Plan, Sequence[Problem], TrainingRows]:
    """Check that the data matches the model; return the plan, the redrawn bags and their rows."""
    require_same_data(stored, path, data)
    plan = stored.plan.with_weights(data.positive_weights)
    problems = plan.problems(range(plan.n_models))
    for text in data.notes:
        run.warn(text)
    drawn = rows_drawn(problems)
    return plan, problems, TrainingRows(data.positives, data.fetch(drawn), drawn, data.groups())


def require_same_data(stored: StoredModel, path: str, data: PUData) -> None:
    """Reject data whose row counts or digests differ from those of the model's training data."""
    trained: dict[str, Any] = stored.manifest["data"]
    given = data.description()
    for name, which, key in (
        ("weights", "positive", "weights_sha256"),
        ("known_negatives", "negative", "sha256"),
        ("groups", "groups", "sha256"),
    ):
        there, here = ((each.get(which) or {}).get(key) for each in (trained, given))
        if there is None and here is not None:
            raise ModelError(f"{path}: was trained without `{name}`", f"leave `{name}` out")
        if there != here:
            difference = "with" if here is None else "with different"
            raise ModelError(
                f"{path}: was trained {difference} `{name}`",
                f"give the `{name}` it was trained with",
            )
    for which, letter in (("positive", "P"), ("unlabeled", "U")):
        there, here = trained[which], given[which]
        if there["rows"] != here["rows"]:
            difference = f"{there['rows']:,} rows, but this data has {here['rows']:,}"
        elif there["sha256"] != here["sha256"]:
            same = f"{here['rows']:,} rows, as many as in this data"
            difference = f"{same}, but they differ or are in a different order"
        else:
            continue
        raise ModelError(
            f"{path}: trained on different data: its {letter} has {difference}",
            "give the files it was trained on, or leave `model` out to train on these",
        )
