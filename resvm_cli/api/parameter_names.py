"""Messages of the engine, which name options, in the words of Python: parameters.

The engine speaks to the command line, its first user. What goes wrong below an import is raised
again as a ``ValueError`` whose text names the parameters that the caller wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from resvm_cli.errors import CommandLineError, DataError, ResvmError

# LIBSVM's letters and ours.
LETTERS = {
    "B": "bias",
    "T": "threshold",
    "c": "c_unl",
    "d": "degree",
    "e": "tolerance",
    "g": "gamma",
    "j": "jobs",
    "k": "top",
    "m": "cache_mb",
    "o": "path",
    "r": "coef0",
    "t": "kernel",
    "v": "folds",
}
VALUES = (
    *("resvm", "bagging", "cwsvm", "linear", "poly", "rbf", "sigmoid", "libsvm", "liblinear"),
    *("none", "minmax", "maxabs", "standard", "auto", "single", "committee", "votes", "mean"),
    *("informed", "random", "grid", "halving"),
)
OPTION = re.compile(
    r"(?<![\w-])(?:-[A-Za-z]/)?"
    rf"(?:--(?P<long>[a-z][a-z-]*[a-z0-9])|-(?P<letter>[{''.join(LETTERS)}]))(?![\w-])"
    rf"(?: (?P<value>{'|'.join(VALUES)})\b)?"
)
# Other commands are run in a shell, where options are options.
COMMAND = re.compile(r"(resvm (?!tune\b|train\b)[a-z]+ [^;\n]*)")


class ParameterError(CommandLineError, ValueError):
    """Parameters that do not make sense, alone or together."""


class InputError(DataError, ValueError):
    """Rows or labels that cannot be used as they are."""


def named(text: str) -> str:
    """A message with its options as parameters."""

    def parameter(match: re.Match[str]) -> str:
        name = LETTERS.get(match["letter"]) or match["long"].replace("-", "_")
        if match["value"]:
            return f'{name}="{match["value"]}"'
        return f"{name}=True" if name == "force" else name

    pieces = COMMAND.split(text)  # every second one is a command
    pieces[::2] = [
        OPTION.sub(parameter, piece).replace("resvm tune", "tune").replace("resvm train", "fit")
        for piece in pieces[::2]
    ]
    return "".join(pieces)


@contextmanager
def parameters_named() -> Iterator[None]:
    """Within this context errors name parameters, and those of the caller are ValueErrors."""
    try:
        yield
    except ResvmError as error:
        text = str(error)
        kind = type(error)
        if isinstance(error, CommandLineError):
            kind = ParameterError
        elif isinstance(error, DataError):
            kind = InputError
        raise kind(named(text)) from None
