"""Arrays and matrices of other programs: read exactly when sound, refused when damaged."""

from __future__ import annotations

import gzip
import io
import zipfile
from datetime import datetime
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from resvm_cli.data import arrays, delimited
from resvm_cli.data.arrays import SparseFile, array_path, open_arrays
from resvm_cli.data.streams import Source
from resvm_cli.errors import DataError
from tests.conftest import assert_exit


def convert(resvm, path: Path):
    return resvm("convert", path, "-q")


def sparse(tmp_path: Path, **changes) -> Path:
    content = {
        "format": np.array(b"csr"),
        "shape": np.array([3, 4]),
        "data": np.array([1.0, 2.0, 3.0]),
        "indices": np.array([0, 3, 1]),
        "indptr": np.array([0, 2, 2, 3]),
    }
    return stored(tmp_path, **{**content, **changes})


def stored(tmp_path: Path, **content) -> Path:
    np.savez(tmp_path / "x.npz", **content)
    return tmp_path / "x.npz"


@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": np.array([0, 2, 3, 0])},  # scipy looks no further where the last is 0
        {"indptr": np.array([0, 3, 2, 3])},
        {"indptr": np.array([0, 2, 2, 9])},
        {"indptr": np.array([0, 3])},
        {"indices": np.array([0, 4, 1])},
        {"indices": np.array([0, -1, 1])},
        {"indices": np.array([0.0, 3.0, 1.0])},
        {"indices": np.array([0, 2**40, 1]), "shape": np.array([3, 2**41])},
        {"indices": np.array([[0, 3, 1]])},
        {"data": np.array([1j, 2, 3])},
        {"data": np.array([1.0, np.inf, 3])},
        {"format": np.array(b"coo")},
        {"format": np.array(b"lil")},
        {"shape": np.array([3])},
        {"shape": np.array([-3, 4])},
        {"shape": np.array([3, 4, 5])},
    ],
    ids=str,
)
def test_a_sparse_matrix_whose_arrays_disagree_is_refused(changes, tmp_path):
    # some of these make scipy write out of bounds
    with pytest.raises(DataError, match=r"^x\.npz: "):
        read(sparse(tmp_path, **changes))


def read(path: Path, used: list[int] | None = None) -> Any:
    """The block of a sparse matrix, or the columns of a table."""
    magic = path.read_bytes()[:4]
    kinds = {b"PK\3\4": "npz", b"PAR1": "parquet", b"\x93NUM": "npy"}
    found = open_arrays(path.name, str(path), kinds[magic])
    if isinstance(found, SparseFile):
        return found
    parts = [block.columns for block in found.blocks(used)]
    columns = [list(chain.from_iterable(column)) for column in zip(*parts, strict=True)]
    return dict(zip(found.columns, columns, strict=True))


DTYPES = ("?", "i1", "u1", "<i4", ">i4", "i8", "u8", "f2", "f4", "<f8", ">f8")


@settings(max_examples=40)
@given(st.data())
def test_sparse_matrices_are_read_as_scipy_reads_them(tmp_path_factory, data):
    kind = data.draw(st.sampled_from(DTYPES))
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * 2))
    few = st.sampled_from([0, 0, 0, 1, 3])
    dense = data.draw(arrays_of.arrays(np.dtype("f8"), shape, elements=few)).astype(kind)
    form = data.draw(st.sampled_from(["csr", "csc"]))
    make = getattr(scipy.sparse, form + data.draw(st.sampled_from(["_matrix", "_array"])))
    matrix = make(scipy.sparse.coo_matrix(dense.astype("f8")))  # scipy has no half precision
    matrix.data = matrix.data.astype(kind)
    path = tmp_path_factory.mktemp("sparse") / "x.npz"
    scipy.sparse.save_npz(path, matrix, compressed=data.draw(st.booleans()))
    found = read(path)
    rows = found.block.rows
    sums = np.zeros(shape)
    np.add.at(sums, (rows.row_numbers, rows.indices - 1), rows.values)
    assert found.n_features == shape[1]
    assert np.array_equal(sums, dense.astype("f8"))


def test_duplicates_in_a_sparse_matrix_are_added_even_if_their_type_is_too_small(tmp_path):
    same = {"indices": np.array([1, 1]), "indptr": np.array([0, 0, 0, 2])}
    found = read(sparse(tmp_path, **same, data=np.array([100, 100], np.int8)))
    assert found.block.rows.values.tolist() == [200]


@pytest.mark.parametrize("form", ["coo", "bsr", "dia"])
def test_other_sparse_formats_are_refused_by_name(form, tmp_path):
    matrix = scipy.sparse.eye(3, format=form)
    scipy.sparse.save_npz(tmp_path / "x.npz", matrix)
    with pytest.raises(DataError, match=f"the format '{form}'; expected csr or csc") as caught:
        read(tmp_path / "x.npz")
    assert "matrix.tocsr()" in str(caught.value.hint)


