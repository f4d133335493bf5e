"""Parts of a model on disk: ``part.json``, plus a text and a record for each finished member.

A record is written after its text, and both are written atomically, so a killed process can leave a
part with members missing, but never a damaged part. Only one process writes to a part, and readers
check every digest.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from resvm_cli.data.atomic import TEMPORARY, remove_left_behind, whole_file
from resvm_cli.data.json_files import read_sealed, write_with_digest
from resvm_cli.data.streams import file_error
from resvm_cli.errors import FileError, ModelError, ParameterError
from resvm_cli.parameters import RULE_NAMES
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray
from resvm_cli.run import Share, as_ranges, shares_holding
from resvm_cli.storage.members import MEMBERS, member_entry, member_name, read_member
from resvm_cli.storage.model import (
    MEMBER_ENTRY,
    fits,
    plan_of_part,
    read_manifest,
    require_parent,
)

KIND = "resvm-part"
FORMAT = 1
HEADER = "part.json"
MAX_VALUE = 1e100
# Keys that may differ between machines that train members of the same model.
OF_THE_MACHINE = ("numeric_fingerprint",)
_HEADER = {
    "first": int,
    "last": int,
    "judged": [[int]],
    "task": (list, type(None)),
    "description": dict,
}
_RECORD = {"member": int, **MEMBER_ENTRY, "converged": bool, "values": list}


@dataclass(frozen=True, eq=False)
class MemberRecord:
    """A finished member: its entry, and its decision values for the out-of-bag rows."""

    number: int
    entry: dict[str, Any]  # digest, size and number of support vectors, as in a manifest
    converged: bool
    values: FloatArray  # nan for a row in the member's bag


class PartDirectory:
    """A directory for a range of a model's members; it contains those that are finished."""

    def __init__(self, path: str, header: dict[str, Any]) -> None:
        self.path = path
        self.members = range(header["first"], header["last"])
        self.judged: list[list[int]] = header["judged"]  # rows of P and of U
        task = header["task"]
        # a run that trains all members has no share
        self.share = None if task is None else Share(*task)
        self.description: dict[str, Any] = header["description"]

    @classmethod
    def opened(
        cls,
        path: str,
        members: range,
        description: dict[str, Any],
        judged: list[list[int]],
        share: Share | None = None,
    ) -> PartDirectory:
        """Start a part, or resume it if the same part was started before."""
        header = {
            "kind": KIND,
            "format": FORMAT,
            "first": members.start,
            "last": members.stop,
            "task": None if share is None else [share.number, share.count],
            "judged": judged,
            "description": description,
        }
        directory = Path(path)
        if os.path.lexists(directory / HEADER):
            there, here = _read_header(path), json.loads(json.dumps(header))
            if there != here:
                differing = _differing(there["description"], here["description"])
                what = "contains a part of another model, or different members of this model"
                if differing:
                    what += f": {', '.join(differing)} differ"
                raise ParameterError(
                    f"{path}: {what}",
                    "repeat the command unchanged, choose another `path`, or remove this part",
                )
            return cls(path, header)
        _refuse_other_content(directory)
        try:
            (directory / MEMBERS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise file_error("write", path, error) from None
        write_with_digest(f"{path}/{HEADER}", header)
        return cls(path, header)

    @classmethod
    def read(cls, path: str) -> PartDirectory:
        return cls(path, _read_header(path))

    def add(self, number: int, text: bytes, converged: bool, values: FloatArray) -> None:
        with whole_file(f"{self.path}/{member_name(number)}") as handle:
            handle.write(text)
        record = {
            "member": number,
            **member_entry(text),
            "converged": converged,
            "values": [None if value != value else value for value in values.tolist()],
        }
        write_with_digest(_record_name(self.path, number), record)

    def missing(self) -> list[int]:
        return [n for n in self.members if not os.path.lexists(_record_name(self.path, n))]

    def unfinished(self) -> list[int]:
        """Return the members that are missing or damaged and still have to be trained."""
        left = []
        for number in self.members:
            try:
                self.text(self.record(number))
            except ModelError:
                left.append(number)
        return left

    def record(self, number: int) -> MemberRecord:
        name = _record_name(self.path, number)
        record = _read_json(name)
        values: list[float | None] = record.get("values", [])
        if (
            not fits(record, _RECORD)
            or record["member"] != number
            or len(values) != sum(map(len, self.judged))
            or not all(value is None or _is_value(value) for value in values)
        ):
            raise ModelError(f"{name}: incomplete or inconsistent", "train the part again")
        entry = {key: record[key] for key in MEMBER_ENTRY}
        numbers = [np.nan if value is None else value for value in values]
        return MemberRecord(number, entry, record["converged"], np.array(numbers, np.float64))

    def text(self, record: MemberRecord) -> bytes:
        return read_member(self.path, record.number, record.entry)


def _read_header(path: str) -> dict[str, Any]:
    header = _read_json(f"{path}/{HEADER}")
    if header.get("kind") != KIND:
        raise ModelError(f"{path}: not a part of a resvm model")
    if header.get("format") != FORMAT:
        raise ModelError(
            f"{path}: format {header.get('format')!r}; this version reads {FORMAT}",
            "merge it with the version of resvm that trained it",
        )
    if (
        not fits(header, _HEADER)
        or not 0 <= header["first"] < header["last"]
        or len(header["judged"]) != 2
        or max((max(rows, default=0) for rows in header["judged"]), default=0) >= 2**53
        or not _is_task(header["task"])
        or not _describes_model(header["description"], header["last"])
    ):
        raise ModelError(
            f"{path}/{HEADER}: incomplete or inconsistent",
            f"remove {path} and train the part again",
        )
    return header


def join_parts(paths: Sequence[str]) -> tuple[list[PartDirectory], list[str]]:
    """Return a model's parts in order, with notes; reject gaps, overlaps and foreign parts."""
    parts = sorted(map(PartDirectory.read, paths), key=lambda part: part.members.start)
    first = parts[0]
    notes: list[str] = []
    for part in parts[1:]:
        differing = _differing(first.description, part.description)
        foreign = [key for key in differing if key not in OF_THE_MACHINE]
        if foreign or part.judged != first.judged:
            raise ModelError(
                f"{part.path} and {first.path} belong to different models:"
                f" {', '.join(foreign) or 'out-of-bag rows'} differ",
                "merge only parts written with the same data, options and seed",
            )
        if differing:
            notes.append(
                f"{part.path} and {first.path} differ in {' and '.join(differing)}: their values"
                " agree to about 1e-9, but not exactly"
            )
    total = sum(group["members"] for group in first.description["groups"])
    missing = _missing_members(parts, total)
    if missing:
        raise ModelError(
            f"{len(missing):,} of {total:,} members are missing: {as_ranges(missing)}",
            _how_to_complete(parts, missing, total),
        )
    return parts, notes


def _differing(there: dict[str, Any], here: dict[str, Any], within: str = "") -> list[str]:
    """Return the keys whose values differ between two descriptions, including keys in ``data``."""
    found: list[str] = []
    for key in {**there, **here}:
        if there.get(key) != here.get(key):
            deeper = [] if key != "data" else _differing(there[key], here[key], "data.")
            found += deeper or [within + key]
    return found


def _how_to_complete(parts: Sequence[PartDirectory], missing: Sequence[int], total: int) -> str:
    counts = {None if part.share is None else part.share.count for part in parts}
    count = counts.pop()
    if counts or count is None:
        return "train the parts that contain these members"
    tasks = as_ranges(shares_holding(missing, total, count))
    return f"run these tasks of {count} again: {tasks} (Slurm: sbatch --array={tasks} ...)"


def _missing_members(parts: Sequence[PartDirectory], total: int) -> list[int]:
    missing: list[int] = []
    end = 0
    for part in parts:
        if part.members.start < end:
            raise ModelError(
                f"{part.path}: starts at member {part.members.start}, but another part has"
                f" members up to {end - 1}",
                "omit one of these parts",
            )
        missing += range(end, part.members.start)
        missing += part.missing()
        end = part.members.stop
    if end > total:
        raise ModelError(
            f"{parts[-1].path}: has members up to {end - 1}, but the model has {total}"
        )
    return [*missing, *range(end, total)]


def _describes_model(description: dict[str, Any], last: int) -> bool:
    """Whether this describes a model with at least ``last`` members."""
    if description.get("rule") not in RULE_NAMES:
        return False
    try:
        return last <= plan_of_part(description).n_models
    except ValueError:
        return False


def _is_value(value: Any) -> bool:
    """Whether this is a valid decision value; its square must be finite."""
    return type(value) is float and abs(value) < MAX_VALUE


def _is_task(task: Any) -> bool:
    """Whether this is an array task, [number, count], or None."""
    if task is None:
        return True
    return type(task) is list and [*map(type, task)] == [int, int] and 1 <= task[0] <= task[1]


def is_blank(directory: Path) -> bool:
    """Whether a directory is empty, except for leftovers from a killed process."""
    names = [name for name in os.listdir(directory) if not name.startswith(TEMPORARY)]
    return names in ([], [MEMBERS]) and not (names and os.listdir(directory / MEMBERS))


def _refuse_other_content(directory: Path) -> None:
    try:
        blank = is_blank(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise file_error("write", str(directory), error) from None
    if not blank:
        raise ParameterError(
            f"{directory}: exists and is not a part of a model; nothing was written to it",
            "choose another `path`",
        )


def check_part_target(path: str) -> None:
    """Check that a part may be written to this path, before any work is done."""
    require_parent(path)
    if not os.path.lexists(f"{path}/{HEADER}"):
        _refuse_other_content(Path(path))


def remove_part(path: str) -> None:
    """Remove a part; the header goes last, so that an interrupted removal can be recognized."""
    if os.path.lexists(f"{path}/{HEADER}"):
        PartDirectory.read(path)
    else:
        _refuse_other_content(Path(path))
    with suppress(OSError):
        shutil.rmtree(f"{path}/{MEMBERS}", ignore_errors=True)
        with suppress(FileNotFoundError):
            os.unlink(f"{path}/{HEADER}")
        shutil.rmtree(path)


def discard_finished_part(path: str, target: str) -> None:
    """Remove a killed run's leftover part if it is empty or its model is complete.

    The check for an existing model would otherwise end the run before the part is removed.
    """
    if not os.path.lexists(path):
        return
    with suppress(OSError):
        if is_blank(Path(path)) or _is_part_of_model(path, target):
            remove_part(path)
    if os.path.lexists(target):
        remove_left_behind(os.path.dirname(target.rstrip(os.sep)) or os.curdir)


def _is_part_of_model(path: str, target: str) -> bool:
    """Whether a part belongs to the existing model, even if it lacks some members."""
    try:
        description = PartDirectory.read(path).description
        manifest = read_manifest(target)
    except (ModelError, FileError):
        return False
    known = (name for name, value in description.items() if value is not None)
    return all(manifest.get(name) == description[name] for name in known if name != "rule")


def check_unfinished_part(path: str, *, force: bool) -> None:
    """Refuse to discard an interrupted training run; with ``force``, remove it."""
    if not os.path.lexists(path):
        return
    if not force:
        raise ParameterError(
            f"{path}: contains an interrupted training run",
            "continue it with `resume=True`, or start over with `force=True`",
        )
    remove_part(path)


def _record_name(path: str, number: int) -> str:
    return f"{path}/{member_name(number)}"[: -len(".model")] + ".json"


def _read_json(name: str) -> dict[str, Any]:
    try:
        return read_sealed(name)
    except FileError as error:
        raise ModelError(error.message, "train the part again") from None
    except ValueError:
        raise ModelError(f"{name}: damaged or edited", "train the part again") from None
