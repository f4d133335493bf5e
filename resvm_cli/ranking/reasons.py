"""``rank --why``: what counts for and against the top rows of a list."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from resvm_cli.data.pudata import PUData
from resvm_cli.ensemble.plan import Plan
from resvm_cli.ensemble.train import rows_drawn
from resvm_cli.errors import ParameterError
from resvm_cli.ranking.listing import Listing
from resvm_cli.ranking.scores import OutOfBagScorer
from resvm_cli.records import dataclass
from resvm_cli.run import Run

if TYPE_CHECKING:
    from resvm_cli.ensemble.explanations import Term

SHOWN = 5  # number of rows or features shown for and against
ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class Contribution:
    """What one row or feature adds to a value."""

    name: str  # the row's id, or the feature's name
    amount: float


@dataclass(frozen=True)
class Reasons:
    """A row's value as a sum, with its largest terms.

    The value is the mean over the members that score the row, whatever the decision rule.
    For linear members, it is a sum over features. For all others, it is a sum over training rows.
    """

    rank: int
    id: str
    mean_value: float
    constant: float
    of_positives: float | None
    of_unlabeled: float | None
    of_features: float | None
    positives: tuple[Contribution, ...]
    unlabeled: tuple[Contribution, ...]
    features: tuple[Contribution, ...]

    def sums(self) -> list[tuple[str, float]]:
        """Return the terms that add up to the value."""
        named = (
            ("known positives", self.of_positives),
            ("rows of U", self.of_unlabeled),
            ("features", self.of_features),
            ("constant", self.constant),
        )
        return [(name, amount) for name, amount in named if amount is not None]

    def largest_terms(self) -> list[tuple[str, tuple[Contribution, ...]]]:
        """Return the lists of largest terms that are not empty."""
        named = (
            ("known positives that support it", self.positives),
            ("rows of U that count against it", self.unlabeled),
            ("features with the largest weight", self.features),
        )
        return [(name, terms) for name, terms in named if terms]


def feature_names(path: str | None, kernels: Collection[str]) -> list[str] | None:
    """Return the names in a feature map."""
    if path is None:
        return None
    if "precomputed" in kernels:
        raise ParameterError(
            "`feature_map` names features, but a precomputed kernel has none", "omit `feature_map`"
        )
    from resvm_cli.data.encoding import read_feature_map

    return read_feature_map(path).names


def reasons_of(
    listing: Listing,
    count: int,
    data: PUData,
    plan: Plan,
    scorer: OutOfBagScorer,
    names: list[str] | None,
    run: Run,
) -> tuple[Reasons, ...]:
    """Return the reasons for the top rows of a list, a few rows at a time."""
    from resvm_cli.ensemble.explanations import Explainer

    wanted = listing.head(count)
    problems = plan.problems(range(plan.n_models))
    drawn = rows_drawn(problems)
    ensemble = scorer.predictor.ensemble
    parts = Explainer(ensemble, data.positives, data.fetch(drawn), drawn, problems)
    of_rows = not ensemble.linear
    of_features = any(group.kernel.name == "linear" for group in ensemble.sections)
    ids = data.ids()

    def row_named(part: Term) -> Contribution:
        return Contribution(ids[part.number], part.amount)

    def feature_named(part: Term) -> Contribution:
        return Contribution(data.feature_name(part.number, names), part.amount)

    found: list[Reasons] = []
    for start in range(0, len(wanted), ROWS_AT_ONCE):
        numbers = wanted.numbers[start : start + ROWS_AT_ONCE]
        rows = data.rows(numbers)
        mask, _ = scorer.unseen_mask.scorers(numbers, rows)
        for one in parts.explain(rows, mask, SHOWN):
            index = len(found)
            found.append(
                Reasons(
                    int(wanted.ranks[index]),
                    wanted.ids[index],
                    one.value,
                    one.constant,
                    one.of_positives if of_rows else None,
                    one.of_unlabeled if of_rows else None,
                    one.of_features if of_features else None,
                    tuple(map(row_named, one.positives)),
                    tuple(map(row_named, one.unlabeled)),
                    tuple(map(feature_named, one.features)),
                )
            )
        run.progress("explaining", len(found), len(wanted))
    return tuple(found)
