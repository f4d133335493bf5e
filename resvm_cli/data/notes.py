"""Notes on likely mistakes and doubtful results: seven numbered ones, and some about tables.

Each function takes plain numbers and returns a sentence, or None if nothing
looks wrong. Sound data must pass: duplicates, sets that are easy to separate and tight clusters of
positives are no mistakes. docs/input-format.md lists the notes for users.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from resvm_cli.errors import listed
from resvm_cli.parameters import SolverName

if TYPE_CHECKING:
    from resvm_cli.data.encoding import MappedColumn
    from resvm_cli.data.features import TableFeatures
    from resvm_cli.data.scaling import FeatureStats

SHOWN = 10  # names in a list

# Not measured: U is usually many times as large as P, so a P ten times as large as U is suspicious.
SWAPPED_RATIO = 10.0
# By chance, a continuous column separates 10 rows of P from 10 rows of U with probability 1e-5.
MIN_ROWS = 10
# About 1% of rows like the training rows are unlike them by definition (``decisions.TAIL``), so 5%
# means that something differs. A count below 3 means nothing in a small file.
MIN_UNLIKE, FRACTION_UNLIKE = 3, 0.05
# Not measured: a row or two, or less than 1% of P, may be in U by chance. If the data has natural
# duplicates, twice their fraction plus a quarter of P must be in U.
MIN_REPEATED, FRACTION_REPEATED, FRACTION_BEYOND_USUAL = 3, 0.01, 0.25
ITERATION_LIMITS = {
    "libsvm": ("LIBSVM", "scale the features (`scale='auto'`) or lower `c_unl`"),
    "liblinear": (
        "LIBLINEAR",
        "these members are approximate; lower `c_unl` or `bias`, or use `solver='libsvm'`, which is"
        " slower",
    ),
}


def swapped(
    n_pos: int,
    n_unl: int,
    highest_label_pos: float = math.nan,
    lowest_label_unl: float = math.nan,
    *,
    ratio: float = SWAPPED_RATIO,
) -> str | None:
    """1: P and U are swapped, judging by their labels (nan: none) or sizes."""
    if highest_label_pos <= 0 < lowest_label_unl:
        return (
            f"the largest label in P is {highest_label_pos:g}, and the smallest in U is"
            f" {lowest_label_unl:g}: are P and U swapped?"
        )
    if n_pos > ratio * n_unl:
        return (
            f"P has {n_pos:,} rows and U only {n_unl:,}, but U is usually the larger set: are P and"
            " U swapped?"
        )
    return None


def off_by_one(files: Sequence[tuple[str, int, int]]) -> str | None:
    """2: one of these files (name, smallest, largest index) counts from 0, another from 1."""
    for (name, low, high), (other, other_low, other_high) in permutations(files, 2):
        if low == 0 and other_low > 0 and other_high == high + 1:
            return (
                f"{name} has features 0 to {high}, but {other} has {other_low} to {other_high}:"
                " does one file count from 0 and the other from 1? If so, their features do not"
                " match; renumber one of them"
            )
    return None


def give_answer_away(
    columns: Sequence[MappedColumn], unlabeled: FeatureStats, positive: FeatureStats
) -> Iterator[str]:
    """3: a column alone separates P from U, so it was probably filled in together with the labels.

    The statistics are those of the features of all rows of U and of P.
    """
    n_rows = np.array([unlabeled.n_rows, positive.n_rows])
    if n_rows.min() < MIN_ROWS:
        return
    size = 1 + max(max([column.first, *column.values.values()]) for column in columns)
    counts, low, high = np.stack([unlabeled.extremes(size), positive.extremes(size)], axis=1)
    for column in columns:
        at = column.first
        separates = low[1, at] > high[0, at] or high[1, at] < low[0, at]
        if column.kind != "number":
            with_value = counts[:, list(column.values.values())]
            missing = n_rows - with_value.sum(axis=1)
            shared = (np.column_stack([with_value, missing]) > 0).all(axis=0)
            # categories that are (nearly) different in each row separate any two sets
            separates = not shared.any() and 2 * np.count_nonzero(with_value[1]) <= n_rows[1]
        if separates:
            yield (
                f"the column '{column.name}' alone separates P from U perfectly; if it depends"
                f" on the labels, it gives the answer away: `drop={column.name!r}`"
            )


def hardly_separable(roc_auc: float, low: float, high: float) -> str | None:
    """4: the 95% interval of the out-of-bag ROC AUC of P against U contains 0.5, which is chance.

    Given in 16 of 945 runs, on 6 of 35 tasks.
    """
    if low > 0.5:
        return None
    return (
        f"known positives are barely distinguishable from U: ROC AUC {roc_auc:.3f} ({low:.3f} to"
        f" {high:.3f}; 0.5 is chance); check the features, the labels and the scaling, unless most"
        " of U is positive"
    )


def unconverged(n_unconverged: int, n_models: int, solver: SolverName) -> str | None:
    """5: members stopped at the solver's iteration limit.

    Given in none of 945 runs.
    """
    if not n_unconverged:
        return None
    name, advice = ITERATION_LIMITS[solver]
    return f"{n_unconverged} of {n_models} members stopped at {name}'s iteration limit: {advice}"


def unlike_training(n_unlike: int, n_rows: int) -> str | None:
    """6: more rows are unlike the training rows than chance explains."""
    if n_unlike < MIN_UNLIKE or n_unlike <= FRACTION_UNLIKE * n_rows:
        return None
    return (
        f"{n_unlike:,} of {n_rows:,} rows are unlike the training rows: their decision values lie"
        " outside the range of 99% of the out-of-bag values, or they are far from every support"
        " vector; check that their features and units match the training data"
    )


def in_both(n_found: int, n_pos: int, n_repeated: int, usual_fraction: float) -> str | None:
    """7: ``n_found`` rows of P are also in U, more than natural duplicates explain.

    ``n_repeated`` counts them in U, and ``usual_fraction`` is the fraction of rows with duplicates.
    """
    if n_found < max(MIN_REPEATED, FRACTION_REPEATED * n_pos):
        return None
    if usual_fraction and n_found / n_pos <= 2 * usual_fraction + FRACTION_BEYOND_USUAL:
        return None
    return (
        f"{n_found:,} of {n_pos:,} rows of P are also in U ({n_repeated:,} rows), where they are"
        " treated as unlabeled in training and lead the ranking; leave them out of U"
    )


def notes_on_rows(table: TableFeatures, owner: str) -> Iterator[str]:
    """Yield notes about dropped rows, and about categories that ``owner`` does not have."""
    if table.n_dropped:
        shown = [*table.dropped, *(["..."] if table.n_dropped > len(table.dropped) else [])]
        why = f"missing values or invalid molecules: {', '.join(shown)}"
        were = "row was" if table.n_dropped == 1 else "rows were"
        yield f"{table.n_dropped:,} {were} dropped because of {why}"
    if table.unseen:
        counts = [
            f"{name} ({n_rows:,} row{'s' * (n_rows > 1)}, first '{text[:40]}')"
            for name, (n_rows, text) in table.unseen.items()
        ]
        yield f"categories unknown to {owner} get no feature: {listed(counts, SHOWN)}"


def notes_on_prediction(table: TableFeatures) -> Iterator[str]:
    """Yield notes about a table that was encoded with the features of a model."""
    if table.ignored:
        names = listed(table.ignored, SHOWN)
        yield f"{table.table.name}: columns that the model does not use were ignored: {names}"
    filled = [f"{name} in {count:,}" for name, count in table.n_missing.items() if count]
    if filled and not table.n_dropped:
        how = "as in training" if table.map.missing in (None, table.missing) else "with 0"
        text = f"missing values were filled in {how}: {listed(filled, SHOWN)}"
        yield f"{text} of {table.n_read:,} rows"


def notes_on_training(tables: Sequence[TableFeatures], *, known: bool) -> Iterator[str]:
    """Yield notes about the tables of P and U; if ``known``, a model defines their features."""
    first = tables[0]
    for name, content in first.excluded.items():
        text = f"the column '{name}' contains {content}, so it is not used as a feature; to one-hot"
        text += f" encode it anyway: `categorical={name!r}`"
        if "smiles" in name.lower():
            text += f"; for fingerprints of molecules: `smiles_column={name!r}`"
        elif content == "ids":
            text += f"; to use it as row ids: `id_column={name!r}`"
        yield text
    for table in tables:
        yield from notes_on_rows(table, "the model")
        yield from notes_on_prediction(table) if known else ()


def remark_on_categories(table: TableFeatures) -> str | None:
    """Return a note that lists the one-hot encoded columns; None if there are none."""
    counts = [
        f"{name} ({n_values:,} value{'s' if n_values != 1 else ''}"
        + (f"; for fingerprints: `smiles_column={name!r}`)" if "smiles" in name.lower() else ")")
        for name, n_values in table.categories.items()
    ]
    return f"categorical columns: {listed(counts, SHOWN)}" if counts else None
