"""Notes for the user about the columns and rows of a table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from resvm_cli.errors import Message, Text, listed
from resvm_cli.files.file_kinds import LABEL_NAMES
from resvm_cli.rows import IntArray, Rows
from resvm_cli.tables.encoding import MappedColumn
from resvm_cli.tables.features import TableFeatures

SHOWN = 10
MIN_ROWS = 10  # of P and of U; a column may separate fewer by chance


class ColumnExtremes:
    """The smallest and largest value of each feature in P and in U, from one pass."""

    def __init__(self) -> None:
        self.n_rows = [0, 0]  # of U and of P
        self._counts = np.zeros((2, 0), np.int64)  # nonzero values
        self._low, self._high = np.zeros((2, 2, 0))

    def add(self, rows: Rows, *, positive: bool) -> None:
        which = int(positive)
        self.n_rows[which] += len(rows)
        self._widen(rows.max_index + 1)
        np.minimum.at(self._low[which], rows.indices, rows.values)
        np.maximum.at(self._high[which], rows.indices, rows.values)
        self._counts[which] += np.bincount(rows.indices, minlength=self._counts.shape[1])

    def _widen(self, width: int) -> None:
        more = max(0, width - self._counts.shape[1])
        self._counts = np.pad(self._counts, ((0, 0), (0, more)))
        self._low = np.pad(self._low, ((0, 0), (0, more)), constant_values=np.inf)
        self._high = np.pad(self._high, ((0, 0), (0, more)), constant_values=-np.inf)

    def notes(self, columns: Sequence[MappedColumn]) -> Iterator[Text]:
        """Yield notes about constant columns, and columns that separate P from U perfectly."""
        self._widen(1 + max(max([one.first, *one.values.values()]) for one in columns))
        with_zeros = self._counts < np.array(self.n_rows)[:, None]
        low = np.where(with_zeros, np.minimum(self._low, 0.0), self._low)
        high = np.where(with_zeros, np.maximum(self._high, 0.0), self._high)
        constant, leaking = [], []
        for column in columns:
            if column.kind == "number":
                at = column.first
                is_constant = low[:, at].min() == high[:, at].max()
                tells = low[1, at] > high[0, at] or high[1, at] < low[0, at]
            else:
                features = np.array(list(column.values.values()), np.int64)
                is_constant = bool(
                    (self._counts[:, features].sum(axis=0) == sum(self.n_rows)).any()
                )
                tells = self._categories_tell(features)
            if is_constant:
                constant.append(column.name)
            elif tells and min(self.n_rows) >= MIN_ROWS:
                leaking.append(column.name)
        for name in leaking:
            yield Message(
                "the column '{name}' alone separates P from U perfectly; if it depends on the"
                " labels, it leaks the answer: {drop:{column}}",
                name=name,
                column=shlex.quote(name),
            )
        if constant:
            yield f"columns with the same value in every row: {listed(constant, SHOWN)}"

    def _categories_tell(self, features: IntArray) -> bool:
        """Whether P and U share no category or missing value, and a few categories cover P."""
        counts = self._counts[:, features]
        missing = np.array(self.n_rows) - counts.sum(axis=1)
        shared = (np.column_stack([counts, missing]) > 0).all(axis=0)
        return not shared.any() and 2 * int((counts[1] > 0).sum()) <= self.n_rows[1]


def doubtful_columns(table: TableFeatures) -> Iterator[Text]:
    """Yield warnings about feature columns that may really be labels or row numbers."""
    for name in (column.name for column in table.map.columns):
        texts = []
        if table.roles.label is None and name.lower() in LABEL_NAMES:
            texts.append(
                "the column '{name}' is used as a feature; if it contains labels, it leaks the"
                " answer: use {label_column} {column} or {drop} {column}"
            )
        if name in table.table.unnamed:
            texts.append(
                "the column '{name}' has no name in the file and is used as a feature; if it"
                " contains row numbers, use {id_column} {column} or {drop} {column}"
            )
        yield from (Message(text, name=name, column=shlex.quote(name)) for text in texts)
    yield from _notes_on_id_like(table.id_like)


def _notes_on_id_like(columns: Mapping[str, str]) -> Iterator[Text]:
    """Yield one note for each reason why numeric columns may be ids or codes."""
    for why in dict.fromkeys(columns.values()):
        names = [name for name, own in columns.items() if own == why]
        yield Message(
            "numeric columns with {why} may be ids or codes: {names}; if they are not"
            " measurements, use {id_column:{first}}, {categorical:{first}} or {drop:{first}}",
            names=listed([f"'{name}'" for name in names], SHOWN),
            why=why,
            first=shlex.quote(names[0]),
        )


def notes_on_rows(table: TableFeatures, owner: str) -> Iterator[Text]:
    """Yield notes about dropped rows, and about categories that ``owner`` does not contain."""
    if table.n_dropped:
        shown = [*table.dropped, *(["..."] if table.n_dropped > len(table.dropped) else [])]
        why = f"missing values or invalid molecules: {', '.join(shown)}"
        yield f"{table.n_dropped:,} rows were dropped because of {why}"
    if table.unseen:
        counts = [
            f"{name} ({n_rows:,} row{'s' * (n_rows > 1)}, first '{text[:40]}')"
            for name, (n_rows, text) in table.unseen.items()
        ]
        yield f"categories unknown to {owner} get no feature: {listed(counts, SHOWN)}"


def notes_on_prediction(table: TableFeatures) -> Iterator[Text]:
    """Yield notes about a table that was encoded as the features of a model."""
    if table.ignored:
        names = listed(table.ignored, SHOWN)
        yield f"{table.table.name}: columns that the model does not use were ignored: {names}"
    yield from notes_on_rows(table, "the model")
    filled = [f"{name} in {count:,}" for name, count in table.n_missing.items() if count]
    if filled and not table.n_dropped:
        how = "as in training" if table.map.missing in (None, table.missing) else "with 0"
        text = f"missing values were filled in {how}: {listed(filled, SHOWN)}"
        yield f"{text} of {table.n_read:,} rows"


def notes_on_training(tables: Sequence[TableFeatures], *, known: bool) -> Iterator[Text]:
    """Yield notes about the tables of P and U; ``known``: a model defines their features."""
    first = tables[0]
    for name, content in first.excluded.items():
        text = "the column '{name}' contains {content}, so it is not used as a feature; to one-hot"
        text += " encode it anyway: {categorical:{column}}"
        if "smiles" in name.lower():
            text += "; for fingerprints of molecules: resvm convert"
        elif content == "ids":
            text += "; to use it as row ids: {id_column:{column}}"
        yield Message(text, name=name, content=content, column=shlex.quote(name))
    if not known:
        yield from doubtful_columns(first)
    for table in tables:
        yield from notes_on_prediction(table) if known else notes_on_rows(table, "the model")


def remark_on_categories(table: TableFeatures) -> Text | None:
    """Return a note that lists the one-hot encoded columns; None if there are none."""
    counts = [
        f"{name} ({n_values:,} value{'s' if n_values != 1 else ''})"
        for name, n_values in table.categories.items()
    ]
    return f"categorical columns: {listed(counts, SHOWN)}" if counts else None
