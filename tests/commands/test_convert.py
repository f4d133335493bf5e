"""resvm convert, as a user runs it."""

from __future__ import annotations

import gzip
import json
import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from resvm_cli.commands.convert import convert_file
from resvm_cli.data import delimited
from resvm_cli.data.encoding import ColumnRoles
from resvm_cli.data.inputs import read_file
from resvm_cli.run import Run
from tests.conftest import assert_exit
from tests.programs import run, run_resvm

CSV = (
    b"id,y,mw,vendor,logp\n"
    b'a 1,g,1.5,acme,0.1\nb,h,0,"b,ig",-3e-7\nc,,2,acme,123456789.123456789\nd,g,4,zeta,1\n'
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "d.csv").write_bytes(CSV)
    return tmp_path


def converted(resvm, folder, *arguments, code=0, **more):
    ran = resvm("convert", *arguments, cwd=folder, **more)
    assert ran.code == code, ran.err
    return ran


ROLES = ("--label-column", "y", "--positive-label", "g", "--id-column", "id")


def test_text_labels_categories_and_ids(resvm, folder):
    ran = converted(resvm, folder, "d.csv", *ROLES, "--map", "map.json")
    assert ran.out.decode().splitlines() == [
        "1 1:1.5 2:0.1 3:1 # a 1",
        "0 2:-3e-07 4:1 # b",
        "0 1:2 2:123456789.12345679 3:1 # c",
        "1 1:4 2:1 5:1 # d",
    ]
    names = json.loads((folder / "map.json").read_text())["features"]
    assert names == ["mw", "logp", "vendor=acme", "vendor=b,ig", "vendor=zeta"]
    assert "4 rows, 2 of them positive, 5 features" in ran.err
    assert "categorical columns: vendor (3 values)" in ran.err
    assert converted(resvm, folder, "d.csv", *ROLES, "-q").err == ""


def test_positives_and_unlabeled_rows_at_once(resvm, folder):
    whole = converted(resvm, folder, "d.csv", *ROLES).out.splitlines()
    converted(resvm, folder, "d.csv", *ROLES, "-P", "pos.svm", "-U", "unl.svm")
    assert (folder / "pos.svm").read_bytes().splitlines() == [whole[0], whole[3]]
    assert (folder / "unl.svm").read_bytes().splitlines() == [whole[1], whole[2]]
    files = ("-P", "pos.svm", "-U", "unl.svm")
    ran = resvm("train", "--no-auto", *files, "--n-pos", 2, "--n-unl", 2, cwd=folder)
    assert ran.code == 0, ran.err


def test_stdin_compression_and_tabs_make_no_difference(resvm, folder):
    expected = converted(resvm, folder, "d.csv", *ROLES).out
    assert converted(resvm, folder, "-", *ROLES, stdin=CSV).out == expected
    (folder / "d.gz").write_bytes(gzip.compress(CSV))
    assert converted(resvm, folder, "d.gz", *ROLES).out == expected
    tabs = CSV.replace(b'"b,ig"', b"b;ig").replace(b",", b"\t").replace(b"b;ig", b"b,ig")
    assert converted(resvm, folder, "-", *ROLES, stdin=tabs).out == expected
    for rule in ("mean", "median"):  # which are read twice
        again = converted(resvm, folder, "-", *ROLES, "--missing", rule, stdin=CSV)
        assert again.out == expected


def test_numeric_labels_stay_as_they_are(resvm, folder):
    text = b"y,a\n1,2\n-1,0\n2.5,3\n"
    out = converted(resvm, folder, "-", "--label-column", "y", stdin=text).out
    assert out == b"1 1:2\n-1\n2.5 1:3\n"
    more = ("--label-column", "1", "--positive-label", "2.50")
    assert converted(resvm, folder, "-", *more, stdin=text).out == b"0 1:2\n0\n1 1:3\n"


def test_columns_that_look_like_molecules_are_told(resvm, folder):
    table = b"who,SMILES,kind\nx,CC,s\ny,CO,s\nz,CN,t\n"
    told = converted(resvm, folder, "-", stdin=table).err
    assert "who (3 values), SMILES (3 values; for fingerprints: --smiles-column SMILES)" in told


