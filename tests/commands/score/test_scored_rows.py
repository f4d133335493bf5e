"""Labels that mean positive."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.commands.score import scored_rows
from resvm_cli.errors import DataError


def test_many_labels_are_not_all_listed():
    with pytest.raises(DataError) as caught:
        scored_rows._matching(np.arange(50.0), None, "x")
    assert "0, 1, 2" in caught.value.message
    assert caught.value.message.endswith("19, ...")


@pytest.mark.parametrize("labels", [[1.0, -1.0], [1.0, 0.0], [1.0], [0.0], [-1.0]])
def test_one_is_positive_beside_minus_one_or_zero(labels):
    chosen = scored_rows._matching(np.array(labels), None, "x")
    assert chosen.tolist() == [label == 1 for label in labels]
