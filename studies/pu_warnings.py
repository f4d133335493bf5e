"""Does ``train`` warn if, and only if, it should?

For each warning, a model is trained on a small data set that should trigger it. The log of
``studies.pu_methods`` shows how often the warning appeared on the tasks of that study.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import MethodParameters
from resvm_cli.rows import Rows
from resvm_cli.running.run import Run
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.train import train_on
from studies.markdown import markdown_table

PARAMS = MethodParameters(n_models=20)
WORDS = 300


@dataclass(frozen=True)
class Warned:
    """A warning, recognized by some of its words, and data that should trigger it."""

    words: str
    deserved_by: str
    rows: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
    params: MethodParameters = PARAMS

    def is_given(self) -> bool:
        """Whether training on these data gives the warning."""
        positives, unlabeled = self.rows(np.random.default_rng(3))
        data = MemoryData(Rows.from_dense(positives), Rows.from_dense(unlabeled))
        run = Run(jobs=1)
        train_on(data, TrainingChoice.from_params(self.params), run)
        return any(self.words in str(note) for note in run.notes)


def _apart(
    rng: np.random.Generator, n_pos: int = 100, gap: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw normally distributed positives and unlabeled rows; a fifth of U is positive."""
    unlabeled = rng.standard_normal((500, 5))
    unlabeled[:100] += gap
    return rng.standard_normal((n_pos, 5)) + gap, unlabeled


def _unscaled(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    widths = np.array([1.0, 1.0, 1.0, 1.0, 1000.0])
    positives, unlabeled = _apart(rng)
    return positives * widths, unlabeled * widths


def _alike(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return _apart(rng, gap=0.0)


def _same_rows(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    positives, _ = _apart(rng)
    return positives, positives


def _few_known(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return _apart(rng, 8)


def _short_texts(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw texts of 40 words, some typical of positives; a fifth of U have only two words."""

    def texts(n_texts: int, n_words: int, preferred: slice, factor: float) -> np.ndarray:
        chances = np.ones(WORDS)
        chances[preferred] = factor
        counts = rng.multinomial(n_words, chances / chances.sum(), n_texts).astype(float)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)

    known, others = texts(100, 40, slice(30), 6.0), texts(800, 40, slice(30, 200), 4.0)
    return known, np.vstack([others, texts(200, 2, slice(0), 1.0)])


WARNINGS = (
    Warned("the features are not scaled", "one feature a thousand times as wide", _unscaled),
    Warned(
        "iteration limit",
        "the same, linear, by LIBLINEAR with C = 10,000",
        _unscaled,
        MethodParameters(kernel="linear", solver="liblinear", c_unl=1e4, n_models=5),
    ),
    Warned("choosing a threshold requires at least", "8 known positives", _few_known),
    Warned("are barely distinguishable from U", "P and U drawn alike", _alike),
    Warned("rows of U with few features lead", "a fifth of U are texts of two words", _short_texts),
    Warned("P and U contain the same rows", "the same file twice", _same_rows),
)


def warnings_table(records: Sequence[dict[str, Any]]) -> str:
    """Tabulate whether each warning appears when it should, and in how many runs of the study."""
    ours = [record for record in records if "notices" in record]
    rows = []
    for warned in WARNINGS:
        said_by = [r for r in ours if any(warned.words in notice for notice in r["notices"])]
        tasks = ", ".join(dict.fromkeys(record["task"] for record in said_by))
        said = "said" if warned.is_given() else "**not said**"
        count = f"{len(said_by)} of {len(ours)}"
        rows.append([f"... {warned.words} ...", warned.deserved_by, said, count, tasks or "none"])
    head = ["warning", "data that deserve it", "there", "runs here", "of tasks"]
    title = "**Warnings of `train`**, on data that should trigger them and on the runs above"
    return f"{title}\n\n{markdown_table(head, rows)}"
