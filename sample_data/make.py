"""Make the sample data: ``python sample_data/make.py [folder]``, always the same bytes.

Both problems are drawn by ``resvm simulate``; the digits come from scikit-learn.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits

from resvm_cli.dataset import Rows
from resvm_cli.experiments.contamination import Sizes
from resvm_cli.files.svmlight import Block, format_block
from resvm_cli.jobs.simulate import SimulateRequest, simulate

SEED = 2014


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    simulate(
        SimulateRequest(
            target=str(folder / "synthetic"),
            sizes=Sizes(100, 200, 0.3, 0.3, test_pos=500, test_neg=500),
            decimals=4,
            seed=SEED,
        )
    )
    features, digit = load_digits(return_X_y=True)
    names = [f"image-{number}" for number in range(len(digit))]
    with tempfile.TemporaryDirectory() as temporary:
        labelled = Path(temporary) / "digits.svm"
        labelled.write_bytes(format_block(Block.of(Rows.from_dense(features), digit, names)))
        simulate(
            SimulateRequest(
                target=str(folder / "digits"),
                sizes=Sizes(50, 700, 0.1, 0.1),
                data=str(labelled),
                positive_label=7,
                seed=SEED,
            )
        )


if __name__ == "__main__":
    main()
