"""Rows by their ids, P found in one pass over one file; labels from svmlight files and lists."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.row_names import read_known_ids, read_labels
from resvm_cli.files.svmlight import read_file
from resvm_cli.rows import Rows
from resvm_cli.running.run import Run
from resvm_cli.training import data as training_data
from resvm_cli.training.data import TrainingData
from resvm_cli.training.input import TrainingInput
from tests.conftest import SAMPLE, write_svm

RNG = np.random.default_rng(11)
FEATURES = np.round(RNG.standard_normal((60, 4)), 3)
NAMES = [f"gene-{number}" for number in range(60)]
KNOWN = [3, 4, 17, 59]


@pytest.fixture
def folder(tmp_path):
    write_svm(tmp_path / "all.svm", FEATURES, comments=NAMES)
    write_svm(tmp_path / "bare.svm", FEATURES)
    (tmp_path / "names.txt").write_text("".join(f"{name}\n" for name in NAMES))
    (tmp_path / "known.txt").write_text("# known\n" + "".join(f"{NAMES[n]}\n" for n in KNOWN))
    return tmp_path


def opened(folder, data="all.svm", known="known.txt", names=None, **more):
    source = TrainingInput(
        data=str(folder / data),
        positive_ids=str(folder / known),
        ids_file=None if names is None else str(folder / names),
        keep_ids=True,
        **more,
    )
    source.check()
    return TrainingData(source, False, Run())


def dense(rows):
    matrix = np.zeros((len(rows), 5))
    matrix[rows.row_numbers, rows.indices] = rows.values
    return matrix[:, 1:].tolist()


@pytest.mark.parametrize("kept", [0, 1 << 22])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("data", "names"), [("all.svm", None), ("bare.svm", "names.txt")])
def test_rows_of_listed_ids_are_p_and_the_others_u(folder, data, names, packed, kept, monkeypatch):
    monkeypatch.setattr(training_data, "KEPT_NONZEROS", kept)
    if packed:
        (folder / data).write_bytes(gzip.compress((folder / data).read_bytes()))
    others = np.setdiff1d(np.arange(60), KNOWN)
    with opened(folder, data, names=names) as found:
        assert dense(found.positives) == FEATURES[KNOWN].tolist()
        assert found.n_unlabeled == 56
        some = np.array([0, 2, 3, 14, 15, 55])
        assert dense(found.fetch(some)) == FEATURES[others[some]].tolist()
        assert dense(Rows.concatenate(list(found.unlabeled()))) == FEATURES[others].tolist()
        assert found.ids() == [NAMES[number] for number in (*KNOWN, *others)]


def test_rows_without_ids_are_called_by_their_numbers(folder):
    write_svm(folder / "pos.svm", FEATURES[:2], comments=["a", ""])
    source = TrainingInput(str(folder / "pos.svm"), str(folder / "bare.svm"), keep_ids=True)
    with TrainingData(source, False, Run()) as found:
        assert found.ids()[:4] == ["a", "2", "1", "2"]
    source = TrainingInput(data=str(folder / "bare.svm"), positive_label=0.0, keep_ids=True)
    write_svm(folder / "bare.svm", FEATURES, np.arange(60) % 2)
    with TrainingData(source, False, Run()) as found:
        assert found.ids() == list(map(str, [*range(1, 61, 2), *range(2, 61, 2)]))


def test_missing_ids_are_listed_and_refused_unless_allowed(folder):
    more = [f"lost-{number}" for number in range(12)]
    with (folder / "known.txt").open("a") as handle:
        handle.writelines(f"{name}\n" for name in more)
    with pytest.raises(DataError, match=r"12 of the 16 ids .*lost-9, and 2 more") as caught:
        opened(folder)
    assert "lost-10" not in caught.value.message
    assert "--allow-missing" in (caught.value.hint or "")
    with opened(folder, allow_missing=True) as found:
        assert len(found.positives) == 4
        assert any("12 of the 16 ids" in note for note in found.notes)


def test_a_list_of_other_names_is_refused_even_where_some_may_be_missing(folder):
    (folder / "known.txt").write_text("ENSG1\nENSG2\n")
    with pytest.raises(DataError, match="none of the 2 ids") as caught:
        opened(folder, allow_missing=True)
    assert "gene-0, gene-1, gene-2" in (caught.value.hint or "")


def test_an_id_of_two_rows_is_refused_with_both_lines(folder):
    write_svm(folder / "all.svm", FEATURES, comments=[*NAMES[:10], "gene-3", *NAMES[11:]])
    with pytest.raises(
        DataError, match=r"all.svm:11: the id 'gene-3' comes twice, first in line 4"
    ):
        opened(folder)


def test_repeated_ids_that_are_not_listed_are_remarked_on(folder):
    write_svm(folder / "all.svm", FEATURES, comments=[*NAMES[:10], "gene-9", *NAMES[11:]])
    with opened(folder) as found:
        assert any("1 ids repeat" in note for note in found.notes)


def test_an_id_listed_twice_is_refused_with_its_line(folder):
    with (folder / "known.txt").open("a") as handle:
        handle.write("gene-4\n")
    with pytest.raises(DataError, match=r"known.txt:6: 'gene-4' is listed twice, first in line 3"):
        opened(folder)


def test_rows_without_comments_have_no_ids_to_look_for(folder):
    with pytest.raises(DataError, match=r"none ends in a comment") as caught:
        opened(folder, "bare.svm")
    assert "--ids-file" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["1 1:0.5 7:1 # gene-3\n", "3:1 4:2\n", "+1 qid:3 1:2\n"])
def test_a_svmlight_file_is_no_list_of_ids(folder, text):
    (folder / "svm.txt").write_text(text)
    with pytest.raises(DataError, match=r"svm.txt:1: a svmlight row; one id a line"):
        opened(folder, known="svm.txt")
    with pytest.raises(DataError, match=r"svm.txt:1: a svmlight row; one id a line"):
        opened(folder, names="svm.txt")


@pytest.mark.parametrize("lines", [59, 61])
def test_a_list_of_all_ids_has_as_many_lines_as_rows(folder, lines):
    (folder / "names.txt").write_text("".join(f"{name}\n" for name in [*NAMES, "more"][:lines]))
    with pytest.raises(DataError, match=f"names.txt: {lines} lines, and the data has 60 rows"):
        opened(folder, "bare.svm", names="names.txt")


def test_all_rows_known_leaves_nothing_unlabeled(folder):
    with pytest.raises(DataError, match=r"every row has an id of .*names.txt"):
        opened(folder, known="names.txt")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positive_ids": "k", "positives": "p", "unlabeled": "u"}, "goes with --data"),
        ({"data": "d", "positive_ids": "k", "positive_label": 1.0}, "exclude each other"),
        ({"data": "d"}, "--data needs --positive-label or --positive-ids"),
        ({"data": "d", "positive_label": 1.0, "allow_missing": True}, "--allow-missing goes with"),
        ({"data": "d", "positive_label": 1.0, "ids_file": "i"}, "--ids-file goes with"),
        ({"data": "-", "positive_ids": "-"}, "only one input can be stdin"),
    ],
)
def test_contradictions_are_refused_before_anything_is_read(options, message):
    with pytest.raises(CommandLineError, match=message):
        TrainingInput(**options).check()


def test_rows_without_an_id_are_unlabeled_and_counted(folder):
    names = ["" if number in (0, 58) else name for number, name in enumerate(NAMES)]
    write_svm(folder / "some.svm", FEATURES, comments=names)
    with opened(folder, "some.svm") as data:
        assert [note for note in data.notes if "2 rows have no id: they are unlabeled" in note]


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
