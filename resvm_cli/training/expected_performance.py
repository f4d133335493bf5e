"""What to expect of a model, from rows scored by members that have not seen them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import Message, Text
from resvm_cli.metrics.intervals import Interval, roc_auc_interval
from resvm_cli.model.decisions import (
    LEAST_POSITIVES,
    LEAST_UNLABELED,
    DecisionRule,
    Threshold,
    choose_threshold,
)
from resvm_cli.model.ensemble import Group
from resvm_cli.model.members import OutOfBagSample, Part
from resvm_cli.model.out_of_bag import decide_out_of_bag
from resvm_cli.model.plan import ModelPlan, standardised
from resvm_cli.model.pu_data import PUData
from resvm_cli.model.scaling import MOST_FEATURES, FeatureStats
from resvm_cli.model_files.out_of_bag_table import OutOfBag
from resvm_cli.parameters import RULE_NAMES, RuleName
from resvm_cli.rows import FloatArray, median

# The top of the ranking of U that is examined: this fraction of the rows, but some at least.
TOP_FRACTION, TOP_ROWS = 0.02, 10
NEARLY_EMPTY = 0.25  # of the entries that a row of P has


@dataclass(frozen=True, eq=False)
class OutOfBagSummary:
    """What all members together say of the sampled rows, and what follows for new ones."""

    groups: tuple[Group, ...]  # standardized
    decision: DecisionRule
    table: OutOfBag | None  # the rows that some member has not seen; None where none were sampled

    @classmethod
    def from_values(
        cls, plan: ModelPlan, rule: RuleName, sample: OutOfBagSample, values: FloatArray
    ) -> OutOfBagSummary:
        """From each member's values on the rows it has not seen, members x rows."""
        groups = plan.groups()
        decision = DecisionRule.plain(rule, single=plan.single)
        if not len(sample):
            return cls(groups, decision, None)
        by_row = np.ascontiguousarray(values.T)
        unseen = np.isfinite(by_row)
        if len(groups) > 1:
            of_u = slice(len(sample.positive), len(sample))
            groups = tuple(_standardised(each, by_row[of_u], unseen[of_u]) for each in groups)
        decisions = decide_out_of_bag(by_row, unseen, groups)
        kept = decisions.n_members > 0
        table = OutOfBag(
            (np.arange(len(sample)) < len(sample.positive))[kept],
            np.concatenate([sample.positive, sample.unlabeled])[kept] + 1,
            decisions.values[kept],
            decisions.means[kept],
            decisions.n_members[kept],
        )
        for name in RULE_NAMES:
            threshold = choose_threshold(*_values(table, name))
            if threshold is not None:
                decision.thresholds[name] = threshold
        return cls(groups, decision, table)


def _values(table: OutOfBag, rule: RuleName) -> tuple[FloatArray, FloatArray]:
    values = table.by(rule)
    assert values is not None  # only models of an older format lack some
    return values


def _standardised(group: Group, values: FloatArray, unseen: npt.NDArray[np.bool_]) -> Group:
    """By the mean and the deviation of its mean value over rows of U, rows x members."""
    members = slice(group.members.start, group.members.stop)
    counts = unseen[:, members].sum(axis=1)
    sums = np.where(unseen[:, members], values[:, members], 0.0).sum(axis=1)
    means = sums[counts > 0] / counts[counts > 0]
    if len(means) < 2:
        return group
    return standardised(group, float(means.mean()), float(means.std()))


@dataclass(frozen=True)
class ExpectedPerformance:
    """The threshold of a model with what it reaches, and how well it separates P from U."""

    rule: RuleName
    threshold: Threshold
    n_positives: int  # scored out of bag
    n_unlabeled: int
    roc_auc: Interval | None  # of known positives against U

    @classmethod
    def from_table(cls, decision: DecisionRule, table: OutOfBag | None) -> ExpectedPerformance:
        if table is None:
            return cls(decision.rule, decision.threshold, 0, 0, None)
        known, unlabeled = _values(table, decision.rule)
        area = roc_auc_interval(known, unlabeled) if len(known) > 1 and len(unlabeled) > 1 else None
        return cls(decision.rule, decision.threshold, len(known), len(unlabeled), area)


def warnings_about(data: PUData, part: Part, summary: OutOfBagSummary) -> list[Text]:
    """What the user should know before trusting the model."""
    found: list[Text] = []
    settled = data.scaling is not None or data.scaling_was_left_open
    scalable = part.plan.plans[0].kernel.takes_scaling
    if not settled and scalable and (advice := _scaling_advice(data, part)):
        found.append(
            Message("the features are not scaled: {advice}; try {scale:auto}", advice=advice)
        )
    if summary.table is None:
        return found
    expected = ExpectedPerformance.from_table(summary.decision, summary.table)
    if not expected.threshold.chosen:
        found.append(
            f"T is {expected.threshold.value:g}: only {expected.n_positives:,} rows of P and"
            f" {expected.n_unlabeled:,} of U are out of bag, and choosing a threshold takes at"
            f" least {LEAST_POSITIVES} and {LEAST_UNLABELED}"
        )
    area = expected.roc_auc
    if area is not None and area.low <= 0.5:
        found.append(
            Message(
                "known positives can hardly be told from U: ROC area {area:.3f} ({low:.3f} to"
                " {high:.3f}), and 0.5 is chance; check the features, the labels and the scaling,"
                " or try {auto:True}",
                area=area.value,
                low=area.low,
                high=area.high,
            )
        )
    return found + _empty_rows(data, summary.table, expected.rule)


def _scaling_advice(data: PUData, part: Part) -> str | None:
    """By the rule of ``check``, from the rows that were trained on."""
    if max(data.positives.max_index, part.unlabeled.max_index) >= MOST_FEATURES:
        return None
    stats = FeatureStats()
    stats.add(data.positives)
    stats.add(part.unlabeled)
    return stats.summary().advice()


def _empty_rows(data: PUData, table: OutOfBag, rule: RuleName) -> list[Text]:
    """A ranking led by rows of few entries has learned what is missing, not what is there."""
    _, values = _values(table, rule)
    if len(values) < 2 * TOP_ROWS:
        return []
    count = max(TOP_ROWS, round(TOP_FRACTION * len(values)))
    top = np.argsort(-values, kind="stable")[:count]
    rows = data.fetch(np.sort(table.rows[~table.positive][top] - 1)).without_zeros()
    usual = median(data.positives.without_zeros().lengths)
    at_top = median(rows.lengths)
    if at_top >= NEARLY_EMPTY * usual or usual < 2:
        return []
    return [
        Message(
            "rows of U with few features lead the ranking: the first {count} have a median of"
            " {at_top:.0f}, and rows of P have {usual:.0f}; try a smaller {w_pos}, or scale rows"
            " to one length",
            count=count,
            at_top=at_top,
            usual=usual,
        )
    ]
