"""``rank`` for matrices in memory, and its result for Python, notebooks and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.api.arguments import (
    CALLING,
    DATA,
    INVALID,
    documented,
    require_known,
    run_for,
    shared_entries,
    table_entries,
    with_seed,
)
from resvm_cli.api.matrices import (
    ColumnLayout,
    Label,
    Matrix,
    PathName,
    as_matrix,
    labeled_rows,
    row_index,
)
from resvm_cli.api.results import Model, load
from resvm_cli.commands.rank.baselines import Baseline
from resvm_cli.commands.rank.fdr import FdrEstimate
from resvm_cli.commands.rank.listing import Listing, RankingFormat, format_ranking
from resvm_cli.commands.rank.rank import RankRequest, RankResult, rank_on
from resvm_cli.commands.rank.reasons import Reasons
from resvm_cli.errors import DataError, ParameterError, warn_caller
from resvm_cli.files.streams import as_unicode
from resvm_cli.model.importance import FeatureImportance
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import RANKING_TABLE, ScaleChoice
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray, Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Progress
from resvm_cli.training.choice import TRAINING, ranking_choice, training_choice

HTML_ROWS = 10  # shown in a notebook
HTML_COLUMNS = ("rank", "id", "known", "decision_value", "probability", "precision")
ID_WIDTH = 40  # longer ids are shortened in a repr


@dataclass(frozen=True, eq=False)
class Ranking:
    """The result of ``rank``; the values of a row are nan if every member has seen it.

    Attributes
    ----------
    rows : array of int
        The row numbers in X, from 0.
    index : array or pandas.Index
        The labels of these rows: the ids, or the index of a DataFrame, or row numbers.
    result : RankResult
        The ranking as the command represents it.
    model : Model
        The model that scored the rows: the one you passed, or a new one, which you can save.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas
    >>> import resvm_cli
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2  # the positives
    >>> genes = pandas.DataFrame(X, index=[f"gene-{number}" for number in range(300)])
    >>> ranking = resvm_cli.rank(genes, np.arange(300) < 40, n_models=20)
    >>> ranking
    <ranking of 260 rows: gene-56, gene-92, gene-75, ...>
    >>> ranking.to_frame().loc[["gene-92", "gene-75"], ["rank", "known"]]
             rank  known
    id
    gene-92     2  False
    gene-75     3  False
    >>> ranking.save_html("example-ranking.html")
    """

    rows: IntArray
    index: Any
    result: RankResult
    model: Model

    def __len__(self) -> int:
        return len(self.listing)

    def __repr__(self) -> str:
        first = [repr(row_id)[1:-1] for row_id in self.ids[:3]]  # on one line, whatever the text
        first = [one if len(one) <= ID_WIDTH else f"{one[:ID_WIDTH]}..." for one in first]
        return f"<ranking of {len(self):,} rows: {', '.join(first)}{', ...' * (len(self) > 3)}>"

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for notebooks."""
        columns = {
            name: values
            for name, values in self.listing.head(HTML_ROWS).by_column().items()
            if name in HTML_COLUMNS and any(value is not None for value in values)
        }
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        lines = [
            "".join(f"<td>{_cell(value)}</td>" for value in record)
            for record in zip(*columns.values(), strict=True)
        ]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        left = len(self) - len(lines)
        more = f"<p>{left:,} more rows: to_frame(), save_html(path)</p>" if left else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def to_frame(self) -> Any:
        """Return the columns that ``resvm rank`` prints, as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row per ranked row, indexed by ``index``, so that it joins the ranked DataFrame.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError:
            text = "to_frame needs pandas, which is not installed: pip install pandas"
            raise ModuleNotFoundError(text, name="pandas") from None
        columns = {
            name: [np.nan if value is None else value for value in values]
            for name, values in self.columns.items()
            if name != "id"
        }
        frame = pandas.DataFrame(columns, index=pandas.Index(self.index))
        frame["known"] = self.known
        return frame.rename_axis("id") if frame.index.names == [None] else frame

    def save_html(self, path: PathName) -> None:
        """Write the web page of ``resvm rank --html``: charts and a searchable table.

        It shows the importance of features if ``rank`` was called with ``importance=True``.

        Parameters
        ----------
        path : str or path-like
            The file, which is replaced if it exists.

        Raises
        ------
        FileError
            If writing failed.
        """
        from resvm_cli.commands.rank.report import render_page
        from resvm_cli.files.atomic import whole_file

        with whole_file(os.fspath(path)) as file:
            file.write(render_page(self.result))

    @property
    def listing(self) -> Listing:
        """The rows and their columns."""
        return self.result.listing

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the result; those that need attention were also warnings."""
        return tuple(map(str, self.result.notes))

    @property
    def n_suspects(self) -> int | None:
        """How many known positives look false; None if unknown."""
        return self.result.n_suspects

    @property
    def promise(self) -> FdrEstimate | None:
        """The contamination of P and U, and the precision of the list."""
        return self.result.fdr_estimate

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        """The best single feature and the nearest known positive, compared with the ensemble."""
        return self.result.baselines

    @property
    def reasons(self) -> tuple[Reasons, ...]:
        """What counts for and against the first ``why`` rows."""
        return self.result.reasons

    @property
    def importance(self) -> tuple[FeatureImportance, ...]:
        """The features as ``Model.importance`` lists them; empty unless requested."""
        return self.result.importance

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The columns that ``resvm rank`` prints, by name, with None for an empty cell."""
        return self.listing.by_column()

    @property
    def ids(self) -> list[str]:
        """The ids of the rows, as text."""
        return self.listing.ids

    @property
    def known(self) -> BoolArray:
        """Whether each row is a known positive."""
        return self.listing.known

    @property
    def decision_values(self) -> FloatArray:
        """Out-of-bag decision values."""
        return self.listing.values

    @property
    def votes(self) -> FloatArray:
        """The fraction of members voting for each row, among those that have not seen it."""
        return self.listing.votes

    @property
    def members(self) -> IntArray:
        """How many members scored each row."""
        return self.listing.n_members

    @property
    def rank_low(self) -> IntArray | None:
        """Lower ends of the 95 % intervals of ranks; None without intervals."""
        return self.listing.low

    @property
    def rank_high(self) -> IntArray | None:
        """Upper ends of the 95 % intervals of ranks; None without intervals."""
        return self.listing.high

    @property
    def expected_false(self) -> FloatArray | None:
        """The expected number of false positives from rank 1 to each row; None unless ``audit``."""
        return self.listing.further.get("expected_false")

    @property
    def precision(self) -> FloatArray | None:
        """The expected fraction of positives from rank 1 to each row; None for an audit."""
        return self.listing.further.get("precision")

    @property
    def probability(self) -> FloatArray | None:
        """The probability that each row of U is positive; nan if unknown, None for an audit."""
        return self.listing.further.get("probability")

    @property
    def further(self) -> dict[str, FloatArray]:
        """Additional columns by name, as in ``resvm rank``: estimates, bounds, p- and q-values."""
        return dict(self.listing.further)

    def text(self, form: RankingFormat = "tsv") -> str:
        """Return the text that ``resvm rank`` writes.

        Parameters
        ----------
        form : {'tsv', 'csv', 'jsonl'}, default='tsv'
            The format.

        Returns
        -------
        str
            A header and one line per row; without a header for jsonl.
        """
        return b"".join(format_ranking(form, self.listing)).decode("utf-8", "surrogateescape")


def _cell(value: Any) -> str:
    """Return a value as HTML."""
    text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return escape(as_unicode(text))


@documented(
    parameters=[
        *shared_entries(
            *(*DATA, "ids", "model", "negatives", "tested", "exclude", "importance", "intervals"),
            *CALLING,
        ),
        *table_entries(RANKING_TABLE, RANKING_TABLE),
        *table_entries(TRAINING, TRAINING, {"decision": None}),
    ],
    raises=[INVALID],
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
        The rows in order, with values, probabilities and expected precision.

    {raises}
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
        require_known(parameters, {**RANKING_TABLE, **TRAINING}, "rank")
        parameters = with_seed(parameters, random_state)
        run = run_for(jobs, n_jobs, progress, notice)
        given = {"negatives": negatives, "tested": tested, "exclude": exclude}
        request, scale = _request(
            parameters,
            model,
            intervals=intervals,
            importance=importance,
            **{name: None if value is None else name for name, value in given.items()},
        )
        known = _loaded(model)
        labeled = labeled_rows(X, y, positive_label, negative_label, run)
        index = row_index(X, ids, len(labeled.positive))
        stored, kernel, zero_based = None, request.choice.params.kernel, False
        if known is not None:
            if known.columns is not None:
                known.columns.require(labeled.columns)
            request.check_method(known.method)
            stored = known.stored
            kernel, zero_based = stored.ensemble.groups[0].kernel.name, stored.zero_based
        names = [*map(str, index)]
        data = labeled.data(
            groups, scale, kernel=kernel, zero_based=zero_based, weights=weights, ids=names
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
    notes = tuple(map(str, run.notes))
    if known is None:
        assert found.stored is not None
        known = Model(found.stored, None, notes, run.jobs, labeled.columns)
    return Ranking(order, index[order], replace(_by_column(found, data), notes=notes), known)


def _request(
    parameters: Mapping[str, Any], model: Model | PathName | None, **given: Any
) -> tuple[RankRequest, ScaleChoice | None]:
    """Return what to rank and how to scale; reject training parameters if a model is given."""
    listed = {
        name: RANKING_TABLE[name].convert(value)
        for name, value in parameters.items()
        if name in RANKING_TABLE and value is not None
    }
    training = {name: value for name, value in parameters.items() if name not in RANKING_TABLE}
    if model is not None and (names := sorted(set(training) - {"decision"})):
        raise ParameterError("{" + names[0] + "} is for training, but {model} is already trained")
    choice, scale = (ranking_choice if model is None else training_choice)(training)
    name = None if model is None else "model" if isinstance(model, Model) else str(model)
    request = RankRequest(choice=choice, model=name, page=True, **given, **listed)
    request.check_list()
    return request, scale


def _by_column(found: RankResult, data: MemoryData) -> RankResult:
    """Number the features in a ranking from 0, like columns."""
    first = 0 if data.zero_based else 1
    importance = (replace(one, feature=one.feature - first) for one in found.importance)
    reasons = []
    for reason in found.reasons:
        effects = (replace(one, feature=one.feature - first) for one in reason.effects)
        reasons.append(replace(reason, effects=tuple(effects)))
    return replace(found, importance=tuple(importance), reasons=tuple(reasons))


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


def _loaded(model: Model | PathName | None) -> Model | None:
    if model is None or isinstance(model, Model):
        return model
    if not isinstance(model, (str, os.PathLike)):
        raise ParameterError("{model} must be a model or its path, got {value!r}", value=model)
    return load(model)
