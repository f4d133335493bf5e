"""P and U to a model directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from resvm_cli import __version__, parallel
from resvm_cli.dataset import IntArray, Rows, Survey
from resvm_cli.ensemble import bags
from resvm_cli.ensemble.fit import fit, rows_drawn
from resvm_cli.ensemble.methods import Plan, ResvmParams, problems, settle
from resvm_cli.ensemble.model import Ensemble, numeric_fingerprint
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files import model_dir
from resvm_cli.files.streams import name_of, same_source
from resvm_cli.files.svmlight import Block, format_label, read_blocks
from resvm_cli.svm import libsvm

Progress: TypeAlias = Callable[[str, int, "int | None"], None]

# Below about this many kernel products a second thread is not worth waking.
SMALL_WORK = 5e8


@dataclass(frozen=True)
class TrainingInput:
    """Where P and U come from: two files, or one labelled file."""

    positives: str | None = None
    unlabeled: str | None = None
    data: str | None = None
    positive_label: float | None = None
    zero_based: bool = False

    def check(self) -> None:
        """Refuse what is missing or contradictory, before any file is read."""
        if self.data is not None:
            if self.positives is not None or self.unlabeled is not None:
                raise CommandLineError("--data and -P/-U exclude each other")
            if self.positive_label is None:
                raise CommandLineError(
                    "--data needs --positive-label",
                    "say which label means positive: --data train.svm --positive-label 1",
                )
            return
        if self.positive_label is not None:
            raise CommandLineError("--positive-label goes with --data")
        if self.positives is None or self.unlabeled is None:
            missing = "-P (known positives)" if self.positives is None else "-U (unlabeled)"
            raise CommandLineError(
                f"{missing} is missing",
                "resvm train -P pos.svm -U unl.svm, or --data train.svm --positive-label 1",
            )
        if same_source(self.positives, self.unlabeled):
            raise CommandLineError(
                f"-P and -U are the same: {name_of(self.positives)}",
                "known positives and unlabeled rows come from two files",
            )


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Both sets in memory, with what one pass over them told."""

    positives: Rows
    unlabeled: Rows
    survey_pos: Survey
    survey_unl: Survey
    n_features: int


@dataclass(frozen=True)
class TrainResult:
    """What was trained, for the report."""

    path: str
    manifest: dict[str, Any]
    plan: Plan
    n_unconverged: int
    notes: tuple[str, ...]


def train(
    source: TrainingInput,
    params: ResvmParams,
    target: str,
    *,
    force: bool = False,
    jobs: int | None = None,
    progress: Progress,
) -> TrainResult:
    """Read P and U, train the ensemble, write the model."""
    source.check()
    params.check()
    model_dir.check_target(target, force=force)
    with parallel.inner_threads_held():
        training = read_training_set(source, progress)
        plan = settle(params, training.survey_pos, training.survey_unl, training.n_features)
        ensemble, n_unconverged = _fit(plan, training, jobs, progress)
        description = _describe(plan, training, source, n_unconverged)
        manifest = model_dir.save(target, ensemble, description, force=force)
    return TrainResult(target, manifest, plan, n_unconverged, tuple(_notes(plan, n_unconverged)))


def read_training_set(source: TrainingInput, progress: Progress) -> TrainingSet:
    """Read and check both sets."""
    sets: list[tuple[Rows, Survey]] = []
    if source.data is None:
        for path in (source.positives, source.unlabeled):
            assert path is not None
            sets.append(_gather(path, source.zero_based, None, progress)[0])
    else:
        sets = _gather(source.data, source.zero_based, source.positive_label, progress)
    (positives, survey_pos), (unlabeled, survey_unl) = sets
    largest = max(survey_pos.max_index, survey_unl.max_index)
    n_features = largest + 1 if source.zero_based else largest
    return TrainingSet(positives, unlabeled, survey_pos, survey_unl, max(0, n_features))


