"""What the tasks of an array job leave for the run they belong to: a sealed file for each."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

from resvm_cli.errors import CommandLineError, FileError, ModelError
from resvm_cli.files.atomic import TEMPORARY
from resvm_cli.files.run_directory import TASKS
from resvm_cli.files.sealed_json import read_sealed, write_sealed
from resvm_cli.files.streams import cannot
from resvm_cli.running.array_tasks import Share

KIND = "resvm-task"
FORMAT = 1
SAVED_SECONDS = 30.0  # a killed task loses no more


class TaskFiles:
    """The files of all tasks of one run; each is written by one task alone."""

    def __init__(
        self, directory: str, settings: dict[str, Any], is_record: Callable[[Any], bool]
    ) -> None:
        self._is_record = is_record
        self._run = directory
        self._directory = os.path.join(directory, TASKS)
        self._settings = json.loads(json.dumps(settings))

    def read(self) -> list[dict[str, Any]]:
        """The records of all files, which must be of the same settings."""
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
        except (KeyError, ValueError, ModelError):
            raise FileError(
                f"{path}: is not what a task wrote, or damaged", "remove it and run its task again"
            ) from None
        now = self._settings
        changed = sorted(key for key in {*settings, *now} if settings.get(key) != now.get(key))
        if changed:
            raise CommandLineError(
                f"{path}: was judged with other settings: {', '.join(changed)}",
                "repeat the command as it was, or begin anew with another -o",
            )
        return records

    def write(self, label: str, share: Share, records: list[dict[str, Any]]) -> None:
        """What a task has done of its share, in place of what it had done before."""
        try:
            os.makedirs(self._directory, exist_ok=True)
        except OSError as error:
            raise cannot("write", self._run, error) from None
        name = f"{label}-{share.number}-of-{share.count}.json"
        content = {
            "kind": KIND,
            "format": FORMAT,
            "settings": self._settings,
            "records": records,
        }
        write_sealed(os.path.join(self._directory, name), content)


class SavedShare:
    """The records of one task's share, saved now and then, and in the end also where it fails."""

    def __init__(
        self, files: TaskFiles, label: str, share: Share, records: list[dict[str, Any]]
    ) -> None:
        self._files, self._label, self._share = files, label, share
        self._records = records
        self._last = time.monotonic()

    def add(self, record: dict[str, Any]) -> None:
        self._records.append(record)
        if time.monotonic() - self._last > SAVED_SECONDS:
            self._save()

    def _save(self) -> None:
        self._files.write(self._label, self._share, self._records)
        self._last = time.monotonic()

    def __enter__(self) -> SavedShare:
        return self

    def __exit__(self, *_: object) -> None:
        self._save()
