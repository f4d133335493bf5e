"""The page of rank in a real browser: ``make browser``."""

from __future__ import annotations

import csv
import io
import re
import shutil

import numpy as np
import pytest

from tests.browser import find, look
from tests.conftest import SAMPLE, write_svm

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find() is None, reason="no browser on the PATH"),
]
CHARTS = "document.querySelectorAll('figure svg')"
# pairs of labels that overlap by more than a pixel, and labels beyond the edge of their chart
OVERLAPS = f"""[...{CHARTS}].flatMap((svg) => {{
  const edge = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map(
    (one) => [one.textContent, one.getBoundingClientRect()]);
  const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const pairs = texts.flatMap(([name, box], i) => texts.slice(i + 1)
    .filter(([, other]) => over(box, other)).map(([second]) => `${{name}} | ${{second}}`));
  const cut = texts.filter(([, box]) => box.left < edge.left - 1 || box.right > edge.right + 1);
  return [...pairs, ...cut.map(([name]) => `${{name}} is cut`)];
}})"""
PAYMENTS = SAMPLE / "payments" / "payments.csv"
TEXT = "document.getElementById('list').innerText"


@pytest.fixture(scope="module")
def pages(tmp_path_factory, resvm):
    """Pages of U, of an audit, of bagging, and of a large U; their tables."""
    folder = tmp_path_factory.mktemp("pages") / ("deep" * 25)  # a long name, which pages must wrap
    folder.mkdir()
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
    payments = ("--data", PAYMENTS, "--label-column", "status", "--positive-label", "fraud")
    for name, options in (
        ("list", digits),
        ("audit", (*digits, "--audit", "--contamination-pos", 0.1)),
        ("bagging", (*digits, "--model", folder / "m")),
        ("large", large),
        ("table", (*payments, "--show", "merchant,hour", "--no-auto")),
    ):
        ran = resvm("rank", *options, "-q", "--html", folder / f"{name}.html")
        assert ran.code == 0, ran.err
        (folder / f"{name}.tsv").write_bytes(ran.out)
    return folder


@pytest.fixture
def seen(pages, tmp_path):
    """Return what steps find on a page that logs nothing."""

    def look_at(name, *steps, **screen):
        values, logged = look(pages / f"{name}.html", *steps, folder=tmp_path, **screen)
        assert logged == []
        return values

    return look_at


def written(pages, name):
    text = (pages / f"{name}.tsv").read_text()
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def cells(place):
    """The texts of one column of the list, as shown."""
    rows = "[...document.querySelectorAll('#list tbody tr')]"
    return f"{rows}.map((row) => row.cells[{place}].textContent)"


def click(label):
    buttons = "[...document.querySelectorAll('#list button')]"
    return f"{buttons}.find((one) => one.textContent === '{label}').click()"


def enter(name, value, event):
    """Set the value of an element as a user does."""
    found = f"document.getElementById('{name}')"
    return f"({found}.value = '{value}', {found}.dispatchEvent(new Event('{event}')))"


def search(text):
    return enter("list-search", text, "input")


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1280, True)])
@pytest.mark.parametrize("name", ["list", "audit", "bagging", "large"])
def test_a_page_fits_the_screen_asks_for_nothing_and_complains_of_nothing(name, width, dark, seen):
    fits = "document.documentElement.scrollWidth <= window.innerWidth"
    asked = "window.performance.getEntriesByType('resource').map((one) => one.name)"
    is_dark = "window.matchMedia('(prefers-color-scheme: dark)').matches"
    found = seen(name, f"{CHARTS}.length", fits, asked, OVERLAPS, is_dark, width=width, dark=dark)
    assert found == [0 if name == "bagging" else 2, True, [], [], dark]


def test_the_expected_share_of_positives_has_its_unit(seen):
    pairs = "[...document.querySelectorAll('.summary dt')].map("
    (summary,) = seen("list", pairs + "(one) => [one.textContent, one.nextSibling.textContent])")
    told = dict(summary)
    assert re.fullmatch(r"\d+% \(\d+ to \d+\) of U, if P .*", told["positives"])
    assert told["ranked"] == "700 rows of U, scored out of bag"


def test_what_each_fraction_of_u_implies_is_shown_as_bars(seen):
    told = "[...document.querySelectorAll('.summary dd')].map((one) => one.textContent)"
    cells = "[...document.querySelectorAll('.cases td')]"
    widths = "[...one.querySelectorAll('rect')].map((part) => part.getBoundingClientRect().width)"
    lines, texts, bars = seen(
        "list",
        f"{told}.filter((text) => text.startsWith('if '))",
        f"{cells}.map((one) => one.textContent)",
        f"{cells}.map((one) => {widths})",
    )
    number = r"([\d.]+)(?: of \d+)? \((\d+) to (\d+)\)"
    shown = [[float(part) for part in re.findall(r"[\d.]+", text)] for text in texts]
    summary = [found for line in lines for found in re.findall(number, line)]
    assert len(shown) == len(bars) == 3 * len(lines)
    assert [[round(value), *rest] for value, *rest in shown] == [[*map(float, s)] for s in summary]
    for (value, low, high), length, (whole, expected, bounds) in zip(
        shown, len(lines) * [10, 50, 100], bars, strict=True
    ):
        assert expected / whole == pytest.approx(value / length, abs=0.01)
        assert bounds / whole == pytest.approx(max((high - low) / length, 0.01), abs=0.01)


