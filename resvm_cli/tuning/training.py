"""Train a model, or a part of one, from files, and resume training.

Long or resumed runs save finished members in a part directory next to the target until the model is
complete. Each task of an array job writes its part to a separate directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from resvm_cli import threads as parallel
from resvm_cli.data.atomic import remove_left_behind
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pudata import PUData
from resvm_cli.data.pufiles import PUFiles
from resvm_cli.ensemble.oob import ExpectedPerformance
from resvm_cli.ensemble.plan import Plan
from resvm_cli.ensemble.resource_budget import ResourceBudget, training_budget, work_of
from resvm_cli.errors import FileError, Interrupted, ModelError, ParameterError
from resvm_cli.parameters import Params
from resvm_cli.records import dataclass
from resvm_cli.run import Run, Share
from resvm_cli.storage.model import (
    check_model_target,
    read_manifest,
)
from resvm_cli.storage.parts import (
    PartDirectory,
    check_part_target,
    is_blank,
    remove_part,
)
from resvm_cli.svm.libsvm import silenced
from resvm_cli.tuning.learn import (
    TrainResult,
    check,
    make_plan,
    merge,
    open_part,
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
    params: Params,
    target: str,
    run: Run,
    *,
    force: bool = False,
    resume: bool = False,
) -> TrainResult:
    """Read P and U, train the ensemble and write the model."""
    check(source, params)
    _discard_finished_part(target)
    check_model_target(target, force=force)
    _check_unfinished_part(target, resume=resume, force=force)
    with _planned(source, params, run) as (data, plan):
        plan, budget = training_budget(plan, data, run, in_rounds=not plan.single)
        long = not plan.single and work_of(plan, data) >= LONG_WORK
        if resume or budget.members_at_once or long:
            part = open_part(_part_path(target), plan, data, range(plan.n_models))
            return _finish(part, plan, budget, data, target, run, force=force)
        model = train_plan(plan, data, budget, run)[1]  # drop the part, which may be large
        manifest = save(model, target, force=force, workers=budget.threads)
    expected = ExpectedPerformance.from_table(model.decision, model.out_of_bag)
    return TrainResult(target, manifest, plan, expected, tuple(run.notes))


@contextmanager
def _read(source: TrainingInput, params: Params, run: Run) -> Iterator[PUFiles]:
    """Read P and U, and keep the files open while members are trained."""
    keep_all = params.method == "cwsvm"
    with (
        parallel.one_blas_thread(),
        silenced(),
        PUFiles(source, run, keep_all=keep_all) as data,
    ):
        yield data


@contextmanager
def _planned(source: TrainingInput, params: Params, run: Run) -> Iterator[tuple[PUFiles, Plan]]:
    """Read P and U and plan the model; out-of-bag scores decide what the user leaves open."""
    with _read(source.for_kernel(params.kernel), params, run) as data:
        yield data, make_plan(data, params, run)


def train_share(
    source: TrainingInput, params: Params, share: Share, target: str, run: Run
) -> PartResult:
    """Train some members of a model and save them as a part; existing members are kept."""
    check(source, params)
    check_part_target(target)
    if params.searched:
        run.note("every task repeats the search; to search once, use tune and `params`")
    with _planned(source, params, run) as (data, plan):
        members = share.of(plan.n_models)
        if not members:
            run.warn(
                f"nothing to do for task {share}: there are more tasks than members"
                f" ({plan.n_models})"
            )
            return PartResult(target, members.start, members.stop - 1, 0, plan.n_models)
        plan, budget = training_budget(plan, data, run, in_rounds=not plan.single)
        part = open_part(target, plan, data, members, share)
        n_before = len(members) - len(part.unfinished())
        with _say_what_is_kept(part, run, "rerun the same command to continue"):
            for _ in train_missing(part, plan, budget, data, run):
                pass
    n_trained = len(members) - n_before
    return PartResult(target, members[0], members[-1], n_trained, plan.n_models)


@contextmanager
def _say_what_is_kept(part: PartDirectory, run: Run, advice: str) -> Iterator[None]:
    """If interrupted, report how many members are saved and how to continue."""
    try:
        yield
    except Interrupted:
        n_members = len(part.members)
        run.warn(
            f"{n_members - len(part.missing()):,} of {n_members:,} members are saved in"
            f" {part.path}; {advice}"
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
            f"{path}: contains an interrupted training run",
            "continue it with `resume=True`, or start over with `force=True`",
        )
    remove_part(path)


def _finish(
    part: PartDirectory,
    plan: Plan,
    budget: ResourceBudget,
    data: PUData,
    target: str,
    run: Run,
    *,
    force: bool,
) -> TrainResult:
    """Train the members missing from the unfinished model at the target, and finish it."""
    n_left = len(part.unfinished())
    if n_left < plan.n_models:
        run.note(f"{plan.n_models - n_left:,} of {plan.n_models:,} members are already trained")
    advice = "rerun the same command with `resume=True` to continue"
    with _say_what_is_kept(part, run, advice):
        for _ in train_missing(part, plan, budget, data, run):
            pass
    result = merge([part.path], target, run, force=force)
    remove_part(part.path)
    return result
