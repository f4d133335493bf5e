"""What to tell the user about the columns and rows of a table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from resvm_cli.errors import Message, Text
from resvm_cli.files.file_kinds import USUAL_NAMES
from resvm_cli.tables.features import TableFeatures

SHOWN = 10


def doubtful_columns(table: TableFeatures) -> Iterator[Text]:
    """Yield warnings about feature columns that may really be labels or row numbers."""
    for name in table.feature_columns:
        texts = []
        if not table.has_labels and name.lower() in USUAL_NAMES["label_column"]:
            texts.append(
                "the column '{name}' is among the features; if it contains labels, they leak the"
                " answer: use {label_column} {column} or {drop} {column}"
            )
        if name in table.unnamed:
            texts.append(
                "the column '{name}' has no name in the file and is among the features; if it"
                " numbers the rows, use {id_column} {column} or {drop} {column}"
            )
        yield from (Message(text, name=name, column=shlex.quote(name)) for text in texts)


def notes_on_rows(table: TableFeatures, owner: str) -> Iterator[Text]:
    """Yield notes about rows that were dropped, and values that the features' owner lacks."""
    if table.n_dropped:
        shown = [*table.dropped, *(["..."] if table.n_dropped > len(table.dropped) else [])]
        why = f"a missing value or an invalid molecule ({', '.join(shown)})"
        yield f"{table.n_dropped:,} rows were dropped: {why}"
    if table.n_unseen:
        yield f"{table.n_unseen:,} values are not in {owner} and get no feature"


def notes_on_prediction(table: TableFeatures) -> Iterator[Text]:
    """Yield notes about a table whose columns became the features of a model."""
    if names := table.ignored:
        yield f"{table.name}: columns that the model does not use were ignored: {_listed(names)}"
    yield from notes_on_rows(table, "the model")


def notes_on_training(tables: Sequence[TableFeatures], *, known: bool) -> Iterator[Text]:
    """Yield notes about the tables of P and U; ``known`` if a model decided their features."""
    first = tables[0]
    for name, content in first.excluded.items():
        text = "the column '{name}' holds {content}, so it is not used as a feature; to one-hot"
        text += " encode it anyway: {categorical:{column}}"
        if "smiles" in name.lower():
            text += "; for fingerprints of molecules: resvm convert"
        elif content == "ids":
            text += "; to name rows by it: {id_column:{column}}"
        yield Message(text, name=name, content=content, column=shlex.quote(name))
    if not known:
        yield from doubtful_columns(first)
        counts = [f"{name} ({n_values:,} values)" for name, n_values in first.categories.items()]
        if counts:
            yield f"categorical columns: {_listed(counts)}"
    for table in tables:
        yield from notes_on_prediction(table) if known else notes_on_rows(table, "the model")


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
