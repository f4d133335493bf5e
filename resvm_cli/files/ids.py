"""Lists of ids: one name a line."""

from __future__ import annotations

import re

from resvm_cli.errors import DataError
from resvm_cli.files.streams import name_of, read_names, read_pieces
from resvm_cli.files.svmlight import BYTE_ORDER_MARK

_SVMLIGHT = re.compile(r"(?:[-+.\deE]+\s+)?(?:qid:\d+\s+)?\d+:[-+.\deE]+(?:\s|$)")


def read_known_ids(path: str) -> dict[str, int]:
    """Ids and their lines; blank lines and those that start with # are passed over."""
    text = b"".join(read_pieces(path)).removeprefix(BYTE_ORDER_MARK)
    name = name_of(path)
    found: dict[str, int] = {}
    for number, line in enumerate(text.decode("utf-8", "surrogateescape").split("\n"), 1):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        if not found:
            _refuse_svmlight(word, f"{name}:{number}", "rows of known positives go to -P")
        if word in found:
            raise DataError(
                f"{name}:{number}: '{word}' is listed twice, first in line {found[word]}",
                f"keep each id once: sort -u {name}",
            )
        found[word] = number
    if not found:
        raise DataError(f"{name}: no ids", "one id a line was expected")
    return found


def read_row_ids(path: str) -> list[str]:
    """The ids of all rows, one a line."""
    names = read_names(path)
    _refuse_svmlight(
        names[0], f"{name_of(path)}:1", "rows that end in their ids (# name) need none"
    )
    return names


def _refuse_svmlight(line: str, where: str, hint: str) -> None:
    if _SVMLIGHT.match(line):
        raise DataError(
            f"{where}: a svmlight row; one id a line was expected",
            f"a list of ids is plain text, one name a line; {hint}",
        )
