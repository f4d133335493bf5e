"""Tables, plots and the page: whole, self-contained, and the same bytes each time."""

from __future__ import annotations

import json
import math
import re
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from resvm_cli.commands.score import report
from resvm_cli.commands.score.score import ScoreRequest, score
from resvm_cli.metrics import curves
from resvm_cli.metrics.contamination_correction import KnownContamination
from resvm_cli.report import charts
from resvm_cli.running.run import Run

RANGES = KnownContamination((0.1, 0.1), (0.1, 0.2))


def made(tmp_path, monkeypatch, size=300, **options):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    positive = rng.random(size) < 0.3
    values = rng.standard_normal(size) + positive
    (tmp_path / "labels").write_text("".join(f"{int(one)}\n" for one in positive))
    (tmp_path / "</script>&.pred".replace("/", "_")).write_text(
        "".join(f"{value!r}\n" for value in values.tolist())
    )
    request = ScoreRequest(
        files=("<_script>&.pred",),
        labels="labels",
        n_replicates=50,
        **options,
    )
    page = report.render_page(score(request, Run())).decode()
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return page, json.loads(data.group(1)), positive, values


def test_the_page_asks_nobody_for_anything(tmp_path, monkeypatch):
    page, _, _, _ = made(tmp_path, monkeypatch)
    outside = set(re.findall(r"""https?://[^"'\s)]+""", page))
    assert outside <= {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=\"(?!data:)", page)
    assert "default-src 'none'" in page
    assert page.count("</script>") == 2  # none from the data


