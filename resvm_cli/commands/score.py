"""resvm score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from resvm_cli.commands import options as given
from resvm_cli.errors import CommandLineError
from resvm_cli.report import machine, terminal

if TYPE_CHECKING:
    from resvm_cli.evaluation.summary import Known
    from resvm_cli.files.prediction_reader import Provenance

UNLABELED = "Positive and unlabeled rows"
RUNS = "Repeated runs"


def score(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PREDICTIONS...", help="What predict wrote, or bare numbers (- is stdin)."
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The rows' labels: a svmlight file or a list.",
            rich_help_panel=given.DATA,
        ),
    ] = None,
    positive_ids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Instead of labels the ids of the positives, one a line.",
            rich_help_panel=given.DATA,
        ),
    ] = None,
    positive_label: Annotated[
        float | None,
        typer.Option(
            metavar="LABEL",
            help="Rows of this label are positive.",
            show_default="1, where the others are -1 or 0",
            rich_help_panel=given.DATA,
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            "-T",
            "--threshold",
            metavar="T",
            help="Positive above this decision value.",
            show_default="what the file's labels follow, else 0.5",
            rich_help_panel=given.METHOD,
        ),
    ] = None,
    top: Annotated[
        str,
        typer.Option(
            "-k",
            "--top",
            metavar="K,K",
            help="Depths at which precision, recall and enrichment are wanted.",
            rich_help_panel=given.METHOD,
        ),
    ] = "10,100",
    prevalence: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="The share of positives where it will be used: re-weights precision.",
            show_default="that of the file",
            rich_help_panel=given.METHOD,
        ),
    ] = None,
    bootstrap: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=1_000_000,
            help="Resampled rankings for the 95 % intervals; 0 for none.",
            rich_help_panel=given.METHOD,
        ),
    ] = 1000,
    seed: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Of the bootstrap.", rich_help_panel=given.METHOD),
    ] = 0,
    pu: Annotated[
        bool,
        typer.Option(
            "--pu",
            help="Labels say positive or unlabeled, not positive or negative.",
            rich_help_panel=UNLABELED,
        ),
    ] = False,
    contamination_pos: Annotated[
        str | None,
        typer.Option(
            metavar="A",
            help="Share of known positives that are negative: 0.1, or a range 0.05..0.2.",
            rich_help_panel=UNLABELED,
        ),
    ] = None,
    contamination_unl: Annotated[
        str | None,
        typer.Option(
            metavar="B",
            help="Share of unlabeled rows that are positive: a number, a range, or estimate.",
            rich_help_panel=UNLABELED,
        ),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="held-out, out-of-bag or trained-on, where the file does not say.",
            rich_help_panel=UNLABELED,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="The model that judged the rows of --labels: was it trained on them?",
            rich_help_panel=UNLABELED,
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Instead of predictions: CSV with data set, repetition, method, value.",
            rich_help_panel=RUNS,
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help="Tested to be greater than the others.",
            show_default="the best average rank",
            rich_help_panel=RUNS,
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="PR and ROC curves, or the critical differences (.png, .svg, .pdf).",
            rich_help_panel=given.OUTPUT,
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A page with curves and a threshold to move.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Every threshold as CSV (- is stdout).",
            rich_help_panel=given.OUTPUT,
        ),
    ] = None,
    json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """How good are decision values? Areas, thresholds and screening figures, with intervals.

    With --pu as much as positive and unlabeled rows allow; several files side by side; with
    --compare tests over repeated runs.
    """
    from resvm_cli.files.atomic import output

    if plot is not None:
        from resvm_cli.report import plots

        kind = plots.kind_of(plot)
    if compare is not None:
        if files or labels or positive_ids or html or curve or pu:
            raise CommandLineError("--compare takes no prediction files, labels, --html or --curve")
        from resvm_cli.jobs.compare import compare as job
        from resvm_cli.report import score_table

        found = job(compare, reference)
        if plot is not None:
            with output(plot) as write:
                write(plots.critical_differences(found.overall, kind))
        if json:
            machine.print_comparison(found)
        elif not quiet:
            score_table.show_comparison(found)
        return
    if not files:
        raise CommandLineError(
            "no prediction file is given",
            "resvm score test.pred --labels test.svm, or --compare results.csv",
        )
    if reference is not None:
        raise CommandLineError("--reference goes with --compare")
    if json and curve == "-":
        raise CommandLineError("--json and --curve - cannot both go to stdout")
    from resvm_cli.evaluation.summary import Settings
    from resvm_cli.jobs import score as job_score
    from resvm_cli.jobs.scored_rows import ScoreRequest

    request = ScoreRequest(
        files=tuple(files),
        labels=labels,
        positive_ids=positive_ids,
        positive_label=positive_label,
        pu=pu,
        known=_known(contamination_pos, contamination_unl),
        threshold=None if threshold is None else _threshold(threshold),
        provenance=_provenance(values),
        model=model,
        settings=Settings(_depths(top), _share("--prevalence", prevalence), bootstrap, seed),
        all_points=curve is not None,
        drawings=plot is not None or html is not None,
    )
    if "-" in files and not quiet:
        terminal.announce_stdin()
    with terminal.Progress(quiet) as progress:
        result = job_score.score(request, progress)
    if plot is not None:
        with output(plot) as write:
            write(plots.curves(result, kind))
    if html is not None:
        from resvm_cli.report import score_page

        with output(html) as write:
            write(score_page.render(result))
    if curve is not None:
        with output(curve) as write:
            for part in machine.curve_lines(result):
                write(part)
    if json:
        machine.print_scores(result)
    elif not quiet and curve != "-":
        from resvm_cli.report import score_table

        score_table.show_scores(result)


def _threshold(text: str) -> float:
    number = given.parse_number("-T/--threshold", text)
    if abs(number) == float("inf"):
        raise CommandLineError(f"-T/--threshold is '{text}'; a finite number was expected")
    return number


def _share(option: str, value: float | None) -> float | None:
    if value is not None and not 0 < value < 1:
        raise CommandLineError(f"{option} is {value:g}; a share between 0 and 1 was expected")
    return value


def _depths(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() and 0 < int(word) < 2**53 for word in words):
        raise CommandLineError(f"-k/--top is '{text}'; whole numbers such as 10,100 were expected")
    return tuple(dict.fromkeys(int(word) for word in words))


def _provenance(text: str | None) -> Provenance | None:
    if text not in (None, "held-out", "out-of-bag", "trained-on"):
        raise CommandLineError(
            f"--values is '{text}'; held-out, out-of-bag or trained-on was expected"
        )
    return text  # type: ignore[return-value]


def _range(option: str, text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    expected = "a share such as 0.1 or a range such as 0.05..0.2"
    bounds = (
        given.parse_number(option, low, expected),
        given.parse_number(option, high if dots else low, expected),
    )
    if not 0 <= bounds[0] <= bounds[1] < 1:
        raise CommandLineError(f"{option} is '{text}'; {expected} was expected")
    return bounds


def _known(pos: str | None, unl: str | None) -> Known | None:
    """What is said of contamination; one set may be said to be clean by leaving it out."""
    from resvm_cli.evaluation.summary import Known

    if pos is None and unl is None:
        return None
    a = (0.0, 0.0) if pos is None else _range("--contamination-pos", pos)
    if unl == "estimate":
        return Known(a, None)
    if unl is None:
        raise CommandLineError(
            "--contamination-pos needs --contamination-unl B",
            "give the share of positives in U, a range of it, or estimate",
        )
    b = _range("--contamination-unl", unl)
    if a[1] + b[1] >= 1:
        raise CommandLineError(
            "the contaminations add up to 1 or more: P would be no richer in positives than U"
        )
    return Known(a, b)
