"""Files changed by someone who knows their structure: texts, JSON, models, parts."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

TOKENS = [
    b"", b"0", b"-1", b"1", b"1e400", b"-1e-400", b"9" * 30, b"9" * 400, b"nan", b"inf", b"-inf",
    b"1_0", b"\xd9\xa1", b"0x1p3", b"1:", b":1", b"0:1", b"2147483647:1", b"1:1 1:1", b"#", b"# x",
    b"qid:1", b"\0", b"\r", b"\r\n", b"\n", b"\t", b",", b'"', b"\x1b[31m", b"\xff", b"[/bold]",
    b"\xef\xbb\xbf", b"{", b"}", b"[" * 3000, b"null", b"true", b'"x"', b"1.", b".5", b"+1", b"--1",
    b"label", b"decision_value", b"id", b"\xe2\x80\xa8", b"\xc2\x85", b"\x1c", b"\x0b", b"infinity",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 3, 10**12, 10**30, 10**400, 0.5, -0.0, 1e308, "", "x", "[/bold]",
    "\x1b[31m", "\udcff", "../../x", [], {}, [1], {"a": 1}, [[]], "rbf", "linear", "cwsvm", "text",
    2**31, 2**53, 2**63, 2**64, -(2**63), "number", "morgan", "P", "a\nb",
]  # fmt: skip
_FIELDS = re.compile(rb"([\s,:]+)")


def mutated_text(text: bytes, rng: Random) -> bytes:
    """Text with a few tokens, lines or bytes changed."""
    for _ in range(rng.randrange(1, 4)):
        kind = rng.randrange(8)
        if kind == 0:
            parts = _FIELDS.split(text)
            parts[rng.randrange(len(parts))] = rng.choice(TOKENS)
            text = b"".join(parts)
        elif kind == 1:
            lines = text.split(b"\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            text = b"\n".join(lines)
        elif kind == 2:
            lines = text.split(b"\n")
            del lines[rng.randrange(len(lines))]
            text = b"\n".join(lines)
        elif kind == 3 and text:
            text = text[: rng.randrange(len(text))]
        elif kind == 4 and text:
            at = rng.randrange(len(text))
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
        elif kind == 5:
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(TOKENS) + text[at:]
        elif kind == 6:
            text = text.replace(b"\n", rng.choice([b"\r\n", b"\r", b" \n", b"\n\n"]))
        else:
            first, last = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
            text = text[:first] + text[last:]
    return text


def mutated_json(value: Any, rng: Random) -> Any:
    """The same structure with one value replaced, removed, added or taken from elsewhere."""
    places = list(_places(value))
    if not places:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    kind = rng.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[f"{key}_too"] = holder[key]
    elif kind == 2:
        other, place = rng.choice(places)
        holder[key] = json.loads(json.dumps(other.get(place) if isinstance(other, dict) else 1))
    else:
        holder[key] = rng.choice(VALUES)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    entries = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        entries = list(enumerate(value))
    for key, entry in list(entries):
        yield value, key
        if isinstance(entry, dict | list):
            yield from _places(entry)


def mutated_document(text: bytes, rng: Random) -> bytes:
    """JSON with its structure changed, or its text."""
    if rng.randrange(5) == 0:
        return mutated_text(text, rng)
    return json.dumps(mutated_json(json.loads(text), rng)).encode()


def mutated_log(text: bytes, rng: Random) -> bytes:
    """Lines of JSON, one of them changed, or their text."""
    if rng.randrange(3) == 0:
        return mutated_text(text, rng)
    lines = text.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = json.dumps(mutated_json(json.loads(lines[at]), rng)).encode()
    return b"\n".join([*lines, b""])


def mutated_seal(text: bytes, rng: Random) -> bytes:
    """JSON above its digest, changed, and mostly sealed again."""
    if rng.randrange(20) == 0:
        return mutated_text(text, rng)
    body = mutated_document(text.partition(b"\n")[0], rng).replace(b"\n", b" ")
    return body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n"


def packed(text: bytes, rng: Random) -> bytes:
    """As it is, compressed, or compressed and damaged."""
    kind = rng.randrange(8)
    if kind > 3:
        return text
    pack: Callable[[bytes], bytes] = (gzip.compress, bz2.compress, lzma.compress, bytes)[kind]
    return damaged(pack(text), rng)


def damaged(text: bytes, rng: Random) -> bytes:
    """Bytes that are as they were, have one changed, or are cut short."""
    if rng.randrange(2) and text:
        at = rng.randrange(len(text))
        text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
    return text if rng.randrange(3) else text[: rng.randrange(len(text) + 1)]


def mutated_model(files: dict[str, bytes], rng: Random) -> dict[str, bytes]:
    """The files of a model that have changed, with digests made anew: mostly."""
    manifest = json.loads(files["manifest.json"])
    kind = rng.randrange(4)
    changed: dict[str, bytes] = {}
    entry: dict[str, Any] = {}
    name = ""
    if kind == 0:
        at = rng.randrange(len(manifest["members"]))
        name, entry = f"members/{at:05d}.model", manifest["members"][at]
    elif kind == 1 and manifest.get("out_of_bag"):
        name, entry = "out_of_bag.tsv", manifest["out_of_bag"]
    else:
        manifest = mutated_json(manifest, rng)
    if name:
        text = mutated_text(files[name], rng)
        changed[name] = text
        entry |= {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    if rng.randrange(20):
        content = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        manifest["manifest_sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    changed["manifest.json"] = (json.dumps(manifest, indent=1) + "\n").encode()
    return changed


def mutated_part(files: dict[str, bytes], rng: Random) -> dict[str, bytes]:
    """The files of a part that have changed, each with its seal made anew: mostly."""
    members = sorted(name for name in files if name.endswith(".model"))
    name = rng.choice(members)
    record = f"{name.removesuffix('.model')}.json"
    kind = rng.randrange(3)
    if kind == 0:
        return {"part.json": mutated_seal(files["part.json"], rng)}
    if kind == 1:
        return {record: mutated_seal(files[record], rng)}
    text = mutated_text(files[name], rng)
    content = json.loads(files[record].partition(b"\n")[0])
    content |= {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    body = json.dumps(content).encode()
    return {name: text, record: body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n"}
