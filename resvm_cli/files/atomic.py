"""Writing that happens whole or not at all: beside the target, synced, renamed."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from resvm_cli.errors import FileError
from resvm_cli.files.streams import cannot

# Names beside a target, so that a rename stays on one file system.
TEMPORARY = ".resvm-new-"
ASIDE = ".resvm-old"


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """A file to write; it appears at ``path`` only when everything has been written."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # a device or a named pipe cannot be replaced, only written to
        if target.is_dir():
            raise cannot("write", path, IsADirectoryError(errno.EISDIR, "Is a directory"))
        try:
            with open(target, "wb") as device:
                yield device
        except OSError as error:
            raise cannot("write", path, error) from None
        return
    try:
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{target.name}{TEMPORARY}", dir=target.parent
        )
    except OSError as error:
        raise cannot("write", path, error) from None
    try:
        with open(descriptor, "wb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(temporary, _usual_mode(0o666))
        os.replace(temporary, target)
        _sync_directory(target.parent)
    except OSError as error:
        raise cannot("write", path, error) from None
    finally:
        with suppress(OSError):
            os.unlink(temporary)


@contextmanager
def whole_directory(path: str, *, replace: bool) -> Iterator[Path]:
    """A directory to fill; it appears at ``path`` only when complete.

    With ``replace`` an old directory there is moved aside first and removed last; an interruption
    in between leaves it aside, where ``recover`` finds it.
    """
    target = Path(os.path.realpath(path))
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}{TEMPORARY}", dir=target.parent))
    except OSError as error:
        raise cannot("write", path, error) from None
    try:
        yield temporary
        _sync_tree(temporary)
        os.chmod(temporary, _usual_mode(0o777))
        _swap_in(temporary, target, replace)
        _sync_directory(target.parent)
    except OSError as error:
        raise cannot("write", path, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _swap_in(new: Path, target: Path, replace: bool) -> None:
    aside = _aside(target)
    if replace and target.exists():
        if aside.exists():
            shutil.rmtree(aside)
        os.rename(target, aside)
    elif target.exists():
        raise FileError(f"{target}: appeared while we were working", "nothing was overwritten")
    os.rename(new, target)
    shutil.rmtree(aside, ignore_errors=True)


def recover(path: str) -> None:
    """Put back a directory that an interrupted replacement left aside."""
    target = Path(os.path.realpath(path))
    aside = _aside(target)
    if not target.exists() and aside.is_dir():
        with suppress(OSError):  # another process was faster, or the file system is read-only
            os.rename(aside, target)


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}{ASIDE}")


def _usual_mode(mode: int) -> int:
    """The mode a plainly created file would have: temporary ones are private."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask


def _sync_tree(directory: Path) -> None:
    for folder, _, names in os.walk(directory):
        for name in names:
            descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        _sync_directory(Path(folder))


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (
            errno.EINVAL,
            errno.EROFS,
        ):  # some network file systems have no such call
            raise
    finally:
        os.close(descriptor)
