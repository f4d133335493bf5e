"""Columns as features, and feature maps that decide them."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest

from resvm_cli.data.delimited import TextTable
from resvm_cli.data.encoding import ColumnRoles, FeatureMap, read_feature_map
from resvm_cli.data.features import TableFeatures
from resvm_cli.data.notes import remark_on_categories
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.rows import Rows

TABLE = b"id,y,a,b,c\nr1,0,1,2,red\nr2,1,3,4,blue\n"
PLAIN = ColumnRoles(label="y", row_id="id", dropped=("b",))


def features(roles: ColumnRoles, known: FeatureMap | None = None, text: bytes = TABLE):
    return TableFeatures(TextTable("t", lambda: [text]), roles, known)


def rows(found: TableFeatures) -> list[list[tuple[int, float]]]:
    blocks = list(found.blocks())
    whole = Rows.concatenate([block.rows for block in blocks])
    bounds = whole.indptr.tolist()
    pairs = list(zip(whole.indices.tolist(), whole.values.tolist(), strict=True))
    return [pairs[start:stop] for start, stop in pairwise(bounds)]


@pytest.fixture
def map_of(tmp_path):
    def written(roles: ColumnRoles, text: bytes = TABLE) -> FeatureMap:
        first = features(roles, text=text)
        list(first.blocks())
        (tmp_path / "map").write_bytes(first.map.format())
        return read_feature_map(str(tmp_path / "map"))

    return written


def test_the_same_roles_fit_the_map_that_they_made(map_of):
    for roles in (
        PLAIN,
        ColumnRoles(label="y", row_id="1", only=("a", "c")),
        ColumnRoles(only=("a",), categories=("a",)),
        ColumnRoles(dropped=("y",), missing="zero"),
    ):
        assert rows(features(roles, map_of(roles))) == rows(features(roles))


@pytest.mark.parametrize(
    ("parameter", "roles"),
    [
        ("drop", ColumnRoles(dropped=("a",))),
        ("columns", ColumnRoles(only=("a", "b", "c"))),
        ("columns", ColumnRoles(only=("a",))),
        ("categorical", ColumnRoles(categories=("a",))),
        ("categorical", ColumnRoles(categories=("b",))),
        ("smiles_column", ColumnRoles(smiles="c")),
        ("bits", ColumnRoles(bits=2048)),
        ("radius", ColumnRoles(radius=2)),
        ("counts", ColumnRoles(counts=True)),
        ("missing", ColumnRoles(missing="mean")),
        ("missing", ColumnRoles(missing="median")),
    ],
    ids=str,
)
def test_a_role_that_the_map_contradicts_is_refused_by_name(parameter, roles, map_of):
    with pytest.raises(ParameterError, match=f"^`{parameter}` contradicts `like`"):
        features(roles, map_of(PLAIN))


def test_a_label_that_is_a_feature_of_the_map_is_refused_by_name(map_of):
    for name in ("a", "3"):
        with pytest.raises(ParameterError, match="column 'a' is a feature of `like`"):
            features(ColumnRoles(label=name), map_of(PLAIN))


SMILES = b"s,m\nCCO,1\nCC,2\n"


def test_fingerprints_are_made_as_the_map_says(map_of):
    pytest.importorskip("rdkit")
    made = ColumnRoles(smiles="s", bits=64, radius=1)
    assert rows(features(made, map_of(made, SMILES), SMILES)) == rows(features(made, None, SMILES))
    for name, roles in {
        "bits": ColumnRoles(bits=2048),
        "radius": ColumnRoles(radius=2),
        "counts": ColumnRoles(counts=True),
        "smiles_column": ColumnRoles(smiles="m"),
    }.items():
        with pytest.raises(ParameterError, match=f"^`{name}` contradicts `like`"):
            features(roles, map_of(made, SMILES), SMILES)


GAPS = b"a,c\n,red\n2,\n"


def test_missing_values_are_filled_in_as_the_map_says(map_of):
    whole = b"a,c\n1,red\n3,blue\n"
    for rule, fill in (("mean", 2.0), ("median", 2.0)):
        known = map_of(ColumnRoles(missing=rule), whole)
        assert rows(features(ColumnRoles(), known, GAPS)) == [[(1, fill), (2, 1)], [(1, 2)]]
        for other in ("refuse", "zero"):
            with pytest.raises(ParameterError, match="`missing` contradicts"):
                features(ColumnRoles(missing=other), known, GAPS)
        assert rows(features(ColumnRoles(missing="drop"), known, GAPS)) == []
    zeros = ColumnRoles(missing="zero")
    for made in (zeros, ColumnRoles()):  # the second map has nothing to fill in
        assert rows(features(zeros, map_of(made, whole), GAPS)) == [[(2, 1)], [(1, 2)]]


def test_the_advice_for_a_missing_value_is_one_that_the_map_allows(map_of):
    known = map_of(ColumnRoles(), b"a,c\n1,red\n")
    for gap in (b"a,c\n1,red\n,red\n", b"a,c\n1,red\n1,\n"):
        for own, advice in (
            (None, "`missing='zero'`, mean or median; or"),
            (known, "`missing='zero'`$"),
        ):
            with pytest.raises(DataError, match=f"fill it in: {advice}"):
                rows(features(ColumnRoles(), own, gap))


def test_filling_in_zero_leaves_the_given_map_as_it_was(map_of):
    known = map_of(ColumnRoles(), b"a,c\n1,red\n3,blue\n")
    before = known.format()
    rows(features(ColumnRoles(missing="zero"), known, GAPS))
    assert known.format() == before


def test_a_category_given_by_number_may_have_many_values():
    text = b"n,a\n" + b"".join(b"name%d,1\n" % number for number in range(1100))
    found = features(ColumnRoles(categories=("1",)), None, text)
    assert len(rows(found)) == 1100
    assert found.categories == {"n": 1100}


def test_one_category_is_not_several():
    table = SimpleNamespace(categories={"status": 1, "site": 3})
    assert remark_on_categories(table) == "categorical columns: status (1 value), site (3 values)"


def test_twenty_columns_are_listed_and_the_others_counted(map_of):
    names = [f"x{number}" for number in range(25)]
    wide = (",".join(names) + "\n" + ",".join("1" * 25) + "\n").encode()
    listed = "the columns are: " + ", ".join(names[:20]) + ", and 5 more"
    with pytest.raises(DataError, match="no column 'y'") as caught:
        features(ColumnRoles(label="y"), text=wide)
    assert str(caught.value.hint) == listed
    known = map_of(ColumnRoles(only=("a",)))
    with pytest.raises(DataError, match="no column 'a', which the feature map needs") as caught:
        features(ColumnRoles(), known, wide)
    assert str(caught.value.hint) == listed
