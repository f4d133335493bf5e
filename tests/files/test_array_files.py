"""Arrays and matrices of other programs: read exactly when sound, refused when damaged."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from resvm_cli.errors import DataError
from resvm_cli.files.array_files import open_arrays, parse_matrix_market
from tests.conftest import assert_exit

MATRIX = b"%%MatrixMarket matrix coordinate real general\n%\n2 3 3\n1 1 .5\n1 3 -2\n2 2 7e-1\n"


def convert(resvm, path: Path):
    return resvm("convert", path, "-q")


def test_a_matrix_market_file_that_is_cut_short_is_refused(resvm, tmp_path):
    # it ends scipy's reader with a segmentation fault
    (tmp_path / "x.mtx").write_bytes(MATRIX[:-5])
    assert_exit(convert(resvm, tmp_path / "x.mtx"), 3, "cannot be read as Matrix Market")


def test_every_beginning_of_a_matrix_is_refused():
    whole = MATRIX.rstrip(b"\n")
    for end in range(len(whole) - 3):  # 7, 7e and 7e- come last: the first is a number
        with pytest.raises(ValueError, match=r"line|number|float"):
            parse_matrix_market(whole[:end])


@pytest.mark.parametrize(
    "text",
    [
        MATRIX,
        MATRIX.replace(b"real", b"integer").replace(b".5", b"4").replace(b"7e-1", b"9"),
        b"%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n2 1\n",
        b"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 5\n3 1 2\n2 2 1\n",
        b"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n3 1 2\n",
        b"%%MatrixMarket matrix array real general\n% dense\n2 3\n1\n2\n3\n4\n5\n6\n",
        b"%%MatrixMarket matrix coordinate Real General\r\n2 2 1\r\n2 2 1\r\n",
    ],
)
def test_a_sound_matrix_is_read_as_scipy_reads_it(text):
    found, expected = parse_matrix_market(text), scipy.io.mmread(io.BytesIO(text))
    dense = [one if isinstance(one, np.ndarray) else one.toarray() for one in (found, expected)]
    assert (dense[0] == dense[1]).all()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"2 3 3", b"2 3 4"),
        (b"2 3 3", b"2 99999999999999 3"),
        (b"2 3 3", b"-2 3 3"),
        (b"1 3 -2", b"3 3 -2"),
        (b"1 3 -2", b"0 3 -2"),
        (b"1 3 -2", b"1.5 3 -2"),
        (b"1 3 -2", b"1 3 1_0"),
        (b"1 3 -2", b"1 3 nan"),
        (b"general", b"hermitian"),
        (b"general", b"symmetric"),
    ],
)
def test_a_matrix_that_makes_no_sense_is_refused(old, new):
    with pytest.raises(ValueError, match=r"\w"):
        parse_matrix_market(MATRIX.replace(old, new))


def sparse(tmp_path: Path, **changes) -> Path:
    arrays = {
        "format": np.array(b"csr"),
        "shape": np.array([3, 4]),
        "data": np.array([1.0, 2.0, 3.0]),
        "indices": np.array([0, 3, 1]),
        "indptr": np.array([0, 2, 2, 3]),
    }
    np.savez(tmp_path / "x.npz", **{**arrays, **changes})
    return tmp_path / "x.npz"


@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": np.array([0, 2, 3, 0])},  # scipy looks no further where the last is 0
        {"indptr": np.array([0, 3, 2, 3])},
        {"indptr": np.array([0, 2, 2, 9])},
        {"indices": np.array([0, 4, 1])},
        {"indices": np.array([0, -1, 1])},
        {"indices": np.array([0, 2**40, 1]), "shape": np.array([3, 2**41])},
        {"labels": np.array([1.0, 0.0])},
        {"labels": np.array(["a", "b", "c"])},
        {"ids": np.array(["a"])},
        {"format": np.array(b"coo")},
        {"shape": np.array([3])},
    ],
    ids=str,
)
def test_a_sparse_matrix_whose_arrays_disagree_is_refused(changes, resvm, tmp_path):
    # some of these make scipy write out of bounds
    assert_exit(convert(resvm, sparse(tmp_path, **changes)), 3)


def test_a_sound_sparse_matrix_is_read(resvm, tmp_path):
    ran = convert(resvm, sparse(tmp_path))
    assert (ran.code, ran.out) == (0, b"0 1:1 4:2\n0\n0 2:3\n")


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


def test_hdf5_that_leads_to_other_files_is_not_followed(resvm, tmp_path):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "secret").write_bytes(np.arange(6.0).tobytes())
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset(
            "features", (2, 3), "f8", external=[(str(tmp_path / "secret"), 0, h5py.h5f.UNLIMITED)]
        )
    assert_exit(convert(resvm, tmp_path / "x.h5"), 3, "is stored in other files")


def test_a_damaged_page_of_parquet_is_refused(resvm, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a": np.arange(3000.0)})
    parquet.write_table(table, tmp_path / "x.parquet", compression="gzip")
    text = bytearray((tmp_path / "x.parquet").read_bytes())
    text[60:400] = bytes(340)
    (tmp_path / "x.parquet").write_bytes(bytes(text))
    assert_exit(convert(resvm, tmp_path / "x.parquet"), 3)


def test_an_array_that_is_no_matrix_is_not_reported_as_damage(tmp_path):
    path = str(tmp_path / "x.npy")
    np.save(path, np.zeros(3))
    with pytest.raises(DataError, match=r"x\.npy: an array with 1 dimensions and type float64"):
        open_arrays("x.npy", path, "npy", None)


def test_a_truncated_file_is_reported_as_damage(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((3, 2)))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"x\.npy: cannot be read as a NumPy file"):
        open_arrays("x.npy", str(path), "npy", None)
