"""Format Markdown tables, and put them between marks in a document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

BEGIN, END = "<!-- results: written by --markdown -->", "<!-- end of results -->"


def put_between_marks(path: Path, written: str, study: str = "") -> None:
    """Replace the text between two marks in a document, or the whole document if it has none.

    If a document has the results of several studies, the first mark of each block names the study.
    """
    begin = BEGIN.replace("results", f"results of {study}") if study else BEGIN
    document = path.read_text() if path.exists() else ""
    before, mark, rest = document.partition(begin)
    _, end, after = rest.partition(END)
    if mark and end:
        written = f"{before}{begin}\n\n{written}\n{END}{after}"
    path.write_text(written)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table whose first column is left-aligned and whose others are right-aligned."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