def _gather(
    path: str, zero_based: bool, positive_label: float | None, progress: Progress
) -> list[tuple[Rows, Survey]]:
    """All rows of a file; split into positives and the others where a label tells them apart."""
    name = name_of(path)
    n_sets = 1 if positive_label is None else 2
    parts: list[list[Rows]] = [[] for _ in range(n_sets)]
    surveys = [Survey() for _ in range(n_sets)]
    seen: set[float] = set()
    n_rows = 0
    for block in read_blocks(path, zero_based=zero_based):
        if positive_label is None:
            split = [block.rows]
        else:
            _require_labels(block, name)
            if len(seen) < 20:
                seen.update(np.unique(block.labels).tolist())
            chosen = block.labels == positive_label
            split = [block.rows.take(np.flatnonzero(mask)) for mask in (chosen, ~chosen)]
        for rows, part, survey in zip(split, parts, surveys, strict=True):
            survey.add(rows)
            part.append(rows)
        n_rows += len(block)
        progress(f"reading {name}", n_rows, None)
    if positive_label is not None:
        wanted = format_label(positive_label)
        there = ", ".join(format_label(label) for label in sorted(seen)[:20])
        if surveys[0].n_rows == 0:
            raise DataError(
                f"{name}: no row has the label {wanted}", f"labels that are there: {there}"
            )
        if surveys[1].n_rows == 0:
            raise DataError(f"{name}: every row has the label {wanted}; none is left as unlabeled")
    return [(Rows.concatenate(part), survey) for part, survey in zip(parts, surveys, strict=True)]


def _require_labels(block: Block, name: str) -> None:
    missing = np.flatnonzero(np.isnan(block.labels))
    if len(missing):
        raise DataError(
            f"{name}:{block.lines[missing[0]]}: a row without label; with --data each needs one",
            "give unlabeled rows a label of their own, such as 0",
        )


def _fit(
    plan: Plan, training: TrainingSet, jobs: int | None, progress: Progress
) -> tuple[Ensemble, int]:
    tasks = list(problems(plan, range(plan.n_models)))
    drawn: IntArray = rows_drawn(tasks)
    entries = training.survey_pos.n_nonzeros + training.survey_unl.n_nonzeros
    row_length = entries / max(1, plan.rows_pos + plan.rows_unl)
    work = plan.n_models * plan.bag_size**2 * (row_length + 8)
    workers = jobs or (1 if work < SMALL_WORK else parallel.available_cores())
    return fit(
        tasks,
        training.positives,
        training.unlabeled.take(drawn),
        drawn,
        single=plan.method == "cwsvm",
        workers=workers,
        progress=lambda done, total: progress("training", done, total),
    )


def _describe(
    plan: Plan, training: TrainingSet, source: TrainingInput, n_unconverged: int
) -> dict[str, Any]:
    """The manifest, without its members: nothing here depends on time, place or paths."""
    kernel: dict[str, Any] = {"name": plan.kernel.name}
    if plan.kernel.uses_gamma:
        kernel["gamma"] = plan.kernel.gamma
    if plan.kernel.uses_coef0:
        kernel["coef0"] = plan.kernel.coef0
    if plan.kernel.uses_degree:
        kernel["degree"] = plan.kernel.degree
    return {
        "method": plan.method,
        "kernel": kernel,
        "parameters": plan.parameters(),
        "seed": plan.seed,
        "bags": bags.RULE,
        "labels": {"positive": 1, "unlabeled": -1, "trained_on": source.positive_label},
        "n_features": training.n_features,
        "zero_based": source.zero_based,
        "scaling": None,
        "data": {
            name: {"rows": survey.n_rows, "nonzeros": survey.n_nonzeros, "sha256": survey.digest()}
            for name, survey in (
                ("positive", training.survey_pos),
                ("unlabeled", training.survey_unl),
            )
        },
        "solver": "libsvm",
        "unconverged": n_unconverged,
        "versions": {"resvm": __version__, "numpy": np.__version__, "libsvm": libsvm.version()},
        "numeric_fingerprint": numeric_fingerprint(),
    }


def _notes(plan: Plan, n_unconverged: int) -> list[str]:
    notes = []
    if plan.method != "cwsvm":
        for name, size, there, which in (
            ("n_pos", plan.n_pos, plan.rows_pos, "P"),
            ("n_unl", plan.n_unl, plan.rows_unl, "U"),
        ):
            if size > there:
                notes.append(
                    f"bags hold {name} = {size} rows of {which}, which has only {there}:"
                    " rows repeat (drawn with replacement)"
                )
    if n_unconverged:
        notes.append(
            f"{n_unconverged} of {plan.n_models} members stopped at LIBSVM's iteration limit:"
            " scale the features or lower -c"
        )
    return notes
