"""What a file is by its first bytes, whatever it is called.

Everything that trains or judges reads svmlight text. Another file is refused where it is opened,
with the command that makes svmlight text of it, and not at a token of its first line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Literal, NoReturn, TypeAlias

from resvm_cli.errors import DataError
from resvm_cli.files.streams import BYTE_ORDER_MARK, STDIN, name_of

Kind: TypeAlias = Literal[
    "svmlight", "table", "npy", "npz", "hdf5", "parquet", "matrix market", "excel", "zip", "utf-16"
]

HEAD = 1 << 12
# What columns are often called, by the option that says what they are.
USUAL_NAMES = {
    "--id-column": ("id", "name", "compound id", "compound_id", "molecule", "gene", "gene_id"),
    "--smiles-column": ("smiles", "canonical_smiles", "canonical smiles"),
    "--label-column": (
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
_OFFICE = (b"[Content_Types]", b"xl/", b"docProps/", b"_rels/")  # whichever was written first
_WORDS: dict[Kind, str] = {
    "table": "a table (CSV or the like)",
    "npy": "a NumPy array",
    "npz": "NumPy arrays (.npz)",
    "hdf5": "a HDF5 file",
    "parquet": "a Parquet file",
    "matrix market": "a Matrix Market file",
    "excel": "an Excel workbook",
    "zip": "a zip archive",
    "utf-16": "text written as UTF-16",
}
_PAIR = re.compile(r"(?:\d+|qid):[-+.\w]")


class ForeignFormat(DataError):
    """A file of another kind than was asked for."""


def kind_of(head: bytes) -> Kind:
    """What begins like this; text that is neither binary nor a table passes for svmlight."""
    for magic, kind in _MAGICS:
        if head.startswith(magic):
            return kind
    if head.startswith(b"PK\x03\x04"):
        first_member = head[30 : 30 + int.from_bytes(head[26:28], "little")]
        if first_member.endswith(b".npy"):
            return "npz"
        return "excel" if first_member.startswith(_OFFICE) else "zip"
    line = first_line(head)
    words = line.split()
    if has_pairs(line):
        return "svmlight"
    many = any(mark in line for mark in ",;|") or ("\t" in line and len(words) > 1)
    return "table" if many else "svmlight"


def has_pairs(line: str) -> bool:
    """Whether a line has a pair index:value, as no first line of a table has."""
    return any(_PAIR.match(word) for word in line.split())


def is_smiles(name: str, head: bytes) -> bool:
    """Whether a file is called as lists of molecules are, and has no pairs index:value."""
    stem = re.sub(r"\.(gz|bz2|xz|zst)$", "", name.lower())
    return stem.endswith(SMILES_ENDINGS) and not has_pairs(first_line(head))


def first_line(head: bytes) -> str:
    """The first line that is neither blank nor a comment."""
    text = head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    for line in text.split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            return line.partition(" #")[0]
    return ""


def separator_of(line: str) -> str:
    """What separates the columns of a table: what its first line has most of, outside quotes."""
    plain = re.sub(r'"[^"]*"', "", line)
    return max("\t,;|", key=plain.count) if any(mark in plain for mark in "\t,;|") else ","


def with_head(pieces: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first line of a text, or as much as tells what it is; and all of its pieces."""
    rest = iter(pieces)
    read: list[bytes] = []
    for piece in rest:
        read.append(piece)
        # HDF5's magic has a newline
        if (b"\n" in piece and not read[0].startswith(b"\x89")) or len(piece) >= HEAD:
            break

    def again() -> Iterator[bytes]:
        yield from read
        yield from rest

    return b"".join(read), again()


def require_svmlight(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    """The same pieces, refused where they begin like another kind of file."""
    head, text = with_head(pieces)
    if head and is_smiles(name, head):
        refuse_smiles(name, head)
    if head and (kind := kind_of(head)) != "svmlight":
        raise ForeignFormat(f"{name}: {_WORDS[kind]}, not svmlight text", _advice(kind, head, name))
    yield from text


def refuse_smiles(name: str, head: bytes) -> NoReturn:
    """Such a list is SMILES and name, by a blank or a tab, mostly without column names."""
    line = first_line(head).strip()
    separator = separator_of(line) if any(mark in line for mark in "\t,;|") else " "
    names = line.split(separator)
    command = f"resvm convert {_path(name)}"
    if separator == " " and len(names) > 1:
        command += " --separator ' '"
    if names[0].lower() in USUAL_NAMES["--smiles-column"]:
        columns = [shlex.quote(text) for text in names]
    else:
        command += " --no-header"
        columns = [str(number + 1) for number in range(len(names))]
    command += f" --smiles-column {columns[0]}"
    command += f" --id-column {columns[1]}" if len(columns) > 1 else ""
    raise ForeignFormat(
        f"{name}: a list of molecules (SMILES), not svmlight text",
        f"make fingerprints of it: {command} -o data.svm",
    )


def _path(name: str) -> str:
    return STDIN if name == name_of(STDIN) else shlex.quote(name)


def _advice(kind: Kind, head: bytes, name: str) -> str:
    if kind == "excel":
        return "save the sheet as CSV, then: resvm convert FILE.csv -o data.svm"
    if kind == "zip":
        return f"unpack it first: unzip {shlex.quote(name)}"
    if kind == "utf-16":
        return f"make UTF-8 of it: iconv -f UTF-16 -t UTF-8 {shlex.quote(name)}"
    command = f"resvm convert {_path(name)}"
    if kind == "table":
        line = first_line(head)
        names = [cell.strip().strip('"') for cell in line.split(separator_of(line))]
        for option, usual in USUAL_NAMES.items():
            column = next((cell for cell in names if cell.lower() in usual), None)
            command += f" {option} {shlex.quote(column)}" if column else ""
    return f"make svmlight text of it: {command} -o data.svm"
