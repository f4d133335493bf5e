"""``fit`` and ``tune`` for matrices in memory.

They use the same engine as the commands: a saved model is byte-for-byte identical to the one that
``resvm train --data`` writes for the same rows, parameters and seed. Column 0 of a matrix is
feature 1 in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.api.arguments import (
    CALLING,
    DATA,
    INVALID,
    documented,
    range_entries,
    require_known,
    run_for,
    shared_entries,
    table_entries,
    with_seed,
)
from resvm_cli.api.matrices import Label, LabeledMatrix, Matrix, labeled_rows
from resvm_cli.api.results import Model, OutOfBagRows
from resvm_cli.commands.rank.out_of_bag_scores import OutOfBagScorer
from resvm_cli.errors import warn_caller
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.members import Part
from resvm_cli.model.out_of_bag import TrainingRows, UnseenMask
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model_files.directory import StoredModel
from resvm_cli.parameters import SHARED_NAMES, TRAINING_TABLE, TUNED_METHOD, TUNING_TABLE
from resvm_cli.records import dataclass
from resvm_cli.running import parallel
from resvm_cli.running.run import Progress, Run
from resvm_cli.training.choice import TRAINING, training_choice
from resvm_cli.training.train import train_on
from resvm_cli.tuning.search import TUNING_NAMES, TuningSettings, tuning_settings
from resvm_cli.tuning.space import AXIS_NAMES
from resvm_cli.tuning.tune import choose_settings, tune_on

TUNING = {**TRAINING, **TUNING_TABLE, "method": TUNED_METHOD}


@documented(
    parameters=[*shared_entries(*DATA, "oob", *CALLING), *table_entries(TRAINING, TRAINING)],
    raises=[INVALID],
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

    {raises}

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
    parameters = with_seed(parameters, random_state)
    require_known(parameters, TRAINING, "fit")
    with parallel.inner_threads_held():
        labeled = labeled_rows(X, y, positive_label, negative_label, run)
    model = fit_on(run, labeled, groups, weights, oob, parameters)
    warn_caller(run.concerns)
    return model


def fit_on(
    run: Run,
    labeled: LabeledMatrix,
    groups: Sequence[Any] | None,
    weights: npt.ArrayLike | None,
    oob: bool,
    parameters: Mapping[str, Any],
) -> Model:
    """Do the work of ``fit`` without issuing warnings; ``run.concerns`` contains their text."""
    with parallel.inner_threads_held():
        choice, scale = training_choice(parameters)
        data = labeled.data(groups, scale, kernel=choice.params.kernel, weights=weights)
        part, stored = train_on(data, choose_settings(data, choice, run), run)
        unseen = _out_of_bag(part, stored, data, labeled, run) if oob else None
        return Model(stored, unseen, tuple(map(str, run.notes)), run.jobs, labeled.columns)


@dataclass(frozen=True, eq=False)
class Tuning:
    """The result of ``tune``; ``fit(X, y, params=tuning)`` uses it.

    Attributes
    ----------
    params : dict
        The chosen parameters, as in best.json.
    trials : list of dict
        The settings tried and their scores, as in trials.jsonl.
    notes : tuple of str
        Notes about the search; those that need attention were also warnings.
    """

    params: dict[str, Any]
    trials: list[dict[str, Any]]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<tuning: {len(self.trials):,} trials, the best in params>"


@documented(
    parameters=[
        *shared_entries(*DATA, *CALLING),
        *table_entries(TUNING, ("method", *SHARED_NAMES, "scale")),
        *range_entries(AXIS_NAMES),
        *table_entries(TUNING, TUNING_TABLE),
    ],
    raises=[INVALID],
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

    {raises}

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
        labeled = labeled_rows(X, y, positive_label, negative_label, run)
        data = labeled.data(groups, scale, kernel=settings.base.kernel, weights=weights)
        found = tune_on(data, settings, run)
    warn_caller(run.concerns)
    trials = [trial.record for trial in found.trials]
    return Tuning(found.params, trials, tuple(map(str, run.notes)))


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
