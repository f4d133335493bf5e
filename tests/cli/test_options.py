"""What options of data and method become: parameters and a training input."""

from __future__ import annotations

import pytest

from resvm_cli.cli.option_groups import (
    names_of,
)
from resvm_cli.cli.options import DataOptions, MethodOptions, TableOptions, given_values
from resvm_cli.data.encoding import ColumnRoles
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.errors import CommandLineError
from resvm_cli.parameters import (
    TABLE,
    Params,
)
from resvm_cli.tuning.choice import read_params

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
}


def chosen(options, others, explicit):
    return read_params(given_values({**vars(options), **others}, explicit))


def test_every_option_of_the_method_reaches_the_parameters():
    assert set(names_of(MethodOptions)) == {*TABLE, "no_auto"} - {"seed", "auto"}
    given = {**PARAMETERS, "gamma": "0.25", "kernel": "1"}
    del given["c_pos"]  # not for bagging
    del given["w_pos"], given["n_pos"], given["bias"]
    options = MethodOptions(**given, scale="minmax", no_auto=True)
    found = chosen(options, {"seed": 11}, {*given, "scale", "seed", "no_auto"})
    expected = {**{name: PARAMETERS[name] for name in given}, "scale": "minmax", "auto": False}
    assert found == Params(**expected, seed=11, said=frozenset({*expected, "seed"}))
    assert found.data_scale == "minmax"
    assert chosen(MethodOptions(), {}, ()) == Params()


@pytest.mark.parametrize(
    ("given", "scale", "said"),
    [({}, "auto", set()), ({"scale": "auto"}, "auto", set()), ({"scale": "none"}, None, {"scale"})],
)
def test_a_search_may_try_other_scalings_unless_one_is_set(given, scale, said):
    found = chosen(MethodOptions(**given), {}, given)
    assert (found.searched, found.data_scale, found.said) == (True, scale, said)


def test_every_option_of_the_data_reaches_the_training_input():
    values = {name: name for name in names_of(DataOptions)}
    values |= {"positive_label": ["1"], "known_negatives": ["label=-1"]}
    table = TableOptions(
        id_column="i",
        label_column="y",
        columns=["a,b", "c"],
        drop=["d"],
        categorical=["e"],
        missing="mean",
        no_header=True,
    )
    source = DataOptions(**values).training_input(table, scale="standard", groups="g")
    roles = ColumnRoles(
        label="y",
        positive_labels=("1",),
        negative_labels=("-1",),
        row_id="i",
        only=("a", "b", "c"),
        dropped=("d",),
        categories=("e",),
        missing="mean",
        header=False,
    )
    values |= {"scale": "standard", "positive_label": 1.0, "negative_label": -1.0}
    values["known_negatives"] = None
    values["table"] = roles
    assert source == TrainingInput(**values, groups="g")
    assert DataOptions().training_input(TableOptions(), scale=None) == TrainingInput()


@pytest.mark.parametrize("data", [None, "all.csv"])
def test_known_negatives_are_a_file_or_labels(data, tmp_path):
    source = DataOptions(data=data, known_negatives=[str(tmp_path)])
    assert source.training_input(TableOptions()).known_negatives == str(tmp_path)
    source = DataOptions(data=data, known_negatives=["label=no", "label=never"])
    found = source.training_input(TableOptions())
    assert (found.known_negatives, found.negative_label) == (None, None)
    assert found.table.negative_labels == ("no", "never")
    for given in (["a.txt", "b.txt"], [str(tmp_path), "label=no"]):
        with pytest.raises(CommandLineError, match="was given 2 times; expected one file"):
            DataOptions(data=data, known_negatives=given).training_input(TableOptions())


def test_a_label_without_its_prefix_is_explained():
    source = DataOptions(data="all.csv", known_negatives=["not active"])
    with pytest.raises(CommandLineError, match="there is no file 'not active'") as caught:
        source.training_input(TableOptions())
    assert caught.value.hint == "to name a label, write -N 'label=not active'"
