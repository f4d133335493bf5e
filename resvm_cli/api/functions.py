"""The functions of ``import resvm_cli``: the commands for matrices in memory.

They use the same engine as the commands: a saved model is byte-for-byte identical to the one that
``resvm train --data`` writes for the same rows, parameters and seed. Column 0 of a matrix is
feature 1 in a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.api.matrices import (
    ColumnLayout,
    Label,
    LabeledMatrix,
    Matrix,
    PathName,
    as_matrix,
    row_index,
)
from resvm_cli.api.results import Model, OutOfBagRows, Ranking, SvmlightData, Tuning
from resvm_cli.commands.rank.rank import RankRequest, out_of_bag_scorer, rank_on
from resvm_cli.errors import DataError, Message, ParameterError, Text, warn_caller
from resvm_cli.model.members import Part
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model_files.directory import StoredModel, load_with_out_of_bag
from resvm_cli.parameters import RANKING_TABLE, TRAINING_TABLE, Parameter
from resvm_cli.rows import Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Progress, Run
from resvm_cli.training.choice import TRAINING_NAMES, ranking_choice, training_choice
from resvm_cli.training.train import train_on
from resvm_cli.tuning.auto import choose_settings
from resvm_cli.tuning.settings import TUNING_NAMES, TuningSettings, tuning_settings
from resvm_cli.tuning.tune import tune_on

MAX_SEED = 2**31 - 1  # of those drawn from a generator
JOBS = Parameter(
    "integer", None, "Number of threads; does not affect the result.", low=1, name="jobs"
)
N_JOBS = replace(JOBS, name="n_jobs", low=-(2**31))


def fit(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label | None = None,
    oob: bool = False,
    jobs: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
    **parameters: Any,
) -> Model:
    """Learn from known positives and unlabeled rows.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of numbers
        One row per example.
    y : array of labels
        Rows with ``positive_label`` are known positives, all others are unlabeled.
    groups : sequence, optional
        One group name per row. Rows of one group are never split between a bag and the rows that
        it scores.
    weights : array, optional
        Confidence in each known positive, from 0 to 1. One number per row of X; numbers of
        unlabeled rows are ignored. Bags draw rows of P in proportion to it.
    positive_label : number or str, optional
        The label of known positives. Default: 1, if all other labels are 0, or all are -1.
    oob : bool, default=False
        Keep the out-of-bag decision values of the training rows in ``Model.oob``.
    jobs : int, optional
        Number of threads; does not affect the result. Default: as many as the work can use.
    progress : callable, optional
        Called with the stage, the number of steps done and their total (None while unknown).
    notice : callable, optional
        Called with the text of each note; ``Model.notes`` holds all of them.
    **parameters
        Parameters of the method, such as ``kernel``, ``n_models`` or ``auto``, named like the
        options of ``resvm train``; see ``resvm_cli.parameters`` and docs/commands/train.md.

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        If a parameter or the data is invalid.
    """
    run = run_for(jobs, n_jobs, progress, notice)
    model = fit_on(
        run,
        X,
        y,
        groups=groups,
        weights=weights,
        positive_label=positive_label,
        oob=oob,
        **_with_seed(parameters, random_state),
    )
    warn_caller(run.concerns)
    return model


def fit_on(
    run: Run,
    X: Matrix,
    y: npt.ArrayLike,
    *,
    groups: Sequence[Any] | None,
    weights: npt.ArrayLike | None,
    positive_label: Label | None,
    oob: bool,
    **parameters: Any,
) -> Model:
    """Do the work of ``fit`` without warnings; ``run.concerns`` has what they would say."""
    with parallel.inner_threads_held():
        _require_known(parameters, TRAINING_NAMES, "fit")
        choice, scale = training_choice(parameters)
        labeled = _labeled(X, y, positive_label, run)
        data = labeled.data(groups, scale, kernel=choice.params.kernel, weights=weights)
        part, stored = train_on(data, choose_settings(data, choice, run), run)
        unseen = _out_of_bag(part, stored, data, labeled, run) if oob else None
        return Model(stored, stored.out_of_bag, unseen, _notes(run), run.jobs, labeled.columns)


def tune(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label | None = None,
    jobs: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
    **parameters: Any,
) -> Tuning:
    """Choose hyperparameters without negatives; ``fit(X, y, params=tuning)`` uses them.

    Parameters
    ----------
    X, y, groups, weights, positive_label, jobs, progress, notice
        As for ``fit``.
    **parameters
        How to search, named like the options of ``resvm tune``; see
        ``resvm_cli.parameters.TuningParameters`` and docs/commands/tune.md. Ranges are numbers,
        lists of numbers, or strings such as ``"1..100:log"``.

    Returns
    -------
    Tuning
    """
    with parallel.inner_threads_held():
        _require_known(parameters, TUNING_NAMES, "tune")
        parameters = _with_seed(parameters, random_state)
        run = run_for(jobs, n_jobs, progress, notice)
        settings = TuningSettings(**tuning_settings(parameters))
        settings.check()
        scale = _converted(TRAINING_TABLE["scale"], parameters.get("scale"))
        scale = None if scale == "none" else scale
        labeled = _labeled(X, y, positive_label, run)
        data = labeled.data(groups, scale, kernel=settings.base.kernel, weights=weights)
        found = tune_on(data, settings, run)
    warn_caller(run.concerns)
    return Tuning(found.params, [trial.record for trial in found.trials], found.outer, _notes(run))


def rank(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    ids: Iterable[Any] | None = None,
    model: Model | PathName | None = None,
    negatives: Matrix | None = None,
    tested: Mapping[Any, Any] | None = None,
    intervals: bool = True,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label | None = None,
    jobs: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
    **parameters: Any,
) -> Ranking:
    """Rank unlabeled rows, best first, or known positives, most suspicious first.

    Each row is scored only by members of the ensemble that have not seen it.

    Parameters
    ----------
    X, y, groups, weights, positive_label, jobs, progress, notice
        As for ``fit``.
    ids : iterable, optional
        One name per row of X. Default: the index of a DataFrame, or else row numbers from 0.
    model : Model or path, optional
        A model trained on the same rows. Default: train one.
    negatives : matrix, optional
        Trusted negatives. They are scored but not trained on, and add conformal p-values.
    tested : mapping, optional
        The outcomes (1 or 0) of tested rows of U, by id: a random sample of U, or all of the first
        rows. Estimates of precision then agree with them.
    intervals : bool, default=True
        Whether to resample members to compute ``rank_low`` and ``rank_high``.
    **parameters
        ``audit``, ``with_known``, ``top``, ``fdr``, ``why``, ``contamination_pos`` and
        ``contamination_unl`` (see ``resvm_cli.parameters.RankingParameters`` and
        docs/commands/rank.md); without ``model``, also the parameters of ``fit``. Settings are
        searched for as with ``auto=True``, unless parameters of the ensemble or ``auto=False`` are
        given.

    Returns
    -------
    Ranking
    """
    with parallel.inner_threads_held():
        _require_known(parameters, (*RANKING_TABLE, *TRAINING_NAMES), "rank")
        parameters = _with_seed(parameters, random_state)
        run = run_for(jobs, n_jobs, progress, notice)
        listed = {
            name: RANKING_TABLE[name].convert(value)
            for name, value in parameters.items()
            if name in RANKING_TABLE and value is not None
        }
        training = {name: parameters[name] for name in parameters if name not in RANKING_TABLE}
        if model is not None and set(training) - {"decision"}:
            name = sorted(set(training) - {"decision"})[0]
            raise ParameterError("{" + name + "} is for training, but {model} is already trained")
        stored = _stored(model)
        choose = ranking_choice if stored is None else training_choice
        choice, scale = choose(training)
        request = RankRequest(
            choice=choice,
            model=None if model is None else _name_of(model),
            negatives=None if negatives is None else "negatives",
            tested=None if tested is None else "tested",
            intervals=intervals,
            page=True,
            **listed,
        )
        request.check_list()
        labeled = _labeled(X, y, positive_label, run)
        if isinstance(model, Model) and model.columns is not None:
            model.columns.require(labeled.columns)
        index = row_index(X, ids, len(labeled.positive))
        kernel, zero_based = choice.params.kernel, False
        if stored is not None:
            request.check_method(stored.manifest["method"])
            kernel, zero_based = stored.ensemble.groups[0].kernel.name, stored.zero_based
        data = labeled.data(
            groups,
            scale,
            kernel=kernel,
            zero_based=zero_based,
            weights=weights,
            ids=[*map(str, index)],
        )
        trusted = None
        if negatives is not None:
            matrix = as_matrix(negatives, "negatives")
            labeled.columns.require(ColumnLayout.from_matrix(negatives, matrix), "negatives")
            first = 0 if data.zero_based and kernel != "precomputed" else 1
            trusted = Rows.from_matrix(matrix, first)
        outcomes = None if tested is None else _outcomes(tested)
        found = rank_on(data, request, run, stored, trusted, outcomes=outcomes)
    warn_caller(run.concerns)
    rows = labeled.order[found.listing.numbers]
    return Ranking(rows, index[rows], replace(found, notes=_notes(run)))


def _labeled(X: Matrix, y: npt.ArrayLike, positive_label: Label | None, run: Run) -> LabeledMatrix:
    """Check rows and labels; without ``positive_label``, doubt a majority of known positives."""
    labeled = LabeledMatrix.from_arrays(X, y, positive_label)
    n_pos = int(labeled.positive.sum())
    n_unl = len(labeled.positive) - n_pos
    if positive_label is None and n_pos > n_unl:
        run.notice(
            Message(
                "{n_pos:,} rows have the label 1 of known positives, and only {n_unl:,} rows are"
                " unlabeled: are the labels swapped? set {positive_label} to be sure",
                n_pos=n_pos,
                n_unl=n_unl,
            )
        )
    return labeled


def _outcomes(tested: Mapping[Any, Any]) -> dict[str, tuple[bool, str]]:
    """Return outcomes by id."""
    found = {}
    for row_id, outcome in tested.items():
        if outcome not in (1, 0, -1):
            raise DataError(
                f"tested: the outcome of '{row_id}' is {outcome!r}", "expected 1 or 0 for each id"
            )
        found[str(row_id)] = outcome == 1, "tested"
    return found


def load(path: PathName) -> Model:
    """Load a model that ``resvm train`` or ``Model.save`` wrote.

    Parameters
    ----------
    path : str or path-like
        The model directory.

    Returns
    -------
    Model
    """
    return Model(*load_with_out_of_bag(os.fspath(path), required=False))


def read_svmlight(
    path: PathName, *, zero_based: bool = False, features: int | None = None
) -> SvmlightData:
    """Read an svmlight file, plain or compressed.

    Parameters
    ----------
    path : str or path-like
        The file.
    zero_based : bool, default=False
        Whether features are numbered from 0.
    features : int, optional
        Number of columns. Default: the largest feature index in the file.

    Returns
    -------
    SvmlightData
        ``X`` (a CSR matrix), ``y`` (labels) and ``ids`` (trailing comments).
    """
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


def run_for(
    jobs: int | None,
    n_jobs: int | None = None,
    on_progress: Progress | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> Run:
    """Return the run for a call, with notices worded for Python."""
    jobs = None if jobs is None else JOBS.convert(jobs)
    if n_jobs is not None:
        threads = N_JOBS.convert(n_jobs)
        if threads == 0:
            raise ParameterError("{n_jobs} must not be 0")
        if threads < 0:  # as in joblib, -1 is all cores, -2 all but one
            threads = max(1, parallel.available_cores() + 1 + threads)
        jobs = same("jobs", jobs, "n_jobs", threads)

    def notice(text: Text) -> None:
        if on_notice is not None:
            on_notice(str(text))

    return Run(jobs=jobs, on_progress=on_progress, on_notice=notice)


def same(name: str, value: Any, other: str, other_value: Any) -> Any:
    """Return the value of a parameter that has two names; reject two different values."""
    if value is not None and value != other_value:
        raise ParameterError(
            "{" + name + "} is {value!r}, but {" + other + "} is {other_value!r}, and both mean the"
            " same",
            "give one of them",
            value=value,
            other_value=other_value,
        )
    return other_value


def seed_from(random_state: Any) -> int:
    """Return a seed: an integer as it is, or one drawn from a generator of numpy."""
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise ParameterError("{random_state} must be at least 0, got {n}", n=random_state)
        return int(random_state)
    for name in ("integers", "randint"):
        if hasattr(random_state, name):
            return int(getattr(random_state, name)(MAX_SEED))
    raise ParameterError(
        "{random_state} must be an integer or a random generator of numpy, got {value!r}",
        value=random_state,
    )


def _with_seed(parameters: dict[str, Any], random_state: Any) -> dict[str, Any]:
    """Return the parameters, with the seed that ``random_state`` gives."""
    if random_state is None:
        return parameters
    seed = same("seed", parameters.get("seed"), "random_state", seed_from(random_state))
    return {**parameters, "seed": seed}


def _notes(run: Run) -> tuple[str, ...]:
    """Return all notices of a run, worded for Python."""
    return tuple(str(text) for text in run.notes)


def _require_known(given: Mapping[str, Any], known: Sequence[str], function: str) -> None:
    """Reject unknown parameters with the same message as Python."""
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
    part: Part, stored: StoredModel, data: MemoryData, labeled: LabeledMatrix, run: Run
) -> OutOfBagRows | None:
    """Return decision values of the training rows by members that have not seen them."""
    plan, table = part.plan, stored.out_of_bag
    if plan.method == "cwsvm":
        return None  # it has seen every row
    rule = stored.decision.rule
    values = np.full(len(labeled.positive), np.nan)
    members = np.zeros(len(values), np.int64)
    order = labeled.order
    if table is not None and len(part.sample) == len(values):  # the model has scored all of them
        numbers = order[table.rows - 1 + np.where(table.positive, 0, plan.rows_pos)]
        values[numbers] = table.values if rule == "votes" else table.means
        members[numbers] = table.members
        return OutOfBagRows(values, members)
    scorer = out_of_bag_scorer(part, stored, data, data.groups(), rule, run)
    scorer = replace(scorer, break_ties=False)
    if plan.method == "resvm":
        known, rows = scorer.positives(data.positives, None), order[: plan.rows_pos]
        values[rows], members[rows] = known.values, known.n_members
    unlabeled = scorer.unlabeled(data.unlabeled(), plan.rows_unl, None)
    rows = order[plan.rows_pos :]
    values[rows], members[rows] = unlabeled.values, unlabeled.n_members
    return OutOfBagRows(values, members)
