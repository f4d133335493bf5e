"""Groups of options: a command takes a group as one argument, and each field is an option.

Typer creates one option for each parameter in a command's signature. The signature therefore lists
a group's fields instead of the group itself, and their values are collected into the group when the
command is called. Options are declared the way ``--help`` shows them; options for parameters in the
parameter table are generated from the table. ``--help`` lists the most important options first.

``--config FILE`` reads options from a TOML file, with one table per command. The values become
Click's defaults, so the command line takes precedence, ranges are checked, and options from the
file count as set by the user.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, MutableSequence, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import partial, wraps
from typing import Any, TypeAlias, get_type_hints

import typer
from typer.core import TyperOption
from typer.models import OptionInfo

from resvm_cli.cli.terminal import in_options
from resvm_cli.data.atomic import check_outputs
from resvm_cli.data.streams import STDIN, name_of, text_pieces
from resvm_cli.errors import CommandLineError
from resvm_cli.parameter_types import Parameter
from resvm_cli.records import dataclass

Command: TypeAlias = Callable[..., None]
LARGEST_NUMBER = 2**53
OUTPUT = "Output"
FIRST = ("Data", "Columns", "Ranking", OUTPUT)
PATH = re.compile(r"\b(FILE|DIR|MAP|MODEL|PART|PREDICTIONS)\b")  # metavars of paths
RUNNING, ADVANCED = "Running", "Advanced"
LAST = (RUNNING, ADVANCED)
CONFIG = "config"
NOT_IN_FILES = (CONFIG, "help", "help_all")
MAX_SHOWN = 25  # a command with more options shows only these with --help
EVERYDAY = {
    *("positives", "unlabeled", "data", "positive_label", "positive_ids", "id_column"),
    *("label_column", "smiles_column", "missing", "output", "form", "html", "show", "annotate"),
    *("save_model", "json", "audit", "top", "fdr", "next", "why", "model", "params", "kernel"),
    *("method", "n_models", "no_auto", "metric", "seed", "jobs", "quiet", "help_all"),
}
EXPECTED = {"integer": "an integer", "int": "an integer", "float": "a number"}
EXPECTED["boolean"] = "true or false"
TYPES = {"integer": int, "number": float, "flag": bool}  # all other kinds are text


def option(
    declared: str,
    help: str,
    default: Any = None,
    *,
    panel: str | None = None,
    completions: Sequence[str] = (),
    **more: Any,
) -> Any:
    """Return an option, declared as --help shows it: ``-j, --jobs N``. Flags are off by default."""
    words = declared.replace(", ", " ").split()
    names = [word for word in words if word.startswith("-")]
    metavar = words[-1] if len(names) < len(words) else None
    if metavar is None and default is None:
        default = False
    if completions:
        more["autocompletion"] = _completer(completions)
    return typer.Option(default, *names, metavar=metavar, help=help, rich_help_panel=panel, **more)


advanced_option = partial(option, panel=ADVANCED)


def argument(
    metavar: str, help: str, default: Any = ..., *, completions: Sequence[str] = ()
) -> Any:
    """Return an argument of a command, required unless it has a default."""
    completion = _completer(completions) if completions else None
    return typer.Argument(default, metavar=metavar, help=help, autocompletion=completion)


def _completer(names: Sequence[str]) -> Callable[[str], list[str]]:
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def option_group(group: type) -> Any:
    """Turn a class into an option group, whose fields become options of commands that take it."""
    group.options = dict(getattr(group, "options", {}))  # type: ignore[attr-defined]
    for name in group.__annotations__:
        declared = getattr(group, name, None)
        if isinstance(declared, OptionInfo):
            group.options[name] = declared  # type: ignore[attr-defined]
            setattr(group, name, declared.default)
    return dataclass(frozen=True, eq=False)(group)


def table_options(table: Mapping[str, Parameter]) -> Callable[[type], Any]:
    """Add one option per parameter in the table to a group, ahead of the group's own options."""

    def add(group: type) -> Any:
        for name, parameter in table.items():
            setattr(group, name, table_option(parameter))
        made = {name: _type_of(parameter) for name, parameter in table.items()}
        group.__annotations__ = {**made, **group.__annotations__}
        return option_group(group)

    return add


