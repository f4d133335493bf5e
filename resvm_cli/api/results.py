"""Models and tuning results of the API functions, and models from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.api.arguments import SAVING, SHARED, documented, entry, shared_entries, table_entries
from resvm_cli.api.matrices import (
    SAME_COLUMNS,
    ColumnLayout,
    Label,
    LabeledMatrix,
    Matrix,
    PathName,
    as_matrix,
)
from resvm_cli.errors import DataError, ModelError
from resvm_cli.model.decisions import Threshold
from resvm_cli.model.ensemble import Decisions, Predictor
from resvm_cli.model.importance import FeatureImportance, feature_importance
from resvm_cli.model.out_of_bag import UnseenMask
from resvm_cli.model_files.directory import (
    FORMAT,
    PLAIN_FORMAT,
    StoredModel,
    check_model_target,
    load_with_out_of_bag,
)
from resvm_cli.model_files.out_of_bag_table import OutOfBag, fitted_classes, unknown_probability
from resvm_cli.parameters import RANKING_TABLE, MethodName, RuleName, check_contamination
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.training.train import redrawn_rows, save

ROWS_AT_ONCE = 1 << 13
ROWS = [entry("X", SHARED["X"][0], "Rows with the same columns as in training, in the same order.")]
BAD_ROWS = [
    "ValueError\n    If the columns differ from the training columns, or a value is not finite."
]
THRESHOLD = (
    "float, optional",
    "Rows with a larger decision value are predicted positive. Default: the model's.",
)
# Manifest entries that describe the model's files, not the model itself.
FILE_ENTRIES = ("kind", "format", "out_of_bag", "members", "manifest_sha256")


@dataclass(frozen=True, eq=False)
class OutOfBagRows:
    """Decision values of the training rows from members that have not seen them.

    Attributes
    ----------
    decision_values : array of float
        One per row of X; nan if every member has seen the row.
    members : array of int
        How many members have not seen each row.
    """

    decision_values: FloatArray
    members: IntArray


@dataclass(frozen=True, eq=False)
class Model:
    """A trained ensemble, which predicts rows and can be saved for the command line.

    ``fit`` and ``load`` return models.

    Attributes
    ----------
    oob : OutOfBagRows or None
        Out-of-bag decision values of the training rows, if ``fit`` was called with ``oob=True``.
    notes : tuple of str
        Notes about the training; those that need attention were also warnings.
    jobs : int or None
        Number of threads for predictions. None: as many as there are cores.
    columns : ColumnLayout or None
        The number and names of the training columns; None if the model was loaded and was not
        trained on a table or a DataFrame.
    stored : StoredModel
        The model as the commands represent it.

    Examples
    --------
    >>> import numpy as np
    >>> import resvm_cli
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2  # the positives
    >>> model = resvm_cli.fit(X, np.arange(300) < 40, n_models=20, decision="mean")
    >>> model.method, model.n_models, round(model.threshold.value, 2)
    ('resvm', 20, -0.1)
    >>> model.decision_values([[2, 2], [0, 0]]).round(1)
    array([ 1.1, -1.6])
    """

    stored: StoredModel
    oob: OutOfBagRows | None = None
    notes: tuple[str, ...] = ()
    jobs: int | None = None
    columns: ColumnLayout | None = None

    def __repr__(self) -> str:
        members = "1 member" if self.n_models == 1 else f"{self.n_models:,} members"
        return (
            f"<{self.method} model: {members}, {self.n_features:,} features,"
            f" positive above {self.threshold.value:.4g} by {self.decision}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return everything except the cached predictor."""
        return {name: value for name, value in vars(self).items() if name != "_predictor"}

    @property
    def method(self) -> MethodName:
        """The method: resvm, bagging or cwsvm."""
        method: MethodName = self.stored.manifest["method"]
        return method

    @property
    def decision(self) -> RuleName:
        """The decision rule: votes or mean."""
        return self.stored.decision.rule

    @property
    def threshold(self) -> Threshold:
        """Rows with a larger decision value are predicted positive."""
        return self.stored.decision.threshold

    @property
    def n_features(self) -> int:
        """Number of columns; if trained on files, counted up to the last one with a value."""
        counted = int(self.stored.manifest["n_features"])
        return counted - 1 if self.stored.ensemble.is_precomputed else counted  # the serial number

    @property
    def n_models(self) -> int:
        """Number of members."""
        return len(self.stored.ensemble.members)

    @property
    def n_unconverged(self) -> int:
        """Number of members that stopped at the solver's iteration limit."""
        return int(self.stored.manifest["unconverged"])

    @property
    def manifest(self) -> dict[str, Any]:
        """The description of the model, as in its manifest."""
        return {
            name: value for name, value in self.stored.manifest.items() if name not in FILE_ENTRIES
        }

    @property
    def table(self) -> OutOfBag | None:
        """Out-of-bag values that are saved with the model."""
        return self.stored.out_of_bag

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.stored.ensemble)

    def _each_block(self, X: Matrix, apply: Callable[[Rows], Any]) -> list[Any]:
        counted_from_0 = self.stored.zero_based and not self.stored.ensemble.is_precomputed
        matrix = as_matrix(X)
        if self.columns is not None:
            self.columns.require(ColumnLayout.from_matrix(X, matrix))
        rows = Rows.from_matrix(matrix, 0 if counted_from_0 else 1)
        if self.columns is None:
            self._require_features(matrix, rows)
        blocks = [
            rows.slice(start, min(start + ROWS_AT_ONCE, len(rows)))
            for start in range(0, max(1, len(rows)), ROWS_AT_ONCE)
        ]
        with parallel.inner_threads_held():
            return list(parallel.run(apply, blocks, self.jobs or parallel.available_cores()))

    def _require_features(self, matrix: Any, rows: Rows) -> None:
        """Reject rows with the wrong number of features, if the model stores the right number.

        Sparse rows may omit features as lines of a file do; columns of zeros at the end are fine.
        """
        n_columns, n_features = matrix.shape[1], self.n_features
        wrong = n_columns < n_features and not hasattr(matrix, "tocsr")
        wrong |= rows.max_index > self.stored.last_feature
        if wrong or (self.stored.ensemble.is_precomputed and n_columns != n_features):
            raise DataError(
                f"X has {n_columns:,} columns, but the model was trained on {n_features:,}",
                SAME_COLUMNS,
            )

    @documented(parameters=ROWS, raises=BAD_ROWS)
    def decisions(self, X: Matrix) -> Decisions:
        """Return the votes, sums, decision values and means of each row.

        {parameters}

        Returns
        -------
        Decisions
            Its arrays ``votes``, ``sums``, ``values`` and ``means`` have one number per row.

        {raises}
        """
        parts = self._each_block(X, self._predictor.decisions)
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        joined = Decisions(*map(np.concatenate, columns))
        bad = np.flatnonzero(~np.isfinite(joined.sums))
        if len(bad):
            raise DataError(
                f"row {bad[0]} of X: the decision value is not finite",
                "the row is far from the training rows: was it scaled in the same way?",
            )
        return joined

    @documented(parameters=ROWS, raises=BAD_ROWS)
    def decision_values(self, X: Matrix) -> FloatArray:
        """Return decision values by the model's rule, as ``resvm predict`` writes them.

        {parameters}

        Returns
        -------
        array of float
            Larger for likelier positives.

        {raises}
        """
        return self.decisions(X).by(self.decision)

    @documented(parameters=[*ROWS, entry("threshold", *THRESHOLD)], raises=BAD_ROWS)
    def predict(self, X: Matrix, threshold: float | None = None) -> IntArray:
        """Return 1 if the decision value exceeds the threshold, else -1.

        {parameters}

        Returns
        -------
        array of int
            1 or -1 per row.

        {raises}
        """
        limit = self.threshold.value if threshold is None else threshold
        return self.decisions(X).labels(limit, self.decision)

    @documented(
        parameters=[
            *ROWS,
            *table_entries(RANKING_TABLE, ("contamination_pos", "contamination_unl")),
        ]
    )
    def predict_proba(
        self,
        X: Matrix,
        *,
        contamination_pos: float | None = None,
        contamination_unl: float | None = None,
    ) -> FloatArray:
        """Return each row's probabilities of being negative and positive, as two columns.

        The second column is the ``probability`` of ``rank``, computed from the out-of-bag
        values stored with the model. It applies to new rows from the same distribution as U, and
        never decreases as the decision value increases.

        {parameters}

        Returns
        -------
        array, rows x 2
            One column for each label of ``predict``, -1 and 1.

        Raises
        ------
        ModelError
            If the probability cannot be estimated: P and U overlap and ``contamination_unl`` is not
            given, or the model has no out-of-bag values of P (bagging, cwsvm, older versions).
        """
        fractions = contamination_pos, contamination_unl
        check_contamination(*fractions)
        classes = fitted_classes(self.table, self.method, self.decision, *fractions)
        if unknown := unknown_probability(classes):
            raise unknown
        assert classes is not None
        chances = classes.probability(self.decision_values(X))
        return np.column_stack([1 - chances, chances])

    @documented(parameters=ROWS, raises=BAD_ROWS)
    def votes(self, X: Matrix) -> FloatArray:
        """Return the fraction of members that predict each row positive.

        {parameters}

        Returns
        -------
        array of float
            From 0 to 1.

        {raises}
        """
        return self.decisions(X).votes

    @documented(parameters=ROWS, raises=BAD_ROWS)
    def member_values(self, X: Matrix) -> FloatArray:
        """Return the decision value of each member: rows x members.

        {parameters}

        Returns
        -------
        array of float
            One row per row of X, one column per member.

        {raises}
        """
        return np.concatenate(self._each_block(X, self._predictor.member_values))

    @documented(
        parameters=[
            entry("X", SHARED["X"][0], "The rows that the model was trained on."),
            *shared_entries("y", "groups", "weights", "positive_label", "negative_label"),
        ]
    )
    def importance(
        self,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        groups: Sequence[Any] | None = None,
        weights: npt.ArrayLike | None = None,
        positive_label: Label | None = None,
        negative_label: Label | None = None,
    ) -> tuple[FeatureImportance, ...]:
        """Return the features by permutation importance out of bag, largest first.

        Importance is the mean drop in the members' ROC AUC of P against U, for any kernel but a
        precomputed one. Correlated features are permuted together.

        The labels, groups and weights must be those of ``fit``.

        {parameters}

        Returns
        -------
        tuple of FeatureImportance
            Each has ``feature`` (a column number, from 0), ``name`` (of the column, or its
            number), ``importance``, ``deviation`` (the standard deviation over members) and
            ``group`` (the same for correlated features).

        Raises
        ------
        ModelError
            If the model was trained on other rows, or its kernel is precomputed.
        ValueError
            If every member has seen all of P, as in bagging and cwsvm.
        """
        ensemble, zero_based = self.stored.ensemble, self.stored.zero_based
        labeled = LabeledMatrix.from_arrays(X, y, positive_label, negative_label)
        run = Run(jobs=self.jobs)
        with parallel.inner_threads_held():
            kernel = ensemble.groups[0].kernel.name
            data = labeled.data(groups, None, kernel=kernel, zero_based=zero_based, weights=weights)
            plan, problems, rows = redrawn_rows(self.stored, "model", data, run)
            mask = UnseenMask(problems, rows)
            found = feature_importance(ensemble, data, mask, plan.seed, run)
        first = 0 if zero_based else 1
        return tuple(replace(one, feature=one.feature - first) for one in found)

    @documented(**SAVING)
    def save(self, path: PathName, *, force: bool = False) -> dict[str, Any]:
        """Write a model directory, which ``load`` and the commands read.

        {parameters}

        Returns
        -------
        dict
            The manifest.

        {raises}
        ModelError
            If the model was loaded from format 1, which this version does not write.
        """
        if self.stored.manifest.get("format") == 1:
            raise ModelError(
                "the model has format 1, but this version writes"
                f" formats {PLAIN_FORMAT} and {FORMAT}",
                "copy its directory, or fit the model again",
            )
        check_model_target(os.fspath(path), force=force)
        return save(replace(self.stored, manifest=self.manifest), os.fspath(path), force=force)


def load(path: PathName) -> Model:
    """Load a model that ``resvm train`` or ``Model.save`` wrote.

    Parameters
    ----------
    path : str or path-like
        The model directory.

    Returns
    -------
    Model
        The same model, without ``oob`` and ``notes``.

    Raises
    ------
    ModelError
        If the model does not exist or is damaged.

    Examples
    --------
    >>> import numpy as np
    >>> import resvm_cli
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2
    >>> model = resvm_cli.fit(X, np.arange(300) < 40, n_models=5)
    >>> manifest = model.save("example-model", force=True)
    >>> again = resvm_cli.load("example-model")
    >>> bool((again.votes(X) == model.votes(X)).all())
    True
    """
    stored = load_with_out_of_bag(os.fspath(path), required=False)
    columns = None
    if stored.encoding is not None:  # a table's features, by name
        names = tuple(stored.encoding.names)
        columns = ColumnLayout(len(names), names)
    return Model(stored, columns=columns)
