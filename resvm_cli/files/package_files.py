"""Texts that come with the program."""

from __future__ import annotations

from importlib.resources import files


def package_text(name: str) -> str:
    """A text file of the package, by its path there."""
    return (files("resvm_cli") / name).read_text(encoding="utf-8")
