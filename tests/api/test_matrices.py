"""Matrices, labels and svmlight files: what is converted, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csr_matrix

import resvm_cli
from resvm_cli.api import matrices
from resvm_cli.run import Run
from tests.api.test_frames import Frame
from tests.fitting import fitted


def read_labels(X, y, label=None, negative_label=None):
    return matrices.labeled_rows(X, y, label, negative_label, Run())


def test_a_value_that_is_no_number_is_named_by_row_and_column(labeled):
    X = labeled.X.astype(object)
    X[2, 4] = "high"
    with pytest.raises(ValueError, match=r"^X is not a matrix of numbers: .*'high'"):
        matrices.as_matrix(X)
    X[2, 4] = np.nan
    with pytest.raises(ValueError, match=r"^row 2, column 4 of X: nan; .*\nleave such rows out"):
        matrices.as_matrix(X)
    with pytest.raises(ValueError, match=r"^X contains values that are not finite"):
        matrices.as_matrix(csr_matrix(X.astype(float)))
    with pytest.raises(ValueError, match="X has 1 dimensions; expected 2"):
        matrices.as_matrix(X[0].astype(float))


def wide_numbers(X):
    """Return the same numbers in types that double precision represents exactly."""
    whole = np.clip(np.rint(4 * X), -100, 100)
    yield whole, whole
    for kind in (np.float16, np.float32, np.longdouble, np.int8, np.int64, object, str, ">f8"):
        yield whole, whole.astype(int).astype(kind)
    yield whole, np.ma.array(whole)
    yield whole != 0, whole != 0
    for kind in (np.longdouble, np.int8, bool):
        yield whole.astype(kind), csr_matrix(whole.astype(kind))


def test_numbers_of_every_type_are_converted_exactly(labeled):
    for plain, typed in wide_numbers(labeled.X):
        found = matrices.as_matrix(typed)
        found = found.toarray() if hasattr(found, "toarray") else found
        np.testing.assert_array_equal(found.astype(float), plain.astype(float))


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (lambda X: X * 1j, "^X contains complex numbers; expected real numbers\nconvert them"),
        (lambda X: (X * 1j).tolist(), "^X contains complex numbers"),
        (lambda X: csr_matrix(X * 1j), "^X contains complex numbers"),
        (lambda X: sparse.dok_array(X * 1j), "^X contains complex numbers"),
        (lambda X: Frame(X * 1j), "^column 'a' of X contains complex numbers"),
        (lambda X: X.astype("M8[D]"), "^X contains dates"),
        (lambda X: list(X.astype("m8[D]")), "^X contains time spans"),
        (lambda X: np.ma.masked_equal(X, X[3, 1]), "^X has masked values\nleave such rows out"),
        (lambda X: X.astype(np.longdouble) * np.longdouble("1e400"), "of X: -?inf; every value"),
        (lambda X: csr_matrix(X.astype(np.longdouble) * np.longdouble("1e400")), "not finite"),
    ],
)
def test_values_that_would_lose_their_meaning_are_refused(labeled, convert, message):
    X = np.where(labeled.X == 0, 1, labeled.X)
    for call in (resvm_cli.tune, resvm_cli.rank):
        with pytest.raises(ValueError, match=message):
            call(convert(X), labeled.y)


def test_a_matrix_is_not_changed_by_checking_it(labeled):
    matrix = csr_matrix(labeled.X)
    arrays = matrix.data, matrix.indices, matrix.indptr
    matrix.data = np.append(matrix.data, 7.0)  # beyond the last row
    matrix.indices = np.append(matrix.indices, np.int32(10**6))
    longer = matrix.data, matrix.indices
    found = matrices.as_matrix(matrix)
    assert matrix.data is longer[0]
    assert matrix.indices is longer[1]
    np.testing.assert_array_equal(found.data[: len(arrays[0])], arrays[0])


def test_masked_labels_and_weights_are_refused(labeled):
    first = np.arange(130) == 0
    with pytest.raises(ValueError, match=r"^y has masked values"):
        read_labels(labeled.X, np.ma.array(labeled.y, mask=first))
    with pytest.raises(ValueError, match=r"^weights has masked values"):
        fitted(labeled.X, labeled.y, weights=np.ma.array(np.ones(130), mask=first))


@pytest.mark.parametrize("other", [0, -1, False, 0.0, np.nan, None])
def test_1_marks_known_positives_if_the_other_label_cannot(labeled, other):
    positive = True if other is False else 1
    y = np.array([positive if label == 1 else other for label in labeled.y])
    found = read_labels(labeled.X, y)
    np.testing.assert_array_equal(found.positive, labeled.y == 1)
    assert not found.negative.any()


@pytest.mark.parametrize(
    ("labels", "listed"),
    [
        ((2, 1), "1, 2"),
        ((0, 2), "0, 2"),
        ((0, 1, -1), "-1, 0, 1"),
        ((0.5, 1), "0.5, 1.0"),
        (("0", "1"), "'0', '1'"),
        (("hit", None), "'hit', None"),
    ],
)
def test_labels_of_which_either_may_be_positive_need_the_positive_one(labeled, labels, listed):
    y = np.array(labels)[labeled.y * (1 + np.arange(130) % 2) % len(labels)]
    message = f"^cannot tell which label marks known positives\nthe labels are {listed}; set"
    for function in (resvm_cli.tune, resvm_cli.rank):
        with pytest.raises(ValueError, match=message):
            function(labeled.X, y)
    for positive in labels[:1]:
        found = read_labels(labeled.X, y, positive)
        np.testing.assert_array_equal(found.positive, y == positive)


def test_labels_that_cannot_be_used_are_refused(labeled):
    X, y = labeled.X, labeled.y
    for labels, given, message in (
        (y[:5], {}, "y has 5 labels, but X has 130 rows"),
        (np.ones(130), {}, "every row has the label 1; there are no unlabeled rows"),
        (y, {"label": 4}, r"no row has 4, .*\nthe labels are 0, 1; set `positive_label`"),
        (y, {"label": [1]}, r"`positive_label` must be one label, got \[1\]"),
        (
            y,
            {"label": 1, "negative_label": 1},
            "`positive_label` and `negative_label` are the same",
        ),
        (y, {"label": 1, "negative_label": 0}, "every row is a known positive or negative"),
        (y, {"label": 1, "negative_label": 5}, "no row has 5, the label of known negatives"),
        ("status", {}, "y is a column name, 'status'; expected the column itself"),
    ):
        with pytest.raises(ValueError, match=message):
            read_labels(X, labels, **given)


def test_rows_without_a_label_are_unlabeled(labeled):
    nothing = pytest.importorskip("pandas").NA
    for missing, label in ((None, "hit"), (nothing, "hit"), (float("nan"), 1), (nothing, 1)):
        y = np.where(labeled.y == 1, np.array(label, object), missing)
        np.testing.assert_array_equal(read_labels(labeled.X, y, label).positive, labeled.y == 1)
        other = "unlabeled" if label == "hit" else 0
        for form in (y, list(y)):
            assert set(matrices.fill_labels(form, label, None)) == {label, other}
    assert matrices.fill_labels([1, 0, None], 1, 0).tolist() == [1, 0, -1]
    assert matrices.fill_labels(["a", "b", None], "a", None).tolist() == ["a", "b", "b"]
    with pytest.raises(ValueError, match=r"^y has missing labels .*\nset `positive_label`"):
        matrices.fill_labels([1, 0, None], None, None)


def test_no_rows_are_refused(labeled):
    frame = pytest.importorskip("pandas").DataFrame(labeled.X[:, :3], columns=list("abc"))
    for X in (labeled.X, frame):
        with pytest.raises(ValueError, match=r"X has no rows: 0 sample\(s\)"):
            read_labels(X[:0], labeled.y[:0], 1)


def test_any_two_labels_of_an_estimator_will_do_and_the_larger_is_positive():
    for names in ((0, 1), (-1, 1), (False, True), ("a", "b"), (3.0, 7.0)):
        labels = np.array(names, object if isinstance(names[0], str) else None)
        classes = matrices.find_classes(labels[[0, 1, 0]], None)
        assert classes.tolist() == list(names)
        if names[0] in (0, -1):
            assert matrices.find_positive(classes, None) == names[1]
            continue
        message = f"^{names[1]!r} is taken as the label of known positives and {names[0]!r} as the"
        with pytest.warns(UserWarning, match=message) as caught:
            assert matrices.find_positive(classes, None) == names[1]
        assert caught[0].filename == __file__
    with pytest.raises(
        ValueError, match=r"cannot tell which label .*\n.* 'a', 'b'; set `positive_"
    ):
        matrices.find_positive(np.array(["a", "b"]), None, is_array=False)


def test_one_label_or_three_of_an_estimator_are_refused():
    with pytest.raises(ValueError, match=r"one class, 1\.0; two"):
        matrices.find_classes(np.ones(9), None)
    with pytest.raises(ValueError, match="Only binary classification"):
        matrices.find_classes(np.arange(9) % 3, None)
    for negative in (7, [1, 2]):
        with pytest.raises(ValueError, match="`negative_label` is"):
            matrices.find_classes(np.arange(9) % 3, negative)
    with pytest.raises(
        ValueError, match=r"^`positive_label` is 'hits', but the labels in y are 'hit' and 'no'$"
    ):
        matrices.find_positive(np.array(["hit", "no"]), "hits")
