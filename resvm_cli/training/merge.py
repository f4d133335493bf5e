"""Parts of a model joined to the whole: byte for byte the directory that one run writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from resvm_cli.errors import ModelError
from resvm_cli.model.ensemble import Group
from resvm_cli.model.parts import Conclusion, JudgedNumbers, conclude
from resvm_cli.model.plan import ModelPlan
from resvm_cli.model_files.directory import check_model_target, save_model
from resvm_cli.model_files.members import member_name, parse_members
from resvm_cli.model_files.parts import JoinedParts, MemberRecord, join_parts
from resvm_cli.running.run import Run
from resvm_cli.svm.kernels import Kernel
from resvm_cli.training.expected_performance import Outlook
from resvm_cli.training.train import TrainResult, completed, stored_table, unfinished_note


def merge(
    paths: Sequence[str],
    target: str,
    run: Run,
    *,
    force: bool = False,
) -> TrainResult:
    """Join parts to the model they are of."""
    check_model_target(target, force=force)
    joined = join_parts(paths)
    manifest, conclusion, n_unconverged = assembled(joined, target, force=force)
    rows = [manifest["data"][name]["rows"] for name in ("positive", "unlabeled")]
    plan, _ = ModelPlan.from_description(manifest, rows[0], rows[1])
    for text in (*joined.notes, *unfinished_note(plan, n_unconverged)):
        run.notice(text)
    outlook = Outlook.of(conclusion)
    return TrainResult(target, manifest, plan, outlook, n_unconverged, tuple(run.notes))


def assembled(
    joined: JoinedParts, target: str, *, force: bool
) -> tuple[dict[str, Any], Conclusion, int]:
    """Write the model of all members: its manifest, what follows of them, how many failed."""
    records = list(joined.records())
    values = np.array([record.values for _, record in records])
    n_unconverged = sum(not record.converged for _, record in records)
    description = dict(joined.description)
    rule = description.pop("rule")
    rows = [description["data"][name]["rows"] for name in ("positive", "unlabeled")]
    plan, groups = ModelPlan.from_description(description, rows[0], rows[1])
    judged = JudgedNumbers(*(np.array(numbers, np.int64) for numbers in joined.parts[0].judged))
    conclusion = conclude(plan, rule, judged, values)

    def members() -> Iterator[bytes]:
        kernels = [group.kernel for group in groups for _ in group.members]
        for (part, record), kernel in zip(records, kernels, strict=True):
            text = part.text(record)
            _require_member(part.path, record, text, kernel)
            yield text

    manifest = save_model(
        target,
        members(),
        completed(description, conclusion, n_unconverged),
        force=force,
        out_of_bag=stored_table(conclusion),
    )
    return manifest, conclusion, n_unconverged


def _require_member(path: str, record: MemberRecord, text: bytes, kernel: Kernel) -> None:
    """Refuse a part whose seals hold and whose text is no member: no model could be read."""
    name = f"{path}/{member_name(record.number)}"
    read = parse_members([(name, text)], [Group(kernel, range(1))], single=False)
    if len(read.members[0].support) != record.entry["support_vectors"]:
        raise ModelError(f"{name}: its record counts other support vectors", "train the part again")
