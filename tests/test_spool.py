"""Blocks come back from the spool as they went in, from memory or from disk."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.errors import FileError
from resvm_cli.files import spool
from resvm_cli.files.predictions import PredictionBlock
from resvm_cli.files.spool import BlockSpool, labelled


def block(size, votes=False, members=0, ids=None):
    return PredictionBlock(
        labels=np.ones(size, np.int64),
        decision_values=np.linspace(-1, 1, size),
        votes=np.linspace(0, 1, size) if votes else None,
        member_values=np.arange(size * members, dtype=float).reshape(size, members)
        if members
        else None,
        ids=ids,
    )


@pytest.mark.parametrize("memory", [1, 1 << 25])
def test_blocks_are_read_back_in_order_as_often_as_wanted(memory, monkeypatch):
    monkeypatch.setattr(spool, "SPOOL_MEMORY", memory)
    some = [
        block(3),
        block(1, votes=True, members=2),
        block(2, ids=["", "na\u00efve \udcff"]),
        block(1, ids=[""]),
    ]
    with BlockSpool() as kept:
        for one in some:
            kept.add(one)
        for _ in range(2):
            found = list(kept)
            assert len(found) == len(some)
            for one, again in zip(some, found, strict=True):
                assert again.decision_values.tolist() == one.decision_values.tolist()
                assert again.ids == one.ids
                for name in ("votes", "member_values"):
                    before, after = getattr(one, name), getattr(again, name)
                    assert (before is None) == (after is None)
                    assert before is None or np.array_equal(before, after)


def test_labels_are_given_from_a_least_value_on():
    assert labelled(block(3), 0.0).labels.tolist() == [-1, 1, 1]


def test_a_full_disk_is_said_plainly(monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr(spool.tempfile, "SpooledTemporaryFile", lambda **options: Full())
    with BlockSpool() as kept, pytest.raises(FileError, match="No space left"):
        kept.add(block(3))
