"""Which rows a member is trained on: drawn from (seed, member) alone, redrawn when needed."""

from __future__ import annotations

from resvm_cli import randomness
from resvm_cli.dataset import IntArray

RULE = "pcg64-1"  # named in the manifest; another way of drawing gets another name


class Stream:
    """The random numbers of one member."""

    def __init__(self, seed: int, member: int) -> None:
        self._bits = randomness.bag_bits(seed, member)

    def draw(self, n_rows: int, size: int) -> IntArray:
        """``size`` row numbers below ``n_rows``, with replacement."""
        return randomness.below(self._bits, n_rows, size)
