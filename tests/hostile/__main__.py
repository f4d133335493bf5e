"""``make hostile BUDGET=seconds``: mutated files and faults against every command.

Prints what was tried, how often, and what did harm; files that did are kept in tests/hostile/cases.
A third argument names the one attack to make: files or faults.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.hostile import attacks, faults, seeds
from tests.hostile.oracle import harms, limit_memory

# every output is synced: a disk would spend the time on that
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
MOST_SHOWN = 20
SHARES = {"files": 0.5, "faults": 0.5}  # of the budget


def main(budget: float = 60.0, seed: int | None = None, attack: str = "") -> int:
    seed = int(time.time()) if seed is None else seed
    began = time.monotonic()
    print(f"hostile: {budget:g} s, seed {seed}")  # noqa: T201
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="resvm-hostile-", dir=MEMORY) as name:
        folder = Path(os.path.realpath(name))
        library = faults.build_shim(folder)
        if library is not None:
            os.environ["LD_PRELOAD"] = str(library)
        limit_memory()
        problem = seeds.make_files(folder / "files")
        ready, done = time.monotonic(), 0.0
        left = max(began + budget - ready, budget / 2)
        for name, share in ({attack: 1.0} if attack else SHARES).items():
            done += share
            end = ready + done * left
            if name == "files":
                strikes = attacks.through_the_program(problem, folder, seed)
            elif library is not None:
                strikes = faults.in_turn(problem, folder, Random(seed), end)
            for what in strikes:
                counts[what] += 1
                if time.monotonic() > end:
                    break
        shutil.rmtree(folder, ignore_errors=True)
    for what, count in sorted(counts.items()):
        print(f"{count:>10,}  {what}")  # noqa: T201
    for harm, count in Counter(harms).most_common(MOST_SHOWN):
        print(f"harm, {count} times: {harm}")  # noqa: T201
    verdict = f"{len(harms):,} of them did harm" if harms else "no harm was done"
    seconds = time.monotonic() - began
    print(f"{sum(counts.values()):>10,}  in {seconds:.0f} s; {verdict}")  # noqa: T201
    return 1 if harms else 0


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(*[float(word) for word in words[:1]], *map(int, words[1:2]), *words[2:3]))
