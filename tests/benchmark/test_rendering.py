"""resvm benchmark report, as a user runs it."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from resvm_cli.benchmark.rendering import ReportTable, _table_lines, cells
from resvm_cli.benchmark.report import report
from resvm_cli.benchmark.sections import sections
from tests import fake_benchmark as fake
from tests.conftest import ROOT

HOSTILE = "<b>|a`*\x1b[31m\u202e</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    lines = fake.results(repetitions=3)
    fake.write(folder / "paper", lines, fake.plan(), fake.times_of(lines, 30.0))
    quick = fake.results(seed=2, protocol="fast", repetitions=3, curves=False)
    fake.write(folder / "fast", quick, fake.plan(protocol="fast"), fake.times_of(quick, 2.0))
    own = [{**line, "task": HOSTILE} for line in fake.own_results([0.0, 0.2])]
    planned = fake.plan(tasks=[HOSTILE], settings=["own"], missing=[], command=HOSTILE,
                        data={HOSTILE: {"file": HOSTILE, "digest": ""}},
                        repetitions={})  # fmt: skip
    fake.write(folder / "own", own, planned)
    return folder


def test_data_without_a_file_is_reported_as_drawn(resvm, tmp_path):
    lines = fake.results(repetitions=2, tasks=["synthetic"])
    data = {"synthetic": {"file": "", "digest": ""}}
    fake.write(tmp_path / "run", lines, fake.plan(tasks=["synthetic"], missing=[], data=data))
    text = resvm("benchmark", "report", tmp_path / "run").out.decode()
    assert re.search(r"^synthetic +drawn, no file", text, re.M)


def test_the_terminal_gets_every_chapter(folder, resvm):
    ran = resvm("benchmark", "report", folder / "paper")
    assert (ran.code, ran.err) == (0, "")
    text = ran.out.decode()
    for title in (
        "WHAT WAS RUN", "VERDICTS", "THE PAPER'S CONCLUSIONS", "SUPERVISED", "PU LEARNING",
        "SEMI-SUPERVISED", "WINS", "TESTS OVER TASKS AND DATA SETS",
        "WHAT REMAINS OF RESVM'S MARGIN", "PR DOMINANCE ON MNIST", "TUNED PARAMETERS ON MNIST",
        "WIDTH OF THE INTERVALS", "AVERAGE PRECISION AND ROC AUC", "CELLS LEFT OUT OR MISSING",
        "TIME",
    ):  # fmt: skip
        assert f"\n{title}\n" in f"\n{text}", title
    assert "resvm benchmark run -o <bench> --seed 7" in text
    assert "numpy 2.0" in text
    assert re.search(r"^all +sensit-1 +all .*combined_scale was missing", text, re.M)
    assert re.search(r"^mnist-8, cwsvm-published +3 .* 56\.5-58\.9 ", text, re.M)
    means = text.split("AVERAGE PRECISION AND ROC AUC")[1]
    assert re.search(r"^setting +method +tasks +average precision +trapezoids", means, re.M)
    assert re.search(r"^Supervised +resvm +\d+ +\d\d\.\d\d +\d\d\.\d\d +\d\d\.\d\d$", means, re.M)


def test_csv_has_a_line_for_every_setting_task_and_method(folder, resvm):
    ran = resvm("benchmark", "report", folder / "paper", "--csv", "-")
    assert ran.code == 0, ran.err
    rows = list(csv.DictReader(io.StringIO(ran.out.decode())))
    assert len(rows) == 3 * (14 * 3 + 10)
    row = next(r for r in rows if (r["setting"], r["task"], r["method"])
               == ("pu", "mnist-8", "resvm"))  # fmt: skip
    lines = [line for line in fake.results(repetitions=3) if line["setting"] == "pu"]
    areas = [x["roc_auc"] for x in lines if (x["task"], x["method"]) == ("mnist-8", "resvm")]
    assert float(row["roc_auc"]) == pytest.approx(100 * sum(areas) / 3)
    assert (row["published_low"], row["n"]) == ("72.2", "3")
    assert row["verdict"] == "too few"


def test_json_holds_the_whole_report_and_no_nan(folder, resvm):
    ran = resvm("benchmark", "report", folder / "paper", folder / "fast", "--json")
    assert ran.code == 0, ran.err

    def refuse(name):
        raise AssertionError(name)

    content = json.loads(ran.out, parse_constant=refuse)
    assert (content["schema"], content["kind"]) == (1, "benchmark-report")
    assert [run["protocol"] for run in content["runs"]] == ["paper", "fast"]
    assert len(content["comparison"]["rows"]) == 12


def test_markdown_tables_are_valid_and_names_are_escaped(folder, resvm):
    ran = resvm("benchmark", "report", folder / "own", "--markdown", "-")
    assert ran.code == 0, ran.err
    text = ran.out.decode()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<b>" not in text.replace("\\<b\\>", "")
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(columns) == 1, block


def test_names_cannot_send_escape_sequences_to_the_terminal(folder, resvm):
    text = resvm("benchmark", "report", folder / "own").out.decode()
    assert "\x1b" not in text
    assert "\\x1b[31m" in text


def test_the_page_is_self_contained_and_escapes_names(folder, resvm, tmp_path):
    page = tmp_path / "page.html"
    ran = resvm("benchmark", "report", folder / "own", "--html", page, "-q")
    assert (ran.code, ran.out) == (0, b"")
    text = page.read_text()
    assert text.count("</script>") == 2  # none from the data
    assert "<b>" not in text
    assert set(re.findall(r"""https?://[^"'\s)]+""", text)) <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text


