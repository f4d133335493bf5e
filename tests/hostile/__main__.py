"""``make hostile BUDGET=seconds``: mutated files in process and through the program, and faults.

Prints what was tried, how often, and what did harm; files that did are kept in tests/hostile/cases.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.hostile import faults, forked, mutations

# every output is synced: a disk would spend the time on that
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
MOST_SHOWN = 20
SHIM = "RESVM_FAULTS"  # set once the shim is loaded


def main() -> int:
    budget = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    forked.warm_up()
    began = time.monotonic()
    print(f"hostile: {budget:g} s, seed {seed}")  # noqa: T201
    # not TemporaryDirectory: the processes that are forked would remove it as they end
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="resvm-hostile-", dir=MEMORY)))
    counts: Counter[str] = Counter()
    try:
        problem = mutations.make_files(folder / "files")
        for share, work in (
            (0.3, mutations.through_the_program(problem, folder, seed)),
            (0.4, fault_by_fault(problem, folder, began + budget)),
        ):
            end = time.monotonic() + share * budget
            for what in work:
                counts[what] += 1
                if time.monotonic() > end:
                    break
        # last: it starts threads, and what forks must have none
        rng = np.random.default_rng(seed)
        while time.monotonic() < began + budget:
            counts[mutations.in_process(problem, folder, rng)] += 1
    finally:
        shutil.rmtree(folder)
    for what, count in sorted(counts.items()):
        print(f"{count:>10,}  {what}")  # noqa: T201
    harms = Counter(mutations.harms)
    for harm, count in harms.most_common(MOST_SHOWN):
        print(f"harm, {count} times: {harm}")  # noqa: T201
    done = f"{len(mutations.harms):,} of them did harm" if harms else "no harm was done"
    print(f"{sum(counts.values()):>10,}  in {time.monotonic() - began:.0f} s; {done}")  # noqa: T201
    return 1 if harms else 0


def fault_by_fault(problem: Path, folder: Path, end: float) -> Iterator[str]:
    """Every writing command in turn, one kind of fault after the other."""
    if SHIM not in os.environ:
        return
    going = [
        (f"{kind}: {writing.name}", faults.strikes(writing, problem, place, end, (kind,)))
        for writing in faults.writings(problem, problem / "m")
        for kind in faults.KINDS
        for place in [folder / f"{writing.name}-{kind}".replace(" ", "-")]
    ]
    while going:
        for name, strikes in list(going):
            try:
                met = next(strikes, None)
            except AssertionError as harm:
                mutations.harms.append(f"{name}: {harm}")
                met = None
            if met is None:
                going.remove((name, strikes))
            else:
                yield name


if __name__ == "__main__":
    if SHIM not in os.environ:
        # a folder that outlives exec: the library stays loaded, so it may be removed afterwards
        place = Path(tempfile.mkdtemp(prefix="resvm-shim-"))
        library = faults.build_shim(place)
        if library is not None:
            os.environ |= {"LD_PRELOAD": str(library), SHIM: str(place)}
            os.execv(sys.executable, [sys.executable, "-m", "tests.hostile", *sys.argv[1:]])
        place.rmdir()
    else:
        os.environ.pop("LD_PRELOAD", None)
        shutil.rmtree(os.environ[SHIM])
    sys.exit(main())
