"""What all measurements share: the folder, the sizes of the work and the resvm command."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from perf.data import Data
from perf.measure import Steps, command, run
from perf.sizes import Sizes


@dataclass(frozen=True)
class Bench:
    """One run of the measurements."""

    folder: Path
    data: Data
    sizes: Sizes
    peers: tuple[str, ...] | None = None  # None: all peers that are installed

    @cached_property
    def command(self) -> list[str]:
        """The command that a user would run: the resvm script next to this interpreter."""
        script = Path(sys.executable).with_name("resvm")
        return [str(script)] if script.exists() else [sys.executable, "-m", "resvm_cli"]

    def resvm(self, *arguments: object, threads: int | None = None) -> Steps:
        """Return a resvm command, limited to ``threads`` threads if the command has --jobs."""
        jobs = ["-j", threads] if threads and arguments[0] in self._takes_jobs else []
        return command(*self.command, *arguments, *jobs)

    @cached_property
    def _takes_jobs(self) -> set[str]:
        taking = set()
        for name in ("train", "predict", "tune"):
            text = self.folder / f"{name}.help"
            run(self.resvm_help(name), stdout=text)
            if "--jobs" in text.read_text():
                taking.add(name)
        return taking

    def resvm_help(self, name: str) -> Steps:
        return command(*self.command, name, "--help")

    def wants(self, peer: str) -> bool:
        return self.peers is None or peer in self.peers
