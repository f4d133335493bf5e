"""How candidates are found and judged, whatever the data is and wherever the results go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from resvm_cli.errors import CommandLineError
from resvm_cli.parameters import MAX_MEMBERS, MethodName, MethodParameters, MetricName, SearchName
from resvm_cli.tuning.committee import KEPT, QUICK_GRAM_MB, QUICK_MAX_UNL
from resvm_cli.tuning.criteria import DEFAULT_METRIC, DEFAULT_UP_TO
from resvm_cli.tuning.search import Settings
from resvm_cli.tuning.space import Axis

USUAL_MEMBERS = 50
MAX_UNL = 5000  # rows of U that candidates are judged on
GRAM_MB = 1024.0  # for kernel matrices that they share
SCREENING_MEMBERS = 10  # of an informed candidate while it is judged


@dataclass(frozen=True, kw_only=True)
class TuningSettings:
    """How candidates are found and judged."""

    methods: tuple[MethodName, ...] = ("resvm",)
    base: MethodParameters = field(
        default_factory=MethodParameters
    )  # what candidates have in common
    axes: tuple[Axis, ...] = ()
    metric: MetricName = DEFAULT_METRIC
    up_to: float = DEFAULT_UP_TO
    out_of_bag: bool = False
    n_folds: int = 10
    repeats: int = 1
    strategy: SearchName = "random"
    committee: int = 1  # so many of the best are pooled
    trials: int = 100
    n_models: int | Literal["auto"] | None = None  # of the model in all; None: as is usual
    max_extensions: int = 3
    outer: int = 0
    contamination_pos: float | None = None
    contamination_unl: float | None = None
    max_unl: int = MAX_UNL
    gram_mb: float = GRAM_MB

    @property
    def search(self) -> Settings:
        n_models = self.n_models if isinstance(self.n_models, int) else USUAL_MEMBERS
        if self.strategy == "informed":
            n_models = min(n_models, SCREENING_MEMBERS)
        return Settings(self.strategy, self.trials, n_models, self.max_extensions, self.base.seed)

    def check(self) -> None:
        """Refuse what cannot work, before any file is read."""
        self.base.check()
        if self.out_of_bag and set(self.methods) != {"resvm"}:
            raise CommandLineError(
                "--oob judges resvm only: bagging and cwsvm hold every known positive in every bag",
                "leave --oob out to judge by folds",
            )
        if self.out_of_bag and (self.repeats > 1):
            raise CommandLineError("--repeats goes with folds, not with --oob")
        if self.strategy == "informed" and set(self.methods) != {"resvm"}:
            raise CommandLineError(
                "--search informed knows settings of resvm only",
                "use --search random, grid or halving",
            )
        if isinstance(self.n_models, int) and not 1 <= self.n_models <= MAX_MEMBERS:
            raise CommandLineError(
                f"--n-models is {self.n_models}; it must be at least 1 and at most {MAX_MEMBERS:,}"
            )
        if self.committee < 1:
            raise CommandLineError(f"--committee is {self.committee}; at least 1 was expected")
        if self.committee > 1 and self.n_models == "auto":
            raise CommandLineError("--committee and --n-models auto exclude each other")
        if self.n_models == "auto" and "resvm" not in self.methods:
            raise CommandLineError(
                "--n-models auto grows by out-of-bag values, which only --method resvm has"
            )
        for name, share in (
            ("--contamination-pos", self.contamination_pos),
            ("--contamination-unl", self.contamination_unl),
        ):
            if share is not None and not 0 <= share < 1:
                raise CommandLineError(f"{name} is {share:g}; a share from 0 to below 1 is meant")
        if not 0 < self.up_to <= 1:
            raise CommandLineError(f"--up-to is {self.up_to:g}; above 0 and up to 1 was expected")
        if self.outer == 1 or self.outer < 0:
            raise CommandLineError(f"--outer is {self.outer}; at least 2 folds were expected")


def usual_search(
    methods: tuple[MethodName, ...],
    *,
    by_folds: bool,
    narrowed: bool,
    oob: bool = False,
    search: SearchName | None = None,
    committee: int | None = None,
    n_models: int | Literal["auto"] | None = None,
    max_unl: int | None = None,
    gram_mb: float | None = None,
) -> dict[str, Any]:
    """The settings of a search with what was left open filled in.

    ``by_folds``: folds were asked for. ``narrowed``: so were ranges, trials or members, which the
    informed settings know nothing of.
    """
    out_of_bag = oob or (methods == ("resvm",) and not by_folds)
    strategy = search or ("informed" if out_of_bag and not narrowed else "random")
    informed = strategy == "informed"
    if max_unl is None:
        max_unl = QUICK_MAX_UNL if informed else MAX_UNL
    if gram_mb is None:
        gram_mb = QUICK_GRAM_MB if informed else GRAM_MB
    return {
        "methods": methods,
        "out_of_bag": out_of_bag,
        "strategy": strategy,
        "committee": committee or (KEPT if informed else 1),
        "n_models": n_models,
        "max_unl": max_unl,
        "gram_mb": gram_mb,
    }
