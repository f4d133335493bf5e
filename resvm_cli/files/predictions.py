"""Predictions as text: one line a row, numbers that read back exactly."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from resvm_cli.dataset import FloatArray, IntArray
from resvm_cli.files import _numbers
from resvm_cli.files.atomic import whole_file
from resvm_cli.files.stdout import STDOUT, write_stdout

FormatName: TypeAlias = Literal["text", "tsv", "csv", "jsonl"]
SEPARATORS = {"text": " ", "tsv": "\t", "csv": ","}


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
    return _encoded(_writer(form)(names))


def format_block(form: FormatName, block: PredictionBlock) -> bytes:
    """The lines of these rows."""
    if form == "jsonl":
        return _json_lines(block)
    columns = [block.decision_values]
    if block.votes is not None:
        columns.append(block.votes)
    if block.member_values is not None:
        columns.append(block.member_values)
    table = np.ascontiguousarray(np.column_stack(columns))
    labels = np.ascontiguousarray(block.labels, np.int64)
    text = _numbers.lines(labels, table, table.shape[1], SEPARATORS[form].encode("ascii"))
    if block.ids is None:
        return text
    lines = zip(block.ids, text.decode("ascii").splitlines(), strict=True)
    if form == "text":  # as in the input: behind a #, so that blanks in it do no harm
        named = [f"{line} # {name}\n" if name else f"{line} #\n" for name, line in lines]
    else:  # an empty field behind the id, less its newline, ends where the line goes on
        write = _writer(form)
        named = [f"{write((name, ''))[:-1]}{line}\n" for name, line in lines]
    return _encoded("".join(named))


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _writer(form: FormatName) -> Callable[[Iterable[str]], str]:
    """Fields to a line, quoted where they must be."""
    return csv.writer(_Echo(), delimiter=SEPARATORS[form], lineterminator="\n").writerow


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
