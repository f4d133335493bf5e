"""The page of a benchmark in a real browser: ``make browser``."""

from __future__ import annotations

import pytest

from tests import fake_benchmark as fake
from tests.browser import far_folder

pytestmark = pytest.mark.browser
FIRST = "document.querySelector('#section-3 table')"


@pytest.fixture(scope="module")
def pages(tmp_path_factory, resvm):
    folder = far_folder(tmp_path_factory.mktemp("pages"))
    lines = fake.results()
    fake.write(folder / "paper", lines, fake.plan(), fake.times_of(lines, 30.0))
    quick = fake.results(seed=2, protocol="fast", curves=False)
    fake.write(folder / "fast", quick, None, fake.times_of(quick, 2.0))
    own = [{**line, "task": "</script><b>&mine"} for line in fake.own_results([0.0, 0.2, 0.4])]
    fake.write(folder / "own", own)
    for name, runs in (("paper", ["paper"]), ("two", ["paper", "fast"]), ("own", ["own"])):
        ran = resvm(
            "benchmark",
            "report",
            *(folder / run for run in runs),
            "--html",
            f"{name}.html",
            "-q",
            cwd=folder,
        )
        assert ran.code == 0, ran.err
    return folder


@pytest.mark.parametrize("name", ["paper", "two", "own"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_is_drawn_without_a_complaint_or_a_request(browser, pages, name, width, dark):
    browser.open(pages / f"{name}.html", width, dark)
    browser.keep(f"benchmark-{name}-{width}")
    assert browser.complaints() == []
    assert browser.requests() == [(pages / f"{name}.html").as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('table tbody tr').length") > 10


def test_every_figure_is_drawn_inside_its_frame(browser, pages):
    browser.open(pages / "paper.html", 1280)
    # three settings of intervals, six diagrams, three sets of curves
    assert browser.run("document.querySelectorAll('figure').length") == 12
    assert browser.run("document.querySelectorAll('figure > svg').length") == 12
    assert browser.run("document.querySelectorAll('figure.wide rect.published').length") > 100
    assert browser.run(
        "[...document.querySelectorAll('figure > svg')].every((svg) => {"
        " const box = svg.viewBox.baseVal;"
        " return [...svg.querySelectorAll('circle, text, line')].every((one) => {"
        "  const own = one.getBBox(), turn = one.getAttribute('transform');"
        "  return turn || one.getAttribute('visibility') === 'hidden' || (own.x >= box.x - 1 &&"
        "   own.x + own.width <= box.width + 1 && own.y >= -1 &&"
        "   own.y + own.height <= box.height + 1);"
        " }); })"
    )
    assert "NaN" not in browser.run("document.getElementById('page').innerHTML")


def test_a_click_sorts_a_table_and_another_reverses_it(browser, pages):
    browser.open(pages / "paper.html", 1280)
    column = f"[...{FIRST}.querySelectorAll('tbody tr')].map((row) => row.cells[8].textContent)"
    before = browser.run(column)
    browser.run(f"{FIRST}.querySelectorAll('th button')[8].click()")
    down = [float(text.split()[0]) for text in browser.run(column) if text]
    assert down == sorted(down, reverse=True)
    assert browser.run(column)[-1] == ""  # rows without a value come last
    browser.run(f"{FIRST}.querySelectorAll('th button')[8].click()")
    up = [float(text.split()[0]) for text in browser.run(column) if text]
    assert up == sorted(up)
    assert sorted(before) == sorted(browser.run(column))
    assert (
        browser.run(f"{FIRST}.querySelectorAll('th')[8].getAttribute('aria-sort')") == "ascending"
    )


def test_the_contamination_curve_is_read_under_the_pointer(browser, pages):
    browser.open(pages / "own.html", 1280)
    assert browser.run("document.querySelectorAll('path.series').length") == 3
    assert browser.run("document.querySelectorAll('b').length") == 0
    place = browser.run(
        "(() => { const box = document.querySelector('figure > svg').getBoundingClientRect();"
        " return [box.left + box.width / 2, box.top + box.height / 2]; })()"
    )
    browser.point(*place)
    assert "at 20 %" in browser.run("document.querySelector('.readout').textContent")
