"""Are the estimates of ``resvm rank`` right? ``python -m studies.promise_quality --store DIR``.

Reads the files of ``studies.promise_draws`` and ``studies.audit_peers`` and prints tables:
estimated and true contamination, compared with best-bin estimation; estimated and true precision;
conformal false discovery rates; and audits of P, compared with cleanlab's.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

from resvm_cli.commands.rank.out_of_bag_scores import TrustedNegatives, benjamini_hochberg
from resvm_cli.metrics.class_mixture import ClassMixture
from resvm_cli.model.ensemble import Group
from resvm_cli.svm.kernels import Kernel
from studies.audit_peers import CLASSIFIERS
from studies.markdown import put_between_marks
from studies.promise_draws import CONTAMINATIONS, LABELINGS, Cell
from studies.pu_tasks import TASKS

FDR = 0.1


def best_bin(known: np.ndarray, unlabeled: np.ndarray, contamination_pos: float) -> float:
    """Estimate the fraction of positives in U by best-bin estimation (Garg et al. 2021)."""
    cuts = np.unique(known)
    recall = 1 - np.searchsorted(np.sort(known), cuts, "left") / len(known)
    share = 1 - np.searchsorted(np.sort(unlabeled), cuts, "left") / len(unlabeled)
    noise = np.sqrt(np.log(4 / 0.1) / 2) * (len(unlabeled) ** -0.5 + len(known) ** -0.5)
    best = int(np.argmin((share + 1.01 * noise) / recall))
    return float(np.clip((1 - contamination_pos) * share[best] / recall[best], 0, 1))


@dataclass(frozen=True)
class Outcome:
    """Estimates and truth of one draw."""

    separable: bool
    error_b: float
    inside_b: bool
    before_b: float
    error_a: float
    inside_a: bool
    at_hidden: float  # estimated minus true precision among the first n_hidden rows
    inside_precision: bool
    at_fdr: float  # the same for the list of --fdr; nan if it has fewer than 5 rows
    fdr_length: float  # rows in that list / hidden positives
    conformal: float  # false fraction of the list from trusted negatives; 0 if it is empty
    conformal_found: float  # fraction of the hidden positives in that list
    false_gap: float  # expected_false minus the truth at the first n_false rows
    inside_false: bool
    suspects: int
    audits: dict[str, float]


def outcome(cell: Cell, store: Path) -> Outcome:
    with np.load(store / f"{cell.name}.npz") as stored:
        draw = dict(stored)
    of_p, of_u = ~np.isnan(draw["pos"]), ~np.isnan(draw["unl"])
    known, unlabeled = draw["pos"][of_p], draw["unl"][of_u]
    true_pos, true_unl = draw["truth_pos"][of_p], draw["truth_unl"][of_u]
    b, n_hidden = float(draw["truth_unl"].mean()), int(true_unl.sum())
    mixture = ClassMixture.fit(known, unlabeled)
    assert mixture is not None
    share_a, share_b = mixture.contamination_pos, mixture.contamination_unl
    promised = mixture.precision(len(unlabeled))
    order = np.argsort(-unlabeled, kind="stable")
    true = np.cumsum(true_unl[order]) / np.arange(1, len(order) + 1)
    length = int((promised.value >= 1 - FDR).sum())
    last = n_hidden - 1
    n_members = draw["unl_members"].shape[1]
    group = (Group(Kernel("linear"), range(n_members)),)
    negatives = TrustedNegatives(draw["negatives_members"].astype(float), "mean", group)
    rates = benjamini_hochberg(negatives.p_values(unlabeled, draw["unl_absent"][of_u]))
    listed = rates <= FDR
    lowest = np.argsort(known, kind="stable")
    false = ~true_pos
    n_false = max(5, int(false.sum()))
    expected = mixture.expected_false(len(known))
    found = int(false[lowest[:n_false]].sum())
    audits = {}
    if false.any():
        audits["resvm"] = float(average_precision_score(false, -known))
        for name in CLASSIFIERS:
            path = store / f"{cell.name}.{name}.npy"
            if path.exists():
                audits[name] = float(average_precision_score(false, -np.load(path)[of_p]))
    return Outcome(
        mixture.separable,
        share_b.value - b,
        share_b.low <= b <= share_b.high,
        best_bin(known, unlabeled, cell.contamination) - b,
        share_a.value - cell.contamination,
        share_a.low - 0.005 <= cell.contamination <= share_a.high,
        promised.value[last] - true[last],
        bool(promised.low[last] <= true[last] <= promised.high[last]),
        promised.value[length - 1] - true[length - 1] if length >= 5 else np.nan,
        length / n_hidden,
        float((~true_unl[listed]).mean()) if listed.any() else 0.0,
        float(true_unl[listed].sum() / n_hidden),
        expected.value[n_false - 1] - found,
        bool(expected.low[n_false - 1] <= found <= expected.high[n_false - 1]),
        mixture.n_false(),
        audits,
    )


def _mean(values: Sequence[float], digits: int = 3, *, sign: bool = False) -> str:
    kept = [value for value in values if not np.isnan(value)]
    if not kept:
        return "-"
    mean = f"{np.mean(kept):+.{digits}f}" if sign else f"{np.mean(kept):.{digits}f}"
    spread = f" ± {np.std(kept, ddof=1):.{digits}f}" if len(kept) > 1 else ""
    return mean + spread


def _percent(values: Sequence[bool]) -> str:
    return f"{100 * np.mean(values):.0f} %" if values else "-"


def tables(outcomes: dict[Cell, Outcome]) -> str:
    """Format Markdown tables of means and standard deviations over draws."""
    lines = [
        f"{len(outcomes)} draws of {len({cell.task for cell in outcomes})} tasks: up to 200 rows of"
        " P, 2,000 of U; default parameters. Means and standard deviations over draws.",
        "",
        "**Share of positives in U: error of the estimate** (known at random)",
        "",
        "| task | told apart | mean absolute error | best bin, a given | in its interval |"
        " error of a | in its interval |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    random = {cell: one for cell, one in outcomes.items() if cell.labeling == "random"}
    groups: list[tuple[str, list[Outcome]]] = [
        (task, [one for cell, one in random.items() if cell.task == task]) for task in TASKS
    ]
    groups += [
        ("**all told apart**", [one for one in random.values() if one.separable]),
        ("**the others**", [one for one in random.values() if not one.separable]),
    ]
    for name, group in groups:
        if group:
            cells = [
                _percent([one.separable for one in group]),
                _mean([abs(one.error_b) for one in group]),
                _mean([abs(one.before_b) for one in group]),
                _percent([one.inside_b for one in group]),
                _mean([abs(one.error_a) for one in group]),
                _percent([one.inside_a for one in group]),
            ]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [
        "",
        "**Precision: promised less true**, among as many rows as are hidden, and of the list of"
        f" `--fdr {FDR:g}`; false share of the conformal list of the same rate",
        "",
        "| P known | false in P | told apart | draws | first rows | in its interval |"
        " `--fdr` list | its length, of hidden | conformal: false share | of hidden found |",
        "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for labeling in LABELINGS:
        for contamination in CONTAMINATIONS:
            for separable in (True, False):
                group = [
                    one
                    for cell, one in outcomes.items()
                    if cell.labeling == labeling
                    and cell.contamination == contamination
                    and one.separable == separable
                ]
                if group:
                    cells = [
                        str(len(group)),
                        _mean([one.at_hidden for one in group], sign=True),
                        _percent([one.inside_precision for one in group]),
                        _mean([one.at_fdr for one in group], sign=True),
                        _mean([one.fdr_length for one in group], 2),
                        _mean([one.conformal for one in group]),
                        _mean([one.conformal_found for one in group], 2),
                    ]
                    lines.append(
                        f"| {labeling} | {100 * contamination:.0f} % |"
                        f" {'yes' if separable else 'no'} | {' | '.join(cells)} |"
                    )
    lines += ["", *_audit_table(random)]
    return "\n".join(lines) + "\n"


def _audit_table(outcomes: dict[Cell, Outcome]) -> list[str]:
    names = ["resvm", *CLASSIFIERS]
    lines = [
        "**Audit: average precision at finding the false rows of P**, beside cleanlab with three"
        " classifiers; expected_false less the truth, at as many rows as are false",
        "",
        "| task | false in P | resvm | cleanlab, SVC | forest | logistic | expected_false |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    totals: dict[float, list[dict[str, float]]] = defaultdict(list)
    for task in TASKS:
        for contamination in CONTAMINATIONS[1:]:
            group = [
                one
                for cell, one in outcomes.items()
                if (cell.task, cell.contamination) == (task, contamination)
                and len(one.audits) == len(names)
            ]
            if group:
                totals[contamination] += [one.audits for one in group]
                cells = [_mean([one.audits[name] for one in group]) for name in names]
                gap = _mean([one.false_gap for one in group], 1, sign=True)
                lines.append(
                    f"| {task} | {100 * contamination:.0f} % | {' | '.join(cells)} | {gap} |"
                )
    for contamination, audits in totals.items():
        cells = [f"{np.mean([one[name] for one in audits]):.3f}" for name in names]
        gaps = [one for cell, one in outcomes.items() if cell.contamination == contamination]
        gap = _mean([one.false_gap for one in gaps if one.separable], 1, sign=True)
        inside = _percent([one.inside_false for one in gaps if one.separable])
        lines.append(
            f"| **mean of {len(audits)} draws** | {100 * contamination:.0f} % |"
            f" {' | '.join(cells)} | {gap}, {inside} in the interval |"
        )
    clean = [one for cell, one in outcomes.items() if not cell.contamination]
    if clean:
        suspects = _mean([one.suspects for one in clean], 1)
        lines += ["", f"Suspects in a clean P: {suspects} of up to 200 rows."]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    parser.add_argument("--draws", type=int, nargs=2, default=(0, 3), help="from and to")
    parser.add_argument("--markdown", help="a document whose tables are replaced")
    arguments = parser.parse_args()
    cells = [
        Cell(task, contamination, labeling, number)
        for number in range(*arguments.draws)
        for task in TASKS
        for contamination in CONTAMINATIONS
        for labeling in LABELINGS
    ]
    store = Path(arguments.store)
    outcomes = {
        cell: outcome(cell, store) for cell in cells if (store / f"{cell.name}.npz").exists()
    }
    text = tables(outcomes)
    print(text)
    if arguments.markdown:
        put_between_marks(Path(arguments.markdown), text)


if __name__ == "__main__":
    main()
