"""Files that any command reads, changed by someone who knows their structure.

The oracle: a file is read or refused with an error of ours, never anything else; what is read is
what an independent reader reads. Through the program: an exit code from 0 and 2 to 5, no traceback.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import json
import lzma
import math
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import write_svm
from tests.hostile.forked import resvm

harms: list[str] = []  # what went wrong, in words
CODES = (0, 2, 3, 4, 5)
KEPT = Path(__file__).parent / "cases"  # files that once did harm
TOKENS = [
    b"", b"0", b"-1", b"1", b"1e400", b"-1e-400", b"9" * 30, b"9" * 400, b"nan", b"inf", b"-inf",
    b"1_0", b"\xd9\xa1", b"0x1p3", b"1:", b":1", b"0:1", b"2147483647:1", b"1:1 1:1", b"#", b"# x",
    b"qid:1", b"\0", b"\r", b"\r\n", b"\n", b"\t", b",", b'"', b"\x1b[31m", b"\xff", b"[/bold]",
    b"\xef\xbb\xbf", b"{", b"}", b"[" * 3000, b"null", b"true", b'"x"', b"1.", b".5", b"+1", b"--1",
    b"label", b"decision_value", b"id",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 3, 10**12, 10**30, 10**400, 0.5, -0.0, 1e308, "", "x", "[/bold]",
    "\x1b[31m", "\udcff", "../../x", [], {}, [1], {"a": 1}, [[]], "rbf", "linear", "cwsvm",
]  # fmt: skip


def make_files(folder: Path) -> Path:
    """One sound file of every kind, made by the program itself."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    ids = [f"r{number}" for number in range(30)]
    labels = np.repeat([1, -1], 15)
    write_svm(folder / "pos.svm", rng.standard_normal((20, 4)) + 1)
    write_svm(folder / "unl.svm", rng.standard_normal((40, 4)))
    write_svm(folder / "test.svm", rng.standard_normal((30, 4)), labels, comments=ids)
    (folder / "pred").write_text("1 0.9\n-1 0.1\n1 0.3\n-1 0.4\n")
    (folder / "ids").write_text("r1\nr2\n# comment\nr3\n")
    (folder / "names").write_text("".join(f"{name}\n" for name in ids))
    (folder / "groups").write_text("".join(f"g{number % 7}\n" for number in range(60)))
    (folder / "labels").write_text("".join(f"{label}\n" for label in labels))
    runs = [f"d{d},{n},{m},0.{n}{d}" for d in range(3) for n in range(3) for m in "ab"]
    (folder / "runs.csv").write_text("\n".join(["data set,repetition,method,value", *runs]) + "\n")
    data = ["-P", folder / "pos.svm", "-U", folder / "unl.svm", "-q", "--n-models", 3]
    for command in (
        ["train", *data, "-o", folder / "m"],
        ["tune", *data, "--oob", "--trials", 3, "--no-extend", "-o", folder / "t"],
        *(
            ["predict", folder / "m", folder / "test.svm", "--ids", "--format", form, "-o",
             folder / f"pred.{form}"]
            for form in ("text", "tsv", "csv", "jsonl")
        ),
    ):  # fmt: skip
        ran = resvm(*command)
        assert ran.code == 0, ran.err
    return folder


