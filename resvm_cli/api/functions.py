"""The functions of ``import resvm_cli``, which do what the commands do, for matrices in memory.

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

from resvm_cli.api.arguments import (
    documented,
    range_entries,
    require_known,
    run_for,
    shared_entries,
    table_entries,
    with_seed,
)
from resvm_cli.api.matrices import (
    ColumnLayout,
    Label,
    LabeledMatrix,
    Matrix,
    PathName,
    as_matrix,
    row_index,
)
from resvm_cli.api.rankings import Ranking
from resvm_cli.api.results import Model, OutOfBagRows, Tuning, load
from resvm_cli.commands.rank.out_of_bag_scores import OutOfBagScorer
from resvm_cli.commands.rank.rank import RankRequest, RankResult, rank_on
from resvm_cli.errors import DataError, Message, ParameterError, warn_caller
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.members import Part
from resvm_cli.model.out_of_bag import TrainingRows, UnseenMask
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model_files.directory import StoredModel
from resvm_cli.parameters import (
    METHOD_TABLE,
    RANKING_TABLE,
    SHARED_NAMES,
    TRAINING_TABLE,
    TUNED_METHOD,
    TUNING_TABLE,
)
from resvm_cli.rows import Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Progress, Run
from resvm_cli.training.choice import TRAINING_NAMES, ranking_choice, training_choice
from resvm_cli.training.train import train_on
from resvm_cli.tuning.settings import TUNING_NAMES, TuningSettings, tuning_settings
from resvm_cli.tuning.space import AXIS_NAMES
from resvm_cli.tuning.tune import choose_settings, tune_on

CALLING = ("jobs", "n_jobs", "random_state", "progress", "notice")
DATA = ("X", "y", "groups", "weights", "positive_label", "negative_label")
TRAINING = {**METHOD_TABLE, **TRAINING_TABLE}
TUNING = {**METHOD_TABLE, **TUNING_TABLE, "scale": TRAINING_TABLE["scale"], "method": TUNED_METHOD}


@documented(
    parameters=[
        *shared_entries(*DATA, "oob", *CALLING),
        *table_entries(TRAINING, TRAINING_NAMES),
    ]
)
def fit(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label | None = None,
    negative_label: Label | None = None,
    oob: bool = False,
    jobs: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
    **parameters: Any,
) -> Model:
    """Learn from known positives and unlabeled rows.

    The model is byte-for-byte identical to the one that ``resvm train --data`` writes for the same
    rows, parameters and seed.

    {parameters}

    Returns
    -------
    Model
        The trained ensemble.

    Raises
    ------
    ValueError
        If a parameter or the data is invalid.

    Warns
    -----
    ResultWarning
        If the result needs attention, for example because features are on different scales.

    Examples
    --------
    >>> import numpy as np
    >>> import resvm_cli
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2  # the positives
    >>> y = np.arange(300) < 40  # the known ones
    >>> model = resvm_cli.fit(X, y, n_models=20)
    >>> model
    <resvm model: 20 members, 2 features, positive above 0.4853 by votes>
    >>> model.predict([[2, 2], [0, 0]])
    array([ 1, -1])
    """
    run = run_for(jobs, n_jobs, progress, notice)
    model = fit_on(
        run,
        X,
        y,
        groups=groups,
        weights=weights,
        positive_label=positive_label,
        negative_label=negative_label,
        oob=oob,
        **with_seed(parameters, random_state),
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
    negative_label: Label | None = None,
    oob: bool,
    columns: Sequence[str] | None = None,
    **parameters: Any,
) -> Model:
    """Do the work of ``fit`` without warnings; ``run.concerns`` holds their text instead.

    ``columns`` are the names of the columns of X, if X itself has none.
    """
    with parallel.inner_threads_held():
        require_known(parameters, TRAINING_NAMES, "fit")
        choice, scale = training_choice(parameters)
        labeled = _labeled(X, y, positive_label, negative_label, run)
        if columns is not None:
            labeled = replace(labeled, columns=ColumnLayout(len(columns), tuple(columns)))
        data = labeled.data(groups, scale, kernel=choice.params.kernel, weights=weights)
        part, stored = train_on(data, choose_settings(data, choice, run), run)
        unseen = _out_of_bag(part, stored, data, labeled, run) if oob else None
        return Model(stored, unseen, _notes(run), run.jobs, labeled.columns)


@documented(
    parameters=[
        *shared_entries(*DATA, *CALLING),
        *table_entries(TUNING, ("method", *SHARED_NAMES, "scale")),
        *range_entries(AXIS_NAMES),
        *table_entries(TUNING, TUNING_TABLE),
    ]
)
def tune(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label | None = None,
    negative_label: Label | None = None,
    jobs: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
    **parameters: Any,
) -> Tuning:
    """Choose hyperparameters without known negatives; ``fit(X, y, params=tuning)`` uses them.

    {parameters}

    Returns
    -------
    Tuning
        The best parameters, and all trials.

    Raises
    ------
    ValueError
        If a parameter or the data is invalid.

    Warns
    -----
    ResultWarning
        If the result needs attention, for example because the best value is on the edge of a range.

    Notes
    -----
    A range is a number, a list of numbers, or a string such as ``"1..100:log"``.

    Examples
    --------
    >>> import numpy as np
    >>> import resvm_cli
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2
    >>> y = np.arange(300) < 40
    >>> tuning = resvm_cli.tune(X, y)
    >>> tuning
    <tuning: 15 trials, the best in params>
    >>> resvm_cli.fit(X, y, params=tuning)
    <resvm model: 90 members, 2 features, positive above 0.546 by mean>
    """
    with parallel.inner_threads_held():
        require_known(parameters, TUNING_NAMES, "tune")
        parameters = with_seed(parameters, random_state)
        run = run_for(jobs, n_jobs, progress, notice)
        settings = TuningSettings(**tuning_settings(parameters))
        settings.check()
        scale = parameters.get("scale")
        scale = None if scale is None else TRAINING_TABLE["scale"].convert(scale)
        scale = None if scale == "none" else scale
        labeled = _labeled(X, y, positive_label, negative_label, run)
        data = labeled.data(groups, scale, kernel=settings.base.kernel, weights=weights)
        found = tune_on(data, settings, run)
    warn_caller(run.concerns)
    return Tuning(found.params, [trial.record for trial in found.trials], _notes(run))


@documented(
    parameters=[
        *shared_entries(
            *(*DATA, "ids", "model", "negatives", "tested", "exclude", "importance", "intervals"),
            *CALLING,
        ),
        *table_entries(RANKING_TABLE, RANKING_TABLE),
        *table_entries(TRAINING, TRAINING_NAMES, {"decision": None}),
    ]
)
def rank(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    ids: Iterable[Any] | None = None,
    model: Model | PathName | None = None,
    negatives: Matrix | None = None,
    tested: Mapping[Any, Any] | None = None,
    exclude: Iterable[Any] | None = None,
    importance: bool = False,
    intervals: bool = True,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label | None = None,
    negative_label: Label | None = None,
    jobs: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
    **parameters: Any,
) -> Ranking:
    """Rank unlabeled rows, best first, or known positives, most suspicious first.

    Each row is scored only by members of the ensemble that have not seen it. If you give neither
    ``model`` nor parameters of the ensemble nor ``auto=False``, good settings are searched for as
    with ``auto=True``.

    {parameters}

    Returns
    -------
    Ranking
        The rows in order, with values, chances and expected precision.

    Raises
    ------
    ValueError
        If a parameter or the data is invalid.
    ModelError
        If ``model`` was trained on other rows.

    Warns
    -----
    ResultWarning
        If the result needs attention, for example because some rows are in every bag.

    Examples
    --------
    >>> import numpy as np
    >>> import resvm_cli
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2
    >>> y = np.arange(300) < 40
    >>> ranking = resvm_cli.rank(X, y, n_models=20)
    >>> ranking
    <ranking of 260 rows: 56, 92, 75, ...>
    >>> int((ranking.rows[:50] < 100).sum())  # positives among the first 50
    46
    """
    with parallel.inner_threads_held():
        require_known(parameters, (*RANKING_TABLE, *TRAINING_NAMES), "rank")
        parameters = with_seed(parameters, random_state)
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
        known = _loaded(model)
        choose = ranking_choice if known is None else training_choice
        choice, scale = choose(training)
        request = RankRequest(
            choice=choice,
            model=None if known is None else "model" if model is known else str(model),
            negatives=None if negatives is None else "negatives",
            tested=None if tested is None else "tested",
            exclude=None if exclude is None else "exclude",
            intervals=intervals,
            page=True,
            importance=importance,
            **listed,
        )
        request.check_list()
        labeled = _labeled(X, y, positive_label, negative_label, run)
        index = row_index(X, ids, len(labeled.positive))
        stored, kernel, zero_based = None, choice.params.kernel, False
        if known is not None:
            if known.columns is not None:
                known.columns.require(labeled.columns)
            request.check_method(known.method)
            stored = known.stored
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
            rows = Rows.from_matrix(matrix, first)
            trusted = rows, lambda row: f"negatives: row {row + 1:,}"
        outcomes = None if tested is None else _outcomes(tested)
        excluded = None if exclude is None else [(str(each), "exclude") for each in exclude]
        found = rank_on(data, request, run, stored, trusted, outcomes, excluded)
    warn_caller(run.concerns)
    order = labeled.order[found.listing.numbers]
    notes = _notes(run)
    if known is None:
        assert found.stored is not None
        known = Model(found.stored, None, notes, run.jobs, labeled.columns)
    return Ranking(order, index[order], replace(_by_column(found, data), notes=notes), known)


def _by_column(found: RankResult, data: MemoryData) -> RankResult:
    """Number the features in a ranking from 0, like columns."""
    first = 0 if data.zero_based else 1
    importance = (replace(one, feature=one.feature - first) for one in found.importance)
    reasons = []
    for reason in found.reasons:
        effects = (replace(one, feature=one.feature - first) for one in reason.effects)
        reasons.append(replace(reason, effects=tuple(effects)))
    return replace(found, importance=tuple(importance), reasons=tuple(reasons))


def _labeled(
    X: Matrix,
    y: npt.ArrayLike,
    positive_label: Label | None,
    negative_label: Label | None,
    run: Run,
) -> LabeledMatrix:
    """Check rows and labels; without ``positive_label``, warn if most rows are positive."""
    labeled = LabeledMatrix.from_arrays(X, y, positive_label, negative_label)
    n_pos = int(labeled.positive.sum())
    n_unl = len(labeled.positive) - n_pos - int(labeled.negative.sum())
    if positive_label is None and n_pos > n_unl:
        run.notice(
            Message(
                "{n_pos:,} rows have the label 1 of known positives, but only {n_unl:,} rows are"
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


def _notes(run: Run) -> tuple[str, ...]:
    """Return all notices of a run, worded for Python."""
    return tuple(str(text) for text in run.notes)


def _loaded(model: Model | PathName | None) -> Model | None:
    if model is None or isinstance(model, Model):
        return model
    if not isinstance(model, (str, os.PathLike)):
        raise ParameterError("{model} must be a model or its path, got {value!r}", value=model)
    return load(model)


def _out_of_bag(
    part: Part, stored: StoredModel, data: MemoryData, labeled: LabeledMatrix, run: Run
) -> OutOfBagRows | None:
    """Return decision values of the training rows from members that have not seen them."""
    plan, table = part.plan, stored.out_of_bag
    if plan.method == "cwsvm":
        return None  # it has seen every row
    rule = stored.decision.rule
    values = np.full(len(labeled.positive), np.nan)
    members = np.zeros(len(values), np.int64)
    order = labeled.order
    if table is not None and len(part.sample) == len(values):  # the model has scored all of them
        first = np.where(table.positive, 0, plan.rows_pos) + plan.rows_unl * table.negative
        numbers = order[table.rows - 1 + first]
        values[numbers] = table.values if rule == "votes" else table.means
        members[numbers] = table.members
        return OutOfBagRows(values, members)
    training_rows = TrainingRows(data.positives, part.unlabeled, part.drawn, data.groups())
    mask, predictor = UnseenMask(part.problems, training_rows), Predictor(stored.ensemble)
    scorer = OutOfBagScorer(predictor, mask, plan.rows_pos, rule, run, break_ties=False)
    if plan.method == "resvm":
        known, rows = scorer.positives(data.positives, None), order[: plan.rows_pos]
        values[rows], members[rows] = known.values, known.n_members
    blocks = [*data.unlabeled(), data.negatives]
    unlabeled = scorer.unlabeled(iter(blocks), plan.rows_unl + plan.rows_neg, None)
    rows = order[plan.rows_pos :]
    values[rows], members[rows] = unlabeled.values, unlabeled.n_members
    return OutOfBagRows(values, members)
