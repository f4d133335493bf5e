"""Labels that mean positive, and predictions joined with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from resvm_cli.commands.score import score
from resvm_cli.errors import DataError
from resvm_cli.running.run import Run


def test_many_labels_are_not_all_listed():
    with pytest.raises(DataError) as caught:
        score._matching(np.arange(50.0), None, "x")
    assert "0, 1, 2" in caught.value.message
    assert caught.value.message.endswith("19, and 30 more")


@pytest.mark.parametrize("labels", [[1.0, -1.0], [1.0, 0.0], [1.0], [0.0], [-1.0]])
def test_one_is_positive_beside_minus_one_or_zero(labels):
    chosen = score._matching(np.array(labels), None, "x")
    assert chosen.tolist() == [label == 1 for label in labels]


LABELS = ("1 1:2 # a", "-1 1:3 # b", "# not a row", "1 2:1 # c", "", "-1 1:1 # d")
NAMED = {  # as predict --ids writes them, in another order
    "text": "-1 -3 # d\n1 2 # a\n1 1 # c\n-1 -2 # b\n",
    "tsv": "id\tlabel\tdecision_value\nd\t-1\t-3\na\t1\t2\nc\t1\t1\nb\t-1\t-2\n",
    "csv": "label,decision_value,id\n-1,-3,d\n1,2,a\n1,1,c\n-1,-2,b\n",
    "jsonl": "".join(
        f'{{"id": "{name}", "label": {1 if value > 0 else -1}, "decision_value": {value}}}\n'
        for name, value in (("d", -3), ("a", 2), ("c", 1), ("b", -2))
    ),
}


def joined(folder, labels, *predictions):
    (folder / "labels").write_bytes("\n".join(labels).encode("utf-8", "surrogateescape"))
    names = [str(folder / f"p{number}") for number in range(len(predictions))]
    for name, text in zip(names, predictions, strict=True):
        Path(name).write_text(text)
    request = score.ScoreRequest(tuple(names), labels=str(folder / "labels"))
    positive, files, _ = score.read_rows(request, Run())
    return [positive.tolist(), *(file.values.tolist() for file in files)]


@pytest.mark.parametrize("form", NAMED)
def test_predictions_and_labels_with_ids_are_joined_by_id(form, tmp_path):
    values = [2, -2, 1, -3]
    positive = [True, False, True, False]
    assert joined(tmp_path, LABELS, NAMED[form], NAMED["text"]) == [positive, values, values]


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [
        (("1", "-1", "1", "-1"), NAMED["text"]),
        (LABELS, "-1 -3\n1 2\n1 1\n-1 -2\n"),
        (LABELS, "-1 -3 #\n1 2 #\n1 1 #\n-1 -2 #\n"),
        (LABELS, "-3\n2\n1\n-2\n"),
        (LABELS, "-1 -3\n1 2\n1 1 # c\n-1 -2\n"),  # the only ids that can be compared agree
        (("1", "1 # b", "1 # a", "0 # b"), "-1 -3 # b\n1 2 # b\n1 1 #a\n-1 -2 # b\n"),
    ],
)
def test_rows_without_ids_or_with_the_same_ids_are_joined_by_order(labels, predictions, tmp_path):
    assert joined(tmp_path, labels, predictions)[1] == [-3, 2, 1, -2]


def test_an_id_that_is_not_utf_8_is_the_same_in_json(tmp_path):
    labels = ("1 # \udcff", "-1 # b")
    lines = '{"id": "b", "decision_value": 1}\n{"id": "\\\\xff", "decision_value": 2}\n'
    assert joined(tmp_path, labels, lines) == [[True, False], [2, 1]]


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ("1 1 # x\n1 1 # b\n1 1 # c\n1 1 # d\n", "2 ids are in only one of them, such as 'x'"),
        ("1 1 # b\n1 1 # a\n1 1 # c\n", "1 ids are in only one of them, such as 'd'"),
        ("1 1 # b\n1 1 # a\n1 1 # c\n1 1 # d\n1 1 # d\n", "an id is not unique"),
        ("1 1 # b\n1 1 # a\n1 1 #\n1 1 # d\n", "2 ids are in only one of them"),
    ],
)
def test_ids_that_cannot_be_joined_are_refused(predictions, message, tmp_path):
    with pytest.raises(DataError, match=f"do not have the same rows: {message}") as caught:
        joined(tmp_path, LABELS, predictions)
    assert caught.value.hint == score.BY_ORDER


@pytest.mark.parametrize(
    ("extra", "message"),
    [("1 # a", "the id 'a' is not unique"), ("1\n1", "some rows have no id")],
)
def test_labels_whose_ids_are_not_unique_cannot_be_joined(extra, message, tmp_path):
    with pytest.raises(DataError, match=f"labels: {message}, so files cannot be joined"):
        joined(tmp_path, (*LABELS, extra), NAMED["text"])


def test_twenty_labels_are_listed_and_no_more():
    labels = np.arange(2.0, 23.0)
    for count, end in ((20, "20, 21"), (21, "20, 21, and 1 more")):
        with pytest.raises(DataError) as refused:
            score._matching(labels[:count], None, "rows")
        assert str(refused.value.message).endswith(end)
