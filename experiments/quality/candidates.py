"""Lists of settings that the search could try, compared on small tables (docs/quality.md).

Every setting is scored as in the search and trained once for each draw, so that any list can be
pooled afterwards. Tables are CSV files in DATA_DIR/tables whose first column, ``positive``, is 1 or
0. They are drawn as they are, with 100 features of noise, with skewed features, and with 15 known
positives. It takes 10 minutes for 28 tables.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import average_precision_score

from experiments.markdown import markdown_table
from experiments.quality.log import Record, run_log
from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.decisions import mean_values
from resvm_cli.ensemble.ensemble import Predictor
from resvm_cli.parameters import Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.tuning.candidates import (
    INFORMED,
    MAX_SETTINGS,
    SETTING_MEMBERS,
    Candidate,
    RelativeSetting,
    SearchOptions,
    Trial,
    informed_candidates,
    informed_settings,
    pool_best,
)
from resvm_cli.tuning.learn import learn
from resvm_cli.tuning.sample import TuningSample
from resvm_cli.tuning.search import settle_scaling
from resvm_cli.tuning.validation import CandidateScorer

KINDS = ("plain", "noise", "skewed", "few")
USUAL, LARGE = (1.0, 2.0, 0.7), (1.0, 5.0, 0.5)
IN_USE = informed_settings(Params(), quantiles=True)
ONE_SCALING = [
    *(RelativeSetting(*USUAL, gamma, 1.0) for gamma in (0.3, 1.0, 3.0)),
    *(RelativeSetting(*USUAL, 3.0, 1.0, power) for power in (1.0, 2.0)),
    *(RelativeSetting(*USUAL, 1.0, 10.0, 1.0, "linear"), RelativeSetting(*LARGE, 1.0, 10.0)),
]
FIFTEEN = (*ONE_SCALING, *(replace(one, quantile=True) for one in ONE_SCALING))
LISTS: dict[str, tuple[RelativeSetting, ...]] = {
    "fifteen, without laplacian": (*FIFTEEN, RelativeSetting(*LARGE, 0.3, 10.0)),
    "in use": IN_USE,
    "without laplacian": tuple(one for one in IN_USE if one.kernel != "laplacian"),
    "without feature weights": tuple(one for one in IN_USE if not one.power),
    "without linear": tuple(one for one in IN_USE if one.kernel != "linear"),
    "with large bags": (*IN_USE, RelativeSetting(*LARGE, 0.3, 10.0)),
}


def draw(path: Path, kind: str, number: int) -> tuple[MemoryData, Rows, np.ndarray]:
    """Draw P (40% of the positives of one half, at most 200), U (the rest, at most 1,000), test."""
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    truth, X = table[:, 0] > 0, table[:, 1:]
    rng = np.random.default_rng([number, *kind.encode(), *path.name.encode()])
    if kind == "noise":
        X = np.hstack([X, rng.standard_normal((len(X), 100))])
    if kind == "skewed":
        spread = X.std(axis=0)
        X = np.exp(1.5 * np.clip((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1), -4, 4))
    order = rng.permutation(len(truth))[:6000]
    half, test = np.split(order, [len(order) // 2])
    positive = half[truth[half]]
    n_pos = min(15 if kind == "few" else 200, max(5, int(0.4 * len(positive))))
    unlabeled = rng.permutation(np.setdiff1d(half, positive[:n_pos]))[:1000]
    rows = csr_matrix(X[np.concatenate([positive[:n_pos], unlabeled])])
    data = MemoryData.from_matrix(rows, np.arange(rows.shape[0]) < n_pos, scale="auto")
    return data, Rows.from_matrix(csr_matrix(X[test[:1000]]), 1), truth[test[:1000]]


def measure(data: MemoryData, test: Rows, truth: np.ndarray, seed: int) -> Record:
    """Return the average precision of each list's pool, and the seconds to score its settings."""
    run, base = Run(jobs=1).silent(), Params(seed=seed)
    settle_scaling(data, base, run)
    options = SearchOptions(base=base, oob=True, committee=MAX_SETTINGS, **INFORMED)
    sample = TuningSample.from_data(data, options, run)
    scorer, gammas = (
        CandidateScorer(sample, options),
        {k: s.gamma for k, s in sample.scaled.items()},
    )
    sizes = len(data.positives), data.n_unlabeled
    trials: dict[RelativeSetting, Trial] = {}
    seconds: dict[RelativeSetting, float] = {}
    for setting in dict.fromkeys(one for some in LISTS.values() for one in some):
        started = time.process_time()
        space = sample.space(options)
        (candidate,) = informed_candidates([setting], space, *sizes, gammas)
        (scores,) = scorer.scores([candidate], run)
        seconds[setting] = time.process_time() - started
        if not isinstance(scores, Exception):
            area = scores.values[options.metric]
            trials[setting] = Trial(len(trials), candidate, options.scored_members, area, scores)

    def planned(candidate: Candidate) -> Params:
        params = candidate.parameters(base, SETTING_MEMBERS, *sizes)
        return replace(params, weight=1.0, scale=candidate.scale)

    settings = tuple(planned(trial.candidate) for trial in trials.values())
    params = replace(base, settings=settings, auto=False, decision="mean")
    ensemble = learn(data, params, run)[1].ensemble
    values = Predictor(ensemble).member_values(test)
    sums = [values[:, section.columns].sum(axis=1) for section in ensemble.sections]
    found: dict[str, Any] = {"ap": {}, "seconds": {}}
    for name, listed in LISTS.items():
        scored = [trials[one] for one in listed if one in trials]
        best = pool_best(scored)
        sections = [replace(ensemble.sections[one.number], weight=w) for one, w, _ in best]
        counts = [np.array([len(section.members)]) for section in sections]
        means = mean_values([sums[one.number] for one, _, _ in best], counts, sections)
        found["ap"][name] = 100 * float(average_precision_score(truth, means))
        found["seconds"][name] = sum(seconds[one] for one in listed)
    return found


def tables(records: Sequence[Record]) -> str:
    """Format the gain of each list over the first: mean over tables and its standard error."""
    base, *others = LISTS
    kinds = [kind for kind in KINDS if any(one["kind"] == kind for one in records)]
    rows = []
    for name in others:
        row = [name, str(len(LISTS[name]))]
        for kind in kinds:
            gains: dict[str, list[float]] = {}
            for one in records:
                if one["kind"] == kind:
                    gain = one["ap"][name] - one["ap"][base]
                    gains.setdefault(one["table"], []).append(gain)
            means = np.array([np.mean(some) for some in gains.values()])
            row.append(f"{means.mean():+.2f} ({means.std() / max(1, len(means) - 1) ** 0.5:.2f})")
        ratio = np.mean([one["seconds"][name] / one["seconds"][base] for one in records])
        rows.append([*row, f"{ratio:.2f}"])
    return markdown_table(["settings", "number", *kinds, "time"], rows)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(
        "python -m experiments.quality candidates", description=__doc__
    )
    parser.add_argument("--draws", type=int, default=1)

    def works(given: argparse.Namespace) -> Iterator[Record]:
        for number in range(given.draws):
            for kind in KINDS:
                for path in sorted((given.data_dir / "tables").glob("*.csv*")):
                    yield {"table": path.name, "kind": kind, "draw": number}

    def work(key: Record, folder: Path) -> Record:
        return measure(
            *draw(folder / "tables" / key["table"], key["kind"], key["draw"]), key["draw"]
        )

    run_log(parser, argv, works, work, tables)
