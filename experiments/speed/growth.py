"""Measure how time and memory grow; it takes ten minutes.

Each table varies one size: rows of U, members, rows of P, or features. Commands run with one
thread. Short commands are repeated, and the fastest run counts. The exponent is computed from the
two largest sizes, after subtracting the time of the smallest size. It is 1 if doubling the size
doubles the time.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.markdown import markdown_table, put_between_marks
from experiments.speed.data import IJCNN, IJCNN_TEST, Data
from experiments.speed.measure import Run, command, run

SHORT = 3.0  # seconds; longer runs are not repeated
TURNS = 2
BAG = ("--n-pos", "10", "--n-unl", "100")
ENTRIES = 100  # features drawn per row for the table that varies the number of features
RESVM = str(Path(sys.executable).with_name("resvm"))


@dataclass(frozen=True)
class Line:
    """The runs of one command, by size."""

    what: str
    runs: dict[int, Run]

    def exponent(self) -> float | None:
        if len(self.runs) < 3:
            return None
        sizes = sorted(self.runs)
        least, before, last = (self.runs[size].cpu_seconds for size in (sizes[0], *sizes[-2:]))
        if before - least < 0.05:
            return None
        return math.log((last - least) / (before - least)) / math.log(sizes[-1] / sizes[-2])


class Growth:
    def __init__(self, folder: Path, data: Data, largest: int) -> None:
        self.folder = folder
        self.data = data
        self.largest = largest
        self.unlabeled = data.plain(IJCNN_TEST)
        lines = data.plain(IJCNN).read_text().splitlines(keepends=True)
        known = [line for line in lines if float(line.split(None, 1)[0]) > 0]
        self.positives = folder / "known.svm"
        self.positives.write_text("".join(known))
        self.n_outputs = 0

    def sizes(self, *sizes: int) -> list[int]:
        return [size for size in sizes if size <= self.largest]

    def measured(self, *words: object, model: bool = False) -> Run:
        """Run a command, repeatedly if it is short; store the path of the last model."""
        runs: list[Run] = []
        while len(runs) < TURNS and (not runs or runs[0].seconds < SHORT):
            output: tuple[object, ...] = ()
            if model:
                self.n_outputs += 1
                self.model = self.folder / f"model-{self.n_outputs}"
                output = ("-o", self.model)
            runs.append(run(command(RESVM, *words, "-q", *output, "-j", "1")))
        best = min(runs, key=lambda one: one.cpu_seconds)
        shown = " ".join(map(str, words))
        print(f"{best.cpu_seconds:.2f} s, {best.peak_mb:.0f} MB: {shown}", file=sys.stderr)
        return best

    def train(self, n_pos: int, n_unl: int, *more: object) -> Run:
        sets = [
            self.data.head(source, size)
            for source, size in ((self.positives, n_pos), (self.unlabeled, n_unl))
        ]
        pu = ("--no-auto", "-P", sets[0], "-U", sets[1])
        return self.measured("train", *pu, *more, model=True)

    def predict(self, n_rows: int) -> Run:
        return self.measured("predict", self.model, self.data.head(self.unlabeled, n_rows))


def rows_of_u(growth: Growth) -> list[Line]:
    train, predict = {}, {}
    for size in growth.sizes(10**4, 10**5, 10**6, 10**7):
        train[size] = growth.train(50, size, *BAG)
        if size <= 10**6:
            predict[size] = growth.predict(size)
    return [Line("train", train), Line("predict all of them", predict)]


def members(growth: Growth) -> list[Line]:
    found = []
    for kernel in ("linear", "rbf"):
        train, one, many = {}, {}, {}
        for size in growth.sizes(50, 200, 1_000, 3_000, 10_000):
            train[size] = growth.train(50, 10**4, *BAG, "-t", kernel, "--n-models", size)
            one[size] = growth.predict(1)
            if kernel == "rbf":
                many[size] = growth.predict(10**4)
        found += [Line(f"train, {kernel}", train), Line(f"predict one row, {kernel}", one)]
        if many:
            found.append(Line(f"predict 10,000 rows, {kernel}", many))
    return found


def rows_of_p(growth: Growth) -> list[Line]:
    train, rank = {}, {}
    for size in growth.sizes(10**2, 10**3, 10**4, 10**5):
        train[size] = growth.train(size, 10**5)
        sets = growth.data.head(growth.positives, size), growth.data.head(growth.unlabeled, 10**4)
        rank[size] = growth.measured("rank", "-P", sets[0], "-U", sets[1], "--no-auto")
    return [Line("train, U of 10^5 rows", train), Line("rank, U of 10^4 rows", rank)]


def features(growth: Growth) -> list[Line]:
    lines: dict[str, dict[int, Run]] = {}
    for size in growth.sizes(10**2, 10**3, 10**4, 10**5, 10**6):
        sets = [growth.folder / f"features-{size}.{name}" for name in ("pos", "unl")]
        for seed, (path, n_rows) in enumerate(zip(sets, (50, 10**4), strict=True)):
            _write_sparse_rows(path, n_rows, size, seed)
        for kernel in ("linear", "rbf"):
            words = ("train", "--no-auto", "-P", sets[0], "-U", sets[1], *BAG, "-t", kernel)
            lines.setdefault(f"train, {kernel}", {})[size] = growth.measured(*words, model=True)
            scored = growth.measured("predict", growth.model, sets[1])
            lines.setdefault(f"predict 10,000 rows, {kernel}", {})[size] = scored
    return [Line(what, runs) for what, runs in lines.items()]


def _write_sparse_rows(path: Path, n_rows: int, n_features: int, seed: int) -> None:
    """Write rows with uniformly drawn features; values in P are shifted a little."""
    rng = np.random.default_rng(seed)
    with path.open("w") as out:
        for _ in range(n_rows):
            indices = np.unique(rng.integers(1, n_features + 1, ENTRIES))
            values = np.round(rng.random(len(indices)) + 0.1 * (seed == 0), 4)
            pairs = zip(indices.tolist(), values.tolist(), strict=True)
            out.write("0 " + " ".join(f"{index}:{value}" for index, value in pairs) + "\n")


TABLES: dict[str, tuple[str, Callable[[Growth], list[Line]]]] = {
    "U": ("rows of U (50 members)", rows_of_u),
    "members": ("members (U of 10^4 rows)", members),
    "P": ("rows of P", rows_of_p),
    "features": (f"features (U of 10^4 rows of {ENTRIES} entries, 50 members)", features),
}


def table(title: str, lines: list[Line]) -> str:
    sizes = sorted({size for line in lines for size in line.runs})
    rows = []
    for line in lines:
        exponent = line.exponent()
        cells = [
            f"{line.runs[size].cpu_seconds:.2f} s, {line.runs[size].peak_mb:.0f} MB"
            if size in line.runs
            else ""
            for size in sizes
        ]
        rows.append([line.what, *cells, "" if exponent is None else f"{exponent:.2f}"])
    return markdown_table([title, *(f"{size:,}" for size in sizes), "exponent"], rows) + "\n"


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m experiments.speed growth", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder with ijcnn1 and ijcnn1.t")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--largest", type=int, default=10**7, help="leave out larger sizes")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables to it")
    given = parser.parse_args(argv)
    tables = []
    with tempfile.TemporaryDirectory(prefix="resvm-growth-") as name:
        for key in given.only:
            title, measure = TABLES[key]
            folder = Path(name) / key
            folder.mkdir()
            data = Data(folder, given.data_dir)
            tables.append(table(title, measure(Growth(folder, data, given.largest))))
            print(tables[-1], flush=True)
            shutil.rmtree(folder)
    if given.markdown is not None:
        put_between_marks(given.markdown, "\n".join(tables), "growth")
