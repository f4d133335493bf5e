"""Which rows are held out together: equal shares of P and of U, groups never split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resvm_cli import randomness
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.rows import IntArray


@dataclass(frozen=True, eq=False)
class Folds:
    """For each row, P before U, the fold in which it is held out; one line for each repeat."""

    parts: IntArray  # repeats x rows
    n_folds: int
    groups: IntArray | None = None

    @classmethod
    def drawn(
        cls,
        n_positives: int,
        n_unlabeled: int,
        n_folds: int,
        seed: int,
        repeats: int = 1,
        groups: IntArray | None = None,
        *,
        stream: int = randomness.FOLDS,
    ) -> Folds:
        """Folds of equal shares of P and of U, at random; a group stays together."""
        units, which = n_positives, "rows of P"
        if groups is not None:
            units, which = len(np.unique(groups[:n_positives])), "groups among the rows of P"
        if n_folds > units:
            raise ParameterError(
                "{folds} is {n_folds}, but there are only {units} {which}",
                "use {folds:" + str(max(2, units)) + "} or fewer, or {oob:True}",
                n_folds=n_folds,
                units=units,
                which=which,
            )
        bits = randomness.run_bits(seed, stream)
        lines = []
        for _ in range(repeats):
            if groups is None:
                sizes = (n_positives, n_unlabeled)
                parts = [randomness.shuffled(bits, size) % n_folds for size in sizes]
                lines.append(np.concatenate(parts))
            else:
                lines.append(_grouped(groups, n_positives, n_folds, bits))
        return cls(np.array(lines), n_folds, groups)

    @classmethod
    def given(cls, parts: IntArray, n_positives: int, groups: IntArray | None, name: str) -> Folds:
        """One's own folds, 0 to n - 1; each must hold a row of P and leave another."""
        n_folds = int(parts.max(initial=-1)) + 1
        for part in range(n_folds):
            held = parts[:n_positives] == part
            if not held.any() or held.all() or not (parts[n_positives:] != part).any():
                raise DataError(
                    f"{name}: fold {part + 1} holds {held.sum()} of {n_positives} rows of P",
                    "each fold needs a row of P, and must leave rows of P and of U to train on",
                )
        if groups is not None:
            order = np.lexsort((parts, groups))
            split = (np.diff(groups[order]) == 0) & (np.diff(parts[order]) != 0)
            if split.any():
                raise DataError(f"{name}: a group is split between folds")
        return cls(parts[None, :], n_folds, groups)


def _grouped(groups: IntArray, n_positives: int, n_folds: int, bits: randomness.Bits) -> IntArray:
    """Whole groups to folds: each to the one that has least of P, then of U; the largest first."""
    _, place = np.unique(groups, return_inverse=True)
    place = place.reshape(-1)
    sizes_pos = np.bincount(place[:n_positives], minlength=place.max() + 1)
    sizes_unl = np.bincount(place[n_positives:], minlength=place.max() + 1)
    order = randomness.shuffled(bits, len(sizes_pos))
    order = order[np.lexsort((-sizes_unl[order], -sizes_pos[order]))]
    filled = np.zeros((n_folds, 2), np.int64)
    fold_of = np.zeros(len(order), np.int64)
    for group in order.tolist():
        by = (1, 0) if sizes_pos[group] == 0 else (0, 1)
        fold = min(range(n_folds), key=lambda f: (filled[f, by[0]], filled[f, by[1]], f))
        fold_of[group] = fold
        filled[fold] += sizes_pos[group], sizes_unl[group]
    return fold_of[place]
