"""Cells of a benchmark: their data, and how long those left will take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resvm_cli.benchmark.cells import Bench, Protocol, TimeLeft, default_grids
from resvm_cli.benchmark.data import PAPER_TASKS, BenchmarkData, Cell, OwnData, missing_files
from resvm_cli.errors import DataError
from tests.conftest import write_svm


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


PAPER = {  # rows of P and U, contamination, test rows of each class; None with a test file
    "synthetic": (100, 200, 0.3, 5000),
    "cancer": (50, 200, 0.3, 100),
    "ijcnn1": (100, 10_000, 0.1, None),
    "covtype": (100, 1000, 0.3, 20_000),
    "mnist": (50, 2000, 0.1, None),
    "sensit": (100, 1000, 0.3, None),
}


def test_tasks_have_the_sizes_of_the_paper():
    for task in PAPER_TASKS.values():
        sizes = (task.n_pos, task.n_unl, task.contamination, task.test_pos)
        assert sizes == PAPER[task.family]
        assert task.test_neg == task.test_pos
        assert (task.n_pool is not None) == (task.name == "covtype")
    assert [name for name in PAPER_TASKS if name.startswith("mnist")] == [
        f"mnist-{digit}" for digit in range(10)
    ]


def test_rows_of_the_paper_are_read_from_its_files(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat([4.0, 2.0], [160, 500])
    assert missing_files(str(tmp_path), [PAPER_TASKS["cancer"]])
    write_svm(tmp_path / "breast-cancer_scale", rng.normal(size=(660, 3)), labels)
    assert missing_files(str(tmp_path), [PAPER_TASKS["cancer"]]) == ()
    data = BenchmarkData(str(tmp_path), None, 0)
    drawn = data.draw(Cell("supervised", "cancer", 0))
    assert (len(drawn.positives), len(drawn.unlabeled)) == (50, 200)
    assert (drawn.truth.sum(), (~drawn.truth).sum()) == (100, 100)
    assert data.labeled("cancer") is data.labeled("cancer")
    (tmp_path / "breast-cancer_scale").unlink()
    with pytest.raises(DataError, match="breast-cancer_scale: has been removed"):
        BenchmarkData(str(tmp_path), None, 0).labeled("cancer")
    assert data.labeled("cancer") is not None  # it is in memory


def test_a_task_with_a_test_file_is_tested_on_it(tmp_path):
    rng = np.random.default_rng(0)
    for name, size in (("combined_scale", 2000), ("combined_scale.t", 90)):
        write_svm(tmp_path / name, rng.normal(size=(size, 2)), np.arange(size) % 3 + 1)
    drawn = BenchmarkData(str(tmp_path), None, 0).draw(Cell("supervised", "sensit-2", 0))
    assert (len(drawn.test), drawn.truth.sum()) == (90, 30)


def test_a_large_file_is_cut_to_a_pool_of_rows(tmp_path, monkeypatch):
    features = np.arange(1.0, 301.0)[:, None]
    write_svm(tmp_path / "covtype.libsvm.binary.scale", features, np.arange(300) % 2 + 1)
    for n_pool, n_kept in ((200, 200), (300, 300), (400, 300)):
        small = replace(PAPER_TASKS["covtype"], n_pool=n_pool)
        monkeypatch.setitem(PAPER_TASKS, "covtype", small)
        labeled = BenchmarkData(str(tmp_path), None, 0).labeled("covtype")
        assert len(labeled.rows) == len(labeled.positive) == n_kept
        np.testing.assert_array_equal(labeled.positive, labeled.rows.values % 2 == 1)
