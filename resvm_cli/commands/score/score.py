"""Evaluate prediction files: metrics with intervals, curves, and differences between files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from resvm_cli.errors import DataError, Message, ParameterError, Text, listed
from resvm_cli.files.predictions import Predictions, read_predictions
from resvm_cli.files.row_lists import read_known_ids, read_labels
from resvm_cli.files.streams import STDIN, as_unicode, name_of, same_source
from resvm_cli.files.svmlight import format_number
from resvm_cli.metrics import intervals
from resvm_cli.metrics.class_mixture import MIN_POSITIVES, MIN_UNLABELED, ClassMixture
from resvm_cli.metrics.contamination_correction import (
    Contamination,
    KnownContamination,
    contamination_grid,
    corrected_areas,
    corrected_at_threshold,
)
from resvm_cli.metrics.curves import Curve, CurveBand, Points, curve_band
from resvm_cli.metrics.intervals import Interval
from resvm_cli.metrics.ranking import Confusion, ScoredLabels, best_pu_score, depth_of, pu_score
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, distinct
from resvm_cli.running.run import Run

ALPHAS = (20.0, 80.5)  # for BEDROC
FRACTIONS = (0.005, 0.01, 0.05, 0.1)  # depths for precision, recall and enrichment
# Figures from P and U that depend on the threshold.
AT_THRESHOLD = (
    *("recall", "fraction_positive", "fraction_positive_unlabeled", "pu_score"),
    *("corrected_recall", "corrected_fpr", "corrected_precision", "corrected_f1"),
)
SHOWN_LABELS = 20  # in an error
BY_ORDER = "rows are joined by id if both files have ids; to join by order, remove the ids from one"


@dataclass(frozen=True)
class ScoreRequest:
    """The prediction files, their labels, and what to compute."""

    files: tuple[str, ...]
    labels: str | None = None
    positive_ids: str | None = None
    allow_missing: bool = False  # positive ids may be missing from the predictions
    positive_label: float | None = None
    pu: bool = False
    known: KnownContamination | None = None
    threshold: float | None = None
    top: tuple[int, ...] = (10, 100)  # depths for precision, recall and enrichment
    n_replicates: int = 1000  # bootstrap replicates
    seed: int = 0

    @property
    def labels_name(self) -> str:
        """The name of the file that says which rows are positive."""
        return name_of(self.labels or self.positive_ids or "")

    def check(self) -> None:
        """Reject missing or contradictory parameters before any file is read."""
        if (self.labels is None) == (self.positive_ids is None):
            raise ParameterError(
                "give either {labels} or {positive_ids}", "for example {labels:test.svm}"
            )
        sources = [*self.files, self.labels or self.positive_ids]
        if sources.count(STDIN) > 1:
            raise ParameterError("only one input can be stdin")
        if self.labels and any(same_source(self.labels, file) for file in self.files):
            raise ParameterError(
                "{labels} is also one of the prediction files: {name}",
                "give the file that was predicted, which has the true labels: {labels:test.svm}",
                name=name_of(self.labels),
            )
        if self.positive_label is not None and self.positive_ids is not None:
            raise ParameterError("{positive_label} requires {labels}")
        if self.allow_missing and self.positive_ids is None:
            raise ParameterError("{allow_missing:True} requires {positive_ids}")
        if self.known is not None and not self.pu:
            raise ParameterError(
                "{contamination_pos} and {contamination_unl} require {pu:True}",
                "true labels need no correction",
            )


@dataclass(frozen=True)
class Figures:
    """Named figures in display order, some with confidence bounds."""

    values: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)

    def put(self, name: str, interval: Interval, bounded: bool = True) -> None:
        """Add a figure, with its bounds unless ``bounded`` is false (no replicates)."""
        self.values[name] = interval.value
        if bounded:
            self.bounds[name] = (interval.low, interval.high)

    def clear(self, names: Iterable[str]) -> None:
        """Set figures that cannot be computed, and their bounds, to nan."""
        self.values.update(dict.fromkeys(self.values.keys() & names, math.nan))
        self.bounds.update(dict.fromkeys(self.bounds.keys() & names, (math.nan, math.nan)))


@dataclass(frozen=True, eq=False)
class ScoreResult:
    """The results for all files, with assumptions and warnings."""

    files: tuple[FileScore, ...]
    request: ScoreRequest
    assumptions: tuple[str, ...]
    warnings: tuple[Text, ...]

    @property
    def chance(self) -> float:
        """The precision of a random ranking."""
        values = self.files[0].figures.values
        if "contamination_pos" in values:
            return values["contamination_unl"]
        return values["n_positives"] / values["n_rows"]


def score(request: ScoreRequest, run: Run) -> ScoreResult:
    """Read the files, join them with the labels, and compute the figures."""
    request.check()
    positive, predictions, warnings = read_rows(request, run)
    files: list[FileScore] = []
    for number, file in enumerate(predictions):
        run.progress("scoring", number, len(predictions))
        if file.ranked and request.threshold is None and not request.pu:
            text = "{name}: a ranking has no threshold, so figures at T = 0.5 mean little;"
            warnings.append(Message(text + " set one with {threshold}", name=file.name))
        files.append(_score_file(request, positive, file, predictions[0] if number else None))
    assumptions = _assumptions(request) if request.pu else ()
    return ScoreResult(tuple(files), request, assumptions, tuple(warnings))


def _score_file(
    request: ScoreRequest, positive: BoolArray, file: Predictions, first: Predictions | None
) -> FileScore:
    source: Text
    threshold, source = file.implied_threshold()
    if request.threshold is not None:
        threshold, source = request.threshold, Message("{threshold}")
    elif request.pu and file.ranked:  # mean values, for which 0.5 has no meaning
        threshold, source = (
            math.nan,
            Message("a ranking has no threshold; set one with {threshold}"),
        )
    scored = FileScore(file.name, positive, file.values, threshold, source, request)
    if request.pu:
        scored.put_unlabeled()
    else:
        scored.put_labeled()
    if first is not None:
        areas = _roc_auc_pu if request.pu else ScoredLabels.areas
        values = first.values, file.values
        n_replicates, seed = request.n_replicates, request.seed
        found = intervals.paired_differences(positive, *values, areas, n_replicates, seed)
        scored.differences.update(found)
    return scored


def _assumptions(request: ScoreRequest) -> tuple[str, ...]:
    found = [
        "known positives were drawn at random from all positives",
        "values are held-out or out-of-bag: no row was scored by a model trained on it",
    ]
    if request.known is not None:
        found.append("contamination of P and of U is as given, and independent of the score")
        if request.known.b is None:
            found.append(
                "some positives in U score above all negatives; otherwise any smaller fraction of"
                " positives would explain the same values, and the lower bound of the estimate"
                " would be 0"
            )
    return tuple(found)


def _roc_auc_pu(ranking: ScoredLabels) -> dict[str, FloatArray]:
    return {"roc_auc_pu": ranking.roc_auc()}


@dataclass(frozen=True, eq=False)
class FileScore:
    """The values of one file, and the figures computed from them."""

    name: str
    positive: BoolArray
    scores: FloatArray
    threshold: float
    threshold_from: Text
    request: ScoreRequest
    figures: Figures = field(default_factory=Figures)
    differences: dict[str, Interval] = field(
        default_factory=dict
    )  # paired, relative to the first file
    cases: list[Contamination] = field(default_factory=list)  # that figures are corrected for

    @cached_property
    def ranking(self) -> ScoredLabels:
        return ScoredLabels.from_scores(self.positive, self.scores)

    @cached_property
    def table(self) -> Confusion:
        return Confusion.at(self.positive, self.scores, self.threshold)

    @property
    def degenerate(self) -> str | None:
        """What makes the figures at the threshold meaningless, if anything."""
        n_predicted = self.table.tp + self.table.fp
        if math.isnan(self.threshold) or n_predicted not in (0, len(self.positive)):
            return None
        return f"{'all rows are' if n_predicted else 'no row is'} predicted positive at T"

    def put_labeled(self) -> None:
        """Add all figures for rows with true labels."""
        ranking, values = self.ranking, self.figures.values
        n_pos, n_neg = int(ranking.n_positives), int(ranking.n_negatives)
        values.update(n_rows=len(self.scores), n_positives=n_pos, n_negatives=n_neg)
        self._put_statistics(self._ranking_statistics)
        self._put_at_threshold()

    def _ranking_statistics(self, ranking: ScoredLabels) -> dict[str, FloatArray]:
        """Return the figures that depend only on the order of rows, for each replicate."""
        figures: dict[str, FloatArray] = ranking.areas()
        for alpha in ALPHAS:
            figures[f"bedroc_{alpha:g}"] = ranking.bedroc(alpha)
        n_rows = len(self.scores)
        depths = [(str(k), k) for k in self.request.top if k <= n_rows]
        depths += [(f"{100 * part:g}_percent", depth_of(part, n_rows)) for part in FRACTIONS]
        for name, depth in depths:
            figures[f"precision_at_{name}"] = ranking.precision_at(depth)
            figures[f"recall_at_{name}"] = ranking.recall_at(depth)
            figures[f"enrichment_at_{name}"] = ranking.enrichment_at(depth)
        return figures

    def _put_statistics(self, statistics: intervals.Statistics) -> None:
        n_replicates, seed = self.request.n_replicates, self.request.seed
        if n_replicates:
            drawn = intervals.bootstrap(self.ranking, statistics, n_replicates, seed)
            for name, interval in drawn.items():
                self.figures.put(name, interval)
        else:
            for name, value in statistics(self.ranking).items():
                self.figures.values[name] = float(value)

    def _put_at_threshold(self) -> None:
        request, table = self.request, self.table
        self.figures.values.update(threshold=self.threshold, **vars(table))
        drawn = intervals.confusion_intervals(table, request.n_replicates, request.seed)
        for name, interval in drawn.items():
            self.figures.put(name, interval, bool(request.n_replicates))

    def put_unlabeled(self) -> None:
        """Add figures from P and U, corrected for contamination if it is known."""
        table, values = self.table, self.figures.values
        n_pos, n_unl = int(self.ranking.n_positives), int(self.ranking.n_negatives)
        values.update(n_rows=len(self.scores), n_positives=n_pos, n_unlabeled=n_unl)
        self._put_statistics(_roc_auc_pu)
        values["threshold"] = self.threshold
        self.figures.put("recall", intervals.clopper_pearson(table.tp, n_pos))
        fraction = (table.tp + table.fp) / len(self.scores)
        best, at = best_pu_score(self.positive, self.scores)
        values.update(
            fraction_positive=fraction,
            fraction_positive_unlabeled=table.fp / n_unl,
            pu_score=float(pu_score(table.recall, fraction)),
            pu_score_max=best,
            pu_score_max_from=at,
        )
        if (known := self.request.known) is not None:
            self._put_corrected(known if known.b is not None else self._estimated(known))
        if math.isnan(self.threshold):
            self.figures.clear(AT_THRESHOLD)

    def _estimated(self, known: KnownContamination) -> KnownContamination:
        """Return the known contamination, with the estimate filled in for U."""
        n_replicates, seed = self.request.n_replicates, self.request.seed
        sets = self.scores[self.positive], self.scores[~self.positive]
        mixture = ClassMixture.fit(*sets, sum(known.a) / 2, n_replicates=n_replicates, seed=seed)
        hint = Message("give a range instead: {contamination_unl:0.1..0.3}")
        if mixture is None:
            raise DataError(
                f"estimating the fraction of positives in U requires at least {MIN_POSITIVES} known"
                f" positives and {MIN_UNLABELED} unlabeled rows",
                hint,
            )
        estimate = mixture.contamination_unl
        if not mixture.separable:
            raise DataError(
                "P and U overlap too much to estimate the fraction of positives in U: it is at most"
                f" {100 * estimate.high:.0f} %",
                hint,
            )
        self.figures.put("contamination_unl_estimate", estimate, bool(n_replicates))
        # a + b must be below 1; otherwise, P would be no richer in positives than U
        most = 1 - max(known.a) - 1e-6
        bounds = (min(estimate.low, most), min(estimate.high, most))
        return replace(known, b=bounds, middle=min(estimate.value, most))

    def _put_corrected(self, known: KnownContamination) -> None:
        cases = contamination_grid(known)
        n_replicates, seed = self.request.n_replicates, self.request.seed
        found = corrected_areas(self.ranking, cases, n_replicates, seed)
        found |= corrected_at_threshold(self.table, cases, n_replicates, seed)
        first = cases[0]
        self.figures.values.update(contamination_pos=first.a, contamination_unl=first.b)
        for name, figure in found.items():
            bounded = len(cases) > 1 or bool(n_replicates)
            self.figures.put(f"corrected_{name}", figure, bounded)
        self.cases.extend(cases)

    @cached_property
    def points(self) -> Points:
        return Points.from_scores(self.positive, self.scores)

    @cached_property
    def band(self) -> CurveBand | None:
        """The 95 % band of the curves; it also covers a range of contamination, if given."""
        n_replicates, seed = self.request.n_replicates, self.request.seed
        if not n_replicates and len(self.cases) < 2:
            return None
        return curve_band(self.ranking, self.cases or [None], n_replicates, seed)

    @cached_property
    def corrected(self) -> Curve | None:
        """The curve to draw if contamination is known; its points include the threshold."""
        if not self.cases:
            return None
        some, table = self.ranking.merged(1000), self.table
        columns = [some.thresholds, some.tp / some.n_positives, some.fp / some.n_negatives]
        if not math.isnan(self.threshold):
            place = int(np.count_nonzero(columns[0] > self.threshold))
            tpr, fpr = table.tp / (table.tp + table.fn), table.fp / (table.fp + table.tn)
            here = self.threshold, tpr, fpr
            columns = [np.insert(old, place, new) for old, new in zip(columns, here, strict=True)]
        return Curve.corrected(columns[0], columns[1], columns[2], self.cases[0])


def read_rows(request: ScoreRequest, run: Run) -> tuple[BoolArray, list[Predictions], list[Text]]:
    """Return which rows are positive, all predictions in the same row order, and warnings."""
    ids: list[str] = []
    labels = None if request.labels is None else read_labels(request.labels, ids)
    files = []
    for number, path in enumerate(request.files):
        run.progress("reading", number, len(request.files))
        with_ids = labels is None or any(ids)
        files.append(read_predictions(path, with_ids=with_ids, require_ids=labels is None))
    warnings: list[Text] = []
    name = request.labels_name
    if labels is not None:
        files = [_in_order_of_labels(file, ids, name) for file in files]
        positive = _matching(labels, request.positive_label, name)
    else:
        positive = _by_id(request, files[0], warnings)
        first = files[0]
        files = [first, *(file.in_order_of(first.ids or [], first.name) for file in files[1:])]
    if not positive.any():
        raise DataError(f"{name}: no row is positive")
    if positive.all():
        other = "unlabeled" if request.pu else "negative"
        raise DataError(f"{name}: every row is positive; {other} rows are needed too")
    return positive, files, warnings


def _in_order_of_labels(file: Predictions, ids: list[str], name: str) -> Predictions:
    """Return the file with rows in the order of the labels, matched by id if both have ids."""
    if file.ranked:
        raise DataError(
            f"{file.name} is a ranking: its rows are not in the order of {name}",
            Message(
                "join by id: list the ids of the positives in {positive_ids:FILE} (rows without an"
                " id are identified by their numbers)"
            ),
        )
    if file.ids is not None and _disagree(file.ids, ids):
        # JSON escapes ids that are not UTF-8
        plain = replace(file, ids=list(map(as_unicode, file.ids)))
        return plain.in_order_of(list(map(as_unicode, ids)), name, BY_ORDER)
    longer = len(file.values) - len(ids)
    if longer:
        which = file.name if longer > 0 else name
        raise DataError(
            f"{file.name} has {len(file.values):,} predictions but {name} has"
            f" {len(ids):,} labels: {which} is longer by {abs(longer):,}",
            Message("both must have the same rows in the same order; or use {positive_ids}"),
        )
    return file


def _disagree(ids: list[str], others: list[str]) -> bool:
    """Whether the ids of any row differ; a row without an id matches any id."""
    return ids != others and any(
        one != other for one, other in zip(ids, others, strict=False) if one and other
    )


def _matching(labels: FloatArray, positive_label: float | None, name: str) -> BoolArray:
    """Return which rows have the positive label; by default 1, if all others are -1 or 0."""
    present = distinct(labels)
    labels_present = listed([format_number(label) for label in present], SHOWN_LABELS)
    if positive_label is None:
        names = set(present.tolist())
        if not (names <= {1.0, -1.0} or names <= {1.0, 0.0}):
            raise DataError(
                f"{name}: which label is positive? The labels are {labels_present}",
                Message("add {positive_label:LABEL}; all other labels are then negative"),
            )
        positive_label = 1.0
    elif positive_label not in present:
        raise DataError(
            f"{name}: no row has the label {format_number(positive_label)}",
            f"the labels are {labels_present}",
        )
    return np.asarray(labels == positive_label)


def _by_id(request: ScoreRequest, file: Predictions, warnings: list[Text]) -> BoolArray:
    path = request.positive_ids or ""
    known = set(read_known_ids(path))
    assert file.ids is not None
    positive = np.array([row_id in known for row_id in file.ids])
    name = name_of(path)
    missing = known - set(file.ids)
    if len(missing) == len(known):
        raise DataError(
            f"none of the {len(known):,} ids in {name} is in {file.name}",
            f"{file.name} has {', '.join(file.ids[:3])}, ...;"
            f" {name} has {', '.join(sorted(known)[:3])}",
        )
    if missing:
        shown = ", ".join(sorted(missing)[:3]) + (", ..." if len(missing) > 3 else "")
        text = (
            f"{len(missing):,} of the {len(known):,} ids in {name} are not in {file.name}: {shown}"
        )
        if not request.allow_missing:
            raise DataError(
                text, Message("recall would ignore them; to accept this: {allow_missing:True}")
            )
        warnings.append(text)
    repeated = [(row_id, n) for row_id, n in Counter(file.ids).items() if n > 1 and row_id in known]
    if repeated:
        row_id, count = repeated[0]
        more = f", and {len(repeated) - 1:,} more ids occur several times" if repeated[1:] else ""
        warnings.append(
            f"{file.name}: {count:,} rows have the id '{row_id}'{more}; each row counts as a"
            " positive"
        )
    return positive
