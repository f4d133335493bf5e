"""What score says of one ranking: named figures, each with its interval where it has one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.metrics import bootstrap, pu, screening
from resvm_cli.metrics.bootstrap import Interval
from resvm_cli.metrics.class_mixture import LEAST_POSITIVES, LEAST_UNLABELED, ClassMixture
from resvm_cli.metrics.contamination_correction import (
    Contamination,
    area_bands,
    contamination_grid,
    threshold_bands,
)
from resvm_cli.metrics.ranking import BoolArray, Confusion, FloatArray, Ranking, areas

PARTIAL_LIMIT = 0.1


@dataclass(frozen=True)
class Settings:
    """What is to be computed, and how carefully."""

    top: tuple[int, ...] = (10, 100)
    prevalence: float | None = None
    n_replicates: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class Figures:
    """Named numbers in the order to show them; some have bounds."""

    values: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)

    def put(self, name: str, value: float) -> None:
        self.values[name] = value

    def put_interval(self, name: str, interval: Interval, known: bool = True) -> None:
        """A figure with its bounds; ``known`` is false where no replicate was asked for."""
        self.values[name] = interval.value
        if known:
            self.bounds[name] = (interval.low, interval.high)


def percent(fraction: float) -> str:
    """A fraction for a name: 0.005 is 0.5_percent."""
    return f"{100 * fraction:g}_percent"


def statistics_of(ranking: Ranking, settings: Settings) -> dict[str, FloatArray]:
    """The figures that follow from the ranking alone; also of resampled ones."""
    figures: dict[str, FloatArray] = dict(areas(ranking))
    if settings.prevalence is not None:
        deployed = ranking.reweighted(settings.prevalence)
        figures["average_precision_at_prevalence"] = deployed.average_precision()
    figures["partial_roc_auc"] = ranking.partial_roc_auc(PARTIAL_LIMIT)
    for alpha in screening.ALPHAS:
        figures[f"bedroc_{alpha:g}"] = screening.bedroc(ranking, alpha)
    n_rows = int(np.max(ranking.n_positives + ranking.n_negatives))
    depths = [(str(k), k) for k in settings.top if k <= n_rows]
    depths += [(percent(part), screening.depth_of(part, n_rows)) for part in screening.FRACTIONS]
    for name, depth in depths:
        figures[f"precision_at_{name}"] = screening.precision_at(ranking, depth)
        figures[f"recall_at_{name}"] = screening.recall_at(ranking, depth)
        figures[f"enrichment_at_{name}"] = screening.enrichment_at(ranking, depth)
    for share in screening.RECOVERED:
        name = f"screened_to_recover_{percent(share)}"
        figures[name] = screening.screened_to_recover(ranking, share)
    return figures


def with_labels(
    positive: BoolArray, scores: FloatArray, threshold: float, settings: Settings
) -> Figures:
    """What true labels allow."""
    ranking = Ranking.of(positive, scores)
    figures = Figures()
    drawn: dict[str, Interval] = {}

    def statistics(some: Ranking) -> dict[str, FloatArray]:
        return statistics_of(some, settings)

    if settings.n_replicates:
        drawn = bootstrap.intervals(ranking, statistics, settings.n_replicates, settings.seed)
    figures.put("n_rows", len(scores))
    figures.put("n_positives", int(ranking.n_positives))
    figures.put("n_negatives", int(ranking.n_negatives))
    for name, value in statistics(ranking).items():
        if name in drawn:
            figures.put_interval(name, drawn[name])
        else:
            figures.put(name, float(value))
    _at_threshold(figures, Confusion.at(positive, scores, threshold), threshold, settings)
    best, block = ranking.best_f1()
    figures.put("best_f1", float(best))
    figures.put("best_f1_from", float(ranking.thresholds[int(block)]))
    return figures


def _at_threshold(figures: Figures, table: Confusion, threshold: float, settings: Settings) -> None:
    figures.put("threshold", threshold)
    for name in ("tp", "fp", "fn", "tn"):
        figures.put(name, getattr(table, name))
    drawn = bootstrap.confusion_intervals(table, settings.n_replicates, settings.seed)
    for name, interval in drawn.items():
        figures.put_interval(name, interval, bool(settings.n_replicates))
    if settings.prevalence is not None:
        tpr, fpr = table.recall, table.fp / max(1, table.fp + table.tn)
        hit, miss = settings.prevalence * tpr, (1 - settings.prevalence) * fpr
        figures.put("precision_at_prevalence", hit / (hit + miss) if hit + miss else 0.0)


@dataclass(frozen=True)
class Known:
    """What the user says of contamination: bounds of a and b, or that b is to be estimated."""

    a: tuple[float, float]
    b: tuple[float, float] | None  # None: estimate it
    middle: float | None = None  # of b, where it is not that of its bounds


def with_unlabeled(
    positive: BoolArray,
    scores: FloatArray,
    threshold: float,
    settings: Settings,
    known: Known | None,
) -> tuple[Figures, list[Contamination]]:
    """What positive and unlabeled rows allow, and the contaminations that were corrected for."""
    ranking = Ranking.of(positive, scores)
    n_pos, n_unl = int(ranking.n_positives), int(ranking.n_negatives)
    table = Confusion.at(positive, scores, threshold)
    figures = Figures()
    figures.put("n_rows", len(scores))
    figures.put("n_positives", n_pos)
    figures.put("n_unlabeled", n_unl)

    def statistics(some: Ranking) -> dict[str, FloatArray]:
        return {"roc_auc_pu": some.roc_auc()}

    if settings.n_replicates:
        drawn = bootstrap.intervals(ranking, statistics, settings.n_replicates, settings.seed)
        figures.put_interval("roc_auc_pu", drawn["roc_auc_pu"])
    else:
        figures.put("roc_auc_pu", float(ranking.roc_auc()))
    figures.put("threshold", threshold)
    figures.put_interval("recall", pu.clopper_pearson(table.tp, n_pos))
    fraction = (table.tp + table.fp) / len(scores)
    figures.put("fraction_positive", fraction)
    figures.put("fraction_positive_unlabeled", table.fp / n_unl)
    figures.put("pu_score", float(pu.pu_score(table.recall, fraction)))
    best, at = pu.best_pu_score(positive, scores)
    figures.put("pu_score_max", best)
    figures.put("pu_score_max_from", at)
    if known is None:
        return figures, []
    if known.b is None:
        known = _estimated(figures, positive, scores, settings, known)
    cases = _corrected(figures, ranking, table, settings, known)
    return figures, cases


def _estimated(
    figures: Figures,
    positive: BoolArray,
    scores: FloatArray,
    settings: Settings,
    known: Known,
) -> Known:
    """What is known, with the share of positives in U estimated."""
    mixture = ClassMixture.fit(
        scores[positive],
        scores[~positive],
        sum(known.a) / 2,
        n_replicates=settings.n_replicates,
        seed=settings.seed,
    )
    if mixture is None:
        raise DataError(
            f"to estimate the share of positives in U, {LEAST_POSITIVES} known positives and"
            f" {LEAST_UNLABELED} unlabeled rows are needed",
            "say what it may be: --contamination-unl 0.1..0.3",
        )
    estimate = mixture.contamination_unl
    figures.put_interval("contamination_unl_estimate", estimate, bool(settings.n_replicates))
    # a + b must stay below 1, or P would be no richer in positives than U
    most = 1 - max(known.a) - 1e-6
    bounds = (min(estimate.low, most), min(estimate.high, most))
    return replace(known, b=bounds, middle=min(estimate.value, most))


def _corrected(
    figures: Figures, ranking: Ranking, table: Confusion, settings: Settings, known: Known
) -> list[Contamination]:
    assert known.b is not None
    cases = contamination_grid(known.a, known.b, settings.prevalence, known.middle)
    n_replicates, seed = settings.n_replicates, settings.seed
    bands = area_bands(ranking, cases, n_replicates, seed)
    bands |= threshold_bands(
        table.tp, table.tp + table.fn, table.fp, table.fp + table.tn, cases, n_replicates, seed
    )
    figures.put("contamination_pos", cases[0].a)
    figures.put("contamination_unl", cases[0].b)
    for name, band in bands.items():
        interval = Interval(band.value, band.low, band.high)
        wide = len(cases) > 1 or bool(n_replicates)
        figures.put_interval(f"corrected_{name}", interval, wide)
        if len(cases) > 1:
            figures.put(f"corrected_{name}_least", band.least)
            figures.put(f"corrected_{name}_most", band.most)
    return cases