LARGE = [2**60 + 1, 2**60 + 2, -(2**63)]


def write_large(path: Path) -> None:
    matrix = np.array([[one, 5] for one in LARGE])
    unsigned = np.array([2**64 - 1, 2**64 - 2, 0], np.uint64)
    if path.suffix == ".npz":
        np.savez(path, X=matrix)
    else:
        pyarrow = pytest.importorskip("pyarrow")
        columns = {"1": matrix[:, 0], "2": matrix[:, 1], "i": LARGE, "u": unsigned}
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table(columns), path)


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_integers_that_a_double_cannot_hold_are_exact(ending, tmp_path):
    write_large(tmp_path / f"x.{ending}")
    found = {key: [*map(str, one)] for key, one in read(tmp_path / f"x.{ending}").items()}
    assert found["1"] == [*map(str, LARGE)]
    if ending == "parquet":
        assert found["i"] == found["1"]
        assert found["u"] == [str(2**64 - 1), str(2**64 - 2), "0"]


def parquet_of(tmp_path: Path, columns: dict[str, Any], **more: Any) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet", **more)
    return tmp_path / "x.parquet"


def test_the_types_of_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = parquet_of(
        tmp_path,
        {
            "x": pyarrow.array([3, None], pyarrow.int8()),
            "x.1": pyarrow.array([2**60 + 1, None]),
            "flag": [True, None],
            "half": pyarrow.array(np.array([1.5, 2], np.float16)),
            "text": ["\u65e5", None],
            "view": pyarrow.array(["\u65e5", None], pyarrow.string_view()),
            "bytes": [b"a\xff", b"a\xfe"],
            "fixed": pyarrow.array([b"ab", b"cd"], pyarrow.binary(2)),
            "known": pyarrow.array([2**60 + 1, 2**60 + 2]).dictionary_encode(),
            "exact": [Decimal("1.50"), None],
            "date": [datetime(2024, 5, 6), None],
            "nothing": pyarrow.nulls(2),
        },
    )
    found = read(path)
    assert np.array_equal(found["x"], [3, np.nan], equal_nan=True)
    assert np.array_equal(found["flag"], [1, np.nan], equal_nan=True)
    assert found["x.1"] == [str(2**60 + 1), ""]
    assert found["half"] == [1.5, 2]
    assert found["text"] == found["view"] == ["\u65e5", ""]
    assert found["bytes"] == ["a\udcff", "a\udcfe"]
    assert found["fixed"] == ["ab", "cd"]
    assert [*map(str, found["known"])] == [str(2**60 + 1), str(2**60 + 2)]
    assert found["exact"] == ["1.50", ""]
    assert found["date"] == ["2024-05-06 00:00:00", ""]
    assert found["nothing"] == ["", ""]


