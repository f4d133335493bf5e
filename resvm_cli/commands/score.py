"""resvm score: evaluate decision values, with a table, JSON, curves as CSV and a plot.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, Any

from resvm_cli.cli import options as shared
from resvm_cli.cli import terminal
from resvm_cli.cli.option_groups import argument, expand_option_groups, option, option_group
from resvm_cli.data.streams import STDIN, as_unicode, name_of, same_source
from resvm_cli.errors import CommandLineError, DataError, listed
from resvm_cli.parameters import check_contamination

if TYPE_CHECKING:
    from resvm_cli.data.predictions import Predictions
    from resvm_cli.metrics.curves import Kind
    from resvm_cli.metrics.evaluation import Evaluation, Figures
    from resvm_cli.rows import BoolArray, FloatArray
    from resvm_cli.run import Run

CURVE_LINES = 100_000  # written at once
SHOWN_LABELS = 20  # in an error
BY_ORDER = "rows are joined by id if both files have ids; to join by order, remove the ids from one"
ASSUMED = (
    "known positives were drawn at random from all positives",
    "values are held-out or out-of-bag: no row was scored by a model trained on it",
    "contamination of P and of U is as given, and independent of the score",
)
# (name of the figure, label in tables)
AREAS = (
    ("average_precision", "average precision"),
    ("roc_auc", "ROC AUC"),
    ("pr_auc_trapezoid", "PR AUC, trapezoidal"),
    ("bedroc_20", "BEDROC, alpha 20"),
    ("bedroc_80.5", "BEDROC, alpha 80.5"),
)
AT_THRESHOLD = (("precision", "precision"), ("recall", "recall"), ("f1", "F1"), ("mcc", "MCC"))
PU = (
    ("roc_auc_pu", "ROC AUC, P against U"),
    ("pu_score", "pu_score at T"),
    ("pu_score_max", "pu_score, largest at any T"),
    ("recall", "recall of known positives at T"),
    ("fraction_positive", "fraction predicted positive at T"),
    ("fraction_positive_unlabeled", "fraction of U predicted positive at T"),
)
CORRECTED = (
    ("corrected_average_precision", "average precision"),
    ("corrected_roc_auc", "ROC AUC"),
    ("corrected_precision", "precision at T"),
    ("corrected_recall", "recall at T"),
    ("corrected_fpr", "false-positive rate at T"),
    ("corrected_f1", "F1 at T"),
)
COMPARED = dict([*AREAS, *PU])  # labels of figures whose differences are shown

fraction_option = partial(option, panel="Positive and unlabeled rows", min=0, max=1)


@option_group
class ScoreOptions:
    """The labels, and which figures to compute."""

    labels: str | None = shared.data_option(
        "--labels FILE", "Labels of the predicted rows: an svmlight file, or one label per line."
    )
    positive_ids: str | None = shared.data_option(
        "--positive-ids FILE", "Ids of the positives, one per line, instead of labels."
    )
    positive_label: float | None = shared.data_option(
        "--positive-label LABEL",
        "Rows with this label are positive.",
        show_default="1, if all other labels are -1 or 0",
    )
    threshold: float | None = shared.method_option(
        "-T, --threshold T",
        "Rows with a decision value above T are predicted positive.",
        show_default="implied by the file's labels, else 0.5",
    )
    top: str = shared.method_option(
        "-k, --top K,K",
        "Report precision, recall and enrichment in the top K rows.",
        default="10,100",
    )
    bootstrap: int = shared.method_option(
        "--bootstrap N",
        "Bootstrap replicates for the 95% intervals; 0 for no intervals.",
        default=1000,
        min=0,
        max=1_000_000,
    )
    seed: int = shared.method_option("--seed N", "Random seed for the bootstrap.", default=0, min=0)
    pu: bool = option(
        "--pu",
        "Rows not labeled positive are unlabeled, not negative.",
        panel="Positive and unlabeled rows",
    )
    contamination_pos: float | None = fraction_option(
        "--contamination-pos A",
        "Fraction of known positives that are negative.",
        show_default="0, if --contamination-unl is given",
    )
    contamination_unl: float | None = fraction_option(
        "--contamination-unl B", "Fraction of unlabeled rows that are positive."
    )

    @property
    def labels_name(self) -> str:
        """The name of the file that says which rows are positive."""
        return name_of(self.labels or self.positive_ids or "")

    def depths(self) -> tuple[int, ...]:
        """Return the depths for precision, recall and enrichment."""
        words = [word.strip() for word in self.top.split(",") if word.strip()]
        if not all(word.isdecimal() and len(word) < 17 and 0 < int(word) < 2**53 for word in words):
            raise CommandLineError(
                f"-k/--top must be positive integers such as 10,100, got '{self.top}'"
            )
        return tuple(dict.fromkeys(int(word) for word in words))

    def check(self, files: list[str]) -> None:
        """Reject missing or contradictory options before any file is read."""
        if (self.labels is None) == (self.positive_ids is None):
            raise CommandLineError(
                "give either --labels or --positive-ids", "for example --labels test.svm"
            )
        if [*files, self.labels or self.positive_ids].count(STDIN) > 1:
            raise CommandLineError("only one input can be stdin")
        if self.labels and any(same_source(self.labels, file) for file in files):
            raise CommandLineError(
                f"--labels is also one of the prediction files: {name_of(self.labels)}",
                "give the file that was predicted, which has the true labels: --labels test.svm",
            )
        if self.positive_label is not None and self.positive_ids is not None:
            raise CommandLineError("--positive-label requires --labels")
        if self.threshold is not None and not isfinite(self.threshold):
            raise CommandLineError("-T/--threshold must be a finite number")
        self.depths()
        if self.contamination_pos is None and self.contamination_unl is None:
            return
        if not self.pu:
            raise CommandLineError(
                "--contamination-pos and --contamination-unl require --pu",
                "true labels need no correction",
            )
        if self.contamination_unl is None:
            raise CommandLineError("--contamination-pos requires --contamination-unl B")
        check_contamination(self.contamination_pos, self.contamination_unl)


@expand_option_groups
def score(
    *,
    files: list[str] = argument(
        "PREDICTIONS...", "Output of predict or rank, or one number per line (- is stdin)."
    ),
    options: ScoreOptions,
    plot: str | None = shared.output_option(
        "--plot FILE", "Plot PR and ROC curves (.png, .svg, .pdf)."
    ),
    curve: str | None = shared.output_option(
        "--curve FILE",
        "Write precision, recall and other rates at every threshold as CSV (- is stdout).",
    ),
    json: bool = shared.JSON,
    quiet: bool = shared.QUIET,
) -> None:
    """Evaluate decision values: PR and ROC AUC, precision, recall and more, with intervals.

    With --pu, report metrics for positive and unlabeled rows. Several files are shown side by side.

    For example:

    - `resvm score test.pred --labels test.svm --plot curves.png`
    - `resvm score ranking.tsv --positive-ids known.txt --pu`
    """
    kind = None if plot is None else plot_kind(plot)
    if json and curve == "-":
        raise CommandLineError("--json and --curve - cannot both write to stdout")
    options.check(files)
    from resvm_cli.data.atomic import output

    if "-" in files and not quiet:
        terminal.announce_stdin()
    with shared.command_run(quiet) as run:
        evaluations, warnings = evaluate(files, options, run)
    if plot is not None and kind is not None:
        from resvm_cli.metrics.curves import plot_curves

        with output(plot) as write:
            write(plot_curves(evaluations, kind, options.bootstrap, options.seed, pu=options.pu))
    if curve is not None:
        with output(curve) as write:
            for part in curve_lines(evaluations):
                write(part)
    assumed = ASSUMED[: 0 if not options.pu else 2 if options.contamination_unl is None else 3]
    if json:
        content = {
            "labels": options.labels_name,
            "pu": options.pu,
            "bootstrap": options.bootstrap,
            "seed": options.seed,
            "assumptions": list(assumed),
            "warnings": warnings,
            "files": [_flat(file) for file in evaluations],
        }
        terminal.print_json("score", content)
    elif not quiet and curve != "-":
        text = report(evaluations, options)
        if assumed:
            text += "\nassumed: " + "\n         ".join(assumed) + "\n"
        text += "".join(f"warning: {terminal.harmless(warning)}\n" for warning in warnings)
        terminal.print_data(text)
    else:
        for warning in warnings:
            terminal.say_row("warning", terminal.in_options(warning))


def plot_kind(path: str, option: str = "--plot") -> Kind:
    """Return the format given by a file's extension; fail early if matplotlib is not installed."""
    ending = path.lower().rpartition(".")[2]
    if ending not in ("png", "svg", "pdf"):
        raise CommandLineError(f"{option} must end in .png, .svg or .pdf, got '{path}'")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise CommandLineError(
            f"{option} needs matplotlib, which is not installed",
            "pip install 'resvm-cli[plot]', or pip install matplotlib",
        ) from None
    return ending  # type: ignore[return-value]


