"""resvm benchmark figure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import fold_options
from resvm_cli.options.running import (
    Json,
    TrainingRunOptions,
    output_option,
    running_option,
)
from resvm_cli.options.training import data_option
from resvm_cli.options.values import offered, parse_choice
from resvm_cli.report import json_output as machine

if TYPE_CHECKING:
    from resvm_cli.benchmark.figures import CurvesRequest

cell_option = partial(typer.Option, rich_help_panel="Repetition")


@fold_options
def figure(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="resampling, densities, curves or contamination.",
            autocompletion=offered("resampling", "densities", "curves", "contamination"),
        ),
    ],
    directories: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DIR...]",
            help="For contamination: what runs wrote that vary that of U, of P, or both in turn.",
        ),
    ] = None,
    *,
    output: Annotated[
        str,
        output_option("-o", "--output", metavar="FILE", help="The figure: .svg, .png or .pdf."),
    ],
    task: Annotated[
        str | None,
        cell_option(
            metavar="NAME",
            help="For curves: synthetic, mnist-7 and the like.",
            show_default="synthetic",
        ),
    ] = None,
    setting: Annotated[
        str | None,
        cell_option(
            metavar="NAME",
            help="For curves: supervised, pu or semi-supervised.",
            show_default="semi-supervised",
        ),
    ] = None,
    repetition: Annotated[
        int | None,
        cell_option(metavar="N", help="For curves and densities: which draw.", show_default="0"),
    ] = None,
    protocol: Annotated[
        str | None,
        cell_option(
            metavar="NAME", help="For curves: paper, fast or search.", show_default="paper"
        ),
    ] = None,
    data_dir: Annotated[
        str | None,
        data_option(
            metavar="DIR",
            help="For curves: the paper's files, as for benchmark run.",
            show_default=".",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        running_option(
            metavar="N",
            help="For curves and densities: the seed of the run whose draw this is.",
            show_default="0",
        ),
    ] = None,
    json: Json = False,
    running: TrainingRunOptions,
) -> None:
    """Draw one of the paper's four figures.

    resampling shows how contaminated bootstrap resamples are by their size; densities the synthetic
    problem in the three settings; curves the PR and ROC curves of all methods in one repetition;
    contamination what contamination of U and of P costs each method.

    For example:

    - `resvm benchmark figure resampling -o resampling.svg`
    - `resvm benchmark figure curves --task mnist-7 --data-dir data -o curves.png`
    - `resvm benchmark figure contamination varied-u varied-p -o contamination.pdf`
    """
    from resvm_cli.benchmark import figures as job
    from resvm_cli.benchmark import plots as benchmark_plots
    from resvm_cli.files.atomic import output as written
    from resvm_cli.report import plots

    chosen = parse_choice("NAME", name, job.FIGURE_NAMES)
    only_curves: dict[str, Any] = {
        "--task": task, "--setting": setting, "--protocol": protocol, "--data-dir": data_dir
    }  # fmt: skip
    of_a_draw: dict[str, Any] = {"--repetition": repetition, "--seed": seed}
    _refuse(chosen, "curves", ("curves",), only_curves)
    _refuse(chosen, "curves and densities", ("curves", "densities"), of_a_draw)
    _refuse(chosen, "contamination", ("contamination",), {"DIR": directories or None})
    kind = plots.kind_of(output, "-o")
    result: job.Resampling | job.Densities | job.Curves | job.Contamination
    if chosen == "resampling":
        result = job.resampling()
    elif chosen == "densities":
        result = job.densities(repetition or 0, seed or 0)
    elif chosen == "contamination":
        result = job.contamination(directories or [])
    else:
        request = _curves_request(only_curves, repetition or 0, seed or 0)
        with running.run() as run:
            result = job.curves(request, run)
    with written(output) as write:
        write(benchmark_plots.drawn(result, kind))
    if json:
        machine.print_result("figure", result)


def _refuse(chosen: str, which: str, names: tuple[str, ...], options: dict[str, Any]) -> None:
    """Options that have no meaning for this figure."""
    for option, value in options.items():
        if value is not None and chosen not in names:
            raise CommandLineError(f"{option} is for {which}, not for {chosen}")


def _curves_request(options: dict[str, Any], repetition: int, seed: int) -> CurvesRequest:
    from resvm_cli.benchmark.figures import CurvesRequest
    from resvm_cli.benchmark.grids import default_grids
    from resvm_cli.benchmark.paper_tasks import PAPER_TASKS, SETTING_NAMES
    from resvm_cli.benchmark.protocol import PROTOCOL_NAMES, Protocol

    setting = options["--setting"] or "semi-supervised"
    setting = {"semi": "semi-supervised"}.get(setting, setting)
    protocol = parse_choice("--protocol", options["--protocol"] or "paper", PROTOCOL_NAMES)
    return CurvesRequest(
        protocol=Protocol(protocol, default_grids()),
        task=parse_choice("--task", options["--task"] or "synthetic", tuple(PAPER_TASKS)),
        setting=parse_choice("--setting", setting, SETTING_NAMES),
        repetition=repetition,
        data_dir=options["--data-dir"] or ".",
        seed=seed,
    )
