"""A directory of outputs, each with a record of what it was made from, so that none is made twice.

The record is written after its output, so that an output that a killed process left, or that was
changed since, counts as not made.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from resvm_cli.errors import CommandLineError, ModelError
from resvm_cli.files.sealed_json import read_sealed, write_sealed
from resvm_cli.files.streams import cannot, open_source, raw_pieces


class OutputDirectory:
    """Where outputs go, and what is known of those that are there."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            os.makedirs(path, exist_ok=True)
        except FileExistsError:
            raise CommandLineError(f"{path}: exists and is not a directory") from None
        except OSError as error:
            raise cannot("write", path, error) from None

    def place(self, name: str) -> str:
        """The path of an output."""
        return os.path.join(self.path, name)

    def _record(self, name: str) -> str:
        return os.path.join(self.path, f".{name}.json")

    def is_finished(self, name: str, made_from: dict[str, Any]) -> bool:
        """Whether this output is there, whole, and was made from the same."""
        try:
            record = read_sealed(self._record(name))
        except (ModelError, ValueError):
            return False
        return (
            record.get("made_from") == made_from
            and os.path.isfile(self.place(name))
            and record.get("sha256") == file_digest(self.place(name))
        )

    def finish(self, name: str, made_from: dict[str, Any]) -> None:
        """Note what an output that is written was made from."""
        digest = file_digest(self.place(name))
        write_sealed(self._record(name), {"made_from": made_from, "sha256": digest})


def file_digest(path: str) -> str:
    """SHA-256 of a file's bytes, as they lie there."""
    digest = hashlib.sha256()
    descriptor = open_source(path)
    try:
        for piece in raw_pieces(descriptor, path):
            digest.update(piece)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def output_names(sources: list[str], suffix: str) -> list[str]:
    """The name of each source's output: its own and the suffix; no two may be alike."""
    names = [f"{Path(source).name}{suffix}" for source in sources]
    first: dict[str, str] = {}
    for name, source in zip(names, sources, strict=True):
        if first.setdefault(name, source) is not source:
            raise CommandLineError(
                f"{first[name]} and {source} would both be written to {name}",
                "give them to two commands, with two --out-dir",
            )
    return names
