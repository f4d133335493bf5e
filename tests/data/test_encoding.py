"""Feature maps: what is written is read back, and anything else is refused."""

from __future__ import annotations

import json

import pytest

from resvm_cli.data.encoding import FeatureMap, MappedColumn, read_feature_map
from resvm_cli.errors import DataError

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
def test_a_feature_map_that_makes_no_sense_is_refused(columns, n_features):
    content = {"kind": "resvm-feature-map", "format": 1, "columns": columns}
    with pytest.raises(ValueError, match=r"\w"):
        FeatureMap.from_content({**content, "features": [f"f{n}" for n in range(n_features)]})


MAP = FeatureMap(
    [MappedColumn("a", "number", 1), MappedColumn("color", "text", values={"red": 2, "blue": 3})],
    ["a", "color=red", "color=blue"],
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"kind": "number"', '"kind": "text", "kind": "number"'),
        ('"format": 1', '"format": 2, "format": 1'),
        ('"format": 1', '"format": 2'),
        ('"name": "color"', '"name": "a", "name": "color"'),
        ('"name": "color"', '"name": "a"'),
        ('"blue": 3', '"blue": 2'),
    ],
)
def test_a_changed_or_repeated_key_is_refused(old, new, tmp_path):
    text = MAP.format().decode()
    (tmp_path / "map").write_text(text)
    assert read_feature_map(str(tmp_path / "map")) == MAP
    (tmp_path / "map").write_text(text.replace(old, new, 1))
    with pytest.raises(DataError, match="not a feature map"):
        read_feature_map(str(tmp_path / "map"))


@pytest.mark.parametrize("number", [0, 1])
def test_a_feature_map_that_lacks_a_column_of_its_features_is_refused(number):
    content = json.loads(MAP.format())
    del content["columns"][number]
    with pytest.raises(ValueError, match="features"):
        FeatureMap.from_content(content)
