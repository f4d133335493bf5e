"""Predictions as text: one line a row, numbers that read back exactly."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from resvm_cli.dataset import FloatArray, IntArray
from resvm_cli.files.atomic import whole_file
from resvm_cli.files.stdout import STDOUT, write_stdout

FormatName: TypeAlias = Literal["text", "tsv", "csv", "jsonl"]


@dataclass(frozen=True, eq=False)
class PredictionBlock:
    """What is written of some rows; None for columns that were not asked for."""

    labels: IntArray
    decision_values: FloatArray
    votes: FloatArray | None
    member_values: FloatArray | None
    ids: list[str] | None


def format_header(form: FormatName, block: PredictionBlock) -> bytes:
    """The line of column names, for the formats that have one."""
    if form not in ("tsv", "csv"):
        return b""
    names = ["id"] if block.ids is not None else []
    names += ["label", "decision_value"]
    if block.votes is not None:
        names.append("votes")
    if block.member_values is not None:
        names += [f"member_{number}" for number in range(block.member_values.shape[1])]
    return _separated([names], form)


def format_block(form: FormatName, block: PredictionBlock) -> bytes:
    """The lines of these rows."""
    if form == "jsonl":
        return _json_lines(block)
    plain = block.votes is None and block.member_values is None and block.ids is None
    if form == "text" and plain:
        pairs = zip(block.labels.tolist(), block.decision_values.tolist(), strict=True)
        return "".join([f"{label} {value!r}\n" for label, value in pairs]).encode("ascii")
    columns: list[list[str]] = [
        list(map(str, block.labels.tolist())),
        list(map(repr, block.decision_values.tolist())),
    ]
    if block.votes is not None:
        columns.append(list(map(repr, block.votes.tolist())))
    if block.member_values is not None:
        columns += [list(map(repr, column)) for column in block.member_values.T.tolist()]
    if form != "text":
        if block.ids is not None:
            columns.insert(0, block.ids)
        return _separated(list(map(list, zip(*columns, strict=True))), form)
    if block.ids is not None:  # as in the input: behind a #, so that blanks in it do no harm
        columns.append([f"# {name}" if name else "#" for name in block.ids])
    lines = map(" ".join, zip(*columns, strict=True))
    return _encoded("\n".join(lines) + "\n")


def _separated(table: list[list[str]], form: FormatName) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter="\t" if form == "tsv" else ",", lineterminator="\n").writerows(table)
    return _encoded(text.getvalue())


def _json_lines(block: PredictionBlock) -> bytes:
    records = []
    members = None if block.member_values is None else block.member_values.tolist()
    votes = None if block.votes is None else block.votes.tolist()
    for number, (label, value) in enumerate(
        zip(block.labels.tolist(), block.decision_values.tolist(), strict=True)
    ):
        record: dict[str, object] = {} if block.ids is None else {"id": block.ids[number]}
        record |= {"label": label, "decision_value": value}
        if votes is not None:
            record["votes"] = votes[number]
        if members is not None:
            record["member_values"] = members[number]
        records.append(json.dumps(record))
    return _encoded("\n".join(records) + "\n")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@contextmanager
def output(path: str) -> Iterator[Callable[[bytes], object]]:
    """Where to write: stdout for ``-``, else a file that appears when it is complete."""
    if path in (STDOUT, "/dev/stdout"):  # also where that is a file, which must not be replaced
        yield write_stdout
        return
    with whole_file(path) as handle:
        yield handle.write
