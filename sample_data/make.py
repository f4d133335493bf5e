"""Make the sample data: ``python sample_data/make.py [folder]``, always the same bytes.

Contamination is introduced as in the paper: the stated share of P is truly negative, of U positive.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from resvm_cli.dataset import Rows
from resvm_cli.files.svmlight import Block, format_block

SEED = 2014


def write(path: Path, features: np.ndarray, labels: np.ndarray, names: list[str] | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(format_block(Block.of(Rows.from_dense(features), labels, names)))


def contaminated(
    positive: np.ndarray, negative: np.ndarray, n_pos: int, n_unl: int, share: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row numbers of P and U, drawn from the front of shuffled classes, and of what is left."""
    false_pos, hidden_pos = round(share * n_pos), round(share * n_unl)
    p = np.concatenate([positive[: n_pos - false_pos], negative[:false_pos]])
    positive, negative = positive[n_pos - false_pos :], negative[false_pos:]
    u = np.concatenate([positive[:hidden_pos], negative[: n_unl - hidden_pos]])
    rest = np.concatenate([positive[hidden_pos:], negative[n_unl - hidden_pos :]])
    return p, u, rest


def synthetic(folder: Path, rng: np.random.Generator) -> None:
    """The paper's 2-D problem: positives standard normal, negatives around a circle of radius 4."""
    size = 1200
    angle = rng.uniform(0, 2 * np.pi, size)
    circle = 4 * np.column_stack([np.cos(angle), np.sin(angle)])
    features = np.concatenate([np.zeros((size, 2)), circle]) + rng.standard_normal((2 * size, 2))
    features = np.round(features, 4)
    labels = np.repeat([1, -1], size)
    p, u, rest = contaminated(np.arange(size), np.arange(size, 2 * size), 100, 200, 0.3)
    write(folder / "pos.svm", features[p], np.ones(len(p)), None)
    write(folder / "unl.svm", features[rng.permutation(u)], np.zeros(len(u)), None)
    test = rng.permutation(rest)[:1000]
    write(folder / "test.svm", features[test], labels[test], None)


def digits(folder: Path, rng: np.random.Generator) -> None:
    """8 x 8 handwritten digits: 7 against the rest, 10 % contamination in both sets."""
    features, target = load_digits(return_X_y=True)
    positive = rng.permutation(np.flatnonzero(target == 7))
    negative = rng.permutation(np.flatnonzero(target != 7))
    p, u, rest = contaminated(positive, negative, 50, 700, 0.1)
    u, rest = rng.permutation(u), rng.permutation(rest)
    write(folder / "pos.svm", features[p], np.ones(len(p)), None)
    write(folder / "unl.svm", features[u], np.zeros(len(u)), None)
    names = [f"image-{number}" for number in rest]
    write(folder / "test.svm", features[rest], np.where(target[rest] == 7, 1, -1), names)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    synthetic(folder / "synthetic", np.random.default_rng(SEED))
    digits(folder / "digits", np.random.default_rng(SEED))


if __name__ == "__main__":
    main()
