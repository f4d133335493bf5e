"""Open any input as blocks of rows: svmlight text, a table, or a sparse matrix.

The first bytes determine the format, regardless of the name. Formats that cannot be read get advice
instead. Table code is imported only for tables, so that commands on svmlight text start faster.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from resvm_cli.errors import DataError, Message, ParameterError
from resvm_cli.files.fields import SEPARATOR_LINE
from resvm_cli.files.sources import Source
from resvm_cli.files.streams import BYTE_ORDER_MARK, STDIN, name_of, read_pieces
from resvm_cli.files.svmlight import BadLine, Block, format_number, parse_pieces

if TYPE_CHECKING:
    from resvm_cli.files.array_files import SparseFile
    from resvm_cli.files.delimited import Table
    from resvm_cli.tables.encoding import FeatureMap, TableReading
    from resvm_cli.tables.features import TableFeatures

Kind: TypeAlias = Literal[
    "svmlight", "table", "smiles", "npy", "npz", "hdf5", "parquet", "matrix market", "excel", "zip",
    "utf-16", "sdf"
]  # fmt: skip

MAX_ROWS = 1 << 12  # per block of a sparse matrix
SHOWN = 20
HEAD = 1 << 12
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


def foreign_format(kind: Kind, name: str) -> DataError:
    """Return the error that names the format of a file and says what to do."""
    is_stdin = name == name_of(STDIN)
    what, advice = _ADVICE[kind]
    path = STDIN if is_stdin else shlex.quote(name)
    file = repr("FILE.mtx" if is_stdin else name)
    return DataError(f"{name}: {what}", Message(advice, path=path, file=file))


def read_file(path: str, *, zero_based: bool = False, with_comments: bool = False) -> Block:
    """Read a whole svmlight file (``-`` for stdin); a file in another format is an error."""
    name = name_of(path)
    head, text = with_head(read_pieces(path))
    if (kind := kind_of(head, name)) != "svmlight":
        raise foreign_format(kind, name)
    blocks = parse_pieces(text, name, zero_based=zero_based, with_comments=with_comments, workers=1)
    return Block.concatenate(list(blocks))


class RowInput:
    """The rows of one input; each call of ``blocks`` reads them from the start.

    ``features`` encodes the columns of a table. It is None for svmlight text and for sparse
    matrices, whose features are only numbered.
    """

    def __init__(
        self,
        source: Source,
        reading: TableReading | None,
        *,
        zero_based: bool = False,
        known: bool = False,
    ) -> None:
        """Detect the input format; ``reading`` is None if no table parameters are given.

        With ``known`` features, a SMILES file can be read without naming its columns.
        """
        self.name = source.name
        self._reading = reading
        self.features: TableFeatures | None = None
        self.table: Table | None = None
        self._sparse: SparseFile | None = None
        self.source = source
        self._zero_based = zero_based
        head, text = with_head(source.pieces())
        self._started = [text]
        kind = kind_of(head, self.name)
        if kind == "smiles" and (known or (reading is not None and reading.roles.asked)):
            kind = "table"
        if kind not in READABLE:
            raise foreign_format(kind, self.name)
        # a single column looks like svmlight (no separator) but has no index:value pairs
        is_table = reading is not None and reading.is_table
        if kind == "svmlight" and (not is_table or has_pairs(first_line(head))):
            self._refuse_roles()
            return
        self._open_table(kind, text)

    def _open_table(self, kind: Kind, text: Iterator[bytes]) -> None:
        reading = self.reading
        if self._zero_based:
            raise ParameterError(
                "{file}: {zero_based} applies only to svmlight text",
                "omit it; rows of a precomputed kernel must be svmlight text",
                file=self.name,
            )
        if kind in ("svmlight", "table"):
            from resvm_cli.files.delimited import TextTable

            self.table = TextTable(
                self.name,
                self.pieces,
                separator=reading.separator,
                header=reading.header,
                decimal_comma=reading.decimal_comma,
            )
            return
        from resvm_cli.files.array_files import SparseFile, array_path, open_arrays

        with array_path(self.source, text) as path:
            if kind == "hdf5":
                from resvm_cli.files.optional_formats import open_anndata

                self.table = open_anndata(self.name, path)
                return
            if kind == "parquet":
                from resvm_cli.files.optional_formats import ParquetTable

                self.table = ParquetTable(self.name, path)
                return
            arrays = open_arrays(self.name, path, kind)
        if isinstance(arrays, SparseFile):
            self._refuse_roles()
            self._sparse = arrays
        else:
            self.table = arrays

    @property
    def reading(self) -> TableReading:
        if self._reading is None:
            from resvm_cli.tables.encoding import TableReading

            self._reading = TableReading()
        return self._reading

    @reading.setter
    def reading(self, reading: TableReading) -> None:
        self._reading = reading

    @property
    def is_text(self) -> bool:
        return self.table is None and self._sparse is None

    @property
    def n_features(self) -> int | None:
        """The number of features, if the input states it."""
        return None if self._sparse is None else self._sparse.n_features

    def encode(self, known: FeatureMap | None = None, *, selective: bool = False) -> None:
        """Encode the columns of a table as the ``known`` features or, if None, as new ones."""
        if self.table is not None:
            from resvm_cli.tables.features import TableFeatures

            roles = self.reading.roles
            self.features = TableFeatures(self.table, roles, known, selective=selective)

    def encode_like(self, known: FeatureMap | None, n_features: int = 0) -> None:
        """Encode the columns of a table as the features of a model.

        A model that was not trained on a table accepts a matrix with numbered columns, at least as
        many as the model has features.
        """
        if self.table is None:
            return
        if known is not None:
            if known.missing == "drop":
                known = replace(known, missing="refuse")
            self.encode(known)
            return
        if not self.table.n_numbered:
            raise DataError(
                f"{self.name}: a table, but the model was not trained on one, so it has no column"
                " names",
                Message(
                    "train on a table, or convert this one like the training data:"
                    " resvm convert FILE {like:MAP} {output:data.svm}"
                ),
            )
        if self.table.n_numbered < n_features:
            raise DataError(
                f"{self.name}: {self.table.n_numbered:,} columns, but the model was trained on"
                f" {n_features:,}",
                "provide the same columns as in training, in the same order",
            )
        only = tuple(self.table.columns[: self.table.n_numbered])
        roles = replace(self.reading.roles, only=only)
        self.reading = replace(self.reading, roles=roles)
        self.encode()

    def numeric_label(self, label: float | None, sign: str = "positive") -> float:
        """Return a label as a number: 1 or -1 for tables, as given for svmlight text."""
        if not self.is_text:
            return 1.0 if sign == "positive" else -1.0
        if label is None:
            raise ParameterError(
                "{" + sign + "_label} is '{text}'; a number was expected: {file} is svmlight text",
                "give one number; only a table can have text as labels, in its {label_column}",
                text=" and ".join(getattr(self.reading.roles, f"{sign}_labels")),
                file=self.name,
            )
        return label

    def no_positive_row(self) -> DataError:
        """Return the error to raise if no row has a positive label."""
        wanted = " or ".join(self.reading.roles.positive_labels)
        seen = [] if self.features is None else list(self.features.labels_seen)
        listed = ", ".join(text or "(none)" for text in seen[:SHOWN])
        return DataError(
            f"{self.name}: no row has the label {wanted}",
            f"labels in the file: {listed}" if listed else None,
        )

    def pieces(self) -> Iterator[bytes]:
        """Yield the decompressed bytes from the beginning, even if some came from a pipe."""
        return self._started.pop() if self._started else self.source.pieces()

    def blocks(
        self,
        *,
        with_comments: bool = True,
        marked: bool = True,
        workers: int = 0,
        on_bad_line: Callable[[BadLine], None] | None = None,
    ) -> Iterator[Block]:
        """Yield all rows. If ``marked``, labels become 1 (positive), -1 (known negative) or 0."""
        if self.features is not None:
            yield from self.features.blocks()
            return
        assert self.table is None  # encode must be called first
        blocks: Iterator[Block]
        if self._sparse is not None:
            blocks = self._sparse.block.slices(MAX_ROWS)
        else:
            blocks = parse_pieces(
                self.pieces(),
                self.name,
                zero_based=self._zero_based,
                with_comments=with_comments,
                workers=workers,
                on_bad_line=on_bad_line,
            )
        roles = None if self._reading is None else self._reading.roles
        if roles is None or not roles.positive_labels or not marked:
            yield from blocks
            return
        from resvm_cli.tables.cell_values import class_of

        of_label = class_of(roles.positive_labels, roles.negative_labels)
        for block in blocks:
            yield _marked(block, of_label)

    def _refuse_roles(self) -> None:
        for parameter in () if self._reading is None else self._reading.roles.asked:
            raise DataError(
                Message(
                    f"{{file}}: no named columns, so {{{parameter}}} cannot be used", file=self.name
                ),
                "omit the option: the rows already have labels and ids",
            )


def share_roles(first: RowInput, second: RowInput) -> None:
    """Give the columns of two tables the same roles, using the names in the first table.

    A column to drop may be missing from one of the tables.
    """
    assert first.table is not None
    assert second.table is not None
    names = first.table.columns
    known = [set(one.table.columns) for one in (first, second) if one.table is not None]

    def named(text: str) -> str:
        is_number = text not in names and text.isdecimal() and 1 <= int(text) <= len(names)
        return names[int(text) - 1] if is_number else text

    for one, here, other in ((first, known[0], known[1]), (second, known[1], known[0])):
        roles = one.reading.roles
        dropped = map(named, roles.dropped)
        roles = replace(
            roles,
            label=None if roles.label is None else named(roles.label),
            row_id=None if roles.row_id is None else named(roles.row_id),
            only=tuple(map(named, roles.only)),
            categories=tuple(map(named, roles.categories)),
            dropped=tuple(name for name in dropped if name in here or name not in other),
        )
        one.reading = replace(one.reading, roles=roles)


def _marked(block: Block, of_label: Callable[[str], float]) -> Block:
    texts = ["" if np.isnan(one) else format_number(one) for one in block.labels.tolist()]
    return replace(block, labels=np.array([of_label(text) for text in texts]))