def mutated_text(text: bytes, rng: np.random.Generator) -> bytes:
    """Text with a few tokens, lines or bytes changed."""
    for _ in range(int(rng.integers(1, 4))):
        kind = rng.integers(8)
        if kind == 0:
            parts = re.split(rb"([\s,:]+)", text)
            parts[int(rng.integers(len(parts)))] = TOKENS[int(rng.integers(len(TOKENS)))]
            text = b"".join(parts)
        elif kind == 1:
            lines = text.split(b"\n")
            lines.insert(int(rng.integers(len(lines))), lines[int(rng.integers(len(lines)))])
            text = b"\n".join(lines)
        elif kind == 2:
            lines = text.split(b"\n")
            del lines[int(rng.integers(len(lines)))]
            text = b"\n".join(lines)
        elif kind == 3 and text:
            text = text[: int(rng.integers(len(text)))]
        elif kind == 4 and text:
            at = int(rng.integers(len(text)))
            text = text[:at] + bytes([int(rng.integers(256))]) + text[at + 1 :]
        elif kind == 5:
            at = int(rng.integers(len(text) + 1))
            text = text[:at] + TOKENS[int(rng.integers(len(TOKENS)))] + text[at:]
        elif kind == 6:
            text = text.replace(b"\n", [b"\r\n", b"\r", b" \n", b"\n\n"][int(rng.integers(4))])
        else:
            first, last = sorted(rng.integers(0, len(text) + 1, 2).tolist())
            text = text[:first] + text[last:]
    return text


def mutated_json(value: Any, rng: np.random.Generator) -> Any:
    """The same structure with one value replaced, removed or added."""
    places = list(_places(value))
    holder, key = places[int(rng.integers(len(places)))]
    kind = rng.integers(4)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[f"{key}_too"] = holder[key]
    else:
        holder[key] = VALUES[int(rng.integers(len(VALUES)))]
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in list(entries):
        yield value, key
        if isinstance(entry, dict | list):
            yield from _places(entry)


def packed(text: bytes, rng: np.random.Generator) -> bytes:
    """As it is, compressed, or compressed and damaged."""
    kind = rng.integers(8)
    if kind > 3:
        return text
    text = (gzip.compress, bz2.compress, lzma.compress, bytes)[kind](text)
    if rng.integers(2) and text:
        at = int(rng.integers(len(text)))
        text = text[:at] + bytes([int(rng.integers(256))]) + text[at + 1 :]
    return text if rng.integers(3) else text[: int(rng.integers(len(text) + 1))]


