"""Room for large arrays that is used again: new pages cost more than filling them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt


class Room(threading.local):
    """One array a thread, as large as was ever asked for."""

    def __init__(self, kind: type[Any]) -> None:
        self._array = np.empty(0, kind)

    def of(self, size: int) -> npt.NDArray[Any]:
        """The first of its numbers, whatever they are; whoever asks next gets the same ones."""
        if len(self._array) < size:
            kind = self._array.dtype
            self._array = np.empty(0, kind)  # not both at a time
            self._array = np.empty(size, kind)
        return self._array[:size]
