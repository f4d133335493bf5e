"""Signs of mistakes in P and U: swapped files, overlapping sets, different preprocessing.

Each check returns a note or None. Sound data must pass: natural duplicates, sets that are easy to
separate, and tight clusters of positives are not mistakes.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from resvm_cli.errors import Message, Text
from resvm_cli.rows import BoolArray, Columns, FloatArray, Hashes, IntArray, Rows, distinct, median

SWAPPED_RATIO = 10  # P has this many times as many rows as U
EMPTY_FRACTION = 0.5  # fraction of rows of P without features that triggers a note
REFERENCE_ROWS = 2000  # rows of U whose duplicates are counted, to see how common they are
# A note requires that at least this many rows of P, and this fraction of P, are also in U. If the
# data has natural duplicates, the fraction must exceed twice the usual fraction of duplicates by
# more than FRACTION_BEYOND_USUAL.
MIN_REPEATED, FRACTION_REPEATED, FRACTION_BEYOND_USUAL = 3, 0.01, 0.25
FIRST_BITS = 18
SHIFT = np.uint64(64 - FIRST_BITS)
SCALE_RATIO = 10.0  # ratio of standard deviations in P and U that triggers a note
MIN_ROWS, MIN_FEATURES = 10, 3  # needed to recognize how a set was scaled
MOST_FEATURES = 0.8
NEGATIVE_FRACTION = 0.1  # in a centered feature, more than this fraction of rows is negative
EXACT = 1e-4  # rounding error of the mean of a standardized feature, in standard deviations


def swapped_note(
    highest_label_pos: float, lowest_label_unl: float, n_pos: int, n_unl: int
) -> Text | None:
    """Return a note if labels or sizes suggest that P and U are swapped; nan means no label."""
    if highest_label_pos <= 0 < lowest_label_unl:
        return Message(
            "the largest label in P is {p:g}, and the smallest in U is {u:g}: are {positives} and"
            " {unlabeled} swapped?",
            p=highest_label_pos,
            u=lowest_label_unl,
        )
    if n_pos >= SWAPPED_RATIO * n_unl:
        return Message(
            "P has {n_pos_rows:,} rows and U only {n_unl_rows:,}, but U is usually the larger set:"
            " are {positives} and {unlabeled} swapped?",
            n_pos_rows=n_pos,
            n_unl_rows=n_unl,
        )
    return None


def empty_note(positives: Rows) -> Text | None:
    """Return a note if most rows of P have no features."""
    n_empty = int((positives.without_zeros().lengths == 0).sum())
    if not n_empty or n_empty < EMPTY_FRACTION * len(positives):
        return None
    return (
        f"{n_empty:,} of {len(positives):,} rows of P have no features, so a model cannot learn"
        " from them: was the file converted with the wrong columns?"
    )


class RepeatedRows:
    """Finds rows of U that are also in P; rows without features do not count.

    Duplicates are common in some data, so those of the first rows of U are counted for comparison.
    """

    n_repeated = 0  # rows of U that are in P

    def __init__(self, positives: Rows) -> None:
        hashes = positives.content_hashes()
        self._n_own = len(hashes)
        self._known = _HashSet(hashes)
        self._copies = np.bincount(self._known.places(hashes)[1], minlength=len(self._known))
        self._found = np.zeros(len(self._known), bool)
        self._reference: _HashSet | None = None
        self._sightings = np.zeros(0, np.int64)

    def add(self, rows: Rows) -> BoolArray:
        """Add a block of U; return which of its rows are in P."""
        hashes = rows.content_hashes()
        if self._reference is None:
            self._reference = _HashSet(hashes[:REFERENCE_ROWS])
            self._sightings = np.zeros(len(self._reference), np.int64)
        repeated = np.zeros(len(rows), bool)
        found, places = self._known.places(hashes)
        repeated[found] = True
        self._found[places] = True
        self.n_repeated += len(found)
        np.add.at(self._sightings, self._reference.places(hashes)[1], 1)
        return repeated

    def note(self, advice: Text) -> Text | None:
        """Return a note if more rows of P are in U than duplicates in the data explain."""
        n_own, n_found = self._n_own, int(self._copies[self._found].sum())
        if n_found < max(MIN_REPEATED, FRACTION_REPEATED * n_own):
            return None
        usual = max(_fraction_repeated(self._copies), _fraction_repeated(self._sightings))
        if usual and n_found / n_own <= 2 * usual + FRACTION_BEYOND_USUAL:
            return None
        return Message(
            "{found:,} of {own:,} rows of P are also in U ({repeated:,} rows), where they are"
            " treated as unlabeled in training and lead the ranking; {advice}",
            found=n_found,
            own=n_own,
            repeated=self.n_repeated,
            advice=advice,
        )


class _HashSet:
    """Distinct hashes in ascending order, without 0, the hash of rows without features."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = distinct(hashes[hashes != 0])
        # a hash that is not in the set usually differs from those in the set in its first bits
        self._starts = np.zeros(1 << FIRST_BITS, bool)
        self._starts[self._hashes >> SHIFT] = True

    def __len__(self) -> int:
        return len(self._hashes)

    def places(self, hashes: Hashes) -> tuple[IntArray, IntArray]:
        """Return which of these hashes are in the set, and their positions."""
        likely = np.flatnonzero(self._starts[hashes >> SHIFT])
        places = np.searchsorted(self._hashes, hashes[likely])
        found = np.flatnonzero(self._hashes[np.minimum(places, len(self) - 1)] == hashes[likely])
        return likely[found], places[found]


