"""Messages name parameters in backticks; the command line shows them as options."""

from __future__ import annotations

import pickle

import pytest

from resvm_cli.cli.terminal import in_options
from resvm_cli.errors import DataError, ParameterError


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("`n_pos` must be at least 1, got 0", "--n-pos must be at least 1, got 0"),
        ("use `kernel='linear'`", "use --kernel linear"),
        ("use `folds=4` or fewer", "use --folds 4 or fewer"),
        ("add `force=True`", "add --force"),
        ("give `positives` (`feature_map`)", "give -P (--map)"),
        ("choose another `path`", "choose another -o"),
        ("`header=False`, `intervals=False`", "--no-header, --no-interval"),
        ("omit it: `drop='my column'`", "omit it: --drop 'my column'"),
        ('omit it: `drop="it\'s"`', "omit it: --drop 'it'\"'\"'s'"),
    ],
)
def test_the_command_line_shows_parameters_as_options(message, options):
    assert in_options(message) == options


@pytest.mark.parametrize(
    "text",
    [
        "n_pos is no parameter here",
        "a column '`age`' of a dump",
        "`resvm train --help-all` lists all options",
        "`drop='back\\\\slash'`",
        "``n_pos",
    ],
)
def test_other_text_stays_as_it_is(text):
    assert in_options(text) == text


def test_an_error_has_its_hint_in_python_and_survives_pickling():
    error = ParameterError("`n_pos` must be at least 1", "lower `n_pos`")
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert isinstance(one, ValueError)
        assert str(one) == "`n_pos` must be at least 1\nlower `n_pos`"
        assert one.hint == "lower `n_pos`"
    assert repr(error) == "ParameterError('`n_pos` must be at least 1\\nlower `n_pos`')"
    assert str(DataError("a.svm:3: bad")) == "a.svm:3: bad"
