"""Prediction files and labels to figures, curves and differences between files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.evaluation import bootstrap
from resvm_cli.evaluation.bootstrap import Interval
from resvm_cli.evaluation.corrected import Contamination, Curve
from resvm_cli.evaluation.corrected import curve as corrected_curve
from resvm_cli.evaluation.curves import Band, Histogram, Points, band, corrected_rates, plain
from resvm_cli.evaluation.ranking import BoolArray, FloatArray, Ranking, areas
from resvm_cli.evaluation.summary import Figures, Known, Settings, with_labels, with_unlabeled
from resvm_cli.files.labels import read_ids, read_labels
from resvm_cli.files.prediction_reader import Predictions, Provenance, read_predictions
from resvm_cli.files.streams import STDIN, name_of
from resvm_cli.files.svmlight import format_number

DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True)
class ScoreRequest:
    """What to score, against what, and what to make of it."""

    files: tuple[str, ...]
    labels: str | None = None
    positive_ids: str | None = None
    positive_label: float | None = None
    pu: bool = False
    known: Known | None = None
    threshold: float | None = None
    provenance: Provenance | None = None  # None: what the files say
    settings: Settings = field(default_factory=Settings)
    all_points: bool = False  # for --curve: every threshold
    drawings: bool = False  # for plots and pages: thinned curves, bands, histograms

    def check(self) -> None:
        """Refuse what is missing or contradictory, before any file is read."""
        if (self.labels is None) == (self.positive_ids is None):
            raise CommandLineError(
                "give the labels by --labels or by --positive-ids, one of them",
                "resvm score test.pred --labels test.svm",
            )
        sources = [*self.files, self.labels or self.positive_ids]
        if sources.count(STDIN) > 1:
            raise CommandLineError("only one input can be stdin")
        if self.positive_label is not None and self.positive_ids is not None:
            raise CommandLineError("--positive-label goes with --labels")
        if self.known is not None and not self.pu:
            raise CommandLineError(
                "--contamination-pos and --contamination-unl go with --pu",
                "true labels need no correction",
            )
        if self.provenance is not None and not self.pu:
            raise CommandLineError("--values goes with --pu")


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


def score(request: ScoreRequest, progress: Callable[[str, int, int | None], None]) -> ScoreResult:
    """Read everything, align it, and compute."""
    request.check()
    judged = _read(request, progress)
    warnings: list[str] = []
    positive = _positives(request, judged, warnings)
    judged = judged if request.positive_ids is None else _aligned(judged)
    name = name_of(request.labels or request.positive_ids or "")
    if not positive.any():
        raise DataError(f"{name}: no row is positive: there is nothing to recover")
    if positive.all():
        other = "unlabeled" if request.pu else "negative"
        raise DataError(f"{name}: every row is positive; {other} rows are needed to compare with")
    files = []
    for number, one in enumerate(judged):
        progress("scoring", number, len(judged))
        files.append(_score_file(request, positive, one, judged[0] if number else None))
    if request.pu:
        warnings += _doubts(files)
    return ScoreResult(
        tuple(files),
        name,
        request.pu,
        _assumptions(request) if request.pu else (),
        tuple(warnings),
        request.settings,
    )


def _read(
    request: ScoreRequest, progress: Callable[[str, int, int | None], None]
) -> list[Predictions]:
    judged = []
    for number, path in enumerate(request.files):
        progress("reading", number, len(request.files))
        one = read_predictions(path, with_ids=request.positive_ids is not None)
        if request.provenance is not None:
            one = replace(one, provenance=request.provenance)
        judged.append(one)
    return judged


def _positives(request: ScoreRequest, judged: list[Predictions], warnings: list[str]) -> BoolArray:
    """Which rows are positive, in the order of the first file."""
    if request.positive_ids is not None:
        return _by_id(request.positive_ids, judged[0], warnings)
    assert request.labels is not None
    labels = read_labels(request.labels)
    name = name_of(request.labels)
    for one in judged:
        longer = len(one.values) - len(labels)
        if longer:
            which = one.name if longer > 0 else name
            raise DataError(
                f"{one.name} has {len(one.values):,} predictions and {name} {len(labels):,} labels:"
                f" {which} is longer by {abs(longer):,}",
                "both must be of the same rows, in the same order; or join by --positive-ids",
            )
    return _chosen(labels, request.positive_label, name)


def _chosen(labels: FloatArray, positive_label: float | None, name: str) -> BoolArray:
    present = np.unique(labels)
    there = ", ".join(format_number(label) for label in present[:20])
    there += ", ..." if len(present) > 20 else ""
    if positive_label is None:
        names = set(present.tolist())
        if not (names <= {1.0, -1.0} or names <= {1.0, 0.0}):
            raise DataError(
                f"{name}: which label means positive? labels that are there: {there}",
                "add --positive-label LABEL; all others are then negative",
            )
        positive_label = 1.0
    elif positive_label not in present:
        raise DataError(
            f"{name}: no row has the label {format_number(positive_label)}",
            f"labels that are there: {there}",
        )
    return np.asarray(labels == positive_label)


def _by_id(path: str, one: Predictions, warnings: list[str]) -> BoolArray:
    known = set(read_ids(path))
    assert one.ids is not None
    positive = np.array([name in known for name in one.ids])
    name = name_of(path)
    missing = known - set(one.ids)
    if len(missing) == len(known):
        raise DataError(
            f"none of the {len(known):,} ids of {name} is in {one.name}",
            f"ids there: {', '.join(one.ids[:3])}, ...; in {name}: {', '.join(sorted(known)[:3])}",
        )
    if missing:
        shown = ", ".join(sorted(missing)[:3]) + (", ..." if len(missing) > 3 else "")
        warnings.append(
            f"{len(missing):,} of the {len(known):,} ids of {name} are not in {one.name}: {shown}"
        )
    return positive


def _aligned(judged: list[Predictions]) -> list[Predictions]:
    """Every file in the order of the first, by id."""
    first = judged[0]
    assert first.ids is not None
    if len(judged) == 1:
        return judged
    place = {name: number for number, name in enumerate(first.ids)}
    if len(place) < len(first.ids):
        repeated = Counter(first.ids).most_common(1)[0][0]
        raise DataError(f"{first.name}: the id '{repeated}' comes twice: files cannot be joined")
    result = [first]
    for one in judged[1:]:
        assert one.ids is not None
        if len(one.ids) != len(first.ids) or set(one.ids) != place.keys():
            apart = set(one.ids) ^ place.keys()
            what = f"{len(apart):,} ids are in one of them alone" if apart else "an id comes twice"
            raise DataError(f"{first.name} and {one.name} do not hold the same rows: {what}")
        order = np.empty(len(place), np.int64)
        order[[place[name] for name in one.ids]] = np.arange(len(place))
        called = None if one.called is None else one.called[order]
        result.append(replace(one, values=one.values[order], called=called, ids=first.ids))
    return result


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
    points = drawing = None
    if request.all_points or request.drawings:
        points = Points.of(positive, one.values)
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
            told.append("near the top of the ranking U holds positives only (best-bin estimation)")
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
