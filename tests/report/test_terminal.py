"""Messages name options, both in JSON and on the terminal; tables are aligned."""

from __future__ import annotations

import json

from resvm_cli.errors import Message
from resvm_cli.report.terminal import aligned, note, print_json

TEXT = Message("{n_pos} is {size}: try {scale:auto}", size=3)


def test_notes_name_options_in_json(capfdbinary):
    print_json("train", {"notes": (TEXT, "as it is: {n_pos}")})
    found = json.loads(capfdbinary.readouterr().out)
    assert found["notes"] == ["--n-pos is 3: try --scale auto", "as it is: {n_pos}"]


def test_notes_name_options_on_the_terminal(capsys):
    note(TEXT)
    assert capsys.readouterr().err == "      note  --n-pos is 3: try --scale auto\n"


def test_columns_of_a_table_are_aligned():
    rows = [["trial", "method", "score"], ["7", "[red]a", "0.5"], ["12", "b", ""]]
    assert aligned(rows, left=(1,)) == [
        "trial  method  score",
        "    7  [red]a    0.5",
        "   12  b",
    ]
