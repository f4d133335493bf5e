"""resvm simulate: draw P, U and test files with known classes from labeled or synthetic data.

As in the paper, contamination flips labels: of n_pos known positives, round(a n_pos) are truly
negative; of n_unl unlabeled rows, round(b n_unl) are truly positive. No row is used twice. numpy is
imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from resvm_cli.cli import options as shared
from resvm_cli.cli.option_groups import advanced_option, expand_option_groups, option
from resvm_cli.cli.terminal import print_json, say_row
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.records import dataclass
from resvm_cli.run import Run

if TYPE_CHECKING:
    import numpy as np

    from resvm_cli.data.encoding import ColumnRoles, FeatureMap
    from resvm_cli.data.svmlight import Block
    from resvm_cli.rows import BoolArray, FloatArray, IntArray

MAX_ROWS = 1 << 30
RADIUS = 4.0  # radius of the circle around which negatives of the synthetic problem lie
N_POS, N_UNL, N_TEST = 100, 200, 5000  # of the paper's synthetic problem
ROW_BYTES = 590  # of memory per synthetic row, as peaks at 1 and 4 million rows showed

set_option = partial(option, panel="Sets")
size_option = partial(set_option, min=1, max=MAX_ROWS)
test_option = partial(
    set_option, min=0, max=MAX_ROWS, show_default=f"all remaining; synthetic: {N_TEST}"
)


@expand_option_groups
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
    n_pos: int | None = size_option(
        "--n-pos N",
        "Number of rows in P.",
        show_default=f"required with --data; synthetic: {N_POS}",
    ),
    n_unl: int | None = size_option(
        "--n-unl N",
        "Number of rows in U.",
        show_default=f"required with --data; synthetic: {N_UNL}",
    ),
    contamination_pos: float = set_option(
        "--contamination-pos A", "Fraction of P that is truly negative.", default=0.0
    ),
    contamination_unl: float = set_option(
        "--contamination-unl B", "Fraction of U that is truly positive.", default=0.0
    ),
    test_pos: int | None = test_option("--test-pos N", "Number of positive test rows."),
    test_neg: int | None = test_option("--test-neg N", "Number of negative test rows."),
    decimals: int | None = advanced_option(
        "--decimals N", "Round synthetic points to N decimals.", min=0, max=17
    ),
    output: str = shared.output_option(
        "-o, --output DIR",
        "New directory for pos.svm, unl.svm, test.svm and truth.csv.",
        default="simulated",
    ),
    json: bool = shared.JSON,
    seed: int = shared.running_option(
        "--seed N",
        "Random seed; the same seed and data give identical files.",
        default=0,
        min=0,
        max=MAX_ROWS,
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
        n_pos, n_unl = n_pos or N_POS, n_unl or N_UNL
        test_pos = N_TEST if test_pos is None else test_pos
        test_neg = N_TEST if test_neg is None else test_neg
    if n_pos is None or n_unl is None:
        raise CommandLineError("--data requires --n-pos and --n-unl")
    if decimals is not None and not synthetic:
        raise CommandLineError(
            "--decimals requires --synthetic: numbers from a file are never rounded"
        )
    if data is not None and not positive_label:
        raise CommandLineError("--data requires --positive-label: which label is positive?")
    if data is None and positive_label:
        raise CommandLineError("--positive-label requires --data")
    for name, fraction in (("pos", contamination_pos), ("unl", contamination_unl)):
        if not 0 <= fraction <= 1:
            raise CommandLineError(
                f"--contamination-{name} must be between 0 and 1, got {fraction}"
            )
    _check_target(output)
    from resvm_cli import randomness

    roles = table.roles(positive_label)
    sizes = Sizes(n_pos, n_unl, contamination_pos, contamination_unl, test_pos, test_neg)
    rng = randomness.generator(seed, randomness.SIMULATED_SETS)
    with shared.command_run(quiet) as run:
        features: FeatureMap | None = None
        if data is None:
            block, truth = _synthesize(sizes, decimals, rng)
        else:
            block, truth, features = _read(data, roles, zero_based, run)
        sets = split(truth, sizes, rng)
        _write(output, block, truth, sets, features)
    counts = {
        "n_pos": n_pos,
        "n_unl": n_unl,
        "false_positives": int((~truth[sets.positives]).sum()),
        "hidden_positives": int(truth[sets.unlabeled].sum()),
        "test_pos": int(truth[sets.test].sum()),
        "test_neg": int((~truth[sets.test]).sum()),
    }
    if not quiet:
        _show(counts, seed, output)
    if json:
        print_json("simulate", {"path": output, **counts, "seed": seed})


def _check_target(path: str) -> None:
    if path in ("", "-"):
        raise CommandLineError("-o must be a directory name")
    if os.path.lexists(path):
        raise CommandLineError(
            f"{path} exists and will not be overwritten", "choose another directory with -o"
        )


def _show(counts: dict[str, int], seed: int, path: str) -> None:
    for name, text in (
        ("pos.svm", "{n_pos:,} rows, {false_positives:,} of them truly negative"),
        ("unl.svm", "{n_unl:,} rows, {hidden_positives:,} of them truly positive"),
        ("test.svm", "{test_pos:,} positive, {test_neg:,} negative rows"),
        ("truth.csv", "which rows of pos.svm and unl.svm are mislabeled"),
    ):
        say_row(name, text.format_map(counts))
    say_row("seed", str(seed))
    say_row("written to", path)
    if not (counts["test_pos"] and counts["test_neg"]):
        say_row(
            "warning",
            "test.svm lacks a class because no rows of that class are left; draw smaller sets",
        )


@dataclass(frozen=True)
class Sizes:
    """The sizes of the sets; None for the test set means all remaining rows."""

    n_pos: int
    n_unl: int
    contamination_pos: float = 0.0
    contamination_unl: float = 0.0
    test_pos: int | None = None
    test_neg: int | None = None

    @property
    def false_positives(self) -> int:
        return round(self.contamination_pos * self.n_pos)

    @property
    def hidden_positives(self) -> int:
        return round(self.contamination_unl * self.n_unl)

    @property
    def needed(self) -> tuple[int, int]:
        """The numbers of true positives and negatives needed for P, U and the test set."""
        positives = self.n_pos - self.false_positives + self.hidden_positives
        negatives = self.n_unl - self.hidden_positives + self.false_positives
        return positives + (self.test_pos or 0), negatives + (self.test_neg or 0)


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of the three sets, each in random order."""

    positives: IntArray
    unlabeled: IntArray
    test: IntArray


