"""What the README and the pages of docs/ show is what happens."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from resvm_cli.cli.app import COMMANDS
from tests.conftest import ROOT, SAMPLE
from tests.programs import SCRIPT_PATH, run

README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"```console\n(.*?)```", re.S)
COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n?", re.M)  # lines that go on begin with >
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
# outputs are read to the last digits that every machine agrees on
TOLERANCE = 1e-6


def sessions(page: Path) -> list[tuple[str, str]]:
    """(command, output shown) of every console block, in order."""
    found = []
    for block in BLOCK.findall(page.read_text()):
        _, *parts = COMMAND.split(block)
        for command, shown in zip(parts[::2], parts[1::2], strict=True):
            found.append((command.replace("\n> ", "\n"), shown))
    return found


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


SESSIONS = {name_of(page): sessions(page) for page in PAGES if sessions(page)}


def test_blocks_are_cut_into_commands_and_what_they_print(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ a\nx\n$ for\n>   b\n> done\n$ c\n$ d\ny\nz\n```\n")
    found = [("a", "x\n"), ("for\n  b\ndone", ""), ("c", ""), ("d", "y\nz\n")]
    assert sessions(page) == found


@pytest.mark.parametrize("page", SESSIONS)
def test_every_command_of_a_page_prints_what_is_shown(page, tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "sample_data")
    for command, shown in SESSIONS[page]:
        assert_prints(shown, command, tmp_path)


def assert_prints(shown, command, folder):
    ran = run(["sh", "-ec", f"exec 2>&1\n{command}"], cwd=folder, env={"PATH": SCRIPT_PATH})
    printed = ran.out.decode()
    assert ran.code == 0, f"{command}\n{printed}"
    printed = re.sub(r"^resvm: (?!error).*\n", "", printed, flags=re.M)  # of a busy machine
    # versions and times are those of the machine; other numbers may differ in their last digits
    printed, shown = (re.sub("versions .*|in [0-9.]+ s,", "", text) for text in (printed, shown))
    assert NUMBER.sub("0", printed) == NUMBER.sub("0", shown), command
    assert [float(n) for n in NUMBER.findall(printed)] == pytest.approx(
        [float(n) for n in NUMBER.findall(shown)], rel=TOLERANCE
    ), command


def test_pages_that_are_followed_one_after_another_train_models_of_different_names():
    pages = [page for page in SESSIONS if re.search(r"README|/tutorial-|/howto-", page)]
    assert len(pages) > 5
    models: dict[str, str] = {}
    for page in pages:
        lines = [command for command, _ in SESSIONS[page] if command.startswith("resvm train ")]
        for name in {found[1] for line in lines if (found := re.search(r" -o (\S+)", line))}:
            assert models.setdefault(name, page) == page, name


def test_the_sessions_cover_every_command():
    lines = [command for shown in SESSIONS.values() for command, _ in shown]
    used = {word for line in lines for word in re.findall(r"resvm ([a-z]+)", line)}
    assert set(COMMANDS) <= used


def test_the_reference_is_what_the_commands_say():
    ran = run([sys.executable, DOCS / "write_reference.py", "--check"], cwd=ROOT)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_documented_and_every_help_has_an_example(command, resvm):
    page = (DOCS / "commands" / f"{command}.md").read_text()
    assert page.startswith(f"# resvm {command}\n\n## Example\n\n```console\n")
    page += (DOCS / "commands" / "options.md").read_text()
    shown = resvm(command, "--help-all").out.decode()
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", shown)) - {"--help"}
    assert {option for option in options if option not in page} == set()
    assert re.search(rf"• .*resvm {command} ", shown)
    assert "<str>" not in shown  # the type of an argument, which typer would add


def test_make_targets_named_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:`|^    )make ([a-z]+)", README.read_text(), re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_readme_is_short_and_its_picture_small():
    assert len(README.read_text().splitlines()) <= 130
    assert (DOCS / "ranking-page.png").stat().st_size < 300_000


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_that_are_there(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def test_every_page_is_in_a_table_of_contents():
    index = (DOCS / "index.md").read_text() + (DOCS / "commands" / "index.md").read_text()
    listed = {
        entry
        for block in re.findall(r"```{toctree}\n(.*?)```", index, re.S)
        for entry in re.findall(r"^(?:.* <)?([a-z][\w/-]*)>?$", block, re.M)
    }
    pages = {page.stem for page in PAGES if page not in (README, DOCS / "index.md")}
    assert pages - listed - {"index", "report"} == set()  # the latter below reproduction


def test_no_machine_path_is_written_anywhere():
    tracked = run(["git", "ls-files"], cwd=ROOT).out.decode().split()
    for name in tracked:
        path = Path(ROOT / name)
        if path.suffix in (".py", ".md", ".toml", ".c", ".sh", "") and path.is_file():
            text = path.read_text(errors="replace")
            assert not re.search(r"/(home|root|Users|work)/", text.replace("(home|root|", "")), name
