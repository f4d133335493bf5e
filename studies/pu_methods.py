"""Compare resvm with other methods: ``python -m studies.pu_methods --data-dir DIR --log FILE``.

Every task of ``studies.pu_tasks`` is drawn several times with 0, 10 and 30 % of P mislabeled. Every
method gets the same rows and is scored on test rows whose classes are known. The log has one line
per draw and method; results already in it are not computed again. ``--markdown FILE`` writes the
tables between the marks of a document, and ``--methods`` selects methods. With ``--version old``,
our methods are logged as "old train", "old --auto" and so on, so that ``studies.pu_tables`` can
compare them with a later version. Seconds are CPU seconds on one core, so that other work on the
machine does not count.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    precision_recall_curve,
    roc_auc_score,
)

from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model_files.out_of_bag_table import OutOfBag
from resvm_cli.parameters import MethodParameters
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.train import train_on
from resvm_cli.tuning.tune import choose_settings
from studies.markdown import put_between_marks
from studies.pu_peers import NEURAL, PEERS, Answer, Matrices, label_quality
from studies.pu_tables import read_log, tables
from studies.pu_tasks import TASKS, Draw, draw

CONTAMINATIONS = (0.0, 0.1, 0.3)
OURS: dict[str, Callable[[int], TrainingChoice]] = {
    "train": lambda seed: TrainingChoice.from_params(MethodParameters(seed=seed)),
    "train --auto": lambda seed: TrainingChoice.from_params(
        MethodParameters(seed=seed), auto="committee"
    ),
    "train --method bagging": lambda seed: TrainingChoice.from_params(
        MethodParameters(method="bagging", seed=seed)
    ),
    "train --method cwsvm": lambda seed: TrainingChoice.from_params(
        MethodParameters(method="cwsvm", seed=seed)
    ),
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
    """Train and predict like the command line, with the model's rule and threshold.

    The record includes warnings.
    """
    choice = OURS[name](seed)
    started = time.process_time()
    scale = "auto" if choice.auto else None  # as the command does by default
    data = MemoryData(drawn.positives, drawn.unlabeled, scale=scale)
    run = Run(jobs=1)
    _, model = train_on(data, choose_settings(data, choice, run), run)
    decisions = Predictor(model.ensemble).decisions(drawn.test)
    seconds = time.process_time() - started
    decided = model.decision
    values = decisions.by(decided.rule)
    record = quality(drawn.truth_test, Answer(values, values > decided.threshold.value))
    record["seconds"] = seconds
    paper = decisions.values > (0.0 if choice.params.method == "cwsvm" else 0.5)
    record["paper_f1"] = float(f1_score(drawn.truth_test, paper, zero_division=0.0))
    record["mean_ap"] = float(average_precision_score(drawn.truth_test, decisions.means))
    if not drawn.truth_pos.all() and model.out_of_bag is not None:
        record["audit"] = audit_precision(
            ~drawn.truth_pos, out_of_bag_means(model.out_of_bag, drawn)
        )
    return record | {"notices": list(map(str, run.notes))}


def out_of_bag_means(table: OutOfBag, drawn: Draw) -> np.ndarray:
    """Return the mean value of each row of P over members not trained on it; nan if unknown."""
    means = np.full(len(drawn.positives), np.nan)
    means[table.rows[table.positive] - 1] = table.by("mean")[0]
    return means


def audit_precision(false: np.ndarray, values: np.ndarray) -> float:
    """Return the average precision at finding false rows of P by low values, with nan last."""
    highest = np.nanmax(values) + 1
    suspicion = -np.where(np.isnan(values), highest, values)
    return float(average_precision_score(false, suspicion))


def measure(drawn: Draw, method: str, seed: int) -> dict[str, Any]:
    """Run one method on one draw."""
    if method in OURS:
        return measure_ours(drawn, method, seed)
    started = time.process_time()
    rows = Matrices(drawn, seed)
    if method == AUDIT:
        record = {"audit": audit_precision(~drawn.truth_pos, label_quality(rows))}
    else:
        record = quality(drawn.truth_test, PEERS[method](rows))
    return record | {"seconds": time.process_time() - started}


def logged_name(method: str, version: str | None) -> str:
    """Return the name of a method in the log: "old --auto" for "train --auto"."""
    if version is None or method not in OURS:
        return method
    return f"{version} {method.removeprefix('train --method ').removeprefix('train ')}"


def works(arguments: argparse.Namespace) -> Iterator[tuple[int, str, float, str]]:
    """Yield all tasks for each draw in turn, so that an interrupted run covers tasks equally."""
    for number, name, share, method in itertools.product(
        range(arguments.draws), arguments.tasks, arguments.contaminations, arguments.methods
    ):
        if method != AUDIT or share:
            yield number, name, share, method


def run(arguments: argparse.Namespace) -> None:
    log = Path(arguments.log)
    done = {
        (record["draw"], record["task"], record["contamination"], record["method"])
        for record in read_log(log)
    }
    for number, name, share, method in works(arguments):
        logged = logged_name(method, arguments.version)
        if (number, name, share, logged) in done:
            continue
        drawn = draw(name, share, number, Path(arguments.data_dir))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peers use deprecated functions of their dependencies
            figures = measure(drawn, method, number)
        key = {"task": name, "contamination": share, "draw": number, "method": logged}
        with log.open("a") as handle:
            handle.write(json.dumps(key | figures) + "\n")
        seconds = figures["seconds"]
        print(number, name, share, logged, f"{seconds:.1f} s", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=".")
    parser.add_argument("--log", required=True, help="JSON lines; a run continues where they end")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=DEFAULT_METHODS)
    parser.add_argument("--contaminations", nargs="+", type=float, default=CONTAMINATIONS)
    parser.add_argument("--version", help="put before the names of our methods in the log")
    parser.add_argument("--markdown", help="a document whose tables are replaced")
    arguments = parser.parse_args()
    with parallel.inner_threads_held():
        run(arguments)
    records = read_log(Path(arguments.log))
    names = {logged_name(method, arguments.version) for method in arguments.methods}
    text = tables([record for record in records if record["method"] in names])
    print(text)
    if arguments.markdown:
        put_between_marks(Path(arguments.markdown), text + "\n")


if __name__ == "__main__":
    main()
