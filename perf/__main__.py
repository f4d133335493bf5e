"""Measure resvm and its peers: ``python -m perf`` prints tables on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from perf import table
from perf.bench import Bench
from perf.contest import compete
from perf.data import Data
from perf.programs import PROGRAMS
from perf.sizes import FULL, QUICK
from perf.work import KINDS
from studies.markdown import put_between_marks


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m perf", description=__doc__)
    peers = sorted({program.peer for program in PROGRAMS})
    parser.add_argument("--data-dir", type=Path, help="folder of the data sets")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables to it")
    parser.add_argument("--only", nargs="+", choices=KINDS, metavar="NAME", help=", ".join(KINDS))
    parser.add_argument("--peers", nargs="+", choices=peers, metavar="NAME", help=", ".join(peers))
    parser.add_argument("--repeats", type=int, metavar="N", help="runs per case")
    parser.add_argument("--quick", action="store_true", help="smaller data sets, fewer runs")
    parser.add_argument("--tmp-dir", type=Path, metavar="DIR", help="for 1 GB of temporary files")
    given = parser.parse_args(argv)
    if given.data_dir is not None and not given.data_dir.is_dir():
        parser.error(f"--data-dir: {given.data_dir} is not a directory")
    if given.repeats is not None and given.repeats < 1:
        parser.error("--repeats must be at least 1")
    return given


def main(argv: list[str] | None = None) -> int:
    """Run the requested work; return 1 if a program failed or its results disagreed."""
    given = arguments(argv)
    sizes = QUICK if given.quick else FULL
    if given.repeats is not None:
        sizes = replace(sizes, repeats=given.repeats)
    peers = None if given.peers is None else tuple(given.peers)
    tables = []
    with tempfile.TemporaryDirectory(prefix="resvm-bench-", dir=given.tmp_dir) as folder:
        bench = Bench(Path(folder), Data(Path(folder), given.data_dir, sizes), sizes, peers)
        print(table.heading(given.quick), flush=True)
        for name, work in KINDS.items():
            if given.only is not None and name not in given.only:
                continue
            outcomes = [compete(group, sizes, tell) for group in work.groups(bench)]
            tables.append(table.Table(name, work.title, outcomes))
            print(f"\n{table.text(tables[-1])}", end="", flush=True)
    if given.json is not None:
        given.json.write_text(table.as_json(tables, sizes, given.quick))
    if given.markdown is not None:
        put_between_marks(given.markdown, table.markdown(tables, given.quick))
    rows = [row for section in tables for outcome in section.outcomes for row in outcome.rows]
    return 0 if all(row.agrees for row in rows) else 1


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
