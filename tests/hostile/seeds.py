"""One sound file of every kind that a command reads, made by the program itself."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

import numpy as np
import scipy.sparse

from tests.conftest import write_svm
from tests.hostile.oracle import resvm

MOLECULES = ("CCO", "c1ccccc1", "CC(=O)O", "N#N", "C1CC1")


def make_files(folder: Path) -> Path:
    """All of them; small, for what is wrong with a line does not depend on how many there are."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    ids = [f"r{number}" for number in range(30)]
    labels = np.repeat([1, -1], 15)
    write_svm(folder / "pos.svm", rng.standard_normal((20, 4)) + 1)
    write_svm(folder / "unl.svm", rng.standard_normal((40, 4)))
    write_svm(folder / "test.svm", rng.standard_normal((30, 4)), labels, comments=ids)
    (folder / "ids").write_text("r1\nr2\n# comment\nr3\n")
    (folder / "groups").write_text("".join(f"g{number % 7}\n" for number in range(60)))
    (folder / "labels").write_text("".join(f"{label}\n" for label in labels))
    _make_tables(folder, rng)
    _make_kernel(folder, rng)
    write_svm(folder / "labeled.svm", rng.standard_normal((60, 3)), np.repeat([1, -1], 30))
    sets = ["-P", folder / "pos.svm", "-U", folder / "unl.svm", "-q"]
    data = [*sets, "--n-models", 3]
    linear = ["-t", "linear", "--scale", "standard"]
    tune = ["tune", *data, "--trials", 3, "--no-extend", "-o"]
    for command in (
        ["train", "--no-auto", *data, "-o", folder / "m"],
        ["train", *data, *linear, "-o", folder / "linear"],
        ["train", *sets, "--n-models", 10, "-o", folder / "committee"],
        *(["train", *data, "--task", f"{n}/2", "-o", folder / f"part-{n}"] for n in (1, 2)),
        [*tune, folder / "t"],
        *(
            ["predict", folder / "m", folder / "test.svm", "--ids", "--format", form, "-o",
             folder / f"pred.{form}"]
            for form in ("text", "tsv", "csv", "jsonl")
        ),
        ["convert", folder / "table.csv", "--id-column", "id", "--label-column", "label",
         "--categorical", "colour", "--map", folder / "map.json", "-o", folder / "table.svm", "-q"],
        ["convert", folder / "molecules.csv", "--smiles-column", "smiles", "--bits", 64, "--map",
         folder / "molecules.json", "-o", folder / "molecules.svm", "-q"],
        ["train", "--no-auto", *kernel_data(folder), "--n-models", 3, "-o", folder / "kernel"],
    ):  # fmt: skip
        ran = resvm(*command)
        assert ran.code == 0, ran.err
    return folder


def kernel_data(folder: Path) -> list[object]:
    """Options of a training with kernel values that are given."""
    return ["-P", folder / "k-pos.svm", "-U", folder / "k-unl.svm", "-t", "precomputed", "-q"]


def _make_kernel(folder: Path, rng: np.random.Generator) -> None:
    """Kernel values of rows among each other, as LIBSVM's precomputed kernel has them."""
    features = rng.standard_normal((24, 3))
    values = np.column_stack([np.arange(1, 25), features @ features.T])
    write_svm(folder / "k-pos.svm", values[:8], first_index=0)
    write_svm(folder / "k-unl.svm", values[8:], first_index=0)
    write_svm(folder / "k-test.svm", values[::3], first_index=0)


def _make_tables(folder: Path, rng: np.random.Generator) -> None:
    lines = ["id,label,a,b,colour"]
    colours = ("red", "green", "blue")
    matrix = rng.standard_normal((12, 3)).round(2)
    for number, (a, b, _) in enumerate(matrix.tolist()):
        lines.append(f"r{number},{number % 2},{a},{b},{colours[number % 3]}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    molecules = [f"{number},{smiles}" for number, smiles in enumerate(MOLECULES)]
    (folder / "molecules.csv").write_text("\n".join(["id,smiles", *molecules]) + "\n")
    np.save(folder / "matrix.npy", matrix)
    scipy.sparse.save_npz(folder / "sparse.npz", scipy.sparse.csr_matrix(matrix))
    arrays = io.BytesIO()
    np.savez(arrays, features=matrix)
    (folder / "arrays.npz").write_bytes(arrays.getvalue())
    with suppress(ImportError):
        from pyarrow import parquet, table

        columns = {"a": matrix[:, 0], "b": matrix[:, 1], "colour": ["x", "y", "z"] * 4}
        parquet.write_table(table(columns), folder / "table.parquet")
