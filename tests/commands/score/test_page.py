"""The page as text: whole, self-contained, and with the counts the slider shows."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from resvm_cli.commands.score import page as score_page
from resvm_cli.commands.score.score import score
from resvm_cli.commands.score.scored_rows import ScoreRequest
from resvm_cli.commands.score.summary import Known, Settings
from resvm_cli.metrics import curves
from resvm_cli.report import html
from resvm_cli.running.run import Run


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
        settings=Settings(n_replicates=50),
        drawings=True,
        **options,
    )
    page = score_page.render(score(request, Run())).decode()
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
        called = values >= np.sort(values)[::-1][place]
        assert one["tp"][place] == (called & positive).sum()
        assert one["fp"][place] == (called & ~positive).sum()
    assert sum(one["histogram"]["positive"]) == positive.sum()


def test_contaminated_sets_get_corrected_curves_and_their_assumptions(tmp_path, monkeypatch):
    _, data, _, _ = made(tmp_path, monkeypatch, pu=True, known=Known((0.1, 0.1), (0.1, 0.2)))
    (one,) = data["files"]
    assert len(one["corrected"]["tpr"]) == len(one["corrected"]["precision"])
    assert data["chance"] == pytest.approx(0.15)
    assert len(data["assumptions"]) == 3
    names = [name for name, _, _ in data["rows"]]
    assert "corrected_average_precision" in names
    assert "average_precision" not in one["figures"]


def test_text_cannot_end_the_data(tmp_path):
    page = html.page("<title>", "report/score.js", {"x": "</script><!--\u2028"}).decode()
    assert "<title>&lt;title&gt;</title>" in page
    assert page.count("</script>") == 2
    assert "<!--" not in page
