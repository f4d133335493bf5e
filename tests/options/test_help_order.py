"""The order of options in --help, and what the shell offers."""

from __future__ import annotations

import pytest

from resvm_cli.cli import COMMANDS, command_line
from resvm_cli.commands.convert.convert import FORMATS
from resvm_cli.commands.rank.listing import RANKING_FORMATS
from resvm_cli.options.option_groups import ADVANCED, RARELY_NEEDED, panel_of
from resvm_cli.parameters import (
    AUTO_NAMES,
    KERNEL_NAMES,
    METHOD_NAMES,
    METRIC_NAMES,
    RULE_NAMES,
    SCALING_NAMES,
    SEARCH_NAMES,
)
from resvm_cli.tables.features import MISSING_RULES


def panels(command: str) -> list[str]:
    seen: list[str] = []
    for option in command_line(COMMANDS).commands[command].params:
        if option.param_type_name == "option" and panel_of(option) not in seen:
            seen.append(panel_of(option))
    return seen


def test_data_and_output_come_first_and_the_rarely_needed_last():
    assert panels("train") == [
        *("Data", "Output", "Method", "Base models", "Running", ADVANCED)
    ]  # fmt: skip
    assert panels("rank")[:3] == ["Data", "Ranking", "Output"]
    assert panels("convert")[0] == "Columns"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_panel_is_in_one_piece(command):
    options = command_line(COMMANDS).commands[command].params
    order = [panel_of(option) for option in options]
    assert order == sorted(order, key=order.index)


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("predict", "[OPTIONS] MODEL [FILE]..."),
        ("check", "[OPTIONS] FILE..."),
        ("score", "[OPTIONS] [PREDICTIONS...]"),
    ],
)
def test_what_is_required_stands_without_braces_in_the_usage(command, usage):
    program = command_line(COMMANDS).commands[command]
    with program.make_context(command, ["x"], resilient_parsing=True) as context:
        assert " ".join(program.collect_usage_pieces(context)) == usage


def test_only_options_that_exist_are_called_rarely_needed():
    commands = command_line(COMMANDS).commands.values()
    assert {option.name for command in commands for option in command.params} >= RARELY_NEEDED


OFFERED = {
    ("train", "--kernel"): KERNEL_NAMES,
    ("train", "-t"): KERNEL_NAMES,
    ("tune", "--kernel"): KERNEL_NAMES,
    ("rank", "--method"): METHOD_NAMES,
    ("tune", "--method"): (*METHOD_NAMES, "all"),
    ("tune", "--metric"): METRIC_NAMES,
    ("tune", "--search"): SEARCH_NAMES,
    ("train", "--scale"): ("none", *SCALING_NAMES, "auto"),
    ("train", "--decision"): RULE_NAMES,
    ("predict", "--decision"): RULE_NAMES,
    ("train", "--auto"): AUTO_NAMES,
    ("train", "--solver"): ("auto", "libsvm", "liblinear"),
    ("train", "--gamma"): ("auto", "scale"),
    ("predict", "--format"): ("text", "tsv", "csv", "jsonl"),
    ("predict", "-T"): ("recall=", "top=", "fraction="),
    ("rank", "--format"): RANKING_FORMATS,
    ("score", "--values"): ("held-out", "out-of-bag", "trained-on"),
    ("simulate", "--labelling"): ("random", "biased"),
    ("convert", "--missing"): MISSING_RULES,
    ("convert", "--to"): FORMATS,
}


@pytest.mark.parametrize(("command", "option"), OFFERED)
def test_the_shell_is_offered_what_an_option_takes(command, option):
    program = command_line(COMMANDS).commands[command]
    found = next(one for one in program.params if option in one.opts)
    with program.make_context("resvm", ["x"], resilient_parsing=True) as context:
        offered = [item.value for item in found.shell_complete(context, "")]
    assert sorted(offered) == sorted(OFFERED[command, option])


def test_every_option_of_a_stated_choice_offers_it():
    """An option whose metavar is NAME, RULE, KIND or FORMAT has a choice, unless it is a column."""
    for command in command_line(COMMANDS).commands.values():
        for option in command.params:
            if option.metavar in ("NAME", "RULE", "KIND", "FORMAT") and not (
                option.name.endswith("_column") or option.name == "array"
            ):
                with command.make_context("resvm", ["x"], resilient_parsing=True) as context:
                    assert option.shell_complete(context, ""), option.opts


def test_bash_gets_the_values_that_begin_so(resvm):
    environment = {"_RESVM_COMPLETE": "complete_bash", "COMP_CWORD": "3"}
    ran = resvm(env={**environment, "COMP_WORDS": "resvm tune --metric best"})
    assert ran.out.decode().split() == ["best_pu_score", "best_pu_score_of_mean"]
