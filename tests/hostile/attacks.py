"""Mutated files given to the real command line.

The oracle: an exit code from 0 and 2 to 5, words of ours on stderr, no traceback, within 4 GB.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.hostile import mutations
from tests.hostile.oracle import reproach, require, resvm


class Standing:
    """A copy of a directory whose files are changed for as long as it takes to read them."""

    def __init__(self, source: Path, place: Path) -> None:
        shutil.copytree(source, place)
        self.path = place
        self.files = {
            str(path.relative_to(place)): path.read_bytes()
            for path in place.rglob("*")
            if path.is_file()
        }

    @contextmanager
    def changed(self, files: dict[str, bytes]) -> Iterator[None]:
        for name, text in files.items():
            (self.path / name).write_bytes(text)
        try:
            yield
        finally:
            for name in files:
                (self.path / name).write_bytes(self.files[name])


def _text(text: bytes, rng: Random) -> bytes:
    return mutations.packed(mutations.mutated_text(text, rng), rng)


def single_files(problem: Path, x: Path) -> list[tuple[str, str, Callable, list[object]]]:
    """What each is, the sound file, how it is changed, and the command that reads it."""
    sets = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    few = ["--n-models", 3, "-q"]
    known = ["--labels", problem / "labels", "--bootstrap", 0]
    document = mutations.mutated_document
    return [
        ("P", "pos.svm", _text, ["train", "--no-auto", "-P", x, "-U", problem / "unl.svm", *few]),
        ("U", "unl.svm", _text, ["train", "--no-auto", "-P", problem / "pos.svm", "-U", x, *few]),
        ("rows", "test.svm", _text, ["predict", problem / "m", x, "--ids", "--format", "csv"]),
        ("rows, checked", "test.svm", _text, ["check", x]),
        ("predictions", "pred.tsv", _text, ["score", x, *known]),
        ("predictions, jsonl", "pred.jsonl", _text, ["score", x, *known]),
        ("parameters", "t/best.json", document, ["train", "--no-auto", *sets, "--params", x]),
        ("table", "table.csv", _text,
         ["convert", x, "-q", "--id-column", "id", "--label-column", "label"]),
        ("feature map", "map.json", document,
         ["convert", problem / "table.csv", "-q", "--like", x]),
    ]  # fmt: skip


def through_the_program(problem: Path, folder: Path, seed: int) -> Iterator[str]:
    """One file after the other, for ever; yields what each was."""
    rng = Random(seed)
    x = folder / "mutated"
    target = folder / "written"
    kinds = single_files(problem, x)
    directories = _directories(problem, folder)
    while True:
        for name, file, mutate, command in kinds:
            text = mutate((problem / file).read_bytes(), rng)
            x.write_bytes(text)
            shutil.rmtree(target, ignore_errors=True)
            place = ["-o", target] if command[0] in ("train", "tune") else []
            require(name, text, resvm(*command, *place))
            yield name
        for strike in directories:
            yield strike(rng)


def _directories(problem: Path, folder: Path) -> list[Callable[[Random], str]]:
    """Attacks on models, parts and tunings."""
    strikes: list[Callable[[Random], str]] = []
    sets = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    for name in ("m", "linear", "committee"):
        model = Standing(problem / name, folder / f"attacked-{name}")
        test = [model.path, problem / "test.svm"]
        strikes += [
            _read(model, name, command)
            for command in (
                ["inspect", model.path],
                ["predict", *test, "-T", "recall=0.9"],
                ["predict", *test, "--votes", "--decision", "mean"],
                ["rank", *sets, "--model", model.path],
            )
        ]
    for name, other in (("part-1", "part-2"), ("part-2", "part-1")):
        part = Standing(problem / name, folder / f"attacked-{name}")
        strikes.append(_merged(part, problem / other, folder / "merged"))
    strikes.append(_part_continued(problem, folder))
    for name, mutate in (
        ("trials.jsonl", mutations.mutated_log),
        ("settings.json", mutations.mutated_document),
    ):
        strikes.append(_resumed(problem, folder / "resumed", name, mutate, sets))
    return strikes


def _read(model: Standing, name: str, command: list[object]) -> Callable[[Random], str]:
    def strike(rng: Random) -> str:
        files = mutations.mutated_model(model.files, rng)
        with model.changed(files):
            require(f"model, {name}", files["manifest.json"], resvm(*command))
        return f"model, {name}, {command[0]}"

    return strike


def _merged(part: Standing, other: Path, target: Path) -> Callable[[Random], str]:
    def strike(rng: Random) -> str:
        files = mutations.mutated_part(part.files, rng)
        shutil.rmtree(target, ignore_errors=True)
        with part.changed(files):
            ran = resvm("merge", part.path, other, "-q", "-o", target)
        text = next(iter(files.values()))
        require("part", text, ran)
        if ran.code == 0 and resvm("inspect", target).code != 0:
            reproach("part", text, "merged, and cannot be read")
        if ran.code != 0 and target.exists():
            reproach("part", text, "refused, and something was written")
        return "merge of parts"

    return strike


def _part_continued(problem: Path, folder: Path) -> Callable[[Random], str]:
    part = Standing(problem / "part-2", folder / "attacked-continued")
    data = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "--n-models", 3]

    def strike(rng: Random) -> str:
        files = mutations.mutated_part(part.files, rng)
        with part.changed(files):
            ran = resvm("train", "--no-auto", *data, "--task", "2/2", "-o", part.path)
        require("part, continued", next(iter(files.values())), ran)
        return "part, continued"

    return strike


def _resumed(
    problem: Path, place: Path, name: str, mutate: Callable, sets: list[object]
) -> Callable[[Random], str]:
    more = ["--n-models", 3, "--trials", 3, "--no-extend", "-o", place, "--resume"]

    def strike(rng: Random) -> str:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(problem / "t", place)
        text = mutate((place / name).read_bytes(), rng)
        (place / name).write_bytes(text)
        require(name, text, resvm("tune", *sets, *more))
        return f"{name}"

    return strike
