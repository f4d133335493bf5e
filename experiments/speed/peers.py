"""Measure resvm beside other programs that do the same work: tables on stdout, progress on stderr.

Whole processes are timed: start-up, reading, the work itself and writing. All programs take turns,
and the best run of each counts. A time counts only if the results agree. All of it takes an hour.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from experiments.markdown import put_between_marks
from experiments.speed import analysis, members, parse, startup, tune
from experiments.speed.bench import Bench
from experiments.speed.contest import Group, compete, table
from experiments.speed.data import Data
from experiments.speed.programs import PROGRAMS

WORK: dict[str, Callable[[Bench], Iterator[Group]]] = {
    "startup": startup.groups,
    "parse": parse.groups,
    "train": members.training,
    "predict": members.prediction,
    "analysis": analysis.groups,
    "tune": tune.groups,
}
PACKAGES = ("resvm-cli", "numpy", "scikit-learn", "scikit-learn-intelex", "libsvm-official")
PACKAGES += ("liblinear-official", "pulearn")


def heading() -> str:
    """Describe the machine and the versions that were measured."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    processor = next(names, platform.machine())
    cores = len(os.sched_getaffinity(0))
    return f"{processor}, {cores} cores, Python {platform.python_version()}; {', '.join(versions)}."


def main(argv: list[str]) -> int:
    """Run the requested work; return 1 if a program failed or its results disagreed."""
    parser = argparse.ArgumentParser("python -m experiments.speed peers", description=__doc__)
    peers = sorted({program.peer for program in PROGRAMS})
    parser.add_argument("--data-dir", type=Path, help="data sets; missing ones are generated")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables to it")
    parser.add_argument("--only", nargs="+", choices=WORK, default=list(WORK), metavar="NAME")
    parser.add_argument("--peers", nargs="+", choices=peers, metavar="NAME", help=", ".join(peers))
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="runs per case")
    parser.add_argument("--tmp-dir", type=Path, metavar="DIR", help="for 1 GB of temporary files")
    given = parser.parse_args(argv)
    if given.repeats < 1:
        parser.error("--repeats must be at least 1")
    tables, agree = [heading() + "\n"], True
    with tempfile.TemporaryDirectory(prefix="resvm-speed-", dir=given.tmp_dir) as name:
        folder = Path(name)
        wanted = None if given.peers is None else tuple(given.peers)
        bench = Bench(folder, Data(folder, given.data_dir), wanted)
        print(tables[0], flush=True)
        for work in given.only:
            for group in WORK[work](bench):
                tell = partial(print, file=sys.stderr, flush=True)
                rows = compete(group, given.repeats, bench.timeout, tell)
                agree = agree and all(row.agrees for row in rows)
                tables.append(table(group, rows))
                print(tables[-1], flush=True)
    if given.markdown is not None:
        put_between_marks(given.markdown, "\n".join(tables), "peers")
    return 0 if agree else 1
