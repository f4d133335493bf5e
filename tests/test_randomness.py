"""A sample drawn in chunks equals the start of all numbers shuffled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli import randomness


class _FewKeys:
    """A random generator whose raw numbers have many ties."""

    def __init__(self, keys: list[int]) -> None:
        self._keys = keys
        self.n_drawn = 0

    def random_raw(self, size: int) -> np.ndarray:
        self.n_drawn += size
        return np.array(self._keys[self.n_drawn - size : self.n_drawn], np.uint64)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=40),
    st.integers(0, 45),
    st.sampled_from([1, 3, 16, 64]),
)
def test_a_sample_is_the_start_of_all_rows_shuffled(keys, most, chunk):
    whole = randomness.shuffled(_FewKeys(keys), len(keys))
    expected = np.sort(whole[:most])
    bits = _FewKeys(keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "SAMPLE_CHUNK", chunk)
        found = randomness.sample(bits, len(keys), most)
    assert found.tolist() == expected.tolist()
    assert bits.n_drawn == (len(keys) if most < len(keys) else 0)


def test_a_sample_of_many_rows_leaves_the_stream_where_shuffling_does():
    ours, theirs = np.random.PCG64(3), np.random.PCG64(3)
    found = randomness.sample(ours, 200_000, 50)
    assert found.tolist() == np.sort(randomness.shuffled(theirs, 200_000)[:50]).tolist()
    assert ours.random_raw() == theirs.random_raw()


def test_no_two_streams_have_the_same_key():
    constants = {name: value for name, value in vars(randomness).items() if name.isupper()}
    del constants["SAMPLE_CHUNK"]
    del constants["SIMULATED_SETS"]  # used by a command with its own seed
    for kind in (int, tuple):
        keys = [value for value in constants.values() if isinstance(value, kind)]
        assert len(keys) > 4
        assert len(set(keys)) == len(keys)


WORDS = {
    "FOLDS": b"fold", "CANDIDATES": b"tune", "JUDGED_UNLABELED": b"samp", "PARTNERS": b"part",
    "OUT_OF_BAG_ROWS": b"oobp", "QUANTILE_ROWS": b"quan", "RESAMPLES": b"rank",
    "IMPORTANCE": b"impo",
}  # fmt: skip


def test_streams_keep_their_keys_so_that_later_versions_draw_the_same():
    for name, word in WORDS.items():
        assert getattr(randomness, name) == int.from_bytes(word, "big")
    assert len(set(WORDS.values())) == len(WORDS)
    assert (randomness.SOLVER, randomness.FOLD, randomness.NEGATIVES) == (1, 2, 4)