def split(truth: BoolArray, sizes: Sizes, rng: np.random.Generator) -> Split:
    """Draw the sets from rows whose true classes are known."""
    import numpy as np

    positive, negative = np.flatnonzero(truth), np.flatnonzero(~truth)
    classes = zip(("positive", "negative"), (positive, negative), sizes.needed, strict=True)
    for name, present, needed in classes:
        if len(present) < needed:
            raise DataError(
                f"{needed:,} truly {name} rows are needed, but there are only {len(present):,}",
                "choose smaller sets or a different contamination",
            )
    positive, negative = rng.permutation(positive), rng.permutation(negative)
    n_known = sizes.n_pos - sizes.false_positives
    known, positive = positive[:n_known], rng.permutation(positive[n_known:])
    false, negative = negative[: sizes.false_positives], negative[sizes.false_positives :]
    hidden, positive = positive[: sizes.hidden_positives], positive[sizes.hidden_positives :]
    n_true = sizes.n_unl - sizes.hidden_positives
    unlabeled, negative = negative[:n_true], negative[n_true:]
    test = [positive[: sizes.test_pos], negative[: sizes.test_neg]]
    return Split(
        rng.permutation(np.concatenate([known, false])),
        rng.permutation(np.concatenate([hidden, unlabeled])),
        rng.permutation(np.concatenate(test)),
    )


def draw_synthetic(n_positive: int, n_negative: int, rng: np.random.Generator) -> FloatArray:
    """Draw the paper's 2-D problem: Gaussian positives, then negatives around a circle."""
    import numpy as np

    angles = rng.uniform(0.0, 2.0 * np.pi, n_negative)
    circle = RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])
    centers = np.concatenate([np.zeros((n_positive, 2)), circle])
    return centers + rng.standard_normal(centers.shape)


