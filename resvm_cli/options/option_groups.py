"""A command takes a group of options as one argument; the command line sees each of them.

Typer reads one option from each parameter of a command's signature. A group is expanded there
field by field, and the values are collected into the group when the command is called. Options of
the parameter table are made from its rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, wraps
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from resvm_cli.errors import CommandLineError, Message
from resvm_cli.options.values import offered
from resvm_cli.parameters import Parameter
from resvm_cli.report.terminal import in_options

Command: TypeAlias = Callable[..., None]
LARGEST_NUMBER = 2**53
# Every start of the program pays for it, and nothing compares or prints a group.
option_group = dataclass(frozen=True, eq=False, repr=False)
TYPES = {"integer": int, "number": float, "choice": str, "text": str, "flag": bool}
Panel: TypeAlias = Callable[..., Any]  # makes an option in its panel of the help


def table_options(
    table: Mapping[str, Parameter], panel: Callable[[str], Panel], *, last: bool = False
) -> Callable[[type], Any]:
    """Give a group one option per parameter of the table, before or after its own options."""

    def add(group: type) -> Any:
        made = {name: annotation(parameter, panel(name)) for name, parameter in table.items()}
        for name, parameter in table.items():
            setattr(group, name, parameter.default)
        own = group.__annotations__
        group.__annotations__ = {**own, **made} if last else {**made, **own}
        return option_group(group)

    return add


def annotation(parameter: Parameter, panel: Panel) -> Any:
    """The option of a parameter as typer wants it annotated."""
    option = "--" + parameter.name.replace("_", "-")
    more: dict[str, Any] = {}
    if parameter.shown is not None:
        more["show_default"] = in_options(Message(parameter.shown))
    if parameter.choices:
        more["autocompletion"] = offered(*parameter.choices)
    names = [option] if parameter.letter is None else [f"-{parameter.letter}", option]
    kind: Any = TYPES[parameter.kind]
    if parameter.choices:  # a name, or a number
        kind = str
    if parameter.default is None:
        kind = kind | None
    text = in_options(Message(parameter.help))
    return Annotated[kind, panel(*names, metavar=parameter.metavar, help=text, **more)]


def fold_options(command: Command) -> Command:
    """Let a command take groups of options, each field an option of its own."""
    declared = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in declared.items()
        if is_dataclass(parameter.annotation)
    }

    @wraps(command)
    def spelled_out(**values: Any) -> None:
        _refuse_huge(values)
        folded = {
            name: group(**{option: values.pop(option) for option in names_of(group)})
            for name, group in groups.items()
        }
        command(**values, **folded)

    options: list[inspect.Parameter] = []
    for name, parameter in declared.items():
        options += _options_of(groups[name]) if name in groups else [parameter]
    _set_options(spelled_out, options)
    return spelled_out


def _refuse_huge(values: dict[str, Any]) -> None:
    """Whole numbers that no count can be, and that C could not hold."""
    for name, value in values.items():
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            option = name.replace("_", "-")
            raise CommandLineError(f"--{option} is out of range; at most 2**53 was expected")


def place_option(name: str, *, before: str) -> Callable[[Command], Command]:
    """Let --help list an option before another of the same command, not where it was declared."""

    def place(command: Command) -> Command:
        options = dict(inspect.signature(command).parameters)
        moved = options.pop(name)
        position = list(options).index(before)
        rest = list(options.values())
        _set_options(command, [*rest[:position], moved, *rest[position:]])
        return command

    return place


def explicit_options(context: typer.Context) -> set[str]:
    """The names of the options that the user gave, and did not leave at their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name != "DEFAULT"}


def option_text(context: typer.Context, name: str) -> str:
    """An option as messages call it, such as -c/--c-unl."""
    return next("/".join(option.opts) for option in context.command.params if option.name == name)


def names_of(group: Any) -> tuple[str, ...]:
    """The names of a group's options."""
    return tuple(field.name for field in fields(group))


@cache
def _options_of(group: Any) -> tuple[inspect.Parameter, ...]:
    annotations = get_type_hints(group, include_extras=True)
    return tuple(
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=annotations[field.name],
        )
        for field in fields(group)
    )


def _set_options(command: Command, options: list[inspect.Parameter]) -> None:
    keywords = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    vars(command)["__signature__"] = inspect.Signature(keywords)
    command.__annotations__ = {option.name: option.annotation for option in keywords}