def mutated_model(model: Path, target: Path, rng: np.random.Generator) -> None:
    """A model with its manifest, a member or its table changed, and digests made anew."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(model, target)
    manifest = json.loads((target / "manifest.json").read_bytes())
    kind = rng.integers(4)
    if kind == 0:
        name, entry = "members/00001.model", manifest["members"][1]
    elif kind == 1 and manifest.get("out_of_bag"):
        name, entry = "out_of_bag.tsv", manifest["out_of_bag"]
    else:
        name, entry = "", {}
        manifest = mutated_json(manifest, rng)
    if name:
        text = mutated_text((target / name).read_bytes(), rng)
        (target / name).write_bytes(text)
        entry |= {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    if rng.integers(20):
        content = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        manifest["manifest_sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    (target / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def rows_by_hand(text: bytes) -> list[tuple[float, list[tuple[int, float]]]] | None:
    """An independent reader of svmlight text: slow, strict, by regular expressions."""
    number = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    rows = []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        content = line.removesuffix(b"\r").decode("latin-1").partition("#")[0]
        fields = [field for field in re.split(r"[ \t\v\f\r]+", content) if field]
        if not fields:
            continue
        label = math.nan
        if re.fullmatch(number, fields[0]):
            label = float(fields.pop(0))
        if fields and re.fullmatch(r"qid:[0-9]{1,18}", fields[0]):
            fields.pop(0)
        features: list[tuple[int, float]] = []
        for field in fields:
            pair = re.fullmatch(rf"\+?([0-9]+):({number})", field)
            if pair is None:
                return None
            index, value = int(pair[1]), float(pair[2])
            if math.isinf(value) or not (features[-1][0] if features else 0) < index < 2**31 - 1:
                return None
            features.append((index, value))
        if math.isinf(label):
            return None
        rows.append((label, features))
    return rows or None


def predictions_by_hand(text: bytes) -> list[float] | None:
    """An independent reader of predictions as plain text: a label and a value a line."""
    number = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    values = []
    for line in text.split(b"\n"):
        fields = line.decode("latin-1").partition("#")[0].split()
        if not fields:
            continue
        if not all(re.fullmatch(number, field) for field in fields[:2]) or len(fields) < 2:
            return None
        values.append(float(fields[1]))
    return values


def _agree(first: list[float], second: list[float]) -> bool:
    return len(first) == len(second) and all(
        a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(first, second, strict=True)
    )


def _svmlight(text: bytes, folder: Path) -> None:
    from resvm_cli.errors import DataError
    from resvm_cli.files.svmlight import Block, parse_pieces

    try:
        block = Block.concatenate(list(parse_pieces([text], "x")))
    except DataError:
        return
    expected = rows_by_hand(text)
    assert expected is not None, "read, and an independent reader refuses it"
    assert _agree(block.labels.tolist(), [label for label, _ in expected])
    pairs = [pair for _, features in expected for pair in features]
    assert block.rows.indices.tolist() == [index for index, _ in pairs]
    assert block.rows.values.tolist() == [value for _, value in pairs]


def _predictions(text: bytes, folder: Path) -> None:
    from resvm_cli.errors import DataError
    from resvm_cli.files.prediction_reader import read_predictions

    (folder / "x").write_bytes(text)
    answers = []
    for with_ids in (False, True):
        try:
            answers.append(read_predictions(str(folder / "x"), with_ids=with_ids))
        except DataError:
            continue
    if len(answers) == 2:
        assert _agree(answers[0].values.tolist(), answers[1].values.tolist()), "ids change values"
    for answer in answers:
        expected = predictions_by_hand(text)
        if expected is not None:
            assert _agree(answer.values.tolist(), expected), "an independent reader disagrees"


def _read_with(read: Callable[[str], object]) -> Callable[[bytes, Path], None]:
    def reading(text: bytes, folder: Path) -> None:
        from resvm_cli.errors import ResvmError

        (folder / "x").write_bytes(text)
        with contextlib.suppress(ResvmError):
            read(str(folder / "x"))

    return reading


@cache
def _sound(path: Path) -> bytes:
    """A sound file, cut down: what is wrong with a line does not depend on how many there are."""
    return b"".join(path.read_bytes().splitlines(keepends=True)[:8])


@cache
def _readers() -> dict[str, tuple[str, Callable[[bytes, Path], None]]]:
    from resvm_cli.files import row_names, svmlight
    from resvm_cli.files.repeated_runs import read_runs
    from resvm_cli.jobs.compare import compare

    return {
        "svmlight": ("test.svm", _svmlight),
        "predictions, text": ("pred.text", _predictions),
        "predictions, tsv": ("pred.tsv", _predictions),
        "predictions, csv": ("pred.csv", _predictions),
        "predictions, jsonl": ("pred.jsonl", _predictions),
        "compressed rows": ("test.svm", _read_with(svmlight.read_file)),
        "known ids": ("ids", _read_with(row_names.read_known_ids)),
        "names": ("names", _read_with(row_names.read_row_ids)),
        "labels": ("labels", _read_with(row_names.read_labels)),
        "repeated runs": ("runs.csv", _read_with(read_runs)),
        "compared runs": ("runs.csv", _read_with(compare)),
    }


_cheap = ("svmlight", "svmlight", "svmlight", "svmlight")


def in_process(problem: Path, folder: Path, rng: np.random.Generator) -> str:
    """One mutated file, read in this process; what it was."""
    readers = _readers()
    names = [*readers, *_cheap]
    name = names[int(rng.integers(len(names)))]
    file, read = readers[name]
    text = mutated_text(_sound(problem / file), rng)
    if name == "compressed rows":
        text = packed(text, rng)
    try:
        read(text, folder)
    except Exception as error:  # noqa: BLE001 - whatever is not ours is what is looked for
        _keep(name, text)
        harms.append(f"{name}: {error!r}")
    return f"in process: {name}"


def _keep(name: str, text: bytes) -> None:
    KEPT.mkdir(exist_ok=True)
    digest = hashlib.sha256(text).hexdigest()[:12]
    (KEPT / f"{name.replace(', ', '-').replace(' ', '-')}-{digest}").write_bytes(text)


def through_the_program(problem: Path, folder: Path, seed: int) -> Iterator[str]:
    """Mutated files given to commands; yields what each was."""
    rng = np.random.default_rng(seed)
    x = folder / "mutated"
    data = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "--n-models", 3]
    few = ["--n-models", 3, "-q"]
    labels = ["--labels", problem / "labels", "--bootstrap", 0]
    kinds: list[tuple[str, str, list[object]]] = [
        ("P", "pos.svm", ["train", "-P", x, "-U", problem / "unl.svm", *few]),
        ("U", "unl.svm", ["train", "-P", problem / "pos.svm", "-U", x, *few]),
        ("rows", "test.svm", ["predict", problem / "m", x, "--ids", "--format", "csv"]),
        ("rows, checked", "test.svm", ["check", x]),
        ("predictions", "pred.tsv", ["score", x, *labels]),
        ("predictions, jsonl", "pred.jsonl", ["score", x, *labels]),
        ("predictions by id", "pred.csv",
         ["score", x, "--positive-ids", problem / "ids", "--bootstrap", 0]),
        ("ids", "ids", ["score", problem / "pred.tsv", "--positive-ids", x, "--bootstrap", 0]),
        ("known positives", "ids",
         ["rank", "--data", problem / "test.svm", "--positive-ids", x, *few]),
        ("labels", "labels", ["score", problem / "pred.text", "--labels", x, "--bootstrap", 0]),
        ("groups", "groups", ["rank", *data, "--groups", x]),
        ("folds", "groups", ["tune", *data, "--trials", 2, "--no-extend", "--folds-file", x]),
        ("runs", "runs.csv", ["score", "--compare", x]),
        ("parameters", "t/best.json",
         ["train", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "--params", x]),
    ]  # fmt: skip
    while True:
        for name, file, command in kinds:
            text = (problem / file).read_bytes()
            if file.endswith(".json") and rng.integers(5):
                text = json.dumps(mutated_json(json.loads(text), rng)).encode()
            else:
                text = packed(mutated_text(text, rng), rng)
            x.write_bytes(text)
            place = folder / "written"
            shutil.rmtree(place, ignore_errors=True)
            target = ["-o", place] if command[0] in ("train", "tune") else []
            _require(name, text, resvm(*command, *target))
            yield f"program: {name}"
        mutated_model(problem / "m", x.with_suffix(".model"), rng)
        model = x.with_suffix(".model")
        manifest = (model / "manifest.json").read_bytes()
        for command in (
            ["inspect", model],
            ["predict", model, problem / "test.svm", "-T", "recall=0.9"],
            ["rank", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "--model", model],
        ):
            _require("manifest", manifest, resvm(*command))
            yield f"program: model, {command[0]}"
        yield _resumed(problem, folder / "resumed", rng)


def _resumed(problem: Path, place: Path, rng: np.random.Generator) -> str:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(problem / "t", place)
    name = ("trials.jsonl", "settings.json")[int(rng.integers(2))]
    text = (place / name).read_bytes()
    if name == "trials.jsonl" and rng.integers(3):
        lines = text.splitlines()
        at = int(rng.integers(len(lines)))
        lines[at] = json.dumps(mutated_json(json.loads(lines[at]), rng)).encode()
        text = b"\n".join([*lines, b""])
    elif rng.integers(3) and name == "settings.json":
        text = json.dumps(mutated_json(json.loads(text), rng)).encode()
    else:
        text = mutated_text(text, rng)
    (place / name).write_bytes(text)
    data = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "--n-models", 3]
    more = ["--oob", "--trials", 3, "--no-extend", "-o", place, "--resume"]
    _require(name, text, resvm("tune", *data, *more))
    return f"program: {name}"


def _require(name: str, text: bytes, ran: Any) -> None:
    if ran.code not in CODES or "Traceback" in ran.err:
        _keep(name, text)
        harms.append(f"{name}: exit {ran.code}: {ran.err[-500:]}")
