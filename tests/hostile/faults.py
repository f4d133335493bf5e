"""Kills, signals, EIO and ENOSPC at every call of every writing command that changes a file.

After each the place holds what was there, what was to come, or nothing; the next run succeeds,
gives the bytes of a run that met no fault, and leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.forked import resvm
from tests.programs import run

KINDS = ("kill", "term", "eio", "enospc")
SHIM = Path(__file__).with_name("faults.c")
UNSTEADY = ("timings.jsonl",)  # seconds


@dataclass(frozen=True)
class Writing:
    """A command that writes, and what it may find in its place."""

    name: str
    arguments: Callable[[Path], list[object]]
    again: tuple[object, ...] = ()  # added for the run after a fault
    before: bool = False  # an older output is there


def build_shim(folder: Path) -> Path | None:
    """The library that brings faults, where there is a compiler for it."""
    library = folder / "faults.so"
    if shutil.which("cc") is None or not os.path.isdir("/proc/self/fd"):
        return None
    made = run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"])
    return library if made.code == 0 else None


def writings(problem: Path, model: Path) -> list[Writing]:
    data = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    few = ["--n-models", 3]

    def train(place: Path) -> list[object]:
        return ["train", *data, *few, "-o", place / "m", "--force"]

    def predict(place: Path) -> list[object]:
        return ["predict", model, problem / "test.svm", "-q", "-o", place / "out"]

    def tune(place: Path) -> list[object]:
        return ["tune", *data, *few, "--oob", "--trials", 3, "--no-extend", "-o", place / "t"]

    def simulate(place: Path) -> list[object]:
        return ["simulate", "--synthetic", "--test-pos", 20, "--test-neg", 20, "-q", "-o",
                place / "s"]  # fmt: skip

    def rank(place: Path) -> list[object]:
        return ["rank", *data, *few, "-o", place / "m", "--force", "--html", place / "page"]

    def score(place: Path) -> list[object]:
        return ["score", problem / "pred", "--labels", problem / "pred", "--bootstrap", 0, "--html",
                place / "page", "--curve", place / "curve"]  # fmt: skip

    return [
        Writing("train", train),
        Writing("train over a model", train, before=True),
        Writing("predict", predict),
        Writing("predict over a file", predict, before=True),
        Writing("tune", tune, again=("--resume",)),
        Writing("simulate", simulate),
        Writing("rank", rank),
        Writing("score", score, before=True),
    ]


def contents(place: Path) -> dict[str, bytes]:
    """Every file below a place; what a run has not finished begins with a dot."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.name not in UNSTEADY
    }


def older(place: Path, writing: Writing, problem: Path) -> None:
    """Another output in the same place."""
    arguments = writing.arguments(place)
    if arguments[0] == "train":
        resvm(*arguments, "--seed", 9)
    else:
        for name in ("out", "page", "curve"):
            (place / name).write_text("older")


def strikes(
    writing: Writing, problem: Path, folder: Path, end: float, kinds: Sequence[str] = KINDS
) -> Iterator[str]:
    """Names each fault as it is met; AssertionError on the first that does harm."""
    place = folder / "place"
    template = folder / "before"
    for made in (place, template):
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
    if writing.before:
        older(template, writing, problem)
    old = contents(template)
    shutil.copytree(template, place, dirs_exist_ok=True)
    arguments = writing.arguments(place)
    assert resvm(*arguments).code == 0
    new = contents(place)
    told = folder / "told"
    for kind in kinds:
        at = 0
        while time.monotonic() < end:
            at += 1
            shutil.rmtree(place)
            shutil.copytree(template, place)
            told.unlink(missing_ok=True)
            fault = {
                "FAULT_AT": str(at),
                "FAULT_KIND": kind,
                "FAULT_UNDER": f"{place}/",
                "FAULT_TOLD": str(told),
            }
            ran = resvm(*arguments, env=fault)
            if not told.exists():
                break
            where = f"{writing.name}: {kind} at call {at}"
            _check(where, ran.code, ran.err, kind, contents(place), old, new)
            again = resvm(*arguments, *writing.again)
            assert again.code == 0, f"{where}: {again.err}"
            assert contents(place) == new, f"{where}: other bytes, or litter: {os.listdir(place)}"
            yield where


def _check(
    where: str,
    code: int,
    err: str,
    kind: str,
    after: dict[str, bytes],
    old: dict[str, bytes],
    new: dict[str, bytes],
) -> None:
    assert "Traceback" not in err, f"{where}: {err}"
    expected = {"kill": (-9,), "term": (143, 0)}.get(kind, (0, 5))
    assert code in expected, f"{where}: exit {code}: {err}"
    shown = {name: text for name, text in after.items() if "/." not in f"/{name}"}
    for name, text in shown.items():
        growing = name.endswith(".jsonl") and name in new and new[name].startswith(text)
        torn = name.endswith(".jsonl") and kind in ("kill", "enospc", "term", "eio") and growing
        assert text in (old.get(name), new.get(name)) or torn, f"{where}: {name} is half-written"
    if kind != "kill":
        left = sorted(set(after) - set(shown))
        assert not left, f"{where}: left behind: {left}"
    if code == 0:
        assert shown == new, f"{where}: exit 0, and the output is not whole"
