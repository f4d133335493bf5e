"""Is this file sound? Every bad line, and what one pass tells of the rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError
from resvm_cli.files.bad_lines import BadLine
from resvm_cli.files.file_kinds import ForeignFormat
from resvm_cli.files.streams import name_of, read_pieces
from resvm_cli.files.svmlight import Block, format_number, parse_pieces
from resvm_cli.model.scaling import MAX_FEATURES, FeatureStats, FeatureSummary
from resvm_cli.rows import Rows
from resvm_cli.running.run import Run
from resvm_cli.svm import gram

MOST_KEPT = 1 << 22  # kernel values that are kept to be compared with each other
NAMED = 20  # features and labels listed by name

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class FileCheck:
    """What was found in one file."""

    path: str
    sound: bool
    n_bad_lines: int
    bad_lines: list[str]  # as many as were asked for
    n_rows: int
    n_features: int
    n_nonzeros: int
    density: float
    explicit_zeros: int
    smallest: float | None
    largest: float | None
    rows_without_features: int
    rows_without_label: int
    labels: dict[str, int]  # the most frequent
    n_labels: int
    duplicate_rows: int
    constant_features: list[int]
    n_constant_features: int
    duplicate_features: list[list[int]]  # groups
    n_duplicate_features: int
    features_examined: bool  # False where there are too many to look at each
    scaling: str | None  # why it is advisable


def check(
    path: str,
    run: Run,
    *,
    zero_based: bool = False,
    precomputed: bool = False,
    most: int = 20,
) -> FileCheck:
    """Read a whole file, passing over the lines that cannot be read.

    Rows of a precomputed kernel are looked at without their serial numbers.
    """
    name = name_of(path)
    bad: list[str] = []
    n_bad = 0

    def refused(line: BadLine) -> None:
        nonlocal n_bad
        n_bad += 1
        if len(bad) < most:
            bad.append(str(line.error(name).message))

    seen = _Seen()
    matrix = _KernelMatrix(name) if precomputed else None
    try:
        for block in parse_pieces(
            read_pieces(path),
            name,
            zero_based=zero_based or precomputed,
            workers=1,
            on_bad_line=refused,
        ):
            if matrix is not None:
                matrix.add(block)
                rows = block.rows.entries(block.rows.indices != gram.SERIAL)
                seen.add(rows, block.labels)
            else:
                seen.add(block.rows, block.labels)
            run.progress(f"checking {name}", seen.n_rows, None)
    except ForeignFormat as error:  # other files are looked at all the same
        bad = [f"{error.message}; {error.hint}"]
    if matrix is not None:
        wrong = matrix.wrong(seen.max_index)
        n_bad += len(wrong)
        bad += wrong[: most - len(bad)]
    n_features = max(0, seen.max_index + (1 if zero_based else 0))
    if not seen.n_rows and not bad:
        bad = [f"{name}: no rows"]
    summary = seen.stats.summary() if seen.stats is not None and seen.n_rows else None
    constant = _constant(summary)
    groups = seen.equal_features()
    return FileCheck(
        path=name,
        sound=not bad,
        n_bad_lines=n_bad,
        bad_lines=bad,
        n_rows=seen.n_rows,
        n_features=n_features,
        n_nonzeros=seen.n_nonzeros,
        density=seen.n_nonzeros / max(1, seen.n_rows * n_features),
        explicit_zeros=seen.explicit_zeros,
        smallest=seen.low if seen.n_nonzeros else None,
        largest=seen.high if seen.n_nonzeros else None,
        rows_without_features=seen.empty_rows,
        rows_without_label=seen.unlabelled,
        labels={format_number(label): n for label, n in seen.labels.most_common(NAMED)},
        n_labels=len(seen.labels),
        duplicate_rows=seen.equal_rows(),
        constant_features=constant[:NAMED],
        n_constant_features=len(constant),
        duplicate_features=groups[:NAMED],
        n_duplicate_features=sum(len(group) - 1 for group in groups),
        features_examined=seen.stats is not None,
        scaling=None if summary is None or precomputed else summary.advice(),
    )


class _KernelMatrix:
    """Whether rows of kernel values are numbered, and agree with each other."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._wrong: list[str] = []
        self._last = 0, 0  # the largest serial number, and its line
        self._kept: list[Rows] | None = []
        self._n_kept = 0

    def add(self, block: Block) -> None:
        wrong = gram.wrong_serials(block.rows)
        self._wrong += [f"{self._name}:{block.lines[row]}: {fault}" for row, fault in wrong]
        if wrong:
            self._kept = None
            block = block.take(np.delete(np.arange(len(block)), [row for row, _ in wrong]))
        rows, lines = block.rows, block.lines
        if not len(rows):
            return
        numbers = gram.serials(rows)
        self._last = max(self._last, (int(numbers.max()), int(lines[numbers.argmax()])))
        self._n_kept += len(rows.values)
        if self._n_kept > MOST_KEPT:
            self._kept = None
        if self._kept is not None:
            self._kept.append(rows)

    def wrong(self, n_columns: int) -> list[str]:
        """What is wrong, of lines and of the whole; large files are not kept to be compared."""
        found = list(self._wrong)
        serial, line = self._last
        if serial > n_columns:
            found.append(
                f"{self._name}:{line}: its serial number is {serial:,}, and rows have kernel"
                f" values with {n_columns:,} rows"
            )
        elif self._kept and not found:
            try:
                gram.kernel_matrix(Rows.concatenate(self._kept))
            except DataError as error:
                found.append(f"{self._name}: {error.message}")
        return found


