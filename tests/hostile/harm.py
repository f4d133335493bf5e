"""What did harm: told at the end, and kept as files for the tests."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.programs import Ran

harms: list[str] = []  # what went wrong, in words
CODES = (0, 2, 3, 4, 5)
KEPT = Path(__file__).parent / "cases"  # files that once did harm


def keep(name: str, text: bytes) -> None:
    KEPT.mkdir(exist_ok=True)
    digest = hashlib.sha256(text).hexdigest()[:12]
    (KEPT / f"{name.replace(', ', '-').replace(' ', '-')}-{digest}").write_bytes(text)


def require(name: str, text: bytes, ran: Ran) -> None:
    """A run that ended as ours do, in words of ours and not of a library; else it is harm."""
    silent = ran.code != 0 and not ran.err.strip()
    foreign = "Traceback" in ran.err or "Warning: " in ran.err
    if ran.code not in CODES or foreign or silent:
        keep(name, text)
        harms.append(f"{name}: exit {ran.code}: {ran.err[-500:]}")


def reproach(name: str, text: bytes, what: str) -> None:
    """A run that ended well and did wrong."""
    keep(name, text)
    harms.append(f"{name}: {what}")
