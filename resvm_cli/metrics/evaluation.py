"""The figures that summarize a ranking, from true labels or from P and U.

Known contamination of P and U can be corrected for. Let a be the fraction of P that is negative and
b the fraction of U that is positive. At every threshold, the fractions predicted positive are
(1-a) TPR + a FPR in P and b TPR + (1-b) FPR in U. These two linear equations are solved for TPR and
FPR. With a = 0, the result is the contingency table of Claesen, Davis, De Smet and De Moor (2015,
arXiv:1504.06837). Precision is computed at U's prevalence, b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from resvm_cli import randomness
from resvm_cli.metrics import intervals
from resvm_cli.metrics.intervals import Interval, percentile_interval
from resvm_cli.metrics.ranking import Confusion, ScoredLabels, best_pu_score, depth_of, pu_score
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray

if TYPE_CHECKING:
    import numpy.typing as npt

Figures: TypeAlias = dict[str, float | Interval]  # by name, in display order

ALPHAS = (20.0, 80.5)  # for BEDROC
FRACTIONS = (0.005, 0.01, 0.05, 0.1)  # depths for precision, recall and enrichment
AT_THRESHOLD = ("recall", "fraction_positive", "fraction_positive_unlabeled", "pu_score")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The decision values of one file, and the figures that summarize them."""

    name: str
    positive: BoolArray
    scores: FloatArray
    threshold: float  # nan: a ranking has none
    threshold_from: str
    figures: Figures

    @property
    def degenerate(self) -> str | None:
        """What makes the figures at the threshold meaningless, if anything."""
        n_predicted = int(np.count_nonzero(self.scores > self.threshold))
        if math.isnan(self.threshold) or n_predicted not in (0, len(self.scores)):
            return None
        return f"{'all rows are' if n_predicted else 'no row is'} predicted positive at T"


def labeled_figures(
    positive: BoolArray,
    scores: FloatArray,
    threshold: float,
    depths: Sequence[int] = (),
    n_replicates: int = 0,
    seed: int = 0,
) -> Figures:
    """Return all figures for rows with true labels, as intervals if there are replicates.

    Those that depend on the threshold are nan if it is nan.
    """
    ranking = ScoredLabels.from_scores(positive, scores)
    table = Confusion.at(positive, scores, threshold)
    n_rows = len(scores)
    named_depths = [(str(k), k) for k in depths if k <= n_rows]
    named_depths += [(f"{100 * part:g}_percent", depth_of(part, n_rows)) for part in FRACTIONS]

    def statistics(ranking: ScoredLabels) -> dict[str, FloatArray]:
        figures: dict[str, FloatArray] = ranking.areas()
        for alpha in ALPHAS:
            figures[f"bedroc_{alpha:g}"] = ranking.bedroc(alpha)
        for name, depth in named_depths:
            figures[f"precision_at_{name}"] = ranking.precision_at(depth)
            figures[f"recall_at_{name}"] = ranking.recall_at(depth)
            figures[f"enrichment_at_{name}"] = ranking.enrichment_at(depth)
        return figures

    figures: Figures = {
        "n_rows": n_rows,
        "n_positives": int(ranking.n_positives),
        "n_negatives": int(ranking.n_negatives),
        **_with_intervals(ranking, statistics, n_replicates, seed),
        "threshold": threshold,
        **vars(table),
        **_plain_without(n_replicates, intervals.confusion_intervals(table, n_replicates, seed)),
    }
    return _without_threshold(figures, ("tp", "fp", "fn", "tn", "precision", "recall", "f1", "mcc"))


def unlabeled_figures(
    positive: BoolArray,
    scores: FloatArray,
    threshold: float,
    known: Contamination | None = None,
    n_replicates: int = 0,
    seed: int = 0,
) -> Figures:
    """Return figures from P and U, corrected for contamination if it is known.

    Those that depend on the threshold are nan if it is nan.
    """
    ranking = ScoredLabels.from_scores(positive, scores)
    table = Confusion.at(positive, scores, threshold)
    n_pos, n_unl = int(ranking.n_positives), int(ranking.n_negatives)
    fraction = (table.tp + table.fp) / len(scores)
    best, best_from = best_pu_score(positive, scores)
    figures: Figures = {
        "n_rows": len(scores),
        "n_positives": n_pos,
        "n_unlabeled": n_unl,
        **_with_intervals(
            ranking, lambda drawn: {"roc_auc_pu": drawn.roc_auc()}, n_replicates, seed
        ),
        "threshold": threshold,
        "recall": intervals.clopper_pearson(table.tp, n_pos),
        "fraction_positive": fraction,
        "fraction_positive_unlabeled": table.fp / n_unl,
        "pu_score": float(pu_score(table.recall, fraction)),
        "pu_score_max": best,
        "pu_score_max_from": best_from,
    }
    of_threshold = list(AT_THRESHOLD)
    if known is not None:
        corrected = corrected_at_threshold(table, known, n_replicates, seed)
        of_threshold += corrected
        figures |= {
            "contamination_pos": known.a,
            "contamination_unl": known.b,
            **_with_intervals(ranking, lambda drawn: areas(drawn, known), n_replicates, seed),
            **_plain_without(n_replicates, corrected),
        }
    return _without_threshold(figures, of_threshold)


def _without_threshold(figures: Figures, names: Sequence[str]) -> Figures:
    """Replace the figures that depend on the threshold by nan if it is nan."""
    if math.isnan(figures["threshold"]):  # type: ignore[arg-type]
        for name in names:
            is_interval = isinstance(figures[name], Interval)
            figures[name] = Interval(*[math.nan] * 3) if is_interval else math.nan
    return figures