def table_option(parameter: Parameter) -> Any:
    """Return the option for a parameter in the table."""
    more: dict[str, Any] = {}
    if parameter.shown is not None:
        more["show_default"] = in_options(parameter.shown)
    letter = "" if parameter.letter is None else f"-{parameter.letter}, "
    name = parameter.name.replace("_", "-")
    return option(
        f"{letter}--{name} {parameter.metavar or ''}",
        in_options(parameter.help),
        parameter.default,
        panel=ADVANCED if parameter.advanced else parameter.panel,
        completions=parameter.choices,
        **more,
    )


def _type_of(parameter: Parameter) -> Any:
    # a parameter with choices is passed as text: a name, or a number
    kind: Any = str if parameter.choices else TYPES.get(parameter.kind, str)
    return kind | None if parameter.default is None else kind


def expand_option_groups(command: Command) -> Command:
    """Let a command take option groups; each field of a group becomes an option."""
    declared = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in declared.items()
        if is_dataclass(parameter.annotation)
    }

    @wraps(command)
    def spelled_out(**values: Any) -> None:
        _reject_huge(values)
        folded = {
            name: group(**{option: values.pop(option) for option in names_of(group)})
            for name, group in groups.items()
        }
        command(**values, **folded)

    options: list[inspect.Parameter] = []
    for name, parameter in declared.items():
        options += _options_of(groups[name]) if name in groups else [parameter]
    options = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    vars(spelled_out)["__signature__"] = inspect.Signature(options)
    spelled_out.__annotations__ = {option.name: option.annotation for option in options}
    return spelled_out


def _reject_huge(values: dict[str, Any]) -> None:
    """Reject integers that are too large to be a count or to pass to the C code."""
    for name, value in values.items():
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            option = name.replace("_", "-")
            raise CommandLineError(f"--{option} must be between -2**53 and 2**53, got {value}")


def explicit_options(context: typer.Context) -> set[str]:
    """Return the names of the options that the user set explicitly."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name != "DEFAULT"}


def option_text(context: typer.Context, name: str) -> str:
    """Return an option's name as shown in messages, such as -c/--c-unl."""
    return next(_label(option) for option in context.command.params if option.name == name)


def names_of(group: Any) -> tuple[str, ...]:
    """Return the names of a group's options."""
    return tuple(field.name for field in fields(group))


def as_words(group: Any, without: str = "") -> list[str]:
    """Return a group's options as command-line words; skip defaults and the option ``without``."""
    words = []
    for name, declared in group.options.items():
        value = getattr(group, name)
        if value == declared.default or name == without:
            continue
        for one in value if isinstance(value, list) else [value]:
            first = declared.param_decls[0]
            words += [first] if isinstance(one, bool) else [first, str(one)]
    return words


def _options_of(group: Any) -> list[inspect.Parameter]:
    kind, annotations = inspect.Parameter.KEYWORD_ONLY, get_type_hints(group)
    return [
        inspect.Parameter(name, kind, default=group.options[name], annotation=annotations[name])
        for name in names_of(group)
    ]


def arrange(options: MutableSequence[Any]) -> None:
    """Sort a command's options for --help, with advanced ones last."""
    declared: list[str] = []
    for option in options:
        if option.param_type_name == "argument":
            # typer would put required arguments in braces and add <str>
            option.get_usage_pieces = lambda ctx, metavar=option.metavar: [metavar]
            option.type = copy(option.type)
            option.type.get_metavar = lambda param, ctx: ""
        panel = panel_of(option)
        if panel not in (*FIRST, *LAST, *declared):
            declared.append(panel)
    order = [*FIRST, *declared, *LAST]
    options[:] = sorted(options, key=lambda option: order.index(panel_of(option)))


