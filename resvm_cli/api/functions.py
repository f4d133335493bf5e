"""``rank`` and ``tune`` for matrices in memory, and their results.

They use the same engine as the commands and do not need scikit-learn. Column 0 of a matrix is
feature 1 in a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from resvm_cli import threads as parallel
from resvm_cli.api.arguments import (
    CALLING,
    DATA,
    INVALID,
    TABLE_ROLES,
    documented,
    range_entries,
    require_known,
    run_for,
    seed_from,
    shared_entries,
    table_entries,
)
from resvm_cli.api.matrices import (
    ROLES,
    Label,
    Matrix,
    PathName,
    choose_sets,
    labeled_rows,
    roles_from,
)
from resvm_cli.errors import DataError, ParameterError, warn_caller
from resvm_cli.parameters import (
    RANKING_TABLE,
    SHARED_NAMES,
    TABLE,
    TUNING_TABLE,
    RankingParameters,
)
from resvm_cli.ranking.batch import BatchSummary
from resvm_cli.ranking.pipeline import check_list, rank_on
from resvm_cli.ranking.precision import FdrEstimate
from resvm_cli.ranking.reasons import Reasons
from resvm_cli.records import dataclass
from resvm_cli.rows import IntArray
from resvm_cli.run import Progress
from resvm_cli.storage.model import StoredModel, load_with_out_of_bag
from resvm_cli.tuning.candidates import TUNING_NAMES, SearchOptions, tuning_settings
from resvm_cli.tuning.choice import read_params
from resvm_cli.tuning.search import tune_on
from resvm_cli.tuning.space import AXIS_NAMES

if TYPE_CHECKING:
    from resvm_cli.api.base import PUClassifier

TUNED = {**TABLE, **TUNING_TABLE}
TUNED_OPTIONS = tuple(name for name in TUNING_NAMES if name != "seed")
TRAINING_OPTIONS = ("kernel", "auto", "params")  # of rank, if it trains the model
ID_WIDTH = 40  # longer ids are shortened in a repr


@dataclass(frozen=True, eq=False)
class Tuning:
    """The result of ``tune``; ``RESVMClassifier(params=tuning)`` uses it.

    Attributes
    ----------
    params : dict
        The chosen parameters, as in best.json.
    trials : list of dict
        The settings tried and their scores, as in trials.jsonl.
    notes : tuple of str
        Notes about the search; those that need attention were also issued as warnings.
    """

    params: dict[str, Any]
    trials: list[dict[str, Any]]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<tuning: {len(self.trials):,} trials, the best in params>"


@documented(
    parameters=[
        *shared_entries(*DATA, *TABLE_ROLES, *CALLING),
        *table_entries(TUNED, ("method", *(n for n in SHARED_NAMES if n != "seed"), "scale")),
        *range_entries(AXIS_NAMES),
        *table_entries(TUNED, TUNING_TABLE),
    ],
    raises=[INVALID],
)
def tune(
    X: Matrix = None,
    y: npt.ArrayLike | None = None,
    *,
    positives: Matrix = None,
    unlabeled: Matrix = None,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label | None = None,
    negative_label: Label | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    progress: Progress | None = None,
    **parameters: Any,
) -> Tuning:
    """Choose hyperparameters without known negatives, for an estimator's ``params``.

    {parameters}

    Returns
    -------
    Tuning
        The best parameters, and all trials.

    {raises}

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
    <tuning: 10 trials, the best in params>
    >>> resvm_cli.RESVMClassifier(params=tuning).fit(X, y).n_models_
    90
    """
    with parallel.one_blas_thread():
        require_known(parameters, (*TUNED_OPTIONS, *ROLES), "tune")
        X, y, unlabeled = choose_sets(X, y, positives, unlabeled, "tune")
        run, roles = run_for(n_jobs, progress), roles_from(parameters)
        given = {**parameters, "seed": seed_from(random_state)}
        if roles.smiles is not None:
            given = {"kernel": "tanimoto", **given}
        settings = SearchOptions(**tuning_settings(given))
        settings.check()
        kernel, labels = settings.base.kernel, (positive_label, negative_label)
        labeled = labeled_rows(X, y, *labels, run, unlabeled=unlabeled, roles=roles, kernel=kernel)
        data = labeled.data(groups, settings.base.data_scale, kernel=kernel, weights=weights)
        found = tune_on(data, settings, run)
    warn_caller(run.warnings)
    return Tuning(found.params, [trial.record for trial in found.outcome.trials], tuple(run.notes))


@dataclass(frozen=True, eq=False)
class Ranking:
    """The result of ``rank``: the listed rows, in order.

    Attributes
    ----------
    rows : array of int
        The row numbers in X, or in the set that is ranked, from 0.
    index : array or pandas.Index
        The labels of these rows: the ids, the index of a DataFrame, or row numbers.
    columns : dict of array
        The other columns that ``resvm rank`` prints, by name; nan where it leaves a cell empty.
    fdr_estimate : FdrEstimate or None
        The estimated contamination of P and U, and the expected precision of the list.
    n_suspects : int or None
        How many known positives look false; None if unknown.
    reasons : tuple of Reasons
        What counts for and against each of the top ``why`` rows.
    batch : BatchSummary or None
        How the ``next`` rows were chosen.
    notes : tuple of str
        Notes about the result; those that need attention were also issued as warnings.
    """

    rows: IntArray
    index: Any
    columns: dict[str, npt.NDArray[Any]]
    fdr_estimate: FdrEstimate | None
    n_suspects: int | None
    reasons: tuple[Reasons, ...]
    batch: BatchSummary | None
    notes: tuple[str, ...]
    _model: StoredModel

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        first = [repr(str(label))[1:-1] for label in self.index[:3]]  # on one line in any case
        first = [one if len(one) <= ID_WIDTH else f"{one[:ID_WIDTH]}..." for one in first]
        return f"<ranking of {len(self):,} rows: {', '.join(first)}{', ...' * (len(self) > 3)}>"

    @cached_property
    def model(self) -> PUClassifier:
        """The estimator that scored the rows, as ``load_model`` returns it."""
        from resvm_cli.api.estimators import estimator_of

        return estimator_of(self._model)

    def to_frame(self) -> Any:
        """Return the columns as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row per ranked row, indexed by ``index``.
        """
        try:
            import pandas
        except ModuleNotFoundError:
            text = "to_frame needs pandas, which is not installed: pip install pandas"
            raise ModuleNotFoundError(text, name="pandas") from None
        frame = pandas.DataFrame(self.columns, index=self.index)
        return frame.rename_axis("id") if frame.index.names == [None] else frame


@documented(
    parameters=[
        *shared_entries(*DATA, "ids", "model", "tested", *TABLE_ROLES, *CALLING),
        *table_entries(RANKING_TABLE, RANKING_TABLE),
        *table_entries(TABLE, TRAINING_OPTIONS),
    ],
    raises=[INVALID],
)
def rank(
    X: Matrix = None,
    y: npt.ArrayLike | None = None,
    *,
    positives: Matrix = None,
    unlabeled: Matrix = None,
    model: PUClassifier | PathName | None = None,
    ids: Iterable[Any] | None = None,
    tested: Mapping[Any, Any] | None = None,
    groups: Sequence[Any] | None = None,
    weights: npt.ArrayLike | None = None,
    positive_label: Label | None = None,
    negative_label: Label | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    progress: Progress | None = None,
    **parameters: Any,
) -> Ranking:
    """Rank unlabeled rows, best first, or known positives, most suspicious first.

    Each row is scored only by members of the ensemble that have not seen it. Without a ``model``,
    ``rank`` searches for good settings and trains one.

    {parameters}

    Returns
    -------
    Ranking
        The ranked rows, with decision values, probabilities and expected precision.

    {raises}
    ModelError
        If ``model`` was trained on different rows.

    Examples
    --------
    >>> import numpy as np
    >>> import resvm_cli
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2
    >>> y = np.arange(300) < 40
    >>> ranking = resvm_cli.rank(X, y)
    >>> int((ranking.rows[:50] < 100).sum())  # positives among the first 50
    46
    """
    with parallel.one_blas_thread():
        require_known(parameters, (*RANKING_TABLE, *TRAINING_OPTIONS, *ROLES), "rank")
        X, y, unlabeled = choose_sets(X, y, positives, unlabeled, "rank")
        listed = {
            name: RANKING_TABLE[name].convert(value)
            for name, value in parameters.items()
            if name in RANKING_TABLE and value is not None
        }
        training = {name: parameters[name] for name in TRAINING_OPTIONS if name in parameters}
        run, seed = run_for(n_jobs, progress), seed_from(random_state)
        roles = roles_from(parameters)
        params = read_params({**training, "seed": seed}, molecules=roles.smiles is not None)
        wanted = RankingParameters(**listed, tested=None if tested is None else "tested")
        stored, kernel, zero_based, name = None, params.kernel, False, None
        if model is not None:
            if training:
                raise ParameterError(
                    f"`{min(training)}` is for training, but `model` is already trained"
                )
            name = "model" if hasattr(model, "fit") else str(model)
            stored = _stored(model)
            kernel, zero_based = stored.ensemble.sections[0].kernel.name, stored.zero_based
        check_list(wanted, params.method if stored is None else stored.manifest["method"])
        labeled = labeled_rows(
            *(X, y, positive_label, negative_label, run),
            unlabeled=unlabeled,
            roles=roles,
            known=None if stored is None else stored.encoding,
            kernel=kernel,
        )
        index = labeled.index(ids)
        data = labeled.data(
            groups,
            params.data_scale,
            kernel=kernel,
            zero_based=zero_based,
            weights=weights,
            ids=[*map(str, index)],
        )
        outcomes = None if tested is None else _outcomes(tested)
        found = rank_on(data, params, wanted, run, stored, outcomes, model=name)
    warn_caller(run.warnings)
    rows = labeled.order[found.listing.numbers]
    columns = {
        name: np.array([np.nan if each is None else each for each in values])
        for name, values in found.listing.by_column().items()
        if name != "id"
    }
    columns["known"] = columns["known"] == 1
    listed_index = index[rows]
    if unlabeled is not None and not wanted.audit:
        rows = rows - labeled.sizes[0]
    return Ranking(
        rows,
        listed_index,
        columns,
        found.fdr_estimate,
        found.n_suspects,
        found.reasons,
        found.batch,
        tuple(run.notes),
        found.stored,
    )


def _stored(model: PUClassifier | PathName) -> StoredModel:
    """Return the ensemble of a fitted estimator or of a model directory."""
    if isinstance(model, (str, os.PathLike)):
        return load_with_out_of_bag(os.fspath(model), required=False)
    stored = getattr(model, "_model", None)
    if not isinstance(stored, StoredModel):
        raise ParameterError(f"`model` must be a fitted estimator or a model's path, got {model!r}")
    return stored


def _outcomes(tested: Mapping[Any, Any]) -> dict[str, tuple[bool, str]]:
    """Return outcomes by id."""
    outcomes = {}
    for row_id, outcome in tested.items():
        if outcome not in (1, 0, -1):
            raise DataError(
                f"tested: the outcome of '{row_id}' is {outcome!r}", "expected 1 or 0 for each id"
            )
        outcomes[str(row_id)] = outcome == 1, "tested"
    return outcomes
