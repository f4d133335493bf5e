"""How good are tuned models? Ways to choose a candidate, judged by the test rows.

Random candidates are scored by every metric, out of bag and with ten folds, and each is trained and
tested. The tables compare what each way of choosing would have selected. It takes 5 hours for 6
tasks, 5 draws and 20 candidates.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import resvm_cli
from experiments.markdown import markdown_table
from experiments.quality.log import run_log
from experiments.quality.tasks import TASKS, Draw, draw
from resvm_cli.metrics.ranking import ScoredLabels

CHOSEN = ("synthetic", "cancer", "covtype", "mnist 7", "mnist 8", "ijcnn1")  # as in the paper
CONTAMINATIONS = (0.0, 0.3)
ESTIMATES = ("oob", "folds")
Record = dict[str, Any]


def test_area(drawn: Draw, seed: int, **parameters: Any) -> float:
    """Return the trapezoidal PR AUC, in percent, of a model trained on P and U."""
    parameters = {"auto": False, "oob": False, **parameters}
    model = resvm_cli.RESVMClassifier(random_state=seed, n_jobs=1, **parameters)
    values = model.fit(drawn.X, drawn.labels).decision_values(drawn.test_X)
    return 100 * float(ScoredLabels.from_scores(drawn.truth_test, values).pr_auc_trapezoid())


def measure(name: str, contamination: float, number: int, trials: int, folder: Path) -> Record:
    drawn = draw(name, contamination, number, folder)
    record: Record = {"defaults": test_area(drawn, seed=number)}
    started = time.process_time()
    record["auto"] = test_area(drawn, seed=number, auto=True)
    record["auto_seconds"] = time.process_time() - started
    for estimate in ESTIMATES:
        options: dict[str, Any] = {"oob": True} if estimate == "oob" else {"folds": 10}
        options |= {"search": "random", "trials": trials, "no_extend": True, "random_state": number}
        started = time.process_time()
        tuning = resvm_cli.tune(drawn.X, drawn.labels, n_jobs=1, **options)
        record[f"{estimate}_seconds"] = time.process_time() - started
        record[estimate] = []
        for trial in tuning.search:
            if trial["values"] is None:
                continue
            params = dict(trial["params"])
            n_pos = int(params.pop("n_pos"))
            n_unl = max(1, round(n_pos * params.pop("unl_per_pos")))
            sizes = {"n_pos": n_pos, "n_unl": n_unl, "n_models": trial["n_models"]}
            area = test_area(drawn, seed=number, **sizes, **params)
            record[estimate].append({"values": trial["values"], "test": area})
    return record


def tables(records: Sequence[Record]) -> str:
    """Format the test PR AUC that each way of choosing reaches."""
    metrics = list(records[0]["oob"][0]["values"])
    ways = [("best candidate", "oob", None)]
    ways += [(f"{how}: {metric}", how, metric) for how in ESTIMATES for metric in metrics]
    columns = list(dict.fromkeys((one["task"], one["contamination"]) for one in records))

    def reached(record: Record, how: str, metric: str | None) -> float:
        if metric is None:
            return max(trial["test"] for trial in record[how])
        return max(record[how], key=lambda trial: trial["values"][metric])["test"]

    rows = []
    for title, how, metric in ways:
        rows.append([title, [reached(record, how, metric) for record in records]])
    rows += [["train", [one["auto"] for one in records]]]
    rows += [["train --no-auto", [one["defaults"] for one in records]]]
    lines = []
    for title, areas in rows:
        means = [
            np.mean(
                [
                    area
                    for area, one in zip(areas, records, strict=True)
                    if (one["task"], one["contamination"]) == column
                ]
            )
            for column in columns
        ]
        lines.append([title, *(f"{mean:.1f}" for mean in means), f"**{np.mean(means):.1f}**"])
    head = [f"{task}, {100 * a:.0f}% of P false" for task, a in columns]
    seconds = ", ".join(
        f"{name} {np.median([one[f'{name}_seconds'] for one in records]):.1f}"
        for name in (*ESTIMATES, "auto")
    )
    return (
        f"{markdown_table(['chosen by', *head, 'mean'], lines)}\n\nTest PR AUC (trapezoidal,"
        f" percent), {len(records)} draws, {len(records[0]['oob'])} random candidates each. CPU"
        f" seconds in the median: {seconds}."
    )


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m experiments.quality tuning", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=CHOSEN, metavar="TASK")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--trials", type=int, default=20)

    def works(given: argparse.Namespace) -> Iterator[Record]:
        for number, task, a in itertools.product(range(given.draws), given.tasks, CONTAMINATIONS):
            yield {"task": task, "contamination": a, "draw": number, "trials": given.trials}

    def work(key: Record, folder: Path) -> Record:
        return measure(key["task"], key["contamination"], key["draw"], key["trials"], folder)

    run_log(parser, argv, works, work, tables)
