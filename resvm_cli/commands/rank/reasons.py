"""``rank --why``: what counts for and against the first rows of a list."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from resvm_cli.commands.rank.listing import Listing
from resvm_cli.commands.rank.out_of_bag_scores import OutOfBagScorer
from resvm_cli.errors import ParameterError
from resvm_cli.model.members import rows_drawn
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.pu_data import PUData
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Run

if TYPE_CHECKING:
    from resvm_cli.model.explanations import Term

SHOWN = 5  # number of rows or features shown for and against
ROWS_AT_ONCE = 64
MAX_ROWS = 40  # of the first ROWS_AT_ONCE: effects of features take longer


@dataclass(frozen=True)
class Contribution:
    """What one row or feature adds to a value."""

    name: str  # the row's id, or the feature's name
    amount: float


@dataclass(frozen=True)
class Effect:
    """A feature's effect on a row: the row's value minus its value with the feature as in U."""

    feature: int
    name: str
    value: float  # the feature's unscaled value
    effect: float


@dataclass(frozen=True)
class Reasons:
    """A row's value as a sum, with its largest terms.

    The value is the mean over the members that have not seen the row, whatever the decision rule.
    It is a sum over features for linear members and over training rows for all others. For these,
    effects show which features matter.
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
    effects: tuple[Effect, ...]

    @property
    def effect_terms(self) -> tuple[Contribution, ...]:
        """The effects, each named by its feature and the row's value."""
        return tuple(
            Contribution(f"{one.name} = {one.value:.4g}", one.effect) for one in self.effects
        )


def feature_names(path: str | None, kernels: Collection[str]) -> list[str] | None:
    """Return the names in a feature map."""
    if path is None:
        return None
    if "precomputed" in kernels:
        raise ParameterError(
            "{feature_map} names features, but a precomputed kernel has none", "omit {feature_map}"
        )
    from resvm_cli.tables.encoding import read_feature_map

    return read_feature_map(path).names


def reasons_of(
    listing: Listing,
    count: int,
    data: PUData,
    plan: ModelPlan,
    scorer: OutOfBagScorer,
    names: list[str] | None,
    run: Run,
) -> tuple[Reasons, ...]:
    """Return the reasons for the first rows of a list, computed a few rows at a time."""
    from resvm_cli.model.explanations import Explainer

    wanted = listing.head(count)
    problems = plan.problems(range(plan.n_models))
    drawn = rows_drawn(problems)
    ensemble = scorer.predictor.ensemble
    parts = Explainer(ensemble, data.positives, data.fetch(drawn), drawn, problems)
    of_rows = not ensemble.linear
    of_features = any(group.kernel.name == "linear" for group in ensemble.groups)
    effects: list[tuple[Effect, ...]] = []
    ids = data.ids()

    def row_named(part: Term) -> Contribution:
        return Contribution(ids[part.number], part.amount)

    def feature_named(part: Term) -> Contribution:
        return Contribution(data.feature_name(part.number, names), part.amount)

    found: list[Reasons] = []
    for start in range(0, len(wanted), ROWS_AT_ONCE):
        numbers = wanted.numbers[start : start + ROWS_AT_ONCE]
        rows = data.rows(numbers)
        unseen = scorer.unseen_mask.unseen(numbers, rows)
        if start == 0 and not (ensemble.linear or ensemble.is_precomputed):
            first = rows.slice(0, min(len(rows), MAX_ROWS))
            effects = _effects(first, unseen, data, plan.seed, scorer, names)
        for one in parts.explain(rows, unseen, SHOWN):
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
                    effects[index] if index < len(effects) else (),
                )
            )
        run.progress("explaining", len(found), len(wanted))
    return tuple(found)


def _effects(
    rows: Rows,
    unseen: BoolArray,
    data: PUData,
    seed: int,
    scorer: OutOfBagScorer,
    names: list[str] | None,
) -> list[tuple[Effect, ...]]:
    """Return the effects of features on these rows."""
    from resvm_cli.model.explanations import FeatureEffects

    effects = FeatureEffects(scorer.predictor, data, seed)

    def work(at: int) -> tuple[Effect, ...]:
        found = effects.of_row(rows.slice(at, at + 1), unseen[at], SHOWN)
        return tuple(
            Effect(feature, data.feature_name(feature, names), value, effect)
            for feature, value, effect in found
        )

    return list(parallel.run(work, range(len(rows)), scorer.run.threads()))
