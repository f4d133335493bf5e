"""Families of options: spelled out for the command line, folded back for the command."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from resvm_cli.errors import CommandLineError
from resvm_cli.model.plan import MethodParameters
from resvm_cli.options.data import DataOptions
from resvm_cli.options.method import CHOOSERS, MethodOptions
from resvm_cli.options.option_groups import (
    explicit_options,
    fold_options,
    names_of,
    option_family,
    option_text,
    place_option,
)
from resvm_cli.options.values import parse_choice, parse_kernel
from resvm_cli.parameters import KERNEL_NAMES, LIBSVM_KERNELS
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.input import TrainingInput


@option_family
class Fruit:
    pears: Annotated[int, typer.Option("-p", "--pears")] = 3
    fruit: Annotated[str | None, typer.Option()] = None
    ripe: Annotated[bool, typer.Option("--ripe")] = False


def run(command: Any, *arguments: str) -> str:
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_family_comes_back_with_the_values_of_its_options():
    received = []

    @fold_options
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


def test_a_family_does_not_change():
    with pytest.raises(AttributeError):
        Fruit().pears = 4


def test_options_are_listed_where_the_family_stands_or_where_they_are_placed():
    @fold_options
    def basket(
        *,
        size: Annotated[int, typer.Option()] = 1,
        fruit: Fruit,
        last: Annotated[int, typer.Option()] = 1,
    ) -> None:
        """Fill it."""

    def listed() -> list[str]:
        words = run(basket, "--help").split()
        names = ("--size", "--pears", "--fruit", "--ripe", "--last")
        return sorted(names, key=words.index)

    assert listed() == ["--size", "--pears", "--fruit", "--ripe", "--last"]
    basket = place_option("last", before="fruit")(basket)
    assert listed() == ["--size", "--pears", "--last", "--fruit", "--ripe"]


def test_a_name_that_two_families_share_is_refused_when_the_command_is_defined():
    @option_family
    class Vegetables:
        ripe: bool = True

    def basket(*, fruit: Any, vegetables: Any) -> None: ...

    basket.__annotations__ = {"fruit": Fruit, "vegetables": Vegetables}
    with pytest.raises(ValueError, match="duplicate parameter name: 'ripe'"):
        fold_options(basket)


def test_only_given_options_are_explicit_and_messages_spell_them_with_their_letters():
    seen = []

    @fold_options
    def basket(context: typer.Context, *, fruit: Fruit) -> None:
        seen.append(
            (explicit_options(context), [option_text(context, name) for name in names_of(Fruit)])
        )

    run(basket, "--pears", "3")  # the default, but said
    assert seen == [({"pears"}, ["-p/--pears", "--fruit", "--ripe"])]


PARAMETERS = {
    "method": "bagging",
    "n_models": 7,
    "n_pos": 8,
    "n_unl": 9,
    "w_pos": 0.3,
    "c_unl": 4.0,
    "c_pos": 5.0,
    "kernel": "poly",
    "gamma": 0.25,
    "degree": 5,
    "coef0": 0.5,
    "solver": "libsvm",
    "bias": 2.0,
    "tolerance": 0.1,
    "cache_mb": 3.0,
}


def test_every_option_of_the_method_reaches_the_parameters():
    assert set(names_of(MethodOptions)) == {*PARAMETERS, *CHOOSERS}
    options = MethodOptions(**{**PARAMETERS, "gamma": "0.25", "kernel": "1"})
    choice, scale = options.choose((), scale="minmax", seed=11)
    assert choice == TrainingChoice.from_params(MethodParameters(**PARAMETERS, seed=11))
    assert scale == "minmax"
    assert MethodOptions().choose((), scale="none", seed=0)[0] == TrainingChoice()


def test_auto_keeps_what_was_given_and_leaves_the_scaling_open_where_it_was_not():
    choice, scale = MethodOptions(auto="single").choose(("gamma",), scale="none", seed=0)
    assert (choice.auto, choice.kept, scale) == ("single", ("gamma",), "auto")
    assert MethodOptions(auto="committee").choose(("scale",), scale="none", seed=0)[1] == "none"


def test_every_option_of_the_data_reaches_the_training_input():
    values = {name: name for name in names_of(DataOptions)} | {"scale": "maxabs"}
    source = DataOptions(**values).training_input("standard", groups="g", keep_ids=True)
    values["scale"] = "standard"
    assert source == TrainingInput(**values, groups="g", keep_ids=True)
    assert DataOptions().training_input("none") == TrainingInput()


def test_a_choice_is_refused_with_the_names_to_choose_from():
    assert parse_choice("--pet", "cat", ("cat", "dog", "cow")) == "cat"
    with pytest.raises(CommandLineError, match="--pet is 'Cat'; cat, dog or cow was expected"):
        parse_choice("--pet", "Cat", ("cat", "dog", "cow"))


def test_kernels_go_by_name_in_any_case_or_by_number():
    assert tuple(parse_kernel(str(number)) for number in range(5)) == LIBSVM_KERNELS
    assert tuple(map(parse_kernel, KERNEL_NAMES)) == KERNEL_NAMES
    assert [parse_kernel(name) for name in ("RBF", "polynomial")] == ["rbf", "poly"]
    with pytest.raises(CommandLineError, match="'5'"):
        parse_kernel("5")


@pytest.mark.parametrize(
    ("given", "option"),
    [
        (("-c", "1"), "-c/--c-unl"),
        (("--auto",), "--auto"),
        (("--cache-mb", "100"), "-m/--cache-mb"),
        (("--scale", "none"), "--scale"),
        (("--output", "m"), "-o/--output"),
    ],
)
def test_rank_refuses_options_of_training_beside_a_model(given, option, resvm):
    ran = resvm("rank", "--model", "m", "-P", "p", "-U", "u", *given)
    assert ran.code == 2
    assert f"error: {option} is for training, and --model is trained already" in ran.err
    assert f"leave {option} out, or --model" in ran.err
