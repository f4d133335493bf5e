"""AnnData files: X in every form, the names of observations and variables, obs columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from resvm_cli.errors import DataError
from resvm_cli.files import optional_formats
from resvm_cli.files.optional_formats import open_anndata
from resvm_cli.files.sources import Source
from resvm_cli.files.svmlight import Block
from resvm_cli.tables.encoding import ColumnRoles, TableReading
from resvm_cli.tables.inputs import RowInput

h5py = pytest.importorskip("h5py")

RNG = np.random.default_rng(3)
X = RNG.poisson(0.6, (50, 7)).astype(np.float32)
CELLS = [f"cell {number}" for number in range(50)]
GENES = ["G1", "G2", "G2", "", "G4", "G5", "G6"]  # one twice, one without a name


def write(path: Path, form: str, matrix: np.ndarray = X, **changes: Any) -> str:
    """Write what anndata 0.11 writes, as far as it is read."""
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        file.attrs["encoding-type"] = "anndata"
        if form == "dense":
            file["X"] = matrix
        else:
            stored = getattr(scipy.sparse, f"{form}_matrix")(matrix)
            group = file.create_group("X")
            group.attrs["encoding-type"] = f"{form}_matrix"
            group.attrs["shape"] = changes.get("shape", matrix.shape)
            for name in ("data", "indices", "indptr"):
                group[name] = changes.get(name, getattr(stored, name))
        obs = file.create_group("obs")
        obs.attrs["_index"] = "barcode"
        obs.create_dataset("barcode", data=np.array(CELLS, object), dtype=text)
        obs["total"] = matrix.sum(axis=1)
        var = file.create_group("var")
        var.attrs["_index"] = "_index"
        var.create_dataset("_index", data=np.array(GENES, object), dtype=text)
    return str(path)


def rows(path: str, roles: ColumnRoles) -> tuple[Block, RowInput]:
    source = Source(path)
    opened = RowInput(source, TableReading(roles))
    opened.encode()
    block = Block.concatenate(list(opened.blocks()))
    source.close()
    return block, opened


def dense(block: Block, width: int = 7) -> np.ndarray:
    found = np.zeros((len(block), width))
    found[block.rows.row_numbers, block.rows.indices - 1] = block.rows.values
    return found


@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
def test_x_is_read_with_ids_and_names_in_every_form(form, tmp_path):
    block, opened = rows(write(tmp_path / "a.h5ad", form), ColumnRoles())
    assert np.array_equal(dense(block), X)
    assert block.comments == CELLS
    assert opened.features is not None
    assert opened.features.map.names == ["G1", "G2", "G2-1", "4", "G4", "G5", "G6"]


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_some_columns_of_x_may_be_chosen(form, tmp_path):
    block, opened = rows(write(tmp_path / "a.h5ad", form), ColumnRoles(only=("G6", "G1")))
    assert opened.features is not None
    assert opened.features.map.names == ["G1", "G6"]
    assert np.array_equal(dense(block, 2), X[:, [0, 6]])


def test_a_file_without_names_of_observations_has_no_ids(tmp_path):
    path = write(tmp_path / "a.h5ad", "dense")
    with h5py.File(path, "a") as file:
        del file["obs/barcode"]
    block, _ = rows(path, ColumnRoles())
    assert np.array_equal(dense(block), X)
    assert block.comments is None


def test_an_hdf5_file_that_is_not_anndata_is_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = X
    with pytest.raises(
        DataError, match=r"not AnnData \(\.h5ad\), the only kind that is supported"
    ) as caught:
        open_anndata("a.h5", str(tmp_path / "a.h5"))
    assert "numpy.save('data.npy'" in str(caught.value.hint)


def test_rows_of_a_large_sparse_matrix_come_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(optional_formats, "MAX_CELLS", 20)  # entries per block
    path = write(tmp_path / "a.h5ad", "csr")
    sizes = [block.n_rows for block in open_anndata("a.h5ad", path).blocks()]
    assert sum(sizes) == 50
    assert len(sizes) > 5
    assert np.array_equal(dense(rows(path, ColumnRoles())[0]), X)


BAD = X.copy()
BAD[4, 2] = np.nan


@pytest.mark.parametrize(
    ("form", "changes", "message"),
    [
        ("csr", {"indices": np.full(np.count_nonzero(X), 7)}, "an index is out of range"),
        ("csr", {"indptr": np.arange(51)[::-1].copy()}, "indptr decreases"),
        ("csr", {"indptr": np.arange(51) * 1000}, "exceeds the data"),
        ("csr", {"indptr": np.arange(9)}, "an invalid shape"),
        ("csr", {"shape": (2**40, 7)}, "an invalid shape"),
        ("csc", {"shape": (2**40, 7)}, "rows, but only"),
        ("csr", {"matrix": BAD}, "row 5, column 3: nan"),
        ("dense", {"matrix": X[:, :, None]}, "expected a matrix of real numbers"),
        ("dense", {"matrix": X.astype(complex)}, "expected a matrix of real numbers"),
    ],
)
def test_damaged_files_are_refused(form, changes, message, tmp_path):
    path = write(tmp_path / "a.h5ad", form, **changes)
    with pytest.raises(DataError, match=message):
        rows(path, ColumnRoles())


def test_a_sparse_matrix_without_names_is_not_reported_as_missing(tmp_path):
    path = write(tmp_path / "a.h5ad", "csr")
    with h5py.File(path, "a") as file:
        for name in ("obs", "var"):
            del file[name]
    with pytest.raises(DataError, match="cannot be read as AnnData: 'var'"):
        rows(path, ColumnRoles())


def test_a_link_to_another_file_is_not_followed(tmp_path):
    path = write(tmp_path / "a.h5ad", "dense")
    other = write(tmp_path / "b.h5ad", "dense")
    with h5py.File(path, "a") as file:
        del file["X"]
        file["X"] = h5py.ExternalLink(other, "X")
    with pytest.raises(DataError, match="contains no matrix 'X'"):
        rows(path, ColumnRoles())


def test_columns_that_are_not_named_are_refused(tmp_path):
    path = write(tmp_path / "a.h5ad", "csr")
    with h5py.File(path, "a") as file:
        del file["var/_index"]
        file["var/_index"] = np.arange(7.0)
    with pytest.raises(DataError, match="'var/_index' does not contain text"):
        rows(path, ColumnRoles())
    with h5py.File(path, "a") as file:
        del file["var/_index"]
        file["var/_index"] = [b"G1", b"G2"]
    with pytest.raises(DataError, match="'var' does not name the 7 columns of 'X'"):
        rows(path, ColumnRoles())


def test_a_matrix_in_another_file_is_not_opened(tmp_path):
    (tmp_path / "secret").write_bytes(np.arange(6.0).tobytes())
    path = write(tmp_path / "a.h5ad", "dense")
    with h5py.File(path, "a") as file:
        del file["X"]
        outside = [(str(tmp_path / "secret"), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset("X", (2, 3), "f8", external=outside)
    with pytest.raises(DataError, match="'X' is stored in other files, which are not opened"):
        rows(path, ColumnRoles())


@pytest.mark.parametrize(
    ("key", "shape", "kind", "chunks", "message"),
    [
        ("X", (10**9, 7), "f8", (64, 7), "'X' claims to have 56,000,000,000 bytes, but only 0"),
        ("X", (50, 7), "f8", (50, 7), "'X' is stored in chunks of 2,800 bytes"),
        ("var/_index", (7,), "S1000000000", (1,), "'var/_index' claims to have 7,000,000,000"),
    ],
)
def test_claims_that_the_stored_bytes_cannot_justify_are_refused(
    key, shape, kind, chunks, message, tmp_path, monkeypatch
):
    monkeypatch.setattr(optional_formats, "MAX_CHUNK", 2_000)
    path = write(tmp_path / "a.h5ad", "dense")
    with h5py.File(path, "a") as file:
        if key in file:
            del file[key]
        file.create_dataset(key, shape, kind, chunks=chunks)
    with pytest.raises(DataError, match=message):
        list(open_anndata("a.h5ad", path).blocks())


def test_other_content_of_a_file_does_not_matter(tmp_path):
    path = write(tmp_path / "a.h5ad", "csr")
    with h5py.File(path, "a") as file:
        file["uns/type"] = np.dtype("f8")  # a named type
        file["uns/nothing"] = h5py.Empty("f8")
        file.create_dataset("obs/large", (10**9,), "f8", chunks=(64,))
    block, _ = rows(path, ColumnRoles())
    assert np.array_equal(dense(block), X)
