"""Options that several commands share, each declared once, and how their text becomes values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from resvm_cli.errors import CommandLineError

if TYPE_CHECKING:
    from resvm_cli.ensemble.params import ResvmParams

DATA = "Data"
METHOD = "Method"
BASE_MODELS = "Base models"
OUTPUT = "Output"
RUNNING = "Running"

Positives = Annotated[
    str | None,
    typer.Option(
        "-P",
        "--positives",
        metavar="FILE",
        help="Known positives (svmlight; - is stdin).",
        rich_help_panel=DATA,
    ),
]
Unlabeled = Annotated[
    str | None,
    typer.Option("-U", "--unlabeled", metavar="FILE", help="Unlabeled rows.", rich_help_panel=DATA),
]
Data = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="One labelled file instead of -P and -U.", rich_help_panel=DATA
    ),
]
PositiveLabel = Annotated[
    float | None,
    typer.Option(
        metavar="LABEL",
        help="With --data: rows of this label are P, all others U.",
        rich_help_panel=DATA,
    ),
]
PositiveIds = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="With --data: rows whose ids are listed here, one a line, are P, all others U.",
        rich_help_panel=DATA,
    ),
]
IdsFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The ids of all rows in their order, one a line.",
        show_default="their trailing comments, # name",
        rich_help_panel=DATA,
    ),
]
AllowMissing = Annotated[
    bool,
    typer.Option(
        "--allow-missing",
        help="Go on where ids of --positive-ids are not in the data.",
        rich_help_panel=DATA,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|qid",
        help="Rows of one group are never split between a bag and the rows it judges:"
        " a name a row, or the data's qid:.",
        rich_help_panel=DATA,
    ),
]
ZeroBased = Annotated[
    bool,
    typer.Option("--zero-based", help="The files count features from 0.", rich_help_panel=DATA),
]
Features = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="How many features there are.",
        show_default="the largest index",
        rich_help_panel=DATA,
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="none, minmax, maxabs or standard; learned from P and U, applied by predict.",
        rich_help_panel=DATA,
    ),
]
NoCheck = Annotated[
    bool,
    typer.Option(
        "--no-check",
        help="Count the lines of U without reading them: for files known to be sound.",
        rich_help_panel=DATA,
    ),
]
Method = Annotated[
    str,
    typer.Option(metavar="NAME", help="resvm, bagging or cwsvm.", rich_help_panel=METHOD),
]
NModels = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Members of the ensemble.", show_default="50", rich_help_panel=METHOD
    ),
]
NPos = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Rows of P in a bag.",
        show_default="|P|/5, from 5 to 200",
        rich_help_panel=METHOD,
    ),
]
NUnl = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Rows of U in a bag.", show_default="5 n-pos", rich_help_panel=METHOD
    ),
]
WPos = Annotated[
    float | None,
    typer.Option(
        metavar="W",
        rich_help_panel=METHOD,
        help="Weight of P against U once class sizes are evened out.",
        show_default="1",
    ),
]
CUnl = Annotated[
    float,
    typer.Option(
        "-c", "--c-unl", metavar="C", help="Penalty of rows of U.", rich_help_panel=METHOD
    ),
]
CPos = Annotated[
    float | None,
    typer.Option(
        metavar="C", help="cwsvm: penalty of rows of P, instead of --w-pos.", rich_help_panel=METHOD
    ),
]
KernelChoice = Annotated[
    str,
    typer.Option(
        "-t",
        "--kernel",
        metavar="NAME",
        rich_help_panel=BASE_MODELS,
        help="linear, poly, rbf or sigmoid, or LIBSVM's number 0 to 3.",
    ),
]
Solver = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="auto, libsvm or liblinear; auto takes LIBLINEAR for linear bags above 5,000 rows.",
        rich_help_panel=BASE_MODELS,
    ),
]
Bias = Annotated[
    float | None,
    typer.Option(
        "-B",
        "--bias",
        metavar="B",
        help="LIBLINEAR's bias feature.",
        show_default="mean row norm of the bag",
        rich_help_panel=BASE_MODELS,
    ),
]
Gamma = Annotated[
    str,
    typer.Option(
        "-g",
        "--gamma",
        metavar="G",
        rich_help_panel=BASE_MODELS,
        help="A number, scale = 1/(features x variance), or auto = 1/features.",
    ),
]
Degree = Annotated[
    int,
    typer.Option(
        "-d", "--degree", metavar="D", help="Degree of poly.", rich_help_panel=BASE_MODELS
    ),
]
Coef0 = Annotated[
    float,
    typer.Option(
        "-r", "--coef0", metavar="R", help="coef0 of poly and sigmoid.", rich_help_panel=BASE_MODELS
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "-e",
        "--tolerance",
        metavar="E",
        help="When the solver stops.",
        show_default="0.001; LIBLINEAR 0.01",
        rich_help_panel=BASE_MODELS,
    ),
]
CacheMb = Annotated[
    float,
    typer.Option(
        "-m",
        "--cache-mb",
        metavar="MB",
        help="LIBSVM's kernel cache, for each job.",
        rich_help_panel=BASE_MODELS,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Same seed, same data: the same model, byte for byte.",
        rich_help_panel=RUNNING,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j",
        "--jobs",
        metavar="N",
        min=1,
        rich_help_panel=RUNNING,
        help="Threads; changes no result.",
        show_default="by the work",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "-q", "--quiet", help="No progress, no summary; errors only.", rich_help_panel=RUNNING
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="The result as JSON on stdout.", rich_help_panel=OUTPUT),
]

Params = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Parameters that resvm tune chose (best.json); options given here win.",
        rich_help_panel=METHOD,
    ),
]
Auto = Annotated[
    bool,
    typer.Option(
        "--auto",
        help="Tune out of bag first (seconds); options given here stay as they are.",
        rich_help_panel=METHOD,
    ),
]

_KERNELS = {
    "linear": "linear",
    "poly": "poly",
    "polynomial": "poly",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "0": "linear",
    "1": "poly",
    "2": "rbf",
    "3": "sigmoid",
}


def parse_kernel(text: str) -> Literal["linear", "poly", "rbf", "sigmoid"]:
    """A kernel by name or by LIBSVM's number."""
    name = _KERNELS.get(text.lower())
    if name is None:
        raise CommandLineError(
            f"-t/--kernel is '{text}'; linear, poly, rbf, sigmoid or 0 to 3 was expected"
        )
    return name  # type: ignore[return-value]


