"""How good are rankings and audits? Out of bag, compared with values of a row's own members.

For draws of tasks with known classes: how well does the ranking find the positives in U, how close
is the recall that known positives suggest to the true recall, and how well does an audit find the
false rows of P? It takes 20 minutes for 35 tasks and 3 draws; docs/ranking.md describes the method.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

import resvm_cli
from experiments.markdown import markdown_table
from experiments.quality.log import run_log
from experiments.quality.tasks import TASKS, draw

CONTAMINATIONS = (0.0, 0.1, 0.3)
Record = dict[str, Any]


def recall_gap(truth: np.ndarray, known: np.ndarray, unlabeled: np.ndarray) -> tuple[float, float]:
    """Return the estimated and the true recall among the top n_hidden rows of U."""
    depth = int(truth.sum())
    unlabeled = np.where(np.isnan(unlabeled), -np.inf, unlabeled)
    cut = np.sort(unlabeled)[::-1][depth - 1]
    order = np.argsort(-unlabeled, kind="stable")
    return float(np.nanmean(known >= cut)), float(truth[order[:depth]].mean())


def measure(name: str, contamination: float, number: int, folder: Path) -> Record:
    """Rank and audit a draw with default parameters."""
    drawn = draw(name, contamination, number, folder)
    X, y = drawn.X, drawn.labels == 1
    ranking = resvm_cli.rank(X, y, random_state=number, n_jobs=1)
    audit = resvm_cli.rank(X, y, model=ranking.model, audit=True, n_jobs=1)
    values = np.empty(len(y))
    for part in (ranking, audit):
        values[part.rows] = part.columns["decision_value"]
    record: Record = {}
    for way, some in (("out_of_bag", values), ("naive", ranking.model.decision_values(X))):
        estimated, true = recall_gap(drawn.truth_unl, some[y], some[~y])
        lowest = np.where(np.isnan(some), np.nanmin(some) - 1, some)
        record[way] = {
            "ap": average_precision_score(drawn.truth_unl, lowest[~y]),
            "gap": estimated - true,
        }
        if contamination:
            record[way]["audit"] = average_precision_score(~drawn.truth_pos, -lowest[y])
    if contamination:
        fractions = {"contamination_pos": contamination, "contamination_unl": drawn.prior}
        audit = resvm_cli.rank(X, y, model=ranking.model, audit=True, n_jobs=1, **fractions)
        depth = int((~drawn.truth_pos).sum())
        record["expected"] = float(audit.columns["expected_false"][depth - 1]) / depth
        record["found"] = float((~drawn.truth_pos[audit.rows[:depth]]).mean())
    return record


def tables(records: Sequence[Record]) -> str:
    """Format means over all draws, in percent, with standard errors over tasks."""
    rows = []
    for a in CONTAMINATIONS:
        some = [one for one in records if one["contamination"] == a]
        for way in ("out_of_bag", "naive"):
            cells = [
                _mean(some, lambda one, key=key, way=way: one[way][key]) for key in ("ap", "gap")
            ]
            if a:
                cells.append(_mean(some, lambda one, way=way: one[way]["audit"]))
                cells += [
                    _mean(some, lambda one, key=key: one[key]) for key in ("expected", "found")
                ]
            rows.append([f"{way.replace('_', ' ')}, {100 * a:.0f}% of P false", *cells])
    width = max(map(len, rows))
    rows = [[*cells, *[""] * (width - len(cells))] for cells in rows]
    head = ["values", "AP, positives in U", "recall: estimated - true", "AP, false rows of P"]
    head += ["expected false", "found false"]
    n_tasks = len({one["task"] for one in records})
    return (
        f"{len(records)} draws of {n_tasks} tasks, percent (standard error over tasks); expected"
        " and found: the fraction of false rows among as many as there are.\n\n"
        + markdown_table(head[:width], rows)
    )


def _mean(records: Sequence[Record], figure: Any) -> str:
    by_task: dict[str, list[float]] = {}
    for one in records:
        by_task.setdefault(one["task"], []).append(100 * figure(one))
    means = [float(np.mean(some)) for some in by_task.values()]
    error = np.std(means, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else 0.0
    return f"{np.mean(means):.1f} ({error:.1f})" if means else ""


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m experiments.quality rankings", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--draws", type=int, default=3)

    def works(given: argparse.Namespace) -> Iterator[Record]:
        for number, task, a in itertools.product(range(given.draws), given.tasks, CONTAMINATIONS):
            yield {"task": task, "contamination": a, "draw": number}

    def work(key: Record, folder: Path) -> Record:
        return measure(key["task"], key["contamination"], key["draw"], folder)

    run_log(parser, argv, works, work, tables)
