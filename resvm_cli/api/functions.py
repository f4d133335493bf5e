"""For Python: what the commands do, on matrices in memory, by the same engine to the same bytes.

A model that is fitted here and one that ``resvm train --data`` writes of the same rows, options and
seed are equal. Column 0 of a matrix is feature 1 of a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.api.matrices import Label, LabelledMatrix, Matrix, PathName, as_matrix, checked_names
from resvm_cli.api.results import Model, OutOfBagRows, Ranking, SvmlightData, Tuning
from resvm_cli.commands.rank.rank import judge_of, rank_on
from resvm_cli.commands.rank.request import RankRequest
from resvm_cli.errors import DataError, ParameterError, Text
from resvm_cli.model.members import Part
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model_files.directory import StoredModel, load_with_out_of_bag
from resvm_cli.parameters import RANKING_TABLE, TRAINING_TABLE, Parameter
from resvm_cli.rows import Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Progress, Run
from resvm_cli.training.choice import TRAINING_NAMES, training_choice
from resvm_cli.training.train import train_on
from resvm_cli.tuning.auto import choose_settings
from resvm_cli.tuning.settings import TUNING_NAMES, TuningSettings, tuning_settings
from resvm_cli.tuning.tune import tune_on

JOBS = Parameter("integer", None, "Threads; the result is the same.", low=1, name="jobs")

__all__ = [
    "Model",
    "OutOfBagRows",
    "Ranking",
    "SvmlightData",
    "Tuning",
    "fit",
    "load",
    "rank",
    "read_svmlight",
    "tune",
]


def _silent(stage: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""


def _run(jobs: int | None, on_progress: Progress, on_notice: Callable[[str], None] | None) -> Run:
    """The run of a call; its notices arrive in the words of Python."""

    def notice(text: Text) -> None:
        if on_notice is not None:
            on_notice(str(text))

    return Run(jobs=_converted(JOBS, jobs), on_progress=on_progress, on_notice=notice)


def _notes(run: Run) -> tuple[str, ...]:
    """All notices of a run, in the words of Python."""
    return tuple(str(text) for text in run.notes)


def fit(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label = 1,
    oob: bool = False,
    jobs: int | None = None,
    progress: Progress = _silent,
    notice: Callable[[str], None] | None = None,
    **parameters: Any,
) -> Model:
    """Learn from rows of the positive label and unlabeled rows, which have any other.

    With ``oob`` the model keeps what members say of training rows that they have not seen. Of
    ``weights``, a number from 0 to 1 a row of X, those of known positives count: bags hold these in
    proportion.
    """
    with parallel.inner_threads_held():
        _require_known(parameters, TRAINING_NAMES, "fit")
        run = _run(jobs, progress, notice)
        choice, scale = training_choice(parameters)
        labelled = LabelledMatrix.of(X, y, positive_label)
        data = labelled.data(groups, scale, kernel=choice.params.kernel, weights=weights)
        part, stored = train_on(data, choose_settings(data, choice, run), run)
        unseen = _out_of_bag(part, stored, data, labelled, run) if oob else None
        return Model(stored, stored.out_of_bag, unseen, _notes(run), run.jobs)


def tune(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label = 1,
    jobs: int | None = None,
    progress: Progress = _silent,
    notice: Callable[[str], None] | None = None,
    **parameters: Any,
) -> Tuning:
    """Choose hyperparameters without negatives."""
    with parallel.inner_threads_held():
        _require_known(parameters, TUNING_NAMES, "tune")
        run = _run(jobs, progress, notice)
        settings = TuningSettings(**tuning_settings(parameters))
        settings.check()
        scale = _converted(TRAINING_TABLE["scale"], parameters.get("scale"))
        scale = None if scale == "none" else scale
        labelled = LabelledMatrix.of(X, y, positive_label)
        data = labelled.data(groups, scale, kernel=settings.base.kernel, weights=weights)
        found = tune_on(data, settings, run)
        return Tuning(
            found.params, [trial.record for trial in found.trials], found.outer, _notes(run)
        )


def rank(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    ids: Iterable[Any] | None = None,
    model: Model | PathName | None = None,
    audit: bool = False,
    with_known: bool = False,
    top: int | None = None,
    contamination_pos: float | None = None,
    contamination_unl: float | None = None,
    fdr: float | None = None,
    negatives: Matrix | None = None,
    why: int | None = None,
    intervals: bool = True,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label = 1,
    jobs: int | None = None,
    progress: Progress = _silent,
    notice: Callable[[str], None] | None = None,
    **parameters: Any,
) -> Ranking:
    """Put unlabeled rows in order, best first, or known positives, most suspicious first.

    Each row is judged only by members that have not seen it: of ``model``, which was trained on
    the same rows, or of one that is trained here.
    """
    with parallel.inner_threads_held():
        _require_known(parameters, TRAINING_NAMES, "rank")
        run = _run(jobs, progress, notice)
        if model is not None and set(parameters) - {"decision"}:
            name = sorted(set(parameters) - {"decision"})[0]
            raise ParameterError("{" + name + "} is for training, and {model} is trained already")
        choice, scale = training_choice(parameters)
        listed = {"audit": audit, "with_known": with_known, "top": top, "fdr": fdr, "why": why}
        listed |= {"contamination_pos": contamination_pos, "contamination_unl": contamination_unl}
        stored = _stored(model)
        request = RankRequest(
            choice=choice,
            model=None if model is None else _name_of(model),
            negatives=None if negatives is None else "negatives",
            intervals=intervals,
            **{name: _converted(RANKING_TABLE[name], value) for name, value in listed.items()},
        )
        request.check_list()
        labelled = LabelledMatrix.of(X, y, positive_label)
        names = checked_names("ids", ids, len(labelled.positive))
        if stored:
            request.check_method(stored.manifest["method"])
        kernel = stored.ensemble.groups[0].kernel.name if stored else choice.params.kernel
        data = labelled.data(
            groups,
            scale,
            kernel=kernel,
            zero_based=bool(stored and stored.zero_based),
            weights=weights,
        )
        trusted = None
        if negatives is not None:
            trusted = Rows.from_matrix(
                as_matrix(negatives, "negatives"), 0 if data.zero_based else 1
            )
        found = rank_on(data, request, run, stored, trusted)
        listing = found.listing
        rows = np.array([int(number) - 1 for number in listing.ids], np.int64)
        if names is not None:
            listing = replace(listing, ids=[names[row] for row in rows.tolist()])
        return Ranking(rows, listing, found.n_suspects, _notes(run), found.promise, found.reasons)


def load(path: PathName) -> Model:
    """A model that ``resvm train`` or ``Model.save`` wrote."""
    return Model(*load_with_out_of_bag(os.fspath(path), required=False))


def read_svmlight(
    path: PathName, *, zero_based: bool = False, features: int | None = None
) -> SvmlightData:
    """A svmlight file, plain or compressed: a CSR matrix, labels, and the rows' ids."""
    from scipy.sparse import csr_matrix

    from resvm_cli.files.svmlight import read_file

    block = read_file(os.fspath(path), zero_based=zero_based, with_comments=True)
    rows = block.rows
    first = 0 if zero_based else 1
    width = rows.max_index + 1 - first if features is None else features
    if rows.max_index - first >= width:
        raise DataError(f"{path}: has feature {rows.max_index}, more than features={features}")
    matrix = csr_matrix(
        (rows.values, rows.indices - first, rows.indptr), shape=(len(rows), max(0, width))
    )
    return SvmlightData(matrix, block.labels, list(block.comments or ()))


