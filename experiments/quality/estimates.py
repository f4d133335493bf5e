"""Are the estimates that ``rank`` reports correct?

P and U are drawn from tasks with known classes: 20, 50 or 200 known positives, clean or with 10 or
30% false ones, and the fraction of positives in U that the task has, 5% or 40%. The stated
precision, its bounds, the bounds of b and the lists of ``--fdr 0.1`` are compared with the truth,
with nothing given, with b given and with 30 tested rows. It takes 3 hours for 35 tasks and 4 draws.
The results are in docs/quality.md. Constants of the method were chosen on such draws, so new draws
(``--first``) are a fairer test.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import resvm_cli
from experiments.markdown import markdown_table
from experiments.quality.log import run_log
from experiments.quality.tasks import TASKS, labeled, matrix
from resvm_cli.commands.simulate import Sizes, split

FDR = 0.1
DEPTHS = (10, 20, 50, 100, 200)
RARE = 0.07  # fraction of U that is positive
SEPARATE = 0.95  # mean ROC AUC of the true classes in U
N_TESTED = 30
N_UNL = 2000
OTHER_FRACTIONS = (0.05, 0.4)  # of positives in U; every second draw uses one of them
SIZES = ((200, 0.0), (200, 0.1), (200, 0.3), (50, 0.0), (20, 0.0))  # rows of P, contamination
GIVEN = ("nothing", "b", "tested at random", "tested first")
Record = dict[str, Any]


def draw(name: str, n_pos: int, contamination: float, number: int, folder: Path) -> tuple[Any, ...]:
    """Return a matrix, the labels (1 for P, 0 for U) and the truth of all rows."""
    task = TASKS[name]
    rows, truth = labeled(task, folder)
    fraction = OTHER_FRACTIONS[number // 2 % 2] if number % 2 else task.hidden
    n_true, n_false = int(truth.sum()), int((~truth).sum())
    n_pos = min(n_pos, n_true // 3)
    n_unl = int(min(N_UNL, 0.9 * (n_true - n_pos) / fraction, 0.75 * n_false / (1 - fraction)))
    sizes = Sizes(n_pos, n_unl, contamination, fraction, 0, 0)
    seed = [number, round(1000 * contamination), *name.encode()]
    sets = split(truth, sizes, np.random.default_rng(seed))
    chosen = np.concatenate([sets.positives, sets.unlabeled])
    return matrix(rows.take(chosen), rows.max_index), np.arange(len(chosen)) < n_pos, truth[chosen]


def measure(name: str, n_pos: int, contamination: float, number: int, folder: Path) -> Record:
    """Rank a draw in each way of GIVEN, and compare what is stated with the truth."""
    X, y, truth = draw(name, n_pos, contamination, number, folder)
    first = resvm_cli.rank(X, y, random_state=number, n_jobs=1)
    b = float(truth[~y].mean())
    record: Record = {
        "fraction": b,
        "auc": roc_auc_score(truth[first.rows], -np.arange(len(first))),
    }
    rng = np.random.default_rng(number)
    random, top = rng.choice(first.rows, N_TESTED, replace=False), first.rows[:N_TESTED]
    ways: dict[str, dict[str, Any]] = {
        "nothing": {},
        "b": {"contamination_unl": b},
        "tested at random": {"tested": {int(row): int(truth[row]) for row in random}},
        "tested first": {"tested": {int(row): int(truth[row]) for row in top}},
    }
    for way, given in ways.items():
        ranking = resvm_cli.rank(X, y, model=first.model, n_jobs=1, **given)
        found = record[way] = compare(ranking, truth)
        if found["stated"]:
            listed = resvm_cli.rank(X, y, model=first.model, n_jobs=1, fdr=FDR, **given).rows
            found["false"] = float(1 - truth[listed].mean()) if len(listed) else None
        if way == "b":
            chance = ranking.columns["probability"]
            record["brier"] = float(((chance - truth[ranking.rows]) ** 2).mean())
    audit = resvm_cli.rank(X, y, model=first.model, n_jobs=1, audit=True)
    record["suspects"] = None if audit.n_suspects is None else audit.n_suspects / len(audit)
    return record


def compare(ranking: Any, truth: np.ndarray) -> Record:
    """Compare the stated precision with the true one at several depths."""
    columns, true = ranking.columns, np.cumsum(truth[ranking.rows]) / np.arange(1, len(ranking) + 1)
    depths = np.array([depth for depth in DEPTHS if depth <= len(true)]) - 1
    values, low, high = (
        columns[f"precision{end}"][depths] if "precision" in columns else depths * np.nan
        for end in ("", "_low", "_high")
    )
    if np.isnan(values).any():
        return {"stated": False}
    return {
        "stated": True,
        "errors": (values - true[depths]).tolist(),
        "below": int((true[depths] < low - 1e-9).sum()),
        "above": int((true[depths] > high + 1e-9).sum()),
        "low": float(low.mean()),
    }


def row(name: str, records: Sequence[Record], way: str) -> list[str]:
    stated = [one for one in records if one[way]["stated"]]
    errors = np.concatenate([one[way]["errors"] for one in stated] or [[np.nan]])
    below, above = (sum(one[way][side] for one in stated) for side in ("below", "above"))
    lists = defaultdict(list)
    for one in stated:
        if one[way]["false"] is not None:
            lists[one["task"]].append(one[way]["false"])
    rates = {task: float(np.mean(some)) for task, some in lists.items()}
    worst = max(rates, key=lambda task: rates[task], default="-")
    return [
        name,
        f"{len(stated)} of {len(records)}",
        f"{100 * below / len(errors):.1f}%",
        f"{100 * above / len(errors):.1f}%",
        f"{np.mean([one[way]['low'] for one in stated] or [np.nan]):.2f}",
        f"{100 * errors.mean():+.1f}",
        f"{100 * np.abs(errors).mean():.1f}",
        str(sum(map(len, lists.values()))),
        f"{100 * np.mean(list(rates.values())):.1f}%" if rates else "-",
        f"{100 * rates[worst]:.0f}% ({worst})" if rates else "-",
    ]


def tables(records: Sequence[Record]) -> str:
    areas = defaultdict(list)
    for one in records:
        areas[one["task"]].append(one["auc"])
    apart = {task for task, found in areas.items() if np.mean(found) >= SEPARATE}

    def chosen(keep: Callable[[Record], bool]) -> list[Record]:
        return [one for one in records if keep(one)]

    groups: Iterator[tuple[str, list[Record]]] = iter(
        [
            ("all", list(records)),
            *(
                (f"{n_pos} known positives, {100 * a:.0f}% false", chosen(of(n_pos, a)))
                for n_pos, a in SIZES
            ),
            ("b about 5%", chosen(lambda one: one["fraction"] < RARE)),
            ("separate", chosen(lambda one: one["task"] in apart)),
            ("overlapping", chosen(lambda one: one["task"] not in apart)),
        ]
    )
    rows = [row(name, some, "nothing") for name, some in groups if some]
    rows += [row(f"{way} given", records, way) for way in GIVEN[1:]]
    head = ["draws", "stated in", "truth below", "above", "mean lower bound"]
    head += [
        "mean error, points",
        "absolute",
        f"`--fdr {FDR:g}` lists",
        "false rows, mean of tasks",
    ]
    clean = [one["suspects"] for one in records if one["a"] == 0 and one["suspects"] is not None]
    return (
        f"{len(records)} draws of {len(areas)} tasks, ranks {', '.join(map(str, DEPTHS))}. The"
        f" classes separate in {len(apart)} tasks (ROC AUC in U at least {SEPARATE}).\n\n"
        f"{markdown_table([*head, 'worst task'], rows)}\n\n"
        f"Suspects in a clean P: {100 * np.mean(clean or [np.nan]):.1f}% of its rows. Brier score"
        f" of `probability` with b given: {np.mean([one['brier'] for one in records]):.3f}."
    )


def of(n_pos: int, a: float) -> Callable[[Record], bool]:
    return lambda one: (one["n_pos"], one["a"]) == (n_pos, a)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m experiments.quality estimates", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")

    def works(given: argparse.Namespace) -> Iterator[Record]:
        for number in range(given.first, given.first + given.draws):
            for task in given.tasks:
                for n_pos, a in SIZES:
                    yield {"task": task, "n_pos": n_pos, "a": a, "draw": number}

    def work(key: Record, folder: Path) -> Record:
        return measure(key["task"], key["n_pos"], key["a"], key["draw"], folder)

    run_log(parser, argv, works, work, tables)
