"""resvm tune."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.array_tasks import Task, parse_task
from resvm_cli.options.data import DataOptions, Groups, data_option
from resvm_cli.options.method import CacheMb, Kernel, Tolerance, method_option
from resvm_cli.options.option_groups import explicit_options, fold_options, option_family
from resvm_cli.options.running import (
    ClusterOptions,
    Json,
    Seed,
    TrainingRunOptions,
    output_option,
    running_option,
)
from resvm_cli.options.values import offered, parse_choice, parse_kernel
from resvm_cli.running import interruption

if TYPE_CHECKING:
    from resvm_cli.parameters import MethodName, SearchName
    from resvm_cli.tuning.space import Axis

space_option = partial(
    typer.Option,
    rich_help_panel="Search space: a number, a list 1,10 or a range 1..10[:log|:linear]",
)
estimate_option = partial(typer.Option, rich_help_panel="Estimate")
search_option = partial(typer.Option, rich_help_panel="Search")


def _axis_option(text: str, *names: str) -> Any:
    return space_option(*names, metavar="RANGE", help=text, show_default=False)


@option_family
class SpaceOptions:
    """Which values are tried: axes, named as in tuning's space, and what narrows them."""

    c_unl: Annotated[str | None, _axis_option("Penalty of rows of U.", "-c", "--c-unl")] = None
    w_pos: Annotated[str | None, _axis_option("Weight of P against U.")] = None
    n_pos: Annotated[str | None, _axis_option("Rows of P in a bag.")] = None
    unl_per_pos: Annotated[
        str | None, _axis_option("Rows of U in a bag for each of P (bagging: of all P).")
    ] = None
    gamma: Annotated[str | None, _axis_option("Of rbf, poly and sigmoid.", "-g", "--gamma")] = None
    degree: Annotated[str | None, _axis_option("Of poly.", "-d", "--degree")] = None
    coef0: Annotated[str | None, _axis_option("Of poly and sigmoid.", "-r", "--coef0")] = None
    contamination_pos: Annotated[
        float | None,
        space_option(
            metavar="A", help="Share of P believed to be wrong: narrows the default ranges."
        ),
    ] = None
    contamination_unl: Annotated[
        float | None,
        space_option(
            metavar="B", help="Share of U believed to be positive: narrows the default ranges."
        ),
    ] = None

    def axes(self) -> tuple[Axis, ...]:
        """The axes that the user gave; the others follow from the data."""
        from resvm_cli.tuning.space import AXIS_NAMES, parse_axis

        texts = {name: getattr(self, name) for name in AXIS_NAMES}
        return tuple(parse_axis(name, text) for name, text in texts.items() if text is not None)


@option_family
class EstimateOptions:
    """How a candidate is judged."""

    metric: Annotated[
        str,
        estimate_option(
            metavar="NAME",
            autocompletion=offered(
                *("roc_areas", "partial_roc_auc", "roc_auc", "average_precision", "pu_score"),
                *("pu_score_pooled", "best_pu_score", "partial_roc_auc_of_mean"),
                *("roc_auc_of_mean", "average_precision_of_mean", "best_pu_score_of_mean"),
            ),
            help="roc_areas (the mean of whole and partial areas, of votes and of means),"
            " partial_roc_auc, roc_auc, average_precision, best_pu_score (each also with"
            " _of_mean), pu_score (the paper's) or pu_score_pooled.",
        ),
    ] = "roc_areas"
    up_to: Annotated[
        float, estimate_option(metavar="F", help="The fraction of U that partial_roc_auc looks at.")
    ] = 0.2
    oob: Annotated[
        bool,
        estimate_option(
            "--oob",
            help="Judge out of bag: ten times cheaper than ten folds (resvm only).",
            show_default="unless folds are asked for",
        ),
    ] = False
    folds: Annotated[
        int, estimate_option("-v", "--folds", metavar="N", min=2, help="Judge by so many folds.")
    ] = 10
    repeats: Annotated[
        int, estimate_option(metavar="N", min=1, help="Repeat with other folds.")
    ] = 1
    folds_file: Annotated[
        str | None,
        estimate_option(metavar="FILE", help="Your own folds: a name a row, of P and then U."),
    ] = None
    outer: Annotated[
        int,
        estimate_option(
            metavar="N",
            help="An honest estimate: repeat the search without each of N outer folds.",
            show_default="none",
        ),
    ] = 0


@option_family
class SearchOptions:
    """How candidates are proposed."""

    search: Annotated[
        str | None,
        search_option(
            metavar="NAME",
            autocompletion=offered("informed", "random", "grid", "halving"),
            help="informed (settings that do well on most data), random, grid or halving.",
            show_default="informed out of bag without ranges, else random",
        ),
    ] = None
    committee: Annotated[
        int | None,
        search_option(
            metavar="K", min=1, help="Pool the K best settings.", show_default="informed 4, else 1"
        ),
    ] = None
    trials: Annotated[
        int, search_option(metavar="N", min=1, help="Candidates of random and halving.")
    ] = 100
    max_extensions: Annotated[
        int,
        search_option(metavar="N", min=0, help="How often ranges whose edge wins are extended."),
    ] = 3
    no_extend: Annotated[bool, search_option("--no-extend", help="Only warn of edges.")] = False

    def strategy(self) -> SearchName | None:
        """How the user wants to search, where that was said."""
        from resvm_cli.parameters import SEARCH_NAMES

        if self.search is None:
            return None
        return parse_choice("--search", self.search, SEARCH_NAMES)


