"""Train members into part directories, saving each when finished, and join parts into a model.

The joined model is byte-for-byte identical to what a single run would write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from resvm_cli.errors import ModelError
from resvm_cli.model.ensemble import Group
from resvm_cli.model.members import Part, train_parts
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.out_of_bag import OutOfBagSample
from resvm_cli.model.pu_data import PUData
from resvm_cli.model_files.directory import check_model_target, save_model
from resvm_cli.model_files.members import format_members, member_name, parse_members
from resvm_cli.model_files.parts import MemberRecord, PartDirectory, join_parts
from resvm_cli.parameters import RuleName
from resvm_cli.running.run import Run, Share
from resvm_cli.svm.kernels import Kernel
from resvm_cli.training.expected_performance import ExpectedPerformance, OutOfBagSummary
from resvm_cli.training.resource_budget import ResourceBudget
from resvm_cli.training.train import TrainResult, complete, describe, unfinished_note, watch_members

# Members trained and saved together, per worker: few if bags are large, so that an interruption
# costs little.
MEMBERS_PER_BATCH = 8
ROWS_PER_BATCH = 4000


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


def merge(paths: Sequence[str], target: str, run: Run, *, force: bool = False) -> TrainResult:
    """Join the parts in these directories and write the model."""
    check_model_target(target, force=force)
    parts, notes = join_parts(paths)
    manifest, plan, summary = assemble(parts, target, force=force)
    for text in (*notes, *unfinished_note(plan, manifest["unconverged"])):
        run.notice(text)
    expected = ExpectedPerformance.from_table(summary.decision, summary.table)
    return TrainResult(target, manifest, plan, expected, tuple(run.notes))


def assemble(
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
