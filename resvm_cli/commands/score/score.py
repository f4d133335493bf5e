"""Prediction files and labels to figures, curves and differences between files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resvm_cli.commands.score.scored_rows import ScoreRequest, read_rows
from resvm_cli.commands.score.summary import Figures, Settings, with_labels, with_unlabeled
from resvm_cli.files.prediction_reader import Predictions, Provenance
from resvm_cli.files.streams import name_of
from resvm_cli.metrics import bootstrap
from resvm_cli.metrics.bootstrap import Interval
from resvm_cli.metrics.contamination_correction import Contamination, Curve, possible
from resvm_cli.metrics.contamination_correction import curve as corrected_curve
from resvm_cli.metrics.curves import Band, Histogram, Points, band, corrected_rates, plain
from resvm_cli.metrics.ranking import BoolArray, FloatArray, Ranking, areas
from resvm_cli.running.run import Run

DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True, eq=False)
class Drawing:
    """What plots and pages show of a file."""

    points: Points
    histogram: Histogram
    band: Band | None
    corrected: Curve | None  # in place of the points' own rates, with --contamination-...


@dataclass(frozen=True, eq=False)
class FileScore:
    """What was found out about one file."""

    name: str
    figures: Figures
    threshold_from: str
    provenance: Provenance
    degenerate: str | None
    differences: dict[str, Interval]  # to the first file, of the same rows resampled
    points: Points | None
    corrected: Curve | None  # at the same thresholds
    drawing: Drawing | None


@dataclass(frozen=True, eq=False)
class ScoreResult:
    """All files, and what the reader should know."""

    files: tuple[FileScore, ...]
    labels: str
    pu: bool
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    settings: Settings


def score(request: ScoreRequest, run: Run) -> ScoreResult:
    """Read everything, align it, and compute."""
    request.check()
    rows = read_rows(request, run)
    positive, judged = rows.positive, rows.judged
    warnings = list(rows.warnings)
    files = []
    for number, one in enumerate(judged):
        run.progress("scoring", number, len(judged))
        files.append(_score_file(request, positive, one, judged[0] if number else None))
    if request.pu:
        warnings += _doubts(files)
    return ScoreResult(
        tuple(files),
        name_of(request.labels or request.positive_ids or ""),
        request.pu,
        _assumptions(request) if request.pu else (),
        tuple(warnings),
        request.settings,
    )


def implied_threshold(values: FloatArray, called: BoolArray | None) -> tuple[float, str]:
    """The threshold that a file's own labels follow, and where it comes from."""
    if called is None:
        return DEFAULT_THRESHOLD, "the default"
    lowest = float(values[called].min(initial=np.inf))
    highest = float(values[~called].max(initial=-np.inf))
    if highest >= lowest:
        return DEFAULT_THRESHOLD, "the default: the file's labels follow no threshold"
    for usual in (DEFAULT_THRESHOLD, 0.0):
        if highest <= usual < lowest:
            return usual, "the file's labels"
    if np.isfinite(highest):
        return highest, "the file's labels"
    return float(np.nextafter(lowest, -np.inf)), "the file's labels"


def _score_file(
    request: ScoreRequest, positive: BoolArray, one: Predictions, first: Predictions | None
) -> FileScore:
    threshold, source = implied_threshold(one.values, one.called)
    if request.threshold is not None:
        threshold, source = request.threshold, "-T"
    cases: list[Contamination] = []
    if request.pu:
        figures, cases = with_unlabeled(
            positive, one.values, threshold, request.settings, request.known
        )
    else:
        figures = with_labels(positive, one.values, threshold, request.settings)
    called = int(np.count_nonzero(one.values > threshold))
    degenerate = None
    if called in (0, len(positive)):
        degenerate = f"calls {'everything' if called else 'nothing'} positive at T"
    settings = request.settings
    differences: dict[str, Interval] = {}
    if first is not None:
        differences = bootstrap.paired_differences(
            positive,
            first.values,
            one.values,
            _pu_areas if request.pu else areas,
            settings.n_replicates,
            settings.seed,
        )
    points = corrected = drawing = None
    if request.all_points or request.drawings:
        points = Points.of(positive, one.values)
    if request.all_points and cases:
        assert points is not None
        corrected = possible(points.thresholds, points.recall, points.fpr, cases[0])
    if request.drawings:
        assert points is not None
        drawing = _draw(positive, one.values, points, cases, settings)
    return FileScore(
        name=one.name,
        figures=figures,
        threshold_from=source,
        provenance=one.provenance,
        degenerate=degenerate,
        differences=differences,
        points=points if request.all_points else None,
        corrected=corrected,
        drawing=drawing,
    )


def _pu_areas(ranking: Ranking) -> dict[str, FloatArray]:
    return {"roc_auc_pu": ranking.roc_auc()}


def _draw(
    positive: BoolArray,
    values: FloatArray,
    points: Points,
    cases: list[Contamination],
    settings: Settings,
) -> Drawing:
    ranking = Ranking.of(positive, values)
    rates = [corrected_rates(known) for known in cases] or [plain]
    shown = None
    if settings.n_replicates or len(cases) > 1:
        shown = band(ranking, rates, settings.n_replicates, settings.seed)
    return Drawing(
        points.thinned(),
        Histogram.of(positive, values),
        shown,
        corrected_curve(ranking.merged(1000), cases[0]) if cases else None,
    )


def _assumptions(request: ScoreRequest) -> tuple[str, ...]:
    told = [
        "known positives were drawn at random from all positives",
        "values are held out or out-of-bag: no row was judged by a model trained on it",
    ]
    if request.known is not None:
        told.append("contamination of P and of U is as given, and independent of the score")
        if request.known.b is None:
            told.append(
                "some positives of U lie above all negatives: else any smaller share of positives"
                " explains the same values, and the bounds of its estimate begin at 0"
            )
    return tuple(told)


def _doubts(files: list[FileScore]) -> list[str]:
    told = []
    for one in files:
        if one.provenance == "trained-on":
            told.append(
                f"{one.name}: these rows were trained on: every figure flatters; score"
                " out-of-bag or held-out values instead"
            )
        elif one.provenance == "unknown":
            told.append(
                f"{one.name}: does not say where its values come from; if the model was trained"
                " on these rows, every figure flatters (--values says it)"
            )
    return told
