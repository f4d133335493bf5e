"""The paper's experiments from the command line: run, report and figure.

python -m experiments.paper run --tasks synthetic --repetitions 3 -o build/paper
python -m experiments.paper report build/paper
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from resvm_cli import threads as parallel
from resvm_cli.cli import terminal
from resvm_cli.cli.options import command_run, parse_choice, parse_number
from resvm_cli.data.atomic import output, remove_unfinished
from resvm_cli.errors import CommandLineError, Interrupted, ResvmError
from resvm_cli.run import signal_arrived

MAX_LEVELS = 1000
FIGURES = ("resampling", "densities", "curves", "contamination")


def parser() -> argparse.ArgumentParser:
    program = argparse.ArgumentParser(prog="python -m experiments.paper", description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    commands = program.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run cells that have no result yet")
    run.add_argument("-o", "--output", required=True, metavar="DIR")
    run.add_argument("--data-dir", default=".", metavar="DIR",
                     help="the paper's data files, plain or compressed, named as on the LIBSVM page")  # fmt: skip
    run.add_argument("--tasks", metavar="NAME,...",
                     help="synthetic, cancer, ijcnn1, covtype, mnist (all digits), mnist-7, sensit-1 ...")  # fmt: skip
    run.add_argument("--settings", metavar="NAME,...", help="supervised, pu, semi-supervised")
    run.add_argument("--methods", metavar="NAME,...",
                     help="resvm, bagging, cwsvm, cwsvm-published (LIBLINEAR without a bias)")  # fmt: skip
    run.add_argument("--repetitions", type=int, default=20, metavar="N")
    run.add_argument("--protocol", default="paper", metavar="NAME",
                     help="paper: the paper's grid search; fast: train with its defaults;"
                     " search: like paper, but with random search")  # fmt: skip
    run.add_argument("--trials", type=int, metavar="N", help="candidates with --protocol search")
    for name in ("pos", "unl"):
        run.add_argument(f"--contamination-{name}", metavar="A,...|LOW:HIGH:STEP",
                         help="levels that replace the paper's settings")  # fmt: skip
    run.add_argument("--resume", action="store_true", help="continue the run in -o")
    run.add_argument("--seed", type=int, default=0)
    report = commands.add_parser("report", help="compare runs with the published tables")
    report.add_argument("runs", nargs="+", metavar="RUN",
                        help="directories or files of results: one, or two to compare")  # fmt: skip
    report.add_argument("--csv", metavar="FILE", help="one line per task, setting and method")
    report.add_argument("--page", metavar="FILE", help="write the tables of this page instead")
    figure = commands.add_parser("figure", help="draw one of the paper's figures")
    figure.add_argument("name", choices=FIGURES)
    figure.add_argument("directories", nargs="*", metavar="RUN", help="for contamination")
    figure.add_argument("-o", "--output", required=True, metavar="FILE", help=".svg, .png or .pdf")
    figure.add_argument("--task", default="synthetic", help="for curves")
    figure.add_argument("--setting", default="semi-supervised", help="for curves")
    figure.add_argument("--repetition", type=int, default=0, help="for curves and densities")
    figure.add_argument("--protocol", default="paper", help="for curves")
    figure.add_argument("--data-dir", default=".", help="for curves")
    figure.add_argument("--seed", type=int, default=0, help="for curves and densities")
    for one in (run, figure):
        one.add_argument("-j", "--jobs", type=int, metavar="N", help="threads")
    return program


def run(given: argparse.Namespace) -> None:
    from experiments.paper.data import FAMILIES, METHODS, OWN, PAPER_TASKS, SETTINGS
    from experiments.paper.run import Experiment, run_experiment

    settings = _listed("--settings", given.settings, SETTINGS, {"semi": ("semi-supervised",)})
    if given.contamination_pos is not None or given.contamination_unl is not None:
        if given.tasks is None or given.settings is not None:
            raise CommandLineError("levels of contamination require --tasks without --settings")
        settings = (OWN,)
    experiment = Experiment(
        output=given.output,
        protocol=_protocol(given.protocol, given.trials),
        data_dir=given.data_dir,
        tasks=_listed("--tasks", given.tasks, tuple(PAPER_TASKS), FAMILIES),
        settings=settings,
        methods=_listed("--methods", given.methods, METHODS),
        repetitions=given.repetitions,
        seed=given.seed,
        contamination_pos=_levels("--contamination-pos", given.contamination_pos),
        contamination_unl=_levels("--contamination-unl", given.contamination_unl),
        resume=given.resume,
        command=shlex.join(["python", "-m", "experiments.paper", *sys.argv[1:]]),
    )
    with command_run(quiet=False) as context:
        n_results, n_new = run_experiment(experiment, replace(context, jobs=given.jobs))
    terminal.say(f"{n_results:,} results in {given.output}, {n_new:,} of them new")


def report(given: argparse.Namespace) -> None:
    from experiments.paper import page, sections
    from experiments.paper.report import report as report_on

    if given.page is not None:
        page.fill(given.page, *given.runs)
        return
    result = report_on(given.runs)
    if given.csv is not None:
        with output(given.csv) as write:
            for line in sections.csv(result):
                write(line)
    terminal.print_data(sections.markdown(result))


def figure(given: argparse.Namespace) -> None:
    from experiments.paper import figures
    from experiments.paper.contamination import contamination_figure
    from experiments.paper.data import PAPER_TASKS, SETTINGS, Cell
    from resvm_cli.commands.score import plot_kind

    kind = plot_kind(given.output, "-o")
    result: Any
    if given.name == "resampling":
        result = figures.resampling()
    elif given.name == "densities":
        result = figures.densities(given.repetition, given.seed)
    elif given.name == "contamination":
        result = contamination_figure(given.directories)
    else:
        drawn = Cell(
            parse_choice("--setting", given.setting, SETTINGS),
            parse_choice("--task", given.task, tuple(PAPER_TASKS)),
            given.repetition,
        )
        with command_run(quiet=False) as context:
            result = figures.curves(
                _protocol(given.protocol, None), drawn, replace(context, jobs=given.jobs),
                data_dir=given.data_dir, seed=given.seed,
            )  # fmt: skip
    with output(given.output) as write:
        write(figures.render_figure(result, kind))


def _protocol(name: str, trials: int | None) -> Any:
    from experiments.paper import cells

    chosen = parse_choice("--protocol", name, cells.PROTOCOL_NAMES)
    if trials is not None and chosen != "search":
        raise CommandLineError("--trials requires --protocol search")
    return cells.Protocol(chosen, trials or cells.SEARCH_TRIALS)


def _listed(
    option: str,
    text: str | None,
    names: tuple[str, ...],
    aliases: Mapping[str, tuple[str, ...]] | None = None,
) -> tuple[str, ...]:
    """Parse a comma-separated list of names; an alias stands for one or more names."""
    chosen: list[str] = []
    for part in names if text is None else text.split(","):
        chosen += (aliases or {}).get(part) or (parse_choice(option, part, names),)
    return tuple(dict.fromkeys(chosen))


def _levels(option: str, text: str | None) -> tuple[float, ...]:
    """Parse a list such as 0,0.1,0.3 or a range such as 0:0.6:0.1 (ends included)."""
    if text is None:
        return (0.0,)
    expected = "a list 0,0.1,0.3 or LOW:HIGH:STEP"
    if ":" not in text:
        listed = [parse_number(option, part, expected) for part in text.split(",")]
        return tuple(dict.fromkeys(listed))
    parts = [parse_number(option, part, expected) for part in text.split(":")]
    if len(parts) != 3 or not parts[2] > 0 or parts[0] > parts[1]:
        raise CommandLineError(f"{option} must be {expected}, got '{text}'")
    low, high, step = parts
    count = (high - low) / step
    if not count < MAX_LEVELS:
        raise CommandLineError(f"{option} is '{text}': more than {MAX_LEVELS} levels")
    return tuple(round(low + number * step, 9) for number in range(int(count + 1e-9) + 1))


def main() -> None:
    parallel.limit_blas_threads()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda arrived, frame: signal_arrived(arrived))
    given = parser().parse_args()
    try:
        {"run": run, "report": report, "figure": figure}[given.command](given)
    except ResvmError as error:
        terminal.show_error(error)
        sys.exit(error.exit_code)
    except Interrupted as error:
        remove_unfinished()
        os._exit(error.exit_code)  # a solver may still be running, and a C call cannot be canceled


if __name__ == "__main__":
    main()
