"""Do the constants of FDR estimates hold on data sets they were not chosen on?

``python -m studies.promise_rule --store DIR --fits DIR`` reads the files of
``studies.promise_draws`` and fits the class mixture of every draw once. Then it leaves out one data
set at a time: the constants are chosen on all other data sets, and the printed errors are those on
the one left out. Fits are stored, so a second run takes seconds.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from resvm_cli.metrics import class_mixture
from resvm_cli.metrics.class_mixture import ClassMixture
from resvm_cli.metrics.intervals import LEVEL
from resvm_cli.running import parallel
from studies.pu_tasks import TASKS

FDR = 0.1
REPLICATES = 100
# Error charged for withholding an estimate; otherwise withholding every estimate would be best.
COST_OF_SILENCE = 0.1


class Rule(NamedTuple):
    """The constants of an estimate."""

    lookalikes: float
    least_area: float
    least_area_of_sets: float
    widest: float  # interval of b before widening; b is unknown if its interval is wider
    widening: float

    def __str__(self) -> str:
        return ", ".join(f"{value:g}" for value in self)


LOOKALIKES = (0.0, 0.03, 0.06, 0.1)
LEAST_AREAS = (0.85, 0.9, 0.93, 0.95)
LEAST_AREAS_OF_SETS = (0.6, 0.67, 0.75)
WIDEST = (0.15, 0.2, 0.3, 1.0)
WIDENINGS = (1.0, 1.3, 1.6, 2.0)


@dataclass(frozen=True, eq=False)
class Draw:
    """A fitted draw: everything a rule needs, and the truth."""

    task: str
    contamination: float
    labeling: str
    number: int
    area: float
    area_of_sets: float
    a: float
    b: float
    b_low: float  # percentiles of resampled fits
    b_high: float
    true_a: float
    true_b: float
    at_hidden: tuple[float, float, float]  # precision of the first n_hidden rows; bounds
    true_at_hidden: float
    shares: np.ndarray  # expected precision by depth
    true_shares: np.ndarray

    @property
    def set_name(self) -> str:
        return TASKS[self.task].family

    def told(self, rule: Rule) -> bool:
        return (
            self.area >= rule.least_area
            and self.area_of_sets >= rule.least_area_of_sets
            and self.b_high - self.b_low <= rule.widest
        )

    def error(self, rule: Rule) -> float:
        """Return estimated minus true precision of the first n_hidden rows."""
        share = self.at_hidden[0]
        return share + rule.lookalikes * (self.b - share) - self.true_at_hidden

    def fdr_error(self, rule: Rule) -> float:
        """Return the same for the list of --fdr; nan if it has fewer than 5 rows."""
        promised = self.shares + rule.lookalikes * (self.b - self.shares)
        length = int((promised >= 1 - FDR).sum())
        if length < 5:
            return float("nan")
        return float(promised[length - 1] - self.true_shares[length - 1])

    def covers(self, rule: Rule) -> bool:
        low = self.b - rule.widening * max(0.0, self.b - self.b_low)
        high = self.b + rule.widening * max(0.0, self.b_high - self.b)
        return low <= self.true_b <= high


def fitted(path: Path, kept: Path) -> Draw | None:
    match = re.fullmatch(r"(.*)-([\d.]+)-(random|biased)-(\d+)", path.stem)
    if match is None:
        return None
    names = {task.replace(" ", "_"): task for task in TASKS}
    place = kept / path.name
    if not place.exists():
        np.savez(place, **_fit(path))
    with np.load(place) as stored:
        return Draw(
            names[match[1]],
            float(match[2]),
            match[3],
            int(match[4]),
            *(float(number) for number in stored["numbers"]),
            at_hidden=tuple(stored["at_hidden"].tolist()),
            true_at_hidden=float(stored["true_at_hidden"]),
            shares=stored["shares"],
            true_shares=stored["true_shares"],
        )


def _fit(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as stored:
        draw = {name: stored[name] for name in ("pos", "unl", "truth_pos", "truth_unl")}
    of_p, of_u = ~np.isnan(draw["pos"]), ~np.isnan(draw["unl"])
    known, unlabeled = draw["pos"][of_p], draw["unl"][of_u]
    true_pos, true_unl = draw["truth_pos"][of_p], draw["truth_unl"][of_u]
    mixture = ClassMixture.fit(known, unlabeled, None, None, REPLICATES)
    assert mixture is not None
    assert mixture.resampled is not None
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(mixture.resampled.b, [tail, 1 - tail], method="weibull")
    order = np.argsort(-unlabeled, kind="stable")
    true = np.cumsum(true_unl[order]) / np.arange(1, len(order) + 1)
    promised = mixture.precision(len(unlabeled))
    b = float(mixture.fitted.b[0, 0])
    keep = class_mixture.LOOKALIKES
    shares = (promised.value - keep * promised.value[-1]) / (1 - keep)  # undo the correction
    hidden = int(true_unl.sum()) - 1
    binned = mixture.binned
    of_sets = class_mixture._roc_area(binned.positives, binned.unlabeled)
    numbers = [mixture.area, of_sets, float(mixture.fitted.a[0, 0]), b, low, high]
    numbers += [1 - float(true_pos.mean()), float(true_unl.mean())]
    bounds = [shares[hidden], promised.low[hidden], promised.high[hidden]]
    return {
        "numbers": np.array(numbers),
        "at_hidden": np.array(bounds),
        "true_at_hidden": np.array(true[hidden]),
        "shares": shares,
        "true_shares": true,
    }


def chosen(draws: Sequence[Draw]) -> Rule:
    """Return the rule with the smallest mean error; withholding an estimate has a fixed cost."""
    best, least = None, np.inf
    grids = (LOOKALIKES, LEAST_AREAS, LEAST_AREAS_OF_SETS, WIDEST)
    for constants in itertools.product(*grids):
        rule = Rule(*constants, 1.0)
        told = np.array([draw.told(rule) for draw in draws])
        errors = np.array([draw.error(rule) for draw in draws])
        cost = np.where(told, np.abs(errors), COST_OF_SILENCE).mean()
        if told.any():
            cost += abs(errors[told].mean())
        if cost < least:
            best, least = rule, cost
    assert best is not None
    told_apart = [draw for draw in draws if draw.told(best)]
    for widening in WIDENINGS:
        best = best._replace(widening=widening)
        if np.mean([draw.covers(best) for draw in told_apart]) >= LEVEL:
            break
    return best


def tables(draws: Sequence[Draw]) -> str:
    """Format Markdown tables of the errors on each data set by a rule chosen without it."""
    random = [draw for draw in draws if draw.labeling == "random"]
    lines = [
        f"{len(draws)} draws, {len(random)} of them known at random. Rules: lookalikes, least areas"
        " of classes and of sets, widest interval of b, widening.",
        "",
        "| set left out | rule chosen on the others | draws | told apart | error of b |"
        " in its interval | first rows | `--fdr` list |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    judged: list[tuple[Draw, Rule]] = []
    names = sorted({draw.set_name for draw in random})
    for name in names:
        rule = chosen([draw for draw in random if draw.set_name != name])
        left = [(draw, rule) for draw in random if draw.set_name == name]
        judged += left
        lines.append(f"| {name} | {rule} | {_cells(left)} |")
    lines.append(f"| **all** | | {_cells(judged)} |")
    whole = chosen(random)
    rules = {draw.set_name: rule for draw, rule in judged}
    lines += ["", *_by_contamination([(draw, rules.get(draw.set_name, whole)) for draw in draws])]
    in_use = Rule(
        class_mixture.LOOKALIKES,
        class_mixture.MIN_AREA,
        class_mixture.MIN_AREA_OF_SETS,
        class_mixture.MAX_WIDTH,
        class_mixture.WIDENING,
    )
    lines += ["", f"Chosen on all sets: {whole}. In use: {in_use}.", ""]
    lines += _by_contamination([(draw, in_use) for draw in draws])
    return "\n".join(lines) + "\n"


def _by_contamination(judged: Sequence[tuple[Draw, Rule]]) -> list[str]:
    lines = [
        "| false in P | P known | draws | told apart | error of b | in its interval | first rows |"
        " `--fdr` list |",
        "|--:|---|--:|--:|--:|--:|--:|--:|",
    ]
    for labeling in ("random", "biased"):
        for contamination in (0.0, 0.1, 0.3):
            group = [
                (draw, rule)
                for draw, rule in judged
                if (draw.labeling, draw.contamination) == (labeling, contamination)
            ]
            if group:
                lines.append(f"| {100 * contamination:.0f} % | {labeling} | {_cells(group)} |")
    return lines


def _cells(group: Sequence[tuple[Draw, Rule]]) -> str:
    told = [(draw, rule) for draw, rule in group if draw.told(rule)]
    cells = [str(len(group)), f"{100 * len(told) / len(group):.0f} %"]
    if not told:
        return " | ".join([*cells, "-", "-", "-", "-"])
    errors = [draw.error(rule) for draw, rule in told]
    lists = [draw.fdr_error(rule) for draw, rule in told]
    lists = [error for error in lists if not np.isnan(error)]
    cells += [
        f"{np.mean([abs(draw.b - draw.true_b) for draw, _ in told]):.3f}",
        f"{100 * np.mean([draw.covers(rule) for draw, rule in told]):.0f} %",
        f"{np.mean(errors):+.3f}",
        f"{np.mean(lists):+.3f}" if lists else "-",
    ]
    return " | ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--fits", required=True, help="folder for the fits")
    arguments = parser.parse_args()
    kept = Path(arguments.fits)
    kept.mkdir(exist_ok=True)
    with parallel.inner_threads_held():
        found = [fitted(path, kept) for path in sorted(Path(arguments.store).glob("*.npz"))]
    print(tables([draw for draw in found if draw is not None]))


if __name__ == "__main__":
    main()
