"""The model directory: ``manifest.json``, ``members/00000.model ...`` and ``out_of_bag.tsv``.

If the members were trained on bags, ``out_of_bag.tsv`` contains out-of-bag values for known
positives and rows of U; it is read only when they are needed. Files are not trusted: sizes and
digests are checked before parsing, file names are computed rather than taken from the manifest, and
links are not followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resvm_cli.data.atomic import read_consistently, recover, true_path, whole_directory
from resvm_cli.data.json_files import parse_object
from resvm_cli.data.scaling import Scaling
from resvm_cli.ensemble.decisions import DecisionRule, OutOfBag
from resvm_cli.ensemble.ensemble import Ensemble, Section
from resvm_cli.ensemble.plan import BAG_RULE, WEIGHTED_RULE, Plan
from resvm_cli.errors import FileError, ModelError, ParameterError
from resvm_cli.parameters import METHOD_NAMES, ScalingName
from resvm_cli.records import dataclass
from resvm_cli.storage.members import (
    MEMBERS,
    TRAIN_AGAIN,
    member_entry,
    member_name,
    parse_members,
    read_bounded,
    read_member,
    read_verified,
)

if TYPE_CHECKING:
    from resvm_cli.data.encoding import FeatureMap

OUT_OF_BAG = "out_of_bag.tsv"
FORMAT = 1
KIND = "resvm-model"
MANIFEST = "manifest.json"
MAX_MANIFEST = 1 << 28
MAX_NAME = 200


@dataclass(frozen=True)
class StoredModel:
    """A model in memory: its manifest and its members."""

    manifest: dict[str, Any]
    plan: Plan
    decision: DecisionRule
    ensemble: Ensemble
    out_of_bag: OutOfBag | None = None  # also None if it was not read
    encoding: FeatureMap | None = None  # of table columns, if trained on a table

    @property
    def zero_based(self) -> bool:
        return bool(self.manifest["zero_based"])

    @property
    def last_feature(self) -> int:
        """The largest feature index in the training data."""
        return int(self.manifest["n_features"]) - (1 if self.zero_based else 0)


def check_model_target(path: str, *, force: bool) -> None:
    """Check that a model may be written to this path, before any work is done."""
    target = require_parent(path)
    if not target.name:
        raise ParameterError(f"`path` is '{path}'; expected the name of a new directory")
    if len(os.fsencode(target.name)) > MAX_NAME:
        raise ParameterError(f"{path}: the name is too long (at most {MAX_NAME} bytes)")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise FileError(f"{path}: cannot write: no permission in {target.parent}")
    recover(path)
    if not os.path.lexists(target):
        return
    if not _is_only_a_model(target):
        raise ParameterError(
            f"{path}: already exists and either is not a resvm model or contains other files; not"
            " overwritten",
            "choose another `path`",
        )
    if not force:
        raise ParameterError(
            f"{path}: a model already exists there",
            "choose another `path`, or use `force=True`",
        )


def require_parent(path: str) -> Path:
    """Return the real path; it must have a name, and its parent directory must exist."""
    if path in ("", "-"):
        raise ParameterError(f"`path` is '{path}'; expected the name of a directory")
    target = true_path(path)
    if not target.parent.is_dir():
        raise ParameterError(
            f"{path}: its parent directory does not exist",
            f"mkdir -p {shlex.quote(str(target.parent))}",
        )
    return target


def _is_only_a_model(path: Path) -> bool:
    """Whether this directory contains a model and nothing else and may be replaced."""
    try:
        if set(os.listdir(path)) - {MANIFEST, MEMBERS, OUT_OF_BAG}:
            return False
        with open(path / MANIFEST, "rb") as handle:
            return f'"kind": "{KIND}"'.encode() in handle.read(4096)
    except OSError:
        return False


def save_model(
    path: str,
    texts: Iterable[bytes],
    description: dict[str, Any],
    *,
    force: bool,
    out_of_bag: OutOfBag | None = None,
) -> dict[str, Any]:
    """Write a model and return its manifest: ``description`` plus an entry for each file."""
    with whole_directory(
        path, may_replace=lambda target: force and _is_only_a_model(target)
    ) as directory:
        (directory / MEMBERS).mkdir()
        entries = []
        for number, text in enumerate(texts):
            name = member_name(number)
            (directory / name).write_bytes(text)
            entries.append({"file": name, **member_entry(text)})
        table = None
        if out_of_bag is not None:
            text = out_of_bag.format()
            (directory / OUT_OF_BAG).write_bytes(text)
            table = {
                "file": OUT_OF_BAG,
                "sha256": hashlib.sha256(text).hexdigest(),
                "bytes": len(text),
                "positives": int(out_of_bag.positive.sum()),
                "unlabeled": int(out_of_bag.unlabeled.sum()),
            }
            if out_of_bag.negative.any():
                table["negatives"] = int(out_of_bag.negative.sum())
        manifest = {
            "kind": KIND,
            "format": FORMAT,
            **description,
            "out_of_bag": table,
            "members": entries,
        }
        manifest["manifest_sha256"] = _own_digest(manifest)
        (directory / MANIFEST).write_bytes(_render(manifest))
    return manifest


def load_model(path: str) -> StoredModel:
    return read_consistently(path, lambda: _load(path))


def load_out_of_bag(path: str, manifest: dict[str, Any], *, of_positives: bool = True) -> OutOfBag:
    """Load the out-of-bag values; with ``of_positives``, some must belong to known positives."""
    entry = manifest.get("out_of_bag")
    if entry is None:
        raise ModelError(
            f"{path}: contains no out-of-bag values for known positives:"
            f" {manifest['method']} trains every member on all of P",
            "set `threshold` to a number, or train another model: resvm train `method='resvm'`",
        )
    name = f"{path}/{OUT_OF_BAG}"
    text = read_verified(name, entry)
    try:
        table = OutOfBag.parse(text)
    except ValueError:
        raise ModelError(f"{name}: damaged", TRAIN_AGAIN) from None
    if of_positives and not table.positive.any():
        raise ModelError(
            f"{path}: every member was trained on every known positive, so none is out of bag",
            "train with a smaller `n_pos`, or set `threshold` to a number",
        )
    return table


def load_with_out_of_bag(path: str, *, required: bool) -> StoredModel:
    """Load a model and its out-of-bag values, consistently even if the model is being replaced."""

    def load() -> StoredModel:
        stored = _load(path)
        if not required and stored.manifest.get("out_of_bag") is None:
            return stored
        table = load_out_of_bag(path, stored.manifest, of_positives=required)
        return replace(stored, out_of_bag=table)

    return read_consistently(path, load)


def _load(path: str) -> StoredModel:
    manifest = read_manifest(path)
    try:
        decision = DecisionRule.from_description(manifest["decision"])
        plan, sections = Plan.from_description(manifest, decision.rule)
        if plan.n_models != len(manifest["members"]):
            raise ValueError("members")
        scalings = _scalings(manifest, sections)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise ModelError(f"{path}/{MANIFEST}: incomplete or inconsistent", TRAIN_AGAIN) from None
    if os.path.islink(f"{path}/{MEMBERS}"):
        raise ModelError(f"{path}/{MEMBERS}: a link, which is not followed", TRAIN_AGAIN)
    texts = (
        (f"{path}/{member_name(number)}", read_member(path, number, entry))
        for number, entry in enumerate(manifest["members"])
    )
    ensemble = parse_members(texts, sections, manifest["method"] == "cwsvm")
    ensemble = replace(ensemble, scalings=scalings)
    return StoredModel(manifest, plan, decision, ensemble, encoding=stored_encoding(manifest))


def stored_encoding(manifest: dict[str, Any]) -> FeatureMap | None:
    """Return how a model encodes the columns of tables; None if it was trained on plain features.

    Raises ValueError if the manifest, which is not trusted, contains an invalid encoding.
    """
    if manifest["encoding"] is None:
        return None
    from resvm_cli.data.encoding import FeatureMap  # imported here because few models need it

    found = FeatureMap.from_content(manifest["encoding"])
    if found.missing is None or manifest["zero_based"]:
        raise ValueError("encoding")
    return found


def _scalings(manifest: dict[str, Any], sections: Sequence[Section]) -> dict[ScalingName, Scaling]:
    """Return the scalings by kind; raise ValueError if one is invalid or missing."""
    found = [Scaling.from_description(content) for content in manifest["scalings"]]
    scalings = {scaling.kind: scaling for scaling in found}
    if {section.scaling for section in sections} - {None, *scalings} or len(scalings) < len(found):
        raise ValueError("scalings")
    return scalings


def plan_of_part(description: dict[str, Any]) -> Plan:
    """Return the plan in the description of a part; raise ValueError if it is invalid."""
    try:
        if not fits({**description, "unconverged": 0, "decision": _NO_DECISION}, _REQUIRED):
            raise ValueError("description")
        plan, sections = Plan.from_description(description)
        _scalings(description, sections)
        stored_encoding(description)
    except (KeyError, TypeError, OverflowError, AttributeError) as error:
        raise ValueError("description") from error
    return plan


NUMBER = (float, int)
MEMBER_ENTRY = {"sha256": str, "bytes": int, "support_vectors": int}
_SET = {"rows": int, "nonzeros": int, "sha256": str, "weights_sha256?": str}
# The content of a manifest: for each key, optional with a question mark, what `fits` takes.
_REQUIRED: dict[str, Any] = {
    "method": METHOD_NAMES,
    "seed": int,
    "bags": (BAG_RULE, WEIGHTED_RULE),
    "n_features": int,
    "zero_based": bool,
    "groups": [{"members": int, "weight": NUMBER, "shift": NUMBER, "scale": NUMBER}],
    "candidates?": [dict],
    "decision": {"rule": str, "thresholds": dict},
    "labels": {"trained_on": (*NUMBER, type(None))},
    "data": {
        "positive": _SET,
        "unlabeled": _SET,
        "negative?": _SET,
        "groups?": {"count": int, "sha256": str},
    },
    "scalings": [dict],
    "encoding": (dict, type(None)),
    "unconverged": int,
    "versions": {"resvm": str, "numpy": str},
    "numeric_fingerprint": str,
}
_NO_DECISION = {"rule": "", "thresholds": {}}  # a part has none yet
_TABLE = {"file": str, "sha256": str, "bytes": int, "positives": int, "unlabeled": int}


def fits(value: Any, pattern: Any) -> bool:
    """Whether a value matches a pattern of keys, entries, types and allowed texts.

    An integer must not be negative. A pattern for a list holds the pattern of its entries.
    """
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(
            fits(value[name], part) if (name := key.rstrip("?")) in value else key.endswith("?")
            for key, part in pattern.items()
        )
    if isinstance(pattern, list):
        return isinstance(value, list) and all(fits(entry, pattern[0]) for entry in value)
    if isinstance(pattern, tuple):
        return value in pattern if isinstance(pattern[0], str) else type(value) in pattern
    return type(value) is pattern and (pattern is not int or value >= 0)


def _is_valid(manifest: dict[str, Any]) -> bool:
    try:
        stored_encoding(manifest)
    except (KeyError, TypeError, ValueError):
        return False
    members, table = manifest.get("members"), manifest.get("out_of_bag")
    return (
        fits(manifest, _REQUIRED)
        and bool(members)
        and fits(members, [MEMBER_ENTRY | {"file": str}])
        and (table is None or fits(table, _TABLE | {"negatives?": int}))
    )


def read_manifest(path: str) -> dict[str, Any]:
    """Read the manifest and check its digest and format."""
    recover(path)
    if not os.path.isdir(path):
        what = "a file, not a model" if os.path.exists(path) else "no such model directory"
        raise ModelError(
            f"{path}: {what}",
            "a model is a directory written by resvm train; put it first: predict MODEL FILE",
        )
    name = f"{path}/{MANIFEST}"
    if not os.path.lexists(name):
        raise ModelError(
            f"{path}: not a resvm model: it has no {MANIFEST}",
            "a model is a directory written by resvm train",
        )
    text = read_bounded(name, MAX_MANIFEST)
    damaged = ModelError(f"{name}: damaged or edited", TRAIN_AGAIN)
    try:
        manifest = parse_object(text)
    except ValueError:
        raise damaged from None
    if manifest.get("kind") != KIND:
        raise ModelError(f"{name}: not the manifest of a resvm model")
    if manifest.get("format") != FORMAT or manifest["format"] is True:
        raise ModelError(
            f"{name}: format {manifest.get('format')!r}; this version reads {FORMAT}",
            "install the version of resvm-cli that wrote it",
        )
    # the file must be byte-for-byte identical to what we would write
    try:
        whole = manifest.get("manifest_sha256") == _own_digest(manifest)
        whole = whole and text == _render(manifest)
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        raise damaged
    if not _is_valid(manifest):
        raise ModelError(f"{name}: incomplete or inconsistent", TRAIN_AGAIN)
    return manifest


def _own_digest(manifest: dict[str, Any]) -> str:
    content = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _render(manifest: dict[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1, allow_nan=False) + "\n").encode("ascii")
