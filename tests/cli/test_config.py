"""--config: options from a TOML file, which the command line overrides."""

from __future__ import annotations

from pathlib import Path

import pytest

from resvm_cli.cli.app import COMMANDS, command_line
from resvm_cli.cli.option_groups import explicit_options
from resvm_cli.errors import CommandLineError, FileError, ParameterError

PROGRAM = command_line(COMMANDS)


def parsed(folder: Path, text: str, *words: str, command: str = "train"):
    """Return the context of a command with these words after --config."""
    (folder / "run.toml").write_text(text)
    one = PROGRAM
    for name in command.split():
        one = one.commands[name]
    return one.make_context(f"resvm {command}", ["--config", str(folder / "run.toml"), *words])


def test_values_of_every_kind_arrive_as_if_typed(tmp_path):
    text = (
        '[train]\npositives = "p.svm"\nunlabeled = "-"\nn-models = 7\ngamma = 0.5\n'
        'kernel = 2\nforce = true\nw-pos = 3\nno-auto = true\nseed = 4\nscale = "none"\n'
        "[rank]\ntop = 3\n"
    )
    context = parsed(tmp_path, text)
    expected = {
        "positives": "p.svm", "unlabeled": "-", "n_models": 7, "gamma": "0.5", "kernel": "2",
        "force": True, "w_pos": 3.0, "no_auto": True, "seed": 4, "scale": "none",
    }  # fmt: skip
    assert {name: context.params[name] for name in expected} == expected
    assert explicit_options(context) == set(expected)


def test_the_command_line_wins(tmp_path):
    text = "[train]\nn-models = 7\nseed = 4\n"
    context = parsed(tmp_path, text, "--n-models", "3")
    assert (context.params["n_models"], context.params["seed"]) == (3, 4)
    assert parsed(tmp_path, text, "--seed", "0").params["seed"] == 0


def test_a_flag_that_is_false_counts_as_not_given(tmp_path):
    context = parsed(tmp_path, "[rank]\nno-auto = false\nforce = false\n", command="rank")
    assert not explicit_options(context)
    assert parsed(tmp_path, "[rank]\nno-auto = true\n", command="rank").params["no_auto"]


def test_repeated_options_take_lists(tmp_path):
    for text in ('["a", "b,c"]', '["a", "b,c"]  # again'):
        context = parsed(tmp_path, f"[convert]\ndrop = {text}\n", "x.csv", command="convert")
        assert list(context.params["drop"]) == ["a", "b,c"]
    context = parsed(tmp_path, '[convert]\ndrop = "a"\n', "x.csv", command="convert")
    assert list(context.params["drop"]) == ["a"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[train]\nn_models = 7", "resvm train has no option 'n_models'\ndid you mean n-models?"),
        ("[train]\ngama = 7", "resvm train has no option 'gama'\ndid you mean gamma?"),
        ("[train]\ntop = 7", "resvm train has no option 'top'"),
        ("[train]\nconfig = 'x'", "resvm train has no option 'config'"),
        ("[trian]\nseed = 7", "there is no command 'trian'\ndid you mean [train]?"),
        ("seed = 7", "there is no command 'seed'"),
        ("train = 7", "train is not a table\nput the options below [train]"),
        ("[rank]\nseed = 7", "no options in [train]\nthe file contains [rank]"),
        ("", "no options in [train]\nthe file contains nothing"),
        ("[train]\nseed = '7'", "seed in [train] must be an integer, got '7'"),
        ("[train]\nseed = 7.5", "seed in [train] must be an integer, got 7.5"),
        ("[train]\nseed = true", "seed in [train] must be an integer, got True"),
        ("[train]\nforce = 1", "force in [train] must be true or false, got 1"),
        ("[train]\nw-pos = 'x'", "w-pos in [train] must be a number, got 'x'"),
        ("[train]\npositives = ['a']", "positives in [train] must be text, got ['a']"),
        ("[train]\nno-header = 1", "no-header in [train] must be true or false, got 1"),
        ("[train]\nseed = ", "not a TOML file: "),
    ],
)
def test_mistakes_are_named_with_file_and_key(text, words, tmp_path):
    with pytest.raises(CommandLineError) as caught:
        parsed(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/run.toml: {words}")


def test_ranges_are_checked_as_on_the_command_line(tmp_path):
    with pytest.raises(Exception, match="0 is not in the range x>=1"):
        parsed(tmp_path, "[train]\njobs = 0\n")


def test_a_missing_file_is_an_error_of_reading(tmp_path):
    command = PROGRAM.commands["train"]
    with pytest.raises(FileError, match="cannot read"):
        command.make_context("resvm train", ["--config", str(tmp_path / "none.toml")])


def test_the_file_and_its_paths_take_part_in_the_check_of_outputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text('[rank]\npositives = "p.svm"\nunlabeled = "u.svm"\n')
    words = ["rank", "--config", "run.toml", "--html"]
    for output, option in (("run.toml", "--config"), ("p.svm", "-P/--positives")):
        with pytest.raises(ParameterError) as caught:
            PROGRAM([*words, output], prog_name="resvm", standalone_mode=False)
        assert f"--html would write to {output}, which is an input ({option})" in str(caught.value)
    assert Path("run.toml").read_text().startswith("[rank]")
