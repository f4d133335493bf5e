"""Predictions are written exactly, read back, and anything else is an error."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resvm_cli.data.predictions import (
    PredictionBlock,
    Predictions,
    format_block,
    format_header,
    read_predictions,
)
from resvm_cli.errors import DataError

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
        assert found.predicted_positive.tolist() == [True, False, False, True]
        assert found.ids == (ids if with_ids else None)


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
    assert found.predicted_positive is None


@pytest.mark.parametrize(
    ("text", "ranked"),
    [
        (b"# values: out-of-bag\n1 0.5\n", False),
        (b"\n# by hand\n# and so on\n0.5\n", False),
        (b"# a comment\nid\tlabel\tdecision_value\nx\t1\t0.5\n", False),
        (b"rank\tid\tknown\tdecision_value\tvotes\tmembers\n1\tx\t0\t0.5\t0.5\t44\n", True),
        (b'{"rank": 1, "id": "x", "decision_value": 0.5, "members": 44}\n', True),
    ],
)
def test_comments_come_before_the_first_row_and_rankings_are_recognized(text, ranked, tmp_path):
    path = tmp_path / "p"
    path.write_bytes(text)
    for with_ids in (False, b"id" in text):
        found = read_predictions(str(path), with_ids=with_ids)
        assert (found.values.tolist(), found.ranked) == ([0.5], ranked)


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
        (b"1 3:0.5 4:1\n", "an svmlight file, not predictions"),
        (b"hello world\n", "p:1: not a prediction file: 'hello world'"),
        (b"id,score\nx,1\n", "p:1: not a prediction file: 'id,score'"),
        (b"1 0.5\n1 nan\n", "p:2:3: 'nan' cannot be ranked"),
        (b"nan\n", "p:1:1: 'nan' cannot be ranked"),
        (b"7 0.5\n", "row 1 has the label 7; expected 1 or -1"),
        (b'{"decision_value": 1}\n{"value": 2}\n', "p:2: not a JSON object with a numeric"),
        (b'{"decision_value": NaN}\n', "p:1: nan cannot be ranked"),
        (b"{oops\n", "p:1: not a JSON object"),
        (b'{"decision_value": 1, "decision_value": 2}\n', "p:1: not a JSON object"),
        (b'{"decision_value": ' + b"9" * 400 + b"}\n", "p:1"),
        *(
            (b'{"label": %b, "decision_value": 1}\n' % label, "p:1")
            for label in (b'"1"', b"2", b"true", b"null", b"[1]", b"1e400")
        ),
        (b'{"label": 1, "decision_value": 1}\n{"decision_value": 2}\n', "p:2"),
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
    with pytest.raises(DataError, match="contains no ids to join by"):
        read_predictions(str(tmp_path / "p"), with_ids=True)


def test_a_bad_value_is_refused_also_where_ids_are_read(tmp_path):
    (tmp_path / "p").write_bytes(b"id,decision_value\na,1\nb,nan\n")
    with pytest.raises(DataError, match=r"p:3:3: 'nan' cannot be ranked"):
        read_predictions(str(tmp_path / "p"), with_ids=True)


@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            b"rank\tid\tdecision_value\tvotes\n1\ta\t0.5\t1\n2\tb\t\t\n",
            "p:3:5: the field is empty; expected a decision value",
        ),
        (
            b"\n"
            b'{"rank": 1, "id": "a", "decision_value": 0.5}\n'
            b'{"rank": 2, "id": "b", "decision_value": null}\n',
            "p:3: the row has no decision value",
        ),
    ],
)
def test_a_ranked_row_without_a_value_is_refused_with_advice(text, message, with_ids, tmp_path):
    (tmp_path / "p").write_bytes(text)
    with pytest.raises(DataError, match=message) as caught:
        read_predictions(str(tmp_path / "p"), with_ids=with_ids)
    assert "train with more members" in str(caught.value.hint)


def test_blank_lines_and_quoted_fields_do_not_shift_the_ids_of_a_table(tmp_path):
    rows = b'"a,1",0.5\n\n\r\nb\xff,1\r\n'
    (tmp_path / "p").write_bytes(b"id,decision_value\n" + rows)
    found = read_predictions(str(tmp_path / "p"), with_ids=True)
    assert (found.ids, found.values.tolist()) == (["a,1", "b\udcff"], [0.5, 1])


NAMES = ["a b", "", 'say "no"', "x,y", "t\tab", "car\rriage", "\udcff\u00e9"]


def some_block(*, votes: bool, members: bool, ids: bool) -> PredictionBlock:
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
    some = some_block(votes=votes, members=members, ids=ids)
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


@pytest.mark.parametrize(("form", "mark"), [("tsv", "\t"), ("csv", ",")])
def test_the_first_line_names_the_columns(form, mark):
    some = some_block(votes=True, members=True, ids=True)
    names = ["id", "label", "decision_value", "votes", "member_0", "member_1", "member_2"]
    assert format_header(form, some) == f"{mark.join(names)}\n".encode()


@pytest.mark.parametrize("form", ["text", "tsv", "csv"])
def test_no_rows_are_no_lines(form):
    nothing = PredictionBlock(np.zeros(0, np.int64), np.zeros(0), None, None, [])
    assert format_block(form, nothing) == b""


finite = st.floats(-1e6, 1e6)


def implied(values, labels):
    labels = None if labels is None else np.array(labels)
    return Predictions("p", np.array(values), labels, None).implied_threshold()


@given(st.lists(finite, min_size=1, max_size=20), finite)
def test_the_threshold_that_labels_imply_gives_the_labels_back(values, threshold):
    numbers = np.array(values)
    found, source = implied(numbers, numbers > threshold)
    assert np.array_equal(numbers > found, numbers > threshold)
    assert source == "the file's labels"


@pytest.mark.parametrize(
    ("values", "labels", "threshold"),
    [
        ([0.1, 0.9], [False, True], 0.5),
        ([-0.1, 0.2], [False, True], 0.0),
        ([0.6, 0.9], [False, True], 0.6),
        ([0.1, 0.2], [False, False], 0.5),
        ([0.6, 0.9], [True, True], 0.5),
    ],
)
def test_a_usual_threshold_is_preferred_where_it_fits(values, labels, threshold):
    assert implied(values, labels)[0] == threshold


def test_labels_that_follow_no_threshold_leave_the_default():
    found, source = implied([0.1, 0.9], [True, False])
    assert found == 0.5
    assert "no threshold separates the file's labels" in source
    assert implied([3.0], None) == (0.5, "the default")
