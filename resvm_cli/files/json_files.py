"""JSON on disk: objects, sealed files, and the directories of long jobs.

Reading is strict: duplicate keys, which are ambiguous, and numbers too large for a double are
rejected. A sealed file contains its own digest.

A killed run can always be resumed. A log line counts once it is complete; the next run removes a
truncated last line. Only one process at a time may write a log; each task of an array job writes
its own file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from resvm_cli.errors import FileError, ParameterError
from resvm_cli.files.atomic import TEMPORARY, is_left_behind, whole_file
from resvm_cli.files.streams import cannot, file_digest, read_regular
from resvm_cli.running.run import Share, signals_held

MAX_BYTES = 1 << 28
SETTINGS = "settings.json"
LOCK = ".lock"
TASKS = "tasks"  # files written by the tasks of an array job
KIND = "resvm-task"
FORMAT = 1
SAVED_SECONDS = 30.0  # a killed task loses at most this much work
START_AGAIN = "start again in another directory"


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object contains the same key twice")
    return found


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
        raise cannot("read", path, error) from None
    try:
        return parse_object(text, allow_nan=True)
    except ValueError as error:
        raise FileError(f"{path}: not JSON written by resvm: {error}") from None


def write_sealed(path: str, content: dict[str, Any]) -> None:
    """Write a line of JSON and a line with its digest, so that readers can verify it."""
    body = json.dumps(content, allow_nan=False)
    digest = hashlib.sha256(body.encode()).hexdigest()
    with whole_file(path) as handle:
        handle.write(f"{body}\n{digest}\n".encode())


def read_sealed(path: str) -> dict[str, Any]:
    """Read a file written by ``write_sealed``; raise ValueError if it was damaged or edited."""
    body, _, digest = read_regular(path, MAX_BYTES, follow_links=False).partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() + b"\n" != digest:
        raise ValueError("the digest differs")
    content = parse_object(body)
    if json.dumps(content, allow_nan=False).encode() != body:
        raise ValueError("not written by resvm")
    return content


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        return parse_object(text, allow_nan=True)
    except ValueError:
        return None


def _require_same(path: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    changed = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
    if changed:
        raise ParameterError(
            "{path}: was started with different settings: {names}",
            "repeat the command unchanged, or start over with another {output}",
            path=path,
            names=", ".join(changed),
        )


class RunDirectory:
    """The directory of one run, with its settings and its logs (JSON lines)."""

    def __init__(
        self,
        path: str,
        log: str,
        settings: dict[str, Any],
        *,
        resume: bool,
        lines_stand_alone: bool = False,  # whether a damaged line can be recomputed on its own
    ) -> None:
        self.path = path
        self.damaged: list[str] = []  # the lines that were removed, as file:line
        self._lines_stand_alone = lines_stand_alone
        self._settings = json.loads(json.dumps(settings))
        self._log_name = log
        self._directory = Path(path)
        self._logs: dict[str, int] = {}
        if os.path.lexists(path) and not resume and not self._has_not_begun():
            raise ParameterError(
                "{path}: already exists",
                "continue it with {resume:True}, or choose another {output}",
                path=path,
            )

    def _has_not_begun(self) -> bool:
        """Whether no run has started here: only task files or leftover temporary files exist."""
        try:
            return all(
                name in (LOCK, TASKS) or is_left_behind(name) for name in os.listdir(self.path)
            )
        except OSError:
            return False

    @contextmanager
    def opened(self) -> Iterator[list[dict[str, Any]]]:
        """Create the directory or resume its run; yield the records of earlier runs."""
        try:
            self._directory.mkdir(exist_ok=True)
        except FileNotFoundError:
            parent = shlex.quote(str(self._directory.parent))
            raise FileError(
                f"{self.path}: its parent directory does not exist", f"mkdir -p {parent}"
            ) from None
        except OSError as error:
            raise cannot("write", self.path, error) from None
        self._refuse_foreign()
        with self._locked():
            if os.path.lexists(self._directory / SETTINGS):
                self._require_same_settings()
            else:
                self.write(SETTINGS, self._settings)
            records = self._recover(self._log_name)
            try:
                yield records
            finally:
                for descriptor in self._logs.values():
                    with suppress(OSError):  # a failed write has already been reported
                        os.close(descriptor)

    def _refuse_foreign(self) -> None:
        """Reject a directory that is not ours before creating even a lock file in it."""
        if os.path.lexists(self._directory / SETTINGS) or self._has_not_begun():
            return
        if os.path.lexists(self._directory / self._log_name):
            raise FileError(f"{self.path}: {SETTINGS} is missing", START_AGAIN)
        raise ParameterError(
            "{path}: not written by this command", "choose another {output}", path=self.path
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self._directory / LOCK
        descriptor = None
        try:
            with signals_held(str(lock)):  # once created, it must be removed
                descriptor = self._lock(lock)
            yield
        finally:
            if descriptor is not None:
                with suppress(OSError):
                    os.unlink(lock)  # while we hold it: later it could belong to another process
                os.close(descriptor)

    def _lock(self, lock: Path) -> int:
        import fcntl

        while True:
            try:
                descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            except OSError as error:
                raise cannot("write", self.path, error) from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise FileError(
                    f"{self.path}: another process is writing there", "wait until it ends"
                ) from None
            except OSError:
                pass  # some network file systems cannot lock
            with suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                    return descriptor
            os.close(descriptor)  # its owner has just removed it, and there may be a new one

    def _require_same_settings(self) -> None:
        _require_same(self.path, self.read(SETTINGS) or {}, self._settings)

    def recorded(self) -> list[dict[str, Any]]:
        """Return the records so far, without locking, as the run may still be active."""
        if not os.path.lexists(self._directory / SETTINGS):
            return []
        self._require_same_settings()
        return self._sound_lines(self._log_name)[0]

    def _recover(self, name: str) -> list[dict[str, Any]]:
        """Remove damaged lines from a log and return its records."""
        records, sound, text = self._sound_lines(name)
        path = self._directory / name
        try:
            if not text.startswith(sound):
                with whole_file(str(path)) as handle:
                    handle.write(sound)
            elif len(sound) < len(text):
                os.truncate(path, len(sound))
        except OSError as error:
            raise cannot("write", str(path), error) from None
        return records

    def _sound_lines(self, name: str) -> tuple[list[dict[str, Any]], bytes, bytes]:
        """Return the records in a log's valid lines, the text of these lines, and the full text."""
        path = self._directory / name
        if not os.path.lexists(path):
            return [], b"", b""
        text = read_regular(str(path))
        records: list[dict[str, Any]] = []
        sound: list[bytes] = []
        lines = text.split(b"\n")
        for number, line in enumerate(lines[:-1], 1):
            record = _object(line)
            if record is not None:
                records.append(record)
                sound.append(line + b"\n")
            elif self._lines_stand_alone:
                self.damaged.append(f"{path}:{number}")
            elif number < len(lines) - 1 or lines[-1]:
                raise FileError(f"{path}:{number}: the line is damaged", START_AGAIN)
        return records, b"".join(sound), text

    def append(self, name: str, record: dict[str, Any]) -> None:
        """Append a record to a log without buffering, so that it survives if we are killed."""
        path = self._directory / name
        try:
            if name not in self._logs:
                if name != self._log_name:
                    self._recover(name)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                self._logs[name] = os.open(path, flags, 0o666)
            # closing a buffered file would retry a write that failed on a full disk
            line = json.dumps(record).encode() + b"\n"
            while line:
                line = line[os.write(self._logs[name], line) :]
        except OSError as error:
            raise cannot("write", str(path), error) from None

    def read(self, name: str) -> dict[str, Any] | None:
        """Read a JSON file of an earlier run; return None if it does not exist."""
        path = self._directory / name
        if not os.path.lexists(path):
            return None
        content = _object(read_regular(str(path)))
        if content is None:
            raise FileError(f"{path}: the file is damaged", START_AGAIN)
        return content

    def rewrite(self, name: str, records: Iterable[dict[str, Any]]) -> None:
        with whole_file(str(self._directory / name)) as handle:
            for record in records:
                handle.write(json.dumps(record).encode() + b"\n")

    def write(self, name: str, content: dict[str, Any]) -> None:
        with whole_file(str(self._directory / name)) as handle:
            handle.write(json.dumps(content, indent=1).encode() + b"\n")


