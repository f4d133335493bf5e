"""One or two columns of numbers out of text of any length, at the tokenizer's speed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError
from resvm_cli.files import _svmlight as tokenizer
from resvm_cli.files.streams import whole_lines
from resvm_cli.rows import FloatArray
from resvm_cli.running import parallel

SmallArray: TypeAlias = npt.NDArray[np.float32]
READING_THREADS = 2
SHORTEST_LINE = 2  # bytes of a row: a digit and a newline
BLANKS = "blanks"


@dataclass(frozen=True)
class Layout:
    """How lines are cut into fields and which are wanted, counted from 0."""

    separator: str  # one character, or BLANKS: any run of blanks, and # ends the line
    first: int
    second: int | None = None
    what: str = "a number"  # what the fields should hold, for messages

    @property
    def code(self) -> int:
        return 0 if self.separator == BLANKS else ord(self.separator)


@dataclass(frozen=True, eq=False)
class _Part:
    firsts: FloatArray
    seconds: SmallArray | None
    n_lines: int
    refused: tuple[int, int, bytes] | None  # status, column, token


def read_columns(
    pieces: Iterable[bytes], name: str, layout: Layout, *, lines_before: int = 0
) -> tuple[FloatArray, SmallArray | None]:
    """The wanted columns of every line; the first field that is no number is an error.

    The second column holds labels: single precision does for them, in half the memory.
    """

    def parse(text: bytes) -> _Part:
        return _parse(text, layout)

    firsts: list[FloatArray] = []
    seconds: list[SmallArray] = []
    line = lines_before
    for part in parallel.stream(parse, whole_lines(pieces, name=name), lambda: READING_THREADS):
        firsts.append(part.firsts)
        if part.seconds is not None:
            seconds.append(part.seconds)
        line += part.n_lines
        if part.refused is not None:
            raise _refusal(name, line + 1, layout, *part.refused)
    both = layout.second is not None
    return _joined(firsts, np.float64), _joined(seconds, np.float32) if both else None


def _joined(parts: list[Any], kind: type[Any]) -> Any:
    """One array, each part given up as soon as it is copied."""
    whole = np.empty(sum(map(len, parts)), kind)
    start = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[start : start + len(part)] = part
        start += len(part)
    return whole


def _parse(text: bytes, layout: Layout) -> _Part:
    capacity = len(text) // SHORTEST_LINE + 1
    firsts = np.empty(capacity)
    both = layout.second is not None
    seconds = np.empty(capacity if both else 0)
    status, n_rows, _, n_lines, line_start, start, end = tokenizer.columns(
        text,
        layout.code,
        layout.first,
        -1 if layout.second is None else layout.second,
        firsts,
        seconds,
    )
    refused = None
    if status != tokenizer.OK:
        refused = (status, start - line_start + 1, text[start:end])
    with np.errstate(over="ignore"):  # a label that large is refused as any other than 1 and -1
        labels = seconds[:n_rows].astype(np.float32) if both else None
    return _Part(
        firsts[:n_rows].copy(),
        labels,
        n_lines,
        refused,
    )


def _refusal(
    name: str, line: int, layout: Layout, status: int, column: int, token: bytes
) -> DataError:
    where = f"{name}:{line}:{column}"
    shown = token[:40].decode("utf-8", "backslashreplace").rstrip("\r")
    if status == tokenizer.NUL_BYTE:
        return DataError(f"{where}: a NUL byte; text was expected", "the file is binary")
    if status == tokenizer.NO_VALUE:
        return DataError(f"{where}: the line ends too early; {layout.what} was expected")
    if status == tokenizer.NOT_FINITE:
        return DataError(
            f"{where}: '{shown}' has no rank; {layout.what} was expected",
            "find out where it comes from, or leave such rows out of both files",
        )
    if status == tokenizer.VALUE_OVERFLOW:
        return DataError(f"{where}: '{shown}' is too large for a double")
    return DataError(f"{where}: cannot read '{shown}'; {layout.what} was expected")