def test_rows_that_were_left_out_have_their_places(resvm, folder):
    table = b"a,b\n" + b"1,2\n,3\n" * 6
    told = " ".join(converted(resvm, folder, "-", "--missing", "drop", stdin=table).err.split())
    assert (
        "6 rows were dropped because of missing values or invalid molecules: stdin:3, stdin:5,"
        in told
    )
    assert "stdin:11, ..." in told


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("zero", [b"0 1:1 2:4 3:1", b"0 2:2 4:1", b"0 1:6", b"0 1:5 2:6 3:1"]),
        ("drop", [b"0 1:1 2:4 3:1", b"0 1:5 2:6 3:1"]),
        ("mean", [b"0 1:1 2:4 3:1", b"0 1:4 2:2 4:1", b"0 1:6 2:4", b"0 1:5 2:6 3:1"]),
        ("median", [b"0 1:1 2:4 3:1", b"0 1:5 2:2 4:1", b"0 1:6 2:4", b"0 1:5 2:6 3:1"]),
    ],
)
def test_missing_values_by_each_rule(rule, expected, resvm, folder):
    text = b"a,b,c\n1,4,x\n?,2,y\n6,,NULL\n5,6,x\n"
    ran = converted(resvm, folder, "-", "--missing", rule, stdin=text)
    assert ran.out.splitlines() == expected
    assert ("2 rows were dropped" in ran.err) == (rule == "drop")


def test_the_next_file_gets_the_same_features(resvm, folder):
    first = b"c,a,b\nx,1,4\ny,,2\n"
    converted(resvm, folder, "-", "--missing", "mean", "--map", "m", "-o", "f", stdin=first)
    more = b"b,other,c,a\n,9,y,7\n5,9,new,\n"
    ran = converted(resvm, folder, "-", "--like", "m", stdin=more)
    assert ran.out.splitlines() == [b"0 1:7 2:3 4:1", b"0 1:1 2:5"]
    assert "unknown to m get no feature: c (1 row, first 'new')" in ran.err
    ran = converted(resvm, folder, "-", "--like", "m", stdin=b"a,b\n1,2\n", code=3)
    assert "no column 'c', which the feature map needs" in ran.err
    (folder / "m").write_text("{}")
    ran = converted(resvm, folder, "-", "--like", "m", stdin=more, code=3)
    assert "m: not a feature map" in ran.err


def test_columns_are_chosen_left_out_or_called_categories(resvm, folder):
    text = b"a,b,c\n1,2,3\n4,5,6\n"
    assert (
        converted(resvm, folder, "-", "--columns", "c,a", stdin=text).out
        == b"0 1:1 2:3\n0 1:4 2:6\n"
    )
    assert converted(resvm, folder, "-", "--drop", "a,b", stdin=text).out == b"0 1:3\n0 1:6\n"
    out = converted(resvm, folder, "-", "--categorical", "b", stdin=text).out
    assert out == b"0 1:1 2:3 3:1\n0 1:4 2:6 4:1\n"
    ran = converted(resvm, folder, "-", "--drop", "a,b,c", stdin=text, code=2)
    assert "no columns are left" in ran.err


def test_names_are_not_taken_for_categories(resvm, folder):
    text = b"n,a\n" + b"".join(b"name%d,1\n" % number for number in range(1200))
    ran = converted(resvm, folder, "-", stdin=text, code=3)
    assert "stdin:1002: column 'n' has more than 1,000 different values" in ran.err
    assert "--id-column n" in ran.err
    asked = converted(resvm, folder, "-", "--categorical", "n", stdin=text)
    assert "categorical columns: n (1,200 values)" in asked.err


def test_a_table_of_known_positives_is_not_split_into_p_and_u(resvm, folder):
    text = b"y,a\ng,1\ng,2\n"
    roles = ("--label-column", "y", "--positive-label", "g")
    ran = converted(resvm, folder, "-", "-P", "p", "-U", "u", *roles, stdin=text, code=3)
    assert "every row has the label g; no row is unlabeled" in ran.err
    both = b"y,a\ng,1\nh,2\n"
    assert converted(resvm, folder, "-", "-P", "p", "-U", "u", *roles, stdin=both).code == 0


