"""A directory that grows while a long job runs: settings, and append-only logs of JSON lines.

A line counts once it is complete: a process killed in the middle of one leaves a torn line, which
the next run cuts off. One process at a time may write.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from resvm_cli.errors import CommandLineError, FileError
from resvm_cli.files.atomic import is_left_behind, whole_file
from resvm_cli.files.json_objects import json_object
from resvm_cli.files.streams import cannot
from resvm_cli.running import interruption

SETTINGS = "settings.json"
LOCK = ".lock"
LARGEST_JSON = 1 << 24
TASKS = "tasks"  # what tasks of an array job left here for the run


class RunDirectory:
    """The directory of one run; ``recorded`` holds the lines that an earlier part of it left."""

    def __init__(
        self,
        path: str,
        log: str,
        settings: dict[str, Any],
        *,
        resume: bool,
        lines_stand_alone: bool = False,  # one that is damaged can be done again by itself
    ) -> None:
        self.path = path
        self.damaged: list[str] = []  # lines that were taken out, by file and number
        self._lines_stand_alone = lines_stand_alone
        self._settings = settings
        self._log_name = log
        self._directory = Path(path)
        self._logs: dict[str, int] = {}
        if os.path.lexists(path) and not resume and not self._has_not_begun():
            raise CommandLineError(
                f"{path}: already there",
                "continue it with --resume, or choose another place with -o",
            )

    def _has_not_begun(self) -> bool:
        """Whether it holds what tasks did for the run, or a killed one left, and no run yet."""
        try:
            return all(
                name in (LOCK, TASKS) or is_left_behind(name) for name in os.listdir(self.path)
            )
        except OSError:
            return False

    @contextmanager
    def opened(self) -> Iterator[list[dict[str, Any]]]:
        """Make or continue the directory; yields what was recorded before."""
        try:
            self._directory.mkdir(exist_ok=True)
        except FileNotFoundError:
            parent = self._directory.parent
            raise FileError(
                f"{self.path}: its parent directory does not exist", f"mkdir -p {parent}"
            ) from None
        except OSError as error:
            raise cannot("write", self.path, error) from None
        self._refuse_foreign()
        with self._locked():
            self._settle()
            records = self._recover(self._log_name)
            try:
                yield records
            finally:
                for descriptor in self._logs.values():
                    with suppress(OSError):  # what could not be written was told
                        os.close(descriptor)

    def _refuse_foreign(self) -> None:
        """Leave a directory alone that is not of this command: not even a lock is put there."""
        if os.path.lexists(self._directory / SETTINGS) or self._has_not_begun():
            return
        if os.path.lexists(self._directory / self._log_name):
            raise FileError(f"{self.path}: {SETTINGS} is gone", "begin again elsewhere")
        raise CommandLineError(
            f"{self.path}: is not a directory of this command", "choose another place with -o"
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self._directory / LOCK
        descriptor = None
        try:
            with interruption.held(str(lock)):  # it is ours to remove as soon as it is made
                descriptor = self._lock(lock)
            yield
        finally:
            if descriptor is not None:
                with suppress(OSError):
                    os.unlink(lock)  # while it is held, so that nobody else's is removed
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
                    f"{self.path}: another process is writing there", "wait for it to end"
                ) from None
            except OSError:
                pass  # some network file systems cannot lock
            with suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                    return descriptor
            os.close(descriptor)  # its holder removed it just now: another may have made a new one

    def _settle(self) -> None:
        """Write the settings, or refuse to go on with others than it was begun with."""
        if not os.path.lexists(self._directory / SETTINGS):
            self.write(SETTINGS, self._settings)
            return
        self._require_same_settings()

    def _require_same_settings(self) -> None:
        path = self._directory / SETTINGS
        before = _object(_read_regular(path))
        if before is None:
            raise FileError(f"{path}: is damaged", "begin again elsewhere")
        now = json.loads(json.dumps(self._settings))
        changed = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        if changed:
            raise CommandLineError(
                f"{self.path}: was begun with other settings: {', '.join(changed)}",
                "repeat the command as it was, or begin anew with another -o",
            )

    def recorded(self) -> list[dict[str, Any]]:
        """What a run has recorded here so far, for one that reads alone: it may be at work."""
        if not os.path.lexists(self._directory / SETTINGS):
            return []
        self._require_same_settings()
        return self._sound_lines(self._log_name)[0]

    def _recover(self, name: str) -> list[dict[str, Any]]:
        """The sound lines of a log; what else it holds is taken out."""
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
        """What a log's sound lines say, their text, and all of its text."""
        path = self._directory / name
        if not os.path.lexists(path):
            return [], b"", b""
        text = _read_regular(path)
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
                raise FileError(f"{path}:{number}: is damaged", "begin again elsewhere")
        return records, b"".join(sound), text

    def append(self, name: str, record: dict[str, Any]) -> None:
        """Add one line; it is with the system when this returns."""
        path = self._directory / name
        try:
            if name not in self._logs:
                if name != self._log_name:
                    self._recover(name)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                self._logs[name] = os.open(path, flags, 0o666)
            # without a buffer: what a full disk did not take must not be tried again on closing
            line = json.dumps(record).encode() + b"\n"
            while line:
                line = line[os.write(self._logs[name], line) :]
        except OSError as error:
            raise cannot("write", str(path), error) from None

    def read(self, name: str) -> dict[str, Any] | None:
        """A file of JSON that an earlier run wrote; None where there is none."""
        path = self._directory / name
        if not os.path.lexists(path):
            return None
        content = _object(_read_regular(path))
        if content is None:
            raise FileError(f"{path}: is damaged", "begin again elsewhere")
        return content

    def rewrite(self, name: str, records: Iterable[dict[str, Any]]) -> None:
        """A log anew, in another order; it is the old one or the new one, whatever happens."""
        with whole_file(str(self._directory / name)) as handle:
            for record in records:
                handle.write(json.dumps(record).encode() + b"\n")

    def write(self, name: str, content: dict[str, Any]) -> None:
        """A file of JSON that appears whole."""
        with whole_file(str(self._directory / name)) as handle:
            handle.write(json.dumps(content, indent=1).encode() + b"\n")


def _object(text: bytes) -> dict[str, Any] | None:
    """The JSON object that a text is; None where it is something else."""
    try:
        return json_object(text)
    except ValueError:
        return None


def _read_regular(path: Path) -> bytes:
    """All of a file; a pipe in its place would be waited for without an end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as handle:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise FileError(f"{path}: not a regular file", "begin again elsewhere")
            return handle.read()
    except OSError as error:
        raise cannot("read", str(path), error) from None


def read_json(path: str, *, may_wait: bool = True) -> dict[str, Any]:
    """A JSON object from a file that a user names; a pipe may be waited for, or is refused."""
    try:
        if may_wait:
            with open(path, "rb") as handle:
                text = handle.read(LARGEST_JSON)
        else:
            text = _read_regular(Path(path))
    except OSError as error:
        raise cannot("read", path, error) from None
    content = _object(text)
    if content is None:
        raise FileError(f"{path}: is not JSON that resvm wrote")
    return content
