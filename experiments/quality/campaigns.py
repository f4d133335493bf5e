"""Simulate campaigns: five rounds of 96 tests; each batch is chosen using all earlier outcomes.

It takes 3 hours for 7 sets and 10 draws; the results are in docs/quality.md. A draw is a pool of at
most 2,500 rows, 6% of them positive, of which 20 are known. Strategies:

- next: ``rank --next 96``, with tested negatives as known negatives;
- greedy: the top 96 rows of ``rank``, with tested negatives as known negatives;
- ignoring: the top 96 rows of ``rank``; tested negatives stay in U, but are not tested again;
- NAPU-bagging: the mean of several SVCs, each trained on P against all known negatives and a new
  sample of U of the same size as P (IJMS 2024, 25:8239);
- SVC: one SVC trained on P against the tested negatives or, in the first round, against random rows
  of U;
- random: 96 random rows.

All strategies use the same kernel: rbf with gamma 1 / (features x variance) of standardized
features, or tanimoto for molecules. Penalties are balanced between the classes.

The positives of a pool are clustered into 30 kinds by complete linkage of kernel distances. Each
round records how many positives, and how many kinds of positives, have been found. It also records
how many tests of the batch were spent on near-duplicates of an earlier row in the same batch.
Near-duplicates are defined as in ``--next``, but relative to the whole pool.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

import resvm_cli
from experiments.markdown import markdown_table
from experiments.quality.log import Record, run_log
from experiments.quality.tasks import TASKS, labeled, matrix
from resvm_cli.ranking.batch import NEAR

POOL, POSITIVE, KNOWN = 2500, 0.06, 20
ROUNDS, BATCH = 5, 96
MEMBERS = 30
KINDS = 30
# The rules were chosen on the first group of sets, before anything was run on the second.
SETS = {
    "chosen": (
        *("tox21 NR-AhR", "optdigits 9", "phoneme", "a9a", "segment 5", "yeast1", "banana"),
    ),
    "judged": (
        *("tox21 SR-MMP", "BBBP 0", "optdigits 8", "page-blocks0", "spambase", "magic"),
        "splice +",
    ),
}
STRATEGIES = ("next", "greedy", "ignoring", "NAPU-bagging", "SVC", "random")
REPLICATES = 2000


class Pool:
    """The rows of a campaign, their true classes, and their known classes: 1, -1 or 0 (unknown)."""

    def __init__(self, name: str, draw: int, folder: Path) -> None:
        task = TASKS[name]
        rows, truth = labeled(task, folder)
        rng = np.random.default_rng([draw, *name.encode()])
        classes = np.flatnonzero(truth), np.flatnonzero(~truth)
        n_neg = min(round(POOL * (1 - POSITIVE)), len(classes[1]))
        n_pos = min(round(POSITIVE / (1 - POSITIVE) * n_neg), len(classes[0]))
        sizes = max(n_pos, 3 * KNOWN), n_neg
        parts = [rng.choice(own, size, False) for own, size in zip(classes, sizes, strict=True)]
        chosen = rng.permutation(np.concatenate(parts))
        taken = rows.take(chosen)
        self.truth = truth[chosen]
        self.is_molecules = task.column is not None
        self.X: Any = matrix(taken, rows.max_index)
        if not self.is_molecules:
            self.X = self.X.toarray()
        self.known = np.zeros(len(chosen), int)
        self.known[rng.choice(np.flatnonzero(self.truth), KNOWN, False)] = 1

    @property
    def n_hidden(self) -> int:
        return int(self.truth.sum()) - KNOWN

    @property
    def n_found(self) -> int:
        return int((self.known == 1).sum()) - KNOWN

    @property
    def open(self) -> np.ndarray:
        """The rows whose class is not known yet."""
        return np.flatnonzero(self.known == 0)

    def test(self, rows: np.ndarray) -> None:
        self.known[rows] = np.where(self.truth[rows], 1, -1)

    def kernel(self) -> np.ndarray:
        """The kernel matrix, for SVCs and distances."""
        if self.is_molecules:
            both = (self.X @ self.X.T).toarray()
            sizes = both.diagonal()
            return both / np.maximum(sizes[:, None] + sizes[None, :] - both, 1)
        scaled = (self.X - self.X.mean(axis=0)) / np.where(
            self.X.std(axis=0), self.X.std(axis=0), 1
        )
        norms = (scaled**2).sum(axis=1)
        distances = norms[:, None] + norms[None, :] - 2 * scaled @ scaled.T
        return np.exp(-np.maximum(distances, 0) / (scaled.shape[1] * scaled.var()))


def kinds_of(positive: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Return the cluster number of each positive row, and -1 for other rows."""
    own = distances[np.ix_(positive, positive)]
    tree = linkage(own[np.triu_indices(len(positive), 1)], "complete")
    kinds = np.full(len(distances), -1)
    kinds[positive] = fcluster(tree, KINDS, "maxclust")
    return kinds


