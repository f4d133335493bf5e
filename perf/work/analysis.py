"""Ranking and scoring: what is done with many rows once members are trained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from perf.agreement import Agreement
from perf.bench import Bench
from perf.case import Case, Group
from perf.data import COVTYPE
from perf.programs.program import script

TITLE = "Ranking and scoring"
AREAS = ("average_precision", "roc_auc")
CLOSE = 1e-9


def groups(bench: Bench) -> Iterator[Group]:
    yield _ranking(bench)
    yield _scoring(bench)


def _ranking(bench: Bench) -> Group:
    sizes = replace(bench.sizes, rows_pos=100, rows_unl=bench.sizes.ranked_rows)
    sizes = replace(sizes, generated_rows=3 * sizes.rows_unl)
    data = bench.data.sized(sizes)
    problem = data.problem(COVTYPE, COVTYPE, 1, bench.command)
    ours = ("rank", "-q", "-P", problem.positives, "-U", problem.unlabeled, "-t", "linear")
    cases = [
        Case(f"resvm rank{name}", bench.resvm(*ours, *more, threads=1))
        for name, more in (("", ()), (" --no-interval", ("--no-interval",)))
    ]
    return Group(f"rank {sizes.rows_unl:,} rows ({data.describe(COVTYPE)}), linear", cases)


def _scoring(bench: Bench) -> Group:
    n_rows = bench.sizes.scored_rows
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
