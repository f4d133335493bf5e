"""Notes, errors and progress on stderr; data, tables and JSON on stdout.

The engine's messages name parameters in backticks, as in Python; here they become options.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from resvm_cli import __version__
from resvm_cli.data.streams import as_json, write_stdout
from resvm_cli.errors import ResvmError

# Control characters that change the text direction of the rest of a line.
BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SCHEMA = 1  # version of the JSON results
# A parameter in a message, with or without its value: `n_pos`, `kernel='linear'`.
PARAMETER = r"""(?<!')`([a-z_]+)(?:=(\w+|'[^'\\]*'|"[^"\\]*"))?`"""
# Parameters whose option is not simply the parameter's name after --.
SPECIAL = {
    "positives": "-P",
    "unlabeled": "-U",
    "output": "-o",
    "path": "-o",
    "threshold": "-T",
    "feature_map": "--map",
    "intervals=False": "--no-interval",
}
RED, YELLOW = "31", "33"
QUOTES = ("'", '"')
PREVIEW_ROWS = 20
FIRST_HEARTBEAT_SECONDS = 10.0
HEARTBEAT_SECONDS = 30.0


def harmless(text: str) -> str:
    """Return the text with control characters escaped, such as \\x1b for ESC."""
    if text.isprintable():
        return text
    return "".join(map(_spelled_out, text))


def _spelled_out(character: str) -> str:
    code = ord(character)
    if code < 0x20 or 0x7F <= code < 0xA0:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if character in BIDIRECTIONAL:
        return f"\\u{code:04x}"
    return character


def say(text: str, color: str = "", name: str = "") -> None:
    """Print a line on stderr, its name first, in color on a terminal; ignore a closed stderr."""
    if sys.stderr is not None:
        with suppress(OSError):
            if color and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
                name = f"\x1b[{color}m{name}\x1b[0m"
            print(name + harmless(text), file=sys.stderr, flush=True)  # noqa: T201


def in_options(text: str) -> str:
    """Show the parameters in a message as options: ``--n-pos``, ``--kernel linear``."""
    return re.sub(PARAMETER, _option, text)


def _option(parameter: re.Match[str]) -> str:
    name, value = parameter.groups()
    dashed = name.replace("_", "-")
    if value == "False":
        return SPECIAL.get(f"{name}={value}", f"--no-{dashed}")
    option = SPECIAL.get(name, f"--{dashed}")
    if value in (None, "True"):
        return option
    return f"{option} {shlex.quote(value.strip(value[0]) if value[0] in QUOTES else value)}"


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = ()) -> list[str]:
    """Return rows of cells as lines; columns in ``left`` are left-aligned, others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def say_row(name: str, text: str) -> None:
    """Print a line of a summary on stderr: its name, then its text."""
    say(f"  {text}", YELLOW if name == "warning" else "", f"{name:>10}")


def announce_stdin() -> None:
    """If stdin is a terminal, tell the user that rows are read from it."""
    if sys.stdin is not None and sys.stdin.isatty():
        say_row("note", "reading rows from the terminal; press Ctrl-D to end input")


def show_error(error: ResvmError) -> None:
    say(f" {in_options(error.message)}", RED, "resvm: error:")
    if error.hint:
        say(f"  hint: {in_options(error.hint)}")


def command_line() -> str:
    """Return the command line, quoted for a shell."""
    return shlex.join(["resvm", *sys.argv[1:]])


def print_data(text: str) -> None:
    """Write data to stdout."""
    write_stdout(text.encode("utf-8", "surrogateescape"))


def print_table(text: str) -> None:
    """Write a human-readable table to stdout, with control characters escaped."""
    print_data("".join(f"{harmless(line)}\n" for line in text.split("\n")[:-1]))


def shows_preview(path: str) -> bool:
    """Whether results go to a terminal, which is shown the first rows instead of all lines."""
    return path == "-" and sys.stdout is not None and sys.stdout.isatty()


def print_preview(columns: Mapping[str, Sequence[Any]], n_rows: int) -> None:
    """Print the first rows as an aligned table with four digits; say how to write all of them."""
    cells = zip(*(map(_shown, column[:PREVIEW_ROWS]) for column in columns.values()), strict=True)
    left = [at for at, name in enumerate(columns) if name == "id"]
    print_table("".join(f"{line}\n" for line in aligned([list(columns), *cells], left)))
    if n_rows > PREVIEW_ROWS:
        more = f"{n_rows - PREVIEW_ROWS:,} more rows"
        say_row("note", f"{more}; to write all rows with all digits: -o FILE, or a pipe")


def _shown(value: Any) -> str:
    if value is None or value != value:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.3e}"


def print_json(command: str, content: dict[str, Any]) -> None:
    """Print a command's result as JSON on stdout; its notes name options."""
    if "notes" in content:
        content = {**content, "notes": [in_options(note) for note in content["notes"]]}
    head = {"schema": SCHEMA, "version": __version__, "command": command}
    print_data(json.dumps({**head, **as_json(content)}, indent=1) + "\n")


class Progress:
    """Shows progress: a live bar on a terminal, otherwise a line every 30 seconds."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live: Any = None
        self._task: Any = None
        self._stage = ""
        self._started = self._stage_began = time.monotonic()
        self._next = self._started + FIRST_HEARTBEAT_SECONDS
        self._next_refresh = self._started + 0.3

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if self._quiet or sys.stderr is None:
            return
        now = time.monotonic()
        if stage.partition(",")[0] != self._stage:  # the part after a comma may change
            self._stage = stage.partition(",")[0]
            self._stage_began = now
            self._forget()
        if sys.stderr.isatty():
            # a short job finishes before a bar is worth drawing
            if now >= self._next_refresh:
                self._draw(stage, done, total)
        elif now >= self._next:
            self._next = now + HEARTBEAT_SECONDS
            amount = f"{done:,} rows" if total is None else f"{done:,} of {total:,}"
            left = ""
            # jobs with tasks of different sizes estimate the time left themselves
            if total is not None and 0 < done < total and not stage.endswith(" left"):
                left = f", about {(now - self._stage_began) * (total - done) / done:.0f} s left"
            say(f"resvm: {stage}: {amount}, {now - self._stage_began:.0f} s{left}")

    def _draw(self, stage: str, done: int, total: int | None) -> None:
        if self._live is None:
            from rich import progress as bars
            from rich.console import Console

            self._live = bars.Progress(
                bars.TextColumn("{task.description}", markup=False),
                bars.BarColumn(),
                bars.MofNCompleteColumn(),
                bars.TimeElapsedColumn(),
                bars.TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._live.start()
        if self._task is None:
            self._task = self._live.add_task(stage, total=total)
        self._live.update(self._task, completed=done, total=total, description=stage)

    def _forget(self) -> None:
        if self._live is not None and self._task is not None:
            self._live.remove_task(self._task)
        self._task = None
