"""Compare resvm with other methods on tasks with known classes.

Every task is drawn several times with 0, 10 and 30% of P false. Every method gets the same rows and
is scored on test rows. With ``--version old``, our methods are logged as "old train" and so on, so
that ``compare`` can compare them with a later version. Seconds are CPU seconds on one core. It
takes 2 hours for 35 tasks and 3 draws; the results are in docs/quality.md.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    precision_recall_curve,
    roc_auc_score,
)

import resvm_cli
from experiments.quality.compare import tables
from experiments.quality.log import Record, run_log
from experiments.quality.peers import NEURAL, PEERS, Answer, Matrices, label_quality
from experiments.quality.tasks import TASKS, Draw, draw

CONTAMINATIONS = (0.0, 0.1, 0.3)
OURS: dict[str, tuple[Any, dict[str, Any]]] = {
    "train --no-auto": (resvm_cli.RESVMClassifier, {"auto": False}),
    "train": (resvm_cli.RESVMClassifier, {"auto": True}),
    "train --method bagging": (resvm_cli.BaggingSVMClassifier, {}),
    "train --method cwsvm": (resvm_cli.ClassWeightedSVMClassifier, {}),
}
AUDIT = "cleanlab"
METHODS = (*PEERS, AUDIT, *OURS)
DEFAULT_METHODS = tuple(method for method in METHODS if method not in NEURAL)


def quality(truth: np.ndarray, answer: Answer) -> dict[str, float]:
    """Compute average precision, ROC AUC, F1, and F1 at the best possible threshold."""
    precision, recall, _ = precision_recall_curve(truth, answer.values)
    best = np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12))
    return {
        "ap": float(average_precision_score(truth, answer.values)),
        "roc": float(roc_auc_score(truth, answer.values)),
        "f1": float(f1_score(truth, answer.positive, zero_division=0.0)),
        "best_f1": float(best),
    }


def measure_ours(drawn: Draw, name: str, seed: int) -> dict[str, Any]:
    """Train and predict like the command line, with the model's rule and threshold."""
    started = time.process_time()
    kind, parameters = OURS[name]
    model = kind(random_state=seed, n_jobs=1, **parameters).fit(drawn.X, drawn.labels)
    values = model.decision_values(drawn.test_X)
    seconds = time.process_time() - started
    record: dict[str, Any] = quality(drawn.truth_test, Answer(values, values > model.threshold_))
    means = values if model.decision_ == "mean" else model.member_values(drawn.test_X).mean(axis=1)
    record["mean_ap"] = float(average_precision_score(drawn.truth_test, means))
    paper = means > 0 if model.method == "cwsvm" else model.predict_votes(drawn.test_X) > 0.5
    record["paper_f1"] = float(f1_score(drawn.truth_test, paper, zero_division=0.0))
    if not drawn.truth_pos.all() and model.method == "resvm":
        ranking = resvm_cli.rank(drawn.X, drawn.labels, model=model, audit=True, n_jobs=1)
        record["audit"] = float(
            average_precision_score(~drawn.truth_pos[ranking.rows], -np.arange(len(ranking)))
        )
    return record | {"seconds": seconds}


def measure(drawn: Draw, method: str, seed: int) -> dict[str, Any]:
    """Run one method on one draw."""
    if method in OURS:
        return measure_ours(drawn, method, seed)
    started = time.process_time()
    rows = Matrices(drawn, seed)
    if method == AUDIT:
        suspicion = -label_quality(rows)
        record = {"audit": float(average_precision_score(~drawn.truth_pos, suspicion))}
    else:
        record = quality(drawn.truth_test, PEERS[method](rows))
    return record | {"seconds": time.process_time() - started}


def logged_name(method: str, version: str | None) -> str:
    """Return the name of a method in the log: "old --no-auto" for "train --no-auto"."""
    if version is None or method not in OURS:
        return method
    return f"{version} {method.removeprefix('train --method ').removeprefix('train ')}"


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m experiments.quality methods", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=DEFAULT_METHODS)
    parser.add_argument("--contaminations", nargs="+", type=float, default=CONTAMINATIONS)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--version", help="put before the names of our methods in the log")
    by_name: dict[str, str] = {}

    def works(given: argparse.Namespace) -> Iterator[Record]:
        for number, task, a, method in itertools.product(
            range(given.draws), given.tasks, given.contaminations, given.methods
        ):
            name = logged_name(method, given.version)
            by_name[name] = method
            if method != AUDIT or a:
                yield {"task": task, "contamination": a, "draw": number, "method": name}

    def work(key: Record, folder: Path) -> Record:
        drawn = draw(key["task"], key["contamination"], key["draw"], folder)
        return measure(drawn, by_name[key["method"]], key["draw"])

    run_log(parser, argv, works, work, tables)
