"""The plan of a model: one setting of all parameters, or several whose members are pooled.

Members are numbered consecutively across settings, and member i depends only on (seed, i), its
setting and the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from resvm_cli.errors import ParameterError
from resvm_cli.model.ensemble import Group
from resvm_cli.model.pu_data import PositiveWeights, PUData
from resvm_cli.model.setting_plan import BAG_RULE, WEIGHTED_RULE, Plan, problems, resolve_defaults
from resvm_cli.parameters import (
    FEATURE_KERNELS,
    MAX_MEMBERS,
    MethodName,
    MethodParameters,
    ScalingName,
    Setting,
)
from resvm_cli.records import dataclass
from resvm_cli.svm.problem import Problem


def require_negatives(params: MethodParameters, data: PUData) -> None:
    """Reject a weight for known negatives if there are none."""
    if params.w_neg is not None and not len(data.negatives):
        raise ParameterError("{w_neg} applies to known negatives, but there are none")


@dataclass(frozen=True)
class ModelPlan:
    """Plans with the same method, seed and data, each with a weight for its members' mean value."""

    plans: tuple[Plan, ...]
    weights: tuple[float, ...]

    @classmethod
    def from_plan(cls, plan: Plan) -> ModelPlan:
        """Return the plan of a model with one setting."""
        return cls((plan,), (1.0,))

    @classmethod
    def resolve(cls, settings: Sequence[Setting], data: PUData) -> ModelPlan:
        """Derive from the data all parameters that the settings leave unset."""
        plans = []
        for setting in settings:
            require_negatives(setting.params, data)
            scale = setting.scale or data.scale
            plans.append(
                resolve_defaults(
                    setting.params,
                    len(data.positives),
                    data.n_unlabeled,
                    data.n_features,
                    partial(data.variance, scale),
                    data.positive_weights,
                    scale,
                    len(data.negatives),
                )
            )
        return cls(tuple(plans), tuple(setting.weight for setting in settings))

    def with_cache(self, cache_mb: float) -> ModelPlan:
        """Return the plan with at most this much cache per solver; results are not affected."""
        plans = (replace(plan, cache_mb=min(plan.cache_mb, cache_mb)) for plan in self.plans)
        return replace(self, plans=tuple(plans))

    def with_weights(self, positive_weights: PositiveWeights | None) -> ModelPlan:
        """Return the plan with these weights of P; a manifest stores only their digest."""
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
    def rows_neg(self) -> int:
        return self.plans[0].rows_neg

    @property
    def scalings(self) -> tuple[ScalingName | None, ...]:
        """The distinct scalings of its members' rows."""
        return tuple(dict.fromkeys(plan.scale for plan in self.plans))

    @property
    def kernel_names(self) -> str:
        return " and ".join(dict.fromkeys(plan.kernel.name for plan in self.plans))

    @property
    def needs_format_3(self) -> bool:
        """Whether the plan cannot be described by a manifest of format 2."""
        kernels = {plan.kernel.name for plan in self.plans}
        return (
            max(len(self.scalings), len(kernels)) > 1
            or "quantile" in self.scalings
            or any(plan.relevance_power is not None for plan in self.plans)
            or self.rows_neg > 0
        )

    @property
    def single(self) -> bool:
        return self.method == "cwsvm"

    @property
    def n_models(self) -> int:
        return sum(plan.n_models for plan in self.plans)

    def runs(self) -> Iterator[tuple[Plan, range]]:
        first = 0
        for plan in self.plans:
            yield plan, range(first, first + plan.n_models)
            first += plan.n_models

    def problems(self, members: range) -> list[Problem]:
        found: list[Problem] = []
        for plan, own in self.runs():
            run = range(max(own.start, members.start), min(own.stop, members.stop))
            found += problems(plan, run)
        return found

    def groups(self) -> tuple[Group, ...]:
        """The members of each setting, not yet standardized."""
        return tuple(
            Group(plan.kernel, run, weight, scaling=plan.scale)
            for (plan, run), weight in zip(self.runs(), self.weights, strict=True)
        )

    def description(self, groups: Sequence[Group]) -> dict[str, Any]:
        """Describe everything that members depend on, except the data, for the manifest."""
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
                | ({"scaling": plan.scale} if self.needs_format_3 else {})
            )
        weighted = self.plans[0].positive_weights is not None
        rule = WEIGHTED_RULE if weighted else BAG_RULE
        return {"method": self.method, "seed": self.seed, "bags": rule, "groups": settings}

    @classmethod
    def from_description(cls, content: dict[str, Any]) -> tuple[ModelPlan, tuple[Group, ...]]:
        """Read from the manifest; raise ValueError if the content is invalid."""
        plans, groups = [], []
        first = 0
        for setting in content["groups"]:
            plan = Plan.from_description({**content, **setting})
            if plan.n_models != setting["members"]:
                raise ValueError("members")
            numbers = [setting[name] for name in ("weight", "shift", "scale")]
            if not all(type(number) in (int, float) for number in numbers):
                raise ValueError("group")
            weight, shift, scale = map(float, numbers)
            if not (np.isfinite([weight, shift, scale]).all() and weight > 0 and scale > 0):
                raise ValueError("group")
            run = range(first, first + plan.n_models)
            groups.append(Group(plan.kernel, run, weight, shift, scale, plan.scale))
            plans.append(plan)
            first = run.stop
        kernels = {plan.kernel.name for plan in plans}
        mixed = len(kernels) > 1 and bool(kernels - set(FEATURE_KERNELS))
        if not plans or mixed or first > MAX_MEMBERS:
            raise ValueError("groups")
        if plans[0].method == "cwsvm" and first != 1:
            raise ValueError("cwsvm has one member")
        return cls(tuple(plans), tuple(group.weight for group in groups)), tuple(groups)