def test_reports_are_reproducible(folder, resvm, tmp_path):
    for name in ("a", "b"):
        options = [
            f"--{kind}={tmp_path / f'{name}.{kind}'}" for kind in ("markdown", "csv", "html")
        ]
        ran = resvm("benchmark", "report", folder / "paper", folder / "fast", *options, "-q")
        assert (ran.code, ran.out, ran.err) == (0, b"", "")
    for kind in ("markdown", "csv", "html"):
        first = (tmp_path / f"a.{kind}").read_bytes()
        assert first == (tmp_path / f"b.{kind}").read_bytes()
        assert len(first) > 10_000


def test_a_truncated_line_exits_with_3_and_its_location(folder, resvm, tmp_path):
    broken = fake.write(tmp_path / "broken", [fake.line()])
    with (broken / "results.jsonl").open("a") as handle:
        handle.write('{"protocol": "pap')
    ran = resvm("benchmark", "report", broken, "--html", tmp_path / "page.html")
    assert ran.code == 3
    assert "results.jsonl:2: the line is truncated" in ran.err
    assert "--resume" in ran.err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["nowhere"], 5, "no such directory"),
        (["paper", "paper"], 2, "is the same directory as"),
        (["paper", "fast", "own"], 2, "the directories contain 3 runs"),
        (["paper", "--csv", "-", "--json"], 2, "only one of"),
        (["paper", "own"], 3, "no cell in common"),
        ([], 2, "DIR"),
    ],
)
def test_directories_that_cannot_be_reported_fail(folder, resvm, arguments, code, told):
    ran = resvm("benchmark", "report", *arguments, cwd=folder)
    assert (ran.code, ran.out) == (code, b"")
    assert told in ran.err


def test_every_option_is_documented(resvm):
    page = (ROOT / "docs" / "benchmark.md").read_text()
    shown = resvm("benchmark", "report", "--help").out.decode()
    options = set(re.findall(r"(--[a-z][a-z0-9-]+)", shown)) - {"--help"}
    assert options
    assert {option for option in options if option not in page} == set()


def test_benchmark_alone_shows_its_commands(resvm):
    ran = resvm("benchmark")
    assert "report" in ran.out.decode() + ran.err


def test_the_published_tables_and_the_script_are_part_of_the_wheel():
    settings = (ROOT / "pyproject.toml").read_text()
    assert '"benchmark/*.csv"' in settings
    assert '"benchmark/*.js"' in settings


def test_own_data_answers_which_method_and_how_much_contamination(resvm, tmp_path):
    lines = fake.own_results([0.0, 0.1, 0.2], repetitions=4)
    planned = fake.plan(tasks=["mine"], settings=["own"], missing=[], repetitions={"mine/own": 4})
    folder = fake.write(tmp_path / "own", lines, planned)
    html = tmp_path / "own.html"
    ran = resvm("benchmark", "report", folder, "--html", html, "--markdown", tmp_path / "own.md")
    assert ran.code == 0, ran.err
    texts = [" ".join(ran.out.decode().split()), (tmp_path / "own.md").read_text()]
    for text in (*texts, html.read_text()):
        assert "Best method: resvm, with a mean average precision of 8" in text
        assert re.search(r"at which each method is best: resvm [23], bagging [01], cwsvm 0\.", text)
        assert (
            "of P, with U 10 % contaminated: resvm tolerates every level tried, up to 20 %." in text
        )
        assert re.search(r"cwsvm tolerates \d+ %; at \d+ %, it loses \d+\.\d of its \d\d", text)
        assert "fewer than 5 repetitions, no difference can be significant" in text


def test_bands_of_few_repetitions_stay_within_the_chart(tmp_path):
    areas = {0.0: (0.95, 0.4), 0.2: (0.5, 0.1)}
    lines = [
        fake.line(setting="own", task="mine", repetition=number, contamination_pos=level,
                  average_precision=area)
        for level, pair in areas.items()
        for number, area in enumerate(pair)
    ]  # fmt: skip
    told = report([str(fake.write(tmp_path / "own", lines))])
    (figure,) = next(one for one in sections(told) if one.title == "Your data: mine").charts
    (band,) = figure.data["series"]
    assert band["low"] == [0.0, 0.0]
    assert band["high"] == [100.0, 100.0]


def test_no_line_of_the_text_is_wider_than_a_page(folder, resvm):
    ran = resvm("benchmark", "report", folder / "paper")
    lines = ran.out.decode().splitlines()
    assert [line for line in lines if len(line) > 100 and "https:" not in line] == []
    heads = [line.split() for line in lines if line.startswith("task ")]
    assert any(head[1:4] == ["resvm", "paper", "verdict"] for head in heads)
    for head in heads:  # a column that refers to another one stays next to it
        assert head[1] not in ("paper", "verdict")


def test_a_table_is_divided_into_parts_that_start_with_its_names():
    columns = ("task", "n", "a" * 40, "paper", "b" * 40, "paper")
    rows = (cells("x", 1, "2", "3", "4", "5"), cells("y", 1, "2", "3", "", ""))
    lines = list(_table_lines(ReportTable("", columns, rows)))
    assert [line.split() for line in lines] == [
        ["task", "n", "a" * 40, "paper"], ["x", "1", "2", "3"], ["y", "1", "2", "3"], [],
        ["task", "b" * 40, "paper"], ["x", "4", "5"],
    ]  # fmt: skip
