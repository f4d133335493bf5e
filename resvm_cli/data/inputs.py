"""Open any input as blocks of rows: svmlight text, a table, or a sparse matrix.

The first bytes determine the format; only SMILES are recognized by the file name. The error for a
format that cannot be read says what to do instead. Table code is imported only for tables, so that
commands on svmlight text start faster.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from resvm_cli.data.fields import SEPARATOR_LINE, class_of
from resvm_cli.data.streams import BYTE_ORDER_MARK, STDIN, Source, name_of, read_pieces
from resvm_cli.data.svmlight import BadLine, Block, format_number, parse_pieces
from resvm_cli.errors import DataError, ParameterError

if TYPE_CHECKING:
    from resvm_cli.data.arrays import SparseFile
    from resvm_cli.data.delimited import Table
    from resvm_cli.data.encoding import ColumnRoles, FeatureMap
    from resvm_cli.data.features import TableFeatures

Kind: TypeAlias = Literal[
    "svmlight", "table", "smiles", "npy", "npz", "hdf5", "parquet", "matrix market", "excel", "zip",
    "utf-16", "sdf"
]  # fmt: skip

MAX_ROWS = 1 << 12  # per block of a sparse matrix
SHOWN = 20
HEAD = 1 << 12
_SIGNATURES: tuple[tuple[bytes, Kind], ...] = (
    (b"\x93NUMPY", "npy"),
    (b"\x89HDF", "hdf5"),
    (b"PAR1", "parquet"),
    (b"%%MatrixMarket", "matrix market"),
    (b"\xd0\xcf\x11\xe0", "excel"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_OFFICE = (b"[Content_Types]", b"xl/", b"docProps/", b"_rels/")  # possible first members
_CONVERT = (
    "convert it to svmlight text: resvm convert {path} `output='data.svm'`; `label_column` and"
    " `id_column` name the columns with labels and ids"
)
_FINGERPRINTS = (
    "compute fingerprints of lines with a SMILES and a name: resvm convert {path}"
    " `no_header=True` `smiles_column=1` `id_column=2` `output='data.svm'`"
)
# What each format is, and what to do with it.
_ADVICE: dict[Kind, tuple[str, str]] = {
    "table": ("a table (CSV or similar), not svmlight text", _CONVERT),
    "smiles": ("a list of molecules (SMILES), not svmlight text", _FINGERPRINTS),
    "npy": ("a NumPy array, not svmlight text", _CONVERT),
    "npz": ("NumPy arrays (.npz), not svmlight text", _CONVERT),
    "hdf5": (
        "an HDF5 file, which is not supported",
        "in Python, pass its matrix to resvm_cli.rank or fit; for AnnData:"
        " X = anndata.read_h5ad({file}).X",
    ),
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
READABLE = ("svmlight", "table", "npy", "npz", "parquet")  # also smiles with named columns
# The counts line of a molecule, the end of its atoms and bonds, and the end of its record.
# Patterns are strings, which Python compiles when they are first used.
_SDF = rb"(?m)^[ \d]{6}.{0,40}V[23]000\s*$|^M  END\s*$|^\$\$\$\$\s*$"
_SMILES_NAME = r"(?i)\.(smi|smiles|ism)(\.(gz|bz2|xz|zst))?$"
_PAIR = r"(?:\d+|qid):[-+.\w]"


def kind_of(head: bytes, name: str = "") -> Kind:
    """Return the format of a file from its first bytes; unrecognized text counts as svmlight.

    A list of SMILES has no signature, so it is recognized by its file name.
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


def smiles_separator(line: str) -> str | None:
    """Return the separator of a list of SMILES and names: a tab or a blank, unless it is CSV."""
    if "\t" in line:
        return "\t"
    return " " if " " in line and "," not in line else None


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
        if b"\n" in piece or len(piece) >= HEAD:
            break
    return b"".join(read), chain(read, rest)


