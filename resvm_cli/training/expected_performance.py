"""What to expect of a model, told by rows that the judging members have not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resvm_cli.errors import Message, Text
from resvm_cli.metrics.intervals import Interval, roc_auc_interval
from resvm_cli.model.decisions import LEAST_POSITIVES, LEAST_UNLABELED, Threshold
from resvm_cli.model.parts import Conclusion, Part
from resvm_cli.model.pu_data import PUData
from resvm_cli.model.scaling import MOST_FEATURES, FeatureStats
from resvm_cli.parameters import RuleName
from resvm_cli.rows import median

# Rows of U at the top of the ranking are looked at: this share of those judged, but some at least.
TOP_SHARE, TOP_ROWS = 0.02, 10
NEARLY_EMPTY = 0.25  # of the entries that a row of P has


@dataclass(frozen=True)
class Outlook:
    """The threshold of a model with what it reaches, and how well P and U are told apart."""

    rule: RuleName
    threshold: Threshold
    n_positives: int  # that were judged
    n_unlabeled: int
    roc_auc: Interval | None  # of known positives against U

    @classmethod
    def of(cls, conclusion: Conclusion) -> Outlook:
        known, unlabeled = conclusion.values(conclusion.rule.rule)
        area = roc_auc_interval(known, unlabeled) if len(known) > 1 and len(unlabeled) > 1 else None
        return cls(
            conclusion.rule.rule, conclusion.rule.threshold, len(known), len(unlabeled), area
        )


def warnings_of(data: PUData, part: Part, conclusion: Conclusion, outlook: Outlook) -> list[Text]:
    """What the user should know before trusting the model."""
    found: list[Text] = []
    settled = data.scaling is not None or data.scaling_was_left_open
    scalable = part.plan.plans[0].kernel.takes_scaling
    if not settled and scalable and (advice := _scaling_advice(data, part)):
        found.append(
            Message("the features are not scaled: {advice}; try {scale:auto}", advice=advice)
        )
    if not len(conclusion.judged):
        return found
    if not outlook.threshold.chosen:
        found.append(
            f"T is {outlook.threshold.value:g}: only {outlook.n_positives:,} rows of P and"
            f" {outlook.n_unlabeled:,} of U are out of bag, and a threshold is chosen from at least"
            f" {LEAST_POSITIVES} and {LEAST_UNLABELED}"
        )
    area = outlook.roc_auc
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
    return found + _empty_rows(data, conclusion, outlook)


def _scaling_advice(data: PUData, part: Part) -> str | None:
    """By the rule of ``check``, from the rows that were trained on."""
    if max(data.positives.max_index, part.unlabeled.max_index) >= MOST_FEATURES:
        return None
    stats = FeatureStats()
    stats.add(data.positives)
    stats.add(part.unlabeled)
    return stats.summary().advice()


def _empty_rows(data: PUData, conclusion: Conclusion, outlook: Outlook) -> list[Text]:
    """A ranking led by rows of few entries has learned what is missing, not what is there."""
    judged = conclusion.judged
    of_u = slice(len(judged.positive), len(judged))
    values = conclusion.decisions.by(outlook.rule)[of_u]
    unseen = np.flatnonzero(conclusion.decisions.n_members[of_u] > 0)
    if len(unseen) < 2 * TOP_ROWS:
        return []
    count = max(TOP_ROWS, round(TOP_SHARE * len(unseen)))
    top = unseen[np.argsort(-values[unseen], kind="stable")[:count]]
    rows = data.fetch(np.sort(judged.unlabeled[top])).without_zeros()
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
