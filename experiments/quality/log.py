"""A log of JSON lines, one for each piece of work; a run continues where the log ends."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.markdown import put_between_marks
from resvm_cli import threads as parallel

Record = dict[str, Any]


def read_log(path: Path) -> list[Record]:
    """Read the JSON lines of a log; none if there is no such file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def run_log(
    parser: argparse.ArgumentParser,
    argv: list[str],
    works: Callable[[argparse.Namespace], Iterable[Record]],
    work: Callable[[Record, Path], Record],
    tables: Callable[[Sequence[Record]], str],
) -> None:
    """Do the works that are not in the log yet, then print the tables of the whole log.

    A work is the record that identifies it; what ``work`` measures is added to it.
    """
    parser.add_argument("--data-dir", type=Path, default=Path(), help="folder of the data sets")
    parser.add_argument("--log", type=Path, required=True, help="continued if it exists")
    parser.add_argument("--markdown", type=Path, help="a document whose tables are replaced")
    given = parser.parse_args(argv)
    records = read_log(given.log)
    for key in works(given):
        if any(key.items() <= record.items() for record in records):
            continue
        started = time.perf_counter()
        with parallel.one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the data, and about functions peers use
            records.append(key | work(key, given.data_dir))
        with given.log.open("a") as log:
            log.write(json.dumps(records[-1]) + "\n")
        seconds = time.perf_counter() - started
        print(*key.values(), f"{seconds:.1f} s", file=sys.stderr, flush=True)
    text = tables(records)
    print(text)
    if given.markdown is not None:
        put_between_marks(given.markdown, text + "\n", Path(parser.prog).name.split()[-1])
