"""The solvers' compiled code: found without importing their packages, and kept silent."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape, glob
from os.path import basename, dirname, join
from typing import TextIO

from resvm_cli.errors import SolverError

STDERR = 2
PRINT_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


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


@contextmanager
def silenced() -> Iterator[None]:
    """Keep the solvers from writing to stderr, which they do past every setting of theirs.

    LIBSVM tells each member that does not converge; the caller does so once. Python's own stderr
    goes on through a copy of the descriptor, which stays open for those who keep hold of it.
    """
    stream = sys.stderr
    try:
        ours = stream is not None and stream.fileno() == STDERR
        kept = os.dup(STDERR)
    except (OSError, ValueError, AttributeError):  # closed, or replaced by something else
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if ours:
        stream.flush()
        sys.stderr = _text(kept, stream)
    os.dup2(nowhere, STDERR)
    os.close(nowhere)
    copy = sys.stderr
    try:
        yield
    finally:
        os.dup2(kept, STDERR)
        if ours and sys.stderr is copy:
            sys.stderr = stream
        elif not ours:
            os.close(kept)
