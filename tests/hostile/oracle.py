"""How a run may end: an exit code of ours, words of ours, no traceback; what did harm is kept."""

from __future__ import annotations

import hashlib
import resource
from contextlib import suppress
from pathlib import Path

from tests.programs import Ran, run_forked

MOST_MEMORY = 4 << 30
CODES = (0, 2, 3, 4, 5)
KEPT = Path(__file__).parent / "cases"  # files that once did harm
harms: list[str] = []  # what went wrong, in words


def limit_memory() -> None:
    """Limit this process and what it starts from now on."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def resvm(*arguments: object, env: dict[str, str] | None = None) -> Ran:
    """Run resvm to its end; a code below 0 is the signal that ended it."""
    try:
        return run_forked(*arguments, env={"COLUMNS": "100", "NO_COLOR": "1", **(env or {})})
    except TimeoutError as late:
        return Ran(-9, b"", str(late))


def fault_of(ran: Ran) -> str | None:
    """Return what is wrong with how a run ended; None if nothing is."""
    silent = ran.code != 0 and not ran.err.strip()
    foreign = "Traceback" in ran.err or "Warning: " in ran.err
    if ran.code not in CODES or foreign or silent:
        return f"exit {ran.code}: {ran.err[-500:]}"
    return None


def require(name: str, text: bytes, ran: Ran) -> None:
    """Keep the file that was read if its run did not end well."""
    if fault := fault_of(ran):
        reproach(name, text, fault)


def reproach(name: str, text: bytes, what: str) -> None:
    """Keep a file that did harm, and tell of it at the end."""
    KEPT.mkdir(exist_ok=True)
    digest = hashlib.sha256(text).hexdigest()[:12]
    (KEPT / f"{name.replace(', ', '-').replace(' ', '-')}-{digest}").write_bytes(text)
    harms.append(f"{name}: {what}")