def evaluate(
    paths: list[str], options: ScoreOptions, run: Run
) -> tuple[list[Evaluation], list[str]]:
    """Read the files, join them with the labels, and compute the figures; also return warnings."""
    from resvm_cli.metrics import evaluation
    from resvm_cli.metrics.intervals import paired_differences
    from resvm_cli.metrics.ranking import ScoredLabels

    positive, predictions, warnings = read_rows(paths, options, run)
    replicates = options.bootstrap, options.seed
    known = None
    if options.contamination_unl is not None:
        known = evaluation.Contamination(
            options.contamination_pos or 0.0, options.contamination_unl
        )
    files: list[Evaluation] = []
    for number, file in enumerate(predictions):
        run.progress("scoring", number, len(predictions))
        if file.ranked and options.threshold is None and not options.pu:
            warnings.append(
                f"{file.name}: a ranking has no threshold, so figures at T = 0.5 mean little; set"
                " one with -T"
            )
        threshold, source = file.implied_threshold()
        if options.threshold is not None:
            threshold, source = options.threshold, "-T"
        elif options.pu and file.ranked:  # mean values, for which 0.5 has no meaning
            threshold, source = nan, "a ranking has no threshold; set one with -T"
        scored = positive, file.values, threshold
        if options.pu:
            figures = evaluation.unlabeled_figures(*scored, known, *replicates)
        else:
            figures = evaluation.labeled_figures(*scored, options.depths(), *replicates)
        differences = {}
        if number:
            areas = evaluation.area_of_unlabeled if options.pu else ScoredLabels.areas
            first = predictions[0].values
            differences = paired_differences(positive, first, file.values, areas, *replicates)
        files.append(evaluation.Evaluation(file.name, *scored, source, figures, differences))
    return files, warnings


