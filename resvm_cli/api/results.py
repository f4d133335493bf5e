"""Results of the API functions: models, tuning results, rankings and file contents."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from resvm_cli.api.matrices import SAME_COLUMNS, ColumnLayout, Matrix, PathName, as_matrix
from resvm_cli.commands.rank.fdr import FdrEstimate
from resvm_cli.commands.rank.listing import Listing, RankingFormat, format_ranking
from resvm_cli.commands.rank.reasons import Reasons
from resvm_cli.errors import DataError, ModelError
from resvm_cli.model.decisions import Threshold
from resvm_cli.model.ensemble import Decisions, Predictor
from resvm_cli.model_files.directory import (
    FORMAT,
    PLAIN_FORMAT,
    StoredModel,
    check_model_target,
    save_model,
)
from resvm_cli.model_files.members import format_members
from resvm_cli.model_files.out_of_bag_table import OutOfBag
from resvm_cli.parameters import MethodName, RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.running import parallel

ROWS_AT_ONCE = 1 << 13
# Manifest entries that describe its files, not the model.
FILE_ENTRIES = ("kind", "format", "out_of_bag", "members", "manifest_sha256")


class SvmlightData(NamedTuple):
    """The contents of an svmlight file."""

    X: Any  # scipy's CSR matrix
    y: FloatArray  # nan if a line has no label
    ids: list[str]  # trailing comments, empty if there is none


@dataclass(frozen=True, eq=False)
class OutOfBagRows:
    """Decision values of the training rows by members that have not seen them."""

    decision_values: FloatArray  # nan if every member has seen the row
    members: IntArray  # how many members have not seen the row


@dataclass(frozen=True, eq=False)
class Model:
    """A trained ensemble, which predicts rows and can be saved for the command line."""

    stored: StoredModel
    table: OutOfBag | None  # saved with the model
    oob: OutOfBagRows | None = None
    notes: tuple[str, ...] = ()
    jobs: int | None = None
    columns: ColumnLayout | None = None  # of the training rows; None if the model was loaded

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
        """Number of columns, up to the last one with a value if the model was trained on files."""
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
        """Reject rows of another width, as far as a loaded model knows its width.

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

    def decisions(self, X: Matrix) -> Decisions:
        """Return the votes, sums, decision values and means of each row."""
        parts = self._each_block(X, self._predictor.decisions)
        names = ("votes", "sums", "values", "means", "n_members")
        joined = Decisions(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
        )
        bad = np.flatnonzero(~np.isfinite(joined.sums))
        if len(bad):
            raise DataError(
                f"row {bad[0]} of X: its decision value is not finite",
                "its values are far from those of the training rows: scale them the same way",
            )
        return joined

    def decision_values(self, X: Matrix) -> FloatArray:
        """Return decision values by the model's rule, as ``resvm predict`` writes them."""
        return self.decisions(X).by(self.decision)

    def predict(self, X: Matrix, threshold: float | None = None) -> IntArray:
        """Return 1 if the decision value exceeds the threshold (default: the model's), else -1."""
        limit = self.threshold.value if threshold is None else threshold
        return self.decisions(X).labels(limit, self.decision)

    def votes(self, X: Matrix) -> FloatArray:
        """Return the fraction of members that predict each row positive."""
        return self.decisions(X).votes

    def member_values(self, X: Matrix) -> FloatArray:
        """Return the decision value of each member: rows x members."""
        return np.concatenate(self._each_block(X, self._predictor.member_values))

    def save(self, path: PathName, *, force: bool = False) -> dict[str, Any]:
        """Write a model directory for the commands and return its manifest."""
        if self.stored.manifest.get("format") == 1:
            raise ModelError(
                "the model has format 1, but this version writes"
                f" formats {PLAIN_FORMAT} and {FORMAT}",
                "copy its directory, or fit it again",
            )
        check_model_target(os.fspath(path), force=force)
        return save_model(
            os.fspath(path),
            format_members(self.stored.ensemble),
            self.manifest,
            force=force,
            out_of_bag=self.table,
        )


@dataclass(frozen=True, eq=False)
class Tuning:
    """The result of a search; ``fit(X, y, params=tuning)`` uses it."""

    params: dict[str, Any]  # as in best.json
    trials: list[dict[str, Any]]  # as in trials.jsonl
    outer: tuple[float, ...]  # the metric on each outer fold
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<tuning: {len(self.trials):,} trials, the best in params>"


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows in order of rank; values are nan if every member has seen the row."""

    rows: IntArray  # row indices in X
    listing: Listing
    n_suspects: int | None  # known positives that look false
    notes: tuple[str, ...]
    promise: FdrEstimate | None = None  # contamination of P and U, precision of the list
    reasons: tuple[Reasons, ...] = ()  # for the first ``why`` rows; ids are row numbers from 1

    def __len__(self) -> int:
        return len(self.listing)

    def __repr__(self) -> str:
        first = ", ".join([*self.ids[:3], *(["..."] if len(self) > 3 else [])])
        return f"<ranking of {len(self):,} rows: {first}>"

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The columns that ``resvm rank`` prints, for ``pandas.DataFrame(ranking.columns)``."""
        records = list(self.listing.records())
        names = enumerate(self.listing.columns)
        return {name: [record[index] for record in records] for index, name in names}

    @property
    def ids(self) -> list[str]:
        return self.listing.ids

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        return self.listing.known

    @property
    def decision_values(self) -> FloatArray:
        return self.listing.values

    @property
    def votes(self) -> FloatArray:
        return self.listing.votes

    @property
    def members(self) -> IntArray:
        """How many members scored each row."""
        return self.listing.n_members

    @property
    def rank_low(self) -> IntArray | None:
        return self.listing.low

    @property
    def rank_high(self) -> IntArray | None:
        return self.listing.high

    @property
    def expected_false(self) -> FloatArray | None:
        """The expected number of false positives down to each row; None unless ``audit``."""
        return self.listing.expected_false

    @property
    def precision(self) -> FloatArray | None:
        """The expected fraction of positives down to each row; None for an audit."""
        return self.listing.further.get("precision")

    @property
    def probability(self) -> FloatArray | None:
        """The chance that each row of U is positive; nan if unknown, None for an audit."""
        return self.listing.further.get("probability")

    @property
    def further(self) -> dict[str, FloatArray]:
        """Additional columns by name, as in ``resvm rank``: estimates, bounds, p- and q-values."""
        return dict(self.listing.further)

    def text(self, form: RankingFormat = "tsv") -> str:
        """Return the text that ``resvm rank`` writes, as tsv, csv or jsonl."""
        return b"".join(format_ranking(form, self.listing)).decode("utf-8", "surrogateescape")
