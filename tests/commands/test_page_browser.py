"""The page of rank in a real browser: ``make browser``; SCREENSHOTS=folder keeps what it saw."""

from __future__ import annotations

import csv
import io
import re
import shutil

import numpy as np
import pytest

from tests.browser import far_folder
from tests.conftest import SAMPLE, write_svm

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory, resvm):
    """Pages of U, of an audit, of bagging, and of a large U; their tables."""
    folder = far_folder(tmp_path_factory.mktemp("pages"))
    for name in ("pos.svm", "unl.svm"):
        shutil.copy(SAMPLE / "digits" / name, folder)
    digits = ("-P", folder / "pos.svm", "-U", folder / "unl.svm")
    rng = np.random.default_rng(0)
    names = [f"<b>&row {number}" for number in range(100_000)]
    write_svm(folder / "p.svm", rng.standard_normal((30, 2)) + 1)
    write_svm(folder / "u.svm", rng.standard_normal((100_000, 2)), comments=names)
    large = ("-P", folder / "p.svm", "-U", folder / "u.svm", "--no-auto")
    train = ("train", *digits, "--no-auto", "--method", "bagging", "-q", "-o", folder / "m")
    assert resvm(*train).code == 0
    for name, options in (
        ("list", digits),
        ("audit", (*digits, "--audit", "--contamination-pos", 0.1)),
        ("bagging", (*digits, "--model", folder / "m")),
        ("large", large),
    ):
        ran = resvm("rank", *options, "-q", "--html", folder / f"{name}.html")
        assert ran.code == 0, ran.err
        (folder / f"{name}.tsv").write_bytes(ran.out)
    return folder


def written(pages, name):
    text = (pages / f"{name}.tsv").read_text()
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def cells(browser, name, place):
    """The texts of one column of a table, as shown."""
    return browser.run(
        f"[...document.querySelectorAll('#{name} tbody tr')].map("
        f"(row) => row.cells[{place}].textContent)"
    )


def click(browser, name, label):
    browser.run(
        f"[...document.querySelectorAll('#{name} button')].find("
        f"(one) => one.textContent === '{label}').click()"
    )


def search(browser, name, text):
    browser.run(
        f"(() => {{ const s = document.getElementById('{name}-search'); s.value = '{text}';"
        " s.dispatchEvent(new Event('input')); })()"
    )
    browser.call(
        "Runtime.evaluate",
        expression="new Promise((done) => setTimeout(done, 400))",
        awaitPromise=True,
    )


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["list", "audit", "bagging", "large"])
def test_a_page_fits_the_screen_asks_for_nothing_and_complains_of_nothing(
    name, width, dark, browser, pages
):
    path = pages / f"{name}.html"
    browser.open(path, width, dark)
    browser.keep(f"rank-{name}-{width}-{'dark' if dark else 'light'}")
    charts = browser.run("document.querySelectorAll('figure svg').length")
    assert charts == (0 if name == "bagging" else 2)
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.overlapping_texts() == []
    assert [one for one in browser.requests() if not one.startswith("data:")] == [path.as_uri()]
    assert browser.complaints() == []


def test_the_expected_share_of_positives_has_its_unit(browser, pages):
    browser.open(pages / "list.html", 1280)
    summary = browser.run(
        "Object.fromEntries([...document.querySelectorAll('.summary dt')].map("
        "(one) => [one.textContent, one.nextSibling.textContent]))"
    )
    assert re.fullmatch(r"\d+% \(\d+ to \d+\) of U, estimated", summary["positives"])
    assert summary["ranked"] == "700 rows of U, scored out of bag"


@pytest.mark.parametrize("name", ["list", "audit", "bagging"])
def test_every_column_is_explained(name, browser, pages):
    browser.open(pages / f"{name}.html", 1280)
    titles = browser.run("[...document.querySelectorAll('th button')].map((one) => one.title)")
    assert titles
    assert all(title.endswith(".") for title in titles)


