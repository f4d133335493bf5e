"""Reword typer's usage errors and suggest what to do instead."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import typer

from resvm_cli.errors import CommandLineError

# Typer bundles its own Click without exporting UsageError, the parent of BadParameter.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

# LIBSVM options, and what replaces them here.
OF_LIBSVM = {
    "-s": "all members are C-SVMs; --method chooses resvm, bagging or cwsvm",
    "-w": "--w-pos replaces -w1 as the weight of P, and -c is the penalty for U",
    "-b": "there are no probabilities; resvm predict -T recall=0.9 chooses a threshold",
    "-v": "resvm tune -v N scores by cross-validation",
    "-n": "all members are C-SVMs, which have no nu",
    "-p": "all members are C-SVMs, which have no epsilon",
    "-l": "use resvm train --scale minmax; the model stores the scaling",
}
# Options of LIBSVM's grid.py; typer sees only their first letter.
OF_GRID = {
    "-log2c": "-c takes values and ranges, not logarithms: -c 0.03125..32768, or -c 0.5,2,8",
    "-log2g": "-g takes values and ranges, not logarithms: -g 0.0001..10, or -g 0.01,0.1",
}
# Text instead of a number: the file is probably a table.
OF_TABLES = {
    "--positive-label": "labels in svmlight files are numbers; if the file is a table:"
    " resvm convert FILE --label-column COLUMN --positive-label LABEL -P pos.svm -U unl.svm",
}
EXPECTED = {
    "integer": "an integer",
    "int": "an integer",
    "int range": "an integer",
    "float": "a number",
    "float range": "a number",
    "boolean": "yes or no",
}


def explained(error: Any, arguments: Sequence[str], commands: Sequence[str]) -> CommandLineError:
    """Return typer's error in our own words, with a hint."""
    context = error.ctx
    if context is not None:
        command = context.command_path
    else:
        command = " ".join(["resvm", *(word for word in arguments[:1] if word in commands)])
    message = str(error.message)
    every = f"`{command} --help` lists all options"
    if hasattr(error, "possibilities"):
        option = next((word for word in arguments if word in OF_GRID), error.option_name)
        return _unknown_option(command, option, error.possibilities or (), every)
    if hasattr(error, "param_type"):
        usage = context.command.get_usage(context).removeprefix("Usage: ").replace("{", "")
        return CommandLineError(
            f"{command}: {error.param.human_readable_name} is missing", usage.replace("}", "")
        )
    if getattr(error, "param", None) is not None:
        name = "/".join(error.param.opts) if error.param.param_type_name == "option" else ""
        hint = OF_TABLES.get(name, every)
        return CommandLineError(_bad_value(name or error.param.human_readable_name, message), hint)
    if hasattr(error, "option_name"):  # -j at the end of the line, or --json=yes
        without = "requires" in message
        return CommandLineError(
            f"{error.option_name} {'needs a value' if without else 'takes no value'}", every
        )
    if unknown := re.match("No such command '(.*?)'", message):
        near = get_close_matches(unknown[1], commands, 1)
        hint = f"did you mean {near[0]}?" if near else f"the commands are {', '.join(commands)}"
        return CommandLineError(f"there is no command '{unknown[1]}'", hint)
    if surplus := re.match(r"Got unexpected extra argument\S* \((.*)\)", message):
        return _surplus(command, _words(surplus[1], arguments), every)
    return CommandLineError(message[:1].lower() + message[1:].rstrip("."), every)


def _unknown_option(command: str, option: str, near: Sequence[str], every: str) -> CommandLineError:
    hint = OF_LIBSVM.get(option) or OF_GRID.get(option)
    if hint is None:
        hint = f"did you mean {' or '.join(sorted(near))}?" if near else every
    return CommandLineError(f"{command} has no option {option}", hint)


def _bad_value(option: str, message: str) -> str:
    if wrong := re.fullmatch(r"'(.*)' is not a valid ([a-z ]+?)\.?", message, re.DOTALL):
        return f"{option} is '{wrong[1]}'; {EXPECTED.get(wrong[2], wrong[2])} was expected"
    if outside := re.fullmatch(r"(.*) is not in the range x>=(\S+?)\.?", message):
        return f"{option} is {outside[1]}; at least {outside[2]} was expected"
    if outside := re.fullmatch(r"(.*) is not in the range (\S+)<=x<=(\S+?)\.?", message):
        return f"{option} is {outside[1]}; {outside[2]} to {outside[3]} was expected"
    return f"{option}: {message.rstrip('.')}"


def _words(text: str, arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments that typer's message has joined by blanks."""
    ends = range(len(arguments) + 1)
    slices = (arguments[start:end] for start in ends for end in ends)
    return next((words for words in slices if " ".join(words) == text), text.split())


def _surplus(command: str, words: Sequence[str], every: str) -> CommandLineError:
    named = " ".join(words)
    if command.split()[-1] not in ("train", "tune", "rank"):
        return CommandLineError(f"{command} takes no argument {named}", every)
    # svm-train train.svm model
    data, *target = map(shlex.quote, words[:2])
    where = f" -o {target[0]}" if target else ""
    return CommandLineError(
        f"{command} takes its files as options, but got {named} without one",
        f"one labeled file: --data {data} --positive-label 1{where};"
        " two files: -P pos.svm -U unl.svm",
    )
