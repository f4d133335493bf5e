"""Inputs that do not belong together, and outputs that are inputs.

For every command each pair of inputs is exchanged, shared and copied onto one another, each input
is given in another encoding, lists of inputs repeat one, files with one line per row lack a line
or have one too many; each output is an input, a link to one, inside one, or another output.

The oracle: a result other than that of the sound files comes with a note, or the command refuses.
An output never changes an input; onto one it is refused as a wrong command line.
"""

from __future__ import annotations

import bz2
import gzip
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, permutations
from pathlib import Path

import numpy as np

from tests.conftest import write_svm
from tests.hostile.forked import resvm
from tests.hostile.harm import CODES, harms
from tests.programs import Ran

ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda text: gzip.compress(text, mtime=0),
    "bzip2": bz2.compress,
    "CRLF": lambda text: text.replace(b"\n", b"\r\n"),
    "byte-order mark": lambda text: b"\xef\xbb\xbf" + text,
    "no last newline": lambda text: text.removesuffix(b"\n"),
}
BINARY = (".npy", ".npz", ".parquet", ".h5")
TOLD = ("note", "warning")  # how a line starts that tells of something unusual


@dataclass(frozen=True)
class Command:
    """Words with {names} of inputs and outputs, the sound files, and those with a line per row."""

    name: str
    words: str
    inputs: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    aligned: tuple[str, ...] = ()
    repeated: str = ""  # the input of which there may be several


FEW = "--n-models 20 --n-pos 10 --n-unl 12"
SETS = {"P": "pos.svm", "U": "unl.svm"}
COMMANDS = (
    Command(
        "train",
        f"train -P {{P}} -U {{U}} --weights {{weights}} --groups {{groups}} {FEW} -o {{model}}",
        {**SETS, "weights": "weights", "groups": "groups"},
        {"model": "new"},
        ("weights", "groups"),
    ),
    Command(
        "train, one file",
        "train --data {data} --positive-ids {ids} --ids-file {names} --n-models 20 --n-pos 5"
        " --n-unl 10 -o {model}",
        {"data": "test.svm", "ids": "ids", "names": "names"},
        {"model": "new"},
        ("names",),
    ),
    Command(
        "train, parameters",
        "train -P {P} -U {U} --params {params} -o {model}",
        {**SETS, "params": "t/best.json"},
        {"model": "new"},
    ),
    Command(
        "predict",
        "predict {model} {rows} --ids -o {out}",
        {"model": "m", "rows": "test.svm"},
        {"out": "new.pred"},
        repeated="rows",
    ),
    Command(
        "predict, folder",
        "predict {model} {rows} --out-dir {folder}",
        {"model": "m", "rows": "test.svm"},
        {"folder": "new"},
        repeated="rows",
    ),
    Command(
        "tune",
        "tune -P {P} -U {U} --groups {groups} --folds 3 --n-models 3 --trials 2 --no-extend"
        " -o {folder}",
        {**SETS, "groups": "groups"},
        {"folder": "new"},
        ("groups",),
    ),
    Command(
        "rank",
        f"rank -P {{P}} -U {{U}} --negatives {{negatives}} {FEW} --why 2 --why-out {{why}}"
        " --html {page} -o {model}",
        {**SETS, "negatives": "negatives.svm"},
        {"why": "new.jsonl", "page": "new.html", "model": "new"},
    ),
    Command(
        "rank, model",
        "rank -P {P} -U {U} --model {model} --html {page}",
        {**SETS, "model": "small"},
        {"page": "new.html"},
    ),
    Command(
        "score",
        "score {predictions} --labels {labels} --bootstrap 0 --html {page} --curve {curve}",
        {"predictions": "pred.tsv", "labels": "test.svm"},
        {"page": "new.html", "curve": "new.csv"},
        repeated="predictions",
    ),
    Command(
        "score, labels in order",
        "score {predictions} --labels {labels} --bootstrap 0",
        {"predictions": "plain.pred", "labels": "labels"},
        aligned=("labels",),
    ),
    Command(
        "score, ids",
        "score {predictions} --positive-ids {ids} --bootstrap 0 --curve {curve}",
        {"predictions": "pred.csv", "ids": "ids"},
        {"curve": "new.csv"},
    ),
    Command(
        "merge",
        "merge {first} {second} -o {model}",
        {"first": "part-1", "second": "part-2"},
        {"model": "new"},
        repeated="first",
    ),
    Command(
        "convert",
        "convert {table} --id-column id --label-column label -o {rows} --map {map}",
        {"table": "table.csv"},
        {"rows": "new.svm", "map": "new.json"},
    ),
    Command(
        "convert, map",
        "convert {table} --like {like} -o {rows}",
        {"table": "table.csv", "like": "map.json"},
        {"rows": "new.svm"},
    ),
    Command("check", "check {rows}", {"rows": "test.svm"}, repeated="rows"),
    Command(
        "inspect",
        "inspect {model} --weights --map {map}",
        {"model": "linear", "map": "map.json"},
    ),
    Command(
        "simulate",
        "simulate --data {data} --positive-label 1 --n-pos 10 --n-unl 20 -o {folder}",
        {"data": "bench.svm"},
        {"folder": "new"},
    ),
    Command(
        "benchmark report",
        "benchmark report {run} --markdown {text} --csv {table} --html {page}",
        {"run": "bench"},
        {"text": "new.md", "table": "new.csv", "page": "new.html"},
        repeated="run",
    ),
)

