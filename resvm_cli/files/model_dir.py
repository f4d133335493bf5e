"""The model directory, format 1: ``manifest.json`` and ``members/00000.model ...``.

Reading trusts nothing: sizes and digests are checked before anything is parsed, names are computed
and not taken from the manifest, links are not followed. See the README for the specification.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resvm_cli.ensemble.methods import METHOD_NAMES
from resvm_cli.ensemble.model import Ensemble
from resvm_cli.errors import CommandLineError, FileError, ModelError
from resvm_cli.files.atomic import recover, whole_directory
from resvm_cli.files.model_text import format_members, parse_members
from resvm_cli.svm.kernels import KERNEL_NAMES, Kernel

FORMAT = 1
KIND = "resvm-model"
MANIFEST = "manifest.json"
MEMBERS = "members"
LARGEST_MANIFEST = 1 << 28
TRAIN_AGAIN = "copy the model again from where it was whole, or train it again"


@dataclass(frozen=True)
class StoredModel:
    """A model read from disk: its manifest and its members."""

    manifest: dict[str, Any]
    ensemble: Ensemble

    @property
    def zero_based(self) -> bool:
        return bool(self.manifest["zero_based"])


def member_name(number: int) -> str:
    return f"{MEMBERS}/{number:05d}.model"


def check_target(path: str, *, force: bool) -> None:
    """Refuse a place where a model must not be written, before any work is done."""
    recover(path)
    if not os.path.lexists(path):
        parent = os.path.dirname(os.path.realpath(path))
        if not os.path.isdir(parent):
            raise CommandLineError(
                f"{path}: its parent directory does not exist", f"mkdir -p {parent}"
            )
        if not os.access(parent, os.W_OK | os.X_OK):
            raise FileError(f"{path}: cannot write: no permission in {parent}")
        return
    if not _looks_like_model(Path(path)):
        raise CommandLineError(
            f"{path}: exists and is not a resvm model; it will not be overwritten",
            "choose another place with -o",
        )
    if not force:
        raise CommandLineError(
            f"{path}: a model is already there", "choose another place with -o, or add --force"
        )


def _looks_like_model(path: Path) -> bool:
    try:
        with open(path / MANIFEST, "rb") as handle:
            return f'"kind": "{KIND}"'.encode() in handle.read(4096)
    except OSError:
        return False


def save(
    path: str, ensemble: Ensemble, description: dict[str, Any], *, force: bool
) -> dict[str, Any]:
    """Write a model and return its manifest: ``description`` and the list of members."""
    with whole_directory(path, replace=force) as directory:
        (directory / MEMBERS).mkdir()
        entries = []
        for number, text in enumerate(format_members(ensemble)):
            member = ensemble.members[number]
            (directory / member_name(number)).write_bytes(text)
            entries.append(
                {
                    "file": member_name(number),
                    "sha256": hashlib.sha256(text).hexdigest(),
                    "bytes": len(text),
                    "support_vectors": len(member.support),
                }
            )
        manifest = {"kind": KIND, "format": FORMAT, **description, "members": entries}
        manifest["manifest_sha256"] = _own_digest(manifest)
        (directory / MANIFEST).write_bytes(_render(manifest))
    return manifest


def load(path: str) -> StoredModel:
    """Read a model, refusing it with its first fault."""
    manifest = read_manifest(path)
    try:
        kernel = Kernel(
            manifest["kernel"]["name"],
            gamma=float(manifest["kernel"].get("gamma", 0.0)),
            coef0=float(manifest["kernel"].get("coef0", 0.0)),
            degree=int(manifest["kernel"].get("degree", 3)),
        )
        if kernel.name not in KERNEL_NAMES or manifest["method"] not in METHOD_NAMES:
            raise ValueError
        single = manifest["method"] == "cwsvm"
        sizes = [(str(entry["sha256"]), int(entry["bytes"])) for entry in manifest["members"]]
        int(manifest["zero_based"])
        if not sizes:
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ModelError(f"{path}/{MANIFEST}: incomplete or inconsistent", TRAIN_AGAIN) from None
    texts = []
    for number, (digest, size) in enumerate(sizes):
        name = f"{path}/{member_name(number)}"
        text = _read_bounded(Path(path), member_name(number), name, size)
        if len(text) != size or hashlib.sha256(text).hexdigest() != digest:
            raise ModelError(f"{name}: changed since it was written (digest differs)", TRAIN_AGAIN)
        texts.append((name, text))
    return StoredModel(manifest, parse_members(texts, kernel, single))


def read_manifest(path: str) -> dict[str, Any]:
    """The manifest, checked against its own digest and format number."""
    recover(path)
    if not os.path.isdir(path):
        raise ModelError(
            f"{path}: no model directory there",
            "a model is the directory that resvm train wrote with -o",
        )
    name = f"{path}/{MANIFEST}"
    if not os.path.lexists(name):
        raise ModelError(f"{path}: not a resvm model: it has no {MANIFEST}")
    text = _read_bounded(Path(path), MANIFEST, name, LARGEST_MANIFEST)
    damaged = ModelError(f"{name}: damaged or edited", TRAIN_AGAIN)
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError):
        raise damaged from None
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise ModelError(f"{name}: not the manifest of a resvm model")
    if manifest.get("format") != FORMAT:
        raise ModelError(
            f"{name}: format {manifest.get('format')!r} is not one this version reads ({FORMAT})",
            "install the version of resvm-cli that wrote it, or a newer one",
        )
    # the file must be byte for byte what this content is written as
    if manifest.get("manifest_sha256") != _own_digest(manifest) or text != _render(manifest):
        raise damaged
    return manifest


def _own_digest(manifest: dict[str, Any]) -> str:
    content = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _render(manifest: dict[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1, ensure_ascii=True) + "\n").encode("ascii")


def _read_bounded(directory: Path, relative: str, name: str, limit: int) -> bytes:
    """A regular file inside the model: ``limit`` bytes, and one more where there are."""
    try:
        for part in Path(relative).parents:
            if (directory / part).is_symlink() and part != Path():
                raise ModelError(f"{name}: a link leads out of the model", TRAIN_AGAIN)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(directory / relative, flags)
        with open(descriptor, "rb") as handle:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise ModelError(f"{name}: not a regular file", TRAIN_AGAIN)
            return handle.read(limit + 1)
    except OSError as error:
        raise ModelError(f"{name}: cannot read: {error.strerror}", TRAIN_AGAIN) from None
