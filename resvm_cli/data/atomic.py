"""Write outputs whole or not at all: next to the target, synced, then renamed.

A temporary file is named after its machine and process. If the process was killed, the next one
that writes to the same folder removes the file.
"""

from __future__ import annotations

import binascii
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

from resvm_cli import threads as parallel
from resvm_cli.data.streams import STDIN, STDOUT, file_error, write_stdout
from resvm_cli.errors import FileError, ModelError, ParameterError
from resvm_cli.run import signals_held

Result = TypeVar("Result")
Key: TypeAlias = "str | tuple[int, int]"  # a resolved path, or a device and an inode

# Next to the target, so that a rename stays within one file system.
TEMPORARY = ".resvm-new-"
ASIDE = ".resvm-old"
SYNC_THREADS = 32  # the disk syncs all pending files at once, so many threads can wait for it
MAX_READS = 10  # of a directory that is replaced again and again
WRITTEN_TO_STDOUT = (STDOUT, "/dev/stdout")
SEALED = ("manifest.json", "part.json")  # nothing may be added next to one of these
OWN_FILES = (".json", ".jsonl", ".tsv", ".model")  # endings of files in models and runs

_unfinished: set[str] = set()  # temporary files and directories of this process
_swept: set[str] = set()  # folders already cleared of leftover temporary files


def remove_unfinished() -> None:
    """Remove this process's temporary files; called just before an immediate exit."""
    for path in list(_unfinished):
        _remove(path)


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


def _machine() -> str:
    """Return a code for this machine and PID namespace, within which process IDs are unique."""
    name = os.uname().nodename
    with suppress(OSError):
        name += f" {os.stat('/proc/self/ns/pid').st_ino}"
    return f"{binascii.crc32(os.fsencode(name)):08x}"


def remove_left_behind(folder: str) -> None:
    """Remove temporary files of processes that ran on this machine and have ended."""
    with suppress(OSError):
        for name in filter(is_left_behind, os.listdir(folder)):
            _remove(os.path.join(folder, name))


def is_left_behind(name: str) -> bool:
    """Whether a name is that of a temporary file whose process ran here and has ended."""
    if not name.startswith(TEMPORARY):
        return False
    machine, number, _ = [*name.removeprefix(TEMPORARY).split("-", 2), "", ""][:3]
    if machine == _machine() and number.isdecimal():
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

        for folder, _, _ in os.walk(path):
            with suppress(OSError):
                os.chmod(folder, stat.S_IRWXU)
        shutil.rmtree(path, ignore_errors=True)


def true_path(path: str) -> Path:
    try:
        return Path(os.path.realpath(path))
    except OSError:
        raise FileError(f"{path}: the working directory no longer exists") from None


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """Open a file for writing; it appears at ``path`` once it is complete."""
    mode = None  # of a file to replace
    try:
        with suppress(FileNotFoundError):
            mode = os.stat(path).st_mode
        if mode is not None and not stat.S_ISREG(mode):
            # write to a device or pipe instead of replacing it
            with open(path, "wb") as device:
                yield device
            return
        target = true_path(path)
        with _temporary(target) as temporary:
            opener = partial(os.open, mode=0o666 if mode is None else 0o600)
            with open(temporary, "xb", opener=opener) as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            with signals_held():
                os.replace(temporary, target)
                _sync(target.parent)
    except OSError as error:
        raise file_error("write", path, error) from None


@contextmanager
def output(path: str) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes to stdout if the path is ``-``, or atomically to a file."""
    if path in WRITTEN_TO_STDOUT:  # never replaced, even if redirected to a file
        yield write_stdout
        return
    with whole_file(path) as handle:
        yield handle.write


@contextmanager
def whole_directory(path: str, *, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a new directory to fill; it appears at ``path`` once it is complete.

    An existing directory is moved aside first and removed last. If the process is killed in
    between, ``recover`` moves it back.
    """
    target = true_path(path)
    try:
        with _temporary(target) as name:
            temporary = Path(name)
            temporary.mkdir()
            yield temporary
            _sync_tree(temporary)
            with signals_held():
                while not _replaced(temporary, target, path, may_replace):
                    pass  # another process replaced the directory at the same moment
                _sync(target.parent)
                with suppress(OSError):  # then the next replacement removes it
                    _discard(_aside(target))
    except OSError as error:
        raise file_error("write", path, error) from None


