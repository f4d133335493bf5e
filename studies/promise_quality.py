"""Are the estimates that ``resvm rank`` reports correct?

``python -m studies.promise_quality --store DIR`` reads the files of ``studies.promise_draws`` and
compares the estimates with the truth at several ranks. Two constants of the method were chosen on
such draws, so each data set is evaluated with constants chosen on all others.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from resvm_cli.metrics import class_mixture
from resvm_cli.metrics.class_mixture import ClassMixture, RankedOutcomes
from resvm_cli.running import parallel
from studies.markdown import put_between_marks
from studies.pu_tasks import TASKS

FDR = 0.1
DEPTHS = (10, 20, 50, 100, 200)
# Candidates for OVERLAP_SPREAD and ERROR_SPREAD, in order of increasingly wide bounds.
CONSTANTS = ((1.0, 1.0), (1.0, 2.0), (1.5, 2.0), (2.0, 2.0), (2.0, 3.0), (3.0, 3.0))
# Limits that the constants must meet on the data sets they are chosen on.
MAX_BELOW, MAX_BELOW_RARE, MAX_FALSE = 0.04, 0.08, 0.125
RARE = 0.07  # fraction of U that is positive
SEPARATE = 0.95  # mean ROC AUC of the true classes in U
N_TESTED = 30


@dataclass(frozen=True)
class Stated:
    """Bounds and errors at several ranks, and the fraction of false rows in the --fdr list."""

    errors: tuple[float, ...] = ()
    below: int = 0  # number of ranks at which the true precision is below the bounds
    above: int = 0
    lows: tuple[float, ...] = ()
    false: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What is estimated for one draw."""

    task: str
    contamination: float
    n_pos: int
    b: float
    area: float  # ROC AUC of the true classes in U
    claimed: bool
    inside_b: bool
    suspects: float | None  # fraction of P
    by_constants: dict[tuple[float, float], Stated] = field(default_factory=dict)
    given: Stated = Stated()
    tested: tuple[Stated, Stated] = (Stated(), Stated())  # random rows, top rows
    brier: tuple[float, float] = (0.0, 0.0)  # Brier score and calibration error, with b given

    @property
    def family(self) -> str:
        return TASKS[self.task].family


def stated(mixture: ClassMixture, true: np.ndarray) -> Stated:
    precision = mixture.precision(len(true))
    depths = np.array([depth for depth in DEPTHS if depth <= len(true)]) - 1
    truth = true[depths]
    listed = np.flatnonzero(mixture.mean_precision(len(true)) >= 1 - FDR - 1e-12)
    return Stated(
        tuple((precision.value[depths] - truth).tolist()),
        int((truth < precision.low[depths] - 1e-9).sum()),
        int((truth > precision.high[depths] + 1e-9).sum()),
        tuple(precision.low[depths].tolist()),
        1 - float(true[listed[-1]]) if len(listed) else None,
    )


def constants_in_use() -> tuple[float, float]:
    return class_mixture.OVERLAP_SPREAD, class_mixture.ERROR_SPREAD


