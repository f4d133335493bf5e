"""Style sheets and scripts that come with the package."""

from __future__ import annotations

from importlib.resources import files


def read_asset(name: str) -> str:
    """The text of a file in report/."""
    return (files("resvm_cli") / "report" / name).read_text(encoding="utf-8")
