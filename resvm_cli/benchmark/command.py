"""resvm benchmark: run, report, figure, join and grids."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options import shared
from resvm_cli.options.option_groups import argument, fold_options, option
from resvm_cli.options.values import parse_choice, parse_number, parse_task
from resvm_cli.report import terminal
from resvm_cli.running.run import as_ranges

if TYPE_CHECKING:
    from resvm_cli.benchmark.cells import Protocol

plan_option = partial(option, panel="Plan")
own_option = partial(option, panel="Your own data")
draw_option = partial(option, panel="Draw")
MAX_LEVELS = 1000
FIGURES = ("resampling", "densities", "curves", "contamination")

benchmark = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@benchmark.callback()
def described() -> None:
    """Run the paper's experiments on its data or on yours, and report the results.

    For example:

    - `resvm benchmark run --tasks synthetic --repetitions 3 -o bench`
    - `resvm benchmark report bench`
    """


@benchmark.command()
@fold_options
def run(
    output: str = shared.output_option(
        "-o, --output DIR",
        "Directory for results.jsonl, written line by line, and a record of the run.",
        default=...,
    ),
    data_dir: str = shared.data_option(
        "--data-dir DIR",
        "Directory with the paper's data files, plain or compressed, named as on the LIBSVM page.",
        default=".",
    ),
    tasks: str | None = plan_option(
        "--tasks NAME,...",
        "synthetic, cancer, ijcnn1, covtype, mnist (all digits), mnist-7, sensit-1 ...",
        show_default="all",
    ),
    settings: str | None = plan_option(
        "--settings NAME,...", "supervised, pu, semi-supervised.", show_default="all three"
    ),
    methods: str | None = plan_option(
        "--methods NAME,...",
        "resvm, bagging, cwsvm, cwsvm-published (linear, LIBLINEAR without a bias).",
        show_default="all",
    ),
    repetitions: int = plan_option(
        "--repetitions N", "Number of draws for each task in each setting.", default=20
    ),
    protocol: str | None = plan_option(
        "--protocol NAME",
        "paper: grid search by pu_score in 10-fold cross-validation, 50 members, votes; fast: the"
        " current recommendation (train --auto); search: like paper, but with random search.",
        show_default="paper; fast with --data",
    ),
    grid: str | None = plan_option(
        "--grid FILE",
        "Custom grids for --protocol paper; resvm benchmark grids prints the defaults.",
    ),
    trials: int | None = plan_option(
        "--trials N", "Candidates per method, with --protocol search.", show_default="100"
    ),
    data: str | None = own_option(
        "--data FILE", "Labeled file to use instead of the paper's data."
    ),
    positive_label: float | None = own_option(
        "--positive-label LABEL", "Label of the truly positive rows."
    ),
    n_pos: int | None = own_option("--n-pos N", "Number of rows in P.", show_default=False),
    n_unl: int | None = own_option("--n-unl N", "Number of rows in U.", show_default=False),
    contamination_pos: str | None = own_option(
        "--contamination-pos A,...|LOW:HIGH:STEP",
        "Fractions of P that are truly negative: 0,0.1,0.3 or 0:0.6:0.1. Use with --data, or with"
        " --tasks to replace the paper's settings.",
        show_default="0",
    ),
    contamination_unl: str | None = own_option(
        "--contamination-unl B,...|LOW:HIGH:STEP",
        "Fractions of U that are truly positive.",
        show_default="0",
    ),
    groups: str | None = own_option(
        "--groups FILE",
        "File with the group of each row, one per line; test rows never share a group with P or U.",
    ),
    zero_based: bool = shared.ZERO_BASED,
    json: bool = shared.JSON,
    resume: bool = shared.running_option(
        "--resume", "Continue the run in -o: keep its results and compute the missing ones."
    ),
    task: str | None = shared.TASK,
    seed: int = shared.running_option(
        "--seed N", "Random seed; the same seed and data give the same results.", default=0
    ),
    *,
    cluster: shared.ClusterOptions,
    running: shared.TrainingRunOptions,
) -> None:
    """Run the paper's experiments, or repeat them on your own labeled data.

    Each line of results is one method, tuned and trained on one draw of P and U and tested on rows
    of known class. --resume continues an interrupted run.

    For example:

    - `resvm benchmark run --data-dir data --tasks synthetic,cancer --repetitions 5 -o bench`
    - `resvm benchmark run --data mine.svm --positive-label 1 --n-pos 100 --n-unl 2000 -o mine`
    """
    from resvm_cli.benchmark.data import FAMILIES, METHODS, OWN, PAPER_TASKS, SETTINGS, OwnData
    from resvm_cli.benchmark.run import BenchmarkRequest, run_benchmark

    sizes: Any = {"--positive-label": positive_label, "--n-pos": n_pos, "--n-unl": n_unl}
    own = None
    if data is None:
        _refuse({**sizes, "--groups": groups}, "requires --data")
    else:
        _refuse({"--tasks": tasks, "--settings": settings}, "cannot be combined with --data")
        for name, value in sizes.items():
            if value is None:
                raise CommandLineError(f"--data requires {name}")
        label, rows_pos, rows_unl = sizes.values()
        own = OwnData(data, label, rows_pos, rows_unl, groups, zero_based)
    chosen_settings = _listed("--settings", settings, SETTINGS, {"semi": ("semi-supervised",)})
    if contamination_pos is not None or contamination_unl is not None:
        if data is None and (tasks is None or settings is not None):
            raise CommandLineError(
                "--contamination-pos and --contamination-unl require --data, or --tasks without"
                " --settings"
            )
        chosen_settings = (OWN,)
    request = BenchmarkRequest(
        output=output,
        protocol=_protocol(protocol or ("paper" if data is None else "fast"), grid, trials),
        data_dir=data_dir,
        tasks=_listed("--tasks", tasks, tuple(PAPER_TASKS), FAMILIES),
        settings=chosen_settings,
        methods=_listed("--methods", methods, METHODS),
        repetitions=repetitions,
        seed=seed,
        own=own,
        contamination_pos=_levels("--contamination-pos", contamination_pos),
        contamination_unl=_levels("--contamination-unl", contamination_unl),
        resume=resume,
        share=None if task is None else parse_task(task),
        command=shlex.join(["resvm", *sys.argv[1:]]),
    )
    with running.run(cluster) as context:
        result = run_benchmark(request, context)
    if not running.quiet:
        lines = {"results": f"{result.n_results:,}, {result.n_run:,} of them new"}
        if result.missing_tasks:
            lines["missing"] = f"{result.n_missing:,}; --array={as_ranges(result.missing_tasks)}"
        _summarize({**lines, "took": f"{result.seconds:,.0f} s"}, result.path)
    if json:
        terminal.print_result("benchmark", result)


def _protocol(name: str, grid: str | None, trials: int | None) -> Protocol:
    from resvm_cli.benchmark import cells

    chosen = parse_choice("--protocol", name, cells.PROTOCOL_NAMES)
    if grid is not None and chosen != "paper":
        raise CommandLineError("--grid requires --protocol paper")
    if trials is not None and chosen != "search":
        raise CommandLineError("--trials requires --protocol search")
    grids = cells.default_grids() if grid is None else cells.read_grids(grid)
    return cells.Protocol(chosen, grids, cells.SEARCH_TRIALS if trials is None else trials)


def _refuse(options: dict[str, Any], reason: str) -> None:
    """Raise an error if one of these options was given."""
    for name, value in options.items():
        if value is not None:
            raise CommandLineError(f"{name} {reason}")


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


def _summarize(lines: dict[str, str], path: str) -> None:
    directory = f"{path}; resvm benchmark report {shlex.quote(path)} shows the tables"
    for name, text in {**lines, "directory": directory}.items():
        terminal.say_row(name, text)


@benchmark.command()
def report(
    directories: list[str] = argument(
        "DIR...",
        "Directories written by resvm benchmark run. Runs with the same protocol, seed and grids"
        " are joined; two different runs are compared side by side.",
    ),
    markdown: str | None = shared.output_option(
        "--markdown FILE", "Write all tables as Markdown (- is stdout)."
    ),
    csv: str | None = shared.output_option(
        "--csv FILE", "Write one line per task, setting and method (- is stdout)."
    ),
    html: str | None = shared.output_option(
        "--html FILE", "Write an HTML page with sortable tables and figures."
    ),
    json: bool = shared.JSON,
    quiet: bool = shared.QUIET,
) -> None:
    """Compare the tables of a benchmark with the published ones, with tests and verdicts.

    For example:

    - `resvm benchmark report bench --html bench.html`
    - `resvm benchmark report paper fast --markdown both.md -q`
    """
    from resvm_cli.benchmark import rendering
    from resvm_cli.benchmark.report import report as make_report
    from resvm_cli.benchmark.sections import sections
    from resvm_cli.files.atomic import output

    to_stdout = [path for path in (markdown, csv, html) if path == "-"]
    if len(to_stdout) + json > 1:
        raise CommandLineError("only one of --markdown, --csv, --html and --json can go to stdout")
    result = make_report(directories)
    parts = sections(result)
    if markdown is not None:
        with output(markdown) as write:
            write(rendering.markdown(parts))
    if csv is not None:
        with output(csv) as write:
            for line in rendering.csv(result):
                write(line)
    if html is not None:
        with output(html) as write:
            write(rendering.html(result, parts))
    if json:
        terminal.print_result("benchmark-report", result)
    elif not quiet and not to_stdout:
        rendering.show(parts)


@benchmark.command()
@fold_options
def figure(
    name: str = argument(
        "NAME",
        "resampling, densities, curves or contamination.",
        completions=FIGURES,
    ),
    directories: list[str] | None = argument(
        "[DIR...]",
        "For contamination: one run that varies the contamination of U, P or both, or one run for"
        " each.",
        default=None,
    ),
    *,
    output: str = shared.output_option(
        "-o, --output FILE", "Output file: .svg, .png or .pdf.", default=...
    ),
    task: str | None = draw_option(
        "--task NAME", "For curves: name of a task, such as mnist-7.", show_default="synthetic"
    ),
    setting: str | None = draw_option(
        "--setting NAME",
        "For curves: supervised, pu or semi-supervised.",
        show_default="semi-supervised",
    ),
    repetition: int | None = draw_option(
        "--repetition N", "For curves and densities: which repetition to draw.", show_default="0"
    ),
    protocol: str | None = draw_option(
        "--protocol NAME", "For curves: paper, fast or search.", show_default="paper"
    ),
    data_dir: str | None = shared.data_option(
        "--data-dir DIR",
        "For curves: directory with the paper's files, as in benchmark run.",
        show_default=".",
    ),
    seed: int | None = shared.running_option(
        "--seed N", "For curves and densities: the seed of the benchmark run.", show_default="0"
    ),
    json: bool = shared.JSON,
    running: shared.TrainingRunOptions,
) -> None:
    """Draw one of the paper's four figures.

    resampling: contamination of bootstrap resamples by size. densities: the synthetic problem in
    the three settings. curves: PR and ROC curves of all methods in one repetition. contamination:
    how contamination of U and P affects each method.

    For example:

    - `resvm benchmark figure resampling -o resampling.svg`
    - `resvm benchmark figure curves --task mnist-7 --data-dir data -o curves.png`
    - `resvm benchmark figure contamination varied-u varied-p -o contamination.pdf`
    """
    from resvm_cli.benchmark import figures
    from resvm_cli.benchmark.contamination import ContaminationFigure, contamination_figure
    from resvm_cli.benchmark.data import PAPER_TASKS, SETTINGS, Cell
    from resvm_cli.files.atomic import output as open_output
    from resvm_cli.report.charts import kind_of

    chosen = parse_choice("NAME", name, FIGURES)
    curve_options = {
        "--task": task, "--setting": setting, "--protocol": protocol, "--data-dir": data_dir
    }  # fmt: skip
    if chosen != "curves":
        _refuse(curve_options, f"is only for curves, not for {chosen}")
    if chosen not in ("curves", "densities"):
        draw_options = {"--repetition": repetition, "--seed": seed}
        _refuse(draw_options, f"is only for curves and densities, not for {chosen}")
    if chosen != "contamination":
        _refuse({"DIR": directories or None}, f"is only for contamination, not for {chosen}")
    kind = kind_of(output, "-o")
    result: figures.Resampling | figures.Densities | figures.Curves | ContaminationFigure
    if chosen == "resampling":
        result = figures.resampling()
    elif chosen == "densities":
        result = figures.densities(repetition or 0, seed or 0)
    elif chosen == "contamination":
        result = contamination_figure(directories or [])
    else:
        if setting in (None, "semi"):
            setting = "semi-supervised"
        tuned_by = _protocol(protocol or "paper", None, None)
        drawn = Cell(
            task=parse_choice("--task", task or "synthetic", tuple(PAPER_TASKS)),
            setting=parse_choice("--setting", str(setting), SETTINGS),
            repetition=repetition or 0,
        )
        with running.run() as context:
            result = figures.curves(
                tuned_by, drawn, context, data_dir=data_dir or ".", seed=seed or 0
            )
    with open_output(output) as write:
        write(figures.render_figure(result, kind))
    if json:
        terminal.print_result("figure", result)


@benchmark.command()
def join(
    directories: list[str] = argument(
        "DIR...", "Directories of benchmark runs with the same protocol, seed and grids."
    ),
    output: str = shared.output_option("-o, --output DIR", "New directory.", default=...),
    json: bool = shared.JSON,
    quiet: bool = shared.QUIET,
) -> None:
    """Join the results of several directories as if they came from a single run.

    If two directories have different results for the same cell, the command fails.

    For example:

    - `resvm benchmark join monday tuesday -o both`
    """
    from resvm_cli.benchmark.join import join as join_directories

    result = join_directories(directories, output)
    if not quiet:
        count = f"{result.n_results:,} from {result.n_directories} directories"
        _summarize({"results": count}, result.path)
    if json:
        terminal.print_result("benchmark-join", result)


@benchmark.command()
def grids() -> None:
    """Print the grids for --protocol paper as JSON, to edit and use with run --grid.

    For example:

    - `resvm benchmark grids > grids.json`
    """
    from resvm_cli.benchmark.cells import default_grids_text

    terminal.print_data(default_grids_text())
