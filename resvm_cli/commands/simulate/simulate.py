"""Labelled data, or the paper's synthetic problem, to P, U and test files with known truth."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from resvm_cli import randomness
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.atomic import write_directory
from resvm_cli.files.streams import name_of
from resvm_cli.files.svmlight import Block, format_block, format_number, read_file
from resvm_cli.model.drawing import Sizes, biased_chances, split
from resvm_cli.model.synthetic import synthetic
from resvm_cli.rows import Rows

MOST_ROWS = 1 << 30


@dataclass(frozen=True)
class SimulateRequest:
    """Where the rows come from and what is to be made of them."""

    target: str
    sizes: Sizes
    data: str | None = None  # None: the synthetic problem
    positive_label: float | None = None
    zero_based: bool = False
    labelling: Literal["random", "biased"] = "random"
    decimals: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Refuse what cannot work, before any file is read."""
        if self.data is not None and self.positive_label is None:
            raise CommandLineError("--data needs --positive-label: which label means positive?")
        if self.data is None and self.positive_label is not None:
            raise CommandLineError("--positive-label goes with --data")
        sizes = self.sizes
        for name, size, least in (
            ("--n-pos", sizes.n_pos, 1),
            ("--n-unl", sizes.n_unl, 1),
            ("--test-pos", sizes.test_pos, 0),
            ("--test-neg", sizes.test_neg, 0),
            ("--seed", self.seed, 0),
        ):
            if size is not None and not least <= size <= MOST_ROWS:
                raise CommandLineError(
                    f"{name} is {size}; it must be at least {least} and at most {MOST_ROWS:,}"
                )
        if self.decimals is not None and not 0 <= self.decimals <= 17:
            raise CommandLineError(f"--decimals is {self.decimals}; 0 to 17 was expected")
        for name, share in (
            ("--contamination-pos", sizes.contamination_pos),
            ("--contamination-unl", sizes.contamination_unl),
        ):
            if not 0.0 <= share <= 1.0:
                raise CommandLineError(f"{name} is {share:g}; a share from 0 to 1 was expected")
        if self.target in ("", "-"):
            raise CommandLineError("-o needs the name of a directory")
        if os.path.lexists(self.target):
            raise CommandLineError(
                f"{self.target}: already there; nothing will be overwritten",
                "choose another place with -o",
            )


@dataclass(frozen=True)
class SimulateResult:
    """What was written."""

    path: str
    n_pos: int
    n_unl: int
    false_positives: int
    hidden_positives: int
    test_pos: int
    test_neg: int
    seed: int


def simulate(request: SimulateRequest) -> SimulateResult:
    """Draw P, U and test rows and write them with truth.csv into a new directory."""
    request.check()
    rng = randomness.generator(request.seed, randomness.SIMULATED_SETS)
    block, truth = _labelled(request) if request.data else _made(request, rng)
    chances = biased_chances(block.rows, rng) if request.labelling == "biased" else None
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


def _labelled(request: SimulateRequest) -> tuple[Block, np.ndarray]:
    assert request.data is not None
    assert request.positive_label is not None
    block = read_file(request.data, zero_based=request.zero_based, with_comments=True)
    name = name_of(request.data)
    block.require_labels(name)
    return block, truth_of(block, request.positive_label, name)


def truth_of(block: Block, label: float, name: str) -> np.ndarray:
    """Whether each row has the positive label; some must have it, and some not."""
    truth: np.ndarray = block.labels == label
    if not truth.any() or truth.all():
        there = ", ".join(format_number(one) for one in np.unique(block.labels)[:20])
        which = "no row has" if not truth.any() else "every row has"
        raise DataError(
            f"{name}: {which} the label {format_number(label)}", f"labels that are there: {there}"
        )
    return truth


def _made(request: SimulateRequest, rng: np.random.Generator) -> tuple[Block, np.ndarray]:
    sizes = request.sizes
    counts = sizes.positives_needed, sizes.negatives_needed
    points = synthetic(*counts, rng)
    if request.decimals is not None:
        points = np.round(points, request.decimals)
    return Block.from_rows(Rows.from_dense(points)), np.repeat([True, False], counts)


def _truth(block: Block, truth: np.ndarray, p: np.ndarray, u: np.ndarray) -> bytes:
    """For each row of P and U: its source, its true class, whether its set says otherwise."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["file", "row", "source_line", "true_label", "mislabelled"])
    for name, numbers, said in (("pos.svm", p, True), ("unl.svm", u, False)):
        for row, number in enumerate(numbers.tolist(), 1):
            true = bool(truth[number])
            line = int(block.lines[number])
            source = line if line > 0 else ""  # made points come from no line
            writer.writerow([name, row, source, 1 if true else -1, int(true != said)])
    return out.getvalue().encode()