def outcome(path: Path) -> Outcome | None:
    match = re.fullmatch(r"(.*)-([\d.]+)-random-(\d+)-(\d+)", path.stem)
    if match is None:
        return None
    with np.load(path) as stored:
        draw = {name: stored[name] for name in ("pos", "unl", "truth_unl")}
    known, scored = draw["pos"][~np.isnan(draw["pos"])], ~np.isnan(draw["unl"])
    unlabeled, truth = draw["unl"][scored], draw["truth_unl"][scored]
    order = np.argsort(-unlabeled, kind="stable")
    size = len(order)
    true = np.cumsum(truth[order]) / np.arange(1, size + 1)
    b = float(truth.mean())
    mixture = ClassMixture.fit(known, unlabeled)
    given = ClassMixture.fit(known, unlabeled, b=b)
    assert mixture is not None
    assert given is not None
    by_constants = {}
    if mixture.separable:
        in_use = constants_in_use()
        for constants in CONSTANTS:
            class_mixture.OVERLAP_SPREAD, class_mixture.ERROR_SPREAD = constants
            by_constants[constants] = stated(mixture._blurred(), true)
        class_mixture.OVERLAP_SPREAD, class_mixture.ERROR_SPREAD = in_use
    rng = np.random.default_rng(int(match[3]))
    tested = []
    for numbers in (rng.choice(size, N_TESTED, replace=False), order[:N_TESTED]):
        rows = RankedOutcomes.from_rows(numbers, truth[numbers], unlabeled)
        fitted = ClassMixture.fit(known, unlabeled, tested=rows)
        assert fitted is not None
        tested.append(stated(fitted, true))
    chance, truly = given.probability(unlabeled[order]), truth[order]
    bins = np.array_split(np.arange(size), 10)
    gaps = [len(some) * abs(chance[some].mean() - truly[some].mean()) for some in bins]
    share, n_false = mixture.contamination_unl, mixture.n_false()
    return Outcome(
        {task.replace(" ", "_"): task for task in TASKS}[match[1]],
        float(match[2]),
        int(match[4]),
        b,
        float(roc_auc_score(truth, unlabeled)),
        mixture.separable,
        share.low <= b <= share.high,
        None if n_false is None else n_false / len(known),
        by_constants,
        stated(given, true),
        (tested[0], tested[1]),
        (float(((chance - truly) ** 2).mean()), sum(gaps) / size),
    )


def by_set(pairs: Iterable[tuple[str, Stated]]) -> dict[str, float]:
    """Return the mean fraction of false rows in the lists of each data set that has any."""
    found = defaultdict(list)
    for task, one in pairs:
        if one.false is not None:
            found[task].append(one.false)
    return {task: float(np.mean(rates)) for task, rates in found.items()}


def fraction_below(some: Sequence[Stated]) -> float:
    """Return the fraction of ranks at which the true precision is below the bounds."""
    return sum(one.below for one in some) / max(1, sum(len(one.errors) for one in some))


