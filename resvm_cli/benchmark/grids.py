"""The grids of the paper's protocol: those that come with the program, or the user's."""

from __future__ import annotations

import json

from resvm_cli.benchmark.protocol import Grids
from resvm_cli.files.json_files import read_json
from resvm_cli.files.streams import package_text

NAME = "benchmark/grids.json"


def default_text() -> str:
    """Ours, as a file."""
    return package_text(NAME)


def default_grids() -> Grids:
    return Grids.checked(json.loads(default_text()), NAME)


def read_grids(path: str) -> Grids:
    """A file that the user names."""
    return Grids.checked(read_json(path), path)
