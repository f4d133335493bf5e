"""Atomic writes: files and directories are written next to the target, synced and renamed.

The name of a temporary file contains the ID of the process that writes it. Temporary files left
behind by a killed process are removed by the next process that writes to the same folder.
"""

from __future__ import annotations

import binascii
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from math import ceil
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

from resvm_cli.errors import FileError, ModelError, ParameterError, Text
from resvm_cli.files.streams import STDIN, STDOUT, cannot, write_stdout
from resvm_cli.running import parallel
from resvm_cli.running.run import signals_held

Result = TypeVar("Result")
Key: TypeAlias = "str | tuple[int, int]"  # a resolved path, or a device and an inode

# Next to the target, so that a rename stays within one file system.
TEMPORARY = ".resvm-new-"
ASIDE = ".resvm-old"
SYNC_THREADS = 32  # the disk syncs all pending files at once, so many threads can wait for it
SYNCED_PER_THREAD = 4
MAX_READS = 20  # attempts to read a directory that is being replaced
WRITTEN_TO_STDOUT = (STDOUT, "/dev/stdout")
SEALED = ("manifest.json", "part.json")  # nothing may be added next to one of these
OWN_FILES = (".json", ".jsonl", ".tsv", ".model", ".lock")  # endings of files in models and runs

_unfinished: set[str] = set()  # temporary files and directories of this process
_locked_here: set[tuple[Path, int]] = set()  # each with the thread that holds the lock
_swept: set[str] = set()  # folders already cleared of leftover temporary files


def remove_unfinished() -> None:
    """Remove this process's temporary files; called just before an immediate exit."""
    for path in list(_unfinished):
        _remove(path)


def _machine() -> str:
    """Return a code for this machine and PID namespace, within which process IDs are unique."""
    name = os.uname().nodename
    with suppress(OSError):
        name += f" {os.stat('/proc/self/ns/pid').st_ino}"
    return f"{binascii.crc32(os.fsencode(name)):08x}"


@contextmanager
def _temporary(target: Path) -> Iterator[str]:
    """Yield a temporary path next to the target; it is removed unless it was renamed."""
    folder = str(target.parent)
    if folder not in _swept:  # only once, as a folder may contain thousands of files
        _swept.add(folder)
        remove_left_behind(folder)
    name = f"{TEMPORARY}{_machine()}-{os.getpid()}-{os.urandom(6).hex()}"
    path = os.path.join(folder, name)
    _unfinished.add(path)
    try:
        yield path
    finally:
        _remove(path)
        _unfinished.discard(path)


def remove_left_behind(folder: str) -> None:
    """Remove temporary files of processes that ran on this machine and have ended."""
    with suppress(OSError), os.scandir(folder) as entries:
        left = [entry.name for entry in entries if is_left_behind(entry.name)]
        for name in left:
            _remove(os.path.join(folder, name))


def is_left_behind(name: str) -> bool:
    """Whether a name is that of a temporary file whose process ran here and has ended."""
    machine, _, rest = name.removeprefix(TEMPORARY).partition("-")
    number = rest.partition("-")[0]
    if not name.startswith(TEMPORARY) or machine != _machine() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it belongs to another user, or is not a process ID
        pass
    return False


def _remove(path: str) -> None:
    """Remove a file or a directory tree, even if it is read-only."""
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
        if not os.path.islink(folder):  # the target of a link does not belong to us
            os.chmod(folder, stat.S_IRWXU)


def _true_path(path: str) -> Path:
    try:
        return Path(os.path.realpath(path))
    except OSError as error:  # the working directory no longer exists
        raise cannot("write", path, error) from None


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """Open a file for writing; it appears at ``path`` once it is complete."""
    try:
        there = os.stat(path)
    except OSError:
        there = None
    if there is not None and not stat.S_ISREG(there.st_mode):
        # write to a device or pipe instead of replacing it
        try:
            with open(path, "wb") as device:
                yield device
        except OSError as error:
            raise cannot("write", path, error) from None
        return
    target = _true_path(path)
    try:
        with _temporary(target) as temporary:
            with open(temporary, "xb", opener=partial(os.open, mode=0o600)) as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            os.chmod(temporary, stat.S_IMODE(there.st_mode) if there else _usual_mode(0o666))
            with signals_held(path):
                os.replace(temporary, target)
                _sync(target.parent)
    except OSError as error:
        raise cannot("write", path, error) from None


