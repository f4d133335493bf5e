"""For Python: what the commands do, on matrices in memory, by the same engine to the same bytes.

A model that is fitted here and one that ``resvm train --data`` writes of the same rows, options and
seed are equal. Column 0 of a matrix is feature 1 of a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli import parallel
from resvm_cli.dataset import FloatArray, IntArray, Rows
from resvm_cli.ensemble.decision import Threshold
from resvm_cli.ensemble.model import Decisions, Predictor, RuleName
from resvm_cli.ensemble.params import MethodName
from resvm_cli.ensemble.pu_data import MemoryData
from resvm_cli.ensemble.scaling import ScaleChoice
from resvm_cli.errors import DataError, ModelError
from resvm_cli.files import model_dir
from resvm_cli.files.model_dir import StoredModel
from resvm_cli.files.model_text import format_members
from resvm_cli.files.out_of_bag_table import OutOfBag
from resvm_cli.files.ranked_rows import Listing, RankingFormat, format_ranking
from resvm_cli.jobs.rank import judge_of, rank_on
from resvm_cli.jobs.rank_promise import Promise
from resvm_cli.jobs.rank_reasons import Reasons
from resvm_cli.jobs.rank_request import RankRequest
from resvm_cli.jobs.train import Trained, stored_table, train_on
from resvm_cli.jobs.training_data import Progress
from resvm_cli.jobs.training_input import TrainingInput
from resvm_cli.jobs.tune import tune_on
from resvm_cli.keywords import (
    PathName,
    TrainingOptions,
    TuningOptions,
    require_known,
    scale_choice,
    training_choice,
    tuning_settings,
)
from resvm_cli.parallel import available_cores
from resvm_cli.parameter_names import ParameterError, named, parameters_named
from resvm_cli.svm.kernels import KernelName

if TYPE_CHECKING:
    from typing_extensions import Unpack

Matrix: TypeAlias = Any  # numpy's, scipy's sparse ones, or rows as lists
Label: TypeAlias = float | int | str

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
        counted_from_0 = self.stored.zero_based and not self.stored.ensemble.looks_up
        rows = Rows.from_matrix(_matrix(X), 0 if counted_from_0 else 1)
        blocks = [
            rows.slice(start, min(start + ROWS_AT_ONCE, len(rows)))
            for start in range(0, max(1, len(rows)), ROWS_AT_ONCE)
        ]
        with parallel.inner_threads_held():
            return list(parallel.run(judge, blocks, self.jobs or available_cores()))

    def decisions(self, X: Matrix) -> Decisions:
        """All that the ensemble says of each row."""
        with parameters_named():
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
        with parameters_named():
            return np.concatenate(self._each_block(X, self._predictor.member_values))

    def save(self, path: PathName, *, force: bool = False) -> dict[str, Any]:
        """Write a model directory for ``resvm predict`` and the others; its manifest."""
        with parameters_named():
            if self.stored.manifest.get("format", model_dir.FORMAT) != model_dir.FORMAT:
                raise ModelError(
                    f"the model has format {self.stored.manifest['format']}, and format"
                    f" {model_dir.FORMAT} is written",
                    "copy its directory, or fit it again",
                )
            model_dir.check_target(os.fspath(path), force=force)
            return model_dir.save(
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


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows in the order of their ranks, from 1 on; nan where no member may judge a row."""

    rows: IntArray  # their numbers in X, from 0
    listing: Listing
    n_suspects: int | None  # known positives that look wrong
    notes: tuple[str, ...]
    promise: Promise | None = None  # what is expected of U, and of the list that fdr chose
    reasons: tuple[Reasons, ...] = ()  # of the first rows, where why asks; ids count rows from 1

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


class _Notes(list[str]):
    """What the engine says, kept and handed on, in the words of Python."""

    def __init__(self, notice: Callable[[str], None] | None) -> None:
        super().__init__()
        self._notice = notice

    def tell(self, text: str) -> None:
        text = named(text)
        self.append(text)
        if self._notice is not None:
            self._notice(text)


