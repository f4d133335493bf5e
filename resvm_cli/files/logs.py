"""A directory that grows while a long job runs: settings, and append-only logs of JSON lines.

A line counts once it is complete: a process killed in the middle of one leaves a torn line, which
the next run cuts off. One process at a time may write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from resvm_cli.errors import CommandLineError, FileError
from resvm_cli.files.atomic import whole_file
from resvm_cli.files.streams import cannot

SETTINGS = "settings.json"
LOCK = ".lock"
TASKS = "tasks"  # what tasks of an array job left here for the run


class RunDirectory:
    """The directory of one run; ``recorded`` holds the lines that an earlier part of it left."""

    def __init__(self, path: str, log: str, settings: dict[str, Any], *, resume: bool) -> None:
        self.path = path
        self._settings = settings
        self._log_name = log
        self._directory = Path(path)
        self._logs: dict[str, BinaryIO] = {}
        if os.path.lexists(path) and not resume and not self._awaits_its_run():
            raise CommandLineError(
                f"{path}: already there",
                "continue it with --resume, or choose another place with -o",
            )

    def _awaits_its_run(self) -> bool:
        """Whether tasks alone have worked here."""
        return self._directory.is_dir() and os.listdir(self._directory) == [TASKS]

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
        with self._locked():
            self._settle()
            records = self._recover(self._log_name)
            try:
                yield records
            finally:
                for handle in self._logs.values():
                    handle.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        import fcntl

        try:
            descriptor = os.open(self._directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise cannot("write", self.path, error) from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FileError(
                    f"{self.path}: another process is writing there", "wait for it to end"
                ) from None
            except OSError:
                pass  # some network file systems cannot lock
            yield
            with suppress(OSError):
                os.unlink(self._directory / LOCK)
        finally:
            os.close(descriptor)

    def _settle(self) -> None:
        """Write the settings, or refuse to go on with others than it was begun with."""
        path = self._directory / SETTINGS
        if not path.exists():
            if (self._directory / self._log_name).exists():
                raise FileError(f"{self.path}: {SETTINGS} is gone", "begin again elsewhere")
            others = {entry.name for entry in self._directory.iterdir()} - {LOCK, TASKS}
            if others:
                raise CommandLineError(
                    f"{self.path}: is not a directory of this command",
                    "choose another place with -o",
                )
            self.write(SETTINGS, self._settings)
            return
        before = self._read_settings(path)
        now = json.loads(json.dumps(self._settings))
        changed = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        if changed:
            raise CommandLineError(
                f"{self.path}: was begun with other settings: {', '.join(changed)}",
                "repeat the command as it was, or begin anew with another -o",
            )

    def _read_settings(self, path: Path) -> dict[str, Any]:
        try:
            settings = json.loads(path.read_bytes())
        except OSError as error:
            raise cannot("read", str(path), error) from None
        except ValueError:
            settings = None
        if not isinstance(settings, dict):
            raise FileError(f"{path}: is damaged", "begin again elsewhere")
        return settings

    def _recover(self, name: str) -> list[dict[str, Any]]:
        """The complete lines of a log; what follows them is cut off."""
        path = self._directory / name
        try:
            text = path.read_bytes() if path.exists() else b""
            records: list[dict[str, Any]] = []
            end = 0
            for line in text.splitlines(keepends=True):
                record = _record(line)
                if record is None:
                    if end + len(line) < len(text):
                        raise FileError(
                            f"{path}:{len(records) + 1}: is damaged", "begin again elsewhere"
                        )
                    break
                records.append(record)
                end += len(line)
            if end < len(text):
                os.truncate(path, end)
        except OSError as error:
            raise cannot("read", str(path), error) from None
        return records

    def append(self, name: str, record: dict[str, Any]) -> None:
        """Add one line; it is with the system when this returns."""
        try:
            if name not in self._logs:
                if name != self._log_name:
                    self._recover(name)
                self._logs[name] = open(self._directory / name, "ab")  # noqa: SIM115
            self._logs[name].write(json.dumps(record).encode() + b"\n")
            self._logs[name].flush()
        except OSError as error:
            raise cannot("write", str(self._directory / name), error) from None

    def write(self, name: str, content: dict[str, Any]) -> None:
        """A file of JSON that appears whole."""
        with whole_file(str(self._directory / name)) as handle:
            handle.write(json.dumps(content, indent=1).encode() + b"\n")


def _record(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def read_json(path: str) -> dict[str, Any]:
    """A JSON object from a file that a user names."""
    try:
        with open(path, "rb") as handle:
            content = json.loads(handle.read())
    except OSError as error:
        raise cannot("read", path, error) from None
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise FileError(f"{path}: is not JSON that resvm wrote")
    return content
