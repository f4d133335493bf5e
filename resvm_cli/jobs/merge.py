"""Part of a model trained into a directory of its own, and parts joined to the whole.

The whole is byte for byte the directory that one run would have written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from resvm_cli.ensemble.model import RuleName
from resvm_cli.ensemble.model_plan import ModelPlan
from resvm_cli.ensemble.params import Setting
from resvm_cli.ensemble.parts import JudgedNumbers, conclude, train_runs
from resvm_cli.ensemble.pu_data import PUData
from resvm_cli.files import model_dir, part_dir
from resvm_cli.files.model_text import MemberText, format_members
from resvm_cli.jobs.train import completed, describe, stored_table

MEMBERS_A_RUN = 8  # trained and kept together


def train_members(
    data: PUData,
    settings: Sequence[Setting],
    members: range,
    target: str,
    *,
    decision: RuleName = "votes",
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Train these members of the model into a part, each kept when it is finished.

    Members that an earlier run has finished are left as they are; tells how many were trained.
    """
    plan = ModelPlan.settled(
        settings, len(data.positives), data.n_unlabeled, data.n_features, data.variance
    )
    judged = JudgedNumbers.of(plan)
    part = part_dir.PartDirectory.opened(
        target,
        members,
        {**describe(plan, data, plan.groups()), "rule": decision},
        [judged.positive.tolist(), judged.unlabeled.tolist()],
    )
    missing = part.missing()
    if not missing:
        return 0
    runs = list(_runs(missing))
    for trained in train_runs(plan, runs, data, lambda positives, unlabeled: jobs, progress):
        texts = format_members(trained.fitted.ensemble)
        for place, (number, text) in enumerate(zip(trained.members, texts, strict=True)):
            part.add(number, text, trained.fitted.converged[place], trained.values[place])
    return len(missing)


def _runs(numbers: Sequence[int]) -> Iterator[range]:
    """Numbers that follow each other, a few at a time."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1 or number - first == MEMBERS_A_RUN:
            yield range(first, last + 1)
            first = number
        last = number
    yield range(first, last + 1)


def merge(
    paths: Sequence[str],
    target: str,
    *,
    force: bool = False,
    notice: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Join parts to the model they are of; returns its manifest."""
    model_dir.check_target(target, force=force)
    joined = part_dir.join(paths)
    for note in joined.notes:
        notice(note)
    records = list(joined.records())
    values = np.array([record.values for _, record in records])
    n_unconverged = sum(not record.converged for _, record in records)
    description = dict(joined.description)
    rule = description.pop("rule")
    rows = [description["data"][name]["rows"] for name in ("positive", "unlabeled")]
    plan, _ = ModelPlan.from_description(description, rows[0], rows[1])
    judged = JudgedNumbers(*(np.array(numbers, np.int64) for numbers in joined.parts[0].judged))
    conclusion = conclude(plan, rule, judged, values)

    def members() -> Iterator[MemberText]:
        for part, record in records:
            yield part.member(record)

    return model_dir.save(
        target,
        members(),
        completed(description, conclusion, n_unconverged),
        force=force,
        out_of_bag=stored_table(conclusion),
    )