def read_rows(
    paths: list[str], options: ScoreOptions, run: Run
) -> tuple[BoolArray, list[Predictions], list[str]]:
    """Return which rows are positive, all predictions in the same row order, and warnings."""
    from resvm_cli.data.predictions import read_predictions
    from resvm_cli.data.row_lists import read_labels

    ids: list[str] = []
    labels = None if options.labels is None else read_labels(options.labels, ids)
    files = []
    for number, path in enumerate(paths):
        run.progress("reading", number, len(paths))
        with_ids = labels is None or any(ids)
        files.append(read_predictions(path, with_ids=with_ids, require_ids=labels is None))
    warnings: list[str] = []
    name = options.labels_name
    if labels is not None:
        files = [_in_order_of_labels(file, ids, name) for file in files]
        positive = find_positive(labels, options.positive_label, name)
    else:
        first = files[0]
        positive = _find_by_id(options.positive_ids or "", first, warnings)
        files = [first, *(file.in_order_of(first.ids or [], first.name) for file in files[1:])]
    if not positive.any():
        raise DataError(f"{name}: no row is positive")
    if positive.all():
        other = "unlabeled" if options.pu else "negative"
        raise DataError(f"{name}: every row is positive; {other} rows are needed too")
    return positive, files, warnings


def _in_order_of_labels(file: Predictions, ids: list[str], name: str) -> Predictions:
    """Return the file with rows in the order of the labels, matched by id if both have ids."""
    if file.ranked:
        raise DataError(
            f"{file.name} is a ranking: its rows are not in the order of {name}",
            "join by id: list the ids of the positives in --positive-ids FILE (rows without an id"
            " are identified by their numbers)",
        )
    if any(one and other and one != other for one, other in zip(file.ids or [], ids, strict=False)):
        # JSON escapes ids that are not UTF-8
        plain = replace(file, ids=list(map(as_unicode, file.ids or [])))
        return plain.in_order_of(list(map(as_unicode, ids)), name, BY_ORDER)
    longer = len(file.values) - len(ids)
    if longer:
        which = file.name if longer > 0 else name
        raise DataError(
            f"{file.name} has {len(file.values):,} predictions but {name} has"
            f" {len(ids):,} labels: {which} is longer by {abs(longer):,}",
            "both must have the same rows in the same order; or use --positive-ids",
        )
    return file


