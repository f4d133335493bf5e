"""Prediction files and labels brought together: which rows are positive, in one order for all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from resvm_cli.commands.score.summary import Known, Settings
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.atomic import read_steadily
from resvm_cli.files.prediction_reader import Predictions, Provenance, read_predictions
from resvm_cli.files.row_names import read_known_ids, read_labels
from resvm_cli.files.streams import STDIN, name_of
from resvm_cli.files.svmlight import format_number, read_blocks
from resvm_cli.metrics.ranking import BoolArray, FloatArray
from resvm_cli.model_files import directory as model_dir
from resvm_cli.rows import DataSummary
from resvm_cli.running.run import Run


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
    model: str | None = None  # whose training rows the labels' rows are compared with
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
        if self.model is not None and (not self.pu or self.labels in (None, STDIN)):
            raise CommandLineError("--model goes with --pu and --labels FILE, a svmlight file")


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """The rows of all files in the order of the first, and which of them are positive."""

    positive: BoolArray
    judged: list[Predictions]
    warnings: tuple[str, ...]


def read_rows(request: ScoreRequest, run: Run) -> ScoredRows:
    """Read everything and refuse what cannot be scored."""
    judged = _read(request, run)
    warnings: list[str] = []
    positive = _positives(request, judged, warnings)
    if request.positive_ids is not None:
        judged = _aligned(judged)
    if request.model is not None and _trained_on(request, positive):
        judged = [
            replace(one, provenance="trained-on") if one.provenance == "unknown" else one
            for one in judged
        ]
    name = name_of(request.labels or request.positive_ids or "")
    if not positive.any():
        raise DataError(f"{name}: no row is positive: there is nothing to recover")
    if positive.all():
        other = "unlabeled" if request.pu else "negative"
        raise DataError(f"{name}: every row is positive; {other} rows are needed to compare with")
    return ScoredRows(positive, judged, tuple(warnings))


def _read(request: ScoreRequest, run: Run) -> list[Predictions]:
    judged = []
    for number, path in enumerate(request.files):
        run.progress("reading", number, len(request.files))
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
        if one.ranked:
            raise DataError(
                f"{one.name} is a ranking: its rows are not in the order of {name}",
                "join by name: --positive-ids FILE, a list of the ids of the positives (rows"
                " without a name go by their number)",
            )
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


def _trained_on(request: ScoreRequest, positive: BoolArray) -> bool:
    """Whether the rows of either class are those that the model was trained on, in their order."""
    assert request.model is not None
    assert request.labels is not None
    path = request.model
    manifest = read_steadily(path, lambda: model_dir.read_manifest(path))
    surveys = {True: DataSummary(), False: DataSummary()}
    start = 0
    for block in read_blocks(request.labels, zero_based=manifest["zero_based"], workers=2):
        here = positive[start : start + len(block)]
        for kind, survey in surveys.items():
            survey.add(block.rows.take(np.flatnonzero(here == kind)))
        start += len(block)
    return bool(
        surveys[True].digest() == manifest["data"]["positive"]["sha256"]
        or surveys[False].digest() == manifest["data"]["unlabeled"]["sha256"]
    )


def _by_id(path: str, one: Predictions, warnings: list[str]) -> BoolArray:
    known = set(read_known_ids(path))
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
    repeated = [(row_id, n) for row_id, n in Counter(one.ids).items() if n > 1 and row_id in known]
    if repeated:
        row_id, count = repeated[0]
        more = f", and {len(repeated) - 1:,} more ids repeat" if len(repeated) > 1 else ""
        warnings.append(
            f"{one.name}: '{row_id}' is on {count:,} rows{more}; each row counts as a positive"
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