def test_an_array_whose_header_is_cut_short_is_refused(resvm, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    text = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(text.replace(b"(2, 2)", b"(2, 2("))
    assert_exit(convert(resvm, tmp_path / "x.npy"), 3)


def test_an_archive_packed_in_an_unknown_way_is_refused(resvm, tmp_path):
    text = bytearray(sparse(tmp_path).read_bytes())
    with zipfile.ZipFile(io.BytesIO(bytes(text))) as archive:
        place = archive.infolist()[0].header_offset
    at = text.find(b"PK\x01\x02")
    text[place + 8] = text[at + 10] = 77  # the method, in both headers
    (tmp_path / "x.npz").write_bytes(bytes(text))
    assert_exit(convert(resvm, tmp_path / "x.npz"), 3)


def test_a_damaged_page_of_parquet_is_refused(resvm, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a": np.arange(3000.0)})
    parquet.write_table(table, tmp_path / "x.parquet", compression="gzip")
    text = bytearray((tmp_path / "x.parquet").read_bytes())
    text[60:400] = bytes(340)
    (tmp_path / "x.parquet").write_bytes(bytes(text))
    assert_exit(convert(resvm, tmp_path / "x.parquet"), 3)


def test_a_truncated_file_is_reported_as_damage(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((3, 2)))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"x\.npy: cannot be read as a NumPy file"):
        open_arrays("x.npy", str(path), "npy")


def test_only_the_columns_in_use_are_read(tmp_path):
    found = read(parquet_of(tmp_path, {"a": [1], "l": [[1, 2]], "x": [3]}), used=[0, 2])
    assert found == {"a": [1], "l": [], "x": [3]}


def test_arrays_of_objects_are_never_loaded(tmp_path):
    objects = np.array([[{}, 1]], object)
    np.savez(tmp_path / "x.npz", X=objects)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    for name in ("x.npz", "x.npy"):
        with pytest.raises(DataError, match="Python objects, which are never loaded"):
            read(tmp_path / name)


@pytest.mark.parametrize(
    "values", [np.zeros(3), np.zeros(2, [("a", "f8")]), np.eye(2) * 1j, np.zeros((2, 2), "S3")]
)
def test_arrays_that_are_no_matrix_of_numbers_are_refused(values, tmp_path):
    np.savez(tmp_path / "x.npz", X=values)
    with pytest.raises(DataError, match=r"^x\.npz: an array with . dimensions and type"):
        read(tmp_path / "x.npz")


def test_columns_of_lists_and_of_long_texts_are_refused_by_name(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    wide = pyarrow.array([b"a" * 20_000], pyarrow.binary(20_000))
    for cells in ([[1, 2]], [{"q": 1}], ["a" * 20_000], wide):
        with pytest.raises(DataError, match=r"^x\.parquet: 'other' has (a value of|type) "):
            read(parquet_of(tmp_path, {"x": [1.0], "other": cells}))


def test_a_text_that_is_repeated_is_in_memory_once(tmp_path):
    path = parquet_of(tmp_path, {"x": np.zeros(4000), "t": ["long" * 500] * 4000})
    assert len({id(text) for text in read(path)["t"]}) == 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [">f8", ">i2", "f2", "?", "g"])
def test_matrices_of_every_type_and_order_are_read_in_slices(kind, order, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "MAX_CELLS", 6)  # two rows at a time
    matrix = np.arange(15.0).reshape(5, 3).astype(kind, order=order)
    np.savez_compressed(tmp_path / "x.npz", X=matrix)
    np.save(tmp_path / "x.npy", matrix)
    expected = {str(number + 1): column.tolist() for number, column in enumerate(matrix.T)}
    assert read(tmp_path / "x.npz") == read(tmp_path / "x.npy") == expected


@pytest.mark.parametrize(
    ("shape", "message"),
    [((10**6, 10**9), "'X' claims to have"), ((1000, 7), "cannot be read as a NumPy file")],
)
def test_an_array_that_claims_to_be_larger_than_it_is_is_refused(shape, message, tmp_path):
    text = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        text, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X.npy", text.getvalue() + bytes(80))
    with pytest.raises(DataError, match=f"x.npz: {message}"):
        read(tmp_path / "x.npz")


def test_columns_that_the_stored_bytes_cannot_justify_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((1, 2**21), bool))
    with pytest.raises(DataError, match="a matrix of 2,097,152 columns in only"):
        read(tmp_path / "x.npz")


def test_a_column_of_parquet_that_is_far_longer_than_its_bytes_is_refused(tmp_path, monkeypatch):
    path = parquet_of(tmp_path, {"x": [1.0], "t": ["a" * 10_000_000]}, compression="gzip")
    monkeypatch.setattr(arrays, "MAX_RATIO", 100)
    with pytest.raises(DataError, match=r"'t' claims to have 10,0.* bytes, but only .* are stored"):
        read(path)
    assert read(path, used=[0])["x"] == [1]


def test_what_is_compressed_is_copied_to_a_file_that_goes_away(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(2))
    (tmp_path / "x.gz").write_bytes(gzip.compress((tmp_path / "x.npy").read_bytes()))
    for name, plain in (("x.npy", True), ("x.gz", False)):
        source = Source(str(tmp_path / name))
        with array_path(source, source.pieces()) as path:
            assert (path == str(tmp_path / name)) == plain
            table = open_arrays(name, path, "npy")
        assert Path(path).exists() == plain
        assert [list(map(list, block.columns)) for block in table.blocks()] == [[[1, 0], [0, 1]]]
        source.close()


def test_the_largest_matrices_that_the_stored_bytes_justify_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "MAX_COLUMNS", 10)
    np.save(tmp_path / "x.npy", np.ones((1, 90)))  # 720 bytes
    assert len(read(tmp_path / "x.npy")) == 90
    monkeypatch.setattr(arrays, "MAX_EMPTY_ROWS", 1000)
    for n_rows in (1000 + 64 * 24, 1001 + 64 * 24):  # three numbers: 24 bytes
        pointers = np.r_[0, 2, 2, np.full(n_rows - 2, 3)]
        path = sparse(tmp_path, shape=np.array([n_rows, 4]), indptr=pointers)
        if n_rows % 2 == 0:
            assert len(read(path).block) == n_rows
        else:
            with pytest.raises(DataError, match="2,537 rows, but only 24 bytes of entries"):
                read(path)
