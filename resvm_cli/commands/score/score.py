"""Evaluate prediction files: metrics with intervals, curves, and differences between files."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from resvm_cli.commands.score.scored_rows import (
    KnownContamination,
    ScoreRequest,
    read_rows,
)
from resvm_cli.errors import DataError, Message, Text
from resvm_cli.files.predictions import Predictions
from resvm_cli.files.streams import name_of
from resvm_cli.metrics import intervals
from resvm_cli.metrics.class_mixture import MIN_POSITIVES, MIN_UNLABELED, ClassMixture
from resvm_cli.metrics.contamination_correction import (
    Contamination,
    contamination_grid,
    corrected_areas,
    corrected_at_threshold,
)
from resvm_cli.metrics.curves import Curve, CurveBand, Points, curve_band
from resvm_cli.metrics.intervals import Interval
from resvm_cli.metrics.ranking import Confusion, ScoredLabels, best_pu_score, depth_of, pu_score
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray
from resvm_cli.running.run import Run

DEFAULT_THRESHOLD = 0.5
FRACTIONS = (0.005, 0.01, 0.05, 0.1)  # depths for precision, recall and enrichment
# Figures from P and U that depend on the threshold.
AT_THRESHOLD = (
    *("recall", "fraction_positive", "fraction_positive_unlabeled", "pu_score"),
    *("corrected_recall", "corrected_fpr", "corrected_precision", "corrected_f1"),
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

    def clear(self, names: Container[str]) -> None:
        """Set figures that cannot be computed to nan, with their bounds."""
        for name in self.values:
            if name in names:
                self.values[name] = math.nan
                if name in self.bounds:
                    self.bounds[name] = (math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class ScoreResult:
    """The results for all files, with assumptions and warnings."""

    files: tuple[FileScore, ...]
    request: ScoreRequest
    assumptions: tuple[str, ...]
    warnings: tuple[Text, ...]

    @property
    def labels(self) -> str:
        """The name of the file that says which rows are positive."""
        return name_of(self.request.labels or self.request.positive_ids or "")

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
    return ScoreResult(
        tuple(files),
        request,
        _assumptions(request) if request.pu else (),
        tuple(warnings),
    )


def implied_threshold(values: FloatArray, predicted: BoolArray | None) -> tuple[float, str]:
    """Return the threshold implied by a file's predicted labels, and its origin."""
    if predicted is None:
        return DEFAULT_THRESHOLD, "the default"
    lowest = float(values[predicted].min(initial=np.inf))
    highest = float(values[~predicted].max(initial=-np.inf))
    if highest >= lowest:
        return DEFAULT_THRESHOLD, "the default: no threshold separates the file's labels"
    for usual in (DEFAULT_THRESHOLD, 0.0):
        if highest <= usual < lowest:
            return usual, "the file's labels"
    if np.isfinite(highest):
        return highest, "the file's labels"
    return float(np.nextafter(lowest, -np.inf)), "the file's labels"


def _score_file(
    request: ScoreRequest, positive: BoolArray, file: Predictions, first: Predictions | None
) -> FileScore:
    source: Text
    threshold, source = implied_threshold(file.values, file.predicted_positive)
    if request.threshold is not None:
        threshold, source = request.threshold, Message("{threshold}")
    elif request.pu and file.ranked:  # mean values, for which 0.5 has no meaning
        threshold, source = math.nan, Message("a ranking has none; set one with {threshold}")
    scored = FileScore(file.name, positive, file.values, threshold, source, request)
    if request.pu:
        scored.put_unlabeled()
    else:
        scored.put_labeled()
    if first is not None:
        scored.differences.update(
            intervals.paired_differences(
                positive,
                first.values,
                file.values,
                _roc_auc_pu if request.pu else ScoredLabels.areas,
                request.n_replicates,
                request.seed,
            )
        )
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
                " positives would explain the same values, and the lower bound of its estimate is 0"
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
    differences: dict[str, Interval] = field(default_factory=dict)  # paired, from the first file
    cases: list[Contamination] = field(
        default_factory=list
    )  # contamination that figures are corrected for

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
        """Add all figures, given true labels."""
        ranking, values = self.ranking, self.figures.values
        n_pos, n_neg = int(ranking.n_positives), int(ranking.n_negatives)
        values.update(n_rows=len(self.scores), n_positives=n_pos, n_negatives=n_neg)
        self._put_statistics(self._ranking_statistics)
        self._put_at_threshold()

    def _ranking_statistics(self, ranking: ScoredLabels) -> dict[str, FloatArray]:
        """Return the figures that depend only on the order of rows, for each replicate."""
        figures: dict[str, FloatArray] = ranking.areas()
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
        mixture = ClassMixture.fit(
            self.scores[self.positive],
            self.scores[~self.positive],
            sum(known.a) / 2,
            n_replicates=n_replicates,
            seed=seed,
        )
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
        # a + b must be below 1, otherwise P would have no more positives than U
        most = 1 - max(known.a) - 1e-6
        bounds = (min(estimate.low, most), min(estimate.high, most))
        return replace(known, b=bounds, middle=min(estimate.value, most))

    def _put_corrected(self, known: KnownContamination) -> None:
        assert known.b is not None
        cases = contamination_grid(known.a, known.b, known.middle)
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
        """The 95 % band of the curves, and of their correction for a range of contamination."""
        n_replicates, seed = self.request.n_replicates, self.request.seed
        if not n_replicates and len(self.cases) < 2:
            return None
        return curve_band(self.ranking, self.cases or [None], n_replicates, seed)

    @cached_property
    def corrected(self) -> Curve | None:
        """The curve to draw if contamination is known: at the positives and at the threshold."""
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
