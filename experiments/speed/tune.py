"""Tuning: a grid of 24 candidates judged by ten folds, the same folds and bags for everyone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from experiments.speed.agreement import Agreement
from experiments.speed.bench import Bench
from experiments.speed.contest import Case, Group
from experiments.speed.data import Problem, Scenario
from experiments.speed.members import AUTHORS
from experiments.speed.programs import script
from resvm_cli.randomness import bag_bits, below, fold_seed
from resvm_cli.tuning.sample import Folds

N_POS, PER_POS, N_MODELS, N_FOLDS = 10, 5, 20, 10
OURS = "resvm tune, ten folds, one thread"
OUT_OF_BAG = "resvm tune, out of bag, one thread"
SKLEARN = "scikit-learn SVC loop, dense rows"  # over sparse rows, it is slower
METRIC = "roc_auc_of_mean"
LIMIT = 5e-3  # of a mean ROC AUC
# gamma, w_pos, C_U; no gamma for the linear kernel
GRIDS: dict[str, tuple[Sequence[float], Sequence[float], Sequence[float]]] = {
    "rbf": ((0.005, 0.02, 0.08), (1.0, 4.0), (0.1, 1.0, 10.0, 100.0)),
    "linear": ((), (0.5, 1.0, 2.0, 4.0), (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)),
}


def groups(bench: Bench, scenario: Scenario = AUTHORS) -> Iterator[Group]:
    problem = bench.data.problem(scenario, bench.command)
    for kernel in ("rbf", "linear"):
        folder = bench.folder / f"tune.{kernel}"
        folder.mkdir(exist_ok=True)
        given = _folds(problem, kernel, folder)
        cases = [
            _resvm(bench, problem, kernel, folder, name, more, threads)
            for name, more, threads in (
                (OURS, ("-v", str(N_FOLDS)), 1),
                ("resvm tune, ten folds, default threads", ("-v", str(N_FOLDS)), None),
                (OUT_OF_BAG, (), 1),
            )
        ]
        if bench.wants("scikit-learn"):
            cases.append(_sklearn(problem, folder, given))
        yield Group(
            f"tune 24 {kernel} candidates, {N_FOLDS} folds, {N_MODELS} members of {N_POS} +"
            f" {N_POS * PER_POS} ({bench.data.describe(scenario.data)}, {scenario.rows_pos} +"
            f" {scenario.rows_unl:,} rows)",
            cases,
        )


def _listed(values: Sequence[float]) -> str:
    return ",".join(map(str, values))


def _resvm(
    bench: Bench,
    problem: Problem,
    kernel: str,
    folder: Path,
    name: str,
    more: Sequence[str],
    threads: int | None,
) -> Case:
    target = folder / f"timed{len(more)}.{threads}"
    gammas, weights, penalties = GRIDS[kernel]
    steps = bench.resvm(
        *("tune", "-q", "-P", problem.positives, "-U", problem.unlabeled, "-t", kernel),
        *("--search", "grid", "--no-extend", "-c", _listed(penalties)),
        *("--w-pos", _listed(weights), "--n-pos", N_POS, "--unl-per-pos", PER_POS),
        *(("-g", _listed(gammas)) if gammas else ()),
        *("--n-models", N_MODELS, "-o", target, *more),
        threads=threads,
    )
    return Case(
        name, steps, threads=threads, reset=partial(shutil.rmtree, target, ignore_errors=True)
    )


def _folds(problem: Problem, kernel: str, folder: Path) -> Path:
    """Folds, bags and candidates for the peers, by resvm's own rules."""
    sizes = problem.scenario
    line = Folds.drawn(sizes.rows_pos, sizes.rows_unl, N_FOLDS, 0).numbers
    bags = np.zeros((N_FOLDS, N_MODELS, N_POS * (1 + PER_POS)), np.int64)
    for fold in range(N_FOLDS):
        kept_pos = np.flatnonzero(line[: sizes.rows_pos] != fold)
        kept_unl = np.flatnonzero(line[sizes.rows_pos :] != fold) + sizes.rows_pos
        for member in range(N_MODELS):
            bits = bag_bits(fold_seed(0, fold), member)
            positive = kept_pos[below(bits, len(kept_pos), N_POS)]
            unlabeled = kept_unl[below(bits, len(kept_unl), N_POS * PER_POS)]
            bags[fold, member] = np.concatenate([positive, unlabeled])
    gammas, weights, penalties = GRIDS[kernel]
    candidates = [(g, w, c) for g in gammas or (0.0,) for w in weights for c in penalties]
    path = folder / "folds.npz"
    np.savez(
        path,
        line=line,
        bags=bags,
        candidates=candidates,
        n_pos=N_POS,
        n_features=problem.n_features,
    )
    return path


def _sklearn(problem: Problem, folder: Path, given: Path) -> Case:
    out = folder / "scikit-learn.json"

    def check() -> Agreement:
        theirs = json.loads(out.read_text())
        lines = (folder / "timed0.1" / "trials.jsonl").read_text().splitlines()
        ours = [json.loads(line)["values"][METRIC] for line in lines]
        largest = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        return Agreement(
            largest <= LIMIT, f"mean ROC AUCs of {len(ours)} candidates within {largest:.1e}"
        )

    steps = script("sklearn_tune", given, problem.positives, problem.unlabeled, out)
    return Case(SKLEARN, steps, check=check)