def chosen(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Return the first constants that meet the limits, overall and if positives are rare."""
    claimed = [one for one in outcomes if one.claimed]
    for constants in CONSTANTS:
        rates = by_set((one.task, one.by_constants[constants]) for one in claimed)
        rare = [one.by_constants[constants] for one in claimed if one.b < RARE]
        if (
            fraction_below([one.by_constants[constants] for one in claimed]) <= MAX_BELOW
            and fraction_below(rare) <= MAX_BELOW_RARE
            and np.mean(list(rates.values()) or [0.0]) <= MAX_FALSE
        ):
            return constants
    return CONSTANTS[-1]


def row(name: str, pairs: Sequence[tuple[str, Stated]], n_draws: int) -> str:
    errors = np.concatenate([one.errors for _, one in pairs] or [[np.nan]])
    count = max(1, sum(len(one.errors) for _, one in pairs))
    below, above = (sum(getattr(one, side) for _, one in pairs) for side in ("below", "above"))
    lows = np.mean([low for _, one in pairs for low in one.lows] or [np.nan])
    rates = by_set(pairs)
    worst = max(rates, key=lambda task: rates[task], default="-")
    lists = f"{sum(one.false is not None for _, one in pairs)} | - | -"
    if rates:
        mean = np.mean(list(rates.values()))
        lists = lists.replace("- | -", f"{100 * mean:.1f} % | {100 * rates[worst]:.0f} % ({worst})")
    return (
        f"| {name} | {len(pairs)} of {n_draws} | {100 * below / count:.1f} % |"
        f" {100 * above / count:.1f} % | {lows:.2f} | {100 * errors.mean():+.1f} |"
        f" {100 * np.abs(errors).mean():.1f} | {lists} |"
    )


def tables(outcomes: Sequence[Outcome]) -> str:
    areas = defaultdict(list)
    for one in outcomes:
        areas[one.task].append(one.area)
    apart = {task for task, found in areas.items() if np.mean(found) >= SEPARATE}
    families = sorted({one.family for one in outcomes})
    constants = {
        family: chosen([one for one in outcomes if one.family != family]) for family in families
    }
    left_out = [
        (one, one.by_constants[constants[one.family]] if one.claimed else None) for one in outcomes
    ]
    used = [
        (one, one.by_constants[constants_in_use()] if one.claimed else None) for one in outcomes
    ]
    lines = [
        f"{len(outcomes)} draws of {len(areas)} tasks, ranks {', '.join(map(str, DEPTHS))}."
        f" Classes separate (ROC AUC of the true classes in U at least {SEPARATE}, mean of draws)"
        f" in {len(apart)}: {', '.join(sorted(apart))}. Constants chosen without a set:"
        f" {', '.join(f'{two[0]:g} and {two[1]:g}' for two in sorted(set(constants.values())))}.",
        "",
        "| draws | stated in | truth below | above | mean lower bound | mean error, points |"
        f" absolute | `--fdr {FDR:g}` lists | false rows, mean of sets | worst set |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]

    def add(name: str, found: Sequence[tuple[Outcome, Stated | None]]) -> None:
        pairs = [(one.task, some) for one, some in found if some is not None]
        lines.append(row(name, pairs, len(found)))

    add("**all, constants chosen without the set**", left_out)
    add("all, as in use", used)
    for contamination in (0.0, 0.1, 0.3):
        some = [pair for pair in used if pair[0].contamination == contamination]
        add(f"{100 * contamination:.0f} % of P false", some)
        add(
            f"{100 * contamination:.0f} % of P false, separate",
            [pair for pair in some if pair[0].task in apart],
        )
    for n_pos in sorted({one.n_pos for one in outcomes}):
        some = [pair for pair in used if pair[0].n_pos == n_pos]
        rare = [pair for pair in some if pair[0].b < RARE]
        add(f"{n_pos} known positives", some)
        add(f"{n_pos} known positives, b about 5 %", rare)
        left = [pair for pair in rare if pair[0].task not in apart]
        add(f"{n_pos} known positives, b about 5 %, overlapping", left)
    add("separate", [pair for pair in used if pair[0].task in apart])
    overlapping = [one for one in outcomes if one.task not in apart]
    add("overlapping", [pair for pair in used if pair[0].task not in apart])
    add("**b given**", [(one, one.given) for one in outcomes])
    add("b given, overlapping", [(one, one.given) for one in overlapping])
    for index, name in enumerate(("at random", "the first")):
        add(f"{N_TESTED} tested, {name}", [(one, one.tested[index]) for one in outcomes])
        add(
            f"{N_TESTED} tested, {name}, overlapping",
            [(one, one.tested[index]) for one in overlapping],
        )
    claimed = [one for one in outcomes if one.claimed]
    clean = [one.suspects for one in claimed if not one.contamination and one.suspects is not None]
    brier, gap = np.mean([one.brier for one in outcomes], axis=0)
    lines += [
        "",
        f"Bounds of b hold in {100 * np.mean([one.inside_b for one in claimed]):.0f} % of the draws"
        f" with a claim; without one, the upper bound holds in"
        f" {sum(one.inside_b for one in outcomes if not one.claimed)} of"
        f" {len(outcomes) - len(claimed)}. Suspects in a clean P: {100 * np.mean(clean):.1f} % of"
        f" its rows. `probability` with b given: Brier score {brier:.3f}, calibration error"
        f" {gap:.3f}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--markdown", help="a document whose tables are replaced")
    arguments = parser.parse_args()
    with parallel.inner_threads_held():
        found = [outcome(path) for path in sorted(Path(arguments.store).glob("*.npz"))]
    text = tables([one for one in found if one is not None])
    print(text)
    if arguments.markdown:
        put_between_marks(Path(arguments.markdown), text)


if __name__ == "__main__":
    main()
