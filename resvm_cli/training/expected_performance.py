"""The expected performance of a model, from its out-of-bag values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from resvm_cli.errors import Message, SolverError, Text
from resvm_cli.metrics.intervals import Interval, roc_auc_interval
from resvm_cli.model.decisions import (
    MIN_POSITIVES,
    MIN_UNLABELED,
    DecisionRule,
    Threshold,
    choose_threshold,
)
from resvm_cli.model.ensemble import Group
from resvm_cli.model.members import Part, train_part
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.out_of_bag import OutOfBagSample, decide_out_of_bag
from resvm_cli.model.pu_data import MemoryData, PUData
from resvm_cli.model.scaling import MAX_FEATURES, FeatureStats
from resvm_cli.model.set_checks import preparation_note
from resvm_cli.model_files.out_of_bag_table import OutOfBag
from resvm_cli.parameters import RULE_NAMES, MethodParameters, RuleName, Setting
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, median
from resvm_cli.running.run import Run

# How many rows at the top of the ranking to examine: a fraction of U, with a minimum.
TOP_FRACTION, TOP_ROWS = 0.02, 10
# How many members, and rows each of P and U, are used to compare scaled and unscaled features.
ADVISING_MEMBERS, ADVISING_ROWS = 10, 1000
NEARLY_EMPTY = 0.25  # fraction of the median number of entries in a row of P
CELLS_AT_ONCE = 1 << 20  # rows times members


@dataclass(frozen=True, eq=False)
class OutOfBagSummary:
    """The out-of-bag results of all members, and the decision rule derived from them."""

    groups: tuple[Group, ...]  # standardized
    decision: DecisionRule
    # rows that at least one member has not seen; None if no rows were sampled
    table: OutOfBag | None

    @classmethod
    def from_values(
        cls, plan: ModelPlan, rule: RuleName, sample: OutOfBagSample, values: FloatArray
    ) -> OutOfBagSummary:
        """Summarize each member's values (members x rows) for the rows it has not seen."""
        groups = plan.groups()
        decision = DecisionRule.plain(rule, single=plan.single)
        if not len(sample):
            return cls(groups, decision, None)
        if len(groups) > 1:
            # known negatives come after U
            n_u = int(np.searchsorted(sample.unlabeled, plan.rows_unl))
            of_u = slice(len(sample.positive), len(sample.positive) + n_u)
            groups = tuple(_standardized(each, values[each.columns, of_u]) for each in groups)
        blocks = []
        step = max(1, CELLS_AT_ONCE // len(values))
        for start in range(0, len(sample), step):
            by_row = np.ascontiguousarray(values[:, start : start + step].T)
            found = decide_out_of_bag(by_row, np.isfinite(by_row), groups)
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
        share = plan.rows_neg / (plan.rows_neg + plan.rows_unl)
        for name in RULE_NAMES:
            known, unlabeled = _values(table, name)
            threshold = choose_threshold(
                known, unlabeled, 0.0, table.negatives_by(name), negative_share=share
            )
            if threshold is not None:
                decision.thresholds[name] = threshold
        return cls(groups, decision, table)


def _values(table: OutOfBag, rule: RuleName) -> tuple[FloatArray, FloatArray]:
    values = table.by(rule)
    assert values is not None  # only models in older formats lack these values
    return values


def _standardized(group: Group, values: FloatArray) -> Group:
    """Return the group with the shift and scale that standardize its mean values over rows of U.

    ``values`` (members x rows) contains the values of the group's members.
    """
    by_row = np.ascontiguousarray(values.T)
    unseen = np.isfinite(by_row)
    counts = unseen.sum(axis=1)
    sums = np.where(unseen, by_row, 0.0).sum(axis=1)
    means = sums[counts > 0] / counts[counts > 0]
    if len(means) < 2:
        return group
    shift, scale = float(means.mean()), float(means.std())
    usable = bool(np.isfinite([shift, scale]).all()) and scale > 0
    return replace(group, shift=shift, scale=scale) if usable else group


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
        known, unlabeled = _values(table, decision.rule)
        area = roc_auc_interval(known, unlabeled) if len(known) > 1 and len(unlabeled) > 1 else None
        negative = table.negatives_by(decision.rule)
        n_false = int((negative > decision.threshold.value).sum())
        sizes = len(known), len(unlabeled)
        return cls(decision.rule, decision.threshold, *sizes, area, len(negative), n_false)


def warnings_about(data: PUData, part: Part, summary: OutOfBagSummary) -> list[Text]:
    """Return warnings that the user should read before trusting the model."""
    found: list[Text] = []
    settled = data.scaling is not None or data.scaling_is_auto
    kernel = part.plan.plans[0].kernel
    if not kernel.is_precomputed and (note := preparation_note(data.positives, part.unlabeled)):
        found.append(note)
    scalable = kernel.takes_scaling
    if not settled and scalable:
        found += _scaling_advice(data, part)
    if summary.table is None:
        return found
    expected = ExpectedPerformance.from_table(summary.decision, summary.table)
    if not expected.threshold.chosen:
        found.append(
            f"T is {expected.threshold.value:g}: only {expected.n_positives:,} rows of P and"
            f" {expected.n_unlabeled:,} of U are out of bag; choosing a threshold requires at"
            f" least {MIN_POSITIVES} and {MIN_UNLABELED}"
        )
    area = expected.roc_auc
    if area is not None and area.low <= 0.5:
        found.append(
            Message(
                "known positives are barely distinguishable from U: ROC AUC {area:.3f} ({low:.3f}"
                " to {high:.3f}; 0.5 is chance); check the features, the labels and the scaling"
                + (", or try {auto:True}" if len(part.plan.plans) == 1 else ""),
                area=area.value,
                low=area.low,
                high=area.high,
            )
        )
    return found + _empty_rows(data, summary.table, expected.rule)


def _scaling_advice(data: PUData, part: Part) -> list[Text]:
    """Advise scaling as ``check`` does, but only if it improves the out-of-bag ROC AUC.

    Scaled and unscaled features are compared with rbf members at the default penalty, because
    linear members and large penalties are very slow on unscaled features.
    """
    if max(data.positives.max_index, part.unlabeled.max_index) >= MAX_FEATURES:
        return []
    stats = FeatureStats()
    stats.add(data.positives)
    stats.add(part.unlabeled)
    summary = stats.summary()
    advice, kind = summary.advice(), summary.advised
    if advice is None or kind is None:
        return []
    params = MethodParameters(n_models=ADVISING_MEMBERS, seed=part.plan.seed)
    rows = [
        some.take(np.arange(min(len(some), ADVISING_ROWS)))
        for some in (data.positives, part.unlabeled)
    ]
    areas = []
    for scale in (kind, None):
        sample = MemoryData(*rows, scale=scale, zero_based=data.zero_based)
        trial = ModelPlan.resolve([Setting(params)], sample)
        try:
            scored = train_part(trial, range(trial.n_models), sample, Run(jobs=1))
        except SolverError:
            areas.append(0.5)
            continue
        result = OutOfBagSummary.from_values(trial, "mean", scored.sample, scored.values)
        expected = ExpectedPerformance.from_table(result.decision, result.table)
        areas.append(0.5 if expected.roc_auc is None else expected.roc_auc.value)
    if areas[0] <= areas[1]:
        return []
    return [
        Message(
            "the features are not scaled: {advice}; with {scale:" + kind + "}, the out-of-bag ROC"
            " area of P against U is {scaled:.3f} instead of {plain:.3f}",
            advice=advice,
            scaled=areas[0],
            plain=areas[1],
        )
    ]


def _empty_rows(data: PUData, table: OutOfBag, rule: RuleName) -> list[Text]:
    """Warn if rows with few entries lead the ranking: the model may rank by what is missing."""
    _, values = _values(table, rule)
    if len(values) < 2 * TOP_ROWS:
        return []
    count = max(TOP_ROWS, round(TOP_FRACTION * len(values)))
    top = np.flatnonzero(values >= np.sort(values)[-count])  # including rows tied with the last one
    rows = data.fetch(np.sort(table.rows[table.unlabeled][top] - 1)).without_zeros()
    usual = median(data.positives.without_zeros().lengths)
    at_top = median(rows.lengths)
    if at_top >= NEARLY_EMPTY * usual or usual < 2:
        return []
    return [
        Message(
            "rows of U with few features lead the ranking (median of the top {count}:"
            " {at_top:.0f}; of P: {usual:.0f}); try a smaller {w_pos}, or normalize the rows to"
            " equal length",
            count=len(top),
            at_top=at_top,
            usual=usual,
        )
    ]
