"""All that a model's members are drawn and trained by: one setting, or several pooled.

Members are numbered through all settings, and member i depends on (seed, i), its setting and the
data alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from resvm_cli.model.bags import PositiveWeights
from resvm_cli.model.ensemble import Group
from resvm_cli.model.methods import Plan, problems, settle
from resvm_cli.parameters import MAX_MEMBERS, MethodName, Setting
from resvm_cli.svm.problem import Problem


@dataclass(frozen=True)
class ModelPlan:
    """Plans of one method, seed and data, each with the weight of its members' mean value."""

    plans: tuple[Plan, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, plan: Plan) -> ModelPlan:
        """A model of one setting."""
        return cls((plan,), (1.0,))

    @classmethod
    def settled(
        cls,
        settings: Sequence[Setting],
        rows_pos: int,
        rows_unl: int,
        n_features: int,
        variance: Callable[[], float],
        positive_weights: PositiveWeights | None = None,
    ) -> ModelPlan:
        """Derive from the data what the settings leave open."""
        plans = [
            settle(setting.params, rows_pos, rows_unl, n_features, variance, positive_weights)
            for setting in settings
        ]
        return cls(tuple(plans), tuple(setting.weight for setting in settings))

    def with_weights(self, positive_weights: PositiveWeights | None) -> ModelPlan:
        """The plan of a manifest, which holds no more than a digest of the weights of P."""
        plans = [replace(plan, positive_weights=positive_weights) for plan in self.plans]
        return replace(self, plans=tuple(plans))

    @property
    def method(self) -> MethodName:
        return self.plans[0].method

    @property
    def seed(self) -> int:
        return self.plans[0].seed

    @property
    def rows_pos(self) -> int:
        return self.plans[0].rows_pos

    @property
    def rows_unl(self) -> int:
        return self.plans[0].rows_unl

    @property
    def single(self) -> bool:
        return self.method == "cwsvm"

    @property
    def n_models(self) -> int:
        return sum(plan.n_models for plan in self.plans)

    def runs(self) -> Iterator[tuple[Plan, range]]:
        """Each plan with the numbers of its members."""
        first = 0
        for plan in self.plans:
            yield plan, range(first, first + plan.n_models)
            first += plan.n_models

    def problems(self, members: range) -> list[Problem]:
        """The problems of these members."""
        found: list[Problem] = []
        for plan, own in self.runs():
            run = range(max(own.start, members.start), min(own.stop, members.stop))
            found += problems(plan, run)
        return found

    def groups(self) -> tuple[Group, ...]:
        """The members of each setting, not yet standardised."""
        return tuple(
            Group(plan.kernel, run, weight)
            for (plan, run), weight in zip(self.runs(), self.weights, strict=True)
        )

    def description(self, groups: Sequence[Group]) -> dict[str, Any]:
        """For the manifest: all that members are drawn and trained by, but for the data."""
        settings = []
        for plan, group in zip(self.plans, groups, strict=True):
            settings.append(
                {
                    "members": plan.n_models,
                    "weight": group.weight,
                    "shift": group.shift,
                    "scale": group.scale,
                    "kernel": plan.kernel.description(),
                    "parameters": plan.parameters(),
                    "solver": plan.solver,
                }
            )
        rule = self.plans[0].bags_rule
        return {"method": self.method, "seed": self.seed, "bags": rule, "groups": settings}

    @classmethod
    def from_description(
        cls, content: dict[str, Any], rows_pos: int, rows_unl: int
    ) -> tuple[ModelPlan, tuple[Group, ...]]:
        """From the manifest; ValueError where it makes no sense."""
        plans, groups = [], []
        first = 0
        for setting in content["groups"]:
            plan = Plan.from_description({**content, **setting}, rows_pos, rows_unl)
            if plan.n_models != setting["members"]:
                raise ValueError("members")
            numbers = [setting[name] for name in ("weight", "shift", "scale")]
            if not all(type(number) in (int, float) for number in numbers):
                raise ValueError("group")
            weight, shift, scale = map(float, numbers)
            if not (np.isfinite([weight, shift, scale]).all() and weight > 0 and scale > 0):
                raise ValueError("group")
            run = range(first, first + plan.n_models)
            groups.append(Group(plan.kernel, run, weight, shift, scale))
            plans.append(plan)
            first = run.stop
        kernels = {plan.kernel.name for plan in plans}
        if len(kernels) != 1 or first > MAX_MEMBERS:
            raise ValueError("groups")
        if plans[0].method == "cwsvm" and first != 1:
            raise ValueError("cwsvm has one member")
        return cls(tuple(plans), tuple(group.weight for group in groups)), tuple(groups)


def standardised(group: Group, shift: float, scale: float) -> Group:
    """The group with its mean value less the shift, by the scale, where that makes sense."""
    usable = bool(np.isfinite([shift, scale]).all()) and scale > 0
    return replace(group, shift=shift, scale=scale) if usable else group
