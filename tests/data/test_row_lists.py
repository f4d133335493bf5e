"""Lists with one entry per row: ids, labels and weights of known positives."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from resvm_cli.data import pufiles
from resvm_cli.data.inputs import read_file
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pudata import PositiveWeights
from resvm_cli.data.pufiles import PUFiles
from resvm_cli.data.row_lists import (
    WeightLines,
    read_known_ids,
    read_labels,
    read_names,
    read_row_ids,
)
from resvm_cli.ensemble.plan import bag_of
from resvm_cli.errors import DataError
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.storage import model as directory
from tests.conftest import SAMPLE, data_arguments, few_members, write_svm
from tests.fitting import fitted

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
    return PUFiles(source, Run())


def dense(rows):
    matrix = np.zeros((len(rows), 5))
    matrix[rows.row_numbers, rows.indices] = rows.values
    return matrix[:, 1:].tolist()


@pytest.mark.parametrize(("kept", "packed"), [(0, False), (0, True), (1 << 22, False)])
@pytest.mark.parametrize(("data", "names"), [("all.svm", None), ("bare.svm", "names.txt")])
def test_rows_of_listed_ids_are_p_and_the_others_u(folder, data, names, packed, kept, monkeypatch):
    monkeypatch.setattr(pufiles, "KEPT_NONZEROS", kept)
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
    with PUFiles(source, Run()) as found:
        assert found.ids()[:4] == ["a", "2", "1", "2"]
    source = TrainingInput(data=str(folder / "bare.svm"), positive_label=0.0, keep_ids=True)
    write_svm(folder / "bare.svm", FEATURES, np.arange(60) % 2)
    with PUFiles(source, Run()) as found:
        assert found.ids() == list(map(str, [*range(1, 61, 2), *range(2, 61, 2)]))


def test_missing_ids_are_noted(folder):
    more = [f"lost-{number}" for number in range(12)]
    with (folder / "known.txt").open("a") as handle:
        handle.writelines(f"{name}\n" for name in more)
    with opened(folder) as found:
        assert len(found.positives) == 4
        (note,) = (note for note in found.notes if "12 of the 16 ids" in note)
    assert note.endswith("lost-9, and 2 more")
    assert "lost-10" not in note


def test_a_list_of_other_names_is_refused(folder):
    (folder / "known.txt").write_text("ENSG1\nENSG2\n")
    with pytest.raises(DataError, match="none of the 2 ids") as caught:
        opened(folder)
    assert "gene-0, gene-1, gene-2" in (caught.value.hint or "")


def test_an_id_of_two_rows_is_refused_with_both_lines(folder):
    write_svm(folder / "all.svm", FEATURES, comments=[*NAMES[:10], "gene-3", *NAMES[11:]])
    with pytest.raises(
        DataError, match=r"all.svm:11: the id 'gene-3' appears twice, first on line 4"
    ):
        opened(folder)


def test_repeated_ids_that_are_not_listed_are_remarked_on(folder):
    write_svm(folder / "all.svm", FEATURES, comments=[*NAMES[:10], "gene-9", *NAMES[11:]])
    with opened(folder) as found:
        assert any("ids of more than one row: gene-9" in note for note in found.notes)


def test_an_id_listed_twice_is_refused_with_its_line(folder):
    twice = folder / "known $(genes).txt"
    twice.write_text((folder / "known.txt").read_text() + "gene-4\n")
    message = r"known \$\(genes\).txt:6: 'gene-4' is listed twice, first on line 3"
    with pytest.raises(DataError, match=message) as caught:
        opened(folder, known=twice.name)
    assert caught.value.hint == f"keep each id once: sort -u '{twice}'"


def test_rows_without_comments_have_no_ids_to_look_for(folder):
    with pytest.raises(DataError, match=r"no row ends in an id") as caught:
        opened(folder, "bare.svm")
    assert "ids_file" in str(caught.value.hint)
    assert "id_column" not in str(caught.value.hint)
    (folder / "bare.csv").write_text("name,a\nx,1\ny,2\n")
    with pytest.raises(DataError, match="no row has an id") as caught:
        opened(folder, "bare.csv")
    assert "`id_column='NAME'`" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["1 1:0.5 7:1 # gene-3\n", "3:1 4:2\n", "+1 qid:3 1:2\n"])
def test_a_svmlight_file_is_no_list_of_ids(folder, text):
    (folder / "svm.txt").write_text(text)
    with pytest.raises(DataError, match=r"svm.txt:1: an svmlight row; expected one id per line"):
        opened(folder, known="svm.txt")
    with pytest.raises(DataError, match=r"svm.txt:1: an svmlight row; expected one id per line"):
        opened(folder, names="svm.txt")


@pytest.mark.parametrize("lines", [59, 61])
def test_a_list_of_all_ids_has_as_many_lines_as_rows(folder, lines):
    (folder / "names.txt").write_text("".join(f"{name}\n" for name in [*NAMES, "more"][:lines]))
    with pytest.raises(DataError, match=f"names.txt: {lines} lines for 60 rows of data"):
        opened(folder, "bare.svm", names="names.txt")


def test_all_rows_known_leaves_nothing_unlabeled(folder):
    with pytest.raises(DataError, match=r"every row has an id from .*names.txt"):
        opened(folder, known="names.txt")


def test_rows_without_an_id_are_unlabeled_and_counted(folder):
    names = ["" if number in (0, 58) else name for number, name in enumerate(NAMES)]
    write_svm(folder / "some.svm", FEATURES, comments=names)
    with opened(folder, "some.svm") as data:
        assert [note for note in data.notes if "2 rows without an id count as unlabeled" in note]


def test_labels_are_those_of_the_rows_read_whole():
    path = str(SAMPLE / "digits" / "test.svm")
    assert read_labels(path)[0].tolist() == read_file(path).labels.tolist()


def test_a_plain_list_and_rows_without_features_do(tmp_path):
    path = tmp_path / "labels"
    path.write_bytes(
        b"\xef\xbb\xbf1\n# a comment\n\n-1 qid:3\n+1 # name\n0 1:2 this is not looked at"
    )
    assert read_labels(str(path))[0].tolist() == [1, -1, 1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1 1:2\n3:4 5:6\n", ":2:1: cannot read '3:4'; expected a numeric label"),
        (b"nan\n", "'nan' cannot be ranked"),
        (b"", "no labels"),
        (b"1\nyes\n", "cannot read 'yes'"),
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


N_POS = 30  # rows of P of the small problem


@pytest.fixture
def weights(tmp_path):
    """A file of weights: every third row of P is unsure."""
    path = tmp_path / "weights.txt"
    path.write_text("# how sure\n" + "".join(f"{1 if i % 3 else 0.1}\n" for i in range(N_POS)))
    return path


def quick(problem, command="train", *more):
    if command == "rank":
        return [command, *data_arguments(problem), "--params", few_members(6), *more]
    return [command, "--no-auto", *data_arguments(problem), "--n-models", 6, *more]


def same_model(first, second):
    names = {path.relative_to(first) for path in first.rglob("*") if path.is_file()}
    assert names == {path.relative_to(second) for path in second.rglob("*") if path.is_file()}
    return all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


def test_rows_are_drawn_by_their_weights_whatever_the_jobs(problem, weights, resvm, tmp_path):
    for jobs in (1, 2):
        target = tmp_path / f"m{jobs}"
        ran = resvm(*quick(problem), "--weights", weights, "-j", jobs, "-o", target)
        assert ran.code == 0, ran.err
    assert same_model(tmp_path / "m1", tmp_path / "m2")
    stored = directory.load_model(str(tmp_path / "m1"))
    assert stored.manifest["bags"] == "pcg64-1-weighted"
    plain = resvm(*quick(problem), "-o", tmp_path / "plain")
    assert plain.code == 0
    assert not same_model(tmp_path / "m1", tmp_path / "plain")
    # members have no support row that was not drawn for them
    plan = stored.plan.with_weights(
        PositiveWeights.from_values([1 if i % 3 else 0.1 for i in range(N_POS)])
    )
    positives = read_file(str(problem / "pos.svm")).rows
    keys = positives.without_zeros().content_keys()
    pool = stored.ensemble.pool
    for number, member in enumerate(stored.ensemble.members):
        drawn = {keys[row] for row in bag_of(plan.settings[0], number)[0]}
        own = pool.take(member.support[: member.n_positive]).content_keys()
        assert set(own) <= drawn


def test_a_part_of_other_weights_is_not_continued_or_merged(problem, weights, resvm, tmp_path):
    other = tmp_path / "other"
    other.write_text("0.2\n" + "1\n" * (N_POS - 1))
    first, second = tmp_path / "first", tmp_path / "second"
    task = (*quick(problem), "--weights", weights, "--task")
    assert resvm(*task, "1/2", "-o", first).code == 0
    ran = resvm(*quick(problem), "--weights", other, "--task", "1/2", "-o", first)
    assert (ran.code, "a part of another model" in ran.err) == (2, True)
    assert resvm(*quick(problem), "--weights", other, "--task", "2/2", "-o", second).code == 0
    assert resvm("merge", first, second, "-o", tmp_path / "m").code == 4


@pytest.mark.parametrize("estimate", [[], ["-v", "3"]])
def test_tune_judges_by_the_weights(estimate, problem, weights, resvm, tmp_path):
    common = ["tune", *data_arguments(problem), *estimate, "--search", "random"]
    common += ["--trials", 3, "--n-models", 4, "--no-extend"]
    scores = {}
    (tmp_path / "equal.txt").write_text("0.7\n" * N_POS)
    for name, given in (
        ("none", []),
        ("equal", ["--weights", tmp_path / "equal.txt"]),
        ("given", ["--weights", weights]),
    ):
        ran = resvm(*common, *given, "-j", 1, "-o", tmp_path / name)
        assert ran.code == 0, ran.err
        scores[name] = (tmp_path / name / "trials.jsonl").read_bytes()
    assert scores["none"] == scores["equal"] != scores["given"]


def test_with_ids_weights_are_told_by_id_in_any_order(problem, resvm, tmp_path):
    lines = (problem / "pos.svm").read_text().splitlines()
    lines += (problem / "unl.svm").read_text().splitlines()
    all_rows = tmp_path / "all.svm"
    named = [f"{line.split(' #')[0]} # row {number}\n" for number, line in enumerate(lines)]
    all_rows.write_text("".join(named))
    order = np.random.default_rng(0).permutation(N_POS)
    (tmp_path / "known").write_text("".join(f"row {i}\n" for i in order))
    (tmp_path / "by-id").write_text("".join(f"row {i}\t{1 if i % 3 else 0.1}\n" for i in order))
    by_place = tmp_path / "by-place"
    by_place.write_text("".join(f"{1 if i % 3 else 0.1}\n" for i in range(N_POS)))
    ids = ["--data", all_rows, "--positive-ids", tmp_path / "known", "--n-models", 6]
    ran = resvm("train", "--no-auto", *ids, "--weights", tmp_path / "by-id", "-o", tmp_path / "ids")
    assert ran.code == 0, ran.err
    assert resvm(*quick(problem), "--weights", by_place, "-o", tmp_path / "files").code == 0
    digests = [
        json.loads((tmp_path / name / "manifest.json").read_text())["data"]["positive"]
        for name in ("ids", "files")
    ]
    assert digests[0] == digests[1]
    for text, message in (
        ("row 0 1\n", "29 known positives have no weight, for example 'row 1'"),
        ("row 99 1\n", ":1: 'row 99' is not a known positive"),
        ("row 1 1\nrow 1 0\n", ":2: 'row 1' already has a weight, on line 1"),
        ("0.5\n", ":1: no id before the weight"),
    ):
        (tmp_path / "bad").write_text(text)
        ran = resvm(
            "train", "--no-auto", *ids, "--weights", tmp_path / "bad", "-o", tmp_path / "no"
        )
        assert (ran.code, message in ran.err) == (3, True), ran.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no weights"),
        ("0.5\n", "1 weights for 30 rows of P"),
        ("1\n" * 31, "31 weights for 30 rows of P"),
        ("1\n1.5\n", ":2: the weight is '1.5'; expected a number from 0 to 1"),
        ("1\n-0.5\n", ":2: the weight is '-0.5'"),
        ("nan\n", ":1: the weight is 'nan'"),
        ("1\n1e999\n", ":2: the weight is '1e999'"),
        ("# sure\n1_0\n", ":2: the weight is '1_0'"),
        ("1\n\n1\n", ":2: an empty line"),
        ("1 1:0.5\n", ":1: '1 1:0.5' is not a number"),
        ("0\n" * 30, "all weights are 0"),
        ("0\n" * 29 + "1\n", "only one row of P has"),
    ],
)
def test_bad_weights_are_exit_3_with_their_place(text, message, problem, resvm, tmp_path):
    path = tmp_path / "weights"
    path.write_text(text)
    ran = resvm(*quick(problem), "--weights", path, "-o", tmp_path / "m")
    assert (ran.code, message in ran.err) == (3, True), ran.err
    assert str(path) in ran.err
    assert not (tmp_path / "m").exists()


def test_trailing_blank_lines_and_comments_are_passed_over(tmp_path):
    (tmp_path / "w").write_bytes(b"\xef\xbb\xbf# sure\n1\n# not\n.5\n\n\n")
    read = WeightLines.read(str(tmp_path / "w"), with_ids=False)
    assert read.of_rows(2, None).tolist() == [1.0, 0.5]


def test_from_python_weights_of_known_positives_count(problem, weights, resvm, tmp_path):
    blocks = [
        load_svmlight_file(problem / f"{name}.svm", n_features=5)[0] for name in ("pos", "unl")
    ]
    X = np.vstack([block.toarray() for block in blocks])
    y = np.repeat([1, 0], [N_POS, len(X) - N_POS])
    given = np.full(len(X), np.nan)
    given[:N_POS] = [1 if i % 3 else 0.1 for i in range(N_POS)]
    model = fitted(X, y, weights=given, n_models=6)
    assert resvm(*quick(problem), "--weights", weights, "-o", tmp_path / "m").code == 0
    stored = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert model.manifest_["data"]["positive"] == stored["data"]["positive"]
    assert model.manifest_["bags"] == stored["bags"]
    plain = fitted(X, y, n_models=6)
    assert plain.manifest_["bags"] == "pcg64-1"
    with pytest.raises(ValueError, match=r"3 weights, but X has"):
        fitted(X, y, weights=[1, 1, 1])
    with pytest.raises(ValueError, match="`weights` does not apply to `method"):
        fitted(X, y, weights=given, method="bagging")
    with pytest.raises(DataError, match="the weight of row 1 of P is 2"):
        fitted(X, y, weights=np.full(len(X), 2.0))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (b"a\nb\na\n", read_names),  # groups and folds
        (b"a\nb\n", read_row_ids),
        (b"a\nb\n", read_known_ids),
        (b"1\n-1\n", lambda path: read_labels(path)[0].tolist()),
        (b"0.5\n1\n", lambda path: WeightLines.read(path, with_ids=False).values.tolist()),
        (b"a 0.5\nb 1\n", lambda path: WeightLines.read(path, with_ids=True).lines),
    ],
)
def test_a_byte_order_mark_does_not_change_a_list(text, read, tmp_path):
    plain, marked = tmp_path / "plain", tmp_path / "marked"
    plain.write_bytes(text)
    marked.write_bytes(b"\xef\xbb\xbf" + text)
    assert read(str(marked)) == read(str(plain))


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "is empty"), ("\n", "is empty"), ("a\n\nb\n", ":2: an empty line"), ("a\n\n\n", ":2:")],
)
def test_lists_of_names_have_no_empty_lines(text, message, tmp_path):
    (tmp_path / "names").write_text(text)
    with pytest.raises(DataError, match=message):
        read_names(str(tmp_path / "names"))
    (tmp_path / "names").write_text("a\nb\n\n")
    assert read_names(str(tmp_path / "names")) == ["a", "b"]
