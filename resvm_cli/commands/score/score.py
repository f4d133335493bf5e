"""Evaluate prediction files: metrics with intervals, curves, and differences between files."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import field, replace

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
from resvm_cli.metrics.curves import (
    Curve,
    CurveBand,
    Histogram,
    Points,
    curve_band,
)
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
    cases: list[Contamination] = []
    if request.pu:
        figures, cases = figures_of_unlabeled(
            positive, file.values, threshold, settings, request.known
        )
        if math.isnan(threshold):
            figures.clear(AT_THRESHOLD)
    else:
        figures = figures_of_labels(positive, file.values, threshold, settings)
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
            drawing = _draw(positive, file.values, points, cases, settings, threshold)
    return FileScore(
        name=file.name,
        figures=figures,
        threshold_from=source,
        provenance=file.provenance,
        degenerate=degenerate,
        differences=differences,
        points=points if request.all_points else None,
        corrected=corrected,
        drawing=drawing,
    )


def _roc_auc_pu(ranking: ScoredLabels) -> dict[str, FloatArray]:
    return {"roc_auc_pu": ranking.roc_auc()}


def _draw(
    positive: BoolArray,
    values: FloatArray,
    points: Points,
    cases: list[Contamination],
    settings: ScoreSettings,
    threshold: float,
) -> Drawing:
    ranking = ScoredLabels.from_scores(positive, values)
    band = None
    if settings.n_replicates or len(cases) > 1:
        band = curve_band(ranking, cases or [None], settings.n_replicates, settings.seed)
    table = Confusion.at(positive, values, threshold)
    return Drawing(
        points.thinned(),
        Histogram.from_scores(positive, values),
        band,
        _corrected(ranking.merged(1000), table, threshold, cases[0]) if cases else None,
    )


def _corrected(
    ranking: ScoredLabels, table: Confusion, threshold: float, known: Contamination
) -> Curve:
    """Return the corrected curve at the scores of positives and at the threshold."""
    columns = [
        ranking.thresholds, ranking.tp / ranking.n_positives, ranking.fp / ranking.n_negatives
    ]  # fmt: skip
    if not math.isnan(threshold):
        place = int(np.count_nonzero(columns[0] > threshold))
        here = threshold, table.tp / (table.tp + table.fn), table.fp / (table.fp + table.tn)
        columns = [np.insert(old, place, new) for old, new in zip(columns, here, strict=True)]
    return Curve.corrected(columns[0], columns[1], columns[2], known)


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


def _ranking_statistics(ranking: ScoredLabels, settings: ScoreSettings) -> dict[str, FloatArray]:
    """The figures that follow from the ranking alone, also of bootstrap replicates."""
    figures: dict[str, FloatArray] = ranking.areas()
    if settings.prevalence is not None:
        deployed = ranking.reweighted(settings.prevalence)
        figures["average_precision_at_prevalence"] = deployed.average_precision()
    figures["partial_roc_auc"] = ranking.partial_roc_auc(PARTIAL_LIMIT)
    for alpha in ALPHAS:
        figures[f"bedroc_{alpha:g}"] = ranking.bedroc(alpha)
    n_rows = int(np.max(ranking.n_positives + ranking.n_negatives))
    depths = [(str(k), k) for k in settings.top if k <= n_rows]
    depths += [(_percent(part), depth_of(part, n_rows)) for part in FRACTIONS]
    for name, depth in depths:
        figures[f"precision_at_{name}"] = ranking.precision_at(depth)
        figures[f"recall_at_{name}"] = ranking.recall_at(depth)
        figures[f"enrichment_at_{name}"] = ranking.enrichment_at(depth)
    for recall in RECOVERED:
        figures[f"screened_to_recover_{_percent(recall)}"] = ranking.screened_to_recover(recall)
    return figures


def figures_of_labels(
    positive: BoolArray, scores: FloatArray, threshold: float, settings: ScoreSettings
) -> Figures:
    """All figures where true labels are known."""
    ranking = ScoredLabels.from_scores(positive, scores)
    n_pos, n_neg = int(ranking.n_positives), int(ranking.n_negatives)
    figures = Figures({"n_rows": len(scores), "n_positives": n_pos, "n_negatives": n_neg})
    _put_statistics(figures, ranking, lambda some: _ranking_statistics(some, settings), settings)
    _put_at_threshold(figures, Confusion.at(positive, scores, threshold), threshold, settings)
    best, block = ranking.best_f1()
    figures.values["best_f1"] = float(best)
    figures.values["best_f1_from"] = float(ranking.thresholds[int(block)])
    return figures


def _put_statistics(
    figures: Figures,
    ranking: ScoredLabels,
    statistics: intervals.Statistics,
    settings: ScoreSettings,
) -> None:
    if settings.n_replicates:
        drawn = intervals.bootstrap(ranking, statistics, settings.n_replicates, settings.seed)
        for name, interval in drawn.items():
            figures.put(name, interval)
    else:
        for name, value in statistics(ranking).items():
            figures.values[name] = float(value)


def _put_at_threshold(
    figures: Figures, table: Confusion, threshold: float, settings: ScoreSettings
) -> None:
    figures.values.update(threshold=threshold, **vars(table))
    drawn = intervals.confusion_intervals(table, settings.n_replicates, settings.seed)
    for name, interval in drawn.items():
        figures.put(name, interval, bool(settings.n_replicates))
    if settings.prevalence is not None:
        tpr, fpr = table.recall, table.fp / max(1, table.fp + table.tn)
        hit, miss = settings.prevalence * tpr, (1 - settings.prevalence) * fpr
        figures.values["precision_at_prevalence"] = hit / (hit + miss) if hit + miss else 0.0


def figures_of_unlabeled(
    positive: BoolArray,
    scores: FloatArray,
    threshold: float,
    settings: ScoreSettings,
    known: KnownContamination | None,
) -> tuple[Figures, list[Contamination]]:
    """Compute figures from P and U, and the contaminations they are corrected for."""
    ranking = ScoredLabels.from_scores(positive, scores)
    n_pos, n_unl = int(ranking.n_positives), int(ranking.n_negatives)
    table = Confusion.at(positive, scores, threshold)
    figures = Figures({"n_rows": len(scores), "n_positives": n_pos, "n_unlabeled": n_unl})
    _put_statistics(figures, ranking, _roc_auc_pu, settings)
    figures.values["threshold"] = threshold
    figures.put("recall", intervals.clopper_pearson(table.tp, n_pos))
    fraction = (table.tp + table.fp) / len(scores)
    best, at = best_pu_score(positive, scores)
    figures.values.update(
        fraction_positive=fraction,
        fraction_positive_unlabeled=table.fp / n_unl,
        pu_score=float(pu_score(table.recall, fraction)),
        pu_score_max=best,
        pu_score_max_from=at,
    )
    if known is None:
        return figures, []
    if known.b is None:
        known = _put_estimate(figures, positive, scores, settings, known)
    return figures, _put_corrected(figures, ranking, table, settings, known)


def _put_estimate(
    figures: Figures,
    positive: BoolArray,
    scores: FloatArray,
    settings: ScoreSettings,
    known: KnownContamination,
) -> KnownContamination:
    """Return the known contamination, with the estimate filled in for U."""
    mixture = ClassMixture.fit(
        scores[positive],
        scores[~positive],
        sum(known.a) / 2,
        n_replicates=settings.n_replicates,
        seed=settings.seed,
    )
    if mixture is None:
        raise DataError(
            f"estimating the fraction of positives in U requires at least {MIN_POSITIVES} known"
            f" positives and {MIN_UNLABELED} unlabeled rows",
            Message("give a range instead: {contamination_unl:0.1..0.3}"),
        )
    if not mixture.separable:
        raise DataError(
            "P and U overlap too much to estimate the fraction of positives in U: it is at most"
            f" {100 * mixture.contamination_unl.high:.0f} %",
            Message("give a range instead: {contamination_unl:0.1..0.3}"),
        )
    estimate = mixture.contamination_unl
    figures.put("contamination_unl_estimate", estimate, bool(settings.n_replicates))
    # a + b must be below 1, otherwise P would have no more positives than U
    most = 1 - max(known.a) - 1e-6
    bounds = (min(estimate.low, most), min(estimate.high, most))
    return replace(known, b=bounds, middle=min(estimate.value, most))


def _put_corrected(
    figures: Figures,
    ranking: ScoredLabels,
    table: Confusion,
    settings: ScoreSettings,
    known: KnownContamination,
) -> list[Contamination]:
    assert known.b is not None
    cases = contamination_grid(known.a, known.b, settings.prevalence, known.middle)
    n_replicates, seed = settings.n_replicates, settings.seed
    found = corrected_areas(ranking, cases, n_replicates, seed)
    found |= corrected_at_threshold(table, cases, n_replicates, seed)
    figures.values.update(contamination_pos=cases[0].a, contamination_unl=cases[0].b)
    for name, figure in found.items():
        bounded = len(cases) > 1 or bool(n_replicates)
        figures.put(f"corrected_{name}", figure, bounded)
        if len(cases) > 1:
            figures.values[f"corrected_{name}_least"] = figure.least
            figures.values[f"corrected_{name}_most"] = figure.most
    return cases
