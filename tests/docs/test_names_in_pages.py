"""Each command, option, file and function that a page names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from resvm_cli.cli.app import COMMANDS, command_line
from tests.conftest import ROOT

DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted(DOCS.rglob("*.md")),
]
FOREIGN = {  # the options of other programs that pages name alone
    *("--data-dir", "--protocol", "-O3", "-march"),  # experiments, compilers
    *("--array", "-notify", "-S", "--lifetime", "--lifetime-restart", "--nthreads", "--overcommit"),
    *("-b", "-l", "-out", "-png", "-resume", "-s", "-u", "-w1", "-y", "-log2c", "-log2g"),  # LIBSVM
}
CODE = re.compile(
    r"^```(?!pycon|python).*?\n(.*?)^```"  # a block, an indented one, and code in a line
    r"|(?<=\n\n)((?: {4}[^\n]+\n)+)"
    r"|`((?:[^`\n]|\n(?!\n))+)`",
    re.S | re.M,
)
OPTION = re.compile(r"(?<![^\s`(\[/])(--?[a-zA-Z][\w-]*)(?=[\s`,;)=/]|$)")


def options_by_command() -> dict[str, set[str]]:
    program = command_line(COMMANDS)
    return {
        name: {opt for one in command.params for opt in (*one.opts, *one.secondary_opts)}
        | {"--help", "-h"}
        for name, command in program.commands.items()
    }


OPTIONS = options_by_command()
OF_RESVM = {
    "--version",
    "--help-all",
    "--debug",
    "--help",
    "--install-completion",
    "--show-completion",
}
ANY = OF_RESVM.union(*OPTIONS.values())


def calls(text: str) -> Iterator[str]:
    """Yield each command line in a piece of code, without what comes before and after pipes."""
    text = re.sub(r"\\\n|\n> ", " ", text)
    text = re.sub(r"\s#.*", "", text)
    for line in text.splitlines():
        yield from re.split(r" \| |; | && | \|\| |\$\(| > |\bexec ", line.removeprefix("$ "))


def unknown_options(page: str, own: str = "") -> Iterator[str]:
    """Yield the options in the code of a page that its commands do not have.

    An option that stands alone must be one of some command or, on the page of a command (``own``),
    of that command.
    """
    for block, indented, span in CODE.findall(page):
        for call in calls(block or indented or span):
            named = re.match(rf"(?:resvm )?({'|'.join(COMMANDS)})(?= |$)", call.strip())
            if named:
                known = OPTIONS[named[1]]
            elif span and call.startswith("-"):
                known = (OPTIONS[own] if own else ANY) | FOREIGN
            elif call.strip().startswith("resvm -"):
                known = OF_RESVM
            else:
                continue
            names = (name for name in OPTION.findall(call) if not re.fullmatch(r"-\d.*", name))
            yield from (f"{call.strip()}: {name}" for name in names if name not in known)


def unknown_commands(page: str) -> Iterator[str]:
    """Yield the words after ``resvm`` in code that are neither commands nor options."""
    for parts in CODE.findall(page):
        for call in calls("".join(parts)):
            if found := re.match(r"\s*resvm ([a-z]+)\b", call):
                yield from [call] * (found[1] not in COMMANDS)


def test_unknown_options_and_commands_are_found():
    page = "`resvm train --nothing`, `rank --audit --resume`, `--never`, `-P`, `resvm fly`\n"
    page += "```sh\nzcat a | resvm predict m --top 3 | head -n 1\n```\n\n"
    page += "    resvm merge p --scale none\n"
    found = [line.rpartition(" ")[2] for line in unknown_options(page)]
    assert found == ["--nothing", "--resume", "--never", "--top", "--scale"]
    assert list(unknown_options("`--audit`", "predict")) == ["--audit: --audit"]
    assert list(unknown_commands(page)) == ["resvm fly"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_and_option_in_a_page_exists(page: Path):
    text = page.read_text()
    if page.name == "coming-from.md":  # the first column has the options of other programs
        text = re.sub(r"^\| .+? \| ", "| ", text, flags=re.M)
    own = page.stem if page.parent.name == "commands" and page.stem in COMMANDS else ""
    assert list(unknown_options(text, own)) == []
    assert list(unknown_commands(text)) == []


MAP = DOCS / "architecture.md"
HOP = re.compile(r"^ {4,}(\S+\.(?:py|c|h)) +(\w+(?:, \w+)*)(?:  |$)", re.M)
FILE = re.compile(r"`((?:\w+/)*\w+\.(?:py|c|h|js|sh))`")


def missing_files(text: str) -> list[str]:
    """Return the source files that a page names and that do not exist."""
    names = [*FILE.findall(text), *(name for name, _ in HOP.findall(text))]
    folders = (ROOT, ROOT / "resvm_cli", ROOT / "tests", ROOT / "experiments", DOCS)
    return [name for name in names if not any((folder / name).exists() for folder in folders)]


def missing_functions(text: str) -> list[str]:
    """Return the functions and classes of a page's walks that their files do not define."""
    missing = []
    for name, functions in HOP.findall(text):
        path = ROOT / "resvm_cli" / name
        code = path.read_text() if path.exists() else ""
        for one in functions.split(", "):
            if not re.search(rf"^\s*(?:def|class) {one}\b", code, re.M):
                missing.append(f"{name}: {one}")
    return missing


def test_missing_files_and_functions_are_found():
    text = "`no/such.py` and `errors.py`\n\n    cli/app.py  run_everything  starts\n"
    assert missing_files(text) == ["no/such.py"]
    assert missing_functions(text) == ["cli/app.py: run_everything"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_source_file_in_a_page_exists(page: Path):
    text = page.read_text()
    allowed = {"commands/NAME.py", "submit.sh", "runner.py", "jobs.py"}  # to be written
    allowed |= {"resvm.py", "grid.py", "subset.py"}  # of other programs
    assert set(missing_files(text)) - allowed == set()


def test_every_function_and_folder_in_the_map_exists():
    text = MAP.read_text()
    assert len(HOP.findall(text)) > 20
    assert missing_functions(text) == []
    folders = {path.parent.name for path in (ROOT / "resvm_cli").glob("*/*.py")}
    named = set(re.findall(r"^\| `(\w+)/` \|", text, re.M))
    assert named == folders
