"""Labels come from svmlight files and lists alike."""

from __future__ import annotations

import pytest

from resvm_cli.errors import DataError
from resvm_cli.files.ids import read_known_ids
from resvm_cli.files.labels import read_labels
from resvm_cli.files.svmlight import read_file
from tests.conftest import SAMPLE


def test_labels_are_those_of_the_rows_read_whole():
    path = str(SAMPLE / "digits" / "test.svm")
    assert read_labels(path).tolist() == read_file(path).labels.tolist()


def test_a_plain_list_and_rows_without_features_do(tmp_path):
    path = tmp_path / "labels"
    path.write_bytes(
        b"\xef\xbb\xbf1\n# a comment\n\n-1 qid:3\n+1 # name\n0 1:2 this is not looked at"
    )
    assert read_labels(str(path)).tolist() == [1, -1, 1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1 1:2\n3:4 5:6\n", ":2:1: cannot read '3:4'; a numeric label was expected"),
        (b"nan\n", "'nan' has no rank"),
        (b"", "no labels"),
        (b"yes\n", "cannot read 'yes'"),
    ],
)
def test_a_row_without_label_is_refused(text, message, tmp_path):
    path = tmp_path / "labels"
    path.write_bytes(text)
    with pytest.raises(DataError) as caught:
        read_labels(str(path))
    assert message in caught.value.message


def test_ids_are_lines(tmp_path):
    path = tmp_path / "ids"
    path.write_text("BRCA1\n\n# a comment\n  two words \n")
    assert list(read_known_ids(str(path))) == ["BRCA1", "two words"]
    path.write_text("\n")
    with pytest.raises(DataError, match="no ids"):
        read_known_ids(str(path))