def foreign_format(kind: Kind, name: str) -> DataError:
    """Return the error that names the format of a file and says what to do."""
    is_stdin = name == name_of(STDIN)
    what, advice = _ADVICE[kind]
    path = STDIN if is_stdin else shlex.quote(name)
    file = repr("FILE" if is_stdin else name)
    return DataError(f"{name}: {what}", advice.format(path=path, file=file))


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
        roles: ColumnRoles | None,
        *,
        zero_based: bool = False,
        known: FeatureMap | None = None,
    ) -> None:
        """Detect the input format; ``roles`` is None if no table parameters are given.

        With ``known`` features, a SMILES file is a table even if no parameter names a column, and
        so is a single column whose header is the name of a known one.
        """
        self.name = source.name
        self._roles = roles
        self.features: TableFeatures | None = None
        self.table: Table | None = None
        self._sparse: SparseFile | None = None
        self.source = source
        self._zero_based = zero_based
        head, text = with_head(source.pieces())
        self._started = [text]
        kind = kind_of(head, self.name)
        self._separator: str | None = None  # None: detected
        has_names = roles is not None and bool(roles.named_parameters)
        if kind == "smiles" and (known is not None or has_names):
            kind = "table"
            self._separator = smiles_separator(first_line(head))
        if kind not in READABLE:
            raise foreign_format(kind, self.name)
        # a single column looks like svmlight (no separator) but has no index:value pairs
        first = first_line(head).strip()
        self.fingerprints: FeatureMap | None = None  # what svmlight text says about its features
        is_table = has_names or (roles is not None and not roles.header)
        is_table |= known is not None and first in {column.name for column in known.columns}
        if kind == "svmlight" and (not is_table or has_pairs(first)):
            self._refuse_roles()
            if head.startswith(b"#") and not zero_based:
                from resvm_cli.data.encoding import read_fingerprint_line

                self.fingerprints = read_fingerprint_line(head)
            return
        self._open_table(kind, text)

    @classmethod
    def from_table(cls, table: Table, roles: ColumnRoles) -> RowInput:
        """Return the rows of a table in memory."""
        rows = cls.__new__(cls)
        rows.name, rows.table, rows._roles = table.name, table, roles
        rows.features = rows.fingerprints = rows._sparse = None
        return rows

    def _open_table(self, kind: Kind, text: Iterator[bytes]) -> None:
        if self._zero_based:
            raise ParameterError(
                f"{self.name}: `zero_based` applies only to svmlight text",
                "omit it; rows of a precomputed kernel must be svmlight text",
            )
        if kind in ("svmlight", "table"):
            from resvm_cli.data.delimited import TextTable

            self.table = TextTable(
                self.name,
                self.pieces,
                separator=self._separator,
                header=self.roles.header,
            )
            return
        from resvm_cli.data.arrays import SparseFile, array_path, open_arrays

        with array_path(self.source, text) as path:
            arrays = open_arrays(self.name, path, kind)
        if isinstance(arrays, SparseFile):
            self._refuse_roles()
            self._sparse = arrays
        else:
            self.table = arrays
            arrays.require_unchanged = self.source.require_unchanged

    @property
    def roles(self) -> ColumnRoles:
        if self._roles is None:
            from resvm_cli.data.encoding import ColumnRoles

            self._roles = ColumnRoles()
        return self._roles

    @roles.setter
    def roles(self, roles: ColumnRoles) -> None:
        self._roles = roles

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
            from resvm_cli.data.features import TableFeatures

            self.features = TableFeatures(self.table, self.roles, known, selective=selective)

    def encode_like(self, known: FeatureMap | None, n_features: int = 0) -> None:
        """Encode the columns of a table as the features of a model.

        A model that was not trained on a table accepts a matrix with numbered columns, at least as
        many as the model has features.
        """
        if self.table is None:
            self.require_fingerprints(known, "the model was trained on")
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
                (
                    "train on a table, or convert this one like the training data:"
                    " resvm convert FILE `like='MAP'` `output='data.svm'`"
                ),
            )
        if self.table.n_numbered < n_features:
            raise DataError(
                f"{self.name}: {self.table.n_numbered:,} columns, but the model was trained on"
                f" {n_features:,}",
                "provide the same columns as in training, in the same order",
            )
        only = tuple(self.table.columns[: self.table.n_numbered])
        self.roles = replace(self.roles, only=only)
        self.encode()

    def require_fingerprints(self, known: FeatureMap | None, expected: str) -> None:
        """Raise DataError if svmlight text says that its fingerprints are not the known ones."""
        if self.fingerprints is not None and known is not None:
            from resvm_cli.data.encoding import described_fingerprints

            here, there = map(described_fingerprints, (self.fingerprints, known))
            if here != there:
                raise DataError(
                    f"{self.name}: contains {here}, but {expected} {there}",
                    "convert all molecules with the same options, or as for a model:"
                    " resvm convert FILE `like='MODEL'` `output='data.svm'`",
                )

    def numeric_label(self, label: float | None, sign: str = "positive") -> float:
        """Return a label as a number: 1 or -1 for tables, the given number for svmlight text."""
        if not self.is_text:
            return 1.0 if sign == "positive" else -1.0
        if label is None:
            option = "positive_label" if sign == "positive" else "known_negatives"
            labels = "' and '".join(getattr(self.roles, f"{sign}_labels"))
            raise ParameterError(
                f"`{option}`: the label '{labels}' is not a number, but {self.name} is svmlight"
                " text",
                "give one number; only a table can have text as labels, in its `label_column`",
            )
        return label

    def no_positive_row(self) -> DataError:
        """Return the error to raise if no row has a positive label."""
        wanted = " or ".join(self.roles.positive_labels)
        seen = [] if self.features is None else list(self.features.labels_seen)
        listed = ", ".join(text or "(none)" for text in seen[:SHOWN])
        return DataError(
            f"{self.name}: no row has the label {wanted}",
            f"labels in the file: {listed}" if listed else None,
        )

    def pieces(self) -> Iterator[bytes]:
        """Yield the decompressed bytes from the beginning, including those already read."""
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
        roles = self._roles
        if roles is None or not roles.positive_labels or not marked:
            yield from blocks
            return
        of_label = class_of(roles.positive_labels, roles.negative_labels)
        for block in blocks:
            texts = ["" if np.isnan(one) else format_number(one) for one in block.labels.tolist()]
            yield replace(block, labels=np.array([of_label(text) for text in texts]))

    def _refuse_roles(self) -> None:
        for parameter in () if self._roles is None else self._roles.named_parameters:
            raise DataError(
                f"{self.name}: no named columns, so `{parameter}` cannot be used",
                "omit the option: the rows already have labels and ids",
            )


