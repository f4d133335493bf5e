"""The options of resvm score."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from resvm_cli.errors import CommandLineError
from resvm_cli.options import shared
from resvm_cli.options.option_groups import argument, fold_options, option, option_group
from resvm_cli.options.values import parse_number
from resvm_cli.report import terminal

if TYPE_CHECKING:
    from resvm_cli.commands.score.score import ScoreResult
    from resvm_cli.metrics.contamination_correction import KnownContamination
    from resvm_cli.report.charts import Kind

unlabeled_option = partial(option, panel="Positive and unlabeled rows")


@option_group
class UnlabeledOptions:
    """What is known about positive and unlabeled rows."""

    pu: bool = unlabeled_option("--pu", "Rows not labeled positive are unlabeled, not negative.")
    contamination_pos: str | None = unlabeled_option(
        "--contamination-pos A",
        "Fraction of known positives that are negative: 0.1, or a range 0.05..0.2.",
    )
    contamination_unl: str | None = unlabeled_option(
        "--contamination-unl B",
        "Fraction of unlabeled rows that are positive: a number, a range, or estimate.",
    )

    def known(self) -> KnownContamination | None:
        """Return the known contamination, or None; contamination of P defaults to 0."""
        from resvm_cli.metrics.contamination_correction import KnownContamination

        if self.contamination_pos is None and self.contamination_unl is None:
            return None
        of_pos = (0.0, 0.0)
        if self.contamination_pos is not None:
            of_pos = _range("--contamination-pos", self.contamination_pos)
        if self.contamination_unl == "estimate":
            return KnownContamination(of_pos, None)
        if self.contamination_unl is None:
            raise CommandLineError(
                "--contamination-pos requires --contamination-unl B",
                "give the fraction of positives in U, a range, or estimate",
            )
        of_unl = _range("--contamination-unl", self.contamination_unl)
        if of_pos[1] + of_unl[1] >= 1:
            raise CommandLineError(
                "--contamination-pos and --contamination-unl must add up to less than 1",
                "otherwise P would contain no larger fraction of positives than U",
            )
        return KnownContamination(of_pos, of_unl)


@option_group
class OutputOptions:
    """Where results are written."""

    plot: str | None = shared.output_option(
        "--plot FILE", "Plot PR and ROC curves (.png, .svg, .pdf)."
    )
    html: str | None = shared.output_option(
        "--html FILE", "Write an HTML page with curves and an adjustable threshold."
    )
    curve: str | None = shared.output_option(
        "--curve FILE",
        "Write precision, recall and other rates at every threshold as CSV (- is stdout).",
    )
    json: bool = shared.JSON
    quiet: bool = shared.QUIET


@fold_options
def score(
    *,
    files: list[str] = argument(
        "PREDICTIONS...", "Output of predict or rank, or one number per line (- is stdin)."
    ),
    labels: str | None = shared.data_option(
        "--labels FILE", "Labels: an svmlight file, or one label per line."
    ),
    positive_ids: str | None = shared.data_option(
        "--positive-ids FILE", "Ids of the positives, one per line, instead of labels."
    ),
    allow_missing: bool = shared.data_option(
        "--allow-missing", "Continue if some ids in --positive-ids are not in the predictions."
    ),
    positive_label: float | None = shared.data_option(
        "--positive-label LABEL",
        "Rows with this label are positive.",
        show_default="1, if all other labels are -1 or 0",
    ),
    threshold: str | None = shared.method_option(
        "-T, --threshold T",
        "Rows with a decision value above T are predicted positive.",
        show_default="implied by the file's labels, else 0.5",
    ),
    top: str = shared.method_option(
        "-k, --top K,K",
        "Report precision, recall and enrichment in the top K rows.",
        default="10,100",
    ),
    bootstrap: int = shared.method_option(
        "--bootstrap N",
        "Bootstrap replicates for the 95 % intervals; 0 for no intervals.",
        default=1000,
        min=0,
        max=1_000_000,
    ),
    seed: int = shared.method_option(
        "--seed N", "Random seed for the bootstrap.", default=0, min=0
    ),
    unlabeled: UnlabeledOptions,
    outputs: OutputOptions,
) -> None:
    """Evaluate decision values: PR and ROC AUC, precision, recall and more, with intervals.

    With --pu, report metrics for positive and unlabeled rows. Several files are shown side by side.

    For example:

    - `resvm score test.pred --labels test.svm --html report.html`
    - `resvm score ranking.tsv --positive-ids known.txt --pu`
    """
    from resvm_cli.report import charts

    kind = None if outputs.plot is None else charts.kind_of(outputs.plot)
    if outputs.json and outputs.curve == "-":
        raise CommandLineError("--json and --curve - cannot both write to stdout")
    from resvm_cli.commands.score import score as job
    from resvm_cli.commands.score.score import ScoreRequest

    request = ScoreRequest(
        files=tuple(files),
        labels=labels,
        positive_ids=positive_ids,
        allow_missing=allow_missing,
        positive_label=positive_label,
        pu=unlabeled.pu,
        known=unlabeled.known(),
        threshold=_threshold(threshold),
        top=_depths(top),
        n_replicates=bootstrap,
        seed=seed,
    )
    if "-" in files and not outputs.quiet:
        terminal.announce_stdin()
    with shared.command_run(outputs.quiet) as run:
        result = job.score(request, run)
    _write(result, outputs, kind)


def _write(result: ScoreResult, outputs: OutputOptions, kind: Kind | None) -> None:
    from resvm_cli.commands.score import report
    from resvm_cli.files.atomic import output

    if outputs.plot is not None and kind is not None:
        with output(outputs.plot) as write:
            write(report.plot_curves(result, kind))
    if outputs.html is not None:
        with output(outputs.html) as write:
            write(report.render_page(result, terminal.command_line()))
    if outputs.curve is not None:
        with output(outputs.curve) as write:
            for part in report.curve_lines(result):
                write(part)
    if outputs.json:
        terminal.print_json("score", report.plain_data(result))
    elif not outputs.quiet and outputs.curve != "-":
        report.show_scores(result)
    else:
        for warning in result.warnings:
            terminal.note(warning)


def _threshold(text: str | None) -> float | None:
    if text is None:
        return None
    number = parse_number("-T/--threshold", text)
    if abs(number) == float("inf"):
        raise CommandLineError(f"-T/--threshold must be a finite number, got '{text}'")
    return number


def _depths(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() and len(word) < 17 and 0 < int(word) < 2**53 for word in words):
        raise CommandLineError(f"-k/--top must be positive integers such as 10,100, got '{text}'")
    return tuple(dict.fromkeys(int(word) for word in words))


def _range(option: str, text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    expected = "a fraction such as 0.1 or a range such as 0.05..0.2"
    start, end = (parse_number(option, one, expected) for one in (low, high if dots else low))
    if not 0 <= start <= end < 1:
        raise CommandLineError(f"{option} must be {expected}, got '{text}'")
    return start, end