class _Seen:
    """What has been seen of a file so far."""

    def __init__(self) -> None:
        self.n_rows = self.n_nonzeros = self.explicit_zeros = self.empty_rows = 0
        self.unlabelled = 0
        self.max_index = -1
        self.low, self.high = np.inf, -np.inf
        self.labels: Counter[float] = Counter()
        self.stats: FeatureStats | None = FeatureStats()
        self._features: Hashes = np.zeros(0, np.uint64)
        self._rows: list[Hashes] = []

    def add(self, rows: Rows, labels: npt.NDArray[np.float64]) -> None:
        self.max_index = max(self.max_index, rows.max_index)
        self.explicit_zeros += int((rows.values == 0).sum())
        rows = rows.without_zeros()
        missing = np.isnan(labels)
        self.unlabelled += int(missing.sum())
        found, counts = np.unique(labels[~missing], return_counts=True)
        self.labels.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
        self.empty_rows += int((rows.lengths == 0).sum())
        if len(rows.values):
            self.low = min(self.low, float(rows.values.min()))
            self.high = max(self.high, float(rows.values.max()))
        bits = rows.values.view(np.uint64)
        hashes: Hashes = np.zeros(len(rows), np.uint64)
        np.add.at(hashes, rows.row_numbers, _mixed(rows.indices.astype(np.uint64), bits))
        self._rows.append(hashes)
        if self.stats is not None and self.max_index < MAX_FEATURES:
            self.stats.add(rows)
            if len(self._features) <= self.max_index:
                larger = np.zeros(max(self.max_index + 1, 2 * len(self._features)), np.uint64)
                larger[: len(self._features)] = self._features
                self._features = larger
            numbers = (rows.row_numbers + self.n_rows).astype(np.uint64)
            np.add.at(self._features, rows.indices, _mixed(numbers, bits))
        else:
            self.stats = None  # too many features to look at each
        self.n_rows += len(rows)
        self.n_nonzeros += len(rows.values)

    def equal_rows(self) -> int:
        """How many rows repeat an earlier one."""
        if not self._rows:
            return 0
        return self.n_rows - len(np.unique(np.concatenate(self._rows)))

    def equal_features(self) -> list[list[int]]:
        """Groups of features that have the same value in every row."""
        if self.stats is None:
            return []
        present = np.flatnonzero(self._features)
        _, group, sizes = np.unique(
            self._features[present], return_inverse=True, return_counts=True
        )
        order = np.argsort(group, kind="stable")
        parts = np.split(present[order], np.cumsum(sizes)[:-1])
        return sorted([part.tolist() for part in parts if len(part) > 1])


def _mixed(place: Hashes, bits: Hashes) -> Hashes:
    """64 well-mixed bits of a number and its place (splitmix64); sums of them compare sets."""
    mixed = (place + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) ^ bits
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _constant(summary: FeatureSummary | None) -> list[int]:
    if summary is None:
        return []
    constant: list[int] = summary.indices[summary.low == summary.high].tolist()
    return constant
