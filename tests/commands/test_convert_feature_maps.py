"""Feature maps that convert rejects, and tables that do not match a map."""

from __future__ import annotations

import json

import pytest

from tests.conftest import assert_exit
from tests.programs import run_resvm

TABLE = "id,a,colour\nr1,1,red\nr2,2,blue\nr3,3,red\n"


@pytest.fixture
def feature_map(tmp_path):
    """Return the path of a table's map, which is next to the table."""
    (tmp_path / "x.csv").write_text(TABLE)
    ran = run_resvm(
        "convert", tmp_path / "x.csv", "-q", "--id-column", "id", "--map", tmp_path / "map",
        "-o", tmp_path / "x.svm",
    )  # fmt: skip
    assert_exit(ran, 0)
    return tmp_path / "map"


def convert_like(feature_map, *more):
    return run_resvm("convert", feature_map.parent / "x.csv", "-q", "--like", feature_map, *more)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"kind": "number"', '"kind": "text", "kind": "number"'),
        ('"format": 1', '"format": 2, "format": 1'),
        ('"name": "colour"', '"name": "a", "name": "colour"'),
    ],
)
def test_a_feature_map_with_a_key_twice_is_refused(old, new, feature_map):
    assert_exit(convert_like(feature_map), 0)
    feature_map.write_text(feature_map.read_text().replace(old, new, 1))
    assert_exit(convert_like(feature_map), 3, "not a feature map", "--map")


@pytest.mark.parametrize("number", [0, 1])
def test_a_feature_map_that_lacks_a_column_of_its_features_is_refused(number, feature_map):
    content = json.loads(feature_map.read_text())
    del content["columns"][number]
    feature_map.write_text(json.dumps(content))
    assert_exit(convert_like(feature_map), 3, "not a feature map", "--map")


def test_options_that_the_map_contradicts_are_named(feature_map):
    advice = ("--drop contradicts --like", "omit --drop, or use it to write another map")
    assert_exit(convert_like(feature_map, "--drop", "a"), 2, *advice)
    leak = "--label-column: the column 'a' is a feature of --like"
    assert_exit(convert_like(feature_map, "--label-column", "a"), 2, leak)


def test_a_table_without_any_feature_of_the_map_is_refused(feature_map, tmp_path):
    column = {"name": "colour", "kind": "text", "values": {"x": 1, "y": 2}}
    content = json.loads(feature_map.read_text())
    content |= {"columns": [column], "features": ["colour=x", "colour=y"]}
    feature_map.write_text(json.dumps(content))
    ran = convert_like(feature_map, "-o", tmp_path / "out")
    assert_exit(ran, 3, "x.csv: no row has any features", "for a table with the same columns")
    assert not (tmp_path / "out").exists()


def test_a_row_whose_category_is_new_is_kept_without_a_feature(feature_map):
    ran = run_resvm(
        "convert", "-", "-q", "--like", feature_map, stdin=b"a,colour\n0,red\n0,green\n"
    )
    assert_exit(ran, 0)
    assert ran.out == b"0 2:1\n0\n"


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
    assert_exit(convert_like(tmp_path / "map"), 3, "not a feature map")
