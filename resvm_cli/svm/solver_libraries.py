"""The solvers' compiled code: found without importing their packages, and kept silent."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape, glob
from os.path import basename, dirname, join
from typing import TextIO

from resvm_cli.errors import SolverError

STDERR = 2
MOST_ENDING_THREADS = 256
PRINT_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_char_p)

_at_exit: object = None  # C keeps the pointer: it must not be collected
_turn = threading.Lock()
_stderr: int | None = None  # a copy of the descriptor, where there is something to silence
_n_talking = 0  # threads that are inside LIBSVM


def find_shared_object(package: str, name: str) -> str:
    """The path of the one shared object inside an installed package."""
    folders = _folders(package)
    paths = [path for folder in folders for path in sorted(glob(join(escape(folder), "clib*")))]
    if not paths:
        raise SolverError(
            f"{name}'s shared object is not there", f"reinstall it: pip install {package}-official"
        )
    return paths[0]


def package_version(package: str) -> str:
    """The version of the distribution that a solver's package came in: PACKAGE-official."""
    # the folder beside it is named by it; importlib.metadata takes 40 ms to import
    pattern = f"{package}_official-*.dist-info"
    beside = {dirname(folder) for folder in _folders(package)}
    folders = [path for folder in beside for path in glob(join(escape(folder), pattern))]
    if len(folders) == 1:
        return basename(folders[0]).removesuffix(".dist-info").partition("-")[2]
    from importlib.metadata import version

    return version(f"{package}-official")


def _folders(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []


def _text(descriptor: int, like: TextIO) -> TextIO:
    return open(descriptor, "w", encoding=like.encoding, errors=like.errors, buffering=1)


def on_exit_of_a_library(function: Callable[[], object]) -> None:
    """Call this when compiled code ends the program: OpenBLAS and OpenMP do, without memory.

    The program itself must end by os._exit: an interpreter that is taken apart cannot be called.
    Threads may end it at once, and each takes an entry off the list: the one that finds none would
    be through with its own code before the first has spoken.
    """
    global _at_exit
    _at_exit = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: function())
    with suppress(AttributeError, OSError):  # what atexit is made of; not every system has it
        register = ctypes.CDLL(None).__cxa_atexit
        for _ in range(MOST_ENDING_THREADS):
            register(_at_exit, None, None)


@contextmanager
def silenced() -> Iterator[None]:
    """Within this context what LIBSVM writes to stderr past every setting of its own goes nowhere.

    It tells each member that does not converge; the caller does so once. Python's own stderr goes
    on through a copy of the descriptor, which stays open for those who keep hold of it.
    """
    global _stderr
    stream = sys.stderr
    try:
        ours = stream is not None and stream.fileno() == STDERR
        kept = os.dup(STDERR)
    except (OSError, ValueError, AttributeError):  # closed, or replaced by something else
        yield
        return
    if ours:
        stream.flush()
        sys.stderr = _text(kept, stream)
    copy = sys.stderr
    before, _stderr = _stderr, kept
    try:
        yield
    finally:
        _stderr = before
        with _turn:  # a solver that was left to itself may still be at work
            os.dup2(kept, STDERR)
        if ours and sys.stderr is copy:
            sys.stderr = stream
        elif not ours:
            os.close(kept)


@contextmanager
def talking() -> Iterator[None]:
    """While LIBSVM works: only then is stderr nowhere, for others have more to say than it has."""
    global _n_talking
    kept = _stderr
    if kept is None:
        yield
        return
    with _turn:
        _n_talking += 1
        if _n_talking == 1:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, STDERR)
            os.close(nowhere)
    try:
        yield
    finally:
        with _turn:
            _n_talking -= 1
            if _n_talking == 0 and _stderr == kept:
                os.dup2(kept, STDERR)