@pytest.mark.parametrize("name", ["list", "audit", "bagging"])
def test_every_column_is_explained(name, seen):
    (titles,) = seen(name, "[...document.querySelectorAll('th button')].map((one) => one.title)")
    assert titles
    assert all(title.endswith(".") for title in titles)


@pytest.mark.parametrize("name", ["list", "audit"])
def test_ticks_of_the_histogram_are_round(name, seen):
    labels = f"[...{CHARTS}[0].querySelectorAll('text[text-anchor=middle]')]"
    (texts,) = seen(name, f"{labels}.map((one) => one.textContent)")
    ticks = [float(one) for one in texts if re.fullmatch(r"-?[\d.]+", one)]
    assert len(ticks) >= 2
    assert all(float(f"{tick:.1e}") == tick for tick in ticks)
    assert 0 in ticks or min(ticks) > 0 or max(ticks) < 0


def test_columns_of_the_input_are_shown_searched_and_sorted(seen, pages):
    with open(PAYMENTS) as file:
        table = {str(number): row for number, row in enumerate(csv.DictReader(file), 1)}
    rows = [table[row["id"]] for row in written(pages, "table")]
    heads = "[...document.querySelectorAll('#list th')].map((one) => one.textContent)"
    steps = (heads, cells(3), cells(4), click("hour"), cells(4), search("ravel"), cells(3))
    found, merchants, hours, _, least, _, travel = seen("table", *steps)
    assert found[:5] == ["rank", "id", "decision value", "merchant", "hour"]
    assert merchants == [row["merchant"] for row in rows[:50]]
    assert hours == [row["hour"] for row in rows[:50]]
    assert [*map(float, least)] == sorted((float(row["hour"]) for row in rows), reverse=True)[:50]
    assert set(travel) == {"travel"}


def test_terms_of_the_page_are_explained_below(seen):
    terms = "[...document.querySelectorAll('#terms dt')].map((one) => one.textContent)"
    found, bagging = *seen("list", terms), *seen("bagging", terms)
    assert {"out of bag", "votes", "probability", "expected positive so far"} <= set(found)
    assert "probability" not in bagging


def test_rows_are_shown_page_by_page(seen, pages):
    ids = [row["id"] for row in written(pages, "list")]
    turns = (word for label in ("Next", "Last", "First") for word in (click(label), cells(1)))
    first, _, second, _, last, _, again, text = seen("list", cells(1), *turns, TEXT)
    assert (first, second, last, again) == (ids[:50], ids[50:100], ids[650:], ids[:50])
    assert "1 to 50 of 700" in text


def test_columns_sort_up_and_down(seen, pages):
    rows = written(pages, "list")
    sorts = "[...document.querySelectorAll('#list th')].map((one) => one.ariaSort)"
    members, by_id = click("members"), click("id")
    steps = (members, cells(1), members, cells(1), sorts, by_id, cells(1))
    _, most, _, least, sorted_by, _, names = seen("list", *steps)
    for found, sign in ((most, -1), (least, 1)):
        expected = sorted(rows, key=lambda row: (sign * int(row["members"]), int(row["rank"])))
        assert found == [row["id"] for row in expected[:50]]
    assert sorted_by.count("ascending") == 1
    numbers = sorted(int(row["id"].partition("-")[2]) for row in rows)
    assert [int(name.partition("-")[2]) for name in names] == numbers[:50]


def test_searching_finds_parts_of_ids(seen, pages):
    steps = (search("IMAGE-118"), cells(1), search("nothing like it"), cells(1), TEXT)
    _, found, _, nothing, text = seen("list", *steps)
    assert found == [row["id"] for row in written(pages, "list") if "image-118" in row["id"]]
    assert nothing == []
    assert "no row matches" in text


def test_suspects_are_marked_and_can_be_listed_alone(seen, pages):
    marked = "[...document.querySelectorAll('#list tr.suspect')]"
    steps = (f"{marked}.map((row) => row.cells[1].textContent)", enter("list-which", 2, "change"))
    suspects, _, alone = seen("audit", *steps, cells(1))
    assert suspects == [row["id"] for row in written(pages, "audit")[:5]]
    assert set(alone) == set(suspects)


def test_a_large_list_opens_and_holds_only_what_is_in_view(seen):
    rows = "document.querySelectorAll('#list tbody tr').length"
    steps = (rows, TEXT, "document.querySelectorAll('#list td b').length", search("row 99999"))
    n_rows, text, n_bold, _, found, _ = seen("large", *steps, cells(1), click("decision value"))
    assert (n_rows, n_bold, found) == (50, 0, ["<b>&row 99999"])
    assert "of 100,000" in text


def test_the_top_can_be_looked_at_closer(seen):
    chart = f"{CHARTS}[1].innerHTML"
    point = (
        f"((svg, box) => svg.dispatchEvent(new PointerEvent('pointermove', {{bubbles: true,"
        " clientX: box.left + box.width / 2, clientY: box.top + box.height / 2})))"
        f"({CHARTS}[1], {CHARTS}[1].getBoundingClientRect())"
    )
    readout = "document.querySelectorAll('.readout')[1].innerText"
    before, _, after, _, text = seen(
        "large", chart, enter("depth", 0.1, "change"), chart, point, readout
    )
    assert before != after
    assert "of the known positives" in text
