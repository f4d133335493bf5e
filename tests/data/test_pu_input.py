"""Files of P and U that contradict each other are refused before they are read."""

from __future__ import annotations

import re

import pytest

from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.errors import ParameterError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"positive_ids": "k", "positives": "p", "unlabeled": "u"},
            "`positive_ids` requires `data`",
        ),
        (
            {"data": "d", "positive_ids": "k", "positive_label": 1.0},
            "either `positive_label` or `positive_ids`, not both",
        ),
        ({"data": "d"}, "`data` needs `positive_label` or `positive_ids`"),
        ({"data": "d", "positive_label": 1.0, "ids_file": "i"}, "`ids_file` requires"),
        ({"data": "-", "positive_ids": "-"}, "only one input can be stdin"),
        ({"positives": "-", "unlabeled": "u", "weights": "-"}, "only one input can be stdin"),
        ({"positives": "p", "unlabeled": "p"}, "are the same file: p"),
        ({"positives": "p"}, "`unlabeled` (unlabeled rows) is missing"),
        ({"unlabeled": "u"}, "`positives` (known positives) is missing"),
    ],
)
def test_contradictions_are_refused_before_anything_is_read(options, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        TrainingInput(**options).check()


def test_kernel_values_are_not_scaled_and_count_from_zero():
    assert TrainingInput(scale="auto").for_kernel("rbf").scale == "auto"
    precomputed = TrainingInput(scale="auto").for_kernel("precomputed")
    assert (precomputed.scale, precomputed.zero_based, precomputed.precomputed) == (
        None,
        True,
        True,
    )
    with pytest.raises(ParameterError, match="does not apply to `kernel='precomputed'`"):
        TrainingInput(scale="standard").for_kernel("precomputed")