def forbid_overwriting_inputs(command: Any) -> None:
    """Make a command reject paths that would let an output replace an input or another output.

    Paths under the heading Output are outputs; all others are inputs.
    """
    paths = [option for option in command.params if PATH.search(option.metavar or "")]
    invoke = command.invoke

    def checked(context: Any) -> Any:
        explicit = explicit_options(context)
        found: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
        for option in paths:
            is_output = panel_of(option) == OUTPUT
            given = context.params.get(option.name, context.meta.get(option.name))
            for path in [given] if isinstance(given, str) else given or ():
                is_word = path in option.metavar.split("|")  # such as qid
                unexposed = option.name not in context.params  # --config
                if not is_word and (is_output or option.name in explicit or unexposed):
                    found[is_output].append((_label(option), path))
        check_outputs(found[True], [*found[False], ("stdin", STDIN)])
        return invoke(context)

    command.invoke = checked


def _label(option: Any) -> str:
    """Return the name of an option or argument as shown in messages: -o/--output, MODEL."""
    is_argument = option.param_type_name == "argument"
    return option.metavar.strip("[].") if is_argument else "/".join(option.opts)


def panel_of(option: Any) -> str:
    """Return the --help heading of an option; empty for an argument."""
    return getattr(option, "rich_help_panel", None) or ""


def shorten_help(command: Any) -> None:
    """Let --help show the everyday options of a command that has many; add --help-all."""
    show = command.format_help
    options = [option for option in command.params if option.param_type_name == "option"]
    rare = [option for option in options if option.name not in EVERYDAY]
    rare = rare if len(options) > MAX_SHOWN else []

    def show_everyday(context: Any, formatter: Any) -> None:
        for option in rare:
            option.hidden = True
        if rare:
            command.epilog = f"`{context.command_path} --help-all` lists {len(rare)} more options."
        show(context, formatter)

    def show_all(context: Any, option: Any, wanted: bool) -> None:
        del option
        if wanted:
            show(context, context.make_formatter())
            raise typer.Exit

    command.format_help = show_everyday
    option = TyperOption(
        param_decls=["--help-all"],
        help="Show all options.",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show_all,
        rich_help_panel=RUNNING,
    )
    option.rich_help_panel = RUNNING
    command.params.append(option)


def add_config(command: Any, table: str, tables: Sequence[str]) -> None:
    """Add the option ``--config`` to a command; ``table`` is the command's table in the file.

    ``tables`` names all tables that a file may contain, one per command.
    """
    option = TyperOption(
        param_decls=[f"--{CONFIG}"],
        metavar="FILE",
        help=f"Read options from the table [{table}] of a TOML file. Keys are long option"
        " names without the leading dashes; the command line takes precedence.",
        is_eager=True,
        expose_value=False,
        callback=partial(_load_config, table, tables),
        rich_help_panel=RUNNING,
    )
    option.rich_help_panel = RUNNING
    command.params.append(option)


def _load_config(
    table: str, tables: Sequence[str], context: Any, option: Any, path: str | None
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
    own = content.get(table)
    header = f"[{table}]"
    if not own:
        found = ", ".join(f"[{key}]" for key in content) or "nothing"
        raise CommandLineError(f"{name}: no options in {header}", f"the file contains {found}")
    context.meta[CONFIG] = path  # an input, so no output may replace it
    options = {
        long.removeprefix("--"): one
        for one in context.command.params
        if one.param_type_name == "option" and one.name not in NOT_IN_FILES
        for long in one.opts
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
        entries = value if isinstance(value, list) and one.multiple else [value]
        values = [_converted(one, entry, where) for entry in entries]
        converted = values if one.multiple else values[0]
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
    """Return the value as Click expects it; None if it is equivalent to omitting the option."""
    kind = option.type.name.removesuffix(" range")
    # text options accept numbers: gamma = 0.5
    types = {"boolean": (bool,), "integer": (int,), "int": (int,), "float": (int, float)}
    if type(value) not in types.get(kind, (str, int, float)):
        raise CommandLineError(f"{where} must be {EXPECTED.get(kind, 'text')}, got {value!r}")
    if kind == "boolean":
        return value or None  # false omits the flag
    return value if kind in EXPECTED else str(value)
