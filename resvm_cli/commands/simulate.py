"""resvm simulate: draw P, U and test files with known classes from labeled or synthetic data.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from resvm_cli.errors import CommandLineError
from resvm_cli.options import shared
from resvm_cli.options.option_groups import advanced_option, fold_options, option
from resvm_cli.options.values import parse_choice, single_number
from resvm_cli.records import dataclass
from resvm_cli.report.terminal import note, option_name, print_result, say_row
from resvm_cli.running.run import Run, done_when

if TYPE_CHECKING:
    import numpy as np

    from resvm_cli.files.svmlight import Block
    from resvm_cli.model.simulation import Sizes, Split
    from resvm_cli.tables.encoding import FeatureMap, TableReading

LabelingRule: TypeAlias = Literal["random", "biased"]
RULES: tuple[LabelingRule, ...] = ("random", "biased")
MAX_ROWS = 1 << 30
LIMITS = {
    **dict.fromkeys(("n_pos", "n_unl"), (1, MAX_ROWS)),
    **dict.fromkeys(("test_pos", "test_neg", "seed"), (0, MAX_ROWS)),
    **dict.fromkeys(("contamination_pos", "contamination_unl"), (0, 1)),
    "decimals": (0, 17),
}

set_option = partial(option, panel="Sets")


@fold_options
def simulate(
    *,
    data: str | None = shared.data_option(
        "--data FILE", "Labeled rows to draw from (svmlight or a table)."
    ),
    table: shared.TableOptions,
    positive_label: list[str] | None = shared.data_option(
        "--positive-label LABEL",
        "With --data: rows with this label are truly positive, all others negative.",
    ),
    synthetic: bool = shared.data_option(
        "--synthetic", "Use the paper's 2-D synthetic problem instead of a file."
    ),
    zero_based: bool = shared.ZERO_BASED,
    n_pos: int | None = set_option(
        "--n-pos N", "Number of rows in P.", show_default="required with --data; synthetic: 100"
    ),
    n_unl: int | None = set_option(
        "--n-unl N", "Number of rows in U.", show_default="required with --data; synthetic: 200"
    ),
    contamination_pos: float = set_option(
        "--contamination-pos A", "Fraction of P that is truly negative.", default=0.0
    ),
    contamination_unl: float = set_option(
        "--contamination-unl B", "Fraction of U that is truly positive.", default=0.0
    ),
    test_pos: int | None = set_option(
        "--test-pos N",
        "Number of positive test rows.",
        show_default="all remaining; synthetic: 5000",
    ),
    test_neg: int | None = set_option(
        "--test-neg N",
        "Number of negative test rows.",
        show_default="all remaining; synthetic: 5000",
    ),
    labelling: str = set_option(
        "--labelling NAME",
        "How known positives are chosen: random, or biased (depending on their features).",
        default="random",
        completions=(*RULES,),
    ),
    decimals: int | None = advanced_option("--decimals N", "Round synthetic points to N decimals."),
    output: str = shared.output_option(
        "-o, --output DIR",
        "New directory for pos.svm, unl.svm, test.svm and truth.csv.",
        default="simulated",
    ),
    json: bool = shared.JSON,
    seed: int = shared.running_option(
        "--seed N", "Random seed; the same seed and data give identical files.", default=0
    ),
    quiet: bool = shared.QUIET,
) -> None:
    """Draw P, U and test sets with a chosen contamination from labeled data.

    For example:

    - `resvm simulate --synthetic --contamination-pos 0.3 -o rings`
    - `resvm simulate --data mnist --positive-label 7 --n-pos 50 --n-unl 2000`
    """
    if synthetic and data is not None:
        raise CommandLineError("--data and --synthetic cannot be combined")
    if not synthetic and data is None:
        raise CommandLineError("--data FILE --positive-label LABEL, or --synthetic, is required")
    if synthetic:
        n_pos = 100 if n_pos is None else n_pos
        n_unl = 200 if n_unl is None else n_unl
        test_pos = 5000 if test_pos is None else test_pos
        test_neg = 5000 if test_neg is None else test_neg
    if n_pos is None or n_unl is None:
        raise CommandLineError("--data requires --n-pos and --n-unl")
    if decimals is not None and not synthetic:
        raise CommandLineError(
            "--decimals requires --synthetic: numbers from a file are never rounded"
        )
    from resvm_cli import randomness
    from resvm_cli.model.simulation import Sizes, biased_chances, split

    rule = parse_choice("--labelling", labelling, RULES)
    reading = table.reading(positive_label)
    has_label = bool(reading.roles.positive_labels)
    if data is not None and not has_label:
        raise CommandLineError("--data requires --positive-label: which label is positive?")
    if data is None and has_label:
        raise CommandLineError("--positive-label requires --data")
    sizes = Sizes(n_pos, n_unl, contamination_pos, contamination_unl, test_pos, test_neg)
    _check({**vars(sizes), "decimals": decimals, "seed": seed}, output)
    if not json:
        done_when(output)
    rng = randomness.generator(seed, randomness.SIMULATED_SETS)
    with shared.command_run(quiet) as run:
        features: FeatureMap | None = None
        if data is None:
            block, truth = _synthesize(sizes, decimals, rng)
        else:
            block, truth, features = _read(data, reading, zero_based, run)
        chances = biased_chances(block.rows, rng) if rule == "biased" else None
        chosen = split(truth, sizes, rng, chances)
        result = _write(output, block, truth, chosen, features, seed)
    if not quiet:
        _show(result)
    if json:
        print_result("simulate", result)


def _check(values: dict[str, float | None], target: str) -> None:
    """Reject invalid values and an invalid output directory before any file is read."""
    for name, (low, high) in LIMITS.items():
        value = values[name]
        if value is not None and not low <= value <= high:
            raise CommandLineError(
                f"{option_name(name)} must be between {low} and {high:,}, got {value}"
            )
    if target in ("", "-"):
        raise CommandLineError("-o must be a directory name")
    if os.path.lexists(target):
        raise CommandLineError(
            f"{target} exists and will not be overwritten", "choose another directory with -o"
        )


@dataclass(frozen=True)
class SimulateResult:
    """The directory written, and the number of rows of each kind."""

    path: str
    n_pos: int
    n_unl: int
    false_positives: int
    hidden_positives: int
    test_pos: int
    test_neg: int
    seed: int


def _write(
    path: str,
    block: Block,
    truth: np.ndarray,
    chosen: Split,
    features: FeatureMap | None,
    seed: int,
) -> SimulateResult:
    """Write P, U, test rows, truth.csv and, for a table, features.json into a new directory."""
    import numpy as np

    from resvm_cli.files.atomic import write_directory
    from resvm_cli.files.svmlight import format_block

    def text(numbers: np.ndarray, labels: np.ndarray) -> bytes:
        return format_block(replace(block.take(numbers), labels=labels.astype(np.float64)))

    p, u, test = chosen.positives, chosen.unlabeled, chosen.test
    write_directory(
        path,
        {
            "pos.svm": text(p, np.ones(len(p))),
            "unl.svm": text(u, np.zeros(len(u))),
            "test.svm": text(test, np.where(truth[test], 1.0, -1.0)),
            "truth.csv": _truth(block, truth, p, u),
            **({} if features is None else {"features.json": features.format()}),
        },
    )
    return SimulateResult(
        path=path,
        n_pos=len(p),
        n_unl=len(u),
        false_positives=int((~truth[p]).sum()),
        hidden_positives=int(truth[u].sum()),
        test_pos=int(truth[test].sum()),
        test_neg=int((~truth[test]).sum()),
        seed=seed,
    )


def _read(
    path: str, reading: TableReading, zero_based: bool, run: Run
) -> tuple[Block, np.ndarray, FeatureMap | None]:
    """Read the file; return its rows, a mask of true positives, and the features of a table."""
    from resvm_cli.files.sources import Source
    from resvm_cli.files.svmlight import Block
    from resvm_cli.model.simulation import truth_of
    from resvm_cli.tables.inputs import RowInput

    reading.check()
    with closing(Source(path, once=not reading.needs_two_passes)) as source:
        rows = RowInput(source, reading, zero_based=zero_based)
        rows.encode(selective=True)
        label = rows.numeric_label(single_number(reading.roles.positive_labels))
        block = Block.concatenate(list(rows.blocks(marked=not rows.is_text)))
    block.require_labels(rows.name)
    if rows.features is not None and not (block.labels == label).any():
        raise rows.no_positive_row()
    truth = truth_of(block.labels, label, rows.name)
    if rows.features is None:
        return block, truth, None
    from resvm_cli.tables.notes import notes_on_training

    for text in notes_on_training([rows.features], known=False):
        run.remark(text)
    return block, truth, rows.features.map


def _synthesize(
    sizes: Sizes, decimals: int | None, rng: np.random.Generator
) -> tuple[Block, np.ndarray]:
    """Draw points of the synthetic problem; return them and a mask of true positives."""
    import numpy as np

    from resvm_cli.files.svmlight import Block
    from resvm_cli.model.simulation import synthetic
    from resvm_cli.rows import Rows

    counts = sizes.positives_needed, sizes.negatives_needed
    points = synthetic(*counts, rng)
    if decimals is not None:
        points = np.round(points, decimals)
    return Block.from_rows(Rows.from_dense(points)), np.repeat([True, False], counts)


def _truth(block: Block, truth: np.ndarray, p: np.ndarray, u: np.ndarray) -> bytes:
    """Format truth.csv: each row's source line, true class, and whether it is mislabeled."""
    lines = ["file,row,source_line,true_label,mislabelled"]
    for name, numbers, said in (("pos.svm", p, True), ("unl.svm", u, False)):
        for row, number in enumerate(numbers.tolist(), 1):
            true = bool(truth[number])
            line = int(block.lines[number])
            source = line if line > 0 else ""  # synthetic points have no source line
            lines.append(f"{name},{row},{source},{1 if true else -1},{int(true != said)}")
    return "".join(f"{line}\n" for line in lines).encode()


def _show(result: SimulateResult) -> None:
    for name, text in (
        ("pos.svm", f"{result.n_pos:,} rows, {result.false_positives:,} of them truly negative"),
        ("unl.svm", f"{result.n_unl:,} rows, {result.hidden_positives:,} of them truly positive"),
        ("test.svm", f"{result.test_pos:,} positive, {result.test_neg:,} negative rows"),
        ("truth.csv", "which rows of pos.svm and unl.svm are mislabeled"),
        ("seed", str(result.seed)),
        ("written to", result.path),
    ):
        say_row(name, text)
    if not (result.test_pos and result.test_neg):
        note("test.svm lacks a class because no rows of that class are left; draw smaller sets")
