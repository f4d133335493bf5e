"""Tests of what is sent to workers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from resvm_cli.cluster.worker import Shared

pytest.importorskip("distributed")


def test_what_is_shared_travels_as_bytes_so_that_its_arrays_are_aligned():
    buffers: list[pickle.PickleBuffer] = []
    values = np.arange(5.0)
    text = pickle.dumps(Shared([values]), protocol=5, buffer_callback=buffers.append)
    assert not buffers  # Dask would put them at odd addresses
    (found,) = pickle.loads(text).value
    assert found.flags.aligned
    assert found.flags.writeable
    assert found.tolist() == values.tolist()
