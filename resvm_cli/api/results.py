"""What the functions of ``api.py`` return: models, tunings, rankings, files that were read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from resvm_cli.api.matrices import Matrix, PathName, as_matrix
from resvm_cli.commands.rank.fdr import Promise
from resvm_cli.commands.rank.ranked_rows import Listing, RankingFormat, format_ranking
from resvm_cli.commands.rank.reasons import Reasons
from resvm_cli.errors import DataError, ModelError
from resvm_cli.model.decisions import Threshold
from resvm_cli.model.ensemble import Decisions, Predictor
from resvm_cli.model_files.directory import FORMAT, StoredModel, check_model_target, save_model
from resvm_cli.model_files.members import format_members
from resvm_cli.model_files.out_of_bag_table import OutOfBag
from resvm_cli.parameters import MethodName, RuleName
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.running import parallel
from resvm_cli.running.parallel import available_cores

ROWS_AT_ONCE = 1 << 13
# What a manifest has besides the description of a model.
OF_FILES = ("kind", "format", "out_of_bag", "members", "manifest_sha256")


class SvmlightData(NamedTuple):
    """What a svmlight file holds."""

    X: Any  # scipy's CSR matrix
    y: FloatArray  # nan where a line has no label
    ids: list[str]  # trailing comments, empty where there is none


@dataclass(frozen=True, eq=False)
class OutOfBagRows:
    """What members that have not seen a row say of it; rows are those that were fitted."""

    decision_values: FloatArray  # nan where every member has seen the row
    members: IntArray  # how many have not


@dataclass(frozen=True, eq=False)
class Model:
    """A trained ensemble: it judges rows, and is saved as what the command line reads."""

    stored: StoredModel
    table: OutOfBag | None  # kept with it on disk
    oob: OutOfBagRows | None = None
    notes: tuple[str, ...] = ()
    jobs: int | None = None

    def __repr__(self) -> str:
        members = "1 member" if self.n_models == 1 else f"{self.n_models:,} members"
        return (
            f"<{self.method} model: {members}, {self.n_features:,} features,"
            f" positive above {self.threshold.value:.4g} by {self.decision}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all but what can be made again."""
        return {name: value for name, value in vars(self).items() if name != "_predictor"}

    @property
    def method(self) -> MethodName:
        method: MethodName = self.stored.manifest["method"]
        return method

    @property
    def decision(self) -> RuleName:
        """The rule of its decision values."""
        return self.stored.decision.rule

    @property
    def threshold(self) -> Threshold:
        """Rows of larger decision values are positive."""
        return self.stored.decision.threshold

    @property
    def n_features(self) -> int:
        return int(self.stored.manifest["n_features"])

    @property
    def n_models(self) -> int:
        """How many members it has."""
        return len(self.stored.ensemble.members)

    @property
    def n_unconverged(self) -> int:
        """How many members stopped at the solver's iteration limit."""
        return int(self.stored.manifest["unconverged"])

    @property
    def manifest(self) -> dict[str, Any]:
        """What is known of the model, as its manifest says it."""
        return {name: value for name, value in self.stored.manifest.items() if name not in OF_FILES}

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.stored.ensemble, self.stored.scaling)

    def _each_block(self, X: Matrix, judge: Callable[[Rows], Any]) -> list[Any]:
        counted_from_0 = self.stored.zero_based and not self.stored.ensemble.is_precomputed
        matrix = as_matrix(X)
        # A file's rows end where their features do; an array has them all.
        whole = not (hasattr(matrix, "tocsr") or self.stored.ensemble.is_precomputed)
        if whole and matrix.shape[1] < self.n_features:
            raise DataError(
                f"X has {matrix.shape[1]:,} columns, and the model was trained on"
                f" {self.n_features:,}",
                "give the columns of the training rows, in their order",
            )
        rows = Rows.from_matrix(matrix, 0 if counted_from_0 else 1)
        blocks = [
            rows.slice(start, min(start + ROWS_AT_ONCE, len(rows)))
            for start in range(0, max(1, len(rows)), ROWS_AT_ONCE)
        ]
        with parallel.inner_threads_held():
            return list(parallel.run(judge, blocks, self.jobs or available_cores()))

    def decisions(self, X: Matrix) -> Decisions:
        """All that the ensemble says of each row."""
        parts = self._each_block(X, self._predictor.decisions)
        names = ("votes", "sums", "values", "means", "n_members")
        joined = Decisions(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
        )
        bad = np.flatnonzero(~np.isfinite(joined.sums))
        if len(bad):
            raise DataError(
                f"row {bad[0]} of X: its decision value is not finite",
                "its values are far outside what the model was trained on: scale them as then",
            )
        return joined

    def decision_values(self, X: Matrix) -> FloatArray:
        """d by the model's rule, as ``resvm predict`` writes it."""
        return self.decisions(X).by(self.decision)

    def predict(self, X: Matrix, threshold: float | None = None) -> IntArray:
        """1 where the decision value exceeds the threshold, the model's own if none is given."""
        limit = self.threshold.value if threshold is None else threshold
        return self.decisions(X).labels(limit, self.decision)

    def votes(self, X: Matrix) -> FloatArray:
        """The share of members that call each row positive."""
        return self.decisions(X).votes

    def member_values(self, X: Matrix) -> FloatArray:
        """What each member says: rows x members."""
        return np.concatenate(self._each_block(X, self._predictor.member_values))

    def save(self, path: PathName, *, force: bool = False) -> dict[str, Any]:
        """Write a model directory for ``resvm predict`` and the others; its manifest."""
        if self.stored.manifest.get("format", FORMAT) != FORMAT:
            raise ModelError(
                f"the model has format {self.stored.manifest['format']}, and format {FORMAT} is"
                " written",
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
    """What a search chose; ``fit(X, y, params=tuning)`` trains it."""

    params: dict[str, Any]  # as in best.json
    trials: list[dict[str, Any]]  # as in trials.jsonl
    outer: tuple[float, ...]  # the metric on outer folds, where they were asked for
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<tuning: {len(self.trials):,} trials, the best in params>"


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows in the order of their ranks, from 1 on; nan where no member may judge a row."""

    rows: IntArray  # their numbers in X, from 0
    listing: Listing
    n_suspects: int | None  # known positives that look wrong
    notes: tuple[str, ...]
    promise: Promise | None = None  # what is expected of U, and of the list that fdr chose
    reasons: tuple[Reasons, ...] = ()  # of the first rows, where why asks; ids count rows from 1

    def __len__(self) -> int:
        return len(self.listing)

    def __repr__(self) -> str:
        first = ", ".join([*self.ids[:3], *(["..."] if len(self) > 3 else [])])
        return f"<ranking of {len(self):,} rows: {first}>"

    @property
    def columns(self) -> dict[str, list[Any]]:
        """What ``resvm rank`` prints, by name: ``pandas.DataFrame(ranking.columns)``."""
        records = list(self.listing.records())
        names = enumerate(self.listing.columns)
        return {name: [record[place] for record in records] for place, name in names}

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
        """By how many each row was judged."""
        return self.listing.n_members

    @property
    def rank_low(self) -> IntArray | None:
        return self.listing.low

    @property
    def rank_high(self) -> IntArray | None:
        return self.listing.high

    @property
    def expected_false(self) -> FloatArray | None:
        """Of an audit: false positives expected up to each row."""
        return self.listing.expected_false

    @property
    def precision(self) -> FloatArray | None:
        """Of a ranking of U: the share of positives expected up to each row."""
        return self.listing.further.get("precision")

    @property
    def further(self) -> dict[str, FloatArray]:
        """Those columns with their bounds, p-values and q-values: as ``resvm rank`` names them."""
        return dict(self.listing.further)

    def text(self, form: RankingFormat = "tsv") -> str:
        """As ``resvm rank`` writes it."""
        return b"".join(format_ranking(form, self.listing)).decode("utf-8", "surrogateescape")
