"""Tables of metrics on the terminal."""

from __future__ import annotations

import math

from resvm_cli.commands.score.report import _number


def test_what_is_unknown_is_an_empty_cell():
    assert [_number(value) for value in (None, math.nan, 1234, 0.5)] == ["", "", "1,234", "0.5000"]
