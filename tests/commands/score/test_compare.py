"""Repeated runs of methods, read from CSV."""

from __future__ import annotations

import pytest

from resvm_cli.commands.score.compare import read_runs
from resvm_cli.errors import DataError


def runs_with(value: str, folder) -> list[float]:
    path = folder / "runs.csv"
    path.write_text(f"task,repetition,method,value\nd,1,m,{value}\n")
    return list(read_runs(str(path)).values())


@pytest.mark.parametrize("value", ["0.5", " 0.5 ", "+.5", "5e-1"])
def test_a_value_is_a_decimal_number(value, tmp_path):
    assert runs_with(value, tmp_path) == [0.5]


@pytest.mark.parametrize("value", ["1_0", "\u0661", "inf", "-Infinity", "nan", "1e400", "", "x"])
def test_a_value_that_only_python_would_read_is_refused(value, tmp_path):
    with pytest.raises(DataError, match=r"runs.csv:2: expected .* and a number"):
        runs_with(value, tmp_path)
