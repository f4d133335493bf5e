"""Folds have equal sizes, do not split groups, and depend only on the seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from resvm_cli.errors import ParameterError
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import MethodParameters
from resvm_cli.running.run import Run
from resvm_cli.tuning.sample import Folds, TuningSample
from resvm_cli.tuning.search import TuningSettings


@given(st.integers(2, 8), st.integers(8, 40), st.integers(0, 60), st.integers(0, 2**40))
def test_each_fold_has_its_share_of_p_and_of_u(n_folds, n_pos, n_unl, seed):
    line = Folds.drawn(n_pos, n_unl, n_folds, seed).numbers
    for rows in (line[:n_pos], line[n_pos:]):
        counts = np.bincount(rows, minlength=n_folds)
        assert counts.max() - counts.min() <= 1
        assert len(counts) == n_folds


def test_the_seed_decides():
    numbers = Folds.drawn(30, 90, 5, 1).numbers
    assert np.array_equal(numbers, Folds.drawn(30, 90, 5, 1).numbers)
    assert not np.array_equal(numbers, Folds.drawn(30, 90, 5, 2).numbers)


@given(st.lists(st.integers(0, 9), min_size=30, max_size=60), st.integers(0, 2**32))
def test_a_group_is_never_split(names, seed):
    groups = np.array([*range(10), *names])
    line = Folds.drawn(20, len(groups) - 20, 4, seed, groups=groups).numbers
    for group in range(10):
        assert len(set(line[groups == group].tolist())) == 1
    assert set(line[:20].tolist()) == {0, 1, 2, 3}


def test_more_folds_than_positives_or_their_groups_are_refused():
    with pytest.raises(ParameterError, match="only 4 rows of P"):
        Folds.drawn(4, 50, 5, 0)
    with pytest.raises(ParameterError, match="only 2 groups"):
        Folds.drawn(6, 4, 3, 0, groups=np.array([0, 0, 0, 1, 1, 1, 2, 3, 4, 5]))


def test_a_weight_for_known_negatives_needs_some():
    data = MemoryData.from_matrix(sparse.eye_array(40, format="csr"), np.arange(40) < 20)
    settings = TuningSettings(base=MethodParameters(w_neg=2.0))
    with pytest.raises(ParameterError, match="w_neg applies to known negatives"):
        TuningSample.from_data(data, settings, Run())
