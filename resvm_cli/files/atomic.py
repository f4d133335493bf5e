"""Writing that happens whole or not at all: beside the target, synced, renamed.

What a killed process leaves beside the target carries the process's number, and is removed by the
next one that writes there.
"""

from __future__ import annotations

import binascii
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from resvm_cli.errors import FileError, ModelError
from resvm_cli.files.stdout import STDOUT, write_stdout
from resvm_cli.files.streams import cannot
from resvm_cli.running import interruption, parallel

Result = TypeVar("Result")

# Beside a target, so that a rename stays on one file system.
TEMPORARY = ".resvm-new-"
ASIDE = ".resvm-old"
SYNCING_THREADS = 8  # each mostly waits for the disk, which takes several files at a time
READING_AGAIN = 20  # times, where the file system cannot lock

_unfinished: set[str] = set()  # what this process would leave behind if it ended now
_swapped_here: set[tuple[Path, int]] = (
    set()
)  # what a thread has locked: it must not wait for itself
_swept: set[str] = set()  # folders where it has looked for what others left


def remove_unfinished() -> None:
    """Remove what this process has begun to write, before it ends at once."""
    for path in list(_unfinished):
        _remove(path)


def _machine() -> str:
    """This machine and, in a container, its numbering of processes: numbers mean nothing beyond."""
    place = os.uname().nodename
    with suppress(OSError):
        place += f" {os.stat('/proc/self/ns/pid').st_ino}"
    return f"{binascii.crc32(os.fsencode(place)):08x}"


@contextmanager
def _temporary(target: Path) -> Iterator[str]:
    """A name beside the target for what is written first; removed where it was not renamed."""
    folder = str(target.parent)
    if folder not in _swept:  # once: a folder may hold thousands of members
        _swept.add(folder)
        remove_left_behind(folder)
    path = passing_name(folder)
    try:
        yield path
    finally:
        _remove(path)
        _unfinished.discard(path)


def passing_name(folder: str) -> str:
    """A name for what lives no longer than this process, however that ends."""
    name = f"{TEMPORARY}{_machine()}-{os.getpid()}-{os.urandom(6).hex()}"
    path = os.path.join(folder, name)
    _unfinished.add(path)
    return path


def remove_left_behind(folder: str) -> None:
    """Remove what processes of this machine that are gone have left in a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        left = [entry.name for entry in entries if is_left_behind(entry.name)]
        for name in left:
            _remove(os.path.join(folder, name))


def is_left_behind(name: str) -> bool:
    """Whether this is the name of a temporary whose process is gone."""
    machine, _, rest = name.removeprefix(TEMPORARY).partition("-")
    number = rest.partition("-")[0]
    if not name.startswith(TEMPORARY) or machine != _machine() or not number.isdecimal():
        return False
    if not 0 < int(number) < 2**31:
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it runs, for somebody else
        return False
    return False


def _remove(path: str) -> None:
    """Remove a file, or a directory with all it holds, even where that was made read-only."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError:
        import shutil

        _make_writable(path)
        for folder, names, _ in os.walk(path):
            for name in names:
                _make_writable(os.path.join(folder, name))
        shutil.rmtree(path, ignore_errors=True)


def _make_writable(folder: str) -> None:
    with suppress(OSError):
        if not os.path.islink(folder):  # what it leads to is not ours
            os.chmod(folder, stat.S_IRWXU)


def _true_path(path: str) -> Path:
    try:
        return Path(os.path.realpath(path))
    except OSError as error:  # the working directory is gone
        raise cannot("write", path, error) from None


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
    target = _true_path(path)
    try:
        with _temporary(target) as temporary:
            with open(temporary, "xb", opener=_private) as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            os.chmod(temporary, stat.S_IMODE(there.st_mode) if there else _usual_mode(0o666))
            with interruption.held(path):
                os.replace(temporary, target)
                _sync_directory(target.parent)
    except OSError as error:
        raise cannot("write", path, error) from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


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
    target = _true_path(path)
    try:
        with _temporary(target) as name:
            temporary = Path(name)
            temporary.mkdir(0o700)
            yield temporary
            _sync_tree(temporary)
            os.chmod(temporary, _usual_mode(0o777))
            with _swapping(target), interruption.held(path):
                _swap(temporary, target, path, may_replace)
    except OSError as error:
        raise cannot("write", path, error) from None


def _swap(temporary: Path, target: Path, path: str, may_replace: Callable[[Path], bool]) -> None:
    aside = _aside(target)
    replaced = os.path.lexists(target)
    if replaced:
        if not may_replace(target):
            raise FileError(f"{path}: appeared while we were working", "nothing was overwritten")
        if os.path.lexists(aside):
            if not may_replace(aside):
                raise FileError(
                    f"{aside}: is in the way, and not of resvm", "move it elsewhere first"
                )
            _discard(aside)
        os.rename(target, aside)
    try:
        os.rename(temporary, target)
    except OSError:
        if replaced:
            with suppress(OSError):
                os.rename(aside, target)
        raise
    _sync_directory(target.parent)
    if replaced:
        _discard(aside)


def _discard(aside: Path) -> None:
    """Remove an old directory under a name of ours: half removed it would be no model any more."""
    with suppress(OSError), _temporary(aside) as name:
        os.rename(aside, name)


def write_directory(path: str, contents: dict[str, bytes]) -> None:
    """A new directory of these files, all of them or none."""
    with whole_directory(path, may_replace=lambda target: False) as directory:
        for name, content in contents.items():
            (directory / name).write_bytes(content)


def recover(path: str, *, is_ours: Callable[[Path], bool]) -> None:
    """Put back a directory that an interrupted replacement left aside, or remove what is stale."""
    with suppress(OSError):  # on a read-only file system there is no swapping
        target = Path(os.path.realpath(path))
        _recover(target, _aside(target), is_ours)


def _recover(target: Path, aside: Path, is_ours: Callable[[Path], bool]) -> None:
    if not aside.is_dir():
        return
    with _swapping(target):
        if not is_ours(aside):
            return
        if os.path.lexists(target):
            _discard(aside)
        else:
            os.rename(aside, target)


def read_steadily(path: str, read: Callable[[], Result]) -> Result:
    """Read a directory that may be replaced meanwhile: all of the old one, or all of the new."""
    for _ in range(READING_AGAIN):
        before = _identity(path)
        try:
            return read()
        except ModelError:
            if before is not None and before == _identity(path):
                raise
        # whoever replaces it waits for this reader
        with suppress(OSError), _swapping(Path(os.path.realpath(path))):
            before = _identity(path)
            try:
                return read()
            except ModelError:
                if before == _identity(path):
                    raise
    return read()


def _identity(path: str) -> tuple[int, int, int] | None:
    """What tells a directory from the one that replaces it."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


@contextmanager
def _swapping(target: Path) -> Iterator[None]:
    """One at a time: writers and readers that recover wait for each other here."""
    import fcntl

    own = target, threading.get_ident()
    if own in _swapped_here:
        yield
        return
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot lock
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        _swapped_here.add(own)
        yield
    finally:
        _swapped_here.discard(own)
        os.close(descriptor)


def _aside(target: Path) -> Path:
    return target.parent / f".{target.name}{ASIDE}"


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
