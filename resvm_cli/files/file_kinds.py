"""Detect the format of a file from its first bytes, regardless of its name.

Code that reads svmlight text rejects every other format with a hint that shows how to convert it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal, NoReturn, TypeAlias

from resvm_cli.errors import DataError, Message, Text
from resvm_cli.files.streams import BYTE_ORDER_MARK, STDIN, name_of

Kind: TypeAlias = Literal[
    "svmlight", "table", "npy", "npz", "hdf5", "parquet", "matrix market", "excel", "zip", "utf-16",
    "sdf"
]  # fmt: skip

HEAD = 1 << 12
# Common column names, and the parameter of convert that each suggests.
USUAL_NAMES = {
    "id_column": ("id", "name", "compound id", "compound_id", "molecule", "gene", "gene_id"),
    "smiles_column": ("smiles", "canonical_smiles", "canonical smiles"),
    "label_column": (
        *("label", "labels", "y", "class", "target", "active", "activity", "hit"),
        *("outcome", "status", "response"),
    ),
}
SMILES_ENDINGS = (".smi", ".smiles", ".ism")
_MAGICS: tuple[tuple[bytes, Kind], ...] = (
    (b"\x93NUMPY", "npy"),
    (b"\x89HDF\r\n\x1a\n", "hdf5"),
    (b"PAR1", "parquet"),
    (b"%%MatrixMarket", "matrix market"),
    (b"\xd0\xcf\x11\xe0", "excel"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_OFFICE = (b"[Content_Types]", b"xl/", b"docProps/", b"_rels/")  # possible first members
_WORDS: dict[Kind, str] = {
    "table": "a table (CSV or similar)",
    "npy": "a NumPy array",
    "npz": "NumPy arrays (.npz)",
    "hdf5": "an HDF5 file",
    "parquet": "a Parquet file",
    "matrix market": "a Matrix Market file",
    "excel": "an Excel workbook",
    "zip": "a zip archive",
    "utf-16": "text encoded as UTF-16",
    "sdf": "molecules in SDF format",
}
UNSUPPORTED = ("excel", "matrix market")
# The counts line of a molecule, the end of its atoms and bonds, and the end of its record.
# Patterns are text: Python compiles them when they are first used.
_SDF = rb"(?m)^[ \d]{6}.{0,40}V[23]000\s*$|^M  END\s*$|^\$\$\$\$\s*$"
SEPARATOR_LINE = r'"?sep=([^\s"]|\t)"?'  # written by Excel before the column names
_PAIR = r"(?:\d+|qid):[-+.\w]"


class ForeignFormat(DataError):
    """A file that is not svmlight text."""


def kind_of(head: bytes) -> Kind:
    """Return the format of a file from its first bytes; unrecognized text counts as svmlight."""
    for magic, kind in _MAGICS:
        if head.startswith(magic):
            return kind
    if head.startswith(b"PK\x03\x04"):
        first_member = head[30 : 30 + int.from_bytes(head[26:28], "little")]
        if first_member.endswith(b".npy"):
            return "npz"
        return "excel" if first_member.startswith(_OFFICE) else "zip"
    if re.search(_SDF, head[: 4 * HEAD]):
        return "sdf"
    line = first_line(head)
    words = line.split()
    if re.fullmatch(SEPARATOR_LINE, line.rstrip("\r")):
        return "table"
    if has_pairs(line):
        return "svmlight"
    many = any(mark in line for mark in ",;|") or ("\t" in line and len(words) > 1)
    return "table" if many else "svmlight"


def has_pairs(line: str) -> bool:
    """Whether a line contains an index:value pair, unlike the first line of a table."""
    return any(re.match(_PAIR, word) for word in line.split())


def is_smiles(name: str, head: bytes) -> bool:
    """Whether the file name is that of a SMILES file and the first line has no index:value pair."""
    stem = re.sub(r"\.(gz|bz2|xz|zst)$", "", name.lower())
    return stem.endswith(SMILES_ENDINGS) and not has_pairs(first_line(head))


def first_line(head: bytes) -> str:
    """Return the first line that is neither blank nor a comment."""
    text = head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    for line in text.split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            return line.partition(" #")[0]
    return ""


def separator_of(line: str) -> str:
    """Guess a table's separator: the most frequent candidate outside quotes in its first line."""
    plain = re.sub(r'"[^"]*"', "", line)
    return max("\t,;|", key=plain.count) if any(mark in plain for mark in "\t,;|") else ","


