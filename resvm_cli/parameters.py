"""Every parameter of training, tuning and ranking, declared once: type, range, default, help.

The fields of ``Params``, ``TuningParameters`` and ``RankingParameters`` form the table. Options,
estimators, checks, messages and the reference page are generated from it. Nothing here imports
numpy, so ``--help`` stays fast.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from resvm_cli.errors import ParameterError
from resvm_cli.parameter_types import (
    check_values,
    choice,
    declared,
    fraction,
    integer,
    number,
    table,
)
from resvm_cli.records import dataclass

MethodName: TypeAlias = Literal["resvm", "bagging", "cwsvm"]
METHOD_NAMES: tuple[MethodName, ...] = get_args(MethodName)
KernelName: TypeAlias = Literal[
    "linear", "poly", "rbf", "sigmoid", "precomputed", "tanimoto", "minmax", "laplacian"
]
KERNEL_NAMES: tuple[KernelName, ...] = get_args(KernelName)
LIBSVM_KERNELS = KERNEL_NAMES[:5]  # in the order of LIBSVM's kernel numbers
FEATURE_KERNELS = (*KERNEL_NAMES[:4], "laplacian")  # rows hold feature values, which may be scaled
SolverName: TypeAlias = Literal["libsvm", "liblinear"]
SOLVER_NAMES: tuple[SolverName, ...] = get_args(SolverName)
RuleName: TypeAlias = Literal["votes", "mean"]
RULE_NAMES: tuple[RuleName, ...] = get_args(RuleName)
ScalingName: TypeAlias = Literal["minmax", "maxabs", "standard", "quantile"]
SCALING_NAMES: tuple[ScalingName, ...] = get_args(ScalingName)
ScaleChoice: TypeAlias = ScalingName | Literal["auto"]
SearchName: TypeAlias = Literal["informed", "grid", "random"]
SEARCH_NAMES: tuple[SearchName, ...] = get_args(SearchName)
MetricName: TypeAlias = Literal[
    "roc_areas",
    "partial_roc_auc",
    "roc_auc",
    "average_precision",
    "pu_score",
    "best_pu_score",
    "partial_roc_auc_of_mean",
    "roc_auc_of_mean",
]
METRIC_NAMES: tuple[MetricName, ...] = get_args(MetricName)

MAX_MEMBERS = 100_000
MAX_BAG_ROWS = 2**30  # LIBSVM counts the rows of a bag in an int
MAX_DEGREE = 1000
MAX_REASONS = 10_000
MAX_BATCH = 100_000
MAX_TRIALS = 100_000
NO_BIAS = -1.0  # LIBLINEAR's convention
RELEVANCE = "relevance"

# Headings of --help.
BASE_MODELS, ESTIMATE, SEARCH, RANKING = "Base models", "Estimate", "Search", "Ranking"
SEARCH_SPACE = "Search space: a number, a list 1,10 or a range 1..10[:log|:linear]"
ALL_OF_P = "bagging trains every member on all of P"
ONE_MODEL = "cwsvm trains one model on all of P and all of U"


@dataclass(frozen=True)
class Params:
    """What the user says about training, or one setting that a search found.

    None means that the value is derived from the data or searched.
    """

    method: MethodName = choice("resvm", METHOD_NAMES, "resvm, bagging or cwsvm.")
    n_models: int | None = integer(
        None, "Number of ensemble members.", low=1, high=MAX_MEMBERS,
        shown="15 per setting; 50 with `auto=False`", unused={"cwsvm": ONE_MODEL},
    )  # fmt: skip
    n_pos: int | None = integer(
        None, "Rows of P per bag.", low=1, high=MAX_BAG_ROWS, shown="|P|, clamped to 5..200",
        unused={"bagging": ALL_OF_P, "cwsvm": ONE_MODEL},
    )  # fmt: skip
    n_unl: int | None = integer(
        None, "Rows of U per bag.", low=1, high=MAX_BAG_ROWS, shown="twice `n_pos`, at most |U|/2",
        unused={"cwsvm": ONE_MODEL},
    )  # fmt: skip
    w_pos: float | None = number(
        None, "Weight of P relative to U, after correcting for class sizes.", positive=True,
        metavar="W", shown="0.7; 1 for cwsvm", unused={"bagging": "bagging fixes it at 1"},
    )  # fmt: skip
    w_neg: float | None = number(
        None, "Penalty for known negatives, relative to the penalty for rows of U.",
        positive=True, metavar="W", shown="1", shared=True,
    )  # fmt: skip
    c_unl: float = number(1.0, "Penalty C for rows of U.", positive=True, letter="c", metavar="C")
    c_pos: float | None = number(
        None, "cwsvm only: penalty C for rows of P, instead of `w_pos`.", positive=True,
        metavar="C", advanced=True,
        unused={
            "resvm": "resvm derives it from `c_unl` and `w_pos`",
            "bagging": "bagging derives it from `c_unl` and the bag sizes",
        },
    )  # fmt: skip
    kernel: KernelName = choice(
        "rbf", KERNEL_NAMES,
        "linear, poly, rbf, sigmoid, precomputed (rows are 0:serial 1:K(x,x1) ...) or LIBSVM's"
        " number (0 to 4); laplacian (like rbf, but with the sum of absolute differences); for"
        " fingerprints, tanimoto (bits) or minmax (counts).",
        letter="t", panel=BASE_MODELS, shared=True,
    )  # fmt: skip
    gamma: float | Literal["scale", "auto"] = number(
        "scale",
        "Kernel coefficient: a number, scale = 1/(features x variance), or auto = 1/features.",
        positive=True, choices=("scale", "auto"), letter="g", metavar="G", panel=BASE_MODELS,
    )  # fmt: skip
    degree: int = integer(
        3, "Degree of the poly kernel.", low=1, high=MAX_DEGREE, letter="d", metavar="D",
        panel=BASE_MODELS,
    )  # fmt: skip
    coef0: float = number(
        0.0, "Constant term of the poly and sigmoid kernels.", letter="r", metavar="R",
        panel=BASE_MODELS,
    )  # fmt: skip
    feature_weights: str = declared(
        "words", "none",
        "Weight each feature by how well it alone separates P from U in the bag: none, relevance,"
        " or relevance:N, which raises the weights to the power N.",
        choices=("none", RELEVANCE), metavar="NAME", panel=BASE_MODELS, shared=True,
    )  # fmt: skip
    solver: SolverName | Literal["auto"] = choice(
        "auto", ("auto", *SOLVER_NAMES),
        "auto, libsvm or liblinear. auto uses LIBLINEAR for linear members with bags of more than"
        " 5,000 rows. For all others, it gives the same model as libsvm, to the bit, in less time.",
        advanced=True,
    )  # fmt: skip
    bias: float | None = number(
        None, "Value of LIBLINEAR's bias feature; -1 for no bias.", positive=True, also=NO_BIAS,
        letter="B", metavar="B", shown="the mean row norm of the bag", advanced=True,
    )  # fmt: skip
    tolerance: float | None = number(
        None, "Stopping tolerance of the solver.", positive=True, letter="e", metavar="E",
        shown="0.001; 0.01 for LIBLINEAR", advanced=True,
    )  # fmt: skip
    seed: int = integer(
        0, "Random seed; the same seed and data give a byte-for-byte identical model.", low=0,
        panel="Running", shared=True,
    )  # fmt: skip

    params: Any = declared(
        "text", None,
        "Train with the parameters of a best.json written by resvm tune, or of a model, instead of"
        " searching. Explicit parameters take precedence.",
        metavar="FILE|DIR",
    )  # fmt: skip
    auto: bool = declared(
        "flag", True,
        "Do not search: fixed defaults, as in the paper, for all that is not set. Otherwise, about"
        " ten settings are scored out of bag and the best ones are pooled.",
    )  # fmt: skip
    decision: RuleName | None = choice(
        None, RULE_NAMES,
        "How decision values are computed: mean (the members' mean value, which ranks better) or"
        " votes (as in the paper).",
        metavar="RULE", shown="mean; votes with `auto=False`",
    )  # fmt: skip
    scale: ScaleChoice | Literal["none"] | None = choice(
        None, ("none", *SCALING_NAMES, "auto"),
        "none, minmax, maxabs, standard, quantile (each value's rank), or auto (what resvm check"
        " advises, if out-of-bag scores confirm it). The scaling is learned from P and U and"
        " applied by predict.",
        panel="Data", shown="auto; none with `auto=False`",
    )  # fmt: skip
    # Not in the table:
    said: frozenset[str] = frozenset()  # what the user set, which a search keeps
    weight: float = 1.0  # of the mean of this setting's members
    settings: tuple[Params, ...] = ()  # to be pooled: those of a file, or those that a search chose
    candidates: tuple[dict[str, Any], ...] = ()  # what a search scored

    @property
    def relevance_power(self) -> float | None:
        """The power of the feature weights; None if features are not weighted."""
        name, _, power = self.feature_weights.partition(":")
        return None if name == "none" else float(power or 1.0)

    @property
    def searched(self) -> bool:
        """Whether a search chooses what the user left open."""
        return self.auto and not self.settings and self.method == "resvm"

    @property
    def rule(self) -> RuleName:
        if self.decision is not None:
            return self.decision
        return "mean" if self.auto and self.method != "cwsvm" else "votes"

    @property
    def data_scale(self) -> ScaleChoice | None:
        """How all data is scaled."""
        scale = self.scale or ("auto" if self.auto and not self.settings else "none")
        return None if scale == "none" else scale

    def check(self) -> None:
        """Reject values that cannot work or would be silently ignored, before any file is read."""
        for setting in self.settings:
            setting.check()
        check_values(self, TABLE)
        for name, parameter in METHOD_TABLE.items():
            if self.method in parameter.unused and getattr(self, name) is not None:
                raise ParameterError(
                    f"`{name}` does not apply to `method={self.method!r}`:"
                    f" {parameter.unused[self.method]}",
                    f"leave `{name}` out, or choose another `method`",
                )
        if self.solver == "liblinear" and self.kernel != "linear":
            raise ParameterError(
                f"`solver='liblinear'` trains only linear members, but `kernel` is {self.kernel}",
                "set `kernel='linear'`, or leave `solver` out",
            )
        if self.bias is not None and (self.kernel != "linear" or self.solver == "libsvm"):
            raise ParameterError(
                "`bias` applies to LIBLINEAR only; LIBSVM does not penalize the bias",
                "leave `bias` out, or set `kernel='linear'` and `solver='liblinear'`",
            )
        if self.relevance_power is not None and self.kernel not in FEATURE_KERNELS:
            raise ParameterError(
                f"`feature_weights` does not apply to `kernel={self.kernel!r}`, which needs"
                " unscaled values",
                "leave `feature_weights` out, or choose another `kernel`",
            )
        if self.c_pos is not None and self.w_pos is not None:
            raise ParameterError("give either `c_pos` or `w_pos`, not both")
        if self.method == "cwsvm" and self.decision == "mean":
            raise ParameterError("`decision='mean'` does not apply to cwsvm, which has one member")


@dataclass(frozen=True, kw_only=True)
class TuningParameters:
    """How candidates are found and scored; None: the default depends on other parameters."""

    metric: MetricName = choice(
        "roc_areas", METRIC_NAMES,
        "roc_areas (the mean of four ROC AUCs: full and partial, by votes and by mean value),"
        " partial_roc_auc, roc_auc (both also with the suffix _of_mean), average_precision,"
        " pu_score (as in the paper) or best_pu_score.",
        shown="roc_areas; roc_auc_of_mean with `search='informed'`", panel=ESTIMATE,
    )  # fmt: skip
    folds: int = integer(
        10,
        "Score by cross-validation with N folds instead of out of bag.",
        low=2,
        letter="v",
        panel=ESTIMATE,
    )
    search: SearchName = choice(
        "random", SEARCH_NAMES,
        "informed (settings that work well on most data), random or grid.",
        shown="informed if candidates are scored out of bag and no ranges are given, else random",
        panel=SEARCH,
    )  # fmt: skip
    committee: int = integer(
        1, "Pool the K best settings.", low=1, metavar="K",
        shown="6 with `search='informed'`, else 1", panel=SEARCH,
    )  # fmt: skip
    trials: int = integer(
        100,
        "Number of candidates that a random search draws.",
        low=1,
        high=MAX_TRIALS,
        panel=SEARCH,
    )
    no_extend: bool = declared(
        "flag", False,
        "Only warn if the best value is at the edge of a range, instead of extending the range.",
        advanced=True,
    )  # fmt: skip
    n_models: int | None = integer(
        None, "Number of members.", low=1, high=MAX_MEMBERS,
        shown="50; in a committee, 15 per setting",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RankingParameters:
    """Which rows a ranking lists, and what it reports about each."""

    audit: bool = declared(
        "flag", False, "List the known positives instead of rows of U, most suspicious first.",
        panel=RANKING,
    )  # fmt: skip
    contamination_pos: float | None = fraction(
        "Fraction of P that is negative.", "A", shown="estimated", panel=RANKING
    )
    contamination_unl: float | None = fraction(
        "Fraction of U that is positive.", "B", shown="estimated", panel=RANKING
    )
    fdr: float | None = number(
        None,
        "Write the longest list whose expected false discovery rate is at most Q. The fraction of U"
        " that is positive or tested rows must be given, or known negatives, which calibrate the"
        " rate if they are a random sample of the negatives in U.",
        positive=True, below=1, metavar="Q", panel=RANKING,
    )  # fmt: skip
    top: int | None = integer(None, "Write only the top N rows.", low=1, letter="k", panel=RANKING)
    next: int | None = integer(
        None,
        "Write the N rows to test next: the top rows, without near-duplicates and with one row per"
        " group.",
        low=1, high=MAX_BATCH, panel=RANKING,
    )  # fmt: skip
    why: int | None = integer(
        None,
        "For the top N rows, show which known positives support them and which rows of U count"
        " against them (linear members: which features do).",
        low=1, high=MAX_REASONS, panel=RANKING,
    )  # fmt: skip

    # Not in the table:
    tested: str | None = None  # a file of outcomes of rows of U
    feature_map: str | None = None  # a file with names of features, for why
    annotate: str | None = None  # where to write the table with its ranks
    page: bool = False  # compute what the HTML page shows
    show: tuple[str, ...] = ()  # columns of the input on the page; by default, chosen
    importance: bool = False  # of the features; omitted if it cannot be computed

    def check(self) -> None:
        """Reject combinations that are invalid for any data."""
        check_values(self, RANKING_TABLE)
        lengths = [name for name in ("fdr", "top", "next") if getattr(self, name) is not None]
        if len(lengths) > 1:
            first, second = lengths[:2]
            raise ParameterError(
                f"`{first}` and `{second}` both set the length of the list: choose one"
            )
        for name in ("fdr", "next"):
            if name in lengths and self.audit:
                raise ParameterError(
                    f"`{name}` selects rows of U, but `audit=True` lists known positives"
                )
        if self.feature_map is not None and self.why is None:
            raise ParameterError("`feature_map` requires `why`, which prints feature names")
        check_contamination(self.contamination_pos, self.contamination_unl)


def check_contamination(of_pos: float | None, of_unl: float | None) -> None:
    """Reject fractions that are out of range, or that leave P no richer in positives than U."""
    for name, value in (("contamination_pos", of_pos), ("contamination_unl", of_unl)):
        if value is not None:
            RANKING_TABLE[name].convert(value)
    if (of_pos or 0.0) + (of_unl or 0.0) >= 1:
        raise ParameterError(
            "`contamination_pos` and `contamination_unl` add up to 1 or more: P would be no"
            " richer in positives than U"
        )


TABLE = table(Params)
TRAINING_TABLE = {name: TABLE[name] for name in ("params", "auto", "decision", "scale")}
METHOD_TABLE = {name: row for name, row in TABLE.items() if name not in TRAINING_TABLE}
RANKING_TABLE = table(RankingParameters)
TUNING_TABLE = table(TuningParameters)
# Parameters chosen by tuning and stored in best.json.
TUNED_NAMES = tuple(
    name
    for name, parameter in METHOD_TABLE.items()
    if parameter.kind in ("integer", "number")
    and not parameter.shared
    and name not in ("c_pos", "bias", "tolerance")
)
SHARED_NAMES = tuple(name for name, parameter in METHOD_TABLE.items() if parameter.shared)
# Parameters that tune searches: method parameters, and unl_per_pos, which only tune has.
RANGE_HELP = {
    "c_unl": METHOD_TABLE["c_unl"].help,
    "w_pos": METHOD_TABLE["w_pos"].help,
    "n_pos": METHOD_TABLE["n_pos"].help,
    "unl_per_pos": "Rows of U per row of P in a bag (bagging: relative to all of P).",
    "gamma": "gamma of the rbf, laplacian, poly and sigmoid kernels.",
    "degree": METHOD_TABLE["degree"].help,
    "coef0": METHOD_TABLE["coef0"].help,
}
