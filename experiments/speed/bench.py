"""What all measurements share: the folder, the data and the resvm command."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from experiments.speed.data import Data
from experiments.speed.measure import Steps, command

HAVE_JOBS = ("train", "predict", "tune", "rank")


@dataclass(frozen=True)
class Bench:
    """One run of the measurements."""

    folder: Path
    data: Data
    peers: tuple[str, ...] | None = None  # None: all peers that are installed
    timeout: float = 900.0

    @property
    def command(self) -> list[str]:
        """The command that a user would run: the resvm script next to this interpreter."""
        return [str(Path(sys.executable).with_name("resvm"))]

    def resvm(self, *arguments: object, threads: int | None = None) -> Steps:
        """Return a resvm command, limited to ``threads`` threads."""
        jobs = ["-j", threads] if threads and arguments[0] in HAVE_JOBS else []
        return command(*self.command, *arguments, *jobs)

    def wants(self, peer: str) -> bool:
        return self.peers is None or peer in self.peers