def parse_method(text: str) -> Literal["resvm", "bagging", "cwsvm"]:
    """A method by name."""
    if text not in ("resvm", "bagging", "cwsvm"):
        raise CommandLineError(f"--method is '{text}'; resvm, bagging or cwsvm was expected")
    return text  # type: ignore[return-value]


def parse_solver(text: str) -> Literal["auto", "libsvm", "liblinear"]:
    """A solver by name."""
    if text not in ("auto", "libsvm", "liblinear"):
        raise CommandLineError(f"--solver is '{text}'; auto, libsvm or liblinear was expected")
    return text  # type: ignore[return-value]


def parse_scale(text: str) -> Literal["minmax", "maxabs", "standard"] | None:
    """A scaling by name, None for none."""
    if text not in ("none", "minmax", "maxabs", "standard"):
        raise CommandLineError(
            f"--scale is '{text}'; none, minmax, maxabs or standard was expected"
        )
    return None if text == "none" else text  # type: ignore[return-value]


def parse_gamma(text: str) -> float | Literal["scale", "auto"]:
    """A number or the name of a rule."""
    if text == "scale" or text == "auto":
        return text  # type: ignore[return-value]
    return parse_number("-g/--gamma", text, "a number, scale or auto")


def parse_number(option: str, text: str, expected: str = "a number") -> float:
    """A decimal from the command line."""
    try:
        number = float(text)
        if number != number:
            raise ValueError
        return number
    except ValueError:
        raise CommandLineError(f"{option} is '{text}'; {expected} was expected") from None


def require_one_of(option: str, text: str, names: Sequence[str]) -> None:
    """Refuse a name that is not among these."""
    if text not in names:
        raise CommandLineError(f"{option} is '{text}'; {', '.join(names)} was expected")


def explicit(context: typer.Context) -> set[str]:
    """The parameters that the user gave, and did not leave at their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name != "DEFAULT"}


def asked_params(
    said: set[str],
    params: str | None,
    scale: str,
    *,
    method: str,
    kernel: str,
    gamma: str,
    solver: str,
    **others: Any,
) -> tuple[ResvmParams, str]:
    """The options of training folded into one, and the scaling: of a --params file where not said.

    What was said on the command line wins over the file.
    """
    from resvm_cli.ensemble.params import ResvmParams

    asked = ResvmParams(
        method=parse_method(method),
        kernel=parse_kernel(kernel),
        gamma=parse_gamma(gamma),
        solver=parse_solver(solver),
        **others,
    )
    if params is not None:
        if "auto" in said:
            raise CommandLineError("--auto and --params exclude each other")
        from resvm_cli.jobs.params_file import load_params, merged

        chosen = load_params(params, method if "method" in said else None)
        asked = merged(asked, chosen, said)
        if "scale" not in said:
            scale = chosen["scale"]
    return asked, scale
