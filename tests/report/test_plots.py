"""Figures: drawn for every kind of result, the same bytes each time."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from resvm_cli.commands.score import score_plots
from resvm_cli.commands.score.score import score
from resvm_cli.commands.score.scored_rows import ScoreRequest
from resvm_cli.commands.score.summary import Known, Settings
from resvm_cli.errors import CommandLineError
from resvm_cli.metrics.significance import over_data_sets
from resvm_cli.report import plots
from resvm_cli.running.run import Run


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    rng = np.random.default_rng(0)
    positive = rng.random(300) < 0.3
    (folder / "labels").write_text("".join(f"{int(one)}\n" for one in positive))
    for name in ("a$b", "c"):
        values = rng.standard_normal(300) + positive
        (folder / name).write_text("".join(f"{value!r}\n" for value in values.tolist()))

    def run(names=("a$b",), **options):
        request = ScoreRequest(
            files=tuple(str(folder / name) for name in names),
            labels=str(folder / "labels"),
            settings=Settings(n_replicates=options.pop("n_replicates", 30)),
            drawings=True,
            **options,
        )
        return score(request, Run())

    return run


def words(svg: bytes) -> str:
    return " ".join(text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip())


@pytest.mark.parametrize(
    ("kind", "first"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_every_format_is_what_its_name_says(kind, first, result):
    assert score_plots.curves(result(), kind).startswith(first)


def test_the_legend_tells_the_areas_and_the_chance_lines_are_there(result):
    found = result(("a$b", "c"))
    told = words(score_plots.curves(found, "svg"))
    for one in found.files:
        values = one.figures.values
        assert f"average precision {values['average_precision']:.3f}" in told
        assert f"area {values['roc_auc']:.3f}" in told
    assert "chance 0.5" in told
    share = found.files[0].figures.values["n_positives"] / 300
    assert f"chance {share:.3g}" in told
    assert "shaded: pointwise 95 %" in told
    assert "shaded" not in words(score_plots.curves(result(n_replicates=0), "svg"))


@pytest.mark.parametrize("known", [None, Known((0.0, 0.0), (0.1, 0.2)), Known((0.1, 0.1), None)])
def test_positive_and_unlabeled_rows_are_drawn_as_what_they_are(known, result):
    told = words(score_plots.curves(result(pu=True, known=known), "svg"))
    assert ("known positives among those called" in told) == (known is None)
    assert ("average precision" in told) == (known is not None)


def test_the_same_figure_has_the_same_bytes(result):
    assert score_plots.curves(result(), "svg") == score_plots.curves(result(), "svg")


def test_the_diagram_of_critical_differences_shows_ranks_and_groups():
    rng = np.random.default_rng(1)
    means = rng.random((17, 3)) + np.array([0, 0.4, 0.6])
    overall = over_data_sets(("cwsvm", "bagging", "resvm"), means)
    told = words(score_plots.critical_differences(overall, "svg"))
    assert "CD = 0.804" in told
    for method, rank in zip(overall.methods, overall.average_ranks, strict=True):
        assert f"{method} ({rank:.2f})" in told


@pytest.mark.parametrize("name", ["x", "x.gif", "png"])
def test_other_endings_are_refused(name):
    if name == "png":
        assert plots.kind_of("A.PNG") == "png"
        return
    with pytest.raises(CommandLineError, match=r"\.png, \.svg or \.pdf was expected"):
        plots.kind_of(name)