NUMBERS = st.one_of(
    st.just(0.0), st.floats(allow_nan=False, allow_infinity=False), st.integers(-9, 9).map(float)
)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(NUMBERS, min_size=n, max_size=n), min_size=1, max_size=6)
    )
)
def test_a_table_is_written_to_the_bit(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("round")
    matrix = np.array(values)
    names = [f"c {number}" for number in range(matrix.shape[1])]
    rows = [",".join(["id", "y", *names])]
    rows += [
        ",".join([f"r{number}", repr(number / 3), *map(repr, row)])
        for number, row in enumerate(values)
    ]
    (folder / "a.csv").write_text("\n".join(rows) + "\n")
    reading = ColumnRoles(label="y", row_id="id")
    target = str(folder / "b.svm")
    convert_file(str(folder / "a.csv"), reading, [target], Run())
    sparse, labels = load_svmlight_file(target, n_features=matrix.shape[1])
    assert np.array_equal(sparse.toarray(), matrix)
    assert labels.tolist() == [number / 3 for number in range(len(values))]


@pytest.fixture
def matrix():
    rng = np.random.default_rng(3)
    return rng.standard_normal((30, 6)) * (rng.random((30, 6)) < 0.5)


def dense(text: bytes, folder, width=6) -> np.ndarray:
    (folder / "read.svm").write_bytes(text)
    rows = read_file(str(folder / "read.svm")).rows
    found = np.zeros((len(rows), width))
    found[rows.row_numbers, rows.indices - 1] = rows.values
    return found


@pytest.mark.parametrize("kind", ["npy", "sparse.npz", "dense.npz"])
def test_arrays_of_every_kind(kind, matrix, resvm, folder):
    path = folder / f"data.{kind}"
    if kind == "npy":
        np.save(path, matrix)
    elif kind == "sparse.npz":
        scipy.sparse.save_npz(path, scipy.sparse.csc_matrix(matrix))
    else:
        np.savez(path, X=matrix)
    ran = converted(resvm, folder, path.name)
    assert np.array_equal(dense(ran.out, folder), matrix)
    piped = converted(resvm, folder, "-", stdin=path.read_bytes())
    assert piped.out == ran.out
    (folder / "broken").write_bytes(path.read_bytes()[:-40])
    assert resvm("convert", "broken", cwd=folder).code == 3


def test_parquet(resvm, folder):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table(
        {
            "id": ["a", "b", "c"],
            "n": pyarrow.array([1, None, 3], pyarrow.int64()),
            "x": [0.1, 0.2, 0.0],
            "flag": [True, False, True],
            "kind": pyarrow.array(["u", "v", None]).dictionary_encode(),
        }
    )
    pyarrow.parquet.write_table(table, folder / "d.parquet")
    ran = converted(resvm, folder, "d.parquet", "--id-column", "id", code=3)
    assert "d.parquet: row 2: no value" in ran.err
    ran = converted(resvm, folder, "d.parquet", "--id-column", "id", "--missing", "mean")
    assert ran.out.splitlines() == [
        b"0 1:1 2:0.1 3:1 4:1 # a",
        b"0 1:2 2:0.2 5:1 # b",
        b"0 1:3 3:1 # c",
    ]


def test_several_arrays_are_refused_by_name(matrix, resvm, folder):
    np.savez(folder / "m.npz", one=matrix, two=2 * matrix)
    ran = converted(resvm, folder, "m.npz", code=3)
    assert "contains 2 arrays: one, two" in ran.err
    assert "with numpy.save" in ran.err


@pytest.mark.parametrize(
    ("package", "name", "arguments"),
    [
        ("pyarrow", "d.parquet", ()),
        ("rdkit", "d.csv", ("--smiles-column", "vendor")),
    ],
)
def test_a_package_that_is_not_there_is_named(package, name, arguments, folder):
    if name == "d.parquet":
        (folder / name).write_bytes(b"PAR1" + bytes(20))
    block = (
        f"import sys; sys.modules[{package!r}] = None\nfrom resvm_cli.cli.app import main; main()"
    )
    ran = run([sys.executable, "-c", block, "convert", name, *arguments], cwd=folder)
    assert ran.code == 3, ran.err
    assert f"the {package} package" in ran.err
    assert "resvm-cli[convert]" in ran.err


def test_fingerprints_are_rdkits(resvm, folder):
    from rdkit import Chem
    from rdkit.Chem import AllChem

    smiles = ["CCO", "c1ccccc1C(=O)O", "CC(=O)Nc1ccc(O)cc1", "C"]
    text = "smiles,mw\n" + "".join(f"{one},1\n" for one in smiles)
    out = converted(resvm, folder, "-", "--smiles-column", "smiles", stdin=text.encode()).out
    found = dense(out, folder, 2048)
    counted = converted(
        *(resvm, folder, "-", "--smiles-column", "smiles", "--counts", "--columns", "mw"),
        stdin=text.encode(),
    ).out
    counts = dense(counted, folder, 2049)
    assert (counts[:, 0] == 1).all()
    generator = AllChem.GetMorganGenerator(radius=2, fpSize=2048)
    for row, one in enumerate(smiles):
        molecule = Chem.MolFromSmiles(one)
        assert np.array_equal(found[row], generator.GetFingerprintAsNumPy(molecule))
        assert np.array_equal(counts[row, 1:], generator.GetCountFingerprintAsNumPy(molecule))


def test_a_bad_molecule_has_its_line_and_can_be_left_out(resvm, folder):
    text = b"smiles\nCCO\nC1CC\n" + b"CC\n" * 5000 + b"x\n"
    ran = converted(resvm, folder, "-", "--smiles-column", "smiles", stdin=text, code=3)
    bad = "stdin:3: RDKit cannot read the molecule 'C1CC', the first of 2\n"
    assert ran.err.startswith(f"resvm: error: {bad}")
    ran = converted(
        resvm, folder, "-", "--smiles-column", "smiles", "--missing", "drop", stdin=text
    )
    assert len(ran.out.splitlines()) == 1 + 5001


def test_labels_of_svmlight_text_are_marked_and_split_too(resvm, folder):
    text = b"3 1:1 # a\n-1 2:1\n3.0 2:2\n4:1\n"
    more = ("--positive-label", "3", "-P", "p", "-U", "u")
    converted(resvm, folder, "-", *more, stdin=text)
    assert (folder / "p").read_bytes() == b"1 1:1 # a\n1 2:2\n"
    assert (folder / "u").read_bytes() == b"0 2:1\n0 4:1\n"


def test_a_row_of_zeros_without_label_is_still_a_row(resvm, folder):
    assert converted(resvm, folder, "-", stdin=b"a,b\n0,0\n1,0\n").out == b"0\n0 1:1\n"


def test_zero_based_files_are_shifted(resvm, folder):
    ran = converted(resvm, folder, "-", "--zero-based", stdin=b"1 0:5 2:7\n")
    assert ran.out == b"1 1:5 3:7\n"
    assert "1 rows, 3 features" in ran.err


def test_values_that_appear_late_do_not_disturb_the_order_of_features(folder, monkeypatch):
    monkeypatch.setattr(delimited, "MAX_ROWS", 1)
    monkeypatch.setattr(delimited, "MIN_ROWS", 1)
    (folder / "t.csv").write_text("a,b\nx,u\ny,u\ny,v\n")
    convert_file(str(folder / "t.csv"), ColumnRoles(), [str(folder / "t.svm")], Run())
    assert (folder / "t.svm").read_text() == "0 1:1 2:1\n0 2:1 3:1\n0 3:1 4:1\n"


def test_json_tells_what_was_written(resvm, folder):
    ran = converted(resvm, folder, "d.csv", *ROLES, "-P", "p.svm", "-U", "u.svm", "--json")
    told = json.loads(ran.out)
    assert told["command"] == "convert"
    assert (told["n_rows"], told["n_positives"]) == (4, 2)
    assert told["targets"] == ["p.svm", "u.svm"]
    refused = converted(resvm, folder, "d.csv", "--json", code=2)
    assert "--json and the rows cannot both go to stdout" in refused.err


def test_bytes_that_are_no_text_are_no_molecule(resvm, tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "x.csv").write_bytes(b"id,smiles\n1,CCO\n2,C\xe9C\n")
    ran = resvm("convert", tmp_path / "x.csv", "-q", "--smiles-column", "smiles")
    assert_exit(ran, 3, "RDKit cannot read the molecule")


@pytest.fixture
def feature_map(tmp_path):
    """Return the path of a table's map, which is next to the table."""
    (tmp_path / "x.csv").write_text("id,a,color\nr1,1,red\nr2,2,blue\nr3,3,red\n")
    words = ["--id-column", "id", "--map", tmp_path / "map", "-o", tmp_path / "x.svm"]
    assert_exit(run_resvm("convert", tmp_path / "x.csv", "-q", *words), 0)
    return tmp_path / "map"


def convert_like(feature_map, *more):
    return run_resvm("convert", feature_map.parent / "x.csv", "-q", "--like", feature_map, *more)


def test_a_table_without_any_feature_of_the_map_is_refused(feature_map, tmp_path):
    column = {"name": "color", "kind": "text", "values": {"x": 1, "y": 2}}
    content = json.loads(feature_map.read_text())
    content |= {"columns": [column], "features": ["color=x", "color=y"]}
    feature_map.write_text(json.dumps(content))
    ran = convert_like(feature_map, "-o", tmp_path / "out")
    assert_exit(ran, 3, "x.csv: no row has any features", "for a table with the same columns")
    assert not (tmp_path / "out").exists()