def test_the_counts_at_the_threshold_are_there_also_where_points_were_thinned(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(curves.Points.thinned, "__defaults__", (20,))
    _, data, positive, values = made(tmp_path, monkeypatch)
    (one,) = data["files"]
    assert len(one["tp"]) < 30
    called = values > 0.5
    assert one["tp"][one["start"] - 1] == (called & positive).sum()
    assert one["fp"][one["start"] - 1] == (called & ~positive).sum()
    assert (np.diff(np.add(one["tp"], one["fp"])) >= 0).all()


def test_every_threshold_of_a_small_file_can_be_chosen(tmp_path, monkeypatch):
    _, data, positive, values = made(tmp_path, monkeypatch)
    (one,) = data["files"]
    for place in (0, 7, 150, 299):
        threshold = np.sort(values)[::-1][place]
        assert one["thresholds"][place] == pytest.approx(threshold, rel=1e-11)
        called = values >= threshold
        assert one["tp"][place] == (called & positive).sum()
        assert one["fp"][place] == (called & ~positive).sum()
    assert sum(one["histogram"]["positive"]) == positive.sum()


def test_infinite_thresholds_are_the_largest_doubles_on_the_page():
    most = sys.float_info.max
    assert [report._finite(value) for value in (-np.inf, 0.25, np.inf)] == [-most, 0.25, most]


def test_contaminated_sets_get_corrected_curves_and_their_assumptions(tmp_path, monkeypatch):
    _, data, _, _ = made(
        tmp_path, monkeypatch, pu=True, known=KnownContamination((0.1, 0.1), (0.1, 0.2))
    )
    (one,) = data["files"]
    assert len(one["corrected"]["tpr"]) == len(one["corrected"]["precision"])
    assert data["chance"] == pytest.approx(0.15)
    assert len(data["assumptions"]) == 3
    names = [name for name, _, _ in data["rows"]]
    assert "corrected_average_precision" in names
    assert "average_precision" not in one["figures"]


def test_text_cannot_end_the_data(tmp_path):
    page = charts.page("<title>", "commands/score/score.js", {"x": "</script><!--\u2028"}).decode()
    assert "<title>&lt;title&gt;</title>" in page
    assert page.count("</script>") == 2
    assert "<!--" not in page


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
            n_replicates=options.pop("n_replicates", 30),
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
    assert report.plot_curves(result(), kind).startswith(first)


def test_the_legend_tells_the_areas_and_the_chance_lines_are_there(result):
    found = result(("a$b", "c"))
    text = words(report.plot_curves(found, "svg"))
    for one in found.files:
        values = one.figures.values
        assert f"average precision {values['average_precision']:.3f}" in text
        assert f"area {values['roc_auc']:.3f}" in text
    assert "chance 0.5" in text
    share = found.files[0].figures.values["n_positives"] / 300
    assert f"chance {share:.3g}" in text
    assert "shaded: pointwise 95 %" in text
    assert "shaded" not in words(report.plot_curves(result(n_replicates=0), "svg"))


@pytest.mark.parametrize(
    "known",
    [None, RANGES, KnownContamination((0.1, 0.1), None)],
)
def test_positive_and_unlabeled_rows_are_drawn_as_what_they_are(known, result):
    text = words(report.plot_curves(result(pu=True, known=known), "svg"))
    assert ("known positives among predicted positives" in text) == (known is None)
    assert ("average precision" in text) == (known is not None)


class Axes:
    """Remembers what is drawn last."""

    def plot(self, across, up, **style):
        self.across, self.up, self.marker = across, up, style.get("marker")

    def step(self, *curve, **style):
        pass

    fill_between = step


@pytest.mark.parametrize(("pu", "known"), [(False, None), (True, None), (True, RANGES)])
def test_the_dot_is_at_the_threshold(pu, known, result):
    pr, roc = Axes(), Axes()
    (file,) = result(pu=pu, known=known).files
    report._draw_file(pr, roc, file, 0, pu)
    values = file.figures.values
    assert pr.marker == roc.marker == "o"
    assert pr.across == roc.up  # recall
    if known:
        expected = [values[f"corrected_{name}"] for name in ("recall", "precision", "fpr")]
    elif pu:
        n_known, n_rows = values["n_positives"], values["n_rows"]
        predicted = values["fraction_positive"] * n_rows
        of_unlabeled = (predicted - values["recall"] * n_known) / (n_rows - n_known)
        expected = [values["recall"], values["recall"] * n_known / predicted, of_unlabeled]
    else:
        expected = [values["recall"], values["precision"], values["fp"] / values["n_negatives"]]
    assert [pr.across[0], pr.up[0], roc.across[0]] == pytest.approx(expected)


def test_the_same_figure_has_the_same_bytes(result):
    assert report.plot_curves(result(), "svg") == report.plot_curves(result(), "svg")


def drawn_scores(tmp_path, monkeypatch, threshold):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    values = np.append(rng.normal(1, 1, 60), rng.normal(0, 1, 600))
    (tmp_path / "labels").write_text("1\n" * 60 + "0\n" * 600)
    (tmp_path / "p").write_text("".join(f"{value!r}\n" for value in values.tolist()))
    return score(
        ScoreRequest(("p",), "labels", pu=True, known=RANGES, threshold=threshold,
                     n_replicates=20), Run(),
    )  # fmt: skip


@pytest.mark.parametrize("threshold", [-9.0, -0.7, 0.1234, 0.5, 1.9, 9.0])
def test_the_dot_of_a_corrected_curve_lies_on_it(tmp_path, monkeypatch, threshold):
    """Curves rise only, and have points at known positives: the threshold is one more."""
    from matplotlib.figure import Figure

    (file,) = drawn_scores(tmp_path, monkeypatch, threshold).files
    pr, roc = Figure().subplots(1, 2)
    report._draw_file(pr, roc, file, 0, True)
    for axes in (pr, roc):
        curve, dot = axes.lines[0], axes.lines[-1]
        assert dot.get_xydata().tolist()[0] in curve.get_xydata().tolist()
    values = file.figures.values
    recall, precision = pr.lines[-1].get_xydata()[0]
    assert recall == pytest.approx(values["corrected_recall"], abs=0.03)
    assert precision == pytest.approx(values["corrected_precision"], abs=0.1) or recall == 0


def test_the_plot_does_not_cut_its_titles(tmp_path, monkeypatch):
    from io import BytesIO

    from matplotlib.image import imread

    result = drawn_scores(tmp_path, monkeypatch, 0.5)
    pixels = imread(BytesIO(report.plot_curves(result, "png")))[..., :3]
    for edge in (pixels[:8], pixels[-8:], pixels[:, :8], pixels[:, -8:]):
        assert (edge == 1).all()


def test_the_pr_curve_is_on_the_left_and_the_roc_curve_on_the_right(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(charts, "saved", lambda figure, *_, **more: drawn.append(figure) or b"")
    _, _, positive, values = made(tmp_path, monkeypatch)
    request = ScoreRequest(files=("<_script>&.pred",), labels="labels", n_replicates=0)
    report.plot_curves(score(request, Run()), "svg")
    left, right = (axes.get_lines()[0].get_xydata() for axes in drawn[0].axes)
    best = positive[np.argsort(-values)]
    recall = np.cumsum(best) / best.sum()
    precision = np.cumsum(best) / np.arange(1, len(best) + 1)
    np.testing.assert_allclose(left[-1], [recall[-1], precision[-1]])
    np.testing.assert_allclose(right[-1], [1, 1])
    assert np.all(np.diff(right[:, 1]) >= 0)
    assert left[:, 1].min() == pytest.approx(precision[recall > 0].min(), abs=0.05)


def test_what_is_unknown_is_an_empty_cell():
    shown = [report._number(value) for value in (None, math.nan, 1234, 0.5)]
    assert shown == ["", "", "1,234", "0.5000"]