@pytest.mark.parametrize("name", ["list", "audit"])
def test_ticks_of_the_histogram_are_round(name, browser, pages):
    browser.open(pages / f"{name}.html", 1280)
    labels = browser.run(
        "[...document.querySelector('figure svg').querySelectorAll('text[text-anchor=middle]')]"
        ".map((one) => one.textContent)"
    )
    ticks = [float(one) for one in labels if re.fullmatch(r"-?[\d.]+", one)]
    assert len(ticks) >= 2
    for tick in ticks:
        assert float(f"{tick:.1e}") == tick
    assert any(tick == 0 for tick in ticks) or min(ticks) > 0 or max(ticks) < 0


def test_rows_are_shown_page_by_page(browser, pages):
    rows = written(pages, "list")
    browser.open(pages / "list.html", 1280)
    assert cells(browser, "list", 1) == [row["id"] for row in rows[:50]]
    click(browser, "list", "Next")
    assert cells(browser, "list", 1) == [row["id"] for row in rows[50:100]]
    click(browser, "list", "Last")
    assert cells(browser, "list", 1) == [row["id"] for row in rows[650:]]
    assert "651 to 700 of 700" in browser.run("document.getElementById('list').innerText")
    click(browser, "list", "First")
    assert cells(browser, "list", 0)[0] == "1"


def test_columns_sort_up_and_down(browser, pages):
    rows = written(pages, "list")
    browser.open(pages / "list.html", 1280)
    click(browser, "list", "members")
    most = sorted(rows, key=lambda row: (-int(row["members"]), int(row["rank"])))
    assert cells(browser, "list", 1) == [row["id"] for row in most[:50]]
    click(browser, "list", "members")
    least = sorted(rows, key=lambda row: (int(row["members"]), int(row["rank"])))
    assert cells(browser, "list", 1) == [row["id"] for row in least[:50]]
    sorts = "[...document.querySelectorAll('#list th')].map((one) => one.ariaSort)"
    assert browser.run(sorts).count("ascending") == 1
    click(browser, "list", "id")
    numbers = [int(name.partition("-")[2]) for name in cells(browser, "list", 1)]
    assert numbers == sorted(int(row["id"].partition("-")[2]) for row in rows)[:50]


def test_searching_finds_parts_of_ids(browser, pages):
    rows = written(pages, "list")
    browser.open(pages / "list.html", 1280)
    search(browser, "list", "IMAGE-118")
    expected = [row["id"] for row in rows if "image-118" in row["id"]]
    assert cells(browser, "list", 1) == expected
    search(browser, "list", "nothing like it")
    assert cells(browser, "list", 1) == []
    assert "no row matches" in browser.run("document.getElementById('list').innerText")


def test_suspects_are_marked_and_can_be_listed_alone(browser, pages):
    rows = written(pages, "audit")
    browser.open(pages / "audit.html", 1280)
    marked = browser.run(
        "[...document.querySelectorAll('#list tr.suspect')].map((row) => row.cells[1].textContent)"
    )
    assert marked == [row["id"] for row in rows[:5]]
    browser.run(
        "(() => { const s = document.getElementById('list-which'); s.value = '2';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert set(cells(browser, "list", 1)) == set(marked)


def test_a_large_list_opens_and_holds_only_what_is_in_view(browser, pages):
    browser.open(pages / "large.html", 1280)
    assert browser.run("document.querySelectorAll('#list tbody tr').length") == 50
    assert "of 100,000" in browser.run("document.getElementById('list').innerText")
    assert browser.run("document.querySelectorAll('#list td b').length") == 0
    search(browser, "list", "row 99999")
    assert cells(browser, "list", 1) == ["<b>&row 99999"]
    click(browser, "list", "decision value")
    assert browser.complaints() == []


def test_the_top_can_be_looked_at_closer(browser, pages):
    browser.open(pages / "large.html", 1280)
    before = browser.run("document.querySelectorAll('figure svg')[1].innerHTML")
    browser.run(
        "(() => { const s = document.getElementById('depth'); s.value = '0.1';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert browser.run("document.querySelectorAll('figure svg')[1].innerHTML") != before
    box = browser.run(
        "(() => { const b = document.querySelectorAll('figure svg')[1].getBoundingClientRect();"
        " return [b.left + b.width / 2, b.top + b.height / 2]; })()"
    )
    browser.point(*box)
    assert "of the known positives" in browser.run(
        "document.querySelectorAll('.readout')[1].innerText"
    )