def campaign(strategy: str, name: str, draw: int, folder: Path) -> dict[str, Any]:
    """Run a campaign; return positives found, their kinds and near-duplicates for each round."""
    pool = Pool(name, draw, folder)
    rng = np.random.default_rng([7, draw])
    values = pool.kernel()
    distances = np.maximum(2 - 2 * values, 0)  # the kernel of every row with itself is 1
    near = distances <= NEAR * np.median(distances)
    kinds = kinds_of(np.flatnonzero(pool.truth), distances)
    start = pool.known == 1
    record: dict[str, Any] = {"task": name, "draw": draw, "method": strategy, "of": pool.n_hidden}
    record |= {"found": [], "kinds": [], "near": []}
    for number in range(ROUNDS):
        if strategy == "random":
            batch = rng.choice(pool.open, BATCH, False)
        elif strategy in ("SVC", "NAPU-bagging"):
            batch = by_svc(pool, values, rng, bags=strategy == "NAPU-bagging")
        else:
            batch = by_resvm(pool, strategy, number)
        pool.test(batch)
        record["found"].append(pool.n_found)
        record["kinds"].append(len(set(kinds[(pool.known == 1) & ~start].tolist())))
        repeated = np.tril(near[np.ix_(batch, batch)], -1).any(axis=1)
        record["near"].append(int(repeated.sum()))
    return record


def by_resvm(pool: Pool, strategy: str, number: int) -> np.ndarray:
    settings = {"kernel": "tanimoto"} if pool.is_molecules else {"scale": "standard"}
    labels, negative = pool.known, -1
    if strategy == "ignoring" or not (labels == -1).any():
        labels, negative = np.maximum(labels, 0), None
    model = resvm_cli.RESVMClassifier(
        n_models=MEMBERS,
        auto=False,
        decision="mean",
        negative_label=negative,
        random_state=number,
        **settings,
    ).fit(pool.X, labels)
    size = BATCH if strategy == "next" else None
    rows = resvm_cli.rank(pool.X, labels, model=model, negative_label=negative, next=size).rows
    return rows[pool.known[rows] == 0][:BATCH]


def by_svc(pool: Pool, values: np.ndarray, rng: Any, *, bags: bool) -> np.ndarray:
    from sklearn.svm import SVC

    positive, negative = np.flatnonzero(pool.known == 1), np.flatnonzero(pool.known == -1)
    total = np.zeros(len(pool.open))
    for _ in range(MEMBERS if bags else 1):
        others = negative
        if bags or not len(negative):
            drawn = rng.choice(pool.open, len(positive) if bags else 2 * BATCH)
            others = np.concatenate([negative, drawn])
        used = np.concatenate([positive, others])
        labels = np.repeat([1, -1], [len(positive), len(others)])
        model = SVC(kernel="precomputed", class_weight="balanced")
        model.fit(values[np.ix_(used, used)], labels)
        total += model.decision_function(values[np.ix_(pool.open, used)])
    return pool.open[np.argsort(-total, kind="stable")[:BATCH]]


Cells = dict[tuple[str, int], np.ndarray]  # keys are data set and draw


