"""resvm score: evaluate decision values, with a table, JSON, curves as CSV and a plot.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, Any

from resvm_cli.cli import options as shared
from resvm_cli.cli import terminal
from resvm_cli.cli.option_groups import argument, expand_option_groups, option, option_group
from resvm_cli.data.streams import STDIN, name_of, same_source
from resvm_cli.errors import CommandLineError, DataError, listed
from resvm_cli.parameters import check_contamination

if TYPE_CHECKING:
    from resvm_cli.data.predictions import Predictions
    from resvm_cli.metrics.curves import Kind
    from resvm_cli.metrics.evaluation import Evaluation
    from resvm_cli.rows import BoolArray, FloatArray
    from resvm_cli.run import Run

CURVE_LINES = 100_000  # written at once
SHOWN_LABELS = 20  # in an error
ASSUMED = (
    "known positives were drawn at random from all positives",
    "values are held-out or out-of-bag: no row was scored by a model trained on it",
    "contamination of P and of U is as given, and independent of the score",
)
# (name of the figure, label in the report)
AREAS = (("average_precision", "average precision"), ("roc_auc", "ROC AUC"))
MORE_AREAS = (
    ("pr_auc_trapezoid", "PR AUC, trapezoidal"),
    ("bedroc_20", "BEDROC, alpha 20"),
    ("bedroc_80.5", "BEDROC, alpha 80.5"),
)
AT_THRESHOLD = (("precision", "precision"), ("recall", "recall"))
MORE_AT_THRESHOLD = (("f1", "F1"), ("mcc", "MCC"))
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

fraction_option = partial(option, panel="Positive and unlabeled rows", min=0, max=1)


@option_group
class ScoreOptions:
    """The labels, and which figures to compute."""

    labels: str | None = shared.data_option(
        "--labels FILE",
        "Labels of the predicted rows: a table with --label-column, an svmlight file, or one label"
        " per line. If both files have ids, rows are joined by id; otherwise, by order.",
    )
    positive_ids: str | None = shared.data_option(
        "--positive-ids FILE", "Ids of the positives, one per line, instead of labels."
    )
    positive_label: list[str] | None = shared.data_option(
        "--positive-label LABEL",
        "Rows with this label are positive (may be repeated).",
        show_default="1, if all other labels are -1 or 0",
    )
    label_column: str | None = shared.column_option(
        "--label-column NAME", "With a table: the column with the labels."
    )
    id_column: str | None = shared.column_option(
        "--id-column NAME",
        "With a table: the column with the row ids.",
        show_default="id, if there is one",
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

    all_figures: bool = shared.output_option("--all", "Show all figures.")

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
        for name in ("positive_label", "label_column"):
            if getattr(self, name) and self.labels is None:
                raise CommandLineError(f"--{name.replace('_', '-')} requires --labels")
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

    With --pu, report metrics for positive and unlabeled rows. --all or --json gives all figures.

    For example:

    - `resvm score test.pred --labels test.svm --plot curves.png`
    - `resvm score pred.tsv --labels truth.csv --label-column truth --id-column patient`
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
        text = "\n".join(report(file, options) for file in evaluations)
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

    rows, warnings = read_rows(paths, options, run)
    replicates = options.bootstrap, options.seed
    known = None
    if options.contamination_unl is not None:
        known = evaluation.Contamination(
            options.contamination_pos or 0.0, options.contamination_unl
        )
    files: list[Evaluation] = []
    for number, (positive, file) in enumerate(rows):
        run.progress("scoring", number, len(rows))
        threshold, source = file.implied_threshold()
        if options.threshold is not None:
            threshold, source = options.threshold, "-T"
        elif file.ranked:
            threshold, source = nan, "a ranking has no threshold; set one with -T"
        scored = positive, file.values, threshold
        if options.pu:
            figures = evaluation.unlabeled_figures(*scored, known, *replicates)
        else:
            figures = evaluation.labeled_figures(*scored, options.depths(), *replicates)
        files.append(evaluation.Evaluation(file.name, *scored, source, figures))
    return files, warnings


def read_rows(
    paths: list[str], options: ScoreOptions, run: Run
) -> tuple[list[tuple[BoolArray, Predictions]], list[str]]:
    """Return for each file which rows are positive, and its predictions; also return warnings."""
    from resvm_cli.data.predictions import read_predictions
    from resvm_cli.data.row_lists import read_labels

    name, warnings, rows = options.labels_name, list[str](), []
    if options.labels is not None:
        labels, ids = read_labels(options.labels, options.label_column, options.id_column)
        positive = find_positive(labels, options.positive_label or [], name)
    for number, path in enumerate(paths):
        run.progress("reading", number, len(paths))
        by_list = options.labels is None
        file = read_predictions(
            path,
            with_ids=by_list or any(ids) or options.label_column is not None,
            require_ids=by_list or options.id_column is not None,
            id_column=options.id_column,
        )
        if by_list:
            found = _find_by_id(options.positive_ids or "", file, warnings)
        else:
            if file.ids and options.label_column and not any(ids):
                raise DataError(
                    f"{name}: which column has the ids? {file.name} has ids to join by",
                    "name it with --id-column",
                )
            found = positive[file.places_in(ids, name, warnings)]
        if found.all() or not found.any():
            which = "every" if found.any() else "no"
            other = "unlabeled" if options.pu else "negative"
            needed = f"; {other} rows are needed too" if found.any() else ""
            raise DataError(f"{name}: {which} row is positive{needed}")
        rows.append((found, file))
    return rows, warnings


def find_positive(labels: FloatArray | list[str], wanted: list[str], name: str) -> BoolArray:
    """Return which rows have a positive label; by default 1, if all others are -1 or 0."""
    import numpy as np

    from resvm_cli.data.fields import class_of
    from resvm_cli.data.svmlight import format_number
    from resvm_cli.rows import distinct

    numbers = None if isinstance(labels, list) else distinct(labels)
    present = list(dict.fromkeys(labels)) if numbers is None else [*map(format_number, numbers)]
    shown = f"labels are {listed(present, SHOWN_LABELS)}"
    if not wanted and not any(set(present) <= {"1", other} for other in ("-1", "0")):
        raise DataError(
            f"{name}: which label is positive? The {shown}",
            "add --positive-label LABEL; all other labels are then negative",
        )
    read_class = class_of(wanted or ["1"], ())
    found = np.array([read_class(label) == 1 for label in present])
    if wanted and not found.any():
        raise DataError(f"{name}: no row has the label {' or '.join(wanted)}", f"the {shown}")
    if numbers is not None:
        return np.isin(labels, numbers[found])
    positive = {label for label, is_positive in zip(present, found, strict=True) if is_positive}
    return np.array([label in positive for label in labels])


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


def _number(value: Any) -> str:
    return "" if value is None or value != value else f"{value:.4f}"


def report(file: Evaluation, options: ScoreOptions) -> str:
    """Return the figures of a file as text: those most people read, or all of them."""
    figures, lines = file.figures, list[tuple[str, str, str]]()
    more = options.all_figures

    def add(title: str, names: Sequence[tuple[str, str]]) -> None:
        lines.append((title, "", ""))
        for name, label in names:
            figure = figures.get(name)
            if value := _number(getattr(figure, "value", figure)):
                low, high = getattr(figure, "low", None), getattr(figure, "high", None)
                bounds = "" if low is None else f"{low:.4f} to {high:.4f}"
                lines.append((f"  {label}", value, bounds))

    intervals = " (95% intervals)" if options.bootstrap else ""
    source = file.threshold_from
    threshold = source if isnan(file.threshold) else f"T = {file.threshold:.6g}, from {source}"
    if options.pu:
        add(f"from positive and unlabeled rows{intervals}; {threshold}", PU)
        if "contamination_pos" in figures:
            fractions = (figures[f"contamination_{name}"] for name in ("pos", "unl"))
            add(
                "corrected for contamination {:.3g} of P, {:.3g} of U".format(*fractions), CORRECTED
            )
    else:
        add(f"all thresholds{intervals}", AREAS + MORE_AREAS * more)
        add(f"at the threshold: {threshold}", AT_THRESHOLD + MORE_AT_THRESHOLD * more)
        for depth in [name.partition("_at_")[2] for name in figures if "enrichment_at_" in name]:
            if more or "percent" not in depth:
                names = ("precision", "recall", "enrichment")[: 3 if more else 2]
                title = f"in the top {depth.replace('_percent', '%')}"
                add(title, [(f"{name}_at_{depth}", name) for name in names])
    name, labels = map(terminal.harmless, (file.name, options.labels_name))
    other = "unlabeled" if options.pu else "negative"
    n_other = figures["n_unlabeled" if options.pu else "n_negatives"]
    counts = f"{figures['n_positives']:,} positive, {n_other:,} {other} rows"
    text = f"{name} against {labels}: {counts}\n"
    width = max(len(label) for label, value, _ in lines if value) + 2
    for label, value, beside in lines:
        text += f"{label:<{width}}{value}  {beside}".rstrip() if value else f"\n{label}"
        text += "\n"
    if not options.pu and not isnan(file.threshold):
        tp, fp, fn, tn = (f"{figures[name]:,}" for name in ("tp", "fp", "fn", "tn"))
        rows = (("", "positive", "negative"), ("predicted +", tp, fp), ("predicted -", fn, tn))
        text += "\n" + "".join(f"{line}\n" for line in terminal.aligned(rows))
    if file.degenerate:
        text += f"\n{name}: degenerate: {file.degenerate}\n"
    return text


def _flat(file: Evaluation) -> dict[str, Any]:
    """Return every figure by name, each followed by its bounds, as plain data for JSON."""
    flat: dict[str, Any] = {
        "file": file.name,
        "degenerate": file.degenerate,
        "threshold_from": file.threshold_from,
    }
    for name, figure in file.figures.items():
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