def find_positive(labels: FloatArray, positive_label: float | None, name: str) -> BoolArray:
    """Return which rows have the positive label; by default 1, if all others are -1 or 0."""
    from resvm_cli.data.svmlight import format_number
    from resvm_cli.rows import distinct

    present = distinct(labels)
    labels_present = listed([format_number(label) for label in present], SHOWN_LABELS)
    if positive_label is None:
        names = set(present.tolist())
        if not (names <= {1.0, -1.0} or names <= {1.0, 0.0}):
            raise DataError(
                f"{name}: which label is positive? The labels are {labels_present}",
                "add --positive-label LABEL; all other labels are then negative",
            )
        positive_label = 1.0
    elif positive_label not in present:
        raise DataError(
            f"{name}: no row has the label {format_number(positive_label)}",
            f"the labels are {labels_present}",
        )
    positive: BoolArray = labels == positive_label
    return positive


def _find_by_id(path: str, file: Predictions, warnings: list[str]) -> BoolArray:
    """Return which rows have a listed id; warn of ids that are not there, or several times."""
    import numpy as np

    from resvm_cli.data.row_lists import read_known_ids

    known, name, ids = set(read_known_ids(path)), name_of(path), file.ids or []
    missing = known - set(ids)
    if len(missing) == len(known):
        raise DataError(
            f"none of the {len(known):,} ids in {name} is in {file.name}",
            f"{file.name} has {', '.join(ids[:3])}, ...; {name} has {', '.join(sorted(known)[:3])}",
        )
    if missing:
        warnings.append(
            f"{len(missing):,} of the {len(known):,} ids in {name} are not in {file.name}, so"
            f" recall ignores them: {listed(sorted(missing), 3)}"
        )
    repeated = [(row_id, n) for row_id, n in Counter(ids).items() if n > 1 and row_id in known]
    if repeated:
        row_id, count = repeated[0]
        more = f", and {len(repeated) - 1:,} more ids occur several times" if repeated[1:] else ""
        warnings.append(
            f"{file.name}: {count:,} rows have the id '{row_id}'{more}; each row counts as a"
            " positive"
        )
    return np.array([row_id in known for row_id in ids])


class _Table:
    """Lines with one cell per file, and text beside it if there is only one file."""

    def __init__(self, files: Sequence[Evaluation]) -> None:
        self.files = files
        self._lines: list[tuple[str, list[str], str]] = []

    def title(self, text: str) -> None:
        self._lines.append((text, [], ""))

    def line(self, label: str, cells: Sequence[str], beside: str = "") -> None:
        self._lines.append((f"  {label}", list(cells), beside if len(self.files) == 1 else ""))

    def figures(self, names: Sequence[tuple[str, str]]) -> None:
        for name, label in names:
            cells = [_number(_value(file.figures, name)) for file in self.files]
            if any(cells):
                interval = self.files[0].figures[name]
                low, high = getattr(interval, "low", None), getattr(interval, "high", None)
                self.line(label, cells, "" if low is None else f"{low:.4f} to {high:.4f}")

    def text(self) -> str:
        filled = [(label, cells) for label, cells, _ in self._lines if cells]
        first = max(len(label) for label, _ in filled) + 2
        columns = zip(*(cells for _, cells in filled), strict=True)
        widths = [2 + max(map(len, column)) for column in columns]
        text = ""
        for label, cells, beside in self._lines:
            shown = "".join(map(str.rjust, cells, widths))
            text += f"{label:<{first}}{shown}  {beside}".rstrip() if cells else f"\n{label}"
            text += "\n"
        return text


def _value(figures: Figures, name: str) -> Any:
    figure = figures.get(name)
    return getattr(figure, "value", figure)


