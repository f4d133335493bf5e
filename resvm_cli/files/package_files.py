"""Texts that come with the program."""

from __future__ import annotations


def package_text(name: str) -> str:
    """A text file of the package, by its path there."""
    from importlib.resources import files  # a plain run needs none

    return (files("resvm_cli") / name).read_text(encoding="utf-8")
