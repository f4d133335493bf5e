"""Run one case in separate processes, measure time and peak memory, and check exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

LAUNCHER = Path(__file__).with_name("launcher.py")
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)

# Steps run one after the other. A step is a pipeline of programs; a program is a list of arguments.
Steps: TypeAlias = Sequence[Sequence[Sequence[str]]]


class Failed(Exception):
    """A program failed or timed out; the message says how."""


@dataclass(frozen=True)
class Run:
    """The time and memory used by one run of a case."""

    seconds: float
    peak_mb: float
    cpu_seconds: float = 0.0  # total over all programs and threads


def command(*arguments: object) -> Steps:
    """Return the steps for running a single program."""
    return [[[str(argument) for argument in arguments]]]


def run(
    steps: Steps, *, stdout: Path | None = None, threads: int | None = 1, timeout: float = 600.0
) -> Run:
    """Run these steps; if ``threads`` is None, the programs choose their number of threads."""
    environment = {
        name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES
    }
    # allow bytecode caches: otherwise every run would compile all modules again
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if threads is not None:
        environment |= dict.fromkeys(THREAD_VARIABLES, str(threads))
    with tempfile.NamedTemporaryFile() as stderr:
        task = {
            "steps": steps,
            "stdout": os.devnull if stdout is None else str(stdout),
            "stderr": stderr.name,
            "environment": environment,
            "timeout": timeout,
        }
        # -I -S keep the launcher small: only the interpreter is loaded
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(LAUNCHER)],
            input=json.dumps(task).encode(),
            capture_output=True,
        )
        if done.returncode:
            raise Failed(_last_line(done.stderr))
        result = json.loads(done.stdout)
        if result["seconds"] >= timeout:
            raise Failed(f"stopped after {timeout:g} s")
        if result["code"]:
            last_line = _last_line(Path(stderr.name).read_bytes())
            raise Failed(f"exit code {result['code']}: {last_line}")
    return Run(result["seconds"], result["peak_kb"] / 1024, result["cpu_seconds"])


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "nothing on stderr"
