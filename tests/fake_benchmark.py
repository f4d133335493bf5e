"""A fake directory of resvm benchmark run, with results drawn around the published ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from resvm_cli.benchmark.results import read_published

TASKS = ("synthetic", "cancer", "ijcnn1", "covtype", *(f"mnist-{digit}" for digit in range(10)))
SETTINGS = ("supervised", "pu", "semi-supervised")
METHODS = ("cwsvm", "bagging", "resvm")
CONTAMINATION = {"synthetic": 0.3, "cancer": 0.3, "covtype": 0.3}
LIBLINEAR = "cwsvm-published"
ADDRESS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"


def line(**fields: Any) -> dict[str, Any]:
    """Return a valid result in which ``fields`` replace the defaults."""
    return {
        "protocol": "paper", "setting": "pu", "task": "synthetic", "method": "resvm",
        "repetition": 0, "contamination_pos": 0.0, "contamination_unl": 0.1,
        "pr_auc_trapezoid": 0.9, "average_precision": 0.88, "roc_auc": 0.95, "candidates": 24,
        "parameters": {"c_unl": 1.0, "n_pos": 10, "n_unl": 50, "w_pos": 3.2}, "folds_score": 1.5,
        **fields,
    }  # fmt: skip


def results(
    seed: int = 1,
    protocol: str = "paper",
    repetitions: int = 6,
    tasks: Iterable[str] = TASKS,
    curves: bool = True,
) -> list[dict[str, Any]]:
    """Return a result for every cell; cwsvm on mnist is 12 points better than published."""
    rng = np.random.default_rng(seed)
    published = read_published()
    lines = []
    for setting in SETTINGS:
        for task in tasks:
            of_mnist = task.startswith("mnist")
            share = CONTAMINATION.get(task, 0.1)
            for repetition in range(repetitions):
                for method in (*METHODS, *([LIBLINEAR] if of_mnist else [])):
                    beside = published[setting, task, "cwsvm" if method == LIBLINEAR else method]
                    deviation = max(0.2, (beside.high - beside.low) / 2 / 2.093 * 20**0.5)
                    better = 12.0 if of_mnist and method == "cwsvm" else 0.0
                    area = min(99.9, rng.normal(beside.middle + better, deviation)) / 100
                    curve = np.clip(1.05 * area - 0.5 * np.linspace(0.01, 1, 100) ** 4, 0, 1)
                    lines.append(
                        line(
                            protocol=protocol, setting=setting, task=task, method=method,
                            repetition=repetition,
                            contamination_pos=share if setting == "semi-supervised" else 0.0,
                            contamination_unl=0.0 if setting == "supervised" else share,
                            pr_auc_trapezoid=area, average_precision=area - 0.01,
                            roc_auc=1 - (1 - area) / 3,
                            parameters={
                                "c_unl": 0.1, "n_pos": int(rng.choice([5, 10, 20])),
                                "n_unl": 50, "w_pos": float(rng.choice([1.6, 3.2, 6.4])),
                            },
                            **({"curve": curve.round(4).tolist()} if curves and of_mnist else {}),
                        )
                    )  # fmt: skip
    return lines


def own_results(
    levels: Iterable[float], repetitions: int = 5, **fields: Any
) -> list[dict[str, Any]]:
    """Return results on a user's data at several contaminations of P; resvm loses least."""
    rng = np.random.default_rng(2)
    lost = {"cwsvm": 60.0, "bagging": 40.0, "resvm": 15.0}
    lines = []
    for level in levels:
        for repetition in range(repetitions):
            for method in METHODS:
                area = (90 - lost[method] * level + rng.normal(0, 1)) / 100
                lines.append(
                    line(
                        setting="own", task="mine", method=method, repetition=repetition,
                        contamination_pos=level, pr_auc_trapezoid=area + 0.01,
                        average_precision=area, **fields,
                    )
                )  # fmt: skip
    return lines


def repetitions(
    count: int, tasks: Iterable[str] = TASKS, settings: Iterable[str] = SETTINGS
) -> dict[str, int]:
    """Return the planned number of repetitions, as in run.json."""
    return {f"{task}/{setting}": count for task in tasks for setting in settings}


def plan(**fields: Any) -> dict[str, Any]:
    """Return a run.json that fits the results; the sensit data file was missing."""
    return {
        "format": 1, "protocol": "paper", "seed": 7, "tasks": [*TASKS, "sensit-1"],
        "settings": list(SETTINGS), "methods": [*METHODS, LIBLINEAR],
        "repetitions": repetitions(6),
        "data": {"cancer": {"file": "breast-cancer_scale", "digest": "0123abcd"}},
        "missing": [
            {"task": "sensit-1", "file": "combined_scale", "fetch": ADDRESS}
        ],
        "grid": {}, "command": "resvm benchmark run -o <bench> --seed 7",
        "versions": {"resvm": "1.2", "numpy": "2.0"}, **fields,
    }  # fmt: skip


def times_of(lines: Iterable[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    """Return times for these results, with the same number of seconds for each."""
    names = ("setting", "task", "method", "repetition", "contamination_pos", "contamination_unl")
    return [
        {**{name: one[name] for name in names}, "seconds": seconds, "cpu_seconds": seconds}
        for one in lines
    ]


def write(
    folder: Path,
    lines: Iterable[dict[str, Any]],
    planned: dict[str, Any] | None = None,
    times: Iterable[dict[str, Any]] | None = None,
) -> Path:
    """Write the files of the directory and return its path."""
    folder.mkdir(parents=True)
    (folder / "results.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    if planned is not None:
        (folder / "run.json").write_text(json.dumps(planned))
    if times is not None:
        (folder / "times.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in times))
    return folder
