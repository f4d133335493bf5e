"""JSON on disk: objects, sealed files, and the directories of runs that can be resumed.

Reading is strict: duplicate keys, which are ambiguous, and numbers too large for a double are
rejected. A sealed file contains its own digest.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from resvm_cli.data.atomic import is_left_behind, whole_file
from resvm_cli.data.streams import file_error, read_regular
from resvm_cli.errors import FileError, ParameterError

MAX_BYTES = 1 << 28
SETTINGS = "settings.json"
START_AGAIN = "start again in another directory"


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("an object contains the same key twice")
    return content


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large for a double")
    return number


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a valid number")


# Created once: json.loads would create a decoder for every line.
_LENIENT = json.JSONDecoder(object_pairs_hook=_unique_names, parse_float=_finite)
_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique_names, parse_float=_finite, parse_constant=_no_constant
)


def parse_object(text: bytes | str, *, allow_nan: bool = False) -> dict[str, Any]:
    """Parse a JSON object; raise ValueError for anything else."""
    decoder = _LENIENT if allow_nan else _STRICT
    try:
        content = decoder.decode(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    return content


def read_json(path: str, *, may_wait: bool = True) -> dict[str, Any]:
    """Read a JSON object from a file; pipes are allowed only if ``may_wait``."""
    try:
        if may_wait:
            with open(path, "rb") as handle:
                text = handle.read(MAX_BYTES)
        else:
            text = read_regular(path)
    except OSError as error:
        raise file_error("read", path, error) from None
    try:
        return parse_object(text, allow_nan=True)
    except ValueError as error:
        raise FileError(f"{path}: not JSON written by resvm: {error}") from None


def write_with_digest(path: str, content: dict[str, Any]) -> None:
    """Write a line of JSON and a line with its digest, so that readers can verify it."""
    body = json.dumps(content, allow_nan=False)
    digest = hashlib.sha256(body.encode()).hexdigest()
    with whole_file(path) as handle:
        handle.write(f"{body}\n{digest}\n".encode())


def read_sealed(path: str) -> dict[str, Any]:
    """Read a file of ``write_with_digest``; raise ValueError if it was damaged or edited."""
    body, _, digest = read_regular(path, MAX_BYTES, follow_links=False).partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() + b"\n" != digest:
        raise ValueError("the digest differs")
    content = parse_object(body)
    if json.dumps(content, allow_nan=False).encode() != body:
        raise ValueError("not written by resvm")
    return content


class RunDirectory:
    """The directory of one run: its settings, and logs with one JSON object per line.

    A log line counts once it is complete, so a killed run can be resumed.
    """

    def __init__(self, path: str, log: str, settings: dict[str, Any], *, resume: bool) -> None:
        self.path = path
        self._log = log
        self._settings = json.loads(json.dumps(settings))
        self._logs: dict[str, int] = {}  # descriptors, by name
        if os.path.lexists(path) and not resume and not self._is_blank():
            raise ParameterError(
                f"{path}: already exists",
                "continue it with `resume=True`, or choose another `path`",
            )

    def _is_blank(self) -> bool:
        """Whether the directory is empty, except for leftovers of killed processes."""
        try:
            return all(map(is_left_behind, os.listdir(self.path)))
        except OSError:
            return False

    @contextmanager
    def opened(self) -> Iterator[list[dict[str, Any]]]:
        """Create the directory or resume its run; yield the records of earlier runs."""
        with ExitStack() as held:
            try:
                Path(self.path).mkdir(exist_ok=True)
                held.enter_context(self._locked())
            except FileNotFoundError:
                parent = shlex.quote(str(Path(self.path).parent))
                raise FileError(
                    f"{self.path}: its parent directory does not exist", f"mkdir -p {parent}"
                ) from None
            except OSError as error:
                raise file_error("write", self.path, error) from None
            self._require_same_settings()
            try:
                yield self._recovered(self._log)
            finally:
                for descriptor in self._logs.values():
                    with suppress(OSError):  # a failed write has already been reported
                        os.close(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing to the directory."""
        import fcntl

        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise FileError(
                f"{self.path}: another process is writing there", "wait until it ends"
            ) from None
        except OSError:
            pass  # some network file systems cannot lock
        try:
            yield
        finally:
            os.close(descriptor)

    def _require_same_settings(self) -> None:
        """Write the settings of a new run; reject a directory with other settings or files."""
        before = self.read(SETTINGS)
        if before is None:
            if os.path.lexists(f"{self.path}/{self._log}"):
                raise FileError(f"{self.path}: {SETTINGS} is missing", START_AGAIN)
            if not self._is_blank():
                raise ParameterError(
                    f"{self.path}: not written by this command", "choose another `path`"
                )
            self.write(SETTINGS, self._settings)
        elif before != self._settings:
            now, keys = self._settings, sorted({*before, *self._settings})
            changed = ", ".join(key for key in keys if before.get(key) != now.get(key))
            raise ParameterError(
                f"{self.path}: was started with different settings: {changed}",
                "repeat the command unchanged, or start over with another `path`",
            )

    def _recovered(self, name: str) -> list[dict[str, Any]]:
        """Return the records of a log, and remove an incomplete last line."""
        path = f"{self.path}/{name}"
        if not os.path.lexists(path):
            return []
        text = read_regular(path)
        whole = text[: text.rfind(b"\n") + 1]
        records = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                records.append(parse_object(line, allow_nan=True))
            except ValueError:
                raise FileError(f"{path}:{number}: the line is damaged", START_AGAIN) from None
        if len(whole) < len(text):
            try:
                os.truncate(path, len(whole))
            except OSError as error:
                raise file_error("write", path, error) from None
        return records

    def append(self, name: str, record: dict[str, Any]) -> None:
        """Append a record to a log without buffering, so that it survives if we are killed."""
        path = f"{self.path}/{name}"
        try:
            if name not in self._logs:
                self._recovered(name)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                self._logs[name] = os.open(path, flags, 0o666)
            # closing a buffered file would retry a write that failed on a full disk
            line = json.dumps(record).encode() + b"\n"
            while line:
                line = line[os.write(self._logs[name], line) :]
        except OSError as error:
            raise file_error("write", path, error) from None

    def read(self, name: str) -> dict[str, Any] | None:
        """Read a JSON file of an earlier run; return None if it does not exist."""
        path = f"{self.path}/{name}"
        if not os.path.lexists(path):
            return None
        try:
            return parse_object(read_regular(path), allow_nan=True)
        except ValueError:
            raise FileError(f"{path}: the file is damaged", START_AGAIN) from None

    def write(self, name: str, content: dict[str, Any]) -> None:
        with whole_file(f"{self.path}/{name}") as handle:
            handle.write(json.dumps(content, indent=1).encode() + b"\n")