def encode_alike(inputs: Sequence[RowInput], known: FeatureMap | None) -> list[TableFeatures]:
    """Encode the tables of P and U in the same way; return their features, if they are tables."""
    if len({one.table is None for one in inputs}) > 1:
        named, plain = sorted(inputs, key=lambda one: one.table is None)
        raise DataError(
            f"{named.name} is a table with named columns, but {plain.name} is not",
            "give both as tables, or convert both to svmlight text",
        )
    for one in inputs if inputs[0].is_text else ():
        one.require_fingerprints(known, "the model was trained on")
        one.require_fingerprints(inputs[0].fingerprints, f"{inputs[0].name} contains")
    _share_roles([one for one in inputs if one.table is not None])
    for one in inputs:
        one.encode(known, selective=True)
    tables = [one.features for one in inputs if one.features is not None]
    for table in tables[1:] if known is None else ():
        table.share_map_of(tables[0])
    for table in tables[:1]:
        table.decide()
    return tables


def _share_roles(inputs: Sequence[RowInput]) -> None:
    """Give the columns of all tables the same roles, using the names in the first table.

    A column to drop may be missing from one of the tables.
    """
    columns = [one.table.columns for one in inputs if one.table is not None]

    def named(text: str) -> str:
        names = columns[0]
        is_number = text not in names and text.isdecimal() and 1 <= int(text) <= len(names)
        return names[int(text) - 1] if is_number else text

    for one, own in zip(inputs, columns, strict=True) if len(inputs) > 1 else ():
        roles = one.roles
        dropped = map(named, roles.dropped)
        anywhere = {name for names in columns for name in names}
        one.roles = replace(
            roles,
            label=None if roles.label is None else named(roles.label),
            row_id=None if roles.row_id is None else named(roles.row_id),
            smiles=None if roles.smiles is None else named(roles.smiles),
            only=tuple(map(named, roles.only)),
            categories=tuple(map(named, roles.categories)),
            dropped=tuple(name for name in dropped if name in own or name not in anywhere),
        )
