"""What commands refuse, they refuse in the words of tests/golden/refusals, and write nothing.

Each file there has the command lines of one command, what they print and their exit codes. ``make
golden`` writes what they print; read the diff before you commit it.
"""

from __future__ import annotations

import codecs
import re
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from resvm_cli.cli.app import COMMANDS, command_line
from tests.conftest import write_svm
from tests.programs import run_resvm

GOLDEN = Path(__file__).parent / "golden" / "refusals"
OPTION = r"(?<!mkdir )(?<!sort )(?<![\w-])--?[A-Za-z][a-z-]*(?!\w)"
COMMAND = re.compile(r"^(\$ (?:printf '(.*)' \| )?resvm ?(.*))$", re.M)


def make_inputs(folder: Path) -> None:
    """Write the files that the command lines name."""
    rng = np.random.default_rng(7)
    write_svm(folder / "pos.svm", rng.standard_normal((30, 3)).round(2) + 1)
    write_svm(folder / "unl.svm", rng.standard_normal((60, 3)).round(2))
    write_svm(folder / "all.svm", rng.standard_normal((30, 3)).round(2), np.arange(30) % 3)
    write_svm(folder / "only-2.svm", np.ones((4, 2)), np.full(4, 2))
    (folder / "a.pred").write_text("".join(f"1 {n / 8} # row-{n}\n" for n in range(40)))
    for name, labels in {
        "zeros": "1\n0\n" * 20, "none": "-1\n" * 40, "every": "1\n" * 40,
        "one-three": "1\n3\n" * 20, "three": "1\n0\n-1\n1\n" * 10, "not-a-number": "1\nnan\n" * 20,
        "empty": "", "ids": "row-1\nrow-2\n", "foreign": "BRCA1\nTP53\n",
    }.items():  # fmt: skip
        (folder / name).write_text(labels)
    (folder / "d.csv").write_text("id,y,mw\na,g,1.5\nb,h,0\nc,,2\n")
    for name, text in {
        "list": "[]", "text": "x", "twice": '{"kind": "resvm-params", "kind": "resvm-params"}',
        "deep": "[" * 100_000, "else": '{"kind": "else"}',
        "newer": '{"kind": "resvm-params", "format": 9}',
        "many": '{"kind": "resvm-params", "format": 1, "method": "resvm", "decision": "votes",'
                ' "settings": [{"n_pos": "many"}]}',
    }.items():  # fmt: skip
        (folder / f"{name}.json").write_text(text)
    data = ("train", "--no-auto", "-P", "pos.svm", "-U", "unl.svm", "-q", "-o")
    for words in (("model", "--n-models", 9), ("bagging", "--method", "bagging")):
        assert run_resvm(*data, *words, cwd=folder).code == 0


def sessions(text: str, folder: Path) -> str:
    """Run the command lines of a file; return the file as it should be."""
    before = sorted(folder.rglob("*"))
    found = []
    for shown, stdin, line in COMMAND.findall(text):
        given = codecs.escape_decode(stdin.encode())[0]
        ran = run_resvm(*shlex.split(line), cwd=folder, stdin=given)
        assert ran.out == b"", line
        assert sorted(folder.rglob("*")) == before, line
        found.append(f"{shown}\n{ran.err}[{ran.code}]\n")
    return "\n".join(found)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    make_inputs(folder)
    return folder


@pytest.mark.parametrize("name", [path.stem for path in sorted(GOLDEN.iterdir())])
def test_what_is_refused_is_told_in_these_words(name, inputs):
    text = (GOLDEN / f"{name}.txt").read_text()
    assert sessions(text, inputs) == text
    assert set(re.findall(r"^\[(.+)\]$", text, re.M)) <= {"2", "3", "4", "5"}


def test_hints_name_only_options_that_the_command_has():
    commands = command_line(COMMANDS).commands
    for path in GOLDEN.iterdir():
        for hint in re.findall(r"(?m)^  hint: (.*)$", path.read_text()):
            # after the name of another command, options are those of that command
            names = re.split(rf"\b({'|'.join(COMMANDS)})\b", f"{path.stem} {hint}")
            for command, text in zip(names[1::2], names[2::2], strict=True):
                options = {word for each in commands[command].params for word in each.opts}
                named = set(re.findall(OPTION, text))
                assert named <= {*options, "--help"}, (command, hint)


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        make_inputs(Path(name))
        for path in [Path(each) for each in sys.argv[1:]] or sorted(GOLDEN.iterdir()):
            path.write_text(sessions(path.read_text(), Path(name)))
