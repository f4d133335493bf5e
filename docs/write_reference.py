"""Generate the reference part of the pages in docs/commands/ from the program itself.

``python docs/write_reference.py`` rewrites the text between two marks on each page; the text below
them is written by hand. The tables of docs/json.md come from the JSON Schema files. With
``--check``, it writes nothing and names the stale pages.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import json_reference

from resvm_cli.cli import COMMANDS, command_line
from resvm_cli.options.option_groups import panel_of

FOLDER = Path(__file__).parent / "commands"
BEGIN = "<!-- reference: written by docs/write_reference.py -->"
END = "<!-- end of reference -->"


def introduction(command: Any, usage: str) -> list[str]:
    """Return what --help says before the options, as Markdown, like the docstring itself."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    *description, _, examples = paragraphs  # the paragraph in between says: for example
    if not examples.startswith("- `resvm "):
        raise SystemExit(f"{usage}: its docstring does not end in a list of examples")
    lines = ["## Synopsis", "", "```text", usage, "```", "", "## Description", ""]
    lines += ["\n\n".join(description), "", "## Examples", "", "```sh"]
    return [*lines, *(line.strip("- `") for line in examples.splitlines()), "```", ""]


def default_of(option: Any) -> str:
    """Return the default of an option as text, or an empty string if it is not worth showing."""
    if isinstance(option.show_default, str):
        return option.show_default
    if option.default is None or option.default is False or option.required:
        return ""
    number = isinstance(option.default, float) and option.default.is_integer()
    return str(int(option.default) if number else option.default)


def option_lines(option: Any) -> list[str]:
    """Format an option as an entry of a definition list."""
    if not option.help:
        raise SystemExit(f"{option.opts[-1]} has no help text")
    metavar = "" if option.is_flag else f" {option.metavar}"
    names = [*option.opts, *option.secondary_opts]
    names.sort(key=len)  # the short option comes first
    lines = [", ".join(f"`{name}{metavar}`" for name in names)]
    text = option.help
    if default := default_of(option):
        text += f" Default: {default}."
    return [*lines, f": {escaped(text)}", ""]


def escaped(text: str) -> str:
    """Escape Markdown characters in a help text."""
    for sign in ("\\", "*", "_", "<", "|", "[", "]", "#"):
        text = text.replace(sign, f"\\{sign}")
    return text


def option_sections(command: Any) -> list[str]:
    """Format all options, in the panels and the order of --help."""
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    lines: list[str] = []
    panel = None
    for option in options:
        if panel_of(option) != panel:
            panel = panel_of(option)
            lines += [f"### {panel or 'Options'}", ""]
        lines += option_lines(option)
    return lines


def usage_of(command: Any, path: str) -> str:
    words = [path, "[OPTIONS]"]
    for one in command.params:
        if one.param_type_name == "argument":
            words.append(one.metavar or one.name.upper())
    return " ".join(words)


def argument_lines(command: Any) -> list[str]:
    lines: list[str] = []
    for one in command.params:
        if one.param_type_name == "argument":
            lines += [f"`{one.metavar}`", f": {escaped(one.help)}", ""]
    return ["### Arguments", "", *lines] if lines else []


def command_reference(command: Any, name: str) -> str:
    """Generate the reference of one command."""
    lines = [
        *introduction(command, usage_of(command, f"resvm {name}")),
        "## Options",
        "",
        *argument_lines(command),
        *option_sections(command),
    ]
    return "\n".join(lines).rstrip()


def family_reference(family: Any, name: str) -> str:
    """Generate the reference of a command with subcommands, one after the other."""
    parts = ["\n".join(introduction(family, f"resvm {name} COMMAND [ARGS]...")).rstrip()]
    for own, command in family.commands.items():
        text = command_reference(command, f"{name} {own}")
        lines = [f"#{line}" if line.startswith("##") else line for line in text.splitlines()]
        parts += [f"## resvm {name} {own}", "\n".join(lines)]
    return "\n\n".join(parts)


def program_reference(program: Any) -> str:
    """Generate the reference of the program itself: its options and its commands."""
    lines = [*introduction(program, "resvm [OPTIONS] COMMAND [ARGS]..."), "## Commands", ""]
    for name in COMMANDS:
        short = inspect.cleandoc(program.commands[name].help).splitlines()[0]
        lines += [f"[`resvm {name}`]({name}.md)", f": {short}", ""]
    lines += ["## Options", "", *option_sections(program)[2:]]
    return "\n".join(lines).rstrip()


def table_of_contents(program: Any) -> str:
    """List the pages of all commands, in the order of --help."""
    return "\n".join(["```{toctree}", ":maxdepth: 1", "", "resvm", *program.commands, "```"])


def page_with(reference: str, page: Path, title: str) -> str:
    """Return a page with its reference replaced and the rest unchanged."""
    text = page.read_text() if page.exists() else f"# {title}\n\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference}\n\n{END}{after}"


def pages() -> dict[Path, str]:
    """Return the expected text of every page."""
    program = command_line(COMMANDS)
    program.params[:] = [one for one in program.params if one.name != "help"]
    written = {FOLDER / "index.md": page_with(table_of_contents(program), FOLDER / "index.md", "")}
    own = FOLDER / "resvm.md"
    written[own] = page_with(program_reference(program), own, "resvm")
    for name in COMMANDS:
        page = FOLDER / f"{name}.md"
        command = program.commands[name]
        is_family = hasattr(command, "commands")
        reference = (family_reference if is_family else command_reference)(command, name)
        written[page] = page_with(reference, page, f"resvm {name}")
    page = json_reference.PAGE
    return written | {page: page_with(json_reference.reference(), page, "JSON")}


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
