"""resvm benchmark run, and the grids it goes by."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from typing import Annotated, Any

import typer

from resvm_cli.benchmark import summaries
from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import fold_options
from resvm_cli.options.running import (
    ClusterOptions,
    Json,
    Task,
    TrainingRunOptions,
    output_option,
    running_option,
)
from resvm_cli.options.training import ZeroBased, data_option
from resvm_cli.options.values import parse_choice, parse_number, parse_task
from resvm_cli.report import json_output as machine
from resvm_cli.report import terminal

plan_option = partial(typer.Option, rich_help_panel="Plan")
own_option = partial(typer.Option, rich_help_panel="Your own data")
MOST_LEVELS = 1000


@fold_options
def run(
    output: Annotated[
        str,
        output_option(
            "-o",
            "--output",
            metavar="DIR",
            help="Where results.jsonl grows, line by line, with what was run.",
        ),
    ],
    data_dir: Annotated[
        str,
        data_option(
            metavar="DIR",
            help="The paper's files, named as on LIBSVM's page of data sets, plain or compressed.",
        ),
    ] = ".",
    tasks: Annotated[
        str | None,
        plan_option(
            metavar="NAME,...",
            help="synthetic, cancer, ijcnn1, covtype, mnist (all digits), mnist-7, sensit-1 ...",
            show_default="all",
        ),
    ] = None,
    settings: Annotated[
        str | None,
        plan_option(
            metavar="NAME,...", help="supervised, pu, semi-supervised.", show_default="all three"
        ),
    ] = None,
    methods: Annotated[
        str | None,
        plan_option(
            metavar="NAME,...",
            help="resvm, bagging, cwsvm, cwsvm-published (linear, LIBLINEAR without a bias).",
            show_default="all",
        ),
    ] = None,
    repetitions: Annotated[
        int, plan_option(metavar="N", help="Draws of each task in each setting.")
    ] = 20,
    protocol: Annotated[
        str | None,
        plan_option(
            metavar="NAME",
            help="paper: a grid by 10 folds and pu_score, 50 members, votes;"
            " fast: what we recommend today (train --auto);"
            " search: as paper, by random search in place of a grid.",
            show_default="paper; with --data fast",
        ),
    ] = None,
    grid: Annotated[
        str | None,
        plan_option(
            metavar="FILE",
            help="Other grids for the paper's protocol; resvm benchmark grids shows ours.",
        ),
    ] = None,
    trials: Annotated[
        int | None,
        plan_option(
            metavar="N",
            help="Candidates of each method with --protocol search.",
            show_default="100",
        ),
    ] = None,
    data: Annotated[
        str | None, own_option(metavar="FILE", help="A labelled file, in place of the paper's.")
    ] = None,
    positive_label: Annotated[
        float | None,
        own_option(metavar="LABEL", help="Rows of this label are truly positive."),
    ] = None,
    n_pos: Annotated[
        int | None, own_option(metavar="N", help="Rows of P in each draw.", show_default=False)
    ] = None,
    n_unl: Annotated[
        int | None, own_option(metavar="N", help="Rows of U in each draw.", show_default=False)
    ] = None,
    contamination_pos: Annotated[
        str | None,
        own_option(
            metavar="A,...|LOW:HIGH:STEP",
            help="Shares of P that are truly negative: 0,0.1,0.3 or 0:0.6:0.1; of your data,"
            " or of --tasks in place of the paper's settings.",
            show_default="0",
        ),
    ] = None,
    contamination_unl: Annotated[
        str | None,
        own_option(
            metavar="B,...|LOW:HIGH:STEP",
            help="Shares of U that are truly positive.",
            show_default="0",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        own_option(
            metavar="FILE",
            help="A group for each row: none is both in P or U and among the test rows.",
        ),
    ] = None,
    zero_based: ZeroBased = False,
    json: Json = False,
    resume: Annotated[
        bool,
        running_option(
            "--resume", help="Go on in DIR: what is there is kept, what is missing is run."
        ),
    ] = False,
    task: Task = None,
    seed: Annotated[
        int, running_option(metavar="N", help="Same seed, same data: the same results.")
    ] = 0,
    *,
    cluster: ClusterOptions,
    running: TrainingRunOptions,
) -> None:
    """Run the paper's experiments, or the same on your own labelled data.

    Each result is one line: a method, tuned and trained on one draw of P and U, and tested on rows
    of known class. What is killed goes on with --resume.

    For example:

    - `resvm benchmark run --data-dir data --tasks synthetic,cancer --repetitions 5 -o bench`
    - `resvm benchmark run --data mine.svm --positive-label 1 --n-pos 100 --n-unl 2000 -o mine`
    """
    from resvm_cli.benchmark import run as job
    from resvm_cli.benchmark.data import OwnData
    from resvm_cli.benchmark.grids import default_grids, read_grids
    from resvm_cli.benchmark.paper_tasks import OWN, PAPER_TASKS, SETTING_NAMES
    from resvm_cli.benchmark.protocol import (
        METHODS,
        PROTOCOL_NAMES,
        SEARCH_TRIALS,
        Grids,
        Protocol,
    )

    own = None
    foreign: dict[str, Any] = {"--tasks": tasks, "--settings": settings}
    needed: dict[str, Any] = {
        "--positive-label": positive_label,
        "--n-pos": n_pos,
        "--n-unl": n_unl,
    }
    if data is None:
        foreign = {**needed, "--groups": groups}
    for name, value in foreign.items():
        if value is not None:
            which = "goes with --data" if data is None else "is for the paper's data, not --data"
            raise CommandLineError(f"{name} {which}")
    if data is not None:
        for name, value in needed.items():
            if value is None:
                raise CommandLineError(f"--data needs {name}")
        assert positive_label is not None
        assert n_pos is not None
        assert n_unl is not None
        own = OwnData(data, positive_label, n_pos, n_unl, groups, zero_based)
    chosen_settings = _listed("--settings", settings, SETTING_NAMES, {"semi": "semi-supervised"})
    if contamination_pos is not None or contamination_unl is not None:
        if data is None and (tasks is None or settings is not None):
            raise CommandLineError(
                "--contamination-pos and --contamination-unl go with --data, or with --tasks and"
                " without --settings"
            )
        chosen_settings = (OWN,)
    name = parse_choice("--protocol", protocol or ("fast" if own else "paper"), PROTOCOL_NAMES)
    if grid is not None and name != "paper":
        raise CommandLineError("--grid is for --protocol paper")
    if trials is not None and name != "search":
        raise CommandLineError("--trials is for --protocol search")
    grids: Grids = default_grids() if grid is None else read_grids(grid)
    request = job.BenchmarkRequest(
        target=output,
        protocol=Protocol(name, grids, SEARCH_TRIALS if trials is None else trials),
        data_dir=data_dir,
        tasks=_tasks(tasks, tuple(PAPER_TASKS)),
        settings=chosen_settings,
        methods=_listed("--methods", methods, METHODS, {}),
        repetitions=repetitions,
        seed=seed,
        own=own,
        contaminations_pos=_levels("--contamination-pos", contamination_pos),
        contaminations_unl=_levels("--contamination-unl", contamination_unl),
        resume=resume,
        share=None if task is None else parse_task(task),
        command=shlex.join(["resvm", *sys.argv[1:]]),
    )
    with running.run(cluster) as run:
        result = job.run(request, run)
    if not running.quiet:
        summaries.show_benchmark(result)
    if json:
        machine.print_result("benchmark", result)


def grids() -> None:
    """The grids of the paper's protocol as JSON, to be changed and given with run --grid.

    For example:

    - `resvm benchmark grids > grids.json`
    """
    from resvm_cli.benchmark.grids import default_text

    terminal.print_data(default_text())


def _tasks(text: str | None, names: tuple[str, ...]) -> tuple[str, ...]:
    """Tasks by name; the name of a data set stands for all its classes."""
    if text is None:
        return names
    chosen: list[str] = []
    for part in text.split(","):
        found = [name for name in names if part in (name, name.partition("-")[0])]
        if not found:
            raise CommandLineError(
                f"--tasks: there is no '{part}'", f"tasks are {', '.join(names)}"
            )
        chosen += found
    return tuple(dict.fromkeys(chosen))


def _listed(
    option: str, text: str | None, names: tuple[str, ...], short: dict[str, str]
) -> tuple[str, ...]:
    if text is None:
        return names
    chosen = [parse_choice(option, short.get(part, part), names) for part in text.split(",")]
    return tuple(dict.fromkeys(chosen))


def _levels(option: str, text: str | None) -> tuple[float, ...]:
    """0,0.1,0.3 or 0:0.6:0.1, both ends included."""
    if text is None:
        return (0.0,)
    expected = "a list 0,0.1,0.3 or LOW:HIGH:STEP"
    if ":" not in text:
        listed = [parse_number(option, part, expected) for part in text.split(",")]
        return tuple(dict.fromkeys(listed))
    parts = [parse_number(option, part, expected) for part in text.split(":")]
    if len(parts) != 3 or not parts[2] > 0 or parts[0] > parts[1]:
        raise CommandLineError(f"{option} is '{text}'; {expected} was expected")
    low, high, step = parts
    count = (high - low) / step
    if not count < MOST_LEVELS:
        raise CommandLineError(f"{option} is '{text}': more than {MOST_LEVELS} levels")
    return tuple(round(low + number * step, 9) for number in range(int(count + 1e-9) + 1))