def _number(value: float | None) -> str:
    if value is None or value != value:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def report(files: Sequence[Evaluation], options: ScoreOptions) -> str:
    """Return the table of all figures."""
    files = [replace(file, name=terminal.harmless(file.name)) for file in files]
    table, figures, several = _Table(files), files[0].figures, len(files) > 1
    if several:
        table.line("", [file.name for file in files])
    cells = ["none" if isnan(file.threshold) else f"{file.threshold:.6g}" for file in files]
    source = files[0].threshold_from
    thresholds = cells, source if cells[0] == "none" else f"from {source}"
    intervals = ""
    if options.bootstrap and not several:
        intervals = f" (95% intervals from {options.bootstrap:,} bootstrap replicates)"
    if options.pu:
        table.title(f"from positive and unlabeled rows{intervals}")
        table.figures(PU)
        table.line("T", *thresholds)
        if "contamination_pos" in figures:
            table.title(
                f"corrected for contamination {figures['contamination_pos']:.3g} of P and"
                f" {figures['contamination_unl']:.3g} of U"
            )
            table.figures(CORRECTED)
    else:
        table.title(f"areas{intervals}")
        table.figures(AREAS)
        table.title("at the threshold")
        table.line("T", *thresholds)
        table.figures(AT_THRESHOLD)
        table.title("screening")
        for depth in [name.partition("_at_")[2] for name in figures if "enrichment_at_" in name]:
            label = f"enrichment in the top {depth.replace('_percent', '%')}"
            if several:
                table.figures([(f"enrichment_at_{depth}", label)])
                continue
            precision, recall, enrichment = (
                _value(figures, f"{name}_at_{depth}")
                for name in ("precision", "recall", "enrichment")
            )
            beside = f"precision {precision:.4f}, recall {recall:.4f}"
            table.line(label, [f"{enrichment:.2f}"], beside)
    if several:
        table.title(f"difference from {files[0].name} (paired bootstrap)")
        for name in files[1].differences:
            compared = [file.differences[name] for file in files[1:]]
            table.line(COMPARED[name], ["", *(f"{each.value:+.4f}" for each in compared)])
            bounds = [f"{each.low:+.4f} to {each.high:+.4f}" for each in compared]
            table.line("  95%", ["", *bounds])
    labels = terminal.harmless(options.labels_name)
    heading = labels if several else f"{files[0].name} against {labels}"
    other = "unlabeled" if options.pu else "negative"
    n_other = figures["n_unlabeled" if options.pu else "n_negatives"]
    text = f"{heading}: {figures['n_positives']:,} positive, {n_other:,} {other} rows\n"
    text += table.text()
    if not options.pu and not several:
        tp, fp, fn, tn = (f"{figures[name]:,}" for name in ("tp", "fp", "fn", "tn"))
        width = 2 + max(len("predicted +"), *map(len, (tp, fp, fn, tn)))
        rows = (("", "positive", "negative"), ("predicted +", tp, fp), ("predicted -", fn, tn))
        text += "\n" + "".join(f"{name:>12}{a:>{width}}{b:>{width}}\n" for name, a, b in rows)
    for file in files:
        if file.degenerate:
            text += f"\n{file.name}: degenerate: {file.degenerate}\n"
    return text


def _flat(file: Evaluation) -> dict[str, Any]:
    """Return every figure by name, each followed by its bounds, as plain data for JSON."""
    flat: dict[str, Any] = {
        "file": file.name,
        "degenerate": file.degenerate,
        "threshold_from": file.threshold_from,
    }
    differences = {f"{name}_minus_first": each for name, each in file.differences.items()}
    for name, figure in {**file.figures, **differences}.items():
        flat[name] = getattr(figure, "value", figure)
        if not isinstance(figure, float | int):
            flat[f"{name}_low"], flat[f"{name}_high"] = figure.low, figure.high
    return flat


def curve_lines(files: Sequence[Evaluation]) -> Iterator[bytes]:
    """Yield every threshold as CSV; with several files, the first column names the file."""
    from resvm_cli.metrics.curves import Points

    several = len(files) > 1
    header = "threshold,precision,recall,fpr,tp,fp\n"
    yield (f"file,{header}" if several else header).encode()
    for file in files:
        points = Points.from_scores(file.positive, file.scores)
        name = '"' + file.name.replace('"', '""') + '",' if several else ""
        columns = [points.thresholds, points.precision, points.recall, points.fpr]
        columns += [points.tp.astype("int64"), points.fp.astype("int64")]
        for start in range(0, len(points.thresholds), CURVE_LINES):
            texts = [map(repr, column[start : start + CURVE_LINES].tolist()) for column in columns]
            lines = map(",".join, zip(*texts, strict=True))
            yield "".join(f"{name}{line}\n" for line in lines).encode("utf-8", "surrogateescape")
