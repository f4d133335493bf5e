"""Groups of options: expanded for the command line, collected for the command, sorted in --help."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from resvm_cli.cli import option_groups
from resvm_cli.cli.app import COMMANDS, command_line
from resvm_cli.cli.option_groups import (
    ADVANCED,
    OUTPUT,
    PATH,
    expand_option_groups,
    explicit_options,
    names_of,
    option_group,
    option_text,
    panel_of,
)
from resvm_cli.cli.options import parse_choice, parse_kernel
from resvm_cli.data.encoding import MISSING_RULES
from resvm_cli.errors import CommandLineError, ParameterError
from resvm_cli.parameters import (
    KERNEL_NAMES,
    LIBSVM_KERNELS,
    METHOD_NAMES,
    METRIC_NAMES,
    RULE_NAMES,
    SCALING_NAMES,
    SEARCH_NAMES,
)
from resvm_cli.ranking.listing import RANKING_FORMATS


@option_group
class Fruit:
    pears: int = option_groups.option("-p, --pears N", "How many pears.", default=3)
    fruit: str | None = option_groups.option("--fruit NAME", "Another fruit.")
    ripe: bool = option_groups.option("--ripe", "Only ripe ones.")


def run(command: Any, *arguments: str) -> str:
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_group_comes_back_with_the_values_of_its_options():
    received = []

    @expand_option_groups
    def basket(
        *,
        size: Annotated[int, typer.Option()] = 1,
        fruit: Fruit,
        last: Annotated[str, typer.Option()],
    ) -> None:
        received.append((size, fruit.pears, fruit.fruit, fruit.ripe, last))

    run(basket, "-p", "7", "--fruit", "fig", "--last", "x")
    run(basket, "--size", "2", "--ripe", "--last", "y")
    assert received == [(1, 7, "fig", False, "x"), (2, 3, None, True, "y")]


def test_a_group_does_not_change():
    with pytest.raises(AttributeError):
        Fruit().pears = 4


def test_a_name_that_two_groups_share_is_refused_when_the_command_is_defined():
    @option_group
    class Vegetables:
        ripe: bool = option_groups.option("--ripe", "Only ripe ones.")

    def basket(*, fruit: Any, vegetables: Any) -> None: ...

    basket.__annotations__ = {"fruit": Fruit, "vegetables": Vegetables}
    with pytest.raises(ValueError, match="duplicate parameter name: 'ripe'"):
        expand_option_groups(basket)


def test_only_given_options_are_explicit_and_messages_spell_them_with_their_letters():
    seen = []

    @expand_option_groups
    def basket(context: typer.Context, *, fruit: Fruit) -> None:
        seen.append(
            (explicit_options(context), [option_text(context, name) for name in names_of(Fruit)])
        )

    run(basket, "--pears", "3")  # the default, but given explicitly
    assert seen == [({"pears"}, ["-p/--pears", "--fruit", "--ripe"])]


def test_a_choice_is_refused_with_the_names_to_choose_from():
    assert parse_choice("--pet", "cat", ("cat", "dog", "cow")) == "cat"
    with pytest.raises(CommandLineError, match="--pet must be cat, dog or cow, got 'Cat'"):
        parse_choice("--pet", "Cat", ("cat", "dog", "cow"))


def test_kernels_go_by_name_in_any_case_or_by_number():
    assert tuple(parse_kernel(str(number)) for number in range(5)) == LIBSVM_KERNELS
    assert tuple(map(parse_kernel, KERNEL_NAMES)) == KERNEL_NAMES
    assert [parse_kernel(name) for name in ("RBF", "polynomial")] == ["rbf", "poly"]
    with pytest.raises(CommandLineError, match="'5'"):
        parse_kernel("5")


def panels(command: str) -> list[str]:
    seen: list[str] = []
    for option in command_line(COMMANDS).commands[command].params:
        if option.param_type_name == "option" and panel_of(option) not in seen:
            seen.append(panel_of(option))
    return seen


def test_data_and_output_come_first_and_the_rarely_needed_last():
    assert panels("train") == [
        *("Data", "Columns", "Output", "Method", "Base models", "Running", ADVANCED)
    ]  # fmt: skip
    assert panels("rank")[:4] == ["Data", "Columns", "Ranking", "Output"]
    assert panels("convert")[0] == "Columns"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_panel_is_in_one_piece(command):
    options = command_line(COMMANDS).commands[command].params
    order = [panel_of(option) for option in options]
    assert order == sorted(order, key=order.index)


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("predict", "[OPTIONS] MODEL [FILE]"),
        ("check", "[OPTIONS] FILE..."),
        ("score", "[OPTIONS] PREDICTIONS..."),
    ],
)
def test_what_is_required_stands_without_braces_in_the_usage(command, usage):
    program = command_line(COMMANDS).commands[command]
    with program.make_context(command, ["x"], resilient_parsing=True) as context:
        assert " ".join(program.collect_usage_pieces(context)) == usage


OFFERED = {
    ("train", "--kernel"): KERNEL_NAMES,
    ("train", "-t"): KERNEL_NAMES,
    ("tune", "--kernel"): KERNEL_NAMES,
    ("rank", "--kernel"): KERNEL_NAMES,
    ("tune", "--method"): METHOD_NAMES,
    ("tune", "--metric"): METRIC_NAMES,
    ("tune", "--search"): SEARCH_NAMES,
    ("train", "--scale"): ("none", *SCALING_NAMES, "auto"),
    ("train", "--decision"): RULE_NAMES,
    ("predict", "--decision"): RULE_NAMES,
    ("train", "--solver"): ("auto", "libsvm", "liblinear"),
    ("train", "--gamma"): ("auto", "scale"),
    ("predict", "--format"): ("text", "tsv", "csv", "jsonl"),
    ("predict", "-T"): ("recall=",),
    ("rank", "--format"): RANKING_FORMATS,
    ("convert", "--missing"): MISSING_RULES,
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
                option.name.endswith("_column")
            ):
                with command.make_context("resvm", ["x"], resilient_parsing=True) as context:
                    assert option.shell_complete(context, ""), option.opts


def test_bash_gets_the_values_that_begin_so(resvm):
    environment = {"_RESVM_COMPLETE": "complete_bash", "COMP_CWORD": "3"}
    ran = resvm(env={**environment, "COMP_WORDS": "resvm tune --metric roc_auc"})
    assert ran.out.decode().split() == ["roc_auc", "roc_auc_of_mean"]


# What each command writes, and what it reads.
TRAINING_FILES = (
    *("positives", "unlabeled", "data", "positive_ids", "ids_file", "weights", "groups"),
    "known_negatives",
)
PATHS = {
    ("train",): (("output",), (*TRAINING_FILES, "params", "cluster")),
    ("merge",): (("output",), ("parts",)),
    ("predict",): (("output", "annotate"), ("model", "file", "cluster")),
    ("tune",): (("output",), (*TRAINING_FILES, "cluster")),
    ("score",): (
        ("plot", "curve"),
        ("labels", "positive_ids", "files"),
    ),
    ("rank",): (
        ("output", "save_model", "html", "annotate"),
        (
            *TRAINING_FILES,
            "tested",
            "feature_map",
            "model",
            "params",
            "cluster",
        ),
    ),
    ("inspect",): (
        (),
        (
            *("positives", "unlabeled", "data", "positive_ids", "ids_file", "groups"),
            "known_negatives",
            *("positive_weights", "feature_map", "model"),
        ),
    ),
    ("simulate",): (("output",), ("data",)),
    ("check",): ((), ("files",)),
    ("convert",): (("output", "positives", "unlabeled", "feature_map"), ("like", "file")),
}
PROGRAM = command_line(COMMANDS)
OVERWRITTEN = [
    (*names, output, other)
    for names, (outputs, inputs) in PATHS.items()
    for number, output in enumerate(outputs)
    for other in (*inputs, *outputs[:number])
]


def options_of(names: tuple[str, ...]) -> list[Any]:
    command = PROGRAM
    for name in names:
        command = command.commands[name]
    return command.params


def run_with(names: tuple[str, ...], paths: dict[str, object]) -> None:
    """Run a command in this process with these paths; other required paths are other files."""
    words = [*names]
    for option in options_of(names):
        if option.name in paths or option.required:
            if option.param_type_name == "option":
                words.append(option.opts[0])
            default = "curves" if option.metavar == "NAME" else f"needed-{option.name}"
            words.append(str(paths.get(option.name, default)))
    PROGRAM(words, prog_name="resvm", standalone_mode=False)


@pytest.mark.parametrize("names", PATHS)
def test_every_path_of_a_command_is_known_to_be_read_or_written(names):
    paths = [option for option in options_of(names) if PATH.search(option.metavar or "")]
    written = {option.name for option in paths if panel_of(option) == OUTPUT}
    outputs, inputs = map(set, PATHS[names])
    assert (written, {option.name for option in paths} - written) == (outputs, inputs | {"config"})


@pytest.mark.parametrize("case", OVERWRITTEN, ids=" ".join)
def test_no_output_is_an_input_or_another_output(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (*names, output, other) = case
    (tmp_path / "f").write_text("precious")
    (tmp_path / "link").symlink_to("f")
    with pytest.raises(ParameterError, match=r"would (both )?write to") as caught:
        run_with(tuple(names), {output: "link", other: tmp_path / "f"})
    assert "choose another path" in str(caught.value.hint)
    assert (tmp_path / "f").read_text() == "precious"


def test_the_message_names_the_option_the_file_and_the_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError) as caught:
        run_with(("rank",), {"positives": "p.svm", "unlabeled": "u.svm", "html": "./p.svm"})
    assert str(caught.value) == (
        "--html would write to ./p.svm, which is an input (-P/--positives)\n"
        "choose another path for --html; inputs are never overwritten"
    )
    with pytest.raises(ParameterError) as caught:
        run_with(("rank",), {"html": "page", "annotate": "page"})
    assert str(caught.value).startswith("--html and --annotate would both write to page\n")


def test_a_word_in_place_of_a_file_is_not_an_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match="is missing"):  # of P and U
        run_with(("rank",), {"groups": "qid", "html": "qid"})
