"""A table ranked, and given back in the order of its ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from resvm_cli.commands.rank.rank import RankRequest, rank
from resvm_cli.errors import DataError
from resvm_cli.files import delimited
from resvm_cli.parameters import MethodParameters
from resvm_cli.running.run import Run
from resvm_cli.tables.encoding import ColumnRoles, TableReading
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.input import TrainingInput
from tests.commands.predict.test_tables import columns_of
from tests.training.test_tables import NAMES, ROWS, reading, write

CHOICE = TrainingChoice.from_params(MethodParameters(n_models=25, kernel="linear"))


def request(folder: Path, **more) -> RankRequest:
    write(folder / "t.csv", ROWS)
    source = TrainingInput(data=str(folder / "t.csv"), table=reading())
    return RankRequest(**{"source": source, "choice": CHOICE, **more})


@pytest.mark.parametrize("options", [{}, {"top": 5}, {"audit": True}, {"with_known": True}])
@pytest.mark.parametrize("missing", ["mean", "drop"])
def test_the_table_comes_back_by_rank(options, missing, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "CELLS_AT_ONCE", 1)  # blocks of 64 rows
    asked = request(tmp_path, annotate=str(tmp_path / "a.csv"), **options)
    asked = replace(asked, source=replace(asked.source, table=reading(missing)))
    listing = rank(asked, Run()).listing
    found = columns_of(tmp_path / "a.csv")
    assert list(found) == [*NAMES, *(name for name in listing.columns if name != "id")]
    assert found["name"] == listing.ids
    by_name = {row[0]: row for row in ROWS}
    for at, column in enumerate(NAMES):
        assert found[column] == [by_name[name][at] for name in listing.ids]
    assert [float(one) for one in found["decision_value"]] == listing.values.tolist()
    assert found["known"] == [str(int(one)) for one in listing.known]


def test_rows_of_two_tables_come_back_under_one_header(tmp_path):
    known = write(tmp_path / "p.csv", [row for row in ROWS if row[4]])
    others = [[row[0], row[2], row[1], row[3], row[5]] for row in ROWS if not row[4]]
    names = ["name", "b", "a", "site", "last"]
    unlabeled = write(tmp_path / "u.tsv", others, names, "\t")
    roles = ColumnRoles(row_id="name", dropped=("status",), missing="mean")
    source = TrainingInput(known, unlabeled, table=TableReading(roles))
    asked = request(tmp_path, with_known=True, annotate=str(tmp_path / "a.tsv"))
    listing = rank(replace(asked, source=source), Run()).listing
    found = columns_of(tmp_path / "a.tsv")
    by_name = {row[0]: row for row in ROWS}
    assert found["name"] == listing.ids
    assert found["a"] == [by_name[name][1] for name in listing.ids]
    statuses = [by_name[name][4] for name in listing.ids]
    assert found["status"] == statuses  # empty for rows of U, whose table has no such column
    assert any(statuses)


@pytest.mark.parametrize("two_files", [False, True])
def test_cells_stay_with_their_rows_if_repeated_rows_are_dropped(two_files, tmp_path):
    known = [row for row in ROWS if row[4]]
    others = [row for row in ROWS if not row[4]]
    copies = [[*row[:4], "", row[5]] for row in known[:3]]
    roles = ColumnRoles(row_id="name", dropped=("status",), missing="mean")
    source = TrainingInput(
        write(tmp_path / "p.csv", known),
        write(tmp_path / "u.csv", [*copies, *others]),
        table=TableReading(roles),
        drop_repeated=True,
    )
    asked = request(tmp_path, with_known=True, annotate=str(tmp_path / "a.csv"))
    if not two_files:
        path = write(tmp_path / "d.csv", [*copies, *ROWS])
        source = replace(asked.source, data=path, drop_repeated=True)
    listing = rank(replace(asked, source=source), Run()).listing
    found = columns_of(tmp_path / "a.csv")
    by_name = {row[0]: row for row in ROWS}
    assert len(listing) == len(by_name)
    assert found["name"] == listing.ids
    for at, column in enumerate(NAMES):
        assert found[column] == [by_name[name][at] for name in listing.ids]


def test_an_empty_list_is_annotated_with_a_header(tmp_path):
    path = tmp_path / "a.csv"
    asked = request(tmp_path, fdr=1e-9, contamination_unl=0.1, annotate=str(path))
    listing = rank(asked, Run()).listing
    assert not len(listing)
    names = [*NAMES, *(name for name in listing.columns if name != "id")]
    assert path.read_text().splitlines() == [",".join(names)]


def test_reasons_and_a_stored_model_know_the_columns(tmp_path):
    asked = request(tmp_path, why=3, target=str(tmp_path / "m"))
    first = rank(asked, Run())
    names = {part.name for each in first.reasons for part in each.features}
    assert names <= {"a", "b", "last", "site=north", "site=s0", "site=s1", "site=s2", "site=s3",
                     "site=s4"}  # fmt: skip
    assert "a" in names
    plain = TableReading(ColumnRoles(label="status", positive_labels=("hit", "strong hit"),
                                     row_id="name"))  # fmt: skip
    source = replace(asked.source, table=plain)  # the model fills in as it was trained
    again = rank(replace(asked, source=source, model=str(tmp_path / "m"), target=None), Run())
    assert again.listing.ids == first.listing.ids
    assert again.reasons == first.reasons


def test_trusted_negatives_may_be_a_table_with_the_same_columns(tmp_path):
    negatives = [[str(number), str(-3 - number), "-4", "north"] for number in range(30)]
    path = write(tmp_path / "n.csv", negatives, ["last", "a", "b", "site"])
    result = rank(request(tmp_path, negatives=path), Run())
    assert "q_value" in result.listing.columns
    path = write(tmp_path / "x.csv", negatives, ["last", "a", "c", "site"])
    with pytest.raises(DataError, match="no column 'b'"):
        rank(request(tmp_path, negatives=path), Run())


def test_only_tables_can_be_annotated(tmp_path):
    (tmp_path / "d.svm").write_text("1 1:2\n0 1:3\n")
    source = TrainingInput(data=str(tmp_path / "d.svm"), positive_label=1.0)
    asked = request(tmp_path, source=source, annotate=str(tmp_path / "a.csv"))
    with pytest.raises(DataError, match="annotate needs a table"):
        rank(asked, Run())
    assert not (tmp_path / "a.csv").exists()
