"""A table ranked, and given back in the order of its ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from resvm_cli.data import delimited
from resvm_cli.data.encoding import ColumnRoles
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pufiles import PUFiles
from resvm_cli.errors import DataError
from resvm_cli.parameters import Params, RankingParameters
from resvm_cli.ranking.pipeline import rank
from resvm_cli.run import Run
from tests.commands.test_tables import columns_of
from tests.tuning.test_training import NAMES, ROWS, reading, write

CHOICE = Params(n_models=25, kernel="linear", auto=False)


def table(folder: Path, missing: str = "mean") -> TrainingInput:
    write(folder / "t.csv", ROWS)
    return TrainingInput(data=str(folder / "t.csv"), table=reading(missing))


def values_by_name(found: dict[str, list[str]], column: str) -> dict[str, str]:
    return {name: cell for name, cell in zip(found["name"], found[column], strict=True) if cell}


@pytest.mark.parametrize("options", [{}, {"top": 5}, {"audit": True}])
@pytest.mark.parametrize("missing", ["mean", "drop"])
def test_every_row_of_the_table_comes_back_in_its_order(options, missing, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "CELLS_AT_ONCE", 1)  # blocks of 64 rows
    wanted = RankingParameters(annotate=str(tmp_path / "a.csv"), **options)
    listing = rank(table(tmp_path, missing), CHOICE, wanted, Run()).listing
    found = columns_of(tmp_path / "a.csv")
    assert list(found) == [*NAMES, *(name for name in listing.columns if name != "id")]
    assert [list(row) for row in zip(*map(found.get, NAMES), strict=True)] == ROWS
    values = values_by_name(found, "decision_value")
    assert {name: float(value) for name, value in values.items()} == dict(
        zip(listing.ids, listing.values.tolist(), strict=True)
    )
    known = {name for name, one in values_by_name(found, "known").items() if one == "1"}
    expected = {row[0] for row in ROWS if row[4]}
    assert known == expected if missing == "mean" else known < expected


def test_rows_of_two_tables_come_back_under_one_header(tmp_path):
    known = write(tmp_path / "p.csv", [row for row in ROWS if row[4]])
    others = [[row[0], row[2], row[1], row[3], row[5]] for row in ROWS if not row[4]]
    names = ["name", "b", "a", "site", "last"]
    unlabeled = write(tmp_path / "u.tsv", others, names, "\t")
    roles = ColumnRoles(row_id="name", dropped=("status",), missing="mean")
    source = TrainingInput(known, unlabeled, table=roles)
    wanted = RankingParameters(annotate=str(tmp_path / "a.tsv"))
    listing = rank(source, CHOICE, wanted, Run()).listing
    found = columns_of(tmp_path / "a.tsv")
    assert list(found)[: len(NAMES)] == NAMES
    in_order = [row for row in ROWS if row[4]] + [
        [*row[:4], "", row[5]] for row in ROWS if not row[4]
    ]
    assert [list(row) for row in zip(*map(found.get, NAMES), strict=True)] == in_order
    ranks = values_by_name(found, "rank")
    assert sorted(ranks, key=lambda name: int(ranks[name])) == listing.ids


def test_an_empty_list_leaves_all_rows_without_results(tmp_path):
    path = tmp_path / "a.csv"
    wanted = RankingParameters(fdr=1e-9, contamination_unl=0.1, annotate=str(path))
    listing = rank(table(tmp_path), CHOICE, wanted, Run()).listing
    assert not len(listing)
    found = columns_of(path)
    assert found["name"] == [row[0] for row in ROWS]
    assert set(found["rank"]) == {""}


def test_reasons_and_a_stored_model_know_the_columns(tmp_path):
    source, wanted, model = table(tmp_path), RankingParameters(why=3), str(tmp_path / "m")
    first = rank(source, CHOICE, wanted, Run(), target=model)
    names = {part.name for each in first.reasons for part in each.features}
    assert names <= {"a", "b", "last", "site=north", "site=s0", "site=s1", "site=s2", "site=s3",
                     "site=s4"}  # fmt: skip
    assert "a" in names
    plain = ColumnRoles(label="status", positive_labels=("hit", "strong hit"),
                        row_id="name")  # fmt: skip
    source = replace(source, table=plain)  # the model fills in as it was trained
    again = rank(source, Params(), wanted, Run(), model=model)
    assert again.listing.ids == first.listing.ids
    assert again.reasons == first.reasons


def test_only_tables_can_be_annotated(tmp_path):
    (tmp_path / "d.svm").write_text("1 1:2\n0 1:3\n")
    source = TrainingInput(data=str(tmp_path / "d.svm"), positive_label=1.0)
    wanted = RankingParameters(annotate=str(tmp_path / "a.csv"))
    with pytest.raises(DataError, match="`annotate` needs a table"):
        rank(source, CHOICE, wanted, Run())
    assert not (tmp_path / "a.csv").exists()


def test_columns_beside_a_ranking_are_texts_then_what_matters_then_what_is_unused(tmp_path):
    rows = [[*row, f"2020-01-{1 + number % 28:02}"] for number, row in enumerate(ROWS)]
    write(tmp_path / "t.csv", rows, [*NAMES, "seen"])
    source = TrainingInput(data=str(tmp_path / "t.csv"), table=reading())
    with PUFiles(source, Run()) as data:
        assert data.own_columns((), ["b", "a"]) == ["site", "b", "a", "last", "seen"]
