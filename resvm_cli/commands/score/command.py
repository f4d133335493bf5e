"""resvm score."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from resvm_cli.commands.score import json_output
from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import fold_options, option_group
from resvm_cli.options.running import Json, Quiet, command_run, output_option
from resvm_cli.options.training import data_option, method_option
from resvm_cli.options.values import offered, parse_choice, parse_number
from resvm_cli.report import terminal

if TYPE_CHECKING:
    from resvm_cli.commands.score.score import ScoreResult
    from resvm_cli.commands.score.summary import Known, Settings
    from resvm_cli.files.prediction_reader import Provenance
    from resvm_cli.report.plots import Kind

unlabeled_option = partial(typer.Option, rich_help_panel="Positive and unlabeled rows")
runs_option = partial(typer.Option, rich_help_panel="Repeated runs")


@option_group
class FigureOptions:
    """Which figures are computed, and how carefully."""

    threshold: Annotated[
        str | None,
        method_option(
            "-T",
            "--threshold",
            metavar="T",
            help="Positive above this decision value.",
            show_default="what the file's labels follow, else 0.5",
        ),
    ] = None
    top: Annotated[
        str,
        method_option(
            "-k",
            "--top",
            metavar="K,K",
            help="Depths at which precision, recall and enrichment are wanted.",
        ),
    ] = "10,100"
    prevalence: Annotated[
        float | None,
        method_option(
            metavar="P",
            help="The share of positives where it will be used: re-weights precision.",
            show_default="that of the file",
        ),
    ] = None
    bootstrap: Annotated[
        int,
        method_option(
            metavar="N",
            min=0,
            max=1_000_000,
            help="Resampled rankings for the 95 % intervals; 0 for none.",
        ),
    ] = 1000
    seed: Annotated[int, method_option(metavar="N", min=0, help="Of the bootstrap.")] = 0

    def settings(self) -> Settings:
        """The settings of the summary."""
        from resvm_cli.commands.score.summary import Settings

        prevalence = _share("--prevalence", self.prevalence)
        return Settings(_depths(self.top), prevalence, self.bootstrap, self.seed)


@option_group
class UnlabeledOptions:
    """What is known of rows that are positive or unlabeled."""

    pu: Annotated[
        bool,
        unlabeled_option(
            "--pu", help="Labels say positive or unlabeled, not positive or negative."
        ),
    ] = False
    contamination_pos: Annotated[
        str | None,
        unlabeled_option(
            metavar="A",
            help="Share of known positives that are negative: 0.1, or a range 0.05..0.2.",
        ),
    ] = None
    contamination_unl: Annotated[
        str | None,
        unlabeled_option(
            metavar="B",
            help="Share of unlabeled rows that are positive: a number, a range, or estimate.",
        ),
    ] = None
    values: Annotated[
        str | None,
        unlabeled_option(
            metavar="KIND",
            autocompletion=offered("held-out", "out-of-bag", "trained-on"),
            help="held-out, out-of-bag or trained-on, where the file does not say.",
        ),
    ] = None
    model: Annotated[
        str | None,
        unlabeled_option(
            metavar="DIR",
            help="The model that judged the rows of --labels: was it trained on them?",
        ),
    ] = None

    def known(self) -> Known | None:
        """What is known of contamination; a set that is left out is clean."""
        from resvm_cli.commands.score.summary import Known

        if self.contamination_pos is None and self.contamination_unl is None:
            return None
        of_pos = (0.0, 0.0)
        if self.contamination_pos is not None:
            of_pos = _range("--contamination-pos", self.contamination_pos)
        if self.contamination_unl == "estimate":
            return Known(of_pos, None)
        if self.contamination_unl is None:
            raise CommandLineError(
                "--contamination-pos needs --contamination-unl B",
                "give the share of positives in U, a range of it, or estimate",
            )
        of_unl = _range("--contamination-unl", self.contamination_unl)
        if of_pos[1] + of_unl[1] >= 1:
            raise CommandLineError(
                "the contaminations add up to 1 or more: P would be no richer in positives than U"
            )
        return Known(of_pos, of_unl)

    def provenance(self) -> Provenance | None:
        """Whether the model had seen the rows, None for what the file says."""
        kinds: tuple[Provenance, ...] = ("held-out", "out-of-bag", "trained-on")
        return None if self.values is None else parse_choice("--values", self.values, kinds)


@option_group
class OutputOptions:
    """Where scores go."""

    plot: Annotated[
        str | None,
        output_option(
            metavar="FILE",
            help="PR and ROC curves, or the critical differences (.png, .svg, .pdf).",
        ),
    ] = None
    html: Annotated[
        str | None,
        output_option(metavar="FILE", help="A page with curves and a threshold to move."),
    ] = None
    curve: Annotated[
        str | None, output_option(metavar="FILE", help="Every threshold as CSV (- is stdout).")
    ] = None
    json: Json = False
    quiet: Quiet = False


@fold_options
def score(
    *,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PREDICTIONS...", help="What predict wrote, or bare numbers (- is stdin)."
        ),
    ] = None,
    labels: Annotated[
        str | None, data_option(metavar="FILE", help="The rows' labels: a svmlight file or a list.")
    ] = None,
    positive_ids: Annotated[
        str | None,
        data_option(metavar="FILE", help="Instead of labels the ids of the positives, one a line."),
    ] = None,
    positive_label: Annotated[
        float | None,
        data_option(
            metavar="LABEL",
            help="Rows of this label are positive.",
            show_default="1, where the others are -1 or 0",
        ),
    ] = None,
    figures: FigureOptions,
    unlabeled: UnlabeledOptions,
    compare: Annotated[
        str | None,
        runs_option(
            metavar="FILE",
            help="Instead of predictions: CSV with data set, repetition, method, value.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        runs_option(
            metavar="METHOD",
            help="Tested to be greater than the others.",
            show_default="the best average rank",
        ),
    ] = None,
    outputs: OutputOptions,
) -> None:
    """How good are decision values? Areas, thresholds and screening figures, with intervals.

    With --pu as much as positive and unlabeled rows allow; several files side by side; with
    --compare tests over repeated runs.

    For example:

    - `resvm score test.pred --labels test.svm --html report.html`
    - `resvm score ranking.tsv --positive-ids known.txt --pu`
    - `resvm score --compare results.csv --plot differences.png`
    """
    from resvm_cli.report import plots

    kind = None if outputs.plot is None else plots.kind_of(outputs.plot)
    if compare is not None:
        predictions = files or labels or positive_ids or unlabeled.pu
        if predictions or outputs.html or outputs.curve:
            raise CommandLineError("--compare takes no prediction files, labels, --html or --curve")
        _compare(compare, reference, outputs, kind)
        return
    if not files:
        raise CommandLineError(
            "no prediction file is given",
            "resvm score test.pred --labels test.svm, or --compare results.csv",
        )
    if reference is not None:
        raise CommandLineError("--reference goes with --compare")
    if outputs.json and outputs.curve == "-":
        raise CommandLineError("--json and --curve - cannot both go to stdout")
    from resvm_cli.commands.score import score as job
    from resvm_cli.commands.score.scored_rows import ScoreRequest

    request = ScoreRequest(
        files=tuple(files),
        labels=labels,
        positive_ids=positive_ids,
        positive_label=positive_label,
        pu=unlabeled.pu,
        known=unlabeled.known(),
        threshold=_threshold(figures.threshold),
        provenance=unlabeled.provenance(),
        model=unlabeled.model,
        settings=figures.settings(),
        all_points=outputs.curve is not None,
        drawings=outputs.plot is not None or outputs.html is not None,
    )
    if "-" in files and not outputs.quiet:
        terminal.announce_stdin()
    with command_run(outputs.quiet) as run:
        result = job.score(request, run)
    _write(result, outputs, kind)


def _compare(path: str, reference: str | None, outputs: OutputOptions, kind: Kind | None) -> None:
    from resvm_cli.commands.score import report as score_table
    from resvm_cli.commands.score import score_plots
    from resvm_cli.commands.score.compare import compare
    from resvm_cli.files.atomic import output

    comparison = compare(path, reference)
    if outputs.plot is not None and kind is not None:
        with output(outputs.plot) as write:
            write(score_plots.critical_differences(comparison.overall, kind))
    if outputs.json:
        json_output.print_comparison(comparison)
    elif not outputs.quiet:
        score_table.show_comparison(comparison)


def _write(result: ScoreResult, outputs: OutputOptions, kind: Kind | None) -> None:
    from resvm_cli.commands.score import page as score_page
    from resvm_cli.commands.score import report as score_table
    from resvm_cli.commands.score import score_plots
    from resvm_cli.files.atomic import output

    if outputs.plot is not None and kind is not None:
        with output(outputs.plot) as write:
            write(score_plots.curves(result, kind))
    if outputs.html is not None:
        with output(outputs.html) as write:
            write(score_page.render(result, terminal.command_line()))
    if outputs.curve is not None:
        with output(outputs.curve) as write:
            for part in json_output.curve_lines(result):
                write(part)
    if outputs.json:
        json_output.print_scores(result)
    elif not outputs.quiet and outputs.curve != "-":
        score_table.show_scores(result)


def _threshold(text: str | None) -> float | None:
    if text is None:
        return None
    number = parse_number("-T/--threshold", text)
    if abs(number) == float("inf"):
        raise CommandLineError(f"-T/--threshold is '{text}'; a finite number was expected")
    return number


def _share(option: str, value: float | None) -> float | None:
    if value is not None and not 0 < value < 1:
        raise CommandLineError(f"{option} is {value:g}; a share between 0 and 1 was expected")
    return value


def _depths(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() and len(word) < 17 and 0 < int(word) < 2**53 for word in words):
        raise CommandLineError(f"-k/--top is '{text}'; whole numbers such as 10,100 were expected")
    return tuple(dict.fromkeys(int(word) for word in words))


def _range(option: str, text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    expected = "a share such as 0.1 or a range such as 0.05..0.2"
    bounds = (
        parse_number(option, low, expected),
        parse_number(option, high if dots else low, expected),
    )
    if not 0 <= bounds[0] <= bounds[1] < 1:
        raise CommandLineError(f"{option} is '{text}'; {expected} was expected")
    return bounds
