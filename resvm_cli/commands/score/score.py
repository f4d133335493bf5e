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
    ScoreSettings,
    read_rows,
)
from resvm_cli.errors import DataError, Message, Text
from resvm_cli.files.predictions import Predictions, Provenance
from resvm_cli.files.streams import name_of
from resvm_cli.metrics import intervals
from resvm_cli.metrics.class_mixture import MIN_POSITIVES, MIN_UNLABELED, ClassMixture
from resvm_cli.metrics.contamination_correction import (
    Contamination,
    contamination_grid,
    corrected_areas,
    corrected_at_threshold,
)
from resvm_cli.metrics.curves import Curve, CurveBand, Histogram, Points, curve_band
from resvm_cli.metrics.intervals import Interval
from resvm_cli.metrics.ranking import (
    BoolArray,
    Confusion,
    FloatArray,
    ScoredLabels,
    best_pu_score,
    depth_of,
    pu_score,
)
from resvm_cli.records import dataclass
from resvm_cli.running.run import Run

DEFAULT_THRESHOLD = 0.5
PARTIAL_LIMIT = 0.1
ALPHAS = (20.0, 80.5)  # for BEDROC
FRACTIONS = (0.005, 0.01, 0.05, 0.1)  # depths for precision, recall and enrichment
# Figures from P and U that depend on the threshold.
AT_THRESHOLD = {
    *("recall", "fraction_positive", "fraction_positive_unlabeled", "pu_score"),
    *(
        f"corrected_{name}{end}"
        for name in ("recall", "fpr", "precision", "f1")
        for end in ("", "_least", "_most")
    ),
}
RECOVERED = (0.5, 0.8, 0.9)  # fractions of the positives


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
        """Set figures that cannot be given to nan, with their bounds."""
        for name in self.values:
            if name in names:
                self.values[name] = math.nan
                if name in self.bounds:
                    self.bounds[name] = (math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Drawing:
    """The curves and histogram of a file, for plots and HTML pages."""

    points: Points
    histogram: Histogram
    band: CurveBand | None
    corrected: Curve | None  # drawn instead of the points' own rates if contamination is known


@dataclass(frozen=True, eq=False)
class FileScore:
    """The results for one file."""

    name: str
    figures: Figures
    threshold_from: Text
    provenance: Provenance
    degenerate: str | None
    differences: dict[str, Interval]  # from the first file, resampling the same rows in both
    points: Points | None
    corrected: Curve | None  # at the same thresholds
    drawing: Drawing | None


@dataclass(frozen=True, eq=False)
class ScoreResult:
    """The results for all files, with assumptions and warnings."""

    files: tuple[FileScore, ...]
    labels: str
    pu: bool
    assumptions: tuple[str, ...]
    warnings: tuple[Text, ...]
    settings: ScoreSettings

    @property
    def chance(self) -> float:
        """The precision of a random ranking."""
        values = self.files[0].figures.values
        if "contamination_pos" in values:
            return self.settings.prevalence or values["contamination_unl"]
        return values["n_positives"] / values["n_rows"]


def score(request: ScoreRequest, run: Run) -> ScoreResult:
    """Read the files, join them with the labels, and compute the figures."""
    request.check()
    rows = read_rows(request, run)
    files = []
    for number, file in enumerate(rows.files):
        run.progress("scoring", number, len(rows.files))
        if file.ranked and request.threshold is None and not request.pu:
            text = "{name}: a ranking has no threshold; figures at T = 0.5 mean little: {threshold}"
            rows.warnings.append(Message(text + " sets one", name=file.name))
        files.append(_score_file(request, rows.positive, file, rows.files[0] if number else None))
    return ScoreResult(
        tuple(files),
        name_of(request.labels or request.positive_ids or ""),
        request.pu,
        _assumptions(request) if request.pu else (),
        tuple(rows.warnings + (_provenance_warnings(files) if request.pu else [])),
        request.settings,
    )


def implied_threshold(values: FloatArray, predicted: BoolArray | None) -> tuple[float, str]:
    """Return the threshold implied by a file's predicted labels, and its origin."""
    if predicted is None:
        return DEFAULT_THRESHOLD, "the default"
    lowest = float(values[predicted].min(initial=np.inf))
    highest = float(values[~predicted].max(initial=-np.inf))
    if highest >= lowest:
        return DEFAULT_THRESHOLD, "the default: the file's labels do not follow a threshold"
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
    elif request.pu and file.ranked:  # by mean values, for which 0.5 has no meaning
        threshold, source = math.nan, Message("a ranking has none; {threshold} sets one")
    settings = request.settings
    scored = _ScoredValues(positive, file.values, threshold, settings)
    cases: list[Contamination] = []
    if request.pu:
        cases = scored.put_unlabeled(request.known)
    else:
        scored.put_labeled()
    n_predicted = int(np.count_nonzero(file.values > threshold))
    degenerate = None
    if n_predicted in (0, len(positive)) and not math.isnan(threshold):
        degenerate = f"{'all rows are' if n_predicted else 'no row is'} predicted positive at T"
    differences: dict[str, Interval] = {}
    if first is not None:
        differences = intervals.paired_differences(
            positive,
            first.values,
            file.values,
            _roc_auc_pu if request.pu else ScoredLabels.areas,
            settings.n_replicates,
            settings.seed,
        )
    points = corrected = drawing = None
    if request.all_points or request.drawings:
        points = Points.from_scores(positive, file.values)
        if request.all_points and cases:
            corrected = Curve.corrected(points.thresholds, points.recall, points.fpr, cases[0])
        if request.drawings:
            drawing = scored.drawing(points, cases)
    return FileScore(
        name=file.name,
        figures=scored.figures,
        threshold_from=source,
        provenance=file.provenance,
        degenerate=degenerate,
        differences=differences,
        points=points if request.all_points else None,
        corrected=corrected,
        drawing=drawing,
    )


def _assumptions(request: ScoreRequest) -> tuple[str, ...]:
    found = [
        "known positives were drawn at random from all positives",
        "values are held-out or out-of-bag: no row was scored by a model trained on it",
    ]
    if request.known is not None:
        found.append("contamination of P and of U is as given, and independent of the score")
        if request.known.b is None:
            found.append(
                "some positives of U lie above all negatives; otherwise any smaller fraction of"
                " positives explains the same values, and the bounds of its estimate begin at 0"
            )
    return tuple(found)


def _provenance_warnings(files: list[FileScore]) -> list[Text]:
    found: list[Text] = []
    for file in files:
        if file.provenance == "trained-on":
            found.append(
                f"{file.name}: the model was trained on these rows, so all figures are optimistic;"
                " score out-of-bag or held-out values instead"
            )
        elif file.provenance == "unknown":
            found.append(
                Message(
                    "{name}: the file does not state where its values come from (use {values}); if"
                    " the model was trained on these rows, all figures are optimistic",
                    name=file.name,
                )
            )
    return found


def _percent(fraction: float) -> str:
    """A fraction as part of a name: 0.005 is 0.5_percent."""
    return f"{100 * fraction:g}_percent"


def _roc_auc_pu(ranking: ScoredLabels) -> dict[str, FloatArray]:
    return {"roc_auc_pu": ranking.roc_auc()}


@dataclass(frozen=True, eq=False)
class _ScoredValues:
    """The values of one file, and the figures computed from them."""

    positive: BoolArray
    scores: FloatArray
    threshold: float
    settings: ScoreSettings
    figures: Figures = field(default_factory=Figures)

    @cached_property
    def ranking(self) -> ScoredLabels:
        return ScoredLabels.from_scores(self.positive, self.scores)

    @cached_property
    def table(self) -> Confusion:
        return Confusion.at(self.positive, self.scores, self.threshold)

    def put_labeled(self) -> None:
        """Add all figures where true labels are known."""
        ranking, values = self.ranking, self.figures.values
        n_pos, n_neg = int(ranking.n_positives), int(ranking.n_negatives)
        values.update(n_rows=len(self.scores), n_positives=n_pos, n_negatives=n_neg)
        self._put_statistics(self._ranking_statistics)
        self._put_at_threshold()
        best, block = ranking.best_f1()
        values["best_f1"] = float(best)
        values["best_f1_from"] = float(ranking.thresholds[int(block)])

    def _ranking_statistics(self, ranking: ScoredLabels) -> dict[str, FloatArray]:
        """Return the figures that follow from a ranking alone, also of bootstrap replicates."""
        figures: dict[str, FloatArray] = ranking.areas()
        if self.settings.prevalence is not None:
            deployed = ranking.reweighted(self.settings.prevalence)
            figures["average_precision_at_prevalence"] = deployed.average_precision()
        figures["partial_roc_auc"] = ranking.partial_roc_auc(PARTIAL_LIMIT)
        for alpha in ALPHAS:
            figures[f"bedroc_{alpha:g}"] = ranking.bedroc(alpha)
        n_rows = len(self.scores)
        depths = [(str(k), k) for k in self.settings.top if k <= n_rows]
        depths += [(_percent(part), depth_of(part, n_rows)) for part in FRACTIONS]
        for name, depth in depths:
            figures[f"precision_at_{name}"] = ranking.precision_at(depth)
            figures[f"recall_at_{name}"] = ranking.recall_at(depth)
            figures[f"enrichment_at_{name}"] = ranking.enrichment_at(depth)
        for recall in RECOVERED:
            figures[f"screened_to_recover_{_percent(recall)}"] = ranking.screened_to_recover(recall)
        return figures

    def _put_statistics(self, statistics: intervals.Statistics) -> None:
        n_replicates, seed = self.settings.n_replicates, self.settings.seed
        if n_replicates:
            drawn = intervals.bootstrap(self.ranking, statistics, n_replicates, seed)
            for name, interval in drawn.items():
                self.figures.put(name, interval)
        else:
            for name, value in statistics(self.ranking).items():
                self.figures.values[name] = float(value)

    def _put_at_threshold(self) -> None:
        settings, table = self.settings, self.table
        self.figures.values.update(threshold=self.threshold, **vars(table))
        drawn = intervals.confusion_intervals(table, settings.n_replicates, settings.seed)
        for name, interval in drawn.items():
            self.figures.put(name, interval, bool(settings.n_replicates))
        if settings.prevalence is not None:
            tpr, fpr = table.recall, table.fp / max(1, table.fp + table.tn)
            hit, miss = settings.prevalence * tpr, (1 - settings.prevalence) * fpr
            precision = hit / (hit + miss) if hit + miss else 0.0
            self.figures.values["precision_at_prevalence"] = precision

    def put_unlabeled(self, known: KnownContamination | None) -> list[Contamination]:
        """Add figures from P and U; return the contaminations they are corrected for."""
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
        cases: list[Contamination] = []
        if known is not None:
            cases = self._put_corrected(known if known.b is not None else self._estimated(known))
        if math.isnan(self.threshold):
            self.figures.clear(AT_THRESHOLD)
        return cases

    def _estimated(self, known: KnownContamination) -> KnownContamination:
        """Return the known contamination, with the estimate filled in for U."""
        settings = self.settings
        mixture = ClassMixture.fit(
            self.scores[self.positive],
            self.scores[~self.positive],
            sum(known.a) / 2,
            n_replicates=settings.n_replicates,
            seed=settings.seed,
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
        self.figures.put("contamination_unl_estimate", estimate, bool(settings.n_replicates))
        # a + b must be below 1, otherwise P would have no more positives than U
        most = 1 - max(known.a) - 1e-6
        bounds = (min(estimate.low, most), min(estimate.high, most))
        return replace(known, b=bounds, middle=min(estimate.value, most))

    def _put_corrected(self, known: KnownContamination) -> list[Contamination]:
        assert known.b is not None
        cases = contamination_grid(known.a, known.b, self.settings.prevalence, known.middle)
        n_replicates, seed = self.settings.n_replicates, self.settings.seed
        found = corrected_areas(self.ranking, cases, n_replicates, seed)
        found |= corrected_at_threshold(self.table, cases, n_replicates, seed)
        values = self.figures.values
        values.update(contamination_pos=cases[0].a, contamination_unl=cases[0].b)
        for name, figure in found.items():
            bounded = len(cases) > 1 or bool(n_replicates)
            self.figures.put(f"corrected_{name}", figure, bounded)
            if len(cases) > 1:
                values[f"corrected_{name}_least"] = figure.least
                values[f"corrected_{name}_most"] = figure.most
        return cases

    def drawing(self, points: Points, cases: list[Contamination]) -> Drawing:
        """Return what plots and pages draw."""
        n_replicates, seed = self.settings.n_replicates, self.settings.seed
        band = None
        if n_replicates or len(cases) > 1:
            band = curve_band(self.ranking, cases or [None], n_replicates, seed)
        histogram = Histogram.from_scores(self.positive, self.scores)
        corrected = self._corrected_curve(cases[0]) if cases else None
        return Drawing(points.thinned(), histogram, band, corrected)

    def _corrected_curve(self, known: Contamination) -> Curve:
        """Return the corrected curve at the scores of positives and at the threshold."""
        some, table = self.ranking.merged(1000), self.table
        columns = [some.thresholds, some.tp / some.n_positives, some.fp / some.n_negatives]
        if not math.isnan(self.threshold):
            place = int(np.count_nonzero(columns[0] > self.threshold))
            tpr, fpr = table.tp / (table.tp + table.fn), table.fp / (table.fp + table.tn)
            here = self.threshold, tpr, fpr
            columns = [np.insert(old, place, new) for old, new in zip(columns, here, strict=True)]
        return Curve.corrected(columns[0], columns[1], columns[2], known)
