"""Out-of-bag values of known positives, as the table that is stored with a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resvm_cli.dataset import FloatArray, IntArray

HEADER = "row\tdecision_value\tmembers"


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """Rows of P, counted from 1, judged by the members whose bags lack them."""

    rows: IntArray
    values: FloatArray
    members: IntArray  # how many those were

    def format(self) -> bytes:
        """One line a row, numbers that read back exactly."""
        columns = zip(self.rows.tolist(), self.values.tolist(), self.members.tolist(), strict=True)
        lines = [f"{row}\t{value!r}\t{members}" for row, value, members in columns]
        return ("\n".join([HEADER, *lines]) + "\n").encode("ascii")

    @classmethod
    def parse(cls, text: bytes) -> OutOfBag:
        """Read it back; ValueError where it is not what ``format`` writes."""
        lines = text.decode("ascii").split("\n")
        if lines[0] != HEADER or lines[-1]:
            raise ValueError("not a table of out-of-bag values")
        fields = [line.split("\t") for line in lines[1:-1]]
        if any(len(row) != 3 for row in fields):
            raise ValueError("three columns were expected")
        values = np.array([float(row[1]) for row in fields], np.float64)
        if not np.isfinite(values).all():
            raise ValueError("a value is not finite")
        return cls(
            np.array([int(row[0]) for row in fields], np.int64),
            values,
            np.array([int(row[2]) for row in fields], np.int64),
        )