def _synthesize(
    sizes: Sizes, decimals: int | None, rng: np.random.Generator
) -> tuple[Block, BoolArray]:
    """Draw points of the synthetic problem; return them and a mask of true positives."""
    import numpy as np

    from resvm_cli.data.svmlight import Block
    from resvm_cli.rows import Rows
    from resvm_cli.threads import available_memory

    needed = ROW_BYTES * sum(sizes.needed)
    if needed > (left := available_memory()):
        raise CommandLineError(
            f"{sum(sizes.needed):,} rows take about {needed / 1e9:,.0f} GB of memory, but"
            f" {left / 1e9:,.1f} GB are left",
            "choose smaller sets",
        )
    points = draw_synthetic(*sizes.needed, rng)
    if decimals is not None:
        points = np.round(points, decimals)
    return Block.from_rows(Rows.from_dense(points)), np.repeat([True, False], sizes.needed)


def truth_of(labels: FloatArray, positive_label: float, name: str) -> BoolArray:
    """Mark the rows that have the positive label; both classes must be present."""
    import numpy as np

    truth: BoolArray = labels == positive_label
    if not truth.any() or truth.all():
        which = "no row has" if not truth.any() else "every row has"
        listed = ", ".join(f"{label:.12g}" for label in np.unique(labels)[:20])
        raise DataError(
            f"{name}: {which} the label {positive_label:.12g}", f"the labels are {listed}"
        )
    return truth


def _read(
    path: str, roles: ColumnRoles, zero_based: bool, run: Run
) -> tuple[Block, BoolArray, FeatureMap | None]:
    """Read the file; return its rows, a mask of true positives, and the features of a table."""
    from resvm_cli.data.inputs import RowInput
    from resvm_cli.data.streams import Source
    from resvm_cli.data.svmlight import Block

    with closing(Source(path, once=not roles.needs_two_passes)) as source:
        rows = RowInput(source, roles, zero_based=zero_based)
        rows.encode(selective=True)
        label = rows.numeric_label(shared.single_number(roles.positive_labels))
        block = Block.concatenate(list(rows.blocks(marked=not rows.is_text)))
    block.require_labels(rows.name)
    if rows.features is None:
        return block, truth_of(block.labels, label, rows.name), None
    if not (block.labels == label).any():
        raise rows.no_positive_row()
    from resvm_cli.data.notes import notes_on_training

    for text in notes_on_training([rows.features], known=False):
        run.note(text)
    return block, truth_of(block.labels, label, rows.name), rows.features.map


def _write(
    path: str, block: Block, truth: BoolArray, sets: Split, features: FeatureMap | None
) -> None:
    """Write P, U, test rows, truth.csv and, for a table, features.json into a new directory."""
    import numpy as np

    from resvm_cli.data.atomic import write_directory
    from resvm_cli.data.svmlight import format_block

    def text(numbers: IntArray, labels: BoolArray | IntArray) -> bytes:
        return format_block(replace(block.take(numbers), labels=labels.astype(np.float64)))

    p, u, test = sets.positives, sets.unlabeled, sets.test
    lines = ["file,row,source_line,true_label,mislabeled"]
    for name, numbers, said in (("pos.svm", p, True), ("unl.svm", u, False)):
        for row, number in enumerate(numbers.tolist(), 1):
            true = bool(truth[number])
            line = int(block.lines[number])
            source = line if line > 0 else ""  # synthetic points have no source line
            lines.append(f"{name},{row},{source},{1 if true else -1},{int(true != said)}")
    contents = {
        "pos.svm": text(p, np.ones(len(p), bool)),
        "unl.svm": text(u, np.zeros(len(u), bool)),
        "test.svm": text(test, np.where(truth[test], 1, -1)),
        "truth.csv": "".join(f"{line}\n" for line in lines).encode(),
    }
    if features is not None:
        contents["features.json"] = features.format()
    write_directory(path, contents)
