"""What is trained: the method, its bags and penalties, and its base models."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import option_family
from resvm_cli.options.values import offered, parse_choice, parse_gamma, parse_kernel

if TYPE_CHECKING:
    from resvm_cli.training.choice import TrainingChoice

method_option = partial(typer.Option, rich_help_panel="Method")
base_model_option = partial(typer.Option, rich_help_panel="Base models")

CHOOSERS = ("params", "auto", "decision")  # options that are no parameters, but choose them

Kernel = Annotated[
    str,
    base_model_option(
        "-t",
        "--kernel",
        metavar="NAME",
        autocompletion=offered(
            "linear", "poly", "rbf", "sigmoid", "precomputed", "tanimoto", "minmax"
        ),
        help="linear, poly, rbf, sigmoid or precomputed (rows are 0:serial 1:K(x,x1) ...), or"
        " LIBSVM's number 0 to 4; for fingerprints tanimoto (bits) or minmax (counts).",
    ),
]
Tolerance = Annotated[
    float | None,
    base_model_option(
        "-e",
        "--tolerance",
        metavar="E",
        help="When the solver stops.",
        show_default="0.001; LIBLINEAR 0.01",
    ),
]
CacheMb = Annotated[
    float,
    base_model_option(
        "-m", "--cache-mb", metavar="MB", help="LIBSVM's kernel cache, for each job."
    ),
]


@option_family
class MethodOptions:
    """The parameters of an ensemble, each named as in MethodParameters, and who else may choose them."""

    params: Annotated[
        str | None,
        method_option(
            metavar="FILE",
            help="Parameters that resvm tune chose (best.json); options given here win.",
        ),
    ] = None
    auto: Annotated[
        str | None,
        method_option(
            "--auto",
            metavar="[single]",
            autocompletion=offered("single", "committee"),
            help="Judge settings out of bag first (seconds) and pool the best of them, or take the"
            " single best; options given here stay as they are.",
        ),
    ] = None
    decision: Annotated[
        str | None,
        method_option(
            metavar="RULE",
            autocompletion=offered("votes", "mean"),
            help="Decision values: votes (the paper's) or mean (the members' mean value, which"
            " ranks better).",
            show_default="votes; with --auto, and of rank, mean",
        ),
    ] = None
    method: Annotated[
        str,
        method_option(
            metavar="NAME",
            autocompletion=offered("resvm", "bagging", "cwsvm"),
            help="resvm, bagging or cwsvm.",
        ),
    ] = "resvm"
    n_models: Annotated[
        int | None,
        method_option(
            metavar="N",
            help="Members of the ensemble.",
            show_default="50; with --auto 20 for each setting more",
        ),
    ] = None
    n_pos: Annotated[
        int | None,
        method_option(metavar="N", help="Rows of P in a bag.", show_default="|P|, from 5 to 200"),
    ] = None
    n_unl: Annotated[
        int | None,
        method_option(
            metavar="N", help="Rows of U in a bag.", show_default="2 n-pos, |U|/2 at most"
        ),
    ] = None
    w_pos: Annotated[
        float | None,
        method_option(
            metavar="W",
            help="Weight of P against U once class sizes are evened out.",
            show_default="0.7; cwsvm 1",
        ),
    ] = None
    c_unl: Annotated[
        float, method_option("-c", "--c-unl", metavar="C", help="Penalty of rows of U.")
    ] = 1.0
    c_pos: Annotated[
        float | None,
        method_option(metavar="C", help="cwsvm: penalty of rows of P, instead of --w-pos."),
    ] = None
    kernel: Kernel = "rbf"
    gamma: Annotated[
        str,
        base_model_option(
            "-g",
            "--gamma",
            metavar="G",
            autocompletion=offered("scale", "auto"),
            help="A number, scale = 1/(features x variance), or auto = 1/features.",
        ),
    ] = "scale"
    degree: Annotated[
        int, base_model_option("-d", "--degree", metavar="D", help="Degree of poly.")
    ] = 3
    coef0: Annotated[
        float, base_model_option("-r", "--coef0", metavar="R", help="coef0 of poly and sigmoid.")
    ] = 0.0
    solver: Annotated[
        str,
        base_model_option(
            metavar="NAME",
            autocompletion=offered("auto", "libsvm", "liblinear"),
            help="auto, libsvm or liblinear; auto takes LIBLINEAR for linear bags above"
            " 5,000 rows.",
        ),
    ] = "auto"
    bias: Annotated[
        float | None,
        base_model_option(
            "-B",
            "--bias",
            metavar="B",
            help="LIBLINEAR's bias feature; -1 for none.",
            show_default="mean row norm of the bag",
        ),
    ] = None
    tolerance: Tolerance = None
    cache_mb: CacheMb = 100.0

    def choose(
        self, explicit: Collection[str], *, scale: str, seed: int
    ) -> tuple[TrainingChoice, str]:
        """What to train, and the scaling.

        What a --params file says stands where the command line is not explicit.
        """
        from resvm_cli.parameters import AUTO_NAMES, METHOD_NAMES, RULE_NAMES, MethodParameters
        from resvm_cli.training.choice import TrainingChoice

        values = {name: value for name, value in vars(self).items() if name not in CHOOSERS}
        values |= {
            "method": parse_choice("--method", self.method, METHOD_NAMES),
            "kernel": parse_kernel(self.kernel),
            "gamma": parse_gamma(self.gamma),
            "solver": parse_choice("--solver", self.solver, ("auto", "libsvm", "liblinear")),
        }
        params = MethodParameters(**values, seed=seed)
        decision = None
        if self.decision is not None:
            decision = parse_choice("--decision", self.decision, RULE_NAMES)
        if self.params is None:
            if self.auto is None:
                return TrainingChoice.from_params(params, decision=decision), scale
            choice = TrainingChoice.from_params(
                params,
                decision=decision,
                auto=parse_choice("--auto", self.auto, AUTO_NAMES),
                kept=tuple(sorted(explicit)),
            )
            return choice, scale if "scale" in explicit else "auto"
        if self.auto is not None:
            raise CommandLineError("--auto and --params exclude each other")
        from resvm_cli.training.best_json import load_params, merged

        stored = load_params(self.params, self.method if "method" in explicit else None)
        settings = tuple(merged(params, stored, explicit))
        choice = TrainingChoice(settings, decision or stored.get("decision"))
        return choice, scale if "scale" in explicit else stored["scale"]