class TaskFiles:
    """Sealed files through which the tasks of an array job pass their records to the run."""

    def __init__(
        self, directory: str, settings: dict[str, Any], is_record: Callable[[Any], bool]
    ) -> None:
        self._is_record = is_record
        self._run = directory
        self._directory = os.path.join(directory, TASKS)
        self._settings = json.loads(json.dumps(settings))

    def read(self) -> list[dict[str, Any]]:
        """Read the records of all files; raise an error if one was written with other settings."""
        try:
            names = sorted(os.listdir(self._directory))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot("read", self._directory, error) from None
        records: list[dict[str, Any]] = []
        for name in names:
            if not name.startswith(TEMPORARY):
                records += self._records(os.path.join(self._directory, name))
        return records

    def _records(self, path: str) -> list[dict[str, Any]]:
        try:
            content = read_sealed(path)
            if content["kind"] != KIND or content["format"] != FORMAT:
                raise ValueError("kind")
            settings, records = content["settings"], content["records"]
            if not isinstance(settings, dict) or not isinstance(records, list):
                raise ValueError("content")
            if not all(map(self._is_record, records)):
                raise ValueError("content")
        except (KeyError, ValueError, FileError):
            raise FileError(
                f"{path}: not written by a task, or damaged", "remove it and run its task again"
            ) from None
        _require_same(path, settings, self._settings)
        return records

    @contextmanager
    def saving(
        self, label: str, share: Share, records: list[dict[str, Any]]
    ) -> Iterator[Callable[[dict[str, Any]], None]]:
        """Yield a function that adds a record; records are saved periodically and at the end."""
        saved = time.monotonic()

        def add(record: dict[str, Any]) -> None:
            nonlocal saved
            records.append(record)
            if time.monotonic() - saved > SAVED_SECONDS:
                self._write(label, share, records)
                saved = time.monotonic()

        try:
            yield add
        finally:
            self._write(label, share, records)

    def _write(self, label: str, share: Share, records: list[dict[str, Any]]) -> None:
        try:
            os.makedirs(self._directory, exist_ok=True)
        except OSError as error:
            raise cannot("write", self._run, error) from None
        name = f"{label}-{share.number}-of-{share.count}.json"
        content = {"kind": KIND, "format": FORMAT, "settings": self._settings, "records": records}
        write_sealed(os.path.join(self._directory, name), content)


