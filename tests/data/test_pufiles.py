"""U of any size is summarized in one pass, and its rows are fetched by number in another."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from resvm_cli.data import pufiles, streams, svmlight
from resvm_cli.data.inputs import RowInput, read_file
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pufiles import PUFiles
from resvm_cli.data.streams import Source
from resvm_cli.data.svmlight import format_block, parse_pieces
from resvm_cli.errors import DataError, FileError
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from tests.conftest import make_block, write_svm
from tests.programs import PATIENCE_SECONDS

RNG = np.random.default_rng(11)
FEATURES = np.round(RNG.standard_normal((400, 6)), 3) * (RNG.random((400, 6)) < 0.6)
LABELS = RNG.integers(0, 4, 400)


@pytest.fixture
def files(tmp_path) -> Path:
    write_svm(tmp_path / "pos.svm", FEATURES[:20])
    write_svm(tmp_path / "unl.svm", FEATURES)
    write_svm(tmp_path / "all.svm", FEATURES, LABELS)
    lines = (tmp_path / "unl.svm").read_bytes().splitlines(keepends=True)
    untidy = b"\xef\xbb\xbf# head\n" + b"\n# x\n".join(lines) + b"\n \n"
    (tmp_path / "untidy.svm").write_bytes(untidy)
    (tmp_path / "unl.gz").write_bytes(gzip.compress((tmp_path / "unl.svm").read_bytes()))
    (tmp_path / "untidy.bz2").write_bytes(bz2.compress(untidy))
    return tmp_path


def opened(files: Path, name: str, run: Run | None = None, **options) -> PUFiles:
    if name == "all.svm":
        source = TrainingInput(data=str(files / name), positive_label=2.0, **options)
    else:
        source = TrainingInput(str(files / "pos.svm"), str(files / name), **options)
    return PUFiles(source, run or Run())


def same(first: Rows, second: Rows) -> bool:
    return all(
        getattr(first, name).tolist() == getattr(second, name).tolist()
        for name in ("indptr", "indices", "values")
    )


@pytest.mark.parametrize("name", ["unl.svm", "untidy.svm", "unl.gz", "untidy.bz2", "all.svm"])
@pytest.mark.parametrize("spacing", [1, 64, 1 << 13])
@pytest.mark.parametrize("most", [4, 1 << 17])
def test_fetching_gives_the_rows_that_memory_would(files, name, spacing, most, monkeypatch):
    monkeypatch.setattr(pufiles, "KEPT_NONZEROS", 0)
    monkeypatch.setattr(svmlight, "FIRST_SPACING", spacing)
    monkeypatch.setattr(svmlight, "MAX_MARKS", most)
    expected = Rows.from_dense(FEATURES if name != "all.svm" else FEATURES[LABELS != 2])
    with opened(files, name) as data:
        assert data.n_kept == 0
        assert data.n_unlabeled == len(expected)
        for numbers in ([0], [len(expected) - 1], [0, 7, 8, 200, 201, 250], range(len(expected))):
            wanted = np.array(numbers)
            assert same(data.fetch(wanted), expected.take(wanted))
    with opened(files, name) as again:
        monkeypatch.setattr(pufiles, "KEPT_NONZEROS", 1 << 22)
        with opened(files, name) as kept:
            assert again.description() == kept.description()
            assert again.variance(None) == kept.variance(None)


def test_the_index_of_a_long_text_stays_small(monkeypatch):
    monkeypatch.setattr(svmlight, "MAX_MARKS", 100)
    monkeypatch.setattr(svmlight, "FIRST_SPACING", 10)
    index = svmlight.RowIndex()
    for start in range(0, 2_000_000, 1000):
        index.add(np.arange(start, start + 1000, 20))
    assert index.n_rows == 100_000
    assert len(index._offsets) <= 100
    numbers = np.array([0, 1, 77_777, 99_999])
    bounds, positions = index.spans(numbers)
    rows = np.concatenate([np.arange(start, min(stop, 2_000_000), 20) for start, stop in bounds])
    assert len(rows) < 10_000
    assert rows[positions].tolist() == (20 * numbers).tolist()


def test_u_of_a_labelled_file_lacks_the_label_in_every_block(files, monkeypatch):
    monkeypatch.setattr(pufiles, "KEPT_NONZEROS", 0)
    whole = RowInput.blocks

    def blocks(self, **more):
        return (part for block in whole(self, **more) for part in block.slices(150))

    monkeypatch.setattr(RowInput, "blocks", blocks)
    with opened(files, "all.svm") as data:
        found = Rows.concatenate(list(data.unlabeled()))
    assert same(found, Rows.from_dense(FEATURES[LABELS != 2]))


def test_positives_of_a_labelled_file_are_those_of_the_label(files):
    with opened(files, "all.svm") as data:
        assert same(data.positives, Rows.from_dense(FEATURES[LABELS == 2]))


@pytest.mark.parametrize("memory", [0, 1 << 25])
@pytest.mark.parametrize("name", ["unl.svm", "untidy.bz2"])
def test_a_pipe_is_spooled_and_read_twice(files, name, memory, monkeypatch):
    monkeypatch.setattr(pufiles, "KEPT_NONZEROS", 0)
    monkeypatch.setattr(streams, "SPOOL_MEMORY", memory)
    os.mkfifo(files / "pipe")
    content = (files / name).read_bytes()
    writer = threading.Thread(target=(files / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    run = Run()
    with opened(files, "pipe", run) as data:
        writer.join(PATIENCE_SECONDS)
        numbers = np.array([3, 99, 399])
        assert same(data.fetch(numbers), Rows.from_dense(FEATURES).take(numbers))
        assert any("spooled" in note for note in run.notes) == (memory == 0)


def test_what_is_read_once_is_not_spooled(files, monkeypatch):
    monkeypatch.setattr(streams, "SPOOL_MEMORY", 0)
    os.mkfifo(files / "pipe")
    content = (files / "unl.svm").read_bytes()
    writer = threading.Thread(target=(files / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    source = TrainingInput(str(files / "pos.svm"), str(files / "pipe"))
    run = Run()
    with PUFiles(source, run, keep_all=True) as data:
        writer.join(PATIENCE_SECONDS)
        assert run.notes == []
        assert same(data.fetch(np.arange(400)), Rows.from_dense(FEATURES))


def test_a_full_disk_while_spooling_is_a_writing_error(files, monkeypatch):
    class Full(io.BytesIO):
        def __init__(self, **_) -> None:
            pass

        def write(self, _) -> int:
            raise OSError(28, "No space left on device")

        flush = close = lambda self: self.write(b"")

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", Full)
    os.mkfifo(files / "pipe")
    writer = threading.Thread(target=(files / "pipe").write_bytes, args=(b"1 1:1\n",), daemon=True)
    writer.start()
    with pytest.raises(FileError, match=r"cannot spool .*pipe: No space left"):
        opened(files, "pipe")
    writer.join(PATIENCE_SECONDS)


def test_no_rows_of_a_large_u_can_be_fetched_too(files, monkeypatch):
    monkeypatch.setattr(pufiles, "KEPT_NONZEROS", 0)
    with opened(files, "unl.svm") as data:
        assert len(data.fetch(np.zeros(0, np.int64))) == 0


def test_a_last_line_without_newline_is_a_row(files):
    path = files / "unl.svm"
    path.write_bytes(path.read_bytes()[:-1])
    with opened(files, "unl.svm") as data:
        assert data.n_unlabeled == 400
        assert same(data.fetch(np.array([399])), Rows.from_dense(FEATURES[399:]))


def in_format(name: str, features: np.ndarray) -> bytes:
    """Return a matrix as the content of a file with this name."""
    file = io.BytesIO()
    mark = {"csv": ",", "tsv": "\t"}.get(name[-3:])
    if name.endswith("parquet"):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = {f"c{at}": column for at, column in enumerate(features.T)}
        parquet.write_table(pyarrow.table(columns), file, compression="none", use_dictionary=False)
    elif mark is not None:
        names = mark.join(f"c{at}" for at in range(features.shape[1]))
        np.savetxt(file, features, "%.3f", mark, header=names, comments="")
    elif name.endswith("npy"):
        np.save(file, features)
    elif name.endswith("npz"):
        scipy.sparse.save_npz(file, scipy.sparse.csr_matrix(features))
    else:
        file.write(format_block(make_block(features)))
    return gzip.compress(file.getvalue()) if name.endswith("gz") else file.getvalue()


@pytest.mark.parametrize("same_time", [False, True])
@pytest.mark.parametrize(
    "name", ["u.svm", "u.svm.gz", "u.csv", "u.csv.gz", "u.tsv", "u.npy", "u.npz", "u.parquet"]
)
def test_a_file_that_changes_between_the_passes_is_noticed(name, same_time, tmp_path, monkeypatch):
    monkeypatch.setattr(pufiles, "KEPT_NONZEROS", 0)
    path = tmp_path / name
    path.write_bytes(in_format(name, FEATURES))
    (tmp_path / f"p{name}").write_bytes(in_format(name, FEATURES[:20]))
    with PUFiles(TrainingInput(str(tmp_path / f"p{name}"), str(path)), Run()) as data:
        before = path.stat().st_mtime_ns
        path.write_bytes(in_format(name, -FEATURES))
        os.utime(path, ns=(0, before if same_time else before + 1))
        if name == "u.npz":  # is in memory
            assert same(Rows.concatenate(list(data.unlabeled())), Rows.from_dense(FEATURES))
            return
        for read in (data.unlabeled, lambda: [data.fetch(np.array([5]))]):
            if same_time and read != data.unlabeled and "svm" in name:
                continue  # some lines are read, which have no digest
            with pytest.raises(DataError, match="changed while it was being read"):
                list(read())


def test_declared_features_must_be_enough(files):
    with opened(files, "unl.svm", features=9) as data:
        assert data.n_features == 9
    with (
        opened(files, "unl.svm", features=5) as data,
        pytest.raises(DataError, match="feature 6, but `features` is 5"),
    ):
        _ = data.n_features


def test_stdin_may_be_a_file_already_partly_read(files):
    path = files / "unl.svm"
    descriptor = os.open(path, os.O_RDONLY)
    first = path.read_bytes().index(b"\n") + 1
    os.lseek(descriptor, first, os.SEEK_SET)
    source = Source(str(path))
    source._descriptor, source._base = descriptor, first
    rest = b"".join(source.pieces())
    assert rest == path.read_bytes()[first:]
    assert b"".join(source.spans([(0, 10), (20, 1 << 40)])) == rest[:10] + rest[20:]
    source.close()
    assert len(next(parse_pieces([rest], "x"))) == len(read_file(str(path))) - 1


def told(data: PUFiles) -> str:
    return "\n".join(data.notes)


@pytest.mark.parametrize("kept", [0, 1 << 22])
@pytest.mark.parametrize("name", ["unl.svm", "untidy.bz2"])
def test_rows_of_p_in_u_are_noticed(files, name, kept, monkeypatch):
    monkeypatch.setattr(pufiles, "KEPT_NONZEROS", kept)
    with opened(files, name) as data:
        assert "rows of P are also in U" in told(data)
        assert "leave them out of U" in told(data)
        assert data.n_unlabeled == 400


def test_ids_of_p_in_u_are_noticed(files):
    ids = [f"r{n}" for n in range(20)] + [f"r{n}" for n in range(15, 415)]
    (files / "ids.txt").write_text("\n".join(ids) + "\n")
    write_svm(files / "other.svm", FEATURES + 1)  # no content of P is in U
    options = {"ids_file": str(files / "ids.txt")}
    with opened(files, "other.svm", **options, keep_ids=True) as data:
        assert "5 rows of U have the id of a row of P" in told(data)


@pytest.mark.parametrize(("pos", "unl", "noticed"), [(-1, 1, True), (1, -1, False), (0, 0, False)])
def test_labels_that_contradict_the_files_are_noticed(files, pos, unl, noticed):
    write_svm(files / "pos.svm", FEATURES[:20] + 1, np.full(20, pos))
    write_svm(files / "unl.svm", FEATURES, np.full(400, unl))
    with opened(files, "unl.svm") as data:
        assert ("swapped?" in told(data)) == noticed