def _require_known(given: Mapping[str, Any], known: Sequence[str], function: str) -> None:
    """Refuse what is no parameter, as Python does."""
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")


def _converted(parameter: Parameter, value: Any) -> Any:
    return None if value is None else parameter.convert(value)


def _stored(model: Model | PathName | None) -> StoredModel | None:
    if model is None:
        return None
    if isinstance(model, Model):
        return model.stored
    if not isinstance(model, (str, os.PathLike)):
        raise ParameterError("{model} must be a model or its path, got {value!r}", value=model)
    return load(model).stored


def _name_of(model: Model | PathName) -> str:
    return "model" if isinstance(model, Model) else os.fspath(model)


def _out_of_bag(
    part: Part,
    stored: StoredModel,
    data: MemoryData,
    labelled: LabelledMatrix,
    run: Run,
) -> OutOfBagRows | None:
    """Decision values of the training rows, by members that have not seen them."""
    plan, table = part.plan, stored.out_of_bag
    if plan.method == "cwsvm":
        return None  # it has seen every row
    rule = stored.decision.rule
    values = np.full(len(labelled.positive), np.nan)
    members = np.zeros(len(values), np.int64)
    place = labelled.order
    if table is not None and len(part.sample) == len(values):  # they belong to the model already
        numbers = place[table.rows - 1 + np.where(table.positive, 0, plan.rows_pos)]
        scored = table.values if rule == "votes" else table.means
        values[numbers], members[numbers] = scored, table.members
        return OutOfBagRows(values, members)
    judge = replace(judge_of(part, stored, data, data.groups(), rule, run), break_ties=False)
    if plan.method == "resvm":
        known, rows = judge.positives(data.positives, None), place[: plan.rows_pos]
        values[rows], members[rows] = known.values, known.n_members
    unlabeled, rows = judge.unlabeled(data.unlabeled(), plan.rows_unl, None), place[plan.rows_pos :]
    values[rows], members[rows] = unlabeled.values, unlabeled.n_members
    return OutOfBagRows(values, members)
