"""Predictions as text, one line a row, in numbers that read back exactly.

Blocks whose labels depend on all of them wait in a spool, in memory at first, then in TMPDIR.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Literal, TypeAlias

import numpy as np

from resvm_cli.files import _numbers
from resvm_cli.files.delimited import line_writer
from resvm_cli.files.streams import SPOOL_MEMORY, as_unicode, cannot
from resvm_cli.rows import FloatArray, IntArray

FormatName: TypeAlias = Literal["text", "tsv", "csv", "jsonl"]
SEPARATORS = {"text": " ", "tsv": "\t", "csv": ","}
_NOTHING = np.zeros(0)


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
    return _encoded(line_writer(SEPARATORS[form])(names))


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
        write = line_writer(SEPARATORS[form])
        named = [f"{write((name, ''))[:-1]}{line}\n" for name, line in lines]
    return _encoded("".join(named))


def _json_lines(block: PredictionBlock) -> bytes:
    records = []
    members = None if block.member_values is None else block.member_values.tolist()
    votes = None if block.votes is None else block.votes.tolist()
    for number, (label, value) in enumerate(
        zip(block.labels.tolist(), block.decision_values.tolist(), strict=True)
    ):
        record: dict[str, object] = {}
        if block.ids is not None:
            record["id"] = as_unicode(block.ids[number])
        record |= {"label": label, "decision_value": value}
        if votes is not None:
            record["votes"] = votes[number]
        if members is not None:
            record["member_values"] = members[number]
        records.append(json.dumps(record))
    return _encoded("\n".join(records) + "\n")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class BlockSpool:
    """Blocks written once and read back in order, as often as needed."""

    def __init__(self) -> None:
        try:
            self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - __exit__ closes it
                max_size=SPOOL_MEMORY, prefix="resvm-"
            )
        except OSError as error:
            raise self._failed(error) from None
        self._n_blocks = 0

    def __enter__(self) -> BlockSpool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    @staticmethod
    def _failed(error: OSError) -> Exception:
        return cannot("spool", os.environ.get("TMPDIR", "the temporary directory"), error)

    def add(self, block: PredictionBlock) -> None:
        """Keep a block; its labels are not known yet."""
        names = "" if block.ids is None else "\n".join(block.ids)
        text = np.frombuffer(names.encode("utf-8", "surrogateescape"), np.uint8)
        try:
            for array in (
                block.decision_values,
                _NOTHING if block.votes is None else block.votes,
                _NOTHING if block.member_values is None else block.member_values,
                np.array([block.ids is not None]),
                text,
            ):
                np.save(self._file, array, allow_pickle=False)
        except OSError as error:
            raise self._failed(error) from None
        self._n_blocks += 1

    def __iter__(self) -> Iterator[PredictionBlock]:
        self._file.seek(0)
        for _ in range(self._n_blocks):
            try:
                values, votes, members, named, text = (
                    np.load(self._file, allow_pickle=False) for _ in range(5)
                )
            except OSError as error:
                raise self._failed(error) from None
            ids = text.tobytes().decode("utf-8", "surrogateescape").split("\n")
            yield PredictionBlock(
                labels=np.zeros(len(values), np.int64),
                decision_values=values,
                votes=votes if len(votes) else None,
                member_values=members if members.ndim == 2 else None,
                ids=ids if named[0] else None,
            )


def labelled(block: PredictionBlock, least: float) -> PredictionBlock:
    """The block with label 1 for values of at least this, else -1."""
    return replace(block, labels=np.where(block.decision_values >= least, 1, -1))
