"""Generate the reference part of the pages in docs/commands/ from the program itself.

``python docs/write_reference.py`` rewrites the text between two marks on each page; the text around
them is written by hand. Options that several commands share are explained once, on the page of
common options. With ``--check``, it writes nothing and names the stale pages.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from resvm_cli.cli.app import COMMANDS, command_line
from resvm_cli.cli.option_groups import panel_of

FOLDER = Path(__file__).parent / "commands"
BEGIN = "<!-- reference: written by docs/write_reference.py -->"
END = "<!-- end of reference -->"
MANY = 3  # an option is common if this many commands explain it in the same words


@cache
def program() -> Any:
    return command_line(COMMANDS)


def options_of(command: Any) -> list[Any]:
    """Return the options of a command that --help lists, in its order."""
    options = [one for one in command.params if one.param_type_name == "option"]
    return [one for one in options if not one.hidden and one.name != "help"]


def default_of(option: Any) -> str:
    """Return the default of an option as text, or an empty string if it is not worth showing."""
    if isinstance(option.show_default, str):
        return option.show_default
    if option.default is None or option.default is False or option.required:
        return ""
    number = isinstance(option.default, float) and option.default.is_integer()
    return str(int(option.default) if number else option.default)


def names_of(option: Any) -> list[str]:
    return sorted([*option.opts, *option.secondary_opts], key=len)  # the short option comes first


def entry(option: Any) -> str:
    """Format an option as an entry of a definition list, the same for every command."""
    if not option.help:
        raise SystemExit(f"{option.opts[-1]} has no help text")
    metavar = "" if option.is_flag else f" {option.metavar}"
    text = option.help
    if default := default_of(option):
        text += f" Default: {default}."
    if option.name == "config":
        text = re.sub(r"\[\w+\] of", "named after the command in", text)
    terms = ", ".join(f"`{name}{metavar}`" for name in names_of(option))
    return f"{terms}\n: {escaped(text)}\n"


def escaped(text: str) -> str:
    """Escape Markdown characters in a help text."""
    for sign in ("\\", "*", "_", "<", "|", "[", "]", "#"):
        text = text.replace(sign, f"\\{sign}")
    return text


@cache
def common_entries() -> frozenset[str]:
    """Return the entries that many commands share."""
    commands = program().commands.values()
    counted = Counter(entry(option) for command in commands for option in options_of(command))
    return frozenset(text for text, times in counted.items() if times >= MANY)


def sections(options: Iterable[Any]) -> list[str]:
    """Format options below the headings of --help, in its order."""
    lines: list[str] = []
    panel = None
    for option in options:
        if panel_of(option) != panel:
            panel = panel_of(option)
            lines += [f"### {panel or 'Options'}", ""]
        lines.append(entry(option))
    return lines


def common_lines(command: Any) -> list[str]:
    """Name the common options of a command, one line for each heading of --help."""
    panels: dict[str, list[str]] = {}
    for option in options_of(command):
        if entry(option) in common_entries():
            panels.setdefault(panel_of(option), []).append(f"`{', '.join(names_of(option))}`")
    lines = [f"- {panel}: {', '.join(names)}" for panel, names in panels.items()]
    return ["### Common options", "", "Explained in [Common options](options.md):", "", *lines]


def introduction(command: Any, usage: str) -> list[str]:
    """Return what --help says before the options, as Markdown, like the docstring itself."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    *description, _, examples = paragraphs  # the paragraph in between says: for example
    if not examples.startswith("- `resvm "):
        raise SystemExit(f"{usage}: its docstring does not end in a list of examples")
    lines = ["## Description", "", "\n\n".join(description), "", "```text", usage, ""]
    return [*lines, *(line.strip("- `") for line in examples.splitlines()), "```", ""]


def command_reference(command: Any, name: str) -> str:
    """Generate the reference of one command."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    usage = " ".join(["resvm", name, "[OPTIONS]", *(one.metavar for one in arguments)])
    lines = [*introduction(command, usage), "## Options", ""]
    if arguments:
        lines += ["### Arguments", ""]
        lines += [f"`{one.metavar}`\n: {escaped(one.help)}\n" for one in arguments]
    own = [one for one in options_of(command) if entry(one) not in common_entries()]
    return "\n".join([*lines, *sections(own), *common_lines(command)])


def program_reference() -> str:
    """Generate the reference of the program itself: its options and its commands."""
    lines = [*introduction(program(), "resvm [OPTIONS] COMMAND [ARGS]..."), "## Commands", ""]
    for name in COMMANDS:
        short = inspect.cleandoc(program().commands[name].help).splitlines()[0]
        lines.append(f"[`resvm {name}`]({name}.md)\n: {short}\n")
    return "\n".join([*lines, "## Options", "", *sections(options_of(program()))[2:]]).rstrip()


def common_reference() -> str:
    """Generate the entries of the common options, by the headings of --help."""
    panels: dict[str, dict[str, Any]] = {}
    for command in program().commands.values():
        for option in options_of(command):
            if entry(option) in common_entries():
                panels.setdefault(panel_of(option), {}).setdefault(entry(option), option)
    options = [option for panel in panels.values() for option in panel.values()]
    return "\n".join(sections(options)).rstrip().replace("### ", "## ")


def table_of_contents() -> str:
    """List the pages of all commands, in the order of --help."""
    entries = ["resvm", *program().commands, "options"]
    return "\n".join(["```{toctree}", ":maxdepth: 1", "", *entries, "```"])


def page_with(reference: str, page: Path) -> str:
    """Return a page with its reference replaced and the rest unchanged."""
    text = page.read_text() if page.exists() else f"# {page.stem}\n\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference}\n\n{END}{after}"


def pages() -> dict[Path, str]:
    """Return the expected text of every page."""
    references = {
        "index": table_of_contents(),
        "resvm": program_reference(),
        "options": common_reference(),
        **{name: command_reference(program().commands[name], name) for name in COMMANDS},
    }
    paths = {FOLDER / f"{name}.md": reference for name, reference in references.items()}
    return {page: page_with(reference, page) for page, reference in paths.items()}


def main() -> None:
    """Write the pages or, with --check, name the stale ones."""
    checking = sys.argv[1:] == ["--check"]
    stale = []
    for page, text in pages().items():
        if not page.exists() or page.read_text() != text:
            stale.append(page.name)
            if not checking:
                page.write_text(text)
    if checking and stale:
        raise SystemExit(f"stale: {', '.join(stale)}; run python docs/write_reference.py")


if __name__ == "__main__":
    main()
