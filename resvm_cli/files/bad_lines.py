"""Lines of svmlight text that were not understood: what is there, and what was expected."""

from __future__ import annotations

from dataclasses import dataclass

from resvm_cli.errors import DataError
from resvm_cli.files import _svmlight as tokenizer


@dataclass(frozen=True)
class BadLine:
    """A line that was not understood."""

    line: int
    column: int
    status: int
    token: bytes
    previous: int

    def error(self, name: str) -> DataError:
        where = f"{name}:{self.line}:{self.column}"
        return _error(self.status, where, self.token, self.previous)


def _error(status: int, where: str, token: bytes, previous: int) -> DataError:
    """The message for a line that was not understood: what is there; what was expected."""
    shown = token[:40].decode("utf-8", "backslashreplace").rstrip("\r")
    if len(token) > 40:
        shown += "..."
    index = shown.partition(":")[0]
    pair = "a pair index:value was expected"
    what, hint = {
        tokenizer.MALFORMED: (f"cannot read '{shown}'; {pair}", None),
        tokenizer.NOT_FINITE: (
            f"'{shown}' is not finite; every number must be",
            "leave unknown values out (they count as 0) or impute them first",
        ),
        tokenizer.VALUE_OVERFLOW: (
            f"the value of '{shown}' is too large for a double; at most 1.8e308 was expected",
            None,
        ),
        tokenizer.INDEX_ZERO: (
            f"index 0 in '{shown}'; indices start at 1",
            "for files that count features from 0 add --zero-based",
        ),
        tokenizer.INDEX_NEGATIVE: (f"negative index in '{shown}'; indices start at 1", None),
        tokenizer.INDEX_DESCENDS: (
            f"feature {index} comes after feature {previous}; indices must increase",
            "sort the features of each row by index",
        ),
        tokenizer.INDEX_REPEATS: (
            f"feature {index} comes twice; indices must increase",
            "keep one value for each feature of a row",
        ),
        tokenizer.INDEX_TOO_LARGE: (
            f"index {index} is too large; at most 2147483646 was expected",
            None,
        ),
        tokenizer.NUL_BYTE: (
            "a NUL byte; text was expected",
            "the file is binary, or written as UTF-16: convert it to UTF-8 text",
        ),
        tokenizer.BAD_LABEL: (
            f"cannot read '{shown}'; a numeric label or a pair index:value was expected",
            "is this a svmlight file? names go to the end of a line, behind a #",
        ),
        tokenizer.BAD_QID: (
            f"cannot read '{shown}'; qid:NUMBER was expected, once, before the features",
            None,
        ),
        tokenizer.NO_VALUE: (f"feature {index} has no value; {pair}", None),
    }[status]
    return DataError(f"{where}: {what}", hint)