@fold_options
def tune(
    context: typer.Context,
    *,
    output: Annotated[
        str, output_option("-o", "--output", metavar="DIR", help="Where trials and best.json go.")
    ] = "resvm-tuning",
    data: DataOptions,
    groups: Groups = None,
    max_unl: Annotated[
        int | None,
        data_option(
            metavar="N",
            min=10,
            help="Judge on at most so many rows of U, drawn at random.",
            show_default="5000; informed 1500",
        ),
    ] = None,
    method: Annotated[
        str,
        method_option(
            metavar="NAME",
            autocompletion=offered("resvm", "bagging", "cwsvm", "all"),
            help="resvm, bagging, cwsvm, or all three on the same folds.",
        ),
    ] = "resvm",
    n_models: Annotated[
        str | None,
        method_option(
            metavar="N|auto",
            help="Members; auto grows the winner until halves of it agree.",
            show_default="50; of a committee 20 for each setting more",
        ),
    ] = None,
    kernel: Kernel = "rbf",
    tolerance: Tolerance = None,
    cache_mb: CacheMb = 100.0,
    space: SpaceOptions,
    estimate: EstimateOptions,
    search: SearchOptions,
    resume: Annotated[
        bool, output_option("--resume", help="Continue, or begin, the tuning in -o.")
    ] = False,
    plot: Annotated[
        str | None,
        output_option(
            metavar="FILE", help="Draw the score against each parameter (.png, .svg, .pdf)."
        ),
    ] = None,
    json: Json = False,
    gram_mb: Annotated[
        float | None,
        running_option(
            metavar="MB",
            min=0,
            help="Room for kernel values that candidates share.",
            show_default="1024; informed 150",
        ),
    ] = None,
    task: Task = None,
    seed: Seed = 0,
    cluster: ClusterOptions,
    running: TrainingRunOptions,
) -> None:
    """Choose hyperparameters without negatives; resumable.

    Every trial is logged as it finishes; best.json is what `resvm train --params` reads.

    For example:

    - `resvm tune -P pos.svm -U unl.svm -o tuning`
    - `resvm train -P pos.svm -U unl.svm --params tuning/best.json -o model`
    - `resvm tune -P pos.svm -U unl.svm --search random -c 0.1..100 -o tuning`
    """
    from resvm_cli.commands.tune import figure, report
    from resvm_cli.commands.tune import report as tuning_table
    from resvm_cli.files.atomic import output as output_file
    from resvm_cli.parameters import METRIC_NAMES, MethodParameters
    from resvm_cli.report import json_output as machine
    from resvm_cli.report import plots
    from resvm_cli.tuning import tune as job
    from resvm_cli.tuning.settings import usual_search
    from resvm_cli.tuning.tune import TuneRequest

    kind = None if plot is None else plots.kind_of(plot)
    explicit = explicit_options(context)
    methods, axes = _methods(method), space.axes()
    usual = usual_search(
        methods,
        by_folds=bool({"folds", "repeats", "folds_file"} & explicit),
        narrowed=bool(axes or {"trials", "n_models"} & explicit),
        oob=estimate.oob,
        search=search.strategy(),
        committee=search.committee,
        n_models=_members(n_models),
        max_unl=max_unl,
        gram_mb=gram_mb,
    )
    request = TuneRequest(
        data.training_input(data.scale, groups=groups),
        target=output,
        base=MethodParameters(
            kernel=parse_kernel(kernel), tolerance=tolerance, cache_mb=cache_mb, seed=seed
        ),
        axes=axes,
        metric=parse_choice("--metric", estimate.metric, METRIC_NAMES),
        up_to=estimate.up_to,
        n_folds=estimate.folds,
        repeats=estimate.repeats,
        folds_file=estimate.folds_file,
        trials=search.trials,
        max_extensions=0 if search.no_extend else search.max_extensions,
        outer=estimate.outer,
        contamination_pos=space.contamination_pos,
        contamination_unl=space.contamination_unl,
        resume=resume,
        share=None if task is None else parse_task(task),
        **usual,
    )
    if not json and plot is None and request.share is None:
        interruption.done_when(f"{output}/best.json")
    with running.run(cluster, output) as run:
        watcher = tuning_table.watcher(run, request.metric)
        if request.share is not None:
            shared = job.tune_share(request, run, watcher)
            if not running.quiet:
                tuning_table.show_task(shared)
            if json:
                machine.print_result("tune-task", shared)
            return
        result = job.tune(request, run, watcher)
    if plot is not None and kind is not None:
        with output_file(plot) as write:
            write(figure.tuning_scores(result, kind))
    if not running.quiet:
        tuning_table.show_tuning(result)
    if json:
        report.print_tuning(result)


def _methods(text: str) -> tuple[MethodName, ...]:
    from resvm_cli.parameters import METHOD_NAMES

    return METHOD_NAMES if text == "all" else (parse_choice("--method", text, METHOD_NAMES),)


def _members(text: str | None) -> int | Literal["auto"] | None:
    if text is None:
        return None
    if text == "auto":
        return "auto"
    if not (text.isdecimal() and text.isascii() and len(text) < 16 and int(text)):
        raise CommandLineError(f"--n-models is '{text}'; a number or auto was expected")
    return int(text)
