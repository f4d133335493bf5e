"""Messages that name options, in the words of Python."""

from __future__ import annotations

import pytest

from resvm_cli.api.parameter_names import InputError, ParameterError, named, parameters_named
from resvm_cli.errors import CommandLineError, DataError, ModelError


@pytest.mark.parametrize(
    ("option", "parameter"),
    [
        ("--n-pos is 0; it must be at least 1", "n_pos is 0; it must be at least 1"),
        ("-B/--bias is for LIBLINEAR", "bias is for LIBLINEAR"),
        ("add -t linear --solver liblinear", 'add kernel="linear" solver="liblinear"'),
        ("(--scale auto, or lower -c)", '(scale="auto", or lower c_unl)'),
        ("--auto judges out of bag", "auto judges out of bag"),
        ("another place with -o, or add --force", "another place with path, or add force=True"),
        ("-1 is out-of-bag, row-by-row, a -x b", "-1 is out-of-bag, row-by-row, a -x b"),
        ("use resvm tune, which judges by folds", "use tune, which judges by folds"),
        ("--seed is -1", "seed is -1"),
        ("--coef0 is nan", "coef0 is nan"),
        ("try: resvm convert a.csv -o b.svm", "try: resvm convert a.csv -o b.svm"),
        ("resvm check F -q; or --force", "resvm check F -q; or force=True"),
    ],
)
def test_options_become_parameters(option, parameter):
    assert named(option) == parameter


@pytest.mark.parametrize(
    ("raised", "kind"), [(CommandLineError, ParameterError), (DataError, InputError)]
)
def test_errors_of_the_caller_are_value_errors_with_their_hint(raised, kind):
    with (
        pytest.raises(ValueError, match=r"n_pos is wrong\nlower n_pos") as caught,
        parameters_named(),
    ):
        raise raised("--n-pos is wrong", "lower --n-pos")
    assert type(caught.value) is kind
    assert isinstance(caught.value, raised)


def test_errors_pass_two_contexts_and_keep_their_kind():
    with (
        pytest.raises(ParameterError, match=r"^seed is -1\nhint$"),
        parameters_named(),
        parameters_named(),
    ):
        raise CommandLineError("--seed is -1", "hint")


def test_other_errors_stay_what_they_are():
    with pytest.raises(ModelError, match="force=True"), parameters_named():
        raise ModelError("add --force")