def with_head(pieces: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return enough of a text's beginning to detect its format, and all of its pieces."""
    rest = iter(pieces)
    read: list[bytes] = []
    for piece in rest:
        read.append(piece)
        # the magic number of HDF5 contains a newline
        if (b"\n" in piece and not read[0].startswith(b"\x89")) or len(piece) >= HEAD:
            break
    return b"".join(read), chain(read, rest)


def require_svmlight(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the same pieces; raise ForeignFormat if they are not svmlight text."""
    head, text = with_head(pieces)
    if head and is_smiles(name, head):
        refuse_smiles(name, head)
    if head and (kind := kind_of(head)) != "svmlight":
        fault = "which is not supported" if kind in UNSUPPORTED else "not svmlight text"
        raise ForeignFormat(f"{name}: {_WORDS[kind]}, {fault}", _advice(kind, head, name))
    yield from text


def refuse_smiles(name: str, head: bytes) -> NoReturn:
    """Raise ForeignFormat with the command that converts a SMILES file.

    Each line has a SMILES string and a name, separated by a space or tab; most files have no
    header.
    """
    line = first_line(head).strip()
    separator = separator_of(line) if any(mark in line for mark in "\t,;|") else " "
    names = line.split(separator)
    options: list[tuple[str, str]] = []
    if separator == " " and len(names) > 1:
        options.append(("separator", "' '"))
    if names[0].lower() in USUAL_NAMES["smiles_column"]:
        columns = [shlex.quote(text) for text in names]
    else:
        options.append(("header", "False"))
        columns = [str(number + 1) for number in range(len(names))]
    options += zip(("smiles_column", "id_column"), columns, strict=False)
    raise ForeignFormat(
        f"{name}: a list of molecules (SMILES), not svmlight text",
        Message("compute fingerprints: {command}", command=_convert(name, options)),
    )


def _convert(name: str, options: list[tuple[str, str]]) -> Message:
    """Return the command that converts a file, with these options and values."""
    path = STDIN if name == name_of(STDIN) else shlex.quote(name)
    template = "".join(f" {{{parameter}:{{{parameter}_value}}}}" for parameter, _ in options)
    values = {f"{parameter}_value": value for parameter, value in options}
    return Message(f"resvm convert {{path}}{template} {{output:data.svm}}", path=path, **values)


def _advice(kind: Kind, head: bytes, name: str) -> Text:
    if kind == "excel":
        return "save the sheet as CSV and use that file instead"
    if kind == "zip":
        return f"unpack it first: unzip {shlex.quote(name)}"
    if kind == "matrix market":
        path = "FILE.mtx" if name == name_of(STDIN) else name
        code = "import scipy.io, scipy.sparse as s"
        code += f"; s.save_npz('data.npz', s.csr_matrix(scipy.io.mmread({path!r})))"
        return f"convert it to .npz in Python: {code}"
    if kind == "utf-16":
        return f"convert it to UTF-8: iconv -f UTF-16 -t UTF-8 {shlex.quote(name)}"
    if kind == "sdf":
        return _advice_on_molecules(name)
    options = []
    if kind == "table":
        line = first_line(head)
        names = [cell.strip().strip('"') for cell in line.split(separator_of(line))]
        for parameter, usual in USUAL_NAMES.items():
            column = next((cell for cell in names if cell.lower() in usual), None)
            if column:
                options.append((parameter, shlex.quote(column)))
    return Message("convert it to svmlight text: {command}", command=_convert(name, options))


def _advice_on_molecules(name: str) -> Text:
    """Return the steps that turn an SDF file into fingerprints, via SMILES."""
    stem = re.sub(r"\.(gz|bz2|xz|zst)$", "", name)
    smiles = re.sub(r"\.(sdf?|mol)$", "", stem, flags=re.IGNORECASE) + ".smi"
    if name == name_of(STDIN):
        smiles = "FILE.smi"
    columns = [("header", "False"), ("smiles_column", "1"), ("id_column", "2")]
    return Message(
        "write each molecule's SMILES and name to {smiles}, for example with Open Babel or RDKit,"
        " then compute fingerprints: {command}",
        smiles=smiles,
        command=_convert(smiles, columns),
    )
