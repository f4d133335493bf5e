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
from random import Random

from tests.conftest import few_members
from tests.hostile.oracle import harms, resvm
from tests.programs import run

KINDS = ("kill", "term", "eio", "enospc")
SHIM = Path(__file__).with_name("faults.c")
UNSTEADY = ("timings.jsonl",)  # seconds
KEPT = "m.part/"
Arguments = Callable[[Path], list[object]]


@dataclass(frozen=True)
class Writing:
    """A command that writes, and what it may find in its place."""

    name: str
    arguments: Callable[[Path], list[object]]
    again: tuple[object, ...] = ()  # added for the run after a fault
    before: Callable[[Path], list[object]] | None = None  # makes the older output that is there


def build_shim(folder: Path) -> Path | None:
    """The library that brings faults, where there is a compiler for it."""
    library = folder / "faults.so"
    if shutil.which("cc") is None or not os.path.isdir("/proc/self/fd"):
        return None
    made = run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"])
    return library if made.code == 0 else None


def writings(problem: Path) -> list[Writing]:
    """Every command that writes, into an empty place and over what is there."""
    model = problem / "m"
    data = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    few = ["--n-models", 3]
    search = ["--trials", 3, "--no-extend"]
    table = ["convert", problem / "table.csv", "-q", "--label-column", "label"]

    def in_place(*arguments: object, name: str, then: Sequence[object] = ()) -> Arguments:
        return lambda place: [*arguments, place / name, *then]

    train = in_place("train", "--no-auto", *data, *few, "--force", "-o", name="m")
    merge = in_place("merge", problem / "part-1", problem / "part-2", "-q", "--force", "-o",
                     name="m")  # fmt: skip
    older = in_place("train", "--no-auto", *data, *few, "--seed", 9, "-o", name="m")
    predict = in_place("predict", model, problem / "test.svm", "-q", "-o", name="out")
    converted = in_place(*table, "-o", name="out")

    def rank(place: Path) -> list[object]:
        ranked = ["rank", *data, "--params", few_members(3), "--save-model", place / "m", "--force"]
        return [*ranked, "--html", place / "page"]

    return [
        Writing("train", train),
        Writing("train over a model", train, before=older),
        Writing("train a part", in_place("train", "--no-auto", *data, *few, "--task", "2/2",
        "-o", name="p")),
        Writing("train and resume", in_place("train", "--no-auto", *data, *few, "--resume",
        "-o", name="m")),
        Writing("merge", merge),
        Writing("predict over a file", predict, before=converted),
        Writing("tune", in_place("tune", *data, *few, *search, "-o", name="t"), ("--resume",)),
        Writing("simulate", in_place("simulate", "--synthetic", "--test-pos", 20, "--test-neg", 20,
                                     "-q", "-o", name="s")),
        Writing("rank", rank),
    ]  # fmt: skip


def in_turn(problem: Path, folder: Path, rng: Random, end: float) -> Iterator[str]:
    """Every writing command in turn, one fault after the other."""
    each = writings(problem)
    rng.shuffle(each)  # a short run meets others than the next
    going = [strikes(one, folder / one.name.replace(" ", "-"), end) for one in each]
    while going:
        for one in list(going):
            met = next(one, None)
            if met is None:
                going.remove(one)
            else:
                yield met


def contents(place: Path) -> dict[str, bytes]:
    """Every file below a place, what a run has not finished too."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.name not in UNSTEADY
    }


def _is_begun(name: str) -> bool:
    """Whether a file is what a run keeps to itself until it is done."""
    return any(part.startswith(".resvm-") or part.endswith((".resvm-old", ".lock"))
               for part in name.split("/"))  # fmt: skip


def strikes(writing: Writing, folder: Path, end: float) -> Iterator[str]:
    """Names the fault that was met, one after the other; what did harm is told as such."""
    place = folder / "place"
    template = folder / "before"
    for made in (template, place):
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
    if writing.before is not None:
        made_before = resvm(*writing.before(template))
        assert made_before.code == 0, made_before.err
    old = contents(template)
    shutil.copytree(template, place, dirs_exist_ok=True)
    arguments = writing.arguments(place)
    calls = folder / "calls"
    calls.unlink(missing_ok=True)
    sound = resvm(*arguments, env={"FAULT_UNDER": f"{place}/", "FAULT_CALLS": str(calls)})
    assert sound.code == 0, f"{writing.name}: {sound.err}"
    new = contents(place)
    told = folder / "told"
    for at in _ends_first(calls.stat().st_size if calls.exists() else 0):
        for kind in KINDS:
            if time.monotonic() > end:
                return
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
                continue
            # what the disk does not let go stays, and the next run removes it
            stays = kind in ("eio", "enospc") and told.read_text() == "removal"
            where = f"{writing.name}: {kind} at call {at}"
            try:
                _check(where, ran.code, ran.err, kind, stays, contents(place), old, new)
                # the whole output may be there, and what is there may not be written again
                whole = all(contents(place).get(name) == text for name, text in new.items())
                again = resvm(*arguments, *writing.again)
                refused = whole and again.code == 2
                assert again.code == 0 or refused, f"{where}, then: {again.err}"
                after = contents(place)
                assert after == new, f"{where}: other bytes, or litter: {_difference(after, new)}"
            except AssertionError as harm:
                harms.append(str(harm))
            yield f"{kind}: {writing.name}"


def _ends_first(count: int) -> list[int]:
    """The numbers from 1 to a count: the first, the last, the second, the last but one, ..."""
    return sorted(range(1, count + 1), key=lambda at: (min(at, count + 1 - at), at))


def _difference(after: dict[str, bytes], new: dict[str, bytes]) -> list[str]:
    return [name for name in sorted({*after, *new}) if after.get(name) != new.get(name)]


def _check(
    where: str,
    code: int,
    err: str,
    kind: str,
    stays: bool,
    after: dict[str, bytes],
    old: dict[str, bytes],
    new: dict[str, bytes],
) -> None:
    assert "Traceback" not in err, f"{where}: {err}"
    expected = {"kill": (-9,), "term": (143, 0)}.get(kind, (0, 5))
    assert code in expected, f"{where}: exit {code}: {err}"
    shown = {name: text for name, text in after.items() if not _is_begun(name)}
    for name, text in shown.items():
        if name.startswith(KEPT):
            continue  # members that the next run goes on with
        growing = name.endswith(".jsonl") and name in new and new[name].startswith(text)
        torn = name.endswith(".jsonl") and kind in ("kill", "enospc", "term", "eio") and growing
        assert text in (old.get(name), new.get(name)) or torn, f"{where}: {name} is half-written"
    if kind != "kill" and not stays:
        left = sorted(set(after) - set(shown))
        if code == 0:  # an old model that the disk did not let go stays aside, and does no harm
            left = [name for name in left if ".resvm-old/" not in name]
        assert not left, f"{where}: left behind: {left}"
    if code == 0:  # a late signal, or the disk, may leave members that are not needed any more
        shown = {name: text for name, text in shown.items() if not name.startswith(KEPT)}
        assert shown == new, f"{where}: exit 0, and the output is not whole"
