"""Predictions as text, beside plain Python formatting; a spool gives back what it was given."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from resvm_cli.errors import FileError
from resvm_cli.files import prediction_writer
from resvm_cli.files.prediction_writer import (
    BlockSpool,
    PredictionBlock,
    format_block,
    labelled,
)

NAMES = ["a b", "", 'say "no"', "x,y", "t\tab", "car\rriage", "\udcff\u00e9"]


def block(*, votes: bool, members: bool, ids: bool) -> PredictionBlock:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(len(NAMES)) * 10.0 ** rng.integers(-20, 20, len(NAMES))
    return PredictionBlock(
        labels=np.where(values > 0, 1, -1),
        decision_values=values,
        votes=rng.integers(0, 5, len(NAMES)) / 4 if votes else None,
        # one member behind the other, as the pool makes them
        member_values=rng.standard_normal((3, len(NAMES))).T if members else None,
        ids=NAMES if ids else None,
    )


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("members", [False, True])
@pytest.mark.parametrize("votes", [False, True])
@pytest.mark.parametrize("form", ["text", "tsv", "csv"])
def test_a_line_holds_the_columns_asked_for(form, votes, members, ids):
    some = block(votes=votes, members=members, ids=ids)
    text = io.StringIO()
    writer = csv.writer(text, delimiter="," if form == "csv" else "\t", lineterminator="\r\n")
    for row, name in enumerate(NAMES):
        fields = [str(some.labels[row]), repr(float(some.decision_values[row]))]
        fields += [repr(float(some.votes[row]))] if votes else []
        fields += [repr(float(value)) for value in some.member_values[row]] if members else []
        if form == "text":
            fields += ["#", name] if ids else []
            text.write(" ".join(filter(None, fields)) + "\n")
        else:
            writer.writerow([name, *fields] if ids else fields)
    expected = text.getvalue().replace("\r\n", "\n")  # named above so that both are quoted
    assert format_block(form, some) == expected.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("form", ["text", "tsv", "csv"])
def test_no_rows_are_no_lines(form):
    nothing = PredictionBlock(np.zeros(0, np.int64), np.zeros(0), None, None, [])
    assert format_block(form, nothing) == b""


def kept_block(size, votes=False, members=0, ids=None):
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
    monkeypatch.setattr(prediction_writer, "SPOOL_MEMORY", memory)
    some = [
        kept_block(3),
        kept_block(1, votes=True, members=2),
        kept_block(2, ids=["", "na\u00efve \udcff"]),
        kept_block(1, ids=[""]),
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
    assert labelled(kept_block(3), 0.0).labels.tolist() == [-1, 1, 1]


def test_a_full_disk_is_said_plainly(monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr(
        prediction_writer.tempfile, "SpooledTemporaryFile", lambda **options: Full()
    )
    with BlockSpool() as kept, pytest.raises(FileError, match="No space left"):
        kept.add(kept_block(3))
