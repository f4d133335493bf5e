"""Writing that happens whole or not at all: beside the target, synced, renamed."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from resvm_cli import parallel
from resvm_cli.errors import FileError
from resvm_cli.files.stdout import STDOUT, write_stdout
from resvm_cli.files.streams import cannot

# Beside a target, so that a rename stays on one file system.
TEMPORARY = ".resvm-new-"
ASIDE = ".resvm-old"
SYNCING_THREADS = 8  # each mostly waits for the disk, which takes several files at a time


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """A file to write; it appears at ``path`` only when everything has been written."""
    try:
        there = os.stat(path)
    except OSError:
        there = None
    if there is not None and not stat.S_ISREG(there.st_mode):
        # a device or a pipe cannot be replaced, only written to
        try:
            with open(path, "wb") as device:
                yield device
        except OSError as error:
            raise cannot("write", path, error) from None
        return
    target = Path(os.path.realpath(path))
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=target.parent)
    except OSError as error:
        raise cannot("write", path, error) from None
    try:
        with open(descriptor, "wb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(temporary, stat.S_IMODE(there.st_mode) if there else _usual_mode(0o666))
        os.replace(temporary, target)
        _sync_directory(target.parent)
    except OSError as error:
        raise cannot("write", path, error) from None
    finally:
        with suppress(OSError):
            os.unlink(temporary)


@contextmanager
def output(path: str) -> Iterator[Callable[[bytes], object]]:
    """Where to write: stdout for ``-``, else a file that appears when it is complete."""
    if path in (STDOUT, "/dev/stdout"):  # also where that is a file, which must not be replaced
        yield write_stdout
        return
    with whole_file(path) as handle:
        yield handle.write


@contextmanager
def whole_directory(path: str, *, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """A directory to fill; it appears at ``path`` only when complete.

    An old directory there, if it may be replaced, is moved aside first and removed last; an
    interruption in between leaves it aside, where ``recover`` finds it.
    """
    target = Path(os.path.realpath(path))
    try:
        temporary = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=target.parent))
    except OSError as error:
        raise cannot("write", path, error) from None
    try:
        yield temporary
        _sync_tree(temporary)
        os.chmod(temporary, _usual_mode(0o777))
        with _swapping(target):
            aside = _aside(target)
            if os.path.lexists(target):
                if not may_replace(target):
                    raise FileError(
                        f"{path}: appeared while we were working", "nothing was overwritten"
                    )
                shutil.rmtree(aside, ignore_errors=True)
                os.rename(target, aside)
            os.rename(temporary, target)
            _sync_directory(target.parent)
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise cannot("write", path, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_directory(path: str, contents: dict[str, bytes]) -> None:
    """A new directory of these files, all of them or none."""
    with whole_directory(path, may_replace=lambda target: False) as directory:
        for name, content in contents.items():
            (directory / name).write_bytes(content)


def recover(path: str) -> None:
    """Put back a directory that an interrupted replacement left aside, or remove what is stale."""
    target = Path(os.path.realpath(path))
    aside = _aside(target)
    if not aside.is_dir():
        return
    with suppress(OSError), _swapping(target):  # on a read-only file system there is no swapping
        if os.path.lexists(target):
            shutil.rmtree(aside, ignore_errors=True)
        else:
            os.rename(aside, target)


@contextmanager
def _swapping(target: Path) -> Iterator[None]:
    """One at a time: writers and readers that recover wait for each other here."""
    import fcntl

    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot lock
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}{ASIDE}")


def _usual_mode(mode: int) -> int:
    """The mode a plainly created file would have: temporary ones are private."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask


def _sync_tree(directory: Path) -> None:
    names = [os.path.join(folder, name) for folder, _, some in os.walk(directory) for name in some]
    for _ in parallel.run(_sync_file, names, SYNCING_THREADS):
        pass
    for folder, _, _ in os.walk(directory):
        _sync_directory(Path(folder))


def _sync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some network file systems have no such call
        if error.errno not in (errno.EINVAL, errno.EROFS):
            raise
    finally:
        os.close(descriptor)
