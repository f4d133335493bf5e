"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.programs import run

README = (ROOT / "README.md").read_text()
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


TUTORIAL = (ROOT / "docs" / "tutorial-compounds.md").read_text()


def sessions(text: str) -> list[tuple[str, str]]:
    """(command, output shown) of every console block, in order."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            found.append((command, shown))
    return found


@pytest.mark.parametrize("text", [README, TUTORIAL], ids=["readme", "tutorial"])
def test_every_command_of_the_session_prints_what_is_shown(text, tmp_path):
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    tools = tmp_path / "bin"
    tools.mkdir()
    script = tools / "resvm"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m resvm_cli "$@"\n')
    script.chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    for command, shown in sessions(text):
        ran = run(["sh", "-c", command], cwd=tmp_path, env={"PATH": path})
        assert ran.code == 0, ran.err
        printed = ran.out.decode() + ran.err
        # versions are those of the machine; other numbers may differ in their last digits
        printed, shown = (re.sub(r"versions .*", "versions", text) for text in (printed, shown))
        assert NUMBER.sub("0", printed) == NUMBER.sub("0", shown), command
        assert [float(n) for n in NUMBER.findall(printed)] == pytest.approx(
            [float(n) for n in NUMBER.findall(shown)], rel=1e-6
        )


def test_the_session_covers_every_command():
    shown = sessions(README) + sessions(TUTORIAL)
    used = {command for line, _ in shown for command in re.findall(r"resvm ([a-z]+)", line)}
    commands = {path.stem for path in (ROOT / "resvm_cli" / "commands").glob("[a-z]*.py")}
    # a benchmark takes hours; docs/benchmark.md has its own test
    assert used == {name for name in commands if not name.startswith("benchmark")}


@pytest.mark.parametrize(
    "command",
    [
        "train",
        "merge",
        "predict",
        "tune",
        "score",
        "rank",
        "inspect",
        "simulate",
        "check",
        "convert",
    ],
)
def test_every_command_and_option_is_documented(command, resvm):
    assert f"### {command}\n" in README
    shown = resvm(command, "--help").out.decode()
    section = README.split(f"### {command}\n")[1].split("\n##")[0]
    whole = section + README.split("## Input")[1].split("## The model")[0]
    if command in ("tune", "simulate", "rank"):  # they share options with train
        whole += README.split("### train")[1].split("### predict")[0]
    options = set(re.findall(r"(--[a-z][a-z0-9-]+)", shown)) - {"--help"}
    shared = {"--output", "--positives", "--unlabeled", "--quiet", "--json", "--degree", "--coef0"}
    shared |= {"--tolerance", "--cache-mb", "--threshold"}  # named by their letters
    missing = {option for option in options - shared if option not in whole}
    assert not missing


def test_make_targets_named_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:`|^    )make ([a-z]+)", README, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_no_machine_path_is_written_anywhere():
    tracked = run(["git", "ls-files"], cwd=ROOT).out.decode().split()
    for name in tracked:
        path = Path(ROOT / name)
        if path.suffix in (".py", ".md", ".toml", ".c", ".sh", "") and path.is_file():
            text = path.read_text(errors="replace")
            assert not re.search(r"/(home|root|Users|work)/", text.replace("(home|root|", "")), name