QUICK = ("is", "a line too few", "repeated")  # the relations that make test tries
ROWS = {"P", "U", "negatives"}  # any sets of rows may be these, in any order
LISTED = ("score", "check")  # they report every file they are given, also one given twice
TIMED = ("timings.jsonl", "times.jsonl")  # not the same in any two runs


@dataclass(frozen=True)
class Case:
    """A change of a command's paths, and the files to make for it first."""

    command: Command
    relation: str
    of: str
    onto: str
    prepare: Callable[[Path, dict[str, Path]], None]  # makes files and changes paths
    writes_onto_input: bool = False

    @property
    def name(self) -> str:
        return f"{self.command.name}: {self.of} {self.relation} {self.onto}".rstrip()


def make_more_files(folder: Path) -> None:
    """What the commands above need beside the sound files of every kind."""
    rng = np.random.default_rng(8)
    write_svm(folder / "negatives.svm", rng.standard_normal((15, 4)) - 1)
    (folder / "weights").write_text("".join(f"{0.5 + n / 40}\n" for n in range(20)))
    (folder / "plain.pred").write_bytes(
        b"".join(line.partition(b" #")[0] + b"\n" for line in _lines(folder / "pred.text"))
    )
    sets = ["-P", folder / "pos.svm", "-U", folder / "unl.svm", "-q", *FEW.split()]
    ran = resvm("train", *sets, "-o", folder / "small")
    assert ran.code == 0, ran.err


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def input_cases(command: Command, files: Path) -> Iterator[Case]:
    """Inputs that are exchanged, shared, copied, encoded, repeated or misaligned."""
    names = list(command.inputs)
    for one, other in combinations(names, 2):
        yield Case(command, "exchanged", one, other, _exchange(one, other))
    for one, other in permutations(names, 2):
        yield Case(command, "shared", one, other, _share(one, other))
        yield Case(command, "copied", one, other, _copy(one, other))
    for name in names:
        path = files / command.inputs[name]
        if path.is_file() and path.suffix not in BINARY:
            for encoding, encode in ENCODINGS.items():
                yield Case(command, encoding, name, "", _rewrite(name, encode))
    for name in command.aligned:
        yield Case(command, "a line too few", name, "", _rewrite(name, _without_a_line))
        yield Case(command, "a line too many", name, "", _rewrite(name, _with_a_line_twice))
    if command.repeated:
        yield Case(command, "repeated", command.repeated, "", _repeat)


def output_cases(command: Command, files: Path) -> Iterator[Case]:
    """Outputs that are an input, or lead to one."""
    for output in command.outputs:
        for name, file in command.inputs.items():
            is_file = (files / file).is_file()
            yield Case(command, "is", output, name, _share(output, name), True)
            yield Case(command, "is a link to", output, name, _link(output, name), True)
            if is_file:
                yield Case(command, "is a hard link to", output, name, _hard(output, name), True)
            yield Case(command, "is inside", output, name, _inside(output, name))
        yield Case(command, "contains", output, "all inputs", _contain(output))
        if (files / command.inputs[name]).is_dir():
            for file in sorted((files / command.inputs[name]).rglob("*")):
                if file.is_file():
                    inner = file.relative_to(files / command.inputs[name])
                    yield Case(
                        command, f"is {inner} of", output, name, _inner(output, name, inner), True
                    )
    for one, other in combinations(command.outputs, 2):
        yield Case(command, "is", one, other, _share(one, other), True)


Prepare = Callable[[Path, dict[str, Path]], None]


def _exchange(one: str, other: str) -> Prepare:
    def prepare(folder: Path, paths: dict[str, Path]) -> None:
        paths[one], paths[other] = paths[other], paths[one]

    return prepare


def _share(one: str, other: str) -> Prepare:
    def prepare(folder: Path, paths: dict[str, Path]) -> None:
        paths[one] = paths[other]

    return prepare


def _copy(one: str, other: str) -> Prepare:
    def prepare(folder: Path, paths: dict[str, Path]) -> None:
        copied = folder / f"copied{paths[other].suffix}"
        if paths[other].is_dir():
            shutil.copytree(paths[other], copied)
        else:
            shutil.copy(paths[other], copied)
        paths[one] = copied

    return prepare


def _rewrite(name: str, change: Callable[[bytes], bytes]) -> Prepare:
    def prepare(folder: Path, paths: dict[str, Path]) -> None:
        paths[name].write_bytes(change(paths[name].read_bytes()))

    return prepare


def _repeat(folder: Path, paths: dict[str, Path]) -> None:
    """By run() itself."""


