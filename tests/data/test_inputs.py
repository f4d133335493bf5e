"""Inputs known by their first bytes, and advice for formats that cannot be read."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from resvm_cli.cli.terminal import in_options
from resvm_cli.data.delimited import separators_of
from resvm_cli.data.inputs import foreign_format, kind_of, read_file, with_head
from resvm_cli.errors import DataError


def npz() -> bytes:
    file = io.BytesIO()
    scipy.sparse.save_npz(file, scipy.sparse.eye(3, format="csr"))
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones((3, 2)))
    return file.getvalue()


CSV = b"id,y,x1\na,1,0.5\n"
FOREIGN = {
    "table": CSV,
    "npz": npz(),
    "npy": npy(),
    "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "parquet": b"PAR1" + bytes(100),
    "matrix market": b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n",
    "excel": b"PK\x03\x04" + bytes(22) + b"\x13\x00\x00\x00[Content_Types].xml",
    "zip": b"PK\x03\x04" + bytes(22) + b"\x05\x00\x00\x00a.txtx",
    "utf-16": "id,y\n".encode("utf-16"),
    "sdf": b"ethanol\n     RDKit          2D\n\n  3  2  0  0  0  0  0  0  0  0999 V2000\n",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_is_known_by_its_first_bytes(kind):
    assert kind_of(FOREIGN[kind]) == kind


@pytest.mark.parametrize(
    "first", [b"[Content_Types].xml", b"xl/workbook.xml", b"docProps/app.xml", b"_rels/.rels"]
)
def test_a_workbook_is_known_whichever_part_was_written_first(first):
    head = b"PK\x03\x04" + bytes(22) + len(first).to_bytes(2, "little") + bytes(2) + first
    assert kind_of(head) == "excel"


@pytest.mark.parametrize("line", [b"sep=;", b"sep=\t", b'"sep=,"', b"\xef\xbb\xbfsep=|\r"])
def test_a_file_that_states_its_separator_is_a_table(line):
    assert kind_of(line + b"\na b\n") == "table"


@pytest.mark.parametrize("command", ["check", "convert"])
def test_a_table_of_one_column_gets_the_option_that_reads_it(command, resvm, tmp_path):
    (tmp_path / "one.csv").write_text("x\n1\n2\n")
    ran = resvm(command, "one.csv", cwd=tmp_path)
    assert ran.code == 3
    assert "table with one column" in ran.err + ran.out.decode()
    assert "--columns NAME" in ran.err + ran.out.decode()
    assert resvm(command, "one.csv", "--columns", "x", cwd=tmp_path).code == 0


@pytest.mark.parametrize("name", ["mols.smi", "MOLS.SMILES"])
def test_a_list_of_molecules_gets_the_line_that_makes_fingerprints(name, resvm, tmp_path):
    (tmp_path / name).write_bytes(b"CCO a-1\nCCC b\n")
    columns = "--no-header --smiles-column 1 --id-column 2"
    line = f"resvm convert {name} {columns} -o data.svm"
    for command in (("check", name), ("convert", name, "-o", "x.svm")):
        ran = resvm(*command, cwd=tmp_path)
        assert ran.code == 3
        told = ran.err + ran.out.decode()
        assert f"{name}: a list of molecules (SMILES), not svmlight text" in told
        assert line in told
    pytest.importorskip("rdkit")
    ran = resvm(*shlex.split(line)[1:], cwd=tmp_path)
    assert ran.code == 0, ran.err
    rows = (tmp_path / "data.svm").read_text().splitlines()
    assert len(rows) == 1 + 2
    assert rows[1].endswith(" # a-1")


@pytest.mark.parametrize(
    "line", [b"1 1:2\n", b"1\n", b"1:2 3:4\n", b"+1\t1:2\n", b"# a, b\n1 1:2\n", b"1 2:1 # a,b\n"]
)
def test_svmlight_text_passes(line):
    assert kind_of(line) == "svmlight"


@pytest.mark.parametrize("line", [b"1 1:0,5\n", b"x\n", b"1 1 2\n", b"1 1:2;2:3\n"])
def test_a_bad_line_of_svmlight_text_is_left_to_the_parser(line):
    assert kind_of(line) == "svmlight"


@pytest.mark.parametrize(
    ("line", "mark"), [("a,b;c,d", ","), ("a\tb,c\td", "\t"), ('"a,b,c";d', ";"), ("a", ",")]
)
def test_the_separator_is_what_there_is_most_of_outside_quotes(line, mark):
    assert separators_of(line, "")[0] == mark


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_text_cut_anywhere_stays_the_same(step):
    text = b"1 1:2 2:3\n" * 30
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    _, same = with_head(iter(pieces))
    assert b"".join(same) == text


@pytest.mark.parametrize("kind", ["excel", "matrix market", "zip", "utf-16", "sdf"])
def test_every_command_that_reads_rows_says_what_to_do(kind, problem, model, resvm, tmp_path):
    (tmp_path / "my data").write_bytes(FOREIGN[kind])
    expected = {
        "excel": "save the sheet as CSV and use that file instead",
        "matrix market": "scipy.io.mmread(",
        "zip": "unzip 'my data'",
        "utf-16": "iconv -f UTF-16",
        "sdf": "resvm convert FILE.smi --no-header --smiles-column 1",
    }[kind]
    for command in (
        ("train", "--no-auto", "-P", "my data", "-U", problem / "unl.svm"),
        ("train", "--no-auto", "-P", problem / "pos.svm", "-U", "my data"),
        ("predict", model, "my data"),
    ):
        ran = resvm(*command, cwd=tmp_path)
        assert ran.code == 3
        assert "resvm: error: my data: a" in ran.err or kind in ran.err.lower()
        fault = {
            "excel": "an Excel workbook, which is not supported",
            "matrix market": "a Matrix Market file, which is not supported",
        }.get(kind, "not svmlight text")
        assert f"{fault}\n" in ran.err
        assert expected in ran.err.splitlines()[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my data"]


@pytest.mark.parametrize("form", [scipy.sparse.coo_matrix, np.asarray])
def test_the_advice_on_matrix_market_converts_the_file(form, resvm, tmp_path):
    matrix = np.array([[0.5, 0, 2], [0, 7, 0]])
    scipy.io.mmwrite(tmp_path / "it's.mtx", form(matrix), precision=17)
    for command in ("check", "convert"):
        ran = resvm(command, "it's.mtx", cwd=tmp_path)
        assert ran.code == 3
        assert (
            "it's.mtx: a Matrix Market file, which is not supported" in ran.err + ran.out.decode()
        )
    code = (ran.err + ran.out.decode()).partition("in Python: ")[2].strip()
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
    assert resvm("convert", "data.npz", cwd=tmp_path).out == b"0 1:0.5 3:2\n0 2:7\n"


def test_a_file_in_another_format_is_not_read_as_svmlight_text(tmp_path):
    (tmp_path / "a.csv").write_bytes(CSV)
    with pytest.raises(DataError, match=r"a\.csv: a table \(CSV or similar\), not svmlight text"):
        read_file(str(tmp_path / "a.csv"))


def test_the_advice_on_tables_names_the_options_for_labels_and_ids():
    hint = in_options(foreign_format(kind_of(CSV), "my a.csv").hint)
    assert "resvm convert 'my a.csv' -o data.svm; --label-column and --id-column name" in hint


@pytest.mark.parametrize(
    "text",
    [
        b"\n  program\n\n  0  0  0     0  0            999 V3000\r\nM  V30 BEGIN CTAB\r\n",
        b"name\n\n\nM  END\n> <x>\n1\n\n$$$$\n",
        b"one, two\n\n\n$$$$\n",
    ],
)
def test_molecules_in_sdf_get_the_commands_that_make_fingerprints(text):
    error = foreign_format(kind_of(text), "my mols.sdf.gz")
    assert str(error).startswith("my mols.sdf.gz: molecules in SDF format, not svmlight text\n")
    hint = in_options(error.hint)
    assert "SMILES and name to a file, for example with Open Babel" in hint
    columns = "--no-header --smiles-column 1 --id-column 2"
    assert f"resvm convert FILE.smi {columns} -o data.svm" in hint


@pytest.mark.parametrize("text", [b"1 1:2 # V2000\n", b"1 1:2 # M  END\n", b"$$$$,a\n1,2\n"])
def test_words_of_sdf_in_other_files_do_not_make_them_molecules(text):
    assert kind_of(text) != "sdf"
