"""``make hostile BUDGET=seconds``: mutated files, faults, and files that do not belong together.

Prints what was tried, how often, and what did harm; files that did are kept in tests/hostile/cases.
A third argument names the one attack to make: program, relations, faults or files.
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
from random import Random

from tests.hostile import attacks, faults, forked, readers, relations, seeds
from tests.hostile.harm import harms

# every output is synced: a disk would spend the time on that
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
MOST_SHOWN = 20
SHIM = "RESVM_FAULTS"  # set once the shim is loaded
SHARES = {"program": 0.25, "relations": 0.15, "faults": 0.35, "files": 0.25}  # of the budget


def main() -> int:
    budget = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    shares = {sys.argv[3]: 1.0} if len(sys.argv) > 3 else SHARES
    forked.warm_up()
    began = time.monotonic()
    print(f"hostile: {budget:g} s, seed {seed}")  # noqa: T201
    # not TemporaryDirectory: the processes that are forked would remove it as they end
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="resvm-hostile-", dir=MEMORY)))
    counts: Counter[str] = Counter()
    try:
        problem = seeds.make_files(folder / "files")
        ready = time.monotonic()
        left = max(began + budget - ready, budget / 2)
        done = 0.0
        # files last: their libraries start threads, and what forks must have none
        for name, share in shares.items():
            done += share
            end = ready + done * left
            for what in _attack(name, problem, folder, seed, end):
                counts[what] += 1
                if time.monotonic() > end:
                    break
    finally:
        shutil.rmtree(folder)
    for what, count in sorted(counts.items()):
        print(f"{count:>10,}  {what}")  # noqa: T201
    for harm, count in Counter(harms).most_common(MOST_SHOWN):
        print(f"harm, {count} times: {harm}")  # noqa: T201
    verdict = f"{len(harms):,} of them did harm" if harms else "no harm was done"
    seconds = time.monotonic() - began
    print(f"{sum(counts.values()):>10,}  in {seconds:.0f} s; {verdict}")  # noqa: T201
    return 1 if harms else 0


def _attack(name: str, problem: Path, folder: Path, seed: int, end: float) -> Iterator[str]:
    if name == "program":
        return attacks.through_the_program(problem, folder, seed)
    if name == "relations":
        relations.make_more_files(problem)
        cases = relations.all_cases(problem)
        Random(seed).shuffle(cases)
        return relations.strikes(problem, folder / "related", cases)
    if name == "faults":
        return fault_by_fault(problem, folder, seed, end)
    readers.without_threads()
    return iter(readers.Attack(problem, folder, Random(seed)).strike, None)


def fault_by_fault(problem: Path, folder: Path, seed: int, end: float) -> Iterator[str]:
    """Every writing command in turn, one fault after the other."""
    if SHIM not in os.environ:
        return
    writings = faults.writings(problem)
    Random(seed).shuffle(writings)  # a short run meets others than the next
    going = [
        faults.strikes(writing, folder / writing.name.replace(" ", "-"), end)
        for writing in writings
    ]
    while going:
        for strikes in list(going):
            met = next(strikes, None)
            if met is None:
                going.remove(strikes)
            else:
                yield met


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
