"""A model directory to what it holds, every digest verified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli.errors import DataError, ModelError
from resvm_cli.files.atomic import read_steadily
from resvm_cli.model.ensemble import Ensemble
from resvm_cli.model_files import directory as model_dir
from resvm_cli.rows import Columns, FloatArray
from resvm_cli.tables.feature_map import read_feature_map


@dataclass(frozen=True)
class FeatureWeight:
    """What a feature counts in a linear model: the members' mean weight, and how they differ.

    Of a committee the groups' weights count as its mean value has them: standardised and weighted.
    """

    feature: int
    name: str
    weight: float
    deviation: float


@dataclass(frozen=True)
class Inspection:
    """An intact model: its manifest and some totals."""

    path: str
    manifest: dict[str, Any]
    n_members: int
    n_support_vectors: int  # over all members
    n_pool: int  # distinct ones
    n_bytes: int
    weights: tuple[FeatureWeight, ...] | None = None  # the largest first, only where asked for


def inspect(path: str, *, weights: bool = False, feature_map: str | None = None) -> Inspection:
    """Read and verify a model; raises ModelError on its first fault."""
    names = None if feature_map is None else read_feature_map(feature_map).names
    return read_steadily(path, lambda: _inspect(path, names, weights=weights))


def _inspect(path: str, names: list[str] | None, *, weights: bool) -> Inspection:
    stored = model_dir.load(path)
    if stored.manifest.get("out_of_bag") is not None:
        model_dir.load_out_of_bag(path, stored.manifest, of_positives=False)
    members = stored.manifest["members"]
    return Inspection(
        path=path,
        manifest=stored.manifest,
        n_members=len(members),
        n_support_vectors=sum(len(member.support) for member in stored.ensemble.members),
        n_pool=len(stored.ensemble.pool),
        n_bytes=sum(int(entry["bytes"]) for entry in members),
        weights=_weights(path, stored.ensemble, names) if weights else None,
    )


def _weights(path: str, ensemble: Ensemble, names: list[str] | None) -> tuple[FeatureWeight, ...]:
    kernel = ensemble.groups[0].kernel.name
    if kernel != "linear":
        raise ModelError(
            f"{path}: its kernel is {kernel}, which has no weights of features",
            "train a linear model: -t linear",
        )
    columns = Columns(ensemble.pool.indices)
    table: FloatArray = np.zeros((len(ensemble.members), len(columns)))
    for line, member in zip(table, ensemble.members, strict=True):
        rows = ensemble.pool.take(member.support)
        values = rows.values * np.repeat(member.coefficients, rows.lengths)
        np.add.at(line, columns.places(rows.indices), values)
    shares = np.ones(len(table))
    if len(ensemble.groups) > 1:
        for group in ensemble.groups:
            table[group.columns] /= group.scale
            shares[group.columns] = group.weight / len(group.members)
    features = columns.present.tolist()
    if names is not None and features and features[-1] > len(names):
        raise DataError(
            f"{path}: has a feature {features[-1]:,}, and the map ends at {len(names):,}",
            "give the map that was written with the rows it was trained on",
        )
    means = np.average(table, axis=0, weights=shares)
    deviations = np.sqrt(np.average((table - means) ** 2, axis=0, weights=shares))
    order = np.argsort(-np.abs(means), kind="stable").tolist()
    return tuple(
        FeatureWeight(
            features[place],
            names[features[place] - 1] if names is not None else str(features[place]),
            float(means[place]),
            float(deviations[place]),
        )
        for place in order
    )
