"""The order in which --help lists options: what most people need first, the rest last.

Options are declared where they belong, in families that several commands share; what is rarely
needed of them is named here, once for all commands.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from functools import partial
from typing import Any

FIRST = ("Columns", "Data", "Ranking", "Output")
RUNNING, ADVANCED = "Running", "Advanced"
LAST = (RUNNING, ADVANCED)

RARELY_NEEDED = {
    *("zero_based", "features", "no_check", "allow_missing", "max_unl"),
    *("solver", "bias", "tolerance", "cache_mb", "gram_mb"),
    *("grow", "task", "members", "cluster", "cluster_timeout", "member_timeout"),
    *("up_to", "repeats", "folds_file", "max_extensions", "no_extend"),
    *("member_values", "decimals", "array", "separator", "header", "decimal_comma"),
}


def arrange(options: MutableSequence[Any]) -> None:
    """Put a command's options into the order of its help, rarely needed ones at the end."""
    declared: list[str] = []
    for option in options:
        if option.param_type_name == "argument":
            option.get_usage_pieces = partial(_usage, option)
        if option.name in RARELY_NEEDED:
            option.rich_help_panel = ADVANCED
        panel = panel_of(option)
        if panel not in (*FIRST, *LAST, *declared):
            declared.append(panel)
    order = [*FIRST, *declared, *LAST]
    options[:] = sorted(options, key=lambda option: order.index(panel_of(option)))


def _usage(argument: Any, context: Any) -> list[str]:
    """An argument as manuals write it; typer puts what is required into braces."""
    del context
    name = str(argument.metavar)
    return [name if argument.required or name.startswith("[") else f"[{name}]"]


def panel_of(option: Any) -> str:
    """The title under which --help lists an option, or an argument, which has none."""
    return getattr(option, "rich_help_panel", None) or ""
