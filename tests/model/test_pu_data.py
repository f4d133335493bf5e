"""P and U in memory."""

from __future__ import annotations

import numpy as np

from resvm_cli.model.pu_data import MemoryData


def test_groups_are_described_by_how_they_divide_the_rows_not_by_their_names():
    def described(groups):
        data = MemoryData.from_matrix(np.eye(5), np.arange(5) < 2, groups=groups)
        return data.description().get("groups")

    assert described(None) is None
    assert described(["b", "a", "b", "c", "a"]) == described([3, 9, 3, 1, 9])
    assert described(["b", "a", "b", "c", "a"])["count"] == 3
    assert described(["b", "a", "b", "c", "a"]) != described(["b", "a", "b", "c", "c"])
