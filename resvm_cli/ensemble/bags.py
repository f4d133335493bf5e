"""Which rows a member is trained on: drawn from (seed, member) alone, redrawn when needed.

The draw uses the raw stream of PCG64, which numpy promises to keep, and not ``Generator.integers``,
whose algorithm may change: an old model's bags must still be redrawn by a later version.
"""

from __future__ import annotations

import numpy as np

from resvm_cli.dataset import IntArray

RULE = "pcg64-1"  # named in the manifest; another way of drawing gets another name


def solver_seed(seed: int, member: int) -> int:
    """A number for solvers with a random stream of their own, apart from the one bags come from."""
    return int(np.random.SeedSequence(seed, spawn_key=(member, 1)).generate_state(1)[0])


def fold_seed(seed: int, fold: int) -> int:
    """The seed of the ensemble that is trained without this fold."""
    low, high = np.random.SeedSequence(seed, spawn_key=(fold, 2)).generate_state(2).tolist()
    return int(high << 32 | low)


class Stream:
    """The random numbers of one member."""

    def __init__(self, seed: int, member: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(member,)))

    def draw(self, n_rows: int, size: int) -> IntArray:
        """``size`` row numbers below ``n_rows``, with replacement."""
        fractions = (self._bits.random_raw(size) >> np.uint64(11)) * 2.0**-53
        # (1 - 2^-53) n is at least half a unit below n and never rounds up to it
        return (fractions * n_rows).astype(np.int64)
