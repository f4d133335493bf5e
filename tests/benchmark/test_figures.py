"""resvm benchmark figure, as a user runs it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import binom
from sklearn.metrics import auc

from resvm_cli.benchmark import figures
from resvm_cli.benchmark.cells import Protocol, default_grids, read_grids
from resvm_cli.benchmark.contamination import contamination_figure
from resvm_cli.benchmark.data import PAPER_TASKS, Cell
from resvm_cli.benchmark.figures import (
    curves,
    negative_density,
    positive_density,
    render_figure,
)
from resvm_cli.benchmark.run import BenchmarkRequest, run_benchmark
from resvm_cli.benchmark.tables import student_interval
from resvm_cli.errors import DataError
from resvm_cli.model.simulation import synthetic
from resvm_cli.running.run import Run
from tests.benchmark.test_run import ONE_CANDIDATE

SVG = "{http://www.w3.org/2000/svg}"


def texts(content):
    return " ".join("".join(node.itertext()) for node in ET.fromstring(content).iter(f"{SVG}text"))


def line(level_pos, level_unl, method="resvm", repetition=0, area=0.9, **more):
    areas = dict.fromkeys(("pr_auc_trapezoid", "average_precision", "roc_auc"), area)
    levels = {"contamination_pos": level_pos, "contamination_unl": level_unl}
    key = {"protocol": "search", "setting": "own", "task": "synthetic", "method": method}
    return {**key, "repetition": repetition, **levels, **areas, **more}


def write_run(directory, lines):
    directory.mkdir()
    (directory / "results.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return directory


@pytest.fixture
def varied(tmp_path):
    """One run that varies the contamination of U, and one that varies the contamination of P."""
    areas = {"resvm": 0.9, "bagging": 0.8, "cwsvm": 0.7}
    levels = (0.0, 0.3, 0.6)
    return [
        write_run(
            tmp_path / name,
            [
                line(*place(level), method, repetition, area - 0.1 * level - 0.01 * repetition)
                for repetition in range(3)
                for level in levels
                for method, area in areas.items()
            ],
        )
        for name, place in (("u", lambda level: (0.3, level)), ("p", lambda level: (level, 0.3)))
    ]


def test_intervals_of_resamples_are_those_of_the_binomial_distribution():
    result = figures.resampling()
    assert result.contamination == 0.1  # the paper's
    for one in result.sizes:
        law = binom(one.size, 0.1)
        assert one.mean == pytest.approx(law.mean() / one.size)
        assert one.low == law.ppf(0.025) / one.size
        assert one.high == law.ppf(0.975) / one.size
    widths = [one.high - one.low for one in result.sizes]
    assert widths == sorted(widths, reverse=True)
    assert [one.size for one in result.sizes] == [5, 10, 20, 50, 100, 200, 500, 1000]


def test_a_figure_is_self_contained_and_reproducible(resvm, tmp_path):
    for name in ("a.svg", "b.svg"):
        ran = resvm("benchmark", "figure", "resampling", "-o", tmp_path / name)
        assert (ran.code, ran.out) == (0, b""), ran.err
    content = (tmp_path / "a.svg").read_bytes()
    assert content == (tmp_path / "b.svg").read_bytes()
    links = [
        value
        for node in ET.fromstring(content).iter()
        for name, value in node.attrib.items()
        if name.endswith("href")
    ]
    assert all(link.startswith("#") for link in links)
    assert "contamination of the set: 10 %" in texts(content)


def test_json_has_the_numbers_of_a_figure(resvm, tmp_path):
    ran = resvm("benchmark", "figure", "resampling", "-o", tmp_path / "a.svg", "--json")
    assert ran.code == 0, ran.err
    sizes = {one["size"]: one for one in json.loads(ran.out)["sizes"]}
    assert (sizes[10]["low"], sizes[10]["high"]) == (0.0, 0.3)


def test_densities_match_samples_of_the_synthetic_problem():
    points = synthetic(200_000, 200_000, np.random.default_rng(3))
    edges = np.linspace(0, 7, 15)
    fine = np.linspace(0, 7, 14_001)
    step = fine[1]
    for density, rows in (
        (positive_density, points[:200_000]),
        (negative_density, points[200_000:]),
    ):
        inside = np.concatenate([[0], np.cumsum(2 * np.pi * fine * density(fine) * step)])[:-1]
        expected = np.diff(np.interp(edges, fine, inside))
        found = np.histogram(np.hypot(*rows.T), edges)[0] / len(rows)
        assert found == pytest.approx(expected, abs=0.004)


@pytest.mark.thorough
def test_densities_mix_the_classes_and_show_the_rows_of_a_run():
    result = figures.densities()
    shown = {(one.setting, one.name): one for one in result.panels}
    assert len(shown) == 6
    assert [one.contamination for one in result.panels] == [0, 0, 0, 0.3, 0.3, 0.3]
    clean, ring = (np.array(shown["supervised", name].density) for name in "PU")
    mixed = {name: np.array(shown["semi-supervised", name].density) for name in "PU"}
    assert mixed["P"] == pytest.approx(0.7 * clean + 0.3 * ring)
    assert mixed["U"] == pytest.approx(0.3 * clean + 0.7 * ring)
    assert [len(one.points) for one in result.panels] == [100, 200] * 3
    svg = render_figure(result, "svg")
    assert "semi-supervised: U, 30 % contaminated" in texts(svg)
    assert figures.densities(1).panels[0].points != result.panels[0].points


@pytest.mark.thorough
def test_curves_agree_with_the_results_of_a_run(tmp_path):
    (tmp_path / "g.json").write_text(json.dumps(ONE_CANDIDATE))
    protocol = Protocol("paper", read_grids(str(tmp_path / "g.json")))
    result = curves(protocol, Cell("semi-supervised", "synthetic", 1), Run(jobs=1))
    request = BenchmarkRequest(
        str(tmp_path / "b"), protocol, tasks=("synthetic",), settings=("semi-supervised",),
        repetitions=2,
    )  # fmt: skip
    run_benchmark(request, Run(jobs=1))
    written = [json.loads(one) for one in (tmp_path / "b/results.jsonl").read_text().splitlines()]
    wanted = {one["method"]: one for one in written if one["repetition"] == 1}
    assert [one.method for one in result.curves] == list(wanted)
    for one in result.curves:
        for area in ("pr_auc_trapezoid", "average_precision", "roc_auc"):
            assert getattr(one, area) == wanted[one.method][area]
        area = auc([0, *one.fpr, 1], [0, *one.recall, 1])
        assert area == pytest.approx(one.roc_auc, abs=0.002)
        # the best precision at recall 0.5 or higher, as in the results
        beyond = [p for p, r in zip(one.precision, one.recall, strict=True) if r >= 0.5]
        assert max(beyond) == pytest.approx(wanted[one.method]["curve"][49], abs=0.01)
    assert "repetition 1, protocol paper" in texts(render_figure(result, "svg"))


def test_every_method_has_a_pr_curve_and_a_roc_curve():
    areas = {"resvm": (0.75, 0.9), "cwsvm": (0.5, 0.8)}
    curve = {"recall": (0.5, 1.0), "precision": (1.0, 0.5), "fpr": (0.0, 0.4)}
    found = [figures.MethodCurve(name, pr, 0.7, roc, **curve) for name, (pr, roc) in areas.items()]
    figure = Figure()
    figures._draw_curves(figure, figures.Curves("paper", "t", "pu", 0, 0.3, tuple(found)))
    pr, roc = (
        {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
        for axes in figure.axes
    )
    assert list(pr) == ["resvm: area 0.750", "cwsvm: area 0.500", "chance 0.3"]
    assert list(roc) == ["resvm: area 0.900", "cwsvm: area 0.800", "chance 0.5"]
    assert pr["resvm: area 0.750"] == [[0, 1], [0.5, 1], [1, 0.5]]
    assert roc["resvm: area 0.900"] == [[0, 0], [0, 0.5], [0.4, 1], [1, 1]]


def test_intervals_stay_within_0_and_100_percent(tmp_path):
    lines = [
        line(level, 0.3, repetition=repetition, area=area)
        for level in (0.0, 0.3)
        for repetition, area in enumerate((1.0, 0.2))
    ]
    result = contamination_figure([str(write_run(tmp_path / "run", lines))])
    (panel,) = result.panels
    area = panel.methods[0].means[0].area
    assert (area.mean, area.low, area.high) == (60, 0, 100)  # Student's would be -448 to 568
    drawn = Figure()
    figures._draw_contamination(drawn, result)
    (axes,) = drawn.axes
    assert -6 < axes.get_ylim()[0] < 0
    assert 100 < axes.get_ylim()[1] < 106


def test_the_effect_of_contamination_has_a_panel_for_u_and_one_for_p(varied, resvm, tmp_path):
    names = [str(one) for one in varied]
    result = contamination_figure(names)
    assert [(one.axis, one.held) for one in result.panels] == [
        ("contamination_unl", 0.3),
        ("contamination_pos", 0.3),
    ]
    for panel in result.panels:
        assert {one.method for one in panel.methods} == {"resvm", "bagging", "cwsvm"}
        (resvm_means,) = (one.means for one in panel.methods if one.method == "resvm")
        assert [one.level for one in resvm_means] == [0.0, 0.3, 0.6]
        sample = np.array([84.0, 83.0, 82.0])
        last = resvm_means[-1].area
        assert (last.n, last.mean) == (3, pytest.approx(83.0))
        assert (last.low, last.high) == pytest.approx(student_interval(sample))
    assert contamination_figure(names[::-1]) == result
    ran = resvm("benchmark", "figure", "contamination", *varied, "-o", tmp_path / "c.svg")
    assert ran.code == 0, ran.err
    shown = texts((tmp_path / "c.svg").read_bytes())
    assert "contamination of U, % (of P: 30 %)" in shown
    assert "contamination of P, % (of U: 30 %)" in shown
    assert "3 repetitions" in shown


def test_a_run_that_varied_both_contaminations_has_two_panels(tmp_path):
    levels = (0.0, 0.3, 0.6)
    cross = dict.fromkeys([(0.3, one) for one in levels] + [(one, 0.3) for one in levels])
    both = write_run(tmp_path / "b", [line(*place) for place in cross])
    result = contamination_figure([str(both)])
    assert [one.axis for one in result.panels] == ["contamination_unl", "contamination_pos"]
    assert render_figure(result, "png").startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([line(0.3, 0.3)], "contamination does not vary"),
        ([line(0.3, 0.3, setting="semi-supervised")], "contamination does not vary"),
        (
            [line(p, u) for p in (0.0, 0.3) for u in (0.0, 0.3)],
            "varies contamination_unl at several levels of contamination_pos",
        ),
        ([line(0.3, 0.0), line(0.3, 0.3, task="mine")], "mine by search and synthetic by search"),
    ],
)
def test_a_figure_needs_runs_that_vary_one_contamination(lines, said, resvm, tmp_path):
    target = write_run(tmp_path / "b", lines)
    ran = resvm("benchmark", "figure", "contamination", target, "-o", tmp_path / "c.svg")
    assert ran.code == 3, ran.err
    assert said in ran.err
    assert not (tmp_path / "c.svg").exists()


def test_a_figure_needs_runs_of_one_task_and_protocol(varied, tmp_path):
    copy = write_run(tmp_path / "again", [line(0.3, 0.0), line(0.3, 0.6)])
    other = write_run(tmp_path / "fast", [line(p, 0.3, protocol="fast") for p in (0.0, 0.6)])
    for second, said in ((copy, "varies contamination_unl, as does"), (other, "by fast and")):
        with pytest.raises(DataError, match=said):
            contamination_figure([str(varied[0]), str(second)])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["resample", "-o", "a.svg"], 2, "NAME must be resampling, densities, curves or"),
        (["resampling", "-o", "a.gif"], 2, "-o must end in .png, .svg or .pdf"),
        (["resampling", "-o", "-"], 2, "-o must end in"),
        (
            ["resampling", "b", "-o", "a.svg"],
            2,
            "DIR is only for contamination, not for resampling",
        ),
        (["resampling", "--seed", 1, "-o", "a.svg"], 2, "--seed is only for curves and densities"),
        (["densities", "--task", "cancer", "-o", "a.svg"], 2, "--task is only for curves, not for"),
        (
            ["densities", "--repetition", -1, "-o", "a.svg"],
            2,
            "--repetition must be at least 0, got -1",
        ),
        (["curves", "--task", "iris", "-o", "a.svg"], 2, "got 'iris'"),
        (["curves", "--setting", "none", "-o", "a.svg"], 2, "got 'none'"),
        (["curves", "--protocol", "slow", "-o", "a.svg"], 2, "got 'slow'"),
        (["curves", "--task", "mnist-7", "-o", "a.svg"], 3, "mnist.scale.bz2"),
        (["contamination", "-o", "a.svg"], 2, "contamination requires the directories"),
        (["contamination", "b", "b", "-o", "a.svg"], 2, "is the same directory as"),
        (
            ["contamination", "a", "b", "c", "-o", "a.svg"],
            2,
            "requires one or two directories, got 3",
        ),
        (["contamination", "b", "-o", "a.svg"], 5, "b: no such directory"),
        (["resampling", "-o", "missing/a.svg"], 5, "missing"),
    ],
)
def test_bad_options_fail(words, code, said, resvm, tmp_path):
    ran = resvm("benchmark", "figure", *words, cwd=tmp_path)
    assert ran.code == code, ran.err
    assert said in ran.err
    assert not (tmp_path / "a.svg").exists()


def test_random_search_at_chosen_contaminations(resvm, tmp_path):
    words = ["benchmark", "run", "--protocol", "search", "--trials", 1, "--tasks", "synthetic"]
    words += ["--methods", "cwsvm", "--repetitions", 1, "--contamination-unl", 0.3, "-q", "-j", 1]
    ran = resvm(*words, "--contamination-pos", "0:0.6:0.6", "-o", tmp_path / "p")
    assert ran.code == 0, ran.err
    found = [json.loads(one) for one in (tmp_path / "p/results.jsonl").read_text().splitlines()]
    levels = [(one["contamination_pos"], one["contamination_unl"]) for one in found]
    assert levels == [(0.0, 0.3), (0.6, 0.3)]
    assert {(one["protocol"], one["setting"], one["task"]) for one in found} == {
        ("search", "own", "synthetic")
    }
    ran = resvm("benchmark", "figure", "contamination", tmp_path / "p", "-o", tmp_path / "p.pdf")
    assert ran.code == 0, ran.err
    assert (tmp_path / "p.pdf").read_bytes().startswith(b"%PDF")
    assert resvm("benchmark", "report", tmp_path / "p", "-q").code == 0
    words[words.index("--trials") + 1] = 2
    ran = resvm(*words, "--contamination-pos", "0:0.6:0.6", "--resume", "-o", tmp_path / "p")
    assert ran.code == 2
    assert "different settings: trials" in ran.err


def test_random_search_scores_as_the_paper_does():
    protocol = Protocol("search", default_grids())
    settings = protocol.search("resvm", "synthetic", 0, 1.0, PAPER_TASKS["synthetic"].n_pos)
    assert (settings.search, settings.trials, settings.folds) == ("random", 100, 10)
    assert (settings.metric, settings.n_models) == ("pu_score", 50)
    assert settings.max_extensions > 0
    assert not protocol.is_fast
    assert protocol.kernel("synthetic") == "rbf"
