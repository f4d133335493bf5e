"""Tables before a model that knows its columns."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from resvm_cli.commands.convert import convert_file
from resvm_cli.commands.predict import PredictOptions, predict_rows
from resvm_cli.data import delimited
from resvm_cli.data.encoding import ColumnRoles
from resvm_cli.data.predictions import annotated
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pufiles import PUFiles
from resvm_cli.data.streams import PIECE
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.parameters import Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.tuning.learn import train
from tests.conftest import SAMPLE
from tests.programs import start_resvm
from tests.tuning.test_training import NAMES, ROWS, reading, write

CHOICE = Params(n_models=4, auto=False)
NEW = [row[:4] + row[5:] for row in ROWS[:40]]
OWN = [name for name in NAMES if name != "status"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tables")
    source = TrainingInput(data=write(path / "t.csv", ROWS), table=reading())
    train(source, CHOICE, str(path / "m"), Run())
    write(path / "new.csv", NEW, OWN)
    return path


def predicted(folder: Path, name: str, table: ColumnRoles | None = None, **more) -> list[str]:
    target = folder / "out"
    options = PredictOptions(**{"output": str(target), "form": "text", **more})
    options.check()
    run = Run()
    predict_rows(str(folder / "m"), str(folder / name), options, run, table or ColumnRoles())
    predicted.notes = "\n".join(map(str, run.notes))  # type: ignore[attr-defined]
    return target.read_text().splitlines()


def notes() -> str:
    return str(predicted.notes)  # type: ignore[attr-defined]


def columns_of(path: Path) -> dict[str, list[str]]:
    with open(path, newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
    return {name: [row[at] for row in rows] for at, name in enumerate(header)}


def test_values_are_those_of_the_converted_rows(folder):
    table, target = str(folder / "new.csv"), str(folder / "new.svm")
    convert_file(table, ColumnRoles(), [target], Run(), like=str(folder / "m"))
    assert predicted(folder, "new.csv") == predicted(folder, "new.svm")


def test_columns_are_found_by_name_in_any_order_and_others_are_ignored(folder):
    expected = predicted(folder, "new.csv")
    order = [3, 4, 1, 0, 2]
    shuffled = [[row[at] for at in order] + ["?", "x"] for row in NEW]
    write(folder / "s.tsv", shuffled, [OWN[at] for at in order] + ["more", "extra"], "\t")
    assert predicted(folder, "s.tsv") == expected
    assert "columns that the model does not use were ignored: name, more, extra" in notes()


def test_a_table_is_answered_with_a_table_unless_a_format_is_given(folder):
    lines = predicted(folder, "new.csv", ColumnRoles(row_id="name"), form=None, ids=True)
    assert lines[0] == "id\tlabel\tdecision_value"
    plain = [" ".join(line.split("\t")[1:]) for line in lines[1:]]
    assert plain == [line.partition(" #")[0] for line in predicted(folder, "new.csv")]
    assert [line.split("\t")[0] for line in lines[1:]] == [row[0] for row in NEW]


def shown_on_a_terminal(*words: object) -> str:
    """What a command prints to a terminal."""
    primary, secondary = pty.openpty()
    with start_resvm(*words, stdout=secondary) as running:
        os.close(secondary)
        text = b""
        with suppress(OSError):  # the end of a terminal
            while piece := os.read(primary, 1 << 16):
                text += piece
        running.communicate()
    os.close(primary)
    return text.decode().replace("\r", "")


def test_a_terminal_is_shown_the_first_rows_as_an_aligned_table(folder):
    words = ["predict", folder / "m", folder / "new.csv", "--id-column", "name"]
    table = shown_on_a_terminal(*words).splitlines()
    assert table[0].split() == ["id", "label", "decision_value"]
    assert len(table) == 21
    assert len({len(line) for line in table}) == 1
    assert all(re.fullmatch(r"r\d+ +-?1 +-?\d\.\d{4}", line) for line in table[1:])
    lines = shown_on_a_terminal(*words, "--format", "tsv").splitlines()
    assert len(lines) == 1 + len(NEW)
    trained = ["--data", folder / "t.csv", "--label-column", "status", "--positive-label", "hit"]
    more = ["--positive-label", "strong hit", "--missing", "mean", "--id-column", "name"]
    table = shown_on_a_terminal("rank", *trained, *more, "--model", folder / "m").splitlines()
    assert table[0].split()[:4] == ["rank", "id", "decision_value", "votes"]
    assert len(table) == 21


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda names, rows: (["name", "a", "B", "site", "last"], rows),
            "no column 'b', which the",
        ),
        (lambda names, rows: (names[:-1], [row[:-1] for row in rows]), "no column 'last'"),
        (
            lambda names, rows: (names, [*rows[:3], ["r", "oops", "1", "north", "0"]]),
            r"x\.csv:5: 'oops' in column 'a'; expected a number",
        ),
    ],
)
def test_what_the_model_needs_and_the_table_lacks_is_an_error(change, message, folder):
    names, rows = change(OWN, NEW)
    write(folder / "x.csv", rows, names)
    with pytest.raises(DataError, match=message):
        predicted(folder, "x.csv")


def test_a_new_category_has_no_feature_and_is_counted_by_column(folder):
    rows = [[*row[:3], "elsewhere", row[4]] for row in NEW]
    write(folder / "n.csv", rows, OWN)
    found = predicted(folder, "n.csv")
    assert "unknown to the model get no feature: site (40 rows, first 'elsewhere')" in notes()
    rows = [[*row[:3], "", row[4]] for row in NEW]  # --missing mean sets texts to nothing
    write(folder / "e.csv", rows, OWN)
    assert predicted(folder, "e.csv") == found


@pytest.mark.parametrize("piped", [False, True])
def test_a_table_of_many_pieces_is_annotated_while_it_is_predicted(
    piped, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(delimited, "CELLS_AT_ONCE", 1)  # blocks of 64 rows
    rows = [[*row, str(number) + "x" * 20_000] for number, row in enumerate(NEW * 8)]
    path = Path(write(tmp_path / "long.csv", rows, [*OWN, "remark"]))
    assert path.stat().st_size > 4 * PIECE
    expected = predicted(folder, str(path))
    if piped:
        text = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        threading.Thread(target=path.write_bytes, args=(text,)).start()
    target = tmp_path / "annotated.csv"
    assert predicted(folder, str(path), annotate=str(target)) == expected
    found = columns_of(target)
    assert [list(row) for row in zip(*map(found.get, [*OWN, "remark"]), strict=True)] == rows
    values = zip(found["label"], found["decision_value"], strict=True)
    assert [" ".join(pair) for pair in values] == expected


def test_missing_values_are_filled_in_as_in_training(folder):
    rows = [[row[0], "", *row[2:]] for row in NEW]
    write(folder / "gaps.csv", rows, OWN)
    filled = predicted(folder, "gaps.csv")
    assert len(filled) == len(NEW)
    assert "filled in as in training: a in 40, b in 4 of 40 rows" in notes()
    assert predicted(folder, "gaps.csv", ColumnRoles(missing="mean")) == filled
    for rule in ("median", "zero"):
        table = ColumnRoles(missing=rule)
        with pytest.raises(ParameterError, match="`missing` contradicts the model"):
            predicted(folder, "gaps.csv", table)


def test_rows_that_training_would_drop_are_refused_since_every_row_is_predicted(tmp_path):
    source = TrainingInput(data=write(tmp_path / "t.csv", ROWS), table=reading("drop"))
    train(source, CHOICE, str(tmp_path / "m"), Run())
    write(tmp_path / "whole.csv", [[row[0], 1, 2, *row[3:]] for row in NEW], OWN)
    assert predicted(tmp_path, "whole.csv")
    write(tmp_path / "gaps.csv", [[row[0], "", *row[2:]] for row in NEW], OWN)
    with pytest.raises(DataError, match=r"gaps\.csv:2"):
        predicted(tmp_path, "gaps.csv")


def test_missing_values_that_training_did_not_have_are_filled_in_with_0_if_asked(tmp_path):
    whole = [[number, number % 7, number % 3] for number in range(60)]
    table = ColumnRoles(label="c", positive_labels=("0",))
    source = TrainingInput(data=write(tmp_path / "t.csv", whole, ["a", "b", "c"]), table=table)
    train(source, CHOICE, str(tmp_path / "m"), Run())
    write(tmp_path / "gaps.csv", [["", 1], [2, 0]], ["a", "b"])
    write(tmp_path / "zeros.csv", [[0, 1], [2, 0]], ["a", "b"])
    with pytest.raises(DataError):
        predicted(tmp_path, "gaps.csv")
    expected = predicted(tmp_path, "zeros.csv")
    asked = ColumnRoles(missing="zero")
    assert predicted(tmp_path, "gaps.csv", asked) == expected
    assert "missing values were filled in with 0: a in 1 of 2 rows" in notes()


def test_ids_come_from_their_column(folder):
    table = ColumnRoles(row_id="name")
    lines = predicted(folder, "new.csv", table, ids=True)
    assert [line.rpartition("# ")[2] for line in lines] == [row[0] for row in NEW]


def test_a_model_without_columns_takes_a_matrix_but_no_table(folder):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((60, 3))
    text = [" ".join(f"{at + 1}:{x!r}" for at, x in enumerate(row)) for row in matrix.tolist()]
    (folder / "p.svm").write_text("\n".join(text[:20]) + "\n")
    (folder / "u.svm").write_text("\n".join(text[20:]) + "\n")
    inner = folder / "plain"
    inner.mkdir()
    source = TrainingInput(str(folder / "p.svm"), str(folder / "u.svm"))
    train(source, CHOICE, str(inner / "m"), Run())
    np.save(inner / "x.npy", matrix[20:])
    np.savez(inner / "x.npz", data_matrix=matrix[20:])
    (inner / "u.svm").write_bytes((folder / "u.svm").read_bytes())
    assert predicted(inner, "x.npy") == predicted(inner, "x.npz") == predicted(inner, "u.svm")
    write(inner / "x.csv", [list(map(repr, row)) for row in matrix.tolist()], ["a", "b", "c"])
    with pytest.raises(DataError, match="the model was not trained on one"):
        predicted(inner, "x.csv")
    np.save(inner / "narrow.npy", matrix[20:, :2])
    with pytest.raises(DataError, match=r"narrow.npy: 2 columns, but the model was trained on 3"):
        predicted(inner, "narrow.npy")
    scipy.sparse.save_npz(inner / "narrow.npz", scipy.sparse.csr_array(matrix[20:, :2]))
    assert len(predicted(inner, "narrow.npz")) == 40  # trailing zeros, as in svmlight text


@pytest.mark.parametrize("level", [None, "0.7"])
@pytest.mark.parametrize("name", ["own.csv", "own.tsv"])
def test_the_table_comes_back_with_its_predictions(name, level, folder):
    rows = [[*row, "mine"] for row in NEW]
    write(folder / "c.csv", rows, [*OWN, "label"])  # a name that a result has too
    lines = predicted(folder, "c.csv", annotate=str(folder / name), votes=True, threshold=level)
    found = columns_of(folder / name)
    assert list(found) == [*OWN, "label", "resvm_label", "decision_value", "votes"]
    for at, column in enumerate([*OWN, "label"]):
        assert found[column] == [row[at] for row in rows]
    own = zip(found["resvm_label"], found["decision_value"], found["votes"], strict=True)
    assert [list(map(float, one)) for one in own] == [list(map(float, x.split())) for x in lines]
    if level is not None:
        above = [float(value) > float(level) for value in found["decision_value"]]
        assert [label == "1" for label in found["resvm_label"]] == above


@pytest.mark.parametrize("first_missing", [0, 39])
def test_integers_of_a_parquet_file_stay_integers(first_missing, folder, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(delimited, "MAX_ROWS", 10)
    monkeypatch.setattr(delimited, "MIN_ROWS", 10)
    big = [2**60 + number for number in range(len(NEW))]
    gaps = [None if number == first_missing else one for number, one in enumerate(big)]
    small = [None if number == first_missing else number for number in range(len(NEW))]
    columns = dict(zip(OWN, map(list, zip(*NEW, strict=True)), strict=True))
    columns |= {"a": [float(one) for one in columns["a"]], "b": small, "last": [0] * len(NEW)}
    columns |= {"name": big, "other": gaps}
    parquet.write_table(pyarrow.table(columns), folder / "i.parquet")
    predicted(folder, "i.parquet", annotate=str(folder / "own.csv"))
    found = columns_of(folder / "own.csv")
    for name in ("name", "b", "last", "other"):
        assert found[name] == ["" if one is None else str(one) for one in columns[name]]
    assert list(map(float, found["a"])) == columns["a"]


def test_unknown_results_are_empty_cells(tmp_path):
    path = tmp_path / "a.csv"
    with annotated(str(path), ["x"]) as write_rows:
        write_rows([["a"], ["b"]], {"probability": [0.5, float("nan")]})
    assert columns_of(path)["probability"] == ["0.5", ""]


def test_rows_without_columns_and_odd_names_cannot_be_annotated(folder):
    (folder / "r.svm").write_text("1 1:2\n")
    with pytest.raises(DataError, match="--annotate needs a table"):
        predicted(folder, "r.svm", annotate=str(folder / "x.csv"))
    assert not (folder / "x_.csv").exists()
    for name in ("x.txt", "x.parquet"):
        with pytest.raises(ParameterError, match=r"ends in \.csv or \.tsv"):
            predicted(folder, "new.csv", annotate=str(folder / name))


def test_a_table_of_column_names_only_is_an_error(folder):
    write(folder / "empty.csv", [], OWN)
    with pytest.raises(DataError, match=r"empty\.csv: no rows") as caught:
        predicted(folder, "empty.csv")
    assert caught.value.hint == "the file contains only column names"


@pytest.fixture(scope="module")
def molecules(tmp_path_factory, resvm) -> Path:
    """Models of the sample compounds: of the table, and of the text that convert makes of it."""
    pytest.importorskip("rdkit")
    path = tmp_path_factory.mktemp("molecules")
    resvm("train", *COMPOUNDS, "--no-auto", "-o", path / "m")
    resvm("train", *COMPOUNDS, "-t", "minmax", "--no-auto", "-o", path / "counts")
    resvm("convert", *COMPOUNDS[1:], "-o", path / "all.svm")
    text = ("--data", path / "all.svm", "--positive-label", 1)
    resvm("train", *text, "-t", "tanimoto", "--no-auto", "-o", path / "text")
    return path


COMPOUNDS = ("--data", SAMPLE / "compounds" / "compounds.csv", "--smiles-column", "smiles",
             "--label-column", "outcome", "--positive-label", "hit")  # fmt: skip
NEW_COMPOUNDS = SAMPLE / "compounds" / "new.csv"


def test_a_column_of_molecules_is_one_more_encoding(molecules, resvm):
    by_table = resvm("predict", molecules / "m", NEW_COMPOUNDS)
    manifest = json.loads((molecules / "m" / "manifest.json").read_text())
    assert manifest["groups"][0]["kernel"] == {"name": "tanimoto"}
    (column,) = manifest["encoding"]["columns"]
    sizes = {"bits": 2048, "radius": 2, "counts": False}
    assert column == {"name": "smiles", "kind": "morgan", "first": 1, **sizes}
    again = json.loads((molecules / "text" / "manifest.json").read_text())
    assert {**again["encoding"], "missing": None} == {**manifest["encoding"], "missing": None}
    assert again["members"] == manifest["members"]
    assert resvm("predict", molecules / "text", NEW_COMPOUNDS).out == by_table.out
    counts = json.loads((molecules / "counts" / "manifest.json").read_text())
    assert counts["encoding"]["columns"] == [{**column, "counts": True}]
    ranked = resvm("rank", *COMPOUNDS, "--model", molecules / "m", "--top", 1)
    assert len(ranked.out.splitlines()) == 2


@pytest.mark.parametrize("other", [("--bits", 1024), ("--radius", 3), ("--counts",)])
def test_fingerprints_of_another_kind_are_refused(other, molecules, resvm, tmp_path):
    new = ("convert", NEW_COMPOUNDS, "--smiles-column", "smiles", "-o")
    resvm(*new, tmp_path / "same.svm")
    resvm(*new, tmp_path / "new.svm", *other)
    told = "but the model was trained on fingerprints of 2,048 bits, radius 2"
    for model in ("m", "text"):
        assert resvm("predict", molecules / model, tmp_path / "same.svm").code == 0
        ran = resvm("predict", molecules / model, tmp_path / "new.svm")
        assert ran.code == 3
        assert told in ran.err
    ran = resvm("rank", "-P", tmp_path / "new.svm", "-U", tmp_path / "same.svm")
    assert ran.code == 3
    assert "same.svm: contains fingerprints of 2,048 bits, radius 2, but" in ran.err


def mixed_table(n_rows: int, seed: int) -> dict[str, list[str]]:
    """Numbers, late categories, ids, dates and a label, as text."""
    draw = np.random.default_rng(seed)
    kinds = [f"k{draw.integers(2 + row // 400)}" for row in range(n_rows)]
    days = [f"20{row % 90 + 10}-0{row % 9 + 1}-1{row % 7}" for row in range(n_rows)]
    return {
        "x": [repr(one) for one in draw.normal(size=n_rows).round(3).tolist()],
        "kind": kinds,
        "late": ["a" if row < n_rows // 2 else kind for row, kind in enumerate(kinds)],
        "key": [f"R{row:05d}" for row in range(n_rows)],
        "day": days,
        "y": [repr(float(one)) for one in (draw.random(n_rows) < 0.1)],
    }


def write_layouts(folder: Path, table: dict[str, list[str]]) -> list[Path]:
    """Write a table as plain, quoted and separated CSV, with blank lines, and in row groups."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [list(table), *map(list, zip(*table.values(), strict=True))]
    texts = {
        "plain.csv": "".join(",".join(row) + "\n" for row in rows),
        "quoted.csv": "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows),
        "tabs.tsv": "".join("\t".join(row) + "\n" for row in rows),
        "blank.csv": "".join("\n" * (at % 3) + ",".join(row) + "\n" for at, row in enumerate(rows)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    numbers = {name: list(map(float, table[name])) for name in ("x", "y")}
    for size in (1, 19, 777):
        path = folder / f"groups-{size}.parquet"
        parquet.write_table(pyarrow.table(table | numbers), path, row_group_size=size)
    return [
        folder / name for name in (*texts, *(f"groups-{size}.parquet" for size in (1, 19, 777)))
    ]


def test_a_table_gives_one_model_whatever_its_layout(tmp_path):
    roles = ColumnRoles(label="y", positive_labels=("1.0",))
    models = []
    for path in write_layouts(tmp_path, mixed_table(2500, 0)):
        target = tmp_path / f"{path.name}.model"
        train(TrainingInput(data=str(path), table=roles), CHOICE, str(target), Run())
        models.append(
            {file.name: file.read_bytes() for file in target.rglob("*") if file.is_file()}
        )
    assert b"kind=k6" in models[0]["manifest.json"]
    assert b"-01-11" not in models[0]["manifest.json"]
    assert all(model == models[0] for model in models)
    # its encoding as matrices has no column names, but the same members
    with PUFiles(TrainingInput(data=str(path), table=roles), Run()) as data:
        for name, rows in (("p", data.positives), ("u", Rows.concatenate(list(data.unlabeled())))):
            parts = rows.values, rows.indices - 1, rows.indptr
            matrix = scipy.sparse.csr_matrix(parts, shape=(len(rows), data.n_features))
            scipy.sparse.save_npz(tmp_path / f"{name}.npz", matrix)
    source = TrainingInput(str(tmp_path / "p.npz"), str(tmp_path / "u.npz"))
    train(source, CHOICE, str(tmp_path / "m"), Run())
    for file in (tmp_path / "m" / "members").iterdir():
        assert file.read_bytes() == models[0][file.name]
