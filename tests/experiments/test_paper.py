"""The paper's experiments: their draws, a run end to end, and a report from stored results."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.paper import __main__ as program
from experiments.paper.cells import GRIDS, Protocol
from experiments.paper.data import METHODS, PAPER_TASKS, SETTINGS, BenchmarkData, Cell
from experiments.paper.page import filled
from experiments.paper.report import report
from experiments.paper.results import read_published, read_run
from experiments.paper.run import Experiment
from experiments.paper.sections import csv, markdown
from resvm_cli.errors import DataError, FileError, ParameterError
from tests.conftest import ROOT

STORED = ROOT / "docs/reproduction"
PAPER, FAST = (str(STORED / f"results-{name}.jsonl") for name in ("paper", "fast"))
FIRST_GRIDS = STORED / "results-first-grids.jsonl"


@pytest.fixture(scope="module")
def stored():
    return report([PAPER, FAST])


def run(monkeypatch, *words):
    """Run the program in this process."""
    monkeypatch.setattr("sys.argv", ["experiments.paper", *map(str, words)])
    monkeypatch.setattr(program.parallel, "limit_blas_threads", lambda: None)
    monkeypatch.setattr(program.signal, "signal", lambda *arguments: None)
    program.main()


def test_tasks_have_the_sizes_of_the_papers_table_1():
    sizes = {}
    for task in PAPER_TASKS.values():
        sizes.setdefault(task.family, set()).add((task.n_pos, task.n_unl, task.contamination))
    assert sizes == {
        "synthetic": {(100, 200, 0.3)},
        "cancer": {(50, 200, 0.3)},
        "ijcnn1": {(100, 10_000, 0.1)},
        "covtype": {(100, 1000, 0.3)},
        "mnist": {(50, 2000, 0.1)},
        "sensit": {(100, 1000, 0.3)},
    }
    assert set(GRIDS) == set(sizes)


def test_all_tasks_have_42_cells_for_each_method_in_the_published_tables():
    published = read_published()
    tasks = [name for name in PAPER_TASKS if not name.startswith("sensit")]
    assert len({(s, task) for s, task, _ in published if task in tasks}) == 42
    experiment = Experiment("x", Protocol("paper"), repetitions=1, tasks=tuple(tasks))
    cells = experiment.cells()
    assert len(cells) == 3 * 42 + 30  # cwsvm-published on mnist alone
    assert cells[0] == Cell("supervised", "synthetic", 0, method="resvm")
    linear = {cell.task for cell in cells if cell.method == METHODS[-1]}
    assert linear == {f"mnist-{digit}" for digit in range(10)}


@pytest.mark.parametrize(
    ("setting", "of_pos", "of_unl", "total", "seed"),
    [
        ("supervised", 0.0, 0.0, 0.6590420997721811, 3733930124),
        ("pu", 0.0, 0.3, -7.159059630712522, 2917730193),
        ("semi-supervised", 0.3, 0.3, -34.59755499545081, 1136241230),
    ],
)
def test_a_draw_has_its_sizes_and_its_seed(setting, of_pos, of_unl, total, seed):
    task = PAPER_TASKS["synthetic"]
    assert task.contaminations(setting) == (of_pos, of_unl)
    cell = Cell(setting, "synthetic", 0, of_pos, of_unl)
    drawn = BenchmarkData(".", 0).draw(cell)
    assert (len(drawn.positives), len(drawn.unlabeled), len(drawn.test)) == (100, 200, 10_000)
    assert drawn.truth.sum() == 5000
    assert drawn.positives.values.sum() == pytest.approx(total)
    assert cell.seed(0) == seed


def test_methods_share_a_draw_and_repetitions_do_not():
    first, other = (Cell("pu", "synthetic", 0, 0.0, 0.3, method) for method in METHODS[:2])
    again = Cell("pu", "synthetic", 1, 0.0, 0.3, METHODS[0])
    assert first.seed(0) == other.seed(0) != again.seed(0)
    assert first.seed(0) != first.seed(1)
    data = BenchmarkData(".", 0)
    values = [data.draw(cell).positives.values for cell in (first, other, again)]
    assert np.array_equal(values[0], values[1])
    assert not np.array_equal(values[0], values[2])


def test_grids_have_the_values_of_the_file():
    axes = {axis.name: axis.points() for axis in Protocol("paper").axes("resvm", "synthetic")}
    assert axes["n_pos"] == (6, 20, 60)
    assert axes["gamma"] == pytest.approx((0.03, 0.1, 0.3))
    assert "n_pos" not in {axis.name for axis in Protocol("paper").axes("cwsvm", "synthetic")}
    assert (Protocol("paper").kernel("mnist"), Protocol("fast").kernel("mnist")) == (
        "linear", "rbf",
    )  # fmt: skip


def test_a_run_is_resumed_where_it_stopped_with_the_bytes_of_one_run(monkeypatch, tmp_path):
    words = ["run", "--protocol", "search", "--trials", 1, "--tasks", "synthetic", "--settings",
             "pu", "--methods", "bagging,cwsvm", "-j", 1]  # fmt: skip
    monkeypatch.setattr("experiments.paper.cells.PAPER_FOLDS", 2)
    monkeypatch.setattr("experiments.paper.cells.MEMBERS", 2)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(monkeypatch, *words, "--repetitions", 2, "-o", whole)
    text = (whole / "results.jsonl").read_bytes()
    assert len(text.splitlines()) == 4
    run(monkeypatch, *words, "--repetitions", 1, "-o", parts)
    (parts / "results.jsonl").write_bytes(text.splitlines(keepends=True)[0] + b'{"cut')
    run(monkeypatch, *words, "--repetitions", 2, "--resume", "-o", parts)
    assert (parts / "results.jsonl").read_bytes() == text
    record = json.loads((parts / "run.json").read_text())
    assert len(record["commands"]) == 2
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, *words, "-o", parts)  # exists, and no --resume
    assert ended.value.code == ParameterError.exit_code
    assert "| synthetic | bagging | 2 |" not in markdown(report([str(whole)]))
    assert "| synthetic | - | 2 | 2 | - |" in markdown(report([str(whole)]))


def test_missing_data_files_are_named(monkeypatch, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "run", "--tasks", "cancer", "--data-dir", tmp_path, "-o", tmp_path / "o")
    assert ended.value.code == DataError.exit_code
    assert "breast-cancer_scale is not in" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_all_42_cells_of_resvm_are_within_the_published_intervals_or_above(stored):
    cells = [row.cell("resvm") for table in stored.runs[0].tables for row in table.rows]
    assert [cell.verdict for cell in cells].count("above") == 21
    assert [cell.verdict for cell in cells].count("within") == 21
    text = markdown(stored)
    assert "| resvm | 21 | 21 | 0 | 0 | 42 | none |" in text
    assert "| all | resvm | 210 | 86.19 | 90.26 | +4.08 |" in text
    assert "| Semi-supervised | mnist | cwsvm | 10 | +0.4 | -0.1 | +29.6 | 1 | 0.22 |" in text
    for title in ("Wins", "Tests over tasks and data sets", "Width of the intervals"):
        assert f"## paper: {title}" in text


def test_the_report_has_a_line_of_csv_for_every_cell(stored):
    heads, *lines = b"".join(csv(stored)).decode().splitlines()
    assert len(lines) == 2 * 3 * 42 + 30  # cwsvm-published in one of the two runs
    (line,) = [one for one in lines if one.startswith("paper,paper,pu,mnist-8,resvm,")]
    cell = dict(zip(heads.split(","), line.split(","), strict=True))
    results = [
        one.pr_auc_trapezoid
        for one in read_run(PAPER).results
        if (one.cell.setting, one.cell.task, one.cell.method) == ("pu", "mnist-8", "resvm")
    ]
    assert float(cell["pr_auc_trapezoid"]) == pytest.approx(100 * np.mean(results))
    assert (cell["n"], cell["published_low"], cell["published_high"]) == ("20", "72.2", "74.8")


def test_the_page_is_not_older_than_the_results_beside_it(stored):
    page = (ROOT / "docs/reproduction.md").read_text()
    assert filled(page, stored, FIRST_GRIDS) == page, "make reproduction"
    assert page.count("<!-- results: ") == 5


def test_intervals_wins_and_curves_of_a_small_run(tmp_path):
    lines = []
    for repetition in range(6):
        for method, area in (("cwsvm", 0.5), ("bagging", 0.6), ("resvm", 0.7 + repetition / 100)):
            lines.append({
                "protocol": "paper", "setting": "pu", "task": "mnist-8", "method": method,
                "repetition": repetition, "contamination_unl": 0.1, "pr_auc_trapezoid": area,
                "average_precision": area, "roc_auc": area, "curve": [area] * 100,
                "parameters": {"n_pos": 10, "n_unl": 50, "w_pos": 2.0},
            })  # fmt: skip
    path = tmp_path / "results.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (only,) = report([str(tmp_path)]).runs
    (row,) = only.tables[0].rows
    cell = row.cell("resvm")
    assert (cell.wins, cell.verdict) == (6.0, "within")
    assert cell.pr_auc_trapezoid.mean == pytest.approx(72.5)
    assert cell.pr_auc_trapezoid.low == pytest.approx(70.5367, abs=1e-3)  # scipy.stats.t, 5 df
    assert row.p_resvm_over_bagging == pytest.approx(1 / 64)
    assert [one.whole for one in only.dominance] == [1.0, 1.0]
    ratio = next(one for one in only.medians if one.parameter == "unl_per_pos")
    assert ratio.values[8] == 5.0
    assert len(only.gaps) == len({key[:2] for key in read_published()}) - 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"roc_auc": 1.5}, "results.jsonl:2: not a result: areas must be numbers from 0 to 1"),
        ({"setting": "x"}, "unknown setting 'x'"),
        ({"protocol": "fast"}, "results of two protocols: fast, paper"),
        ({"roc_auc": 0.5}, "an earlier line has other areas for"),
        ({"curve": [1]}, "a curve must have 100 values, got 1"),
    ],
)
def test_lines_that_contradict_are_refused(changes, words, tmp_path):
    line = json.loads((STORED / "results-paper.jsonl").read_text().partition("\n")[0])
    path = tmp_path / "results.jsonl"
    path.write_text(f"{json.dumps(line)}\n{json.dumps({**line, **changes})}\n")
    with pytest.raises(DataError, match=words):
        read_run(str(tmp_path))


def test_a_directory_without_results_is_refused(tmp_path):
    with pytest.raises(FileError, match="no-run"):
        read_run(str(tmp_path / "no-run"))


@pytest.mark.parametrize("name", ["resampling", "densities"])
def test_figures_that_need_no_run_are_drawn(name, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    run(monkeypatch, "figure", name, "-o", tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_bytes().startswith(b"<?xml")


def test_the_contamination_figure_has_a_panel_for_each_set_that_varies(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    line = json.loads((STORED / "results-paper.jsonl").read_text().partition("\n")[0])
    levels = [(0.3, 0.0), (0.3, 0.3), (0.0, 0.3)]
    lines = [
        {**line, "setting": "own", "contamination_pos": p, "contamination_unl": u}
        for p, u in levels
    ]
    path = tmp_path / "varied.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    run(monkeypatch, "figure", "contamination", path, "-o", tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    assert "contamination of U" in text
    assert "contamination of P" in text
    assert SETTINGS[0] not in text