def by_strategy(records: list[dict[str, Any]], key: str) -> dict[str, Cells]:
    """Return a figure of each round on the cells that all strategies have.

    "found" is in percent of the hidden positives.
    """
    figures: dict[str, Cells] = {name: {} for name in STRATEGIES}
    for one in records:
        scale = 100 / one["of"] if key == "found" else 1.0
        figures[one["method"]][one["task"], one["draw"]] = scale * np.array(one[key])
    figures = {name: own for name, own in figures.items() if own}
    cells = set.intersection(*map(set, figures.values()))
    return {name: {cell: own[cell] for cell in sorted(cells)} for name, own in figures.items()}


def interval(differences: Cells) -> np.ndarray:
    """Return 95% intervals of mean differences over sets, resampling draws within each set."""
    rng = np.random.default_rng(0)
    by_set: dict[str, list[np.ndarray]] = defaultdict(list)
    for (name, _), values in differences.items():
        by_set[name].append(values)
    means = []
    for own in by_set.values():
        block = np.array(own)
        means.append(block[rng.integers(0, len(block), (REPLICATES, len(block)))].mean(axis=1))
    return np.quantile(np.mean(means, axis=0), [0.025, 0.975], axis=0)


def with_mean(rounds: np.ndarray) -> np.ndarray:
    return np.append(rounds, rounds.mean())


def tables(records: Sequence[Record]) -> str:
    return "\n\n".join(text for half in SETS for text in half_tables(records, half))


def half_tables(records: Sequence[Record], half: str) -> Iterator[str]:
    records = [record for record in records if record["task"] in SETS[half]]
    if not records:
        return
    found = by_strategy(records, "found")
    cells = list(next(iter(found.values())))
    n_sets = len({name for name, _ in cells})
    head = ["strategy", *(f"round {number + 1}" for number in range(ROUNDS)), "mean of rounds"]
    yield (
        f"Percentages of the hidden positives found, on the sets on which the rules were {half}:"
        f" {n_sets} sets, {len(cells)} draws in all."
    )
    rows = []
    for name, own in found.items():
        mean = with_mean(np.mean(list(own.values()), axis=0))
        rows.append([name, *(f"{value:.1f}" for value in mean)])
    yield markdown_table(head, rows)
    rows = []
    for name in (each for each in found if each != "next"):
        apart = {cell: with_mean(found["next"][cell] - found[name][cell]) for cell in cells}
        mean, (low, high) = np.mean(list(apart.values()), axis=0), interval(apart)
        texts = zip(mean, low, high, strict=True)
        rows.append([f"next - {name}", *(f"{m:+.1f} ({a:+.1f} to {b:+.1f})" for m, a, b in texts)])
    yield markdown_table(head, rows)
    rows = []
    for task in dict.fromkeys(name for name, _ in cells):
        last = (np.mean([own[c][-1] for c in cells if c[0] == task]) for own in found.values())
        rows.append([task, *(f"{value:.1f}" for value in last)])
    yield markdown_table(["after the last round", *found], rows)
    kinds, near = by_strategy(records, "kinds"), by_strategy(records, "near")
    head = [
        f"kinds of positives found, of {KINDS}",
        *head[1:-1],
        "tests of near-duplicates, in all",
    ]
    rows = []
    for name in found:
        means = [np.mean(list(own[name].values()), axis=0) for own in (kinds, near)]
        rows.append([name, *(f"{value:.1f}" for value in (*means[0], means[1].sum()))])
    yield markdown_table(head, rows)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m experiments.quality campaigns", description=__doc__)
    parser.add_argument("--sets", default="judged", choices=SETS)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--strategies", nargs="*", choices=STRATEGIES, default=STRATEGIES)

    def works(given: argparse.Namespace) -> Iterator[Record]:
        for draw, name, strategy in itertools.product(
            range(given.draws), SETS[given.sets], given.strategies
        ):
            yield {"task": name, "draw": draw, "method": strategy}

    def work(key: Record, folder: Path) -> Record:
        return campaign(key["method"], key["task"], key["draw"], folder)

    run_log(parser, argv, works, work, tables)
