"""Failures that a second attack found, on files that came later: each had another end before."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from resvm_cli.running.run import Run
from tests.hostile.test_numbered_failures import mutated, replace_often, said, train
from tests.programs import run, run_resvm, script_command, started

MATRIX = b"%%MatrixMarket matrix coordinate real general\n%\n2 3 3\n1 1 .5\n1 3 -2\n2 2 7e-1\n"


def convert(path: Path, *more):
    return run_resvm("convert", path, "-q", *more)


# what is converted


def test_a_matrix_market_file_that_is_cut_short_is_refused(tmp_path):
    # scipy's reader ends the program by a segmentation fault
    (tmp_path / "x.mtx").write_bytes(MATRIX[:-5])
    said(convert(tmp_path / "x.mtx"), 3, "cannot be read as Matrix Market")


def test_every_beginning_of_a_matrix_is_refused():
    from resvm_cli.files.array_files import parse_matrix_market

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
    import scipy.io

    from resvm_cli.files.array_files import parse_matrix_market

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
    from resvm_cli.files.array_files import parse_matrix_market

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
def test_a_sparse_matrix_whose_arrays_disagree_is_refused(changes, tmp_path):
    # some of these made scipy write beside its arrays
    said(convert(sparse(tmp_path, **changes)), 3)


def test_a_sound_sparse_matrix_is_read(tmp_path):
    ran = convert(sparse(tmp_path))
    assert (ran.code, ran.out) == (0, b"0 1:1 4:2\n0\n0 2:3\n")


def test_an_array_whose_header_is_cut_short_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    text = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(text.replace(b"(2, 2)", b"(2, 2("))
    said(convert(tmp_path / "x.npy"), 3)


def test_an_archive_packed_in_an_unknown_way_is_refused(tmp_path):
    text = bytearray(sparse(tmp_path).read_bytes())
    with zipfile.ZipFile(io.BytesIO(bytes(text))) as archive:
        place = archive.infolist()[0].header_offset
    at = text.find(b"PK\x01\x02")
    text[place + 8] = text[at + 10] = 77  # the method, in both headers
    (tmp_path / "x.npz").write_bytes(bytes(text))
    said(convert(tmp_path / "x.npz"), 3)


def test_hdf5_that_leads_to_other_files_is_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "secret").write_bytes(np.arange(6.0).tobytes())
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset(
            "features", (2, 3), "f8", external=[(str(tmp_path / "secret"), 0, h5py.h5f.UNLIMITED)]
        )
    said(convert(tmp_path / "x.h5"), 3, "is stored in other files")


def test_a_damaged_page_of_parquet_is_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a": np.arange(3000.0)})
    parquet.write_table(table, tmp_path / "x.parquet", compression="gzip")
    text = bytearray((tmp_path / "x.parquet").read_bytes())
    text[60:400] = bytes(340)
    (tmp_path / "x.parquet").write_bytes(bytes(text))
    said(convert(tmp_path / "x.parquet"), 3)


@pytest.mark.parametrize("cell", ["\u0661", "1_0", "\uff11"])
def test_numbers_of_tables_are_plain_decimals(cell, tmp_path):
    (tmp_path / "x.csv").write_text(f"a,b\n1,2\n3,{cell}\n")
    said(convert(tmp_path / "x.csv"), 3, "expected a number")


COLUMN = {"name": "a", "kind": "number", "first": 1, "fill": None}
FINGERPRINT = {"name": "b", "kind": "morgan", "first": 1, "bits": 16, "radius": 2, "counts": False}


@pytest.mark.parametrize(
    ("columns", "n_features"),
    [
        ([], 0),
        ([COLUMN, {**COLUMN, "name": "b"}], 1),
        ([{**COLUMN, "first": 2}, {**COLUMN, "name": "b", "first": 1}], 2),
        ([{**COLUMN, "fill": "x"}], 1),
        ([{**COLUMN, "fill": 10**400}], 1),
        ([{**COLUMN, "first": True}], 1),
        ([{**COLUMN, "name": 3}], 1),
        ([{"name": "a", "kind": "text", "values": {"1": 1, "3": 1}}], 1),
        ([{"name": "a", "kind": "text", "values": [1]}], 1),
        ([{**FINGERPRINT, "bits": -3}], 16),
        ([{**FINGERPRINT, "bits": 10**9}], 16),
        ([{**FINGERPRINT, "radius": 10**9}], 16),
        ([{**FINGERPRINT, "counts": "x"}], 16),
        ([COLUMN], 2),
        ([{**COLUMN, "bits": 16}], 1),
        ([{"name": "a", "kind": "number", "first": 1}], 1),
    ],
    ids=str,
)
def test_a_feature_map_that_makes_no_sense_is_refused(columns, n_features, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    content = {"kind": "resvm-feature-map", "format": 1, "columns": columns}
    names = [f"f{number}" for number in range(n_features)]
    (tmp_path / "map").write_text(json.dumps({**content, "features": names}))
    said(convert(tmp_path / "x.csv", "--like", tmp_path / "map"), 3, "not a feature map")


def test_bytes_that_are_no_text_are_no_molecule(tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "x.csv").write_bytes(b"id,smiles\n1,CCO\n2,C\xe9C\n")
    said(convert(tmp_path / "x.csv", "--smiles-column", "smiles"), 3, "cannot read the molecule")


# labels, models, parts


@pytest.mark.parametrize("label", ["inf", "-inf", "infinity"])
def test_a_label_is_finite(label, tmp_path):
    (tmp_path / "pred").write_text("1 0.9\n-1 0.1\n1 0.3\n")
    (tmp_path / "labels").write_text(f"1\n-1\n{label}\n")
    ran = run_resvm(
        "score", tmp_path / "pred", "--labels", tmp_path / "labels", "--positive-label", 1,
        "--bootstrap", 0,
    )  # fmt: skip
    said(ran, 3, "the label of row 3")


def test_a_model_that_does_not_say_how_its_bags_were_drawn_does_not_rank(problem, model, tmp_path):
    target = mutated(model, tmp_path / "m", lambda content: {**content, "bags": None})
    without = mutated(model, tmp_path / "n", lambda content: content.pop("bags") and None)
    for path in (target, without):
        sets = ("-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q")
        said(run_resvm("rank", *sets, "--model", path), 4)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"total_sv ", b"total_sv +"), (b"rho ", b"rho  "), (b"nr_sv ", b"nr_sv -0")],
    ids=["plus", "blank", "minus"],
)
def test_the_text_of_a_member_is_read_strictly(old, new, model, tmp_path):
    def change(content):
        file = tmp_path / "m/members/00000.model"
        text = file.read_bytes().replace(old, new)
        file.write_bytes(text)
        digest = hashlib.sha256(text).hexdigest()
        content["members"][0] |= {"bytes": len(text), "sha256": digest}

    said(run_resvm("inspect", mutated(model, tmp_path / "m", change)), 4)


def test_a_part_whose_member_is_none_is_not_merged(problem, tmp_path):
    for number in (1, 2):
        said(train(problem, "--task", f"{number}/2", "-o", tmp_path / f"part-{number}"), 0)
    members = tmp_path / "part-1/members"
    text = (members / "00000.model").read_bytes().replace(b"nr_class 2", b"nr_class 3")
    (members / "00000.model").write_bytes(text)
    record = json.loads((members / "00000.json").read_bytes().partition(b"\n")[0])
    record |= {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    body = json.dumps(record).encode()
    seal = hashlib.sha256(body).hexdigest().encode()
    (members / "00000.json").write_bytes(body + b"\n" + seal + b"\n")
    parts = (tmp_path / "part-1", tmp_path / "part-2")
    said(run_resvm("merge", *parts, "-q", "-o", tmp_path / "m"), 4, "00000.model")
    assert sorted(os.listdir(tmp_path)) == ["part-1", "part-2"]


def test_a_pipe_in_the_place_of_a_scheduler_file_is_not_waited_for(problem, tmp_path):
    pytest.importorskip("distributed")
    os.mkfifo(tmp_path / "scheduler.json")
    place = ("--cluster", tmp_path / "scheduler.json", "--cluster-timeout", 0.1)
    said(train(problem, *place, "-o", tmp_path / "m", patience=100), 5, "not a regular file")


# readers of two files of a model


@pytest.mark.parametrize("reader", ["predict", "files", "api"])
def test_a_reader_of_out_of_bag_values_sees_those_of_its_model(
    reader, problem, model, tmp_path, monkeypatch
):

    from resvm_cli import api
    from resvm_cli.commands.predict.predict import predict, predict_files
    from resvm_cli.commands.predict.scoring import PredictRequest, ThresholdRule
    from resvm_cli.model_files import directory

    said(train(problem, "-o", tmp_path / "other", "--seed", 5), 0)
    target = tmp_path / "m"
    shutil.copytree(model, target)
    real = directory.load_out_of_bag
    replaced = []

    def late(path, manifest, **more):
        if not replaced:  # once: between the members and the table
            replaced.append(True)
            target.rename(tmp_path / "old")
            shutil.copytree(tmp_path / "other", target)
        return real(path, manifest, **more)

    monkeypatch.setattr(directory, "load_out_of_bag", late)
    rows = str(problem / "test.svm")
    request = PredictRequest(
        str(target), rows, str(tmp_path / "out"), threshold=ThresholdRule("recall", 0.9)
    )
    if reader == "predict":
        predict(request, Run())
    elif reader == "files":
        predict_files(request, [rows], str(tmp_path / "outputs"), None, Run())
    else:
        api.load(target)
    assert replaced


@pytest.mark.slow
def test_no_reader_fails_during_a_thousand_replacements(problem, model, tmp_path):
    from resvm_cli.model_files import directory

    said(train(problem, "-o", tmp_path / "other", "--seed", 5), 0)
    target = tmp_path / "m"
    shutil.copytree(model, target)
    seeds = []
    with started(replace_often(target, [tmp_path / "other", model], 1000)) as running:
        while running.poll() is None:
            stored, table = directory.load_with_out_of_bag(str(target), required=True)
            seeds.append(stored.manifest["seed"])
            assert table is not None
    assert running.returncode == 0
    print(f"{len(seeds)} loads")  # noqa: T201
    assert set(seeds) == {0, 5}


# memory that is short


NO_LOCKS = """
import threading
from resvm_cli.running import parallel
from resvm_cli.errors import MachineError

def tasks():
    yield 1
    def no_lock(*_): raise RuntimeError("can't allocate lock")
    threading.Event = no_lock
    yield 2

try:
    print(list(parallel.stream(abs, tasks(), lambda: 1)))
except MachineError as error:
    print(error.message)
"""


def test_where_no_lock_can_be_made_nothing_is_lost_in_silence():
    ran = run(script_command(NO_LOCKS), patience=60)
    assert (ran.code, ran.out, ran.err) == (0, b"out of memory\n", "")


DEAD = """
from resvm_cli.running import parallel
from resvm_cli.errors import MachineError
parallel.WAIT_SECONDS = 0.05
if {feeder}:
    parallel._Stream._feed = lambda self: None
else:
    parallel._Stream._work = lambda self: None
try:
    print(list(parallel.stream(abs, [1, 2], lambda: 1)))
except MachineError as error:
    print(error.message)
"""


@pytest.mark.parametrize("feeder", [True, False])
def test_a_thread_that_dies_without_a_word_is_not_waited_for(feeder):
    ran = run(script_command(DEAD.format(feeder=feeder)), patience=60)
    assert (ran.code, ran.out, ran.err) == (0, b"out of memory\n", "")
