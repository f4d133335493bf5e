"""Error messages that name parameters, as rendered by each front end."""

from __future__ import annotations

import pickle

import pytest

from resvm_cli.errors import DataError, Message, ParameterError
from resvm_cli.report.terminal import in_options


@pytest.mark.parametrize(
    ("template", "python", "options"),
    [
        ("{n_pos} is wrong", "n_pos is wrong", "--n-pos is wrong"),
        ("use {kernel:linear}", 'use kernel="linear"', "use --kernel linear"),
        ("use {folds:4}", "use folds=4", "use --folds 4"),
        ("add {force:True}", "add force=True", "add --force"),
        ("give {positives}", "give positives", "give -P"),
        ("drop {resume:True}", "drop resume=True", "drop --resume"),
    ],
)
def test_each_front_end_names_parameters_in_its_own_words(template, python, options):
    message = Message(template)
    assert str(message) == python
    assert in_options(message) == options


def test_values_are_no_templates():
    error = ParameterError("{path}: {n_pos} is {value:.2f}", path="{w_pos}.svm", value=1 / 3)
    assert in_options(error.message) == "{w_pos}.svm: --n-pos is 0.33"
    assert in_options("a literal {n_pos}") == "a literal {n_pos}"


def test_a_message_within_a_message_is_rendered_alike():
    inner = Message("continue with {resume:True}")
    assert in_options(Message("3 are kept; {advice}", advice=inner)) == (
        "3 are kept; continue with --resume"
    )


def test_an_error_has_its_hint_in_python_and_survives_pickling():
    error = ParameterError("{n_pos} must be at least {low}", "lower {n_pos}", low=1)
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert isinstance(one, ValueError)
        assert str(one) == "n_pos must be at least 1\nlower n_pos"
        assert in_options(one.hint) == "lower --n-pos"
    assert repr(error) == "ParameterError('n_pos must be at least 1\\nlower n_pos')"
    data = pickle.loads(pickle.dumps(DataError("a.svm:3: bad", Message("use {zero_based:True}"))))
    assert isinstance(data, ValueError)
    assert str(data) == "a.svm:3: bad\nuse zero_based=True"
