"""Training from files: tables give the model of converted files; long work is kept."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from resvm_cli.commands.convert import convert_file
from resvm_cli.data import delimited
from resvm_cli.data.encoding import ColumnRoles
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pufiles import PUFiles
from resvm_cli.errors import DataError, ModelError, ParameterError
from resvm_cli.parameters import Params
from resvm_cli.run import Run, Share
from resvm_cli.storage.model import load_model
from resvm_cli.tuning.learn import merge, train, train_share
from tests.commands.test_train import snapshot

RNG = np.random.default_rng(5)
N = 120
ROLES = ColumnRoles(label="status", positive_labels=("hit", "strong hit"), row_id="name")
NAMES = ["name", "a", "b", "site", "status", "last"]
CHOICE = Params(n_models=4, auto=False)


def rows_of_table() -> list[list[str]]:
    """Return a typical table: ids, a missing number, a category, text labels, a column of zeros."""
    rows = []
    for number in range(N):
        positive = number % 4 == 0
        a, b = (RNG.standard_normal(2) + positive).tolist()
        status = ("strong hit" if number % 8 else "hit") if positive else ""
        site = "north" if number % 3 else f"s{number % 5}"
        b_text = "NA" if number % 11 == 5 else repr(b)
        rows.append([f"r{number}", repr(a), b_text, site, status, "0"])
    return rows


ROWS = rows_of_table()


def write(path: Path, rows: list[list[str]], names: list[str] = NAMES, separator: str = ",") -> str:
    with open(path, "w", newline="") as file:
        csv.writer(file, delimiter=separator).writerows([names, *rows])
    return str(path)


def members(model: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((model / "members").iterdir())]


def reading(missing: str | None = "mean", **roles) -> ColumnRoles:
    return replace(ROLES, missing=missing, **roles)


def trained(path: Path, source: TrainingInput, choice: Params = CHOICE) -> dict:
    return train(source, choice, str(path), Run()).manifest


@pytest.mark.parametrize("missing", ["mean", "median", "zero", "drop"])
def test_members_of_a_table_are_those_of_the_converted_file(missing, tmp_path):
    table = write(tmp_path / "t.csv", ROWS)
    converted = str(tmp_path / "t.svm")
    convert_file(table, reading(missing), [converted], Run())
    one = trained(tmp_path / "one", TrainingInput(data=table, table=reading(missing)))
    two = trained(tmp_path / "two", TrainingInput(data=converted, positive_label=1.0))
    assert members(tmp_path / "one") == members(tmp_path / "two")
    assert one["data"] == two["data"]
    assert one["encoding"] is not None
    assert two["encoding"] is None


def test_scaling_does_not_depend_on_the_blocks_that_a_file_is_read_in(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "CELLS_AT_ONCE", 1)  # blocks of 64 rows
    table = write(tmp_path / "t.csv", ROWS)
    converted = str(tmp_path / "t.svm")
    convert_file(table, reading(), [converted], Run())
    trained(tmp_path / "one", TrainingInput(data=table, table=reading(), scale="standard"))
    trained(tmp_path / "two", TrainingInput(data=converted, positive_label=1.0, scale="standard"))
    assert members(tmp_path / "one") == members(tmp_path / "two")


@pytest.mark.parametrize("missing", ["mean", "drop"])
def test_two_tables_make_one_encoding_as_if_u_followed_p(missing, tmp_path):
    known = [row for row in ROWS if row[4]]
    others = [row for row in ROWS if not row[4]]
    order = [5, 3, 0, 4, 2, 1]
    p = write(tmp_path / "p.csv", known)
    u = write(tmp_path / "u.tsv", [[row[i] for i in order] for row in others],
              [NAMES[i] for i in order], "\t")  # fmt: skip
    both = write(tmp_path / "both.csv", known + others)
    roles = ColumnRoles(row_id="name", dropped=("status",), missing=missing)
    source = TrainingInput(p, u, table=roles)
    manifest = trained(tmp_path / "m", source)
    path = str(tmp_path / "map")
    convert_file(both, roles, [str(tmp_path / "x")], Run(), map_path=path)
    expected = json.loads(Path(path).read_text())
    encoding = manifest["encoding"]
    assert encoding.pop("missing") == missing
    for column, there in zip(encoding["columns"], expected["columns"], strict=True):
        if column.get("fill") is not None:  # sums over different blocks may round differently
            assert column.pop("fill") == pytest.approx(there.pop("fill"), rel=1e-12)
    assert encoding == expected
    for name in ("p.csv", "u.tsv"):  # the model's own encoding gives the same rows exactly
        own, target = ColumnRoles(row_id="name"), str(tmp_path / f"{name}.svm")
        convert_file(str(tmp_path / name), own, [target], Run(), like=str(tmp_path / "m"))
    files = [str(tmp_path / f"{name}.svm") for name in ("p.csv", "u.tsv")]
    trained(tmp_path / "again", TrainingInput(*files))
    assert members(tmp_path / "m") == members(tmp_path / "again")


def test_a_table_that_does_not_fit_is_read_again(tmp_path, monkeypatch):
    table = write(tmp_path / "t.csv", ROWS)
    source = TrainingInput(data=table, table=reading(), keep_ids=True)
    with PUFiles(source, Run()) as small:
        numbers = np.array([0, 3, 4, 50, small.n_unlabeled - 1])
        expected, ids = small.fetch(numbers), small.ids()
        whole = [rows.values.tolist() for rows in small.unlabeled()]
        assert small.n_kept
    monkeypatch.setattr("resvm_cli.data.pufiles.KEPT_NONZEROS", 10)
    with PUFiles(source, Run()) as large:
        assert not large.n_kept
        found = large.fetch(numbers)
        assert found.values.tolist() == expected.values.tolist()
        assert found.indices.tolist() == expected.indices.tolist()
        again = [rows.values.tolist() for rows in large.unlabeled()]
        assert list(chain(*again)) == list(chain(*whole))
        assert large.ids() == ids
    assert ids[:2] == ["r0", "r4"]
    assert ids[len(small.positives)] == "r1"


def test_the_same_table_in_every_form_gives_the_same_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = write(tmp_path / "t.csv", ROWS)
    write(tmp_path / "t.tsv", ROWS, separator="\t")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(Path(table).read_bytes()))
    columns = {name: [row[at] for row in ROWS] for at, name in enumerate(NAMES)}
    for name in ("a", "b", "last"):
        columns[name] = [None if cell == "NA" else float(cell) for cell in columns[name]]
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    digests = set()
    for name in ("t.csv", "t.tsv", "t.csv.gz", "t.parquet"):
        source = TrainingInput(data=str(tmp_path / name), table=reading())
        with PUFiles(source, Run()) as data:
            digests.add(json.dumps([data.description(), data.encoding]))
    assert len(digests) == 1


def test_parts_keep_the_encoding(tmp_path):
    table = write(tmp_path / "t.csv", ROWS)
    source = TrainingInput(data=table, table=reading())
    trained(tmp_path / "whole", source)
    for number in (1, 2):
        train_share(source, CHOICE, Share(number, 2), str(tmp_path / f"p{number}"), Run())
    merge([str(tmp_path / "p1"), str(tmp_path / "p2")], str(tmp_path / "merged"), Run())
    whole = (tmp_path / "whole" / "manifest.json").read_bytes()
    assert (tmp_path / "merged" / "manifest.json").read_bytes() == whole
    other = replace(source, table=reading("zero"))
    train_share(other, CHOICE, Share(2, 2), str(tmp_path / "p3"), Run())
    with pytest.raises(ModelError, match=r"different models: .*encoding"):
        merge([str(tmp_path / "p1"), str(tmp_path / "p3")], str(tmp_path / "x"), Run())


def test_ids_dates_and_free_text_are_left_out_and_named(tmp_path):
    names = ["key", "when", "remark", "a", "kind"]
    rows = [
        [f"k{n}", f"{1 + n % 28:02d}.03.2024", f"seen {n} times here", str(n * n % 7), "xy"[n % 2]]
        for n in range(60)
    ]
    p, u = write(tmp_path / "p.csv", rows[:10], names), write(tmp_path / "u.csv", rows[10:], names)

    def encoded(**roles) -> tuple[list[str], str]:
        source = TrainingInput(p, u, table=ColumnRoles(**roles))
        with PUFiles(source, Run()) as data:
            assert data.encoding is not None
            return [column["name"] for column in data.encoding["columns"]], "\n".join(
                map(str, data.notes)
            )

    columns, notes = encoded()
    assert columns == ["a", "kind"]
    assert "the column 'key' contains ids" in notes
    assert "the column 'when' contains dates" in notes
    assert "the column 'remark' contains free text" in notes
    columns, notes = encoded(categories=("when",), row_id="key")
    assert columns == ["a", "when", "kind"]
    assert "contains dates" not in notes
    assert "contains ids" not in notes
    assert encoded(only=("key", "a"))[0] == ["a", "key"]


def test_a_table_of_molecules_alone_is_refused_with_a_hint(tmp_path):
    rows = [["C" * (n + 1), f"m{n}"] for n in range(40)]
    p, u = (write(tmp_path / name, rows, ["SMILES", "n"]) for name in ("p.csv", "u.csv"))
    reading = ColumnRoles(row_id="n")
    with pytest.raises(ParameterError, match="no columns are left for features") as caught:
        PUFiles(TrainingInput(p, u, table=reading), Run())
    assert "`smiles_column='NAME'`" in str(caught.value.hint)


@pytest.mark.parametrize(("n_others", "held"), [(60, True), (3, False)])
def test_ids_are_recognized_if_u_contains_p(n_others, held, tmp_path):
    rows = [[f"k{number}", str(number * 7 % 11)] for number in range(12 + n_others)]
    names = ["key", "a"]
    known = write(tmp_path / "p.csv", rows[:12], names)
    source = TrainingInput(known, write(tmp_path / "u.csv", rows, names))
    with PUFiles(source, Run()) as data:
        assert data.encoding is not None
        columns = [column["name"] for column in data.encoding["columns"]]
        assert columns == (["a"] if held else ["a", "key"])
        # fewer than 20 texts may differ by chance
        assert any("the column 'key' contains ids" in str(note) for note in data.notes) == held


@pytest.mark.parametrize("kept", [0, 1 << 22])
@pytest.mark.parametrize("two_files", [False, True])
def test_rows_without_ids_have_their_numbers_in_the_file(two_files, kept, tmp_path, monkeypatch):
    files = {"all": ROWS, "p": [row for row in ROWS if row[4]]}
    files["u"] = [row for row in ROWS if not row[4]]
    paths = {name: write(tmp_path / f"{name}.csv", rows) for name, rows in files.items()}
    source = TrainingInput(data=paths["all"], table=reading("drop", row_id=None, dropped=("name",)))
    if two_files:
        roles = ColumnRoles(dropped=("name", "status"), missing="drop")
        source = TrainingInput(paths["p"], paths["u"], table=roles)
    expected = []
    for name, positive in (("p", True), ("u", False)):
        rows = enumerate(files[name if two_files else "all"], 1)
        expected += [str(n) for n, row in rows if row[2] != "NA" and bool(row[4]) == positive]
    monkeypatch.setattr("resvm_cli.data.pufiles.KEPT_NONZEROS", kept)
    with PUFiles(source, Run()) as data:
        list(data.unlabeled())
        assert data.ids() == expected


def test_columns_that_give_the_answer_away_are_named(tmp_path):
    rng = np.random.default_rng(1)
    names = ["y", "score", "verdict", "fine", "same", "zero", "plan"]
    rows = []
    for number in range(80):
        positive = number % 4 == 0
        score = number / 100 + positive
        verdict = ("yes" if number % 3 else "sure") if positive else "no"
        rows.append([str(int(positive)), str(score), verdict, str(rng.random()), "7", "0", "b"])
    path = write(tmp_path / "t.csv", rows, names)

    def notes(n_rows: int = 80) -> str:
        write(tmp_path / "t.csv", rows[:n_rows], names)
        roles = ColumnRoles(label="y", positive_labels=("1",))
        source = TrainingInput(data=path, table=roles)
        with PUFiles(source, Run()) as data:
            return "\n".join(map(str, data.notes))

    said = notes()
    assert "the column 'score' alone separates P from U perfectly" in said
    assert "the column 'verdict' alone separates P from U perfectly" in said
    assert "'fine'" not in said
    assert "alone separates" not in notes(n_rows=36)  # nine positives may be separated by chance
    rows[1][1], rows[1][2] = "1.5", "sure"  # one exception each
    assert "alone separates" not in notes()


TEXT_LABEL = {"label": None, "row_id": None}
NO_VALUE = r"t\.csv:7: no value in column 'b'"


@pytest.mark.parametrize(
    ("source", "roles", "error", "message"),
    [
        ({"data": "t.csv"}, None, ParameterError, "needs `positive_label` or `positive_ids`"),
        (
            {"data": "t.csv"},
            {"positive_labels": ()},
            ParameterError,
            "`label_column='status'` `positive_label='LABEL'`",
        ),
        ({"data": "t.csv"}, {"label": None}, ParameterError, "needs `label_column`"),
        ({"data": "t.csv"}, {"label": "x"}, DataError, "no column 'x'"),
        ({"data": "t.csv"}, {"positive_labels": ("H",)}, DataError, "no row has the label H"),
        ({"data": "t.csv"}, {"missing": None}, DataError, NO_VALUE),
        ({"data": "t.svm"}, {}, DataError, "no named columns, so `label_column`"),
        ({"data": "t.svm"}, TEXT_LABEL, ParameterError, "is svmlight text"),
        ({"positives": "t.csv", "unlabeled": "t.svm"}, None, DataError, "is a table with named"),
        ({"positives": "t.csv", "unlabeled": "other.csv"}, None, DataError, "no column '"),
        (
            {"data": "t.csv", "zero_based": True},
            {},
            ParameterError,
            "applies only to svmlight text",
        ),
    ],
)
def test_tables_that_cannot_be_used_are_refused(source, roles, error, message, tmp_path):
    write(tmp_path / "t.csv", ROWS)
    write(tmp_path / "other.csv", ROWS, ["name", "a", "B", "site", "status", "last"])
    (tmp_path / "t.svm").write_text("1 1:2\n0 1:3\n")
    files = {
        key: str(tmp_path / value) if isinstance(value, str) else value
        for key, value in source.items()
    }
    table = ColumnRoles() if roles is None else reading(**{"missing": "mean", **roles})
    with pytest.raises(error, match=message):
        train(TrainingInput(**files, table=table), CHOICE, str(tmp_path / "m"), Run())


def test_sparse_matrices_are_read_like_their_text(tmp_path):
    rng = np.random.default_rng(5)
    for name, n_rows in (("p", 20), ("u", 60)):
        matrix = scipy.sparse.csr_matrix(rng.poisson(0.7, (n_rows, 6)).astype(float))
        scipy.sparse.save_npz(tmp_path / f"{name}.npz", matrix)
        source, target = str(tmp_path / f"{name}.npz"), str(tmp_path / f"{name}.svm")
        convert_file(source, ColumnRoles(), [target], Run())
    for ending in ("npz", "svm"):
        files = {
            "positives": str(tmp_path / f"p.{ending}"),
            "unlabeled": str(tmp_path / f"u.{ending}"),
        }
        trained(tmp_path / ending, TrainingInput(**files))
    assert members(tmp_path / "npz") == members(tmp_path / "svm")
    assert load_model(str(tmp_path / "npz")).encoding is None


def test_what_takes_long_is_kept_without_being_asked(monkeypatch, problem, tmp_path):
    from resvm_cli.data.pu_input import TrainingInput
    from resvm_cli.parameters import Params
    from resvm_cli.tuning import learn as job

    source = TrainingInput(str(problem / "pos.svm"), str(problem / "unl.svm"))
    choice = Params(n_models=5, auto=False)
    kept = []
    for name, limit in (("short", job.LONG_WORK), ("long", 0.0)):
        monkeypatch.setattr(job, "LONG_WORK", limit)

        def look(stage, done, total):
            kept.append((tmp_path / "long.part/part.json").exists())

        job.train(source, choice, str(tmp_path / name), Run(on_progress=look))
        assert any(kept) == (name == "long")
    assert snapshot(tmp_path / "short") == snapshot(tmp_path / "long")