def _link(output: str, name: str) -> Prepare:
    def prepare(folder: Path, paths: dict[str, Path]) -> None:
        link = folder / f"link{paths[output].suffix}"
        link.symlink_to(paths[name])
        paths[output] = link

    return prepare


def _hard(output: str, name: str) -> Prepare:
    def prepare(folder: Path, paths: dict[str, Path]) -> None:
        link = folder / f"hard{paths[output].suffix}"
        link.hardlink_to(paths[name])
        paths[output] = link

    return prepare


def _inside(output: str, name: str) -> Prepare:
    def prepare(folder: Path, paths: dict[str, Path]) -> None:
        paths[output] = paths[name] / paths[output].name

    return prepare


def _inner(output: str, name: str, file: Path) -> Prepare:
    def prepare(folder: Path, paths: dict[str, Path]) -> None:
        paths[output] = paths[name] / file

    return prepare


def _contain(output: str) -> Prepare:
    def prepare(folder: Path, paths: dict[str, Path]) -> None:
        paths[output] = folder / "in"

    return prepare


def _without_a_line(text: bytes) -> bytes:
    return text[: text.rindex(b"\n", 0, -1) + 1]


def _with_a_line_twice(text: bytes) -> bytes:
    return text + text.splitlines(keepends=True)[-1]


@dataclass(frozen=True)
class Result:
    """How a command ended, what it wrote and told, and whether its inputs are unchanged."""

    ran: Ran
    written: dict[str, bytes]
    told: frozenset[str]
    inputs_kept: bool


def run(command: Command, files: Path, folder: Path, case: Case | None = None) -> Result:
    """Run a command in a folder of its own on copies of its inputs."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "in").mkdir(parents=True)
    paths = {}
    for name, file in command.inputs.items():
        paths[name] = folder / "in" / Path(file).name
        if not paths[name].exists():
            copy = shutil.copytree if (files / file).is_dir() else shutil.copy
            copy(files / file, paths[name])
    paths |= {name: folder / file for name, file in command.outputs.items()}
    if case is not None:
        case.prepare(folder, paths)
    before = _contents(folder / "in")
    words: list[object] = []
    for word in command.words.split():
        name = word[1:-1]
        words.append(paths[name] if word.startswith("{") else word)
        if case is not None and case.relation == "repeated" and name == command.repeated:
            words.append(paths[name])
    ran = resvm(*words)
    after = _contents(folder / "in")
    written = {
        name: text
        for name, file in command.outputs.items()
        for name, text in _contents(folder / file).items()
        if not name.startswith(".")  # digests of what was read
    }
    told = frozenset(
        line.strip()
        for line in (ran.err + ran.out.decode(errors="replace")).splitlines()
        if line.strip().startswith(TOLD)
    )
    place = str(folder).encode()
    written = {name: text.replace(place, b"") for name, text in written.items()}
    return Result(
        ran,
        {"stdout": ran.out.replace(place, b""), **written},
        told,
        before == {name: after.get(name) for name in before},
    )


def _contents(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return {path.name: path.read_bytes()}
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name not in TIMED
    }


def wrong(case: Case, sound: Result, found: Result) -> str | None:
    """What is wrong with the result of a case; None if nothing is."""
    ran = found.ran
    if ran.code not in CODES or "Traceback" in ran.err:
        return f"exit {ran.code}: {ran.err[-300:]}"
    if not found.inputs_kept:
        return "an input was changed"
    if case.writes_onto_input and ran.code != 2:
        return f"exit {ran.code} instead of 2: {ran.err[-300:]}"
    if ran.code != 0 and not ran.err.strip():
        return "refused without a word"
    is_input_case = case.of in case.command.inputs
    changed = found.written != sound.written
    if is_input_case and ran.code == 0 and changed and not found.told - sound.told:
        return None if _is_sound(case) else "another result without a note"
    return None


def _is_sound(case: Case) -> bool:
    """Whether the files of a case are as good as the sound ones, and no note could be given."""
    if case.relation == "exchanged" and {case.of, case.onto} <= ROWS:
        return True
    if case.relation == "repeated" and case.command.name in LISTED:
        return True
    # one column is decision values; of labels only the first field of a line is read
    in_order = case.command.name == "score, labels in order"
    return in_order and case.relation in ("exchanged", "copied")


def all_cases(files: Path) -> list[Case]:
    return [
        case
        for command in COMMANDS
        for cases in (input_cases, output_cases)
        for case in cases(command, files)
    ]


def strikes(files: Path, folder: Path, cases: list[Case]) -> Iterator[str]:
    """Try one case after the other; yields what each was."""
    sound: dict[str, Result] = {}
    for case in cases:
        name = case.command.name
        if name not in sound:
            sound[name] = run(case.command, files, folder)
            assert sound[name].ran.code == 0, (name, sound[name].ran.err)
        fault = wrong(case, sound[name], run(case.command, files, folder, case))
        if fault is not None:
            harms.append(f"{case.name}: {fault}")
        yield f"relations: {'inputs' if case.of in case.command.inputs else 'outputs'} of {name}"
