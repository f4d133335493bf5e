"""One sound file of every kind that a command reads, made by the program itself."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import scipy.sparse

from tests import fake_benchmark
from tests.conftest import write_svm
from tests.hostile.forked import resvm

GOLDEN = Path(__file__).parents[1] / "golden"
GRIDS = {
    "kind": "resvm-benchmark-grids",
    "format": 1,
    "data_sets": {
        "default": {
            "kernel": "linear",
            "c_unl": "1",
            "resvm": {"n_pos": "5", "unl_per_pos": "1", "w_pos": "1"},
            "bagging": {"unl_per_pos": "0.5"},
            "cwsvm": {"w_pos": "1"},
        }
    },
}
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
    (folder / "pred").write_text("1 0.9\n-1 0.1\n1 0.3\n-1 0.4\n")
    (folder / "ids").write_text("r1\nr2\n# comment\nr3\n")
    (folder / "names").write_text("".join(f"{name}\n" for name in ids))
    (folder / "groups").write_text("".join(f"g{number % 7}\n" for number in range(60)))
    (folder / "labels").write_text("".join(f"{label}\n" for label in labels))
    (folder / "scheduler.json").write_text(
        json.dumps({"type": "Scheduler", "id": "s", "address": "tcp://127.0.0.1:1", "workers": {}})
    )
    _make_tables(folder, rng)
    _make_kernel(folder, rng)
    _make_published(folder / "published")
    write_svm(folder / "bench.svm", rng.standard_normal((60, 3)), np.repeat([1, -1], 30))
    (folder / "grids.json").write_text(json.dumps(GRIDS))
    sets = ["-P", folder / "pos.svm", "-U", folder / "unl.svm", "-q"]
    data = [*sets, "--n-models", 3]
    linear = ["-t", "linear", "--scale", "standard"]
    tune = ["tune", *data, "--oob", "--trials", 3, "--no-extend", "-o"]
    for command in (
        ["train", *data, "-o", folder / "m"],
        ["train", *data, *linear, "-o", folder / "linear"],
        ["train", *sets, "--method", "cwsvm", "-o", folder / "cwsvm"],
        ["train", *sets, "--n-models", 10, "--auto", "-o", folder / "committee"],
        *(["train", *data, "--task", f"{n}/2", "-o", folder / f"part-{n}"] for n in (1, 2)),
        [*tune, folder / "t"],
        *([*tune, folder / "shared", "--task", f"{n}/2"] for n in (1, 2)),
        *(
            ["predict", folder / "m", folder / "test.svm", "--ids", "--format", form, "-o",
             folder / f"pred.{form}"]
            for form in ("text", "tsv", "csv", "jsonl")
        ),
        ["predict", folder / "m", folder / "test.svm", "-q", "--out-dir", folder / "outputs"],
        ["convert", folder / "table.csv", "--id-column", "id", "--label-column", "label",
         "--categorical", "colour", "--map", folder / "map.json", "-o", folder / "table.svm", "-q"],
        ["convert", folder / "molecules.csv", "--smiles-column", "smiles", "--bits", 64, "--map",
         folder / "molecules.json", "-o", folder / "molecules.svm", "-q"],
        ["train", *kernel_data(folder), "--n-models", 3, "-o", folder / "kernel"],
        [*benchmark(folder), "-o", folder / "bench"],
        *([*benchmark(folder), "-o", folder / "bench-tasks", "--task", f"{n}/2"] for n in (1, 2)),
    ):  # fmt: skip
        ran = resvm(*command)
        assert ran.code == 0, ran.err
    shutil.copytree(GOLDEN / "format-1", folder / "format-1")
    return folder


def kernel_data(folder: Path) -> list[object]:
    """Options of a training with kernel values that are given."""
    return ["-P", folder / "k-pos.svm", "-U", folder / "k-unl.svm", "-t", "precomputed", "-q"]


def benchmark(folder: Path) -> list[object]:
    """A benchmark of four results, all but where they go."""
    own = ["--data", folder / "bench.svm", "--positive-label", 1, "--n-pos", 10, "--n-unl", 20]
    plan = ["--methods", "resvm,cwsvm", "--repetitions", 2, "--protocol", "paper"]
    return ["benchmark", "run", *own, *plan, "--grid", folder / "grids.json", "-j", 1, "-q"]


def _make_kernel(folder: Path, rng: np.random.Generator) -> None:
    """Kernel values of rows among each other, as LIBSVM's precomputed kernel has them."""
    features = rng.standard_normal((24, 3))
    values = np.column_stack([np.arange(1, 25), features @ features.T])
    write_svm(folder / "k-pos.svm", values[:8], first_index=0)
    write_svm(folder / "k-unl.svm", values[8:], first_index=0)
    write_svm(folder / "k-test.svm", values[::3], first_index=0)


def _make_published(folder: Path) -> None:
    """Results of two of the paper's tasks, as a run of theirs leaves them."""
    tasks = ("synthetic", "mnist-7")
    lines = fake_benchmark.results(repetitions=2, tasks=tasks)
    plan = fake_benchmark.plan(tasks=[*tasks, "sensit-1"])
    fake_benchmark.write(folder, lines, plan, fake_benchmark.times_of(lines, 1.5))


def _make_tables(folder: Path, rng: np.random.Generator) -> None:
    lines = ["id,label,a,b,colour"]
    colours = ("red", "green", "blue")
    matrix = rng.standard_normal((12, 3)).round(2)
    for number, (a, b, _) in enumerate(matrix.tolist()):
        lines.append(f"r{number},{number % 2},{a},{b},{colours[number % 3]}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    (folder / "numbers.csv").write_text("a,b,c\n1,2.5,-3\n0,1e-3,4\n.5,6,7.\n")
    molecules = [f"{number},{smiles}" for number, smiles in enumerate(MOLECULES)]
    (folder / "molecules.csv").write_text("\n".join(["id,smiles", *molecules]) + "\n")
    np.save(folder / "matrix.npy", matrix)
    scipy.sparse.save_npz(folder / "sparse.npz", scipy.sparse.csr_matrix(matrix))
    arrays = io.BytesIO()
    np.savez(arrays, features=matrix)
    (folder / "arrays.npz").write_bytes(arrays.getvalue())
    _make_optional(folder, matrix)


def _make_optional(folder: Path, matrix: np.ndarray) -> None:
    """Files of packages that may not be installed."""
    try:
        import h5py
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return
    table = pyarrow.table({"a": matrix[:, 0], "b": matrix[:, 1], "colour": ["x", "y", "z"] * 4})
    pyarrow.parquet.write_table(table, folder / "table.parquet")
    with h5py.File(folder / "cells.h5ad", "w") as file:
        file["X"] = matrix
        file["obs/_index"] = [b"r%d" % number for number in range(len(matrix))]
        file["var/_index"] = [b"a", b"b", b"c"]