def _replaced(
    temporary: Path, target: Path, path: str, may_replace: Callable[[Path], bool]
) -> bool:
    """Rename a new directory to its target, unless another process interferes."""
    aside = _aside(target)
    try:
        if os.path.lexists(target):
            if _must_stay(target, may_replace):
                raise FileError(f"{path}: was created during the run", "nothing was overwritten")
            if _must_stay(aside, may_replace):
                raise FileError(
                    f"{aside}: exists and is not a resvm model", "move it elsewhere first"
                )
            if os.path.lexists(aside):
                _discard(aside)
            with suppress(FileNotFoundError):
                os.rename(target, aside)
        os.rename(temporary, target)
    except OSError as error:
        recover(path)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _must_stay(path: Path, may_replace: Callable[[Path], bool]) -> bool:
    """Whether a directory may not be replaced; one that another process moves is no answer."""
    while (before := _identity(path)) is not None and not may_replace(path):
        if _identity(path) == before:
            return True
    return False


def _discard(aside: Path) -> None:
    """Rename an old directory, then remove it: a partly removed one must not look like a model."""
    with suppress(FileNotFoundError), _temporary(aside) as name:
        os.rename(aside, name)


def _aside(target: Path) -> Path:
    return target.parent / f".{target.name}{ASIDE}"


def recover(path: str) -> None:
    """Move back a directory that a killed process had moved aside to replace it."""
    with suppress(OSError):  # on a read-only file system it stays aside
        target = Path(os.path.realpath(path))
        if _aside(target).is_dir() and not os.path.lexists(target):
            os.rename(_aside(target), target)


def read_consistently(path: str, read: Callable[[], Result]) -> Result:
    """Read a directory, and read it again if it was replaced meanwhile."""
    for _ in range(MAX_READS):
        recover(path)
        before = _identity(path)
        try:
            return read()
        except ModelError:
            if before == _identity(path):
                raise
    return read()


def _identity(path: str | Path) -> tuple[int, ...] | None:
    """Return values that change when a directory is replaced, or moved away and back."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def write_directory(path: str, contents: dict[str, bytes]) -> None:
    """Write a new directory with these files, atomically."""
    with whole_directory(path, may_replace=lambda target: False) as directory:
        for name, content in contents.items():
            (directory / name).write_bytes(content)


def _sync_tree(directory: Path) -> None:
    walked = list(os.walk(directory))
    files = [os.path.join(folder, name) for folder, _, names in walked for name in names]
    for _ in parallel.run(_sync, files, SYNC_THREADS):
        pass
    for folder, _, _ in walked:
        _sync(folder)


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


def check_outputs(outputs: Sequence[tuple[str, str]], inputs: Sequence[tuple[str, str]]) -> None:
    """Reject an output that is an input, inside an input directory, or the same as another output.

    Each path comes with the name of its parameter. Links are followed. Stdout, devices and pipes
    are always accepted, because they are not replaced. Reports may be written to the directory of a
    run, but not to a model.
    """
    read = {key: name for name, path in inputs for key in _keys_of(path)}
    written: dict[Key, str] = {}
    replaced = [(name, path) for name, path in outputs if _is_replaced(path)]
    for name, path in replaced:
        keys = _keys_of(path)
        for key in keys:
            _refuse(name, path, read.get(key), written.get(key))
        written |= dict.fromkeys(keys, name)
    for name, path in replaced:
        target = true_path(path)
        is_own = target.name.endswith(OWN_FILES)
        for folder in target.parents:
            sealed = is_own or any(os.path.lexists(folder / each) for each in SEALED)
            for key in _keys_of(str(folder)):
                reader = read.get(key) if sealed else None
                writer = written.get(key) if is_own else None
                _refuse(name, path, reader, writer, "is inside")


def _refuse(
    name: str, path: str, read: str | None, written: str | None, relation: str = "is"
) -> None:
    if read is not None:
        raise ParameterError(
            f"{name} would write to {path}, which {relation} an input ({read})",
            f"choose another path for {name}; inputs are never overwritten",
        )
    if written is not None:
        raise ParameterError(
            f"{written} and {name} would both write to {path}",
            f"choose another path for {name}",
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
    keys: set[Key] = set() if path == STDIN else {str(true_path(path))}
    with suppress(OSError):  # not there yet, or stdin is closed
        status = os.fstat(0) if path == STDIN else os.stat(path)
        keys.add((status.st_dev, status.st_ino))
    return keys