def _with_intervals(
    ranking: ScoredLabels, statistics: intervals.Statistics, n_replicates: int, seed: int
) -> Figures:
    """Return statistics with bootstrap intervals, or alone without replicates."""
    if not n_replicates:
        return {name: float(value) for name, value in statistics(ranking).items()}
    return dict(intervals.bootstrap(ranking, statistics, n_replicates, seed))


def _plain_without(n_replicates: int, figures: dict[str, Interval]) -> Figures:
    """Return only the values of intervals that have no replicates."""
    if n_replicates:
        return dict(figures)
    return {name: interval.value for name, interval in figures.items()}


@dataclass(frozen=True)
class Contamination:
    """The contamination a of P and b of U."""

    a: float
    b: float

    def rates(
        self, recall: npt.ArrayLike, fraction: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return unclipped TPR and FPR from the fractions of P and U predicted positive."""
        of_p, of_u = np.asarray(recall, np.float64), np.asarray(fraction, np.float64)
        separation = 1 - self.a - self.b
        return (
            ((1 - self.b) * of_p - self.a * of_u) / separation,
            ((1 - self.a) * of_u - self.b * of_p) / separation,
        )

    def precision(self, tpr: FloatArray, fpr: FloatArray) -> FloatArray:
        """Return the precision at U's prevalence, clipped to 0..1."""
        hit = self.b * tpr
        predicted = hit + (1 - self.b) * fpr
        ratio = np.divide(hit, predicted, out=np.ones_like(predicted), where=predicted > 0)
        return np.where(hit <= 0, 0.0, np.clip(ratio, 0.0, 1.0))


def roc_auc(ranking: ScoredLabels, known: Contamination) -> FloatArray:
    """Return the AUC, clipped to 0..1; P against U has an area of (1-a-b) AUC + (a+b)/2."""
    return np.clip(0.5 + (ranking.roc_auc() - 0.5) / (1 - known.a - known.b), 0.0, 1.0)


def average_precision(ranking: ScoredLabels, known: Contamination) -> FloatArray:
    """Return the corrected precision averaged over the corrected recall, clipped to 0..1.

    At the score of a known positive, recall steps up; the step is weighted by the precision
    reached. Between two such scores, if a > 0, rows of U lower the recall, and precision falls
    along a hyperbola.
    """
    n_pos, n_unl = ranking.n_positives[..., None], ranking.n_negatives[..., None]
    zero = np.zeros_like(ranking.tp[..., :1])
    tp, fp = np.concatenate([zero, ranking.tp], -1), np.concatenate([zero, ranking.fp], -1)
    reached = known.rates(tp / n_pos, fp / n_unl)
    before = known.rates(
        tp / n_pos,
        np.concatenate([ranking.fp - ranking.tied, np.broadcast_to(n_unl, zero.shape)], -1) / n_unl,
    )
    after = tuple(rate[..., 1:] for rate in reached)
    stepped = known.precision(*after) * (after[0] - before[0][..., :-1])
    total = stepped.sum(axis=-1) + _area_between(known, reached, before).sum(axis=-1)
    return np.asarray(np.clip(total, 0.0, 1.0))


def _area_between(
    known: Contamination, start: tuple[FloatArray, FloatArray], end: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Integrate precision over recall along segments where only rows of U are added."""
    fallen = end[0] - start[0]
    first, last = known.precision(*start), known.precision(*end)
    predicted = known.b * start[0] + (1 - known.b) * start[1]
    more = known.b * end[0] + (1 - known.b) * end[1] - predicted
    smooth = (more > 0) & (predicted > 0) & (first < 1) & (last > 0)
    safe = np.where(smooth, predicted, 1.0)
    slope = fallen / np.where(smooth, more, 1.0)
    curved = slope * fallen + (start[0] - slope * safe) * slope * np.log1p(
        np.where(smooth, more, 0.0) / safe
    )
    return np.where(smooth, known.b * curved, fallen * (first + last) / 2)


def at_threshold(
    recall: npt.ArrayLike, fraction: npt.ArrayLike, known: Contamination
) -> dict[str, FloatArray]:
    """Return corrected metrics from the fractions of P and U that are predicted positive."""
    tpr, fpr = (np.clip(rate, 0.0, 1.0) for rate in known.rates(recall, fraction))
    precision = known.precision(tpr, fpr)
    both = precision + tpr
    f1 = np.divide(2 * precision * tpr, both, out=np.zeros_like(both), where=both > 0)
    return {"recall": tpr, "fpr": fpr, "precision": precision, "f1": f1}


def areas(ranking: ScoredLabels, known: Contamination) -> dict[str, FloatArray]:
    """Return the corrected areas under the PR and the ROC curve."""
    return {
        "corrected_average_precision": average_precision(ranking, known),
        "corrected_roc_auc": roc_auc(ranking, known),
    }


def corrected_at_threshold(
    table: Confusion, known: Contamination, n_replicates: int, seed: int
) -> dict[str, Interval]:
    """Return corrected metrics at a threshold, from the confusion matrix of P against U."""
    rng = randomness.generator(seed, randomness.RATES_AT_THRESHOLD)
    n_pos, n_unl = table.tp + table.fn, table.fp + table.tn
    recall, fraction = table.tp / n_pos, table.fp / n_unl
    recalls = rng.binomial(n_pos, recall, n_replicates) / n_pos
    fractions = rng.binomial(n_unl, fraction, n_replicates) / n_unl
    drawn = at_threshold(recalls, fractions, known)
    return {
        f"corrected_{name}": percentile_interval(float(value), drawn[name])
        for name, value in at_threshold(recall, fraction, known).items()
    }
