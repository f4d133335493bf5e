"""Prediction blocks kept until all are known, in memory at first, then in TMPDIR."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType

import numpy as np

from resvm_cli.files.predictions import PredictionBlock
from resvm_cli.files.streams import SPOOL_MEMORY, cannot

_NOTHING = np.zeros(0)


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
