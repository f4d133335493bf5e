"""Fields of a line that are parted by tabs or commas, quoted where they must be."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable

from resvm_cli.errors import DataError
from resvm_cli.files.streams import LONGEST_LINE

# Its own limit of 131,072 is for whole programs, and says nothing that a line's does not.
csv.field_size_limit(LONGEST_LINE + 1)


def fields_of(line: str, separator: str, where: str) -> list[str]:
    """The fields of one line; ``where`` is what a line that is none is refused by."""
    try:
        return next(csv.reader([line.removesuffix("\r")], delimiter=separator), [])
    except csv.Error:
        raise DataError(
            f"{where}: a carriage return in the middle of a field",
            "lines end in a newline; a field with a carriage return needs quotes",
        ) from None


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def line_writer(separator: str) -> Callable[[Iterable[object]], str]:
    """Fields to a line, quoted where they must be."""
    # both characters are named so that fields which hold either are quoted: Python before 3.13
    # asks for no more than what ends a line
    write = csv.writer(_Echo(), delimiter=separator, lineterminator="\r\n").writerow

    def line(fields: Iterable[object]) -> str:
        return str(write(fields))[:-2] + "\n"

    return line
