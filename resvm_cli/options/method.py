"""What is trained: the method, its bags and penalties, and its base models."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from resvm_cli.options.option_groups import Panel, table_options
from resvm_cli.options.values import number_or_text, parse_kernel
from resvm_cli.parameters import METHOD_TABLE, TRAINING_TABLE

if TYPE_CHECKING:
    from resvm_cli.parameters import ScaleChoice
    from resvm_cli.training.choice import TrainingChoice

method_option = partial(typer.Option, rich_help_panel="Method")
base_model_option = partial(typer.Option, rich_help_panel="Base models")
BASE_MODEL = ("kernel", "gamma", "degree", "coef0", "solver", "bias", "tolerance", "cache_mb")
TABLE = {**{name: TRAINING_TABLE[name] for name in ("params", "auto", "decision")}, **METHOD_TABLE}


def _panel(name: str) -> Panel:
    return base_model_option if name in BASE_MODEL else method_option


@table_options({name: row for name, row in TABLE.items() if name != "seed"}, _panel)
class MethodOptions:
    """The parameters of an ensemble, and what else may choose them."""

    def choice(
        self, others: Mapping[str, Any], explicit: Collection[str]
    ) -> tuple[TrainingChoice, ScaleChoice | None]:
        """What to train, and the scaling, by these options and others that the user gave."""
        from resvm_cli.training.choice import training_choice

        return training_choice(given_values({**vars(self), **others}, explicit))


def given_values(values: Mapping[str, Any], explicit: Collection[str]) -> dict[str, Any]:
    """The values that the user gave, as the engine takes them."""
    given = {name: value for name, value in values.items() if name in explicit}
    if "kernel" in given:
        given["kernel"] = parse_kernel(given["kernel"])
    for name in ("gamma", "n_models"):  # a number or a word
        if isinstance(given.get(name), str):
            given[name] = number_or_text(given[name])
    return given
