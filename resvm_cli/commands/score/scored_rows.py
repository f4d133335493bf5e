"""The request to score, and prediction files joined with their labels in the same row order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from resvm_cli.errors import DataError, Message, ParameterError, Text
from resvm_cli.files.predictions import Predictions, read_predictions
from resvm_cli.files.row_lists import read_known_ids, read_labels
from resvm_cli.files.streams import STDIN, as_unicode, name_of, same_source
from resvm_cli.files.svmlight import format_number
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, distinct
from resvm_cli.running.run import Run

BY_ORDER = "rows are joined by id if both files have ids; to join by order, remove the ids from one"


@dataclass(frozen=True)
class KnownContamination:
    """The user's bounds on contamination: a of P, b of U (or None to estimate b)."""

    a: tuple[float, float]
    b: tuple[float, float] | None  # None: estimate it
    middle: float | None = None  # the value of b, if it is not the mean of its bounds


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
                "{labels} is also one of the predictions: {name}",
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
    name = name_of(request.labels or request.positive_ids or "")
    if labels is not None:
        files = [_in_order_of_labels(file, ids, name) for file in files]
        positive = _matching(labels, request.positive_label, name)
    else:
        positive = _by_id(request, files[0], warnings)
        first = files[0]
        files = [first, *(_reordered(file, first.ids or [], first.name) for file in files[1:])]
    if not positive.any():
        raise DataError(f"{name}: no row is positive")
    if positive.all():
        other = "unlabeled" if request.pu else "negative"
        raise DataError(f"{name}: every row is positive; {other} rows are needed too")
    return positive, files, warnings


def _in_order_of_labels(file: Predictions, ids: list[str], name: str) -> Predictions:
    """Return the file with its rows in the order of the labels; by id if both files have ids."""
    if file.ranked:
        raise DataError(
            f"{file.name} is a ranking: its rows are not in the order of {name}",
            Message(
                "join by id: list the ids of the positives in {positive_ids:FILE} (the id of a row"
                " without one is its number)"
            ),
        )
    if file.ids is not None and _disagree(file.ids, ids):
        # JSON escapes ids that are not UTF-8
        plain = replace(file, ids=list(map(as_unicode, file.ids)))
        return _reordered(plain, list(map(as_unicode, ids)), name, BY_ORDER)
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
    listed = ", ".join(format_number(label) for label in present[:20])
    listed += ", ..." if len(present) > 20 else ""
    if positive_label is None:
        names = set(present.tolist())
        if not (names <= {1.0, -1.0} or names <= {1.0, 0.0}):
            raise DataError(
                f"{name}: which label is positive? The labels are {listed}",
                Message("add {positive_label:LABEL}; all other labels are then negative"),
            )
        positive_label = 1.0
    elif positive_label not in present:
        raise DataError(
            f"{name}: no row has the label {format_number(positive_label)}",
            f"the labels are {listed}",
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
        more = f", and {len(repeated) - 1:,} more ids are repeated" if len(repeated) > 1 else ""
        warnings.append(
            f"{file.name}: {count:,} rows have the id '{row_id}'{more}; each counts as a positive"
        )
    return positive


def _reordered(
    file: Predictions, ids: list[str], name: str, hint: str | None = None
) -> Predictions:
    """Return a file with its rows in the order of ``ids``, which come from another file."""
    assert file.ids is not None
    index = {row_id: number for number, row_id in enumerate(ids)}
    if len(index) < len(ids):
        repeated = Counter(ids).most_common(1)[0][0]
        what = f"the id '{repeated}' is repeated" if repeated else "some rows have no id"
        raise DataError(f"{name}: {what}, so files cannot be joined", hint)
    if len(file.ids) != len(ids) or set(file.ids) != index.keys():
        apart = set(file.ids) ^ index.keys()
        what = "an id is repeated"
        if apart:
            what = f"{len(apart):,} ids are in only one of them, such as '{max(apart)}'"
        raise DataError(f"{name} and {file.name} do not have the same rows: {what}", hint)
    order = np.empty(len(index), np.int64)
    order[[index[row_id] for row_id in file.ids]] = np.arange(len(index))
    predicted = file.predicted_positive
    predicted = None if predicted is None else predicted[order]
    return replace(file, values=file.values[order], predicted_positive=predicted, ids=ids)
