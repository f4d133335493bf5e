"""Parsing: resvm as predict with one linear member, everyone less their start-up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.speed import agreement
from experiments.speed.agreement import Agreement
from experiments.speed.bench import Bench
from experiments.speed.contest import Case, Group
from experiments.speed.data import MNIST
from experiments.speed.ensembles import Ensemble
from experiments.speed.measure import run
from experiments.speed.members import AUTHORS
from experiments.speed.programs import script
from resvm_cli.data.inputs import read_file

OURS = "resvm predict, one linear member"
SKLEARN = "scikit-learn load_svmlight_file"
LIBSVM = "libsvm-official svm_read_problem"
ZCAT = "zcat | wc -c"


def groups(bench: Bench) -> Iterator[Group]:
    data = bench.data
    text = data.plain(MNIST)
    row = data.head(text, 1)
    problem = data.problem(AUTHORS, bench.command)
    model = Ensemble(bench, problem, "linear", 1).model()
    megabytes = text.stat().st_size / 1e6
    described = f"{data.describe(MNIST)}, {megabytes:.0f} MB of text"
    weights = _weights(model)
    values = bench.folder / "parse.weights.npy"
    np.save(values, weights[0])

    for form, file, row_file in (
        ("plain", text, row),
        ("gzip", data.gzipped(text), data.gzipped(row)),
    ):
        output = bench.folder / f"parse.{form}"
        cases = _resvm(bench, model, file, row_file, output)
        if bench.wants("scikit-learn"):
            cases.append(
                _reader(SKLEARN, "sklearn_read", file, row_file, values, output, weights[1])
            )
        if form == "plain":
            if bench.wants("libsvm-official"):
                cases.append(
                    _reader(LIBSVM, "libsvm_read", file, row_file, values, output, weights[1])
                )
        else:
            cases.append(Case(ZCAT, [[["zcat", str(file)], ["wc", "-c"]]]))
        yield Group(f"parse {form} text: {described}", cases, megabytes)


def _resvm(bench: Bench, model: Path, file: Path, row_file: Path, output: Path) -> list[Case]:
    threaded = output.with_suffix(f"{output.suffix}.threads")

    def predict(rows: Path, threads: int | None) -> list[list[list[str]]]:
        return bench.resvm("predict", "-q", model, rows, threads=threads)

    return [
        Case(OURS, predict(file, 1), output, less=predict(row_file, 1)),
        Case(
            f"{OURS}, default threads",
            predict(file, None),
            threaded,
            threads=None,
            less=predict(row_file, None),
            check=lambda: agreement.same_bytes(output, threaded),
        ),
    ]


def _reader(
    name: str, which: str, file: Path, row_file: Path, weights: Path, output: Path, bias: float
) -> Case:
    def check() -> Agreement:
        """The member's values from what the peer read, against resvm's output."""
        values_file = output.with_suffix(".npy")
        run(script(which, file, weights, values_file))
        values = np.load(values_file) + bias
        return agreement.row_values(_values(output), values)

    return Case(name, script(which, file), less=script(which, row_file), check=check)


def _weights(model: Path) -> tuple[np.ndarray, float]:
    """The weight vector and bias of the only member."""
    path = model / "members" / "00000.model"
    head, _, vectors = path.read_text().partition("SV\n")
    bias = next(-float(line.split()[1]) for line in head.splitlines() if line.startswith("rho"))
    text = model.parent / "member.svm"
    text.write_text(vectors)
    rows = read_file(str(text)).rows
    dense = np.zeros(rows.max_index)
    dense[rows.indices - 1] = rows.values
    return dense, bias


def _values(predictions: Path) -> np.ndarray:
    """The member's own value: d of one vote is that value, plus 1 where it is positive."""
    d = np.loadtxt(predictions, usecols=1)
    return np.where(d > 0.5, d - 1.0, d)
