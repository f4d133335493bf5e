"""What predict writes is read back; what is something else is refused by name."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resvm_cli.errors import DataError
from resvm_cli.files.prediction_reader import read_predictions
from resvm_cli.files.prediction_writer import PredictionBlock, format_block, format_header

FORMS = ("text", "tsv", "csv", "jsonl")


def block(values, ids=None, votes=False, members=0):
    size = len(values)
    return PredictionBlock(
        labels=np.where(np.arange(size) % 3 == 0, 1, -1),
        decision_values=np.array(values, float),
        votes=np.linspace(0, 1, size) if votes else None,
        member_values=np.ones((size, members)) if members else None,
        ids=ids,
    )


def write(path, form, some):
    path.write_bytes(format_header(form, some) + format_block(form, some))
    return str(path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("votes", [False, True])
@pytest.mark.parametrize("members", [0, 2])
@pytest.mark.parametrize("named", [False, True])
def test_every_format_is_read_back(form, votes, members, named, tmp_path):
    ids = ['plain, "quoted"', "# odd", "tab\there", ""] if named else None
    if form == "text" and named:
        ids = ["plain", "two words", "x # y", ""]
    some = block([0.1, -2.5, 3e-5, 17.0], ids, votes, members)
    path = write(tmp_path / "p", form, some)
    for with_ids in (False, True) if named else (False,):
        found = read_predictions(path, with_ids=with_ids)
        assert found.values.tolist() == some.decision_values.tolist()
        assert found.called.tolist() == [True, False, False, True]
        assert found.ids == (ids if with_ids else None)
        assert found.provenance == "unknown"


@settings(max_examples=30)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_values_are_read_exactly(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("p")
    for form in FORMS:
        assert read_predictions(write(folder / form, form, block(values))).values.tolist() == values


def test_bare_numbers_have_no_labels_and_may_be_compressed(tmp_path):
    path = tmp_path / "p.gz"
    path.write_bytes(gzip.compress(b"0.5\n-inf\n1e3\n"))
    found = read_predictions(str(path))
    assert found.values.tolist() == [0.5, -np.inf, 1000]
    assert found.called is None


@pytest.mark.parametrize(
    ("text", "provenance"),
    [
        (b"# values: out-of-bag\n1 0.5\n", "out-of-bag"),
        (b"\n# by hand\n# values: held-out\n0.5\n", "held-out"),
        (b"# values: trained-on\nid\tlabel\tdecision_value\nx\t1\t2\n", "trained-on"),
        (b"rank\tid\tknown\tdecision_value\tvotes\tmembers\n1\tx\t0\t0.5\t0.5\t44\n", "out-of-bag"),
        (b'{"id": "x", "decision_value": 0.5, "members": 44}\n', "out-of-bag"),
        (b"# values: guessed\n1 0.5\n", "unknown"),
    ],
)
def test_a_file_may_say_where_its_values_come_from(text, provenance, tmp_path):
    path = tmp_path / "p"
    path.write_bytes(text)
    for with_ids in (False, b"id" in text):
        assert read_predictions(str(path), with_ids=with_ids).provenance == provenance


def test_a_byte_order_mark_and_crlf_do_no_harm(tmp_path):
    path = tmp_path / "p"
    path.write_bytes(b"\xef\xbb\xbfid,label,decision_value\r\na,1,0.5\r\nb,-1,-1\r\n")
    found = read_predictions(str(path), with_ids=True)
    assert (found.values.tolist(), found.ids) == ([0.5, -1], ["a", "b"])
    assert read_predictions(str(path)).values.tolist() == [0.5, -1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "no predictions"),
        (b"\n# nothing\n", "no predictions"),
        (b"id\tlabel\tdecision_value\n", "no predictions"),
        (b"1 3:0.5 4:1\n", "a svmlight file, not predictions"),
        (b"hello world\n", "p:1: not a prediction file: 'hello world'"),
        (b"id,score\nx,1\n", "p:1: not a prediction file: 'id,score'"),
        (b"1 0.5\n1 nan\n", "p:2:3: 'nan' has no rank"),
        (b"nan\n", "p:1:1: 'nan' has no rank"),
        (b"7 0.5\n", "row 1 is labelled 7; predict writes 1 or -1"),
        (b'{"decision_value": 1}\n{"value": 2}\n', "p:2: not a JSON object with a number"),
        (b'{"decision_value": NaN}\n', "p:1: nan has no rank"),
        (b"{oops\n", "p:1: not a JSON object"),
        (b"\x7fELF\x00\x01\n", "not a prediction file"),
    ],
)
def test_what_is_no_prediction_file_is_refused(text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").write_bytes(text)
    with pytest.raises(DataError) as caught:
        read_predictions("p")
    assert message in caught.value.message


@pytest.mark.parametrize(
    "text", [b"1 0.5\n", b"label\tdecision_value\n1\t0.5\n", b'{"decision_value": 1}\n', b"0.5\n"]
)
def test_a_file_without_ids_cannot_be_joined(text, tmp_path):
    (tmp_path / "p").write_bytes(text)
    with pytest.raises(DataError, match="has no ids to join by"):
        read_predictions(str(tmp_path / "p"), with_ids=True)


def test_a_bad_value_is_refused_also_where_ids_are_read(tmp_path):
    (tmp_path / "p").write_bytes(b"id,decision_value\na,1\nb,nan\n")
    with pytest.raises(DataError, match=r"p:3: cannot read 'nan'"):
        read_predictions(str(tmp_path / "p"), with_ids=True)
