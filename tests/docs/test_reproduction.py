"""The page on reproducing the paper agrees with the stored results."""

from __future__ import annotations

import importlib.util
import json
import shutil

import pytest

from resvm_cli.benchmark.report import report
from resvm_cli.benchmark.results import read_benchmark
from tests import fake_benchmark as fake
from tests.conftest import ROOT

FOLDER = ROOT / "docs/reproduction"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("writer", ROOT / "docs/write_reproduction.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written(folder, lines, **planned):
    """A run's directory with a settings.json."""
    plan = fake.plan(**planned)
    fake.write(folder, lines, plan, fake.times_of(lines, 36.0))
    settings = {"protocol": plan["protocol"], "seed": plan["seed"]}
    (folder / "settings.json").write_text(json.dumps(settings))
    return str(folder)


@pytest.fixture(scope="module")
def page(script, tmp_path_factory):
    """The page, made from parts of one run and from a run of another protocol."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "reproduction").mkdir()
    shutil.copy(ROOT / "docs/reproduction.md", folder)
    lines = fake.results(repetitions=3, tasks=["cancer", "ijcnn1"])
    lines += fake.results(repetitions=5, tasks=["mnist-8"])  # enough for a verdict
    for line in lines:
        if (line["setting"], line["task"], line["method"]) == ("pu", "mnist-8", "resvm"):
            line["pr_auc_trapezoid"] = 0.5
        if (line["task"], line["method"], line["repetition"]) == ("ijcnn1", "resvm", 2):
            line["pr_auc_trapezoid"] = 0.75  # the one draw that was not looked at
    parts = [
        written(folder / name, [line for line in lines if line["task"] == name], tasks=[name])
        for name in ("cancer", "ijcnn1", "mnist-8")
    ]
    fast = fake.results(repetitions=2, protocol="fast", tasks=["cancer", "mnist-1", "mnist-8"])
    fast = [line for line in fast if (line["task"], line["method"]) != ("mnist-1", "bagging")]
    script.write(parts, [written(folder / "quick", fast, protocol="fast")], folder)
    return folder


def test_only_the_tables_between_marks_are_replaced(page):
    text = (page / "reproduction.md").read_text()
    assert "| `paper` | cancer | all three | 3 | 3 | 3 | - |\n" in text
    assert "| `fast` | cancer | all three | 2 | 2 | 2 | - |\n" in text
    assert "| `fast` | mnist | all three | 2 | 2, on 1 of 2 | 2 | 2 |\n" in text
    assert "Processor time: `paper` 1.1 h, `fast` 0.6 h." in text
    (row,) = [line for line in text.splitlines() if line.startswith("| ijcnn1, PU | 67.4 (1) |")]
    assert row.endswith(" (3) | 75.0 (1) | 72.6-80.7 |")
    assert "| mnist-8, PU | 5 | 50.0 | 72.2-74.8 |\n" in text
    assert "| resvm | all | 12 |" in text
    marked = [line for line in text.splitlines() if line.startswith("<!-- ")]
    before = (ROOT / "docs/reproduction.md").read_text()
    assert marked == [line for line in before.splitlines() if line.startswith("<!-- ")]
    assert text.startswith(before[: before.index("<!-- results: run -->")])


def test_hours_say_how_many_results_they_cover(script, tmp_path):
    lines = fake.results(repetitions=2, tasks=["cancer"])
    folder = written(tmp_path / "run", lines, tasks=["cancer"])
    timed = (tmp_path / "run/times.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run/times.jsonl").write_text("".join(timed[:4]))
    assert "`paper` 0.0 h for 4 of its results" in script.what_was_run(report([folder]))


def test_lines_are_kept_without_their_curves_in_the_order_of_one_run(page):
    lines = (page / "reproduction/results-paper.jsonl").read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    assert len(kept) == 3 * (3 * (3 + 3) + 5 * 4)
    assert not any("curve" in line for line in kept)
    assert [line["repetition"] for line in kept] == sorted(line["repetition"] for line in kept)
    assert "## paper: Verdicts" in (page / "reproduction/report.md").read_text()


def test_the_page_is_not_older_than_the_lines_beside_it(script, tmp_path):
    folders = []
    for name in ("paper", "fast"):
        (tmp_path / name).mkdir()
        shutil.copy(FOLDER / f"results-{name}.jsonl", tmp_path / name / "results.jsonl")
        folders.append(str(tmp_path / name))
    told = report(folders)
    results = read_benchmark(folders[0]).results
    page = (ROOT / "docs/reproduction.md").read_text()
    blocks = {found[2]: found[0] for found in script.BLOCK.finditer(page)}
    assert set(blocks) == {*script.BLOCKS, "revised"}
    assert script.revised(told, results) in blocks["revised"], "make reproduction"
    for name in ("verdicts", "margins"):  # the others also tell of curves and times
        assert script.BLOCKS[name](told) in blocks[name], "make reproduction"
