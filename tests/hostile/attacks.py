"""Mutated files given to the real command line.

The oracle: an exit code from 0 and 2 to 5, words of ours on stderr, no traceback; within a minute
and 4 GB.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from tests.hostile import mutations
from tests.hostile.forked import resvm
from tests.hostile.harm import reproach, require
from tests.hostile.readers import Standing
from tests.hostile.seeds import benchmark, kernel_data


def _text(text: bytes, rng: Random) -> bytes:
    return mutations.packed(mutations.mutated_text(text, rng), rng)


def single_files(problem: Path, x: Path) -> list[tuple[str, str, Callable, list[object]]]:
    """What each is, the sound file, how it is changed, and the command that reads it."""
    sets = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    few = ["--n-models", 3, "-q"]
    known = ["--labels", problem / "labels", "--bootstrap", 0]
    document, arrays, damaged = (
        mutations.mutated_document, mutations.mutated_arrays, mutations.damaged,
    )  # fmt: skip
    convert = ["convert", x, "-q"]
    kernel = kernel_data(problem)[:-1]
    bench = [*benchmark(problem), "--repetitions", 1, "--methods", "cwsvm"]
    named = ["--id-column", "id", "--label-column", "label"]
    return [
        ("P", "pos.svm", _text, ["train", "-P", x, "-U", problem / "unl.svm", *few]),
        ("U", "unl.svm", _text, ["train", "-P", problem / "pos.svm", "-U", x, *few]),
        ("rows", "test.svm", _text, ["predict", problem / "m", x, "--ids", "--format", "csv"]),
        ("rows, checked", "test.svm", _text, ["check", x]),
        ("predictions", "pred.tsv", _text, ["score", x, *known]),
        ("predictions, jsonl", "pred.jsonl", _text, ["score", x, *known]),
        ("predictions by id", "pred.csv", _text,
         ["score", x, "--positive-ids", problem / "ids", "--bootstrap", 0]),
        ("ids", "ids", _text,
         ["score", problem / "pred.tsv", "--positive-ids", x, "--bootstrap", 0]),
        ("known positives", "ids", _text,
         ["rank", "--data", problem / "test.svm", "--positive-ids", x, *few]),
        ("labels", "labels", _text,
         ["score", problem / "pred.text", "--labels", x, "--bootstrap", 0]),
        ("groups", "groups", _text, ["rank", *sets, "--n-models", 3, "--groups", x]),
        ("parameters", "t/best.json", document, ["train", *sets, "--params", x]),
        ("parameters of rank", "t/best.json", document, ["rank", *sets, "--params", x]),
        ("table", "table.csv", _text, [*convert, *named]),
        ("table, imputed", "table.csv", _text,
         [*convert, *named, "--missing", "median"]),
        ("molecules", "molecules.csv", _text, [*convert, "--smiles-column", "smiles"]),
        ("feature map", "map.json", document,
         ["convert", problem / "table.csv", "-q", "--like", x]),
        ("feature map of molecules", "molecules.json", document,
         ["convert", problem / "molecules.csv", "-q", "--like", x]),
        ("feature map of weights", "map.json", document,
         ["inspect", problem / "linear", "--weights", "--map", x]),
        ("array", "matrix.npy", damaged, convert),
        ("arrays", "arrays.npz", arrays, convert),
        ("sparse arrays", "sparse.npz", arrays, convert),
        ("parquet", "table.parquet", damaged, convert),
        ("hdf5", "cells.h5ad", damaged, convert),
        ("kernel values of P", "k-pos.svm", _text, ["train", "-P", x, *kernel[2:], *few]),
        ("kernel values of U", "k-unl.svm", _text, ["train", *kernel[:2], "-U", x, *kernel[4:],
                                                    *few]),
        ("kernel values", "k-test.svm", _text, ["predict", problem / "kernel", x]),
        ("grids", "grids.json", document, [*bench, "--grid", x]),
    ]  # fmt: skip


def through_the_program(problem: Path, folder: Path, seed: int) -> Iterator[str]:
    """One file after the other, for ever; yields what each was."""
    rng = Random(seed)
    x = folder / "mutated"
    target = folder / "written"
    kinds = [each for each in single_files(problem, x) if (problem / each[1]).exists()]
    directories = _directories(problem, folder)
    while True:
        for name, file, mutate, command in kinds:
            text = mutate((problem / file).read_bytes(), rng)
            x.write_bytes(text)
            shutil.rmtree(target, ignore_errors=True)
            place = ["-o", target] if command[0] in ("train", "tune", "benchmark") else []
            require(name, text, resvm(*command, *place))
            yield f"program: {name}"
        for strike in directories:
            yield strike(rng)


def _directories(problem: Path, folder: Path) -> list[Callable[[Random], str]]:
    """Attacks on models, parts, tunings and outputs."""
    strikes: list[Callable[[Random], str]] = []
    sets = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    for name in ("m", "linear", "committee", "format-1"):
        standing = Standing(problem / name, folder / f"attacked-{name}")
        strikes += [_model(standing, name, problem, command) for command in _MODEL_COMMANDS]
    strikes.append(_grown(problem, folder))
    for name, other in (("part-1", "part-2"), ("part-2", "part-1")):
        part = Standing(problem / name, folder / f"attacked-{name}")
        strikes.append(_merged(part, problem / other, folder / "merged"))
    strikes.append(_part_continued(problem, folder))
    for name, mutate in (
        ("trials.jsonl", mutations.mutated_log),
        ("settings.json", mutations.mutated_document),
    ):
        strikes.append(_resumed(problem, folder / "resumed", name, mutate, sets))
    strikes.append(_shared(problem, folder / "resumed", sets))
    strikes.append(_outputs(problem, folder))
    for name in ("bench", "published"):
        standing = Standing(problem / name, folder / f"attacked-{name}")
        strikes.append(_reported(standing, name))
    strikes += [_benchmark(problem, folder / "resumed", name) for name in ("bench", "bench-tasks")]
    return strikes


_MODEL_COMMANDS: tuple[list[object], ...] = (
    ["inspect"],
    ["predict", "recall"],
    ["predict"],
    ["rank"],
)


def _model(
    standing: Standing, name: str, problem: Path, kind: list[object]
) -> Callable[[Random], str]:
    model = standing.path
    sets = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    commands: dict[tuple[object, ...], list[object]] = {
        ("inspect",): ["inspect", model],
        ("predict", "recall"): ["predict", model, problem / "test.svm", "-T", "recall=0.9"],
        ("predict",): ["predict", model, problem / "test.svm", "--votes", "--decision", "mean"],
        ("rank",): ["rank", *sets, "--model", model],
    }

    def strike(rng: Random) -> str:
        files = mutations.mutated_model(standing.files, rng)
        with standing.changed(files):
            ran = resvm(*commands[tuple(kind)])
        require(f"model, {name}", files["manifest.json"], ran)
        return f"program: model, {name}, {kind[0]}"

    return strike


def _grown(problem: Path, folder: Path) -> Callable[[Random], str]:
    standing = Standing(problem / "m", folder / "attacked-grown")
    target = folder / "grown"
    sets = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]

    def strike(rng: Random) -> str:
        files = mutations.mutated_model(standing.files, rng)
        shutil.rmtree(target, ignore_errors=True)
        shutil.rmtree(f"{target}.part", ignore_errors=True)
        shutil.copytree(standing.path, target)
        for name, text in files.items():
            (target / name).write_bytes(text)
        ran = resvm("train", *sets, "--grow", 5, "-o", target)
        require("model, grown", files["manifest.json"], ran)
        if ran.code == 0 and resvm("inspect", target).code != 0:
            reproach("model, grown", files["manifest.json"], "grown, and cannot be read")
        return "program: model, grown"

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
        return "program: merge of parts"

    return strike


def _part_continued(problem: Path, folder: Path) -> Callable[[Random], str]:
    part = Standing(problem / "part-2", folder / "attacked-continued")
    data = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "--n-models", 3]

    def strike(rng: Random) -> str:
        files = mutations.mutated_part(part.files, rng)
        with part.changed(files):
            ran = resvm("train", *data, "--task", "2/2", "-o", part.path)
        require("part, continued", next(iter(files.values())), ran)
        return "program: part, continued"

    return strike


def _resumed(
    problem: Path, place: Path, name: str, mutate: Callable, sets: list[object]
) -> Callable[[Random], str]:
    more = ["--n-models", 3, "--oob", "--trials", 3, "--no-extend", "-o", place, "--resume"]

    def strike(rng: Random) -> str:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(problem / "t", place)
        text = mutate((place / name).read_bytes(), rng)
        (place / name).write_bytes(text)
        require(name, text, resvm("tune", *sets, *more))
        return f"program: {name}"

    return strike


def _shared(problem: Path, place: Path, sets: list[object]) -> Callable[[Random], str]:
    more = ["--n-models", 3, "--oob", "--trials", 3, "--no-extend", "-o", place]

    def strike(rng: Random) -> str:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(problem / "shared", place)
        file = rng.choice(sorted((place / "tasks").iterdir()))
        text = mutations.mutated_seal(file.read_bytes(), rng)
        file.write_bytes(text)
        task = ["--task", "2/2"] if rng.randrange(2) else []
        require("task file", text, resvm("tune", *sets, *more, *task))
        return "program: task file"

    return strike


_BENCHMARK_FILES = {
    "results.jsonl": mutations.mutated_log,
    "times.jsonl": mutations.mutated_log,
    "run.json": mutations.mutated_document,
    "settings.json": mutations.mutated_document,
}


def _reported(standing: Standing, name: str) -> Callable[[Random], str]:
    shown = ["--markdown", "-", "--html", f"{standing.path}.html", "-q"]

    def strike(rng: Random) -> str:
        file = rng.choice([one for one in _BENCHMARK_FILES if one in standing.files])
        text = _BENCHMARK_FILES[file](standing.files[file], rng)
        with standing.changed({file: text}):
            ran = resvm("benchmark", "report", standing.path, *shown)
        require(f"benchmark, {file}", text, ran)
        return f"program: report of {name}"

    return strike


def _benchmark(problem: Path, place: Path, name: str) -> Callable[[Random], str]:
    """A run that goes on, from its own lines or those of tasks; what it leaves can be reported."""
    more = [] if name == "bench-tasks" else ["--resume"]

    def strike(rng: Random) -> str:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(problem / name, place)
        file = rng.choice(sorted(path for path in place.rglob("*") if path.is_file()))
        mutate = _BENCHMARK_FILES.get(file.name, mutations.mutated_seal)
        text = mutate(file.read_bytes(), rng)
        file.write_bytes(text)
        ran = resvm(*benchmark(problem), "-o", place, *more)
        require(f"benchmark, {file.name}", text, ran)
        if ran.code == 0 and resvm("benchmark", "report", place, "-q").code not in (0, 3):
            reproach(f"benchmark, {file.name}", text, "finished, and cannot be reported")
        return f"program: {name}, continued"

    return strike


def _outputs(problem: Path, folder: Path) -> Callable[[Random], str]:
    standing = Standing(problem / "outputs", folder / "attacked-outputs")
    (record,) = (name for name in standing.files if name.startswith("."))
    outputs = {name: text for name, text in standing.files.items() if name != record}
    command = ["predict", problem / "m", problem / "test.svm", "-q", "--out-dir", standing.path]

    def strike(rng: Random) -> str:
        name = rng.choice(sorted(standing.files))
        mutate = mutations.mutated_seal if name == record else mutations.mutated_text
        text = mutate(standing.files[name], rng)
        with standing.changed({name: text}):
            ran = resvm(*command)
            left = {one: (standing.path / one).read_bytes() for one in outputs}
        require("finished output", text, ran)
        if ran.code != 0 or left != outputs:
            reproach("finished output", text, "the output is not what it was")
        return "program: finished output"

    return strike
