"""A model directory to what it holds, every digest verified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resvm_cli.files import model_dir
from resvm_cli.files.atomic import read_steadily


@dataclass(frozen=True)
class Inspection:
    """An intact model: its manifest and some totals."""

    path: str
    manifest: dict[str, Any]
    n_members: int
    n_support_vectors: int  # over all members
    n_pool: int  # distinct ones
    n_bytes: int


def inspect(path: str) -> Inspection:
    """Read and verify a model; raises ModelError on its first fault."""
    return read_steadily(path, lambda: _inspect(path))


def _inspect(path: str) -> Inspection:
    stored = model_dir.load(path)
    if stored.manifest.get("out_of_bag") is not None:
        model_dir.load_out_of_bag(path, stored.manifest)
    members = stored.manifest["members"]
    return Inspection(
        path=path,
        manifest=stored.manifest,
        n_members=len(members),
        n_support_vectors=sum(len(member.support) for member in stored.ensemble.members),
        n_pool=len(stored.ensemble.pool),
        n_bytes=sum(int(entry["bytes"]) for entry in members),
    )
