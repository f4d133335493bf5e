"""Ranking and scoring: what is done with many rows once members are trained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from experiments.speed.agreement import Agreement
from experiments.speed.bench import Bench
from experiments.speed.contest import Case, Group
from experiments.speed.data import COVTYPE, Scenario
from experiments.speed.programs import script

RANKED = Scenario(COVTYPE, COVTYPE, 1, 100, 100_000, 100, 200, (), 1)
SCORED_ROWS = 2_000_000
AREAS = ("average_precision", "roc_auc")
CLOSE = 1e-9


def groups(
    bench: Bench, ranked: Scenario = RANKED, scored_rows: int = SCORED_ROWS
) -> Iterator[Group]:
    yield _ranking(bench, ranked)
    yield _scoring(bench, scored_rows)


def _ranking(bench: Bench, scenario: Scenario) -> Group:
    problem = bench.data.problem(scenario, bench.command)
    ours = ("rank", "-q", "-P", problem.positives, "-U", problem.unlabeled, "--no-auto")
    cases = [
        Case(f"resvm rank --no-auto, {kernel}", bench.resvm(*ours, "-t", kernel, threads=1))
        for kernel in ("linear", "rbf")
    ]
    return Group(f"rank {scenario.rows_unl:,} rows ({bench.data.describe(COVTYPE)})", cases)


def _scoring(bench: Bench, n_rows: int) -> Group:
    predictions, labels = (bench.folder / f"scored.{name}" for name in ("pred", "labels"))
    rng = np.random.default_rng(0)
    truth = rng.random(n_rows) < 0.1
    values = rng.normal(0.0, 1.0, n_rows) + 1.5 * truth
    np.savetxt(predictions, np.stack([np.where(values > 1, 1, -1), values], 1), ["%d", "%.17g"])
    np.savetxt(labels, np.where(truth, 1, -1), "%d")
    told, peer = bench.folder / "scored.json", bench.folder / "scored.sklearn.json"
    ours = ("score", "-q", predictions, "--labels", labels, "--json")
    cases = [
        Case("resvm score, 1,000 resamples", bench.resvm(*ours), told),
        Case("resvm score, no interval", bench.resvm(*ours, "--bootstrap", 0)),
    ]
    if bench.wants("scikit-learn"):
        cases.append(
            Case(
                "scikit-learn, both areas, no interval",
                script("sklearn_score", predictions, labels),
                peer,
                check=partial(_same_areas, told, peer),
            )
        )
    return Group(f"score {n_rows:,} rows", cases)


def _same_areas(ours: Path, theirs: Path) -> Agreement:
    (found,) = json.loads(ours.read_text())["files"]
    expected = json.loads(theirs.read_text())
    apart = max(abs(found[name] - expected[name]) for name in AREAS)
    return Agreement(apart <= CLOSE, f"areas within {apart:.1e}")