def _fraction_repeated(copies: IntArray) -> float:
    """Return the fraction of rows that have duplicates, given the number of rows per content."""
    return float(copies[copies > 1].sum() / max(1, copies.sum()))


def preparation_note(positives: Rows, unlabeled: Rows) -> Text | None:
    """Return a note if P and U seem to be scaled or encoded differently.

    It is not enough that P and U are easy to separate, because P may be far from U or form a tight
    cluster. Most features must vary on a different scale, or most entries of P must belong to
    features that U lacks.
    """
    question = "are P and U encoded and scaled alike?"
    if min(len(positives), len(unlabeled)) < MIN_ROWS:
        return None
    positives, unlabeled = positives.without_zeros(), unlabeled.without_zeros()
    if not len(positives.values) or not len(unlabeled.values):
        return None
    columns = Columns(np.concatenate([positives.indices, unlabeled.indices]))
    own, other = _Spreads(positives, columns), _Spreads(unlabeled, columns)
    if how := own.scaled_alone(unlabeled, columns):
        return f"in P alone, {how}, as if P had been scaled without U; {question}"
    absent = float((other.counts[columns.places(positives.indices)] == 0).mean())
    if absent > 0.5:
        return f"{100 * absent:.0f} % of the entries of P are in features that U lacks; {question}"
    both = (own.deviations > 0) & (other.deviations > 0)
    if not both.any():
        return None
    for (name, one), (other_name, two) in permutations((("P", own), ("U", other))):
        centered = one.n_negative[both] > NEGATIVE_FRACTION * one.n_rows
        if _are_most(centered & (two.n_negative[both] == 0)):
            often = f"most features are often negative in {name}, but never in {other_name}"
            return f"{often}; {question}"
    ratio = 10 ** median(np.log10(own.deviations[both] / other.deviations[both]))
    if 1 / SCALE_RATIO < ratio < SCALE_RATIO:
        return None
    larger, smaller = ("P", "U") if ratio > 1 else ("U", "P")
    return (
        f"most features vary {max(ratio, 1 / ratio):,.0f} times as much in {larger} as in"
        f" {smaller}; {question}"
    )


def _are_most(features: BoolArray) -> bool:
    enough = len(features) >= MIN_FEATURES
    return enough and bool(features.mean() >= MOST_FEATURES)


class _Spreads:
    """The mean, standard deviation and largest value of each feature in a set."""

    def __init__(self, rows: Rows, columns: Columns) -> None:
        place, n_rows = columns.places(rows.indices), len(rows)
        self.n_rows = n_rows
        self.counts = np.bincount(place, minlength=len(columns))
        with np.errstate(over="ignore", invalid="ignore"):
            self.means = self._sums(place, rows.values) / n_rows
            squares = self._sums(place, (rows.values - self.means[place]) ** 2)
            squares += (n_rows - self.counts) * self.means**2
            self.deviations = np.sqrt(squares / n_rows)
        self.n_negative = np.bincount(place[rows.values < 0], minlength=len(columns))
        self._largest = np.full(len(columns), -np.inf)
        np.maximum.at(self._largest, place, rows.values)
        self._n_largest = np.bincount(
            place[rows.values == self._largest[place]], minlength=len(columns)
        )

    def _sums(self, place: IntArray, values: FloatArray) -> FloatArray:
        return np.bincount(place, weights=values, minlength=len(self.counts)).astype(np.float64)

    def scaled_alone(self, others: Rows, columns: Columns) -> str | None:
        """Return evidence that this set was scaled using only its own values, or None.

        Features with few distinct values, such as counts, prove nothing: other rows reach the same
        maximum.
        """
        place = columns.places(others.indices)
        n_equal = np.bincount(place[others.values == self._largest[place]], minlength=len(columns))
        varied = (self.counts >= MIN_ROWS) & (self.deviations > 0)
        means, deviations = self.means[varied], self.deviations[varied]
        centered = (np.abs(means) < EXACT * deviations) & (np.abs(deviations - 1) < 0.01)
        if _are_most(centered):
            return f"{centered.sum():,} features have mean 0 and standard deviation 1"
        largest = self._largest[varied & (self._n_largest == 1) & (n_equal <= 1)]
        same = largest == (median(largest) if len(largest) else 0.0)
        if _are_most(same):
            return f"{same.sum():,} features have the same largest value, {largest[same][0]:g}"
        return None