def _silent(stage: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""


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
    **options: Unpack[TrainingOptions],
) -> Model:
    """Learn from rows of the positive label and unlabeled rows, which have any other.

    With ``oob`` the model keeps what members say of training rows that they have not seen. Of
    ``weights``, a number from 0 to 1 a row of X, those of known positives count: bags hold these in
    proportion.
    """
    notes = _Notes(notice)
    with _engine():
        require_known(options, TrainingOptions, "fit")
        choice, scale = training_choice(options)
        labelled = _Labelled.of(X, y, positive_label)
        data = labelled.data(groups, scale, kernel=choice.params.kernel, weights=weights)
        trained = train_on(data, choice, jobs=jobs, progress=progress, notice=notes.tell)
        stored = StoredModel(
            trained.description,
            trained.plan,
            trained.conclusion.rule,
            trained.ensemble,
            data.scaling,
        )
        unseen = _out_of_bag(trained, data, labelled, jobs, progress) if oob else None
        return Model(stored, stored_table(trained.conclusion), unseen, tuple(notes), jobs)


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
    **options: Unpack[TuningOptions],
) -> Tuning:
    """Choose hyperparameters without negatives."""
    notes = _Notes(notice)
    with _engine():
        require_known(options, TuningOptions, "tune")
        settings = tuning_settings(options)
        settings.check()
        scale = scale_choice(options.get("scale", "none"))
        labelled = _Labelled.of(X, y, positive_label)
        data = labelled.data(groups, scale, kernel=settings.base.kernel, weights=weights)
        found = tune_on(data, settings, jobs=jobs, progress=progress, notice=notes.tell)
        return Tuning(
            found.params, [trial.record for trial in found.trials], found.outer, tuple(notes)
        )


def rank(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    ids: Sequence[str] | None = None,
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
    **options: Unpack[TrainingOptions],
) -> Ranking:
    """Put unlabeled rows in order, best first, or known positives, most suspicious first.

    Each row is judged only by members that have not seen it: of ``model``, which was trained on
    the same rows, or of one that is trained here.
    """
    notes = _Notes(notice)
    with _engine():
        require_known(options, TrainingOptions, "rank")
        if model is not None and set(options) - {"decision"}:
            name = sorted(set(options) - {"decision"})[0]
            raise ParameterError(f"{name} is for training, and model is trained already")
        choice, scale = training_choice(options)
        stored = model.stored if isinstance(model, Model) else model and load(model).stored
        request = RankRequest(
            choice=choice,
            model=None if model is None else _name_of(model),
            audit=audit,
            with_known=with_known,
            top=top,
            contamination_pos=contamination_pos,
            contamination_unl=contamination_unl,
            fdr=fdr,
            negatives=None if negatives is None else "negatives",
            why=why,
            intervals=intervals,
            jobs=jobs,
        )
        request.check_list()
        labelled = _Labelled.of(X, y, positive_label)
        if ids is not None and len(ids) != len(labelled.positive):
            raise DataError(f"{len(ids):,} ids, and X has {len(labelled.positive):,} rows")
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
            trusted = Rows.from_matrix(_matrix(negatives), 0 if data.zero_based else 1)
        found = rank_on(data, request, stored or None, progress, notes.tell, negatives=trusted)
        listing = found.listing
        rows = np.array([int(number) - 1 for number in listing.ids], np.int64)
        if ids is not None:
            listing = replace(listing, ids=[str(ids[row]) for row in rows.tolist()])
        return Ranking(rows, listing, found.n_suspects, tuple(notes), found.promise, found.reasons)


def load(path: PathName) -> Model:
    """A model that ``resvm train`` or ``Model.save`` wrote."""
    with parameters_named():
        return Model(*model_dir.load_with_out_of_bag(os.fspath(path), required=False))


def read_svmlight(
    path: PathName, *, zero_based: bool = False, features: int | None = None
) -> SvmlightData:
    """A svmlight file, plain or compressed: a CSR matrix, labels, and the rows' ids."""
    from scipy.sparse import csr_matrix

    from resvm_cli.files.svmlight import read_file

    with parameters_named():
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


@contextmanager
def _engine() -> Iterator[None]:
    """Errors in the words of Python, and BLAS on one thread, as the command line runs it."""
    with parameters_named(), parallel.inner_threads_held():
        yield


def _name_of(model: Model | PathName) -> str:
    return "model" if isinstance(model, Model) else os.fspath(model)


def _matrix(X: Matrix) -> Any:
    """Rows as numpy or scipy has them."""
    matrix = X if hasattr(X, "tocsr") else np.asarray(X, np.float64)
    if len(matrix.shape) != 2:
        raise DataError(f"X has {len(matrix.shape)} dimensions; rows and columns are 2")
    return matrix


