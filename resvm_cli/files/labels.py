"""Labels for scoring: the first field of every line, or a list of names."""

from __future__ import annotations

from collections.abc import Iterator

from resvm_cli.dataset import FloatArray
from resvm_cli.errors import DataError
from resvm_cli.files.columns import BLANKS, Layout, read_columns
from resvm_cli.files.streams import name_of, read_pieces
from resvm_cli.files.svmlight import BYTE_ORDER_MARK


def read_labels(path: str) -> FloatArray:
    """The label of every row of a svmlight file, or of a plain list; nothing else is read."""
    name = name_of(path)
    pieces = read_pieces(path)
    head = next(pieces, b"").removeprefix(BYTE_ORDER_MARK)

    def text() -> Iterator[bytes]:
        yield head
        yield from pieces

    labels, _ = read_columns(
        text(),
        name,
        Layout(BLANKS, 0, what="a numeric label"),
    )
    if not len(labels):
        raise DataError(f"{name}: no labels", "the file is empty or holds only comments")
    return labels