class OutputDirectory:
    """Output files, each with a record of its inputs, so that finished outputs are kept.

    A record is written after its output. An output counts as unfinished if it has no record or was
    changed afterwards.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            os.makedirs(path, exist_ok=True)
        except FileExistsError:
            raise ParameterError("{path}: exists and is not a directory", path=path) from None
        except OSError as error:
            raise cannot("write", path, error) from None

    def output_path(self, name: str) -> str:
        return os.path.join(self.path, name)

    def is_finished(self, name: str, made_from: dict[str, Any]) -> bool:
        """Whether this output exists, is unchanged, and was made from these inputs."""
        try:
            record = read_sealed(self.output_path(f".{name}.json"))
        except (FileError, ValueError):
            return False
        path = self.output_path(name)
        return (
            record.get("made_from") == made_from
            and os.path.isfile(path)
            and record.get("sha256") == file_digest(path)
        )

    def finish(self, name: str, made_from: dict[str, Any]) -> None:
        digest = file_digest(self.output_path(name))
        write_sealed(self.output_path(f".{name}.json"), {"made_from": made_from, "sha256": digest})


def output_names(sources: list[str], suffix: str) -> list[str]:
    """Name each output after its source plus the suffix; duplicate names are an error."""
    names = [f"{Path(source).name}{suffix}" for source in sources]
    first: dict[str, str] = {}
    for name, source in zip(names, sources, strict=True):
        if first.setdefault(name, source) is not source:
            raise ParameterError(
                "{first} and {second} would both be written to {name}",
                "use two commands, each with its own {out_dir}",
                first=first[name],
                second=source,
                name=name,
            )
    return names
