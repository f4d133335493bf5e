"""``--config FILE``: options from a TOML file, with one table per command.

The keys of a table are the command's long options. Their values become Click's defaults, so that
the command line wins, ranges are checked, and options from a file count as given by the user.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

from typer.core import TyperOption

from resvm_cli.errors import CommandLineError
from resvm_cli.files.streams import name_of, text_pieces
from resvm_cli.options.option_groups import RUNNING
from resvm_cli.options.values import EXPECTED

CONFIG = "--config"
NAME = "config"
NOT_IN_FILES = (NAME, "help")


def add_config(command: Any, table: Sequence[str], tables: Sequence[str]) -> None:
    """Add the option ``--config`` to a command; ``table`` is the path of the command's TOML table.

    ``tables`` are the names of all tables that a file may contain: one per command.
    """
    option = TyperOption(
        param_decls=[CONFIG],
        metavar="FILE",
        help=f"Read options from the table [{'.'.join(table)}] of a TOML file. Keys are long option"
        " names without the leading dashes; the command line takes precedence.",
        is_eager=True,
        expose_value=False,
        callback=partial(_load, table, tables),
        rich_help_panel=RUNNING,
    )
    option.rich_help_panel = RUNNING
    command.params.append(option)


def _load(
    table: Sequence[str], tables: Sequence[str], context: Any, option: Any, path: str | None
) -> None:
    """Read the file, check its table for this command, and make its values the defaults."""
    del option
    if path is None:
        return
    name = name_of(path)
    content = _parsed(path, name)
    for key, value in content.items():
        if key not in tables:
            raise _unknown(f"{name}: there is no command '{key}'", key, tables, "[{}]")
        if not isinstance(value, dict):
            raise CommandLineError(
                f"{name}: {key} is not a table", f"put the options below [{key}]"
            )
    own: Any = content
    for step in table:
        own = own.get(step) if isinstance(own, dict) else None
    header = f"[{'.'.join(table)}]"
    if not own or not isinstance(own, dict):
        found = ", ".join(f"[{key}]" for key in content) or "nothing"
        raise CommandLineError(f"{name}: no options in {header}", f"the file contains {found}")
    context.meta[NAME] = path  # an input, which no output may replace
    options = {
        long.removeprefix("--"): one
        for one in context.command.params
        if one.param_type_name == "option" and one.name not in NOT_IN_FILES
        for long in (*one.opts, *one.secondary_opts)
        if long.startswith("--")
    }
    defaults: dict[str, Any] = {}
    for key, value in own.items():
        if key not in options:
            raise _unknown(
                f"{name}: {context.command_path} has no option '{key}'", key, options, "{}"
            )
        one = options[key]
        where = f"{name}: {key} in {header}"
        converted = _converted(one, value, where)
        if f"--{key}" in one.secondary_opts:  # --no-x
            converted = not converted
        if defaults.get(one.name, converted) != converted:
            raise CommandLineError(f"{where} conflicts with another key", "keep only one of them")
        if converted is not None:
            defaults[one.name] = converted
    context.default_map = {**(context.default_map or {}), **defaults}


def _parsed(path: str, name: str) -> Mapping[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        content: Mapping[str, Any] = tomllib.loads(b"".join(text_pieces(path)).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandLineError(f"{name}: not a TOML file: {error}") from None
    return content


def _unknown(message: str, key: str, known: Any, form: str) -> CommandLineError:
    near = get_close_matches(key.replace("_", "-"), list(known), 1)
    hint = f"did you mean {form.format(near[0])}?" if near else None
    if hint is None and len(list(known)) < 20:
        hint = f"expected one of: {', '.join(known)}"
    return CommandLineError(message, hint or "keys are long option names, such as n-pos = 50")


def _converted(option: Any, value: Any, where: str) -> Any:
    """Return the value as Click expects it; None if it means the same as no value."""
    if option.multiple:
        entries = value if isinstance(value, list) else [value]
        return [_single(option, entry, where) for entry in entries]
    return _single(option, value, where)


def _single(option: Any, value: Any, where: str) -> Any:
    kind = option.type.name.removesuffix(" range")
    if option.name == "auto" and isinstance(value, bool):  # a bare --auto
        return "committee" if value else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "boolean": isinstance(value, bool),
        "integer": is_number and isinstance(value, int),
        "int": is_number and isinstance(value, int),
        "float": is_number,
    }.get(kind, is_number or isinstance(value, str))  # text options accept numbers: gamma = 0.5
    if not fits:
        raise CommandLineError(f"{where} must be {EXPECTED.get(kind, 'text')}, got {value!r}")
    if kind == "boolean":
        # false means no flag, unless the option has both forms, --x/--no-x
        return value if value or option.secondary_opts else None
    return value if kind in EXPECTED else str(value)
