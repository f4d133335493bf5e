"""The page of score in a real browser: ``make browser``; SCREENSHOTS=folder keeps what it saw."""

from __future__ import annotations

import numpy as np
import pytest

from tests.browser import far_folder

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory, resvm):
    """A page of one file, of two, and of positive and unlabeled rows."""
    folder = far_folder(tmp_path_factory.mktemp("pages"))
    rng = np.random.default_rng(3)
    positive = rng.random(600) < 0.2
    (folder / "labels").write_text("".join(f"{int(one)}\n" for one in positive))
    for name, noise in (("first.pred", 0.0), ("</script><b>&second.pred", 1.0)):
        values = np.round(rng.standard_normal(600) * (1 + noise) + 1.5 * positive, 2)
        lines = [f"{1 if value > 0.5 else -1} {value!r}\n" for value in values.tolist()]
        (folder / name.replace("/", "_")).write_text("".join(lines))
    one, other = "first.pred", "<_script><b>&second.pred"
    pu = ["--pu", "--contamination-pos", "0.1", "--contamination-unl", "0.05..0.15"]
    for name, options in (
        ("one.html", [folder / one]),
        ("two.html", [one, other]),
        ("pu.html", [one, *pu]),
    ):
        options = ["score", *options, "--labels", "labels", "--html", name, "-q"]
        ran = resvm(*options, cwd=folder)
        assert ran.code == 0, ran.err
    return folder


def shown(browser, name):
    return float(
        browser.run(f"document.getElementById('live-{name}').textContent").replace(",", "")
    )


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["one", "two", "pu"])
def test_a_page_fits_the_screen_asks_for_nothing_and_complains_of_nothing(
    name, width, dark, browser, pages
):
    path = pages / f"{name}.html"
    browser.open(path, width, dark)
    browser.keep(f"{name}-{width}-{'dark' if dark else 'light'}")
    assert browser.run("document.querySelectorAll('figure svg').length") == 4
    assert browser.run("document.querySelectorAll('svg .series').length") >= 3
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.overlapping_texts() == []
    assert browser.run("document.getElementById('command').textContent").startswith("resvm score ")
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    assert [one for one in browser.requests() if not one.startswith("data:")] == [path.as_uri()]
    assert browser.complaints() == []


def test_the_slider_moves_the_numbers(browser, pages):
    browser.open(pages / "one.html", 1000)
    positive = np.loadtxt(pages / "labels") == 1
    values = np.loadtxt(pages / "first.pred")[:, 1]
    called = values > 0.5
    assert shown(browser, "tp") == (called & positive).sum()
    assert shown(browser, "fp") == (called & ~positive).sum()
    browser.run("document.getElementById('threshold').focus()")
    before = browser.run("document.querySelector('svg .dot').getAttribute('cx')")
    browser.press("ArrowRight", 25)
    least = np.unique(values)[::-1][
        int(browser.run("document.getElementById('threshold').value")) - 1
    ]
    called = values >= least
    assert shown(browser, "tp") == (called & positive).sum()
    assert shown(browser, "fn") == (~called & positive).sum()
    assert shown(browser, "tn") == (~called & ~positive).sum()
    assert shown(browser, "precision") == pytest.approx(positive[called].mean(), abs=1e-4)
    assert shown(browser, "recall") == pytest.approx(called[positive].mean(), abs=1e-4)
    assert browser.run("document.querySelector('svg .dot').getAttribute('cx')") != before
    browser.press("Home")
    assert browser.run("document.getElementById('predicted').textContent") == "nothing"
    assert shown(browser, "tp") == shown(browser, "precision") == 0
    browser.press("End")
    assert shown(browser, "recall") == 1
    assert browser.complaints() == []


def test_pointing_at_a_curve_reads_it_out(browser, pages):
    browser.open(pages / "two.html", 1280)
    box = browser.run(
        "(() => { const b = document.querySelector('figure svg').getBoundingClientRect();"
        " return [b.left + b.width / 2, b.top + b.height / 2]; })()"
    )
    browser.point(*box)
    told = browser.run("document.querySelector('.readout').innerText")
    assert "first.pred: recall 0.4" in told or "first.pred: recall 0.5" in told
    assert told.count("precision") == 2


def test_another_file_can_be_chosen_and_names_are_never_markup(browser, pages):
    browser.open(pages / "two.html", 1280)
    first = shown(browser, "tp")
    browser.run(
        "(() => { const s = document.getElementById('file'); s.value = 1;"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert shown(browser, "tp") != first
    assert browser.run("document.querySelectorAll('main b').length") == 0
    assert "<_script><b>&second.pred" in browser.run("document.body.innerText")


def test_corrected_figures_move_too(browser, pages):
    browser.open(pages / "pu.html", 1000)
    before = shown(browser, "true_recall")
    browser.run("document.getElementById('threshold').focus()")
    browser.press("ArrowRight", 40)
    assert shown(browser, "true_recall") > before
    assert "Assumption: known positives were drawn at random" in browser.run(
        "document.body.innerText"
    )
