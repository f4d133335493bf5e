"""Part of a model on disk: ``part.json``, and of each finished member its text and a record.

A record is written after the text it vouches for, each beside its place, synced and renamed: what a
killed process leaves is a part with fewer members, never a damaged one. One process writes a part;
readers check every digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from resvm_cli.errors import CommandLineError, ModelError
from resvm_cli.files.atomic import TEMPORARY, whole_file
from resvm_cli.files.bounded_read import read_bounded
from resvm_cli.files.sealed_json import read_sealed, write_sealed
from resvm_cli.files.streams import cannot
from resvm_cli.model_files.directory import planned
from resvm_cli.model_files.members import MEMBERS, member_name
from resvm_cli.model_files.model_text import MemberText
from resvm_cli.parameters import RULE_NAMES
from resvm_cli.rows import FloatArray
from resvm_cli.running.array_tasks import Share, as_ranges, shares_holding

KIND = "resvm-part"
FORMAT = 1
HEADER = "part.json"
LARGEST_VALUE = 1e100
# What members elsewhere may differ in without being members of another model.
OF_THE_MACHINE = ("numeric_fingerprint",)


@dataclass(frozen=True, eq=False)
class MemberRecord:
    """What is known of a finished member, and what it says of the rows judged out of bag."""

    number: int
    sha256: str
    n_bytes: int
    n_support: int
    converged: bool
    values: FloatArray  # nan where it has seen the row


class PartDirectory:
    """A run of members of one model, as far as they are finished."""

    def __init__(self, path: str, header: dict[str, Any]) -> None:
        self.path = path
        self.members = range(header["first"], header["last"])
        self.judged: list[list[int]] = header["judged"]  # rows of P and of U
        task = header["task"]
        self.share = None if task is None else Share(*task)  # None: members given by number
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
        """Begun anew, or continued where the same part was begun before."""
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
            begun = cls.read(path)
            if begun._header() != json.loads(json.dumps(header)):
                raise CommandLineError(
                    f"{path}: holds a part of another model, or other members of this one",
                    "repeat the command as it was, choose another place with -o, or remove it",
                )
            return begun
        _refuse_other_content(directory)
        try:
            (directory / MEMBERS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot("write", path, error) from None
        write_sealed(f"{path}/{HEADER}", header)
        return cls(path, header)

    @classmethod
    def read(cls, path: str) -> PartDirectory:
        """A part that is there."""
        header = _read_json(f"{path}/{HEADER}")
        if header.get("kind") != KIND:
            raise ModelError(f"{path}: not a part of a resvm model")
        if header.get("format") != FORMAT:
            raise ModelError(
                f"{path}: format {header.get('format')!r}, and this version reads {FORMAT}",
                "join it with the version of resvm that trained it",
            )
        first, last, judged = header.get("first"), header.get("last"), header.get("judged")
        task = header.get("task")
        if (
            type(first) is not int
            or type(last) is not int
            or not 0 <= first < last
            or not _are_judged(judged)
            or "task" not in header
            or not _is_task(task)
            or not _is_of_a_model(header.get("description"), last)
        ):
            raise ModelError(
                f"{path}/{HEADER}: incomplete or inconsistent",
                f"remove {path} and train the part again",
            )
        return cls(path, header)

    def _header(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "format": FORMAT,
            "first": self.members.start,
            "last": self.members.stop,
            "task": None if self.share is None else [self.share.number, self.share.count],
            "judged": self.judged,
            "description": self.description,
        }

    def add(self, number: int, member: MemberText, converged: bool, values: FloatArray) -> None:
        """Keep a member that is finished."""
        with whole_file(f"{self.path}/{member_name(number)}") as handle:
            handle.write(member.text)
        write_sealed(
            _record_name(self.path, number),
            {
                "member": number,
                "sha256": hashlib.sha256(member.text).hexdigest(),
                "bytes": len(member.text),
                "support_vectors": member.n_support,
                "converged": converged,
                "values": [None if value != value else value for value in values.tolist()],
            },
        )

    def missing(self) -> list[int]:
        """The members that are not finished."""
        return [
            number
            for number in self.members
            if not os.path.lexists(_record_name(self.path, number))
        ]

    def unfinished(self) -> list[int]:
        """The members that are not finished, or damaged since: what is left to train."""
        left = []
        for number in self.members:
            try:
                self.member(self.record(number))
            except ModelError:
                left.append(number)
        return left

    def record(self, number: int) -> MemberRecord:
        """What was noted of a finished member."""
        name = _record_name(self.path, number)
        record = _read_json(name)
        values = record.get("values")
        size = record.get("bytes")
        if (
            record.get("member") != number
            or type(record.get("sha256")) is not str
            or type(size) is not int
            or size < 0
            or type(record.get("support_vectors")) is not int
            or type(record.get("converged")) is not bool
            or not isinstance(values, list)
            or len(values) != sum(map(len, self.judged))
            or not all(value is None or _is_value(value) for value in values)
        ):
            raise ModelError(f"{name}: incomplete or inconsistent", "train the part again")
        return MemberRecord(
            number,
            record["sha256"],
            size,
            record["support_vectors"],
            record["converged"],
            np.array([np.nan if value is None else value for value in values], np.float64),
        )

    def member(self, record: MemberRecord) -> MemberText:
        """A finished member, checked against its record."""
        name = f"{self.path}/{member_name(record.number)}"
        text = read_bounded(name, record.n_bytes)
        if len(text) != record.n_bytes or hashlib.sha256(text).hexdigest() != record.sha256:
            raise ModelError(
                f"{name}: changed since it was written (digest differs)", "train the part again"
            )
        return MemberText(text, record.n_support)


@dataclass(frozen=True, eq=False)
class JoinedParts:
    """Parts that make up a whole model."""

    parts: Sequence[PartDirectory]  # in the order of their members
    notes: tuple[str, ...]

    @property
    def description(self) -> dict[str, Any]:
        return self.parts[0].description

    def records(self) -> Iterator[tuple[PartDirectory, MemberRecord]]:
        """Of all members, in order."""
        for part in self.parts:
            for number in part.members:
                yield part, part.record(number)


def join(paths: Sequence[str]) -> JoinedParts:
    """Put parts in order; refuse those that are not of one model, and gaps and overlaps."""
    parts = sorted(
        (PartDirectory.read(path) for path in paths), key=lambda part: part.members.start
    )
    first = parts[0]
    notes: list[str] = []
    for part in parts[1:]:
        differing = [
            key
            for key in {**first.description, **part.description}
            if first.description.get(key) != part.description.get(key)
        ]
        foreign = [key for key in differing if key not in OF_THE_MACHINE]
        if foreign or part.judged != first.judged:
            raise ModelError(
                f"{part.path} and {first.path} are of different models:"
                f" {', '.join(foreign) or 'judged rows'} differ",
                "join parts of one command, with the same data, options and seed",
            )
        if differing:
            notes.append(
                f"{part.path} was trained with other {' and '.join(differing)} than {first.path}:"
                " values agree to about 1e-9, not to the byte"
            )
    total = sum(group["members"] for group in first.description["groups"])
    missing = _missing_members(parts, total)
    if missing:
        raise ModelError(
            f"{len(missing):,} of {total:,} members are missing: {as_ranges(missing)}",
            _how_to_complete(parts, missing, total),
        )
    return JoinedParts(parts, tuple(notes))


def _how_to_complete(parts: Sequence[PartDirectory], missing: Sequence[int], total: int) -> str:
    counts = {None if part.share is None else part.share.count for part in parts}
    count = counts.pop()
    if counts or count is None:
        return "train the parts that hold them"
    tasks = as_ranges(shares_holding(missing, total, count))
    return f"run these tasks of {count} again: --array={tasks}"


def _missing_members(parts: Sequence[PartDirectory], total: int) -> list[int]:
    missing: list[int] = []
    end = 0
    for part in parts:
        if part.members.start < end:
            raise ModelError(
                f"{part.path}: holds members from {part.members.start}, and another part those"
                f" below {end}",
                "leave one of them out",
            )
        missing += range(end, part.members.start)
        missing += part.missing()
        end = part.members.stop
    if end > total:
        raise ModelError(f"{parts[-1].path}: holds members up to {end}, and the model has {total}")
    return [*missing, *range(end, total)]


def _is_of_a_model(description: Any, last: int) -> bool:
    """Whether this describes a model that has so many members."""
    if not isinstance(description, dict) or description.get("rule") not in RULE_NAMES:
        return False
    try:
        return last <= planned(description).n_models
    except ValueError:
        return False


def _are_judged(judged: Any) -> bool:
    """Whether these are two lists of row numbers."""
    return (
        isinstance(judged, list)
        and len(judged) == 2
        and all(isinstance(rows, list) for rows in judged)
        and all(type(row) is int and 0 <= row < 2**53 for rows in judged for row in rows)
    )


def _is_value(value: Any) -> bool:
    """Whether this may be a decision value: its square is still a number."""
    return type(value) is float and abs(value) < LARGEST_VALUE


def _is_task(task: Any) -> bool:
    """Whether this is the number of a task among so many, or no task."""
    if task is None:
        return True
    return (
        isinstance(task, list)
        and len(task) == 2
        and all(type(number) is int for number in task)
        and 1 <= task[0] <= task[1]
    )


def is_blank(directory: Path) -> bool:
    """Whether a place holds no more than a part leaves that is killed at its beginning or end."""
    there = [name for name in os.listdir(directory) if not name.startswith(TEMPORARY)]
    return there in ([], [MEMBERS]) and not (there and os.listdir(directory / MEMBERS))


def _refuse_other_content(directory: Path) -> None:
    """Refuse a place that holds anything else."""
    try:
        blank = is_blank(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot("write", str(directory), error) from None
    if not blank:
        raise CommandLineError(
            f"{directory}: exists and is not a part of a model; nothing was written there",
            "choose another place with -o",
        )


def check_target(path: str) -> None:
    """Refuse a place where a part must not be written, before any work is done."""
    if path in ("", "-"):
        raise CommandLineError(f"-o is '{path}'; the name of a directory was expected")
    parent = Path(os.path.realpath(path)).parent
    if not parent.is_dir():
        raise CommandLineError(f"{path}: its parent directory does not exist", f"mkdir -p {parent}")
    if not os.path.lexists(f"{path}/{HEADER}"):
        _refuse_other_content(Path(path))


def remove(path: str) -> None:
    """Take away a part that is of no more use, its header last so that it stays known as one."""
    if os.path.lexists(f"{path}/{HEADER}"):
        PartDirectory.read(path)
    else:
        _refuse_other_content(Path(path))
    with suppress(OSError):
        shutil.rmtree(f"{path}/{MEMBERS}", ignore_errors=True)
        with suppress(FileNotFoundError):
            os.unlink(f"{path}/{HEADER}")
        shutil.rmtree(path)


def _record_name(path: str, number: int) -> str:
    return f"{path}/{member_name(number)}"[: -len(".model")] + ".json"


def _read_json(name: str) -> dict[str, Any]:
    try:
        return read_sealed(name)
    except ValueError:
        raise ModelError(f"{name}: damaged or edited", "train the part again") from None
