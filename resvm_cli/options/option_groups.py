"""A command takes a family of options as one parameter; the command line sees each of them.

Typer reads a command's signature, one parameter an option. A family is spelled out there field by
field, and the values are folded back into it when the command is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, wraps
from typing import Any, TypeAlias, get_type_hints

import typer

from resvm_cli.errors import CommandLineError

Command: TypeAlias = Callable[..., None]
LARGEST_NUMBER = 2**53
# Every start of the program pays for it, and nothing compares or prints a family.
option_family = dataclass(frozen=True, eq=False, repr=False)


def fold_options(command: Command) -> Command:
    """Let a command take families of options, each field an option of its own."""
    declared = inspect.signature(command, eval_str=True).parameters
    families: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in declared.items()
        if is_dataclass(parameter.annotation)
    }

    @wraps(command)
    def spelled_out(**values: Any) -> None:
        _refuse_huge(values)
        folded = {
            name: family(**{option: values.pop(option) for option in names_of(family)})
            for name, family in families.items()
        }
        command(**values, **folded)

    options: list[inspect.Parameter] = []
    for name, parameter in declared.items():
        options += _options_of(families[name]) if name in families else [parameter]
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


def names_of(family: Any) -> tuple[str, ...]:
    """The names of a family's options."""
    return tuple(field.name for field in fields(family))


@cache
def _options_of(family: Any) -> tuple[inspect.Parameter, ...]:
    annotations = get_type_hints(family, include_extras=True)
    return tuple(
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=annotations[field.name],
        )
        for field in fields(family)
    )


def _set_options(command: Command, options: list[inspect.Parameter]) -> None:
    keywords = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    vars(command)["__signature__"] = inspect.Signature(keywords)
    command.__annotations__ = {option.name: option.annotation for option in keywords}
