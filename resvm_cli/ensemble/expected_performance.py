"""The expected performance of a model, from its out-of-bag values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from resvm_cli.ensemble.decisions import (
    DecisionRule,
    OutOfBag,
    Threshold,
    choose_threshold,
    decide,
)
from resvm_cli.ensemble.ensemble import Section
from resvm_cli.ensemble.oob import OutOfBagSample
from resvm_cli.ensemble.plan import Plan
from resvm_cli.metrics.intervals import Interval, roc_auc_interval
from resvm_cli.parameters import RULE_NAMES, RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray

CELLS_AT_ONCE = 1 << 20  # rows times members


@dataclass(frozen=True, eq=False)
class OutOfBagSummary:
    """The out-of-bag results of all members, and the decision rule derived from them."""

    sections: tuple[Section, ...]  # standardized
    decision: DecisionRule
    # rows that at least one member has not seen; None if no rows were sampled
    table: OutOfBag | None

    @classmethod
    def from_values(cls, plan: Plan, sample: OutOfBagSample, values: FloatArray) -> OutOfBagSummary:
        """Summarize each member's values (members x rows) for the rows it has not seen."""
        sections = plan.sections()
        decision = DecisionRule.plain(plan.rule, single=plan.single)
        if not len(sample):
            return cls(sections, decision, None)
        if len(sections) > 1:
            # known negatives come after U
            n_u = int(np.searchsorted(sample.unlabeled, plan.rows_unl))
            of_u = slice(len(sample.positive), len(sample.positive) + n_u)
            sections = tuple(_standardized(each, values[each.columns, of_u]) for each in sections)
        blocks = []
        step = max(1, CELLS_AT_ONCE // len(values))
        for start in range(0, len(sample), step):
            by_row = np.ascontiguousarray(values[:, start : start + step].T)
            found = decide(by_row, sections, unseen=np.isfinite(by_row))
            blocks.append((found.values, found.means, found.n_members))
        by_votes, means, n_members = map(np.concatenate, zip(*blocks, strict=True))
        kept = n_members > 0
        positive = np.arange(len(sample)) < len(sample.positive)
        numbers = np.concatenate([sample.positive, sample.unlabeled])
        negative = ~positive & (numbers >= plan.rows_unl)
        table = OutOfBag(
            positive[kept],
            (numbers - plan.rows_unl * negative)[kept] + 1,
            by_votes[kept],
            means[kept],
            n_members[kept],
            negative[kept],
        )
        fraction = plan.rows_neg / (plan.rows_neg + plan.rows_unl)
        for name in RULE_NAMES:
            known, unlabeled = table.by(name)
            threshold = choose_threshold(
                known, unlabeled, 0.0, table.negatives_by(name), negative_fraction=fraction
            )
            if threshold is not None:
                decision.thresholds[name] = threshold
        return cls(sections, decision, table)


def _standardized(section: Section, values: FloatArray) -> Section:
    """Return the section with the shift and spread that standardize its mean values over rows of U.

    ``values`` (members x rows) contains the values of the section's members.
    """
    by_row = np.ascontiguousarray(values.T)
    unseen = np.isfinite(by_row)
    counts = unseen.sum(axis=1)
    sums = np.where(unseen, by_row, 0.0).sum(axis=1)
    means = sums[counts > 0] / counts[counts > 0]
    if len(means) < 2:
        return section
    shift, spread = float(means.mean()), float(means.std())
    usable = bool(np.isfinite([shift, spread]).all()) and spread > 0
    return replace(section, shift=shift, spread=spread) if usable else section


@dataclass(frozen=True)
class ExpectedPerformance:
    """A model's threshold with its out-of-bag rates, and how well the model separates P from U."""

    rule: RuleName
    threshold: Threshold
    n_positives: int  # rows scored out of bag
    n_unlabeled: int
    roc_auc: Interval | None  # P against U
    n_negatives: int = 0  # known negatives scored out of bag
    n_false: int = 0  # known negatives that are predicted positive

    @classmethod
    def from_table(cls, decision: DecisionRule, table: OutOfBag | None) -> ExpectedPerformance:
        if table is None:
            return cls(decision.rule, decision.threshold, 0, 0, None)
        known, unlabeled = table.by(decision.rule)
        area = roc_auc_interval(known, unlabeled) if len(known) > 1 and len(unlabeled) > 1 else None
        negative = table.negatives_by(decision.rule)
        n_false = int((negative > decision.threshold.value).sum())
        sizes = len(known), len(unlabeled)
        return cls(decision.rule, decision.threshold, *sizes, area, len(negative), n_false)
