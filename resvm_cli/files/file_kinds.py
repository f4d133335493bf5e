"""Detect the format of a file from its first bytes, regardless of its name.

Code that reads svmlight text rejects every other format and says what to do instead.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal, TypeAlias

from resvm_cli.errors import DataError, Message
from resvm_cli.files.streams import BYTE_ORDER_MARK, STDIN, name_of

Kind: TypeAlias = Literal[
    "svmlight", "table", "smiles", "npy", "npz", "hdf5", "parquet", "matrix market", "excel", "zip",
    "utf-16", "sdf"
]  # fmt: skip

HEAD = 1 << 12
LABEL_NAMES = (  # common names of columns with labels
    *("label", "labels", "y", "class", "target", "active", "activity", "hit"),
    *("outcome", "status", "response"),
)
_SIGNATURES: tuple[tuple[bytes, Kind], ...] = (
    (b"\x93NUMPY", "npy"),
    (b"\x89HDF\r\n\x1a\n", "hdf5"),
    (b"PAR1", "parquet"),
    (b"%%MatrixMarket", "matrix market"),
    (b"\xd0\xcf\x11\xe0", "excel"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_OFFICE = (b"[Content_Types]", b"xl/", b"docProps/", b"_rels/")  # possible first members
_CONVERT = (
    "convert it to svmlight text: resvm convert {path} {output:data.svm}; {label_column} and"
    " {id_column} name the columns with labels and ids"
)
_FINGERPRINTS = (
    "compute fingerprints of lines with SMILES and name: resvm convert {path} {separator:' '}"
    " {header:False} {smiles_column:1} {id_column:2} {output:data.svm}"
)
# What each format is, and what to do with it.
_ADVICE: dict[Kind, tuple[str, str]] = {
    "table": ("a table (CSV or similar), not svmlight text", _CONVERT),
    "smiles": ("a list of molecules (SMILES), not svmlight text", _FINGERPRINTS),
    "npy": ("a NumPy array, not svmlight text", _CONVERT),
    "npz": ("NumPy arrays (.npz), not svmlight text", _CONVERT),
    "hdf5": ("an HDF5 file, not svmlight text", _CONVERT),
    "parquet": ("a Parquet file, not svmlight text", _CONVERT),
    "matrix market": (
        "a Matrix Market file, which is not supported",
        "convert it to .npz in Python: import scipy.io, scipy.sparse as s;"
        " s.save_npz('data.npz', s.csr_matrix(scipy.io.mmread({file})))",
    ),
    "excel": (
        "an Excel workbook, which is not supported",
        "save the sheet as CSV and use that file instead",
    ),
    "zip": ("a zip archive, not svmlight text", "unpack it first: unzip {path}"),
    "utf-16": (
        "text encoded as UTF-16, not svmlight text",
        "convert it to UTF-8: iconv -f UTF-16 -t UTF-8 {path}",
    ),
    "sdf": (
        "molecules in SDF format, not svmlight text",
        "write each molecule's SMILES and name to a file, for example with Open Babel or RDKit,"
        " then " + _FINGERPRINTS.replace("{path}", "FILE.smi"),
    ),
}
READABLE = ("svmlight", "table", "npy", "npz", "hdf5", "parquet")  # smiles: with column names
# The counts line of a molecule, the end of its atoms and bonds, and the end of its record.
# Patterns are text: Python compiles them when they are first used.
_SDF = rb"(?m)^[ \d]{6}.{0,40}V[23]000\s*$|^M  END\s*$|^\$\$\$\$\s*$"
_SMILES_NAME = r"(?i)\.(smi|smiles|ism)(\.(gz|bz2|xz|zst))?$"
SEPARATOR_LINE = r'"?sep=([^\s"]|\t)"?'  # written by Excel before the column names
_PAIR = r"(?:\d+|qid):[-+.\w]"


def kind_of(head: bytes, name: str = "") -> Kind:
    """Return the format of a file from its first bytes; unrecognized text counts as svmlight.

    A list of SMILES has no mark of its own and is recognized by its name.
    """
    for magic, kind in _SIGNATURES:
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
    if head and re.search(_SMILES_NAME, name):
        return "smiles"
    many = any(mark in line for mark in ",;|") or ("\t" in line and len(words) > 1)
    return "table" if many else "svmlight"


def has_pairs(line: str) -> bool:
    """Whether a line contains an index:value pair, unlike the first line of a table."""
    return any(re.match(_PAIR, word) for word in line.split())


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
    """Yield the same pieces; raise DataError if they are not svmlight text."""
    head, text = with_head(pieces)
    kind = kind_of(head, name)
    if kind != "svmlight":
        raise foreign_format(kind, name)
    yield from text


def foreign_format(kind: Kind, name: str) -> DataError:
    """Return the error that names the format of a file and says what to do."""
    is_stdin = name == name_of(STDIN)
    what, advice = _ADVICE[kind]
    path = STDIN if is_stdin else shlex.quote(name)
    file = repr("FILE.mtx" if is_stdin else name)
    return DataError(f"{name}: {what}", Message(advice, path=path, file=file))