@contextmanager
def output(path: str) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes to stdout if the path is ``-``, or atomically to a file."""
    if path in WRITTEN_TO_STDOUT:  # never replaced, even if redirected to a file
        yield write_stdout
        return
    with whole_file(path) as handle:
        yield handle.write


def check_outputs(outputs: Sequence[tuple[Text, str]], inputs: Sequence[tuple[Text, str]]) -> None:
    """Reject an output that is an input, inside an input directory, or the same as another output.

    Each path comes with the name of its parameter. Links are followed. Stdout, devices and pipes
    are always accepted, because they are not replaced. Reports may be written to the directory of a
    run, but not to a model.
    """
    read = {key: name for name, path in inputs for key in _keys_of(path)}
    written: dict[Key, Text] = {}
    replaced = [(name, path) for name, path in outputs if _is_replaced(path)]
    for name, path in replaced:
        keys = _keys_of(path)
        for key in keys:
            _refuse(name, path, read.get(key), written.get(key))
        written |= dict.fromkeys(keys, name)
    for name, path in replaced:
        target = _true_path(path)
        is_own = target.name.endswith(OWN_FILES)
        for folder in target.parents:
            sealed = is_own or any(os.path.lexists(folder / each) for each in SEALED)
            for key in _keys_of(str(folder)):
                reader = read.get(key) if sealed else None
                writer = written.get(key) if is_own else None
                _refuse(name, path, reader, writer, "is inside")


def _refuse(
    name: Text, path: str, read: Text | None, written: Text | None, relation: str = "is"
) -> None:
    if read is not None:
        raise ParameterError(
            "{name} would write to {path}, which {relation} an input ({other})",
            "choose another path for {name}; inputs are never overwritten",
            name=name,
            path=path,
            relation=relation,
            other=read,
        )
    if written is not None:
        raise ParameterError(
            "{other} and {name} would both write to {path}",
            "choose another path for {name}",
            name=name,
            path=path,
            other=written,
        )


def _is_replaced(path: str) -> bool:
    """Whether writing to a path creates or replaces a file, unlike stdout or a device."""
    if path in WRITTEN_TO_STDOUT:
        return False
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _keys_of(path: str) -> set[Key]:
    """Return values that two paths share only if they are, or will be, the same file."""
    keys: set[Key] = set() if path == STDIN else {str(_true_path(path))}
    with suppress(OSError):  # not there yet, or stdin is closed
        status = os.fstat(0) if path == STDIN else os.stat(path)
        keys.add((status.st_dev, status.st_ino))
    return keys


@contextmanager
def whole_directory(path: str, *, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a new directory to fill; it appears at ``path`` once it is complete.

    An existing directory is moved aside first and removed last. If the process is interrupted in
    between, ``recover`` moves it back.
    """
    target = _true_path(path)
    try:
        with _temporary(target) as name:
            temporary = Path(name)
            temporary.mkdir(0o700)
            yield temporary
            _sync_tree(temporary)
            os.chmod(temporary, _usual_mode(0o777))
            with _lock(target), signals_held(path):
                _swap(temporary, target, path, may_replace)
    except OSError as error:
        raise cannot("write", path, error) from None


def _swap(temporary: Path, target: Path, path: str, may_replace: Callable[[Path], bool]) -> None:
    aside = _aside(target)
    replaced = os.path.lexists(target)
    if replaced:
        if not may_replace(target):
            raise FileError(f"{path}: was created during the run", "nothing was overwritten")
        if os.path.lexists(aside):
            if not may_replace(aside):
                raise FileError(
                    f"{aside}: already exists and is not a resvm model", "move it elsewhere first"
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
    _sync(target.parent)
    if replaced:
        _discard(aside)


def _discard(aside: Path) -> None:
    """Rename an old directory, then remove it: a partly removed one must not look like a model."""
    with suppress(OSError), _temporary(aside) as name:
        os.rename(aside, name)


def write_directory(path: str, contents: dict[str, bytes]) -> None:
    """Write a new directory with these files, atomically."""
    with whole_directory(path, may_replace=lambda target: False) as directory:
        for name, content in contents.items():
            (directory / name).write_bytes(content)


def recover(path: str, *, is_ours: Callable[[Path], bool]) -> None:
    """Move back a directory that an interrupted replacement moved aside; remove it if stale."""
    with suppress(OSError):  # a read-only file system: nothing to recover
        target = Path(os.path.realpath(path))
        aside = _aside(target)
        if not aside.is_dir():
            return
        with _lock(target):
            if not is_ours(aside):
                return
            if os.path.lexists(target):
                _discard(aside)
            else:
                os.rename(aside, target)


def read_consistently(path: str, read: Callable[[], Result]) -> Result:
    """Read a directory that may be replaced meanwhile, without mixing old and new files."""
    for attempt in range(MAX_READS):
        with ExitStack() as held:
            if attempt:  # now no other process can replace the directory
                with suppress(OSError):
                    held.enter_context(_lock(Path(os.path.realpath(path))))
            before = _identity(path)
            try:
                return read()
            except ModelError:
                # before the lock is held, the directory may be absent for a moment
                if before == _identity(path) and (attempt or before is not None):
                    raise
    return read()


def _identity(path: str) -> tuple[int, int, int] | None:
    """Return values that change when a directory is replaced."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


@contextmanager
def _lock(target: Path) -> Iterator[None]:
    """Lock the parent directory, so that only one process replaces or recovers the target."""
    import fcntl

    own = target, threading.get_ident()
    if own in _locked_here:
        yield
        return
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot lock
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        _locked_here.add(own)
        yield
    finally:
        _locked_here.discard(own)
        os.close(descriptor)


def _aside(target: Path) -> Path:
    return target.parent / f".{target.name}{ASIDE}"


def _usual_mode(mode: int) -> int:
    """Return the mode that a new file gets by default; temporary files are created private."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask


def _sync_tree(directory: Path) -> None:
    walked = list(os.walk(directory))
    files = [os.path.join(folder, name) for folder, _, names in walked for name in names]
    # several files per thread: a small model needs only a few threads
    n_threads = min(SYNC_THREADS, ceil(len(files) / SYNCED_PER_THREAD))
    for _ in parallel.run(_sync_all, [files[at::n_threads] for at in range(n_threads)], n_threads):
        pass
    for folder, _, _ in walked:
        _sync(folder)


def _sync_all(paths: Sequence[str]) -> None:
    for path in paths:
        _sync(path)


def _sync(path: str | Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some network file systems cannot sync a directory
        if error.errno not in (errno.EINVAL, errno.EROFS):
            raise
    finally:
        os.close(descriptor)
