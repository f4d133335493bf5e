"""The remaining time of a benchmark."""

from __future__ import annotations

import pytest

from resvm_cli.benchmark.cells import Bench, Protocol, TimeLeft, default_grids
from resvm_cli.benchmark.data import BenchmarkData, Cell, OwnData


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (20.0, ", about 60 s left"),
        (59.0, ", about 3 min left"),
        (2000.0, ", about 100 min left"),
        (3600.0, ", about 3.0 h left"),
    ],
)
def test_the_time_left_is_that_of_the_cells_before(seconds, told):
    data = BenchmarkData(".", OwnData("own.svm", 1, 20, 60), 0)
    left = TimeLeft(Bench(data, Protocol("fast", default_grids(), 1), alone=False))
    cells = [Cell("own", "own", number, method="bagging") for number in range(6)]
    assert left.phrase(cells, 2) == ""
    left.add(cells[0], 0.5 * seconds)
    left.add(cells[1], 1.5 * seconds)
    assert left.phrase(cells, 2) == told