@dataclass(frozen=True, eq=False)
class _Labelled:
    """A matrix, and which of its rows are known positives."""

    matrix: Any
    positive: npt.NDArray[np.bool_]
    label: Label

    @classmethod
    def of(cls, X: Matrix, y: npt.ArrayLike, label: Label) -> _Labelled:
        matrix, labels = _matrix(X), np.asarray(y)
        if labels.shape != (matrix.shape[0],):
            shape = "x".join(map(str, labels.shape))
            raise DataError(f"y has {shape} labels, and X has {matrix.shape[0]:,} rows")
        positive = np.asarray(labels == label, bool)
        if not positive.any():
            there = ", ".join(str(value) for value in np.unique(labels)[:20].tolist())
            raise DataError(
                f"no row has the label {label}, which known positives have",
                f"labels that are there: {there}; set positive_label",
            )
        if positive.all():
            raise DataError(f"every row has the label {label}; none is left as unlabeled")
        return cls(matrix, positive, label)

    @property
    def order(self) -> IntArray:
        """The numbers of all rows, those of P before those of U."""
        return np.concatenate([np.flatnonzero(self.positive), np.flatnonzero(~self.positive)])

    def data(
        self,
        groups: Sequence[Any] | None,
        scale: ScaleChoice | None,
        *,
        kernel: KernelName = "rbf",
        zero_based: bool = False,
        weights: npt.ArrayLike | None = None,
    ) -> MemoryData:
        """P and U, as the engine asks for them."""
        source = TrainingInput(scale=scale, zero_based=zero_based).for_kernel(kernel)
        n_rows, n_columns = self.matrix.shape
        if source.precomputed and n_rows != n_columns:
            raise DataError(
                f"X has {n_rows:,} rows and {n_columns:,} columns; a precomputed kernel has the"
                " values of all rows with all: a square matrix"
            )
        of_rows: npt.NDArray[Any] | None = None
        if groups is not None:
            # names, as a file has them: folds are drawn in their order
            of_rows = np.array([str(name) for name in groups], object)
            if len(of_rows) != len(self.positive):
                raise DataError(f"{len(of_rows):,} groups, and X has {len(self.positive):,} rows")
            of_rows = of_rows[self.order]
        if weights is not None:
            weights = np.asarray(weights, np.float64)
            if weights.shape != self.positive.shape:
                raise DataError(f"{weights.size:,} weights, and X has {n_rows:,} rows")
            weights = weights[self.positive]
        return MemoryData.from_matrix(
            self.matrix,
            self.positive,
            groups=of_rows,
            weights=weights,
            ids=[str(row + 1) for row in self.order.tolist()],
            scale=source.scale,
            precomputed=source.precomputed,
            zero_based=source.zero_based,
            features=int(n_columns) + source.precomputed,
            positive_label=None if isinstance(self.label, str) else float(self.label),
        )


def _out_of_bag(
    trained: Trained,
    data: MemoryData,
    labelled: _Labelled,
    jobs: int | None,
    progress: Progress,
) -> OutOfBagRows | None:
    """Decision values of the training rows, by members that have not seen them."""
    plan, judged = trained.plan, trained.conclusion.judged
    if plan.method == "cwsvm":
        return None  # it has seen every row
    rule = trained.conclusion.rule.rule
    values = np.full(len(labelled.positive), np.nan)
    members = np.zeros(len(values), np.int64)
    place = labelled.order
    if len(judged) == len(values):  # they belong to the model already
        numbers = place[np.concatenate([judged.positive, plan.rows_pos + judged.unlabeled])]
        decisions = trained.conclusion.decisions
        values[numbers], members[numbers] = decisions.by(rule), decisions.n_members
        return OutOfBagRows(values, members)
    judge = replace(judge_of(trained, data, data.groups(), rule, jobs, progress), break_ties=False)
    if plan.method == "resvm":
        known, rows = judge.positives(data.positives, None), place[: plan.rows_pos]
        values[rows], members[rows] = known.values, known.n_members
    unlabeled, rows = judge.unlabeled(data.unlabeled(), plan.rows_unl, None), place[plan.rows_pos :]
    values[rows], members[rows] = unlabeled.values, unlabeled.n_members
    return OutOfBagRows(values, members)
