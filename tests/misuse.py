"""Call C functions with one bad array, which they must reject with a message that names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

KINDS = ("i8", "i4", "f8", "f4", "u8", "i2", "u1", "?", "c16")

Calls = dict[str, tuple[Callable[..., Any], dict[str, Any]]]


def array_arguments(calls: Calls) -> list[tuple[str, str]]:
    """Return (function, argument) for each argument that is an array."""
    return [
        (function, name)
        for function, (_, arguments) in calls.items()
        for name, value in arguments.items()
        if isinstance(value, np.ndarray)
    ]


def of_other_kinds(array: np.ndarray) -> Iterator[Any]:
    """Yield arrays of the same shape but other types, and objects that are not arrays."""
    for kind in KINDS:
        if np.dtype(kind) != array.dtype:
            yield np.zeros(array.shape, kind)
    if array.dtype.itemsize > 1 and array.dtype.names is None:
        yield array.astype(array.dtype.newbyteorder())
    yield array.astype(object)
    yield from (None, array.tolist(), "text", 3)


def laid_out_otherwise(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Yield non-contiguous and unaligned copies, with the word expected in the message."""
    yield "contiguous", np.repeat(array.reshape(-1), 2)[::2]
    if array.dtype.itemsize > 1 and array.dtype.names is None:
        odd = memoryview(bytearray(array.nbytes + 1))[1:]
        yield "aligned", odd.cast(memoryview(array).format)


def assert_refused(
    calls: Calls, function: str, name: str, value: Any, error: type[Exception], said: str
) -> None:
    """Check that a valid call fails with this value of one argument, and names the argument."""
    call, arguments = calls[function]
    copies = {key: np.copy(one) if hasattr(one, "dtype") else one for key, one in arguments.items()}
    call(*copies.values())
    with pytest.raises(error, match=rf"(?=.*\b{name}\b).*{said}"):
        call(*{**copies, name: value}.values())


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only copy of the array."""
    fixed = array.copy()
    fixed.setflags(write=False)
    return fixed
