"""Data frames give the models that tables give on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

import resvm_cli
from resvm_cli.api.matrices import FrameTable, labeled_rows
from resvm_cli.errors import DataError, ParameterError, ResultWarning
from resvm_cli.run import Run
from tests.commands.test_train import snapshot
from tests.conftest import SAMPLE

pytestmark = pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")
RNG = np.random.default_rng(8)
N = 200
POSITIVE = np.arange(N) % 4 == 0
COLUMNS = {
    "name": [f"r{number}" for number in range(N)],
    "a": RNG.standard_normal(N).round(3) + POSITIVE,
    "b": np.where(np.arange(N) % 11 == 5, np.nan, RNG.standard_normal(N).round(3) - POSITIVE),
    "site": [None if number % 13 == 5 else f"s{number * 7 % 5}" for number in range(N)],
    "when": [f"2026-01-{number % 28 + 1:02d}" for number in range(N)],
    "last": [0] * N,
}
STATUS = np.where(POSITIVE, "hit", "").tolist()
FIXED = {"auto": False, "n_models": 5}
OPTIONS = ("--no-auto", "--n-models", 5, "-q")


class Frame:
    """The parts of a polars data frame that the code uses."""

    def __init__(self, cells):
        self.columns, self.cells = list("abcdef")[: cells.shape[1]], cells

    def __len__(self):
        return len(self.cells)

    def __getitem__(self, name):
        return self

    def to_numpy(self):
        return self.cells[:, 0]

    def __array__(self, dtype=None, copy=None):
        return self.cells.astype(dtype)


@pytest.fixture(scope="module")
def pandas():
    return pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def folder(pandas, tmp_path_factory):
    """The same rows as a labeled table, and as tables of P and of U."""
    path, frame = tmp_path_factory.mktemp("frames"), pandas.DataFrame(COLUMNS)
    frame.assign(status=STATUS).to_csv(path / "all.csv", index=False)
    frame[POSITIVE].to_csv(path / "p.csv", index=False)
    frame[~POSITIVE].to_csv(path / "u.csv", index=False)
    return path


@pytest.mark.parametrize("rule", ["mean", "median", "zero", "drop"])
def test_a_data_frame_gives_the_model_of_its_table(rule, pandas, folder, resvm, tmp_path):
    table = ("--data", folder / "all.csv", "--label-column", "status", "--positive-label", "hit")
    ran = resvm("train", *table, "--missing", rule, *OPTIONS, "-o", tmp_path / "cli")
    assert ran.code == 0, ran.err
    frame = pandas.DataFrame(COLUMNS)
    kind = resvm_cli.RESVMClassifier
    model = kind(missing=rule, positive_label="hit", **FIXED).fit(frame, STATUS)
    model.save(tmp_path / "python")
    assert snapshot(tmp_path / "python") == snapshot(tmp_path / "cli")
    assert model.feature_names_in_.tolist() == list(COLUMNS)

    loaded = resvm_cli.load_model(tmp_path / "cli", classes=("", "hit"))
    if rule != "drop":
        ran = resvm("predict", tmp_path / "cli", folder / "u.csv", "--format", "jsonl", "-q")
        values = [json.loads(line)["decision_value"] for line in ran.out.splitlines()]
        for each in (model, loaded):
            found = each.decision_values(frame[~POSITIVE][list(reversed(COLUMNS))])
            np.testing.assert_array_equal(found, values)
    loaded.fit(frame, STATUS).save(tmp_path / "again")
    assert snapshot(tmp_path / "again") == snapshot(tmp_path / "cli")


def test_p_and_u_may_be_two_data_frames(pandas, folder, resvm, tmp_path):
    tables = ("-P", folder / "p.csv", "-U", folder / "u.csv", "--id-column", "name")
    ran = resvm("rank", *tables, "--missing", "mean", "--no-auto", "--save-model", tmp_path / "cli")
    assert ran.code == 0, ran.err
    frame = pandas.DataFrame(COLUMNS)
    known, others = frame[POSITIVE], frame[~POSITIVE]
    given = {"auto": False, "missing": "mean"}
    sets = {"positives": known, "unlabeled": others}
    ranking = resvm_cli.rank(**sets, id_column="name", **given)
    printed = [line.split("\t")[1] for line in ran.out.decode().splitlines()[1:]]
    assert ranking.index.tolist() == printed
    assert others["name"].iloc[ranking.rows].tolist() == ranking.index.tolist()
    ranking.model.save(tmp_path / "rank")
    model = resvm_cli.RESVMClassifier(drop="name", **given).fit(known, unlabeled=others)
    model.save(tmp_path / "fit")
    assert snapshot(tmp_path / "rank") == snapshot(tmp_path / "fit") == snapshot(tmp_path / "cli")
    indexed = {name: each.set_index("name") for name, each in sets.items()}
    again = resvm_cli.rank(**indexed, model=model)
    assert again.index.tolist() == ranking.index.tolist()
    assert resvm_cli.rank(**sets, model=model, audit=True).rows.max() < POSITIVE.sum()
    assert model.importance(known, unlabeled=others)[0].name in ("a", "b")
    assert resvm_cli.tune(**sets, drop=["name"], missing="mean").params["method"] == "resvm"


def test_p_and_u_may_be_two_matrices(rows):
    X, y = rows
    known, others = X[y == 1], X[y == 0]
    whole = resvm_cli.rank(np.concatenate([known, others]), np.arange(150) < len(known), auto=False)
    apart = resvm_cli.rank(positives=known, unlabeled=others, auto=False)
    assert apart.rows.tolist() == (whole.rows - len(known)).tolist()
    model = resvm_cli.RESVMClassifier(**FIXED).fit(known, unlabeled=others)
    assert model.classes_.tolist() == [0, 1]
    for given in ({"X": X}, {"positives": X}, {"X": X, "y": y, "unlabeled": X}):
        with pytest.raises(TypeError, match="either X and y, or positives and unlabeled"):
            resvm_cli.rank(**given)
    with pytest.raises(DataError, match="P has 4 columns, but U has 3"):
        resvm_cli.rank(positives=known, unlabeled=others[:, :3])
    with pytest.raises(ParameterError, match="either `y` or `unlabeled`"):
        model.fit(known, y, unlabeled=others)


def test_molecules_are_a_kind_of_column(pandas, resvm, tmp_path):
    pytest.importorskip("rdkit")
    path = SAMPLE / "compounds" / "compounds.csv"
    table = ("--data", path, "--smiles-column", "smiles", "--label-column", "outcome")
    ran = resvm("train", *table, "--positive-label", "hit", "--no-auto", "-q", "-o", tmp_path / "m")
    assert ran.code == 0, ran.err
    frame = pandas.read_csv(path)
    given = {"smiles_column": "smiles", "positive_label": "hit", "auto": False}
    ranking = resvm_cli.rank(frame, frame["outcome"], id_column="id", **given)
    ranking.model.save(tmp_path / "python")
    assert snapshot(tmp_path / "python") == snapshot(tmp_path / "m")
    new = SAMPLE / "compounds" / "new.csv"
    resvm("convert", new, "--smiles-column", "smiles", "-o", tmp_path / "new.svm")
    made, _ = load_svmlight_file(tmp_path / "new.svm", n_features=2048)
    for fingerprints in (made, made.toarray()):  # instead of the molecules
        found = ranking.model.decision_values(fingerprints)
        np.testing.assert_array_equal(found, ranking.model.decision_values(pandas.read_csv(new)))
    with pytest.raises(DataError, match="X has 5 columns, but the model has 2,048 features"):
        ranking.model.predict(made[:, :5])


def test_cells_are_numbers_or_text(pandas):
    frame = pandas.DataFrame({"a": [1.5, 2], "b": ["x", None], "c": [1, 2]})
    for kind in ("Int64", "Float64", "float32", "int8", "category", pandas.SparseDtype(float, 0)):
        assert FrameTable(frame[["c"]].astype(kind)).first_block().columns[0].tolist() == [1, 2]
    missing = frame[["c"]].astype("Int64")
    missing.loc[1, "c"] = pandas.NA
    frame["day"] = pandas.to_datetime(["2026-01-01", None])
    frame["odd"] = [1, "x"]
    frame["yes"] = [True, None]
    frame["c"] = missing["c"]
    cells = [list(column) for column in FrameTable(frame).first_block().columns]
    np.testing.assert_array_equal(cells[2], [1, np.nan])
    assert cells[1::2] == [["x", ""], ["2026-01-01", ""], [1.0, pytest.approx(np.nan, nan_ok=True)]]
    assert cells[4] == ["1", "x"]
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": [1, None], "b": ["x", None]})
    assert [list(column) for column in FrameTable(table).first_block().columns][1] == ["x", ""]


def test_what_is_wrong_with_a_cell_is_said_with_its_row(pandas):
    frame = pandas.DataFrame({"a": [1.0, 2.0, np.nan], "b": [1, 2, 3]})
    for call in (resvm_cli.RESVMClassifier().fit, resvm_cli.rank):
        with pytest.raises(DataError, match=r"^X: row 2: no value in column 'a'\nfill it in: `m"):
            call(frame, [1, 0, 0])
    with pytest.raises(ParameterError, match="`missing` must be one of refuse, drop"):
        resvm_cli.rank(frame, [1, 0, 0], missing="guess")
    with pytest.raises(DataError, match=r"no column 'z' \(`drop`\)"):
        resvm_cli.rank(frame, [1, 0, 0], drop="z")


def test_a_column_that_gives_the_answer_away_is_noted(pandas):
    frame = pandas.DataFrame(COLUMNS).drop(columns="b").assign(status=STATUS)
    with pytest.warns(ResultWarning, match="the column 'status' alone separates P from U"):
        resvm_cli.rank(frame, STATUS, positive_label="hit", auto=False, missing="zero")


def test_columns_of_frames_have_names(rows):
    X, y = rows
    pandas = pytest.importorskip("pandas")
    for names, known in ((list("abcd"), True), (range(4), False), (list("abcc"), False)):
        frame = pandas.DataFrame(X, columns=names)
        data = labeled_rows(frame, y, None, None, Run()).data(None, None)
        assert list(data.feature_names) == list(names)
        assert (data.encoding is not None) == known
