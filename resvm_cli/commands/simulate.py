"""resvm simulate: draw P, U and test files of known class from labeled or synthetic data.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from resvm_cli.errors import CommandLineError, ParameterError
from resvm_cli.options.running import Json, Quiet, output_option, running_option
from resvm_cli.options.training import ZeroBased, data_option
from resvm_cli.options.values import offered, parse_choice
from resvm_cli.records import dataclass
from resvm_cli.report.terminal import note, print_result, say
from resvm_cli.running.run import done_when

if TYPE_CHECKING:
    import numpy as np

    from resvm_cli.files.svmlight import Block
    from resvm_cli.model.simulation import Sizes

LabelingRule: TypeAlias = Literal["random", "biased"]
RULES: tuple[LabelingRule, ...] = ("random", "biased")
MAX_ROWS = 1 << 30

set_option = partial(typer.Option, rich_help_panel="Sets")


def simulate(
    data: Annotated[
        str | None, data_option(metavar="FILE", help="Labeled rows to draw from.")
    ] = None,
    positive_label: Annotated[
        float | None,
        data_option(
            metavar="LABEL",
            help="With --data: rows with this label are truly positive, all others negative.",
        ),
    ] = None,
    synthetic: Annotated[
        bool,
        data_option("--synthetic", help="Use the paper's 2-D synthetic problem instead of a file."),
    ] = False,
    zero_based: ZeroBased = False,
    n_pos: Annotated[
        int | None,
        set_option(
            metavar="N",
            help="Number of rows in P.",
            show_default="required with --data; synthetic: 100",
        ),
    ] = None,
    n_unl: Annotated[
        int | None,
        set_option(
            metavar="N",
            help="Number of rows in U.",
            show_default="required with --data; synthetic: 200",
        ),
    ] = None,
    contamination_pos: Annotated[
        float, set_option(metavar="A", help="Fraction of P that is truly negative.")
    ] = 0.0,
    contamination_unl: Annotated[
        float, set_option(metavar="B", help="Fraction of U that is truly positive.")
    ] = 0.0,
    test_pos: Annotated[
        int | None,
        set_option(
            metavar="N", help="Positive test rows.", show_default="all remaining; synthetic: 5000"
        ),
    ] = None,
    test_neg: Annotated[
        int | None,
        set_option(
            metavar="N", help="Negative test rows.", show_default="all remaining; synthetic: 5000"
        ),
    ] = None,
    labelling: Annotated[
        str,
        set_option(
            metavar="NAME",
            autocompletion=offered(*RULES),
            help="How known positives are chosen: random, or biased by their features.",
        ),
    ] = "random",
    decimals: Annotated[
        int | None, set_option(metavar="N", help="Round synthetic points to N decimals.")
    ] = None,
    output: Annotated[
        str,
        output_option(
            "-o",
            "--output",
            metavar="DIR",
            help="New directory for pos.svm, unl.svm, test.svm and truth.csv.",
        ),
    ] = "simulated",
    json: Json = False,
    seed: Annotated[
        int,
        running_option(
            metavar="N", help="Random seed; the same seed and data give identical files."
        ),
    ] = 0,
    quiet: Quiet = False,
) -> None:
    """Draw P, U and test files from labeled data, with the contamination that you choose.

    For example:

    - `resvm simulate --synthetic --contamination-pos 0.3 -o rings`
    - `resvm simulate --data mnist --positive-label 7 --n-pos 50 --n-unl 2000`
    """
    if synthetic and data is not None:
        raise CommandLineError("--data and --synthetic cannot be combined")
    if not synthetic and data is None:
        raise CommandLineError("give --data FILE --positive-label LABEL, or --synthetic")
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
    from resvm_cli.model.simulation import Sizes

    if not json:
        done_when(output)
    result = write_simulation(
        SimulateRequest(
            target=output,
            sizes=Sizes(n_pos, n_unl, contamination_pos, contamination_unl, test_pos, test_neg),
            data=data,
            positive_label=positive_label,
            zero_based=zero_based,
            labeling=parse_choice("--labelling", labelling, RULES),
            decimals=decimals,
            seed=seed,
        )
    )
    if not quiet:
        show_simulation(result)
    if json:
        print_result("simulate", result)


@dataclass(frozen=True)
class SimulateRequest:
    """The source of the rows, and the sets to draw."""

    target: str
    sizes: Sizes
    data: str | None = None  # None: the synthetic problem
    positive_label: float | None = None
    zero_based: bool = False
    labeling: LabelingRule = "random"
    decimals: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Reject invalid parameters before any file is read."""
        if self.data is not None and self.positive_label is None:
            raise ParameterError("{data} requires {positive_label}: which label is positive?")
        if self.data is None and self.positive_label is not None:
            raise ParameterError("{positive_label} requires {data}")
        sizes = self.sizes
        for name, size, least in (
            ("n_pos", sizes.n_pos, 1),
            ("n_unl", sizes.n_unl, 1),
            ("test_pos", sizes.test_pos, 0),
            ("test_neg", sizes.test_neg, 0),
            ("seed", self.seed, 0),
        ):
            if size is not None and not least <= size <= MAX_ROWS:
                raise ParameterError(
                    "{" + name + "} must be between {least} and {most:,}, got {size}",
                    least=least,
                    most=MAX_ROWS,
                    size=size,
                )
        if self.decimals is not None and not 0 <= self.decimals <= 17:
            raise ParameterError(
                "{decimals} must be between 0 and 17, got {value}", value=self.decimals
            )
        for name, fraction in (
            ("contamination_pos", sizes.contamination_pos),
            ("contamination_unl", sizes.contamination_unl),
        ):
            if not 0.0 <= fraction <= 1.0:
                raise ParameterError(
                    "{" + name + "} must be between 0 and 1, got {value:g}", value=fraction
                )
        if self.target in ("", "-"):
            raise ParameterError("{output} must be the name of a directory")
        if os.path.lexists(self.target):
            raise ParameterError(
                "{path} exists and will not be overwritten",
                "choose another directory with {output}",
                path=self.target,
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


def write_simulation(request: SimulateRequest) -> SimulateResult:
    """Draw P, U and test rows and write them, with truth.csv, into a new directory."""
    import numpy as np

    from resvm_cli import randomness
    from resvm_cli.files.atomic import write_directory
    from resvm_cli.files.svmlight import format_block
    from resvm_cli.model.simulation import biased_chances, split

    request.check()
    rng = randomness.generator(request.seed, randomness.SIMULATED_SETS)
    block, truth = _read(request) if request.data else _synthesize(request, rng)
    chances = biased_chances(block.rows, rng) if request.labeling == "biased" else None
    chosen = split(truth, request.sizes, rng, chances)
    label = np.where(truth, 1.0, -1.0)

    def text(numbers: np.ndarray, labels: np.ndarray) -> bytes:
        return format_block(replace(block.take(numbers), labels=labels.astype(np.float64)))

    p, u, test = chosen.positives, chosen.unlabeled, chosen.test
    write_directory(
        request.target,
        {
            "pos.svm": text(p, np.ones(len(p))),
            "unl.svm": text(u, np.zeros(len(u))),
            "test.svm": text(test, label[test]),
            "truth.csv": _truth(block, truth, p, u),
        },
    )
    return SimulateResult(
        path=request.target,
        n_pos=len(p),
        n_unl=len(u),
        false_positives=int((~truth[p]).sum()),
        hidden_positives=int(truth[u].sum()),
        test_pos=int(truth[test].sum()),
        test_neg=int((~truth[test]).sum()),
        seed=request.seed,
    )


def _read(request: SimulateRequest) -> tuple[Block, np.ndarray]:
    """Read the file; return its rows, and which of them are truly positive."""
    from resvm_cli.files.streams import name_of
    from resvm_cli.files.svmlight import read_file
    from resvm_cli.model.simulation import truth_of

    assert request.data is not None
    assert request.positive_label is not None
    block = read_file(request.data, zero_based=request.zero_based, with_comments=True)
    name = name_of(request.data)
    block.require_labels(name)
    return block, truth_of(block.labels, request.positive_label, name)


def _synthesize(request: SimulateRequest, rng: np.random.Generator) -> tuple[Block, np.ndarray]:
    """Draw points of the synthetic problem; return them, and which are truly positive."""
    import numpy as np

    from resvm_cli.files.svmlight import Block
    from resvm_cli.model.simulation import synthetic
    from resvm_cli.rows import Rows

    sizes = request.sizes
    counts = sizes.positives_needed, sizes.negatives_needed
    points = synthetic(*counts, rng)
    if request.decimals is not None:
        points = np.round(points, request.decimals)
    return Block.from_rows(Rows.from_dense(points)), np.repeat([True, False], counts)


def _truth(block: Block, truth: np.ndarray, p: np.ndarray, u: np.ndarray) -> bytes:
    """Format truth.csv: the source line, true class and mislabeling of each row of P and U."""
    lines = ["file,row,source_line,true_label,mislabelled"]
    for name, numbers, said in (("pos.svm", p, True), ("unl.svm", u, False)):
        for row, number in enumerate(numbers.tolist(), 1):
            true = bool(truth[number])
            line = int(block.lines[number])
            source = line if line > 0 else ""  # synthetic points have no source line
            lines.append(f"{name},{row},{source},{1 if true else -1},{int(true != said)}")
    return "".join(f"{line}\n" for line in lines).encode()


def show_simulation(result: SimulateResult) -> None:
    """Print what was drawn, and where it was written."""
    for name, text in (
        ("pos.svm", f"{result.n_pos:,} rows, {result.false_positives:,} of them truly negative"),
        ("unl.svm", f"{result.n_unl:,} rows, {result.hidden_positives:,} of them truly positive"),
        ("test.svm", f"{result.test_pos:,} positive, {result.test_neg:,} negative rows"),
        ("truth.csv", "which rows of pos.svm and unl.svm are mislabeled"),
        ("seed", str(result.seed)),
        ("written to", result.path),
    ):
        say(f"{name:>10}  {text}")
    if not (result.test_pos and result.test_neg):
        note("test.svm lacks a class: no rows were left for it; request smaller sets")
