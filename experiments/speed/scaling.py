"""Measure the speedup from a second core; it takes an hour.

The same work is done by one thread, by two threads, and by a Dask cluster on loopback with one and
with two workers. It is also done by two independent processes at the same time, which shows the
limit of the machine. The variants take turns, and the fastest run of each counts. Speedups are
relative to one thread or, for the cluster, to one worker. All variants must write the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from experiments.speed.measure import THREAD_VARIABLES

PATIENCE = 900.0
START_SECONDS = 60.0
PU = ["-P", "data/pos.svm", "-U", "data/unl.svm", "-q"]
RANDOM = ["--search", "random", "--no-extend", "--trials"]


@dataclass(frozen=True)
class Work:
    """A command, and the output file that is compared between runs."""

    what: str
    words: list[str]
    compared: str


WORK = {
    "train": Work(
        "train 4,000 members of 400 + 800 rows",
        ["train", "--no-auto", *PU, "--n-models", "4000", "--n-pos", "400", "--n-unl", "800"],
        "manifest.json",
    ),
    "large": Work(
        "train 1,000 members of 400 + 2,000 rows",
        ["train", "--no-auto", *PU, "--n-models", "1000", "--n-pos", "400", "--n-unl", "2000"],
        "manifest.json",
    ),
    "small": Work(
        "train 800 members of 100 + 1,000 rows",
        ["train", "--no-auto", *PU, "--n-models", "800", "--n-pos", "100", "--n-unl", "1000"],
        "manifest.json",
    ),
    "tune": Work(
        "tune out of bag, 150 candidates",
        ["tune", *PU, *RANDOM, "150"],
        "trials.jsonl",
    ),
    "folds": Work(
        "tune by 10 folds, 25 candidates",
        ["tune", *PU, "-v", "10", *RANDOM, "25"],
        "trials.jsonl",
    ),
}
WAYS = ("one thread", "two threads", "two processes", "one worker", "two workers")


def environment() -> dict[str, str]:
    return {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}


class Bench:
    """A folder with P, U and numbered outputs, which are kept between runs.

    On ext4, creating a file takes ten times as long right after files were deleted.
    """

    def __init__(self, folder: Path, data_dir: Path) -> None:
        self.folder = folder
        self._n_outputs = 0
        source = data_dir / "covtype.libsvm.binary.scale"
        source = source if source.exists() else source.with_name(source.name + ".gz")
        words = ["simulate", "--data", str(source.resolve()), "--positive-label", "2", "-q"]
        words += ["--n-pos", "500", "--n-unl", "5000", "--contamination-unl", "0.2"]
        self._run(*words, "--test-pos", "10", "--test-neg", "10", outputs=["data"])

    def _run(self, *words: str, outputs: Sequence[str]) -> float:
        """Run one program per output, all at once; return the seconds until the last one ends."""
        program = str(Path(sys.executable).with_name("resvm"))
        started = time.monotonic()
        processes = [
            subprocess.Popen([program, *words, "-o", name], cwd=self.folder, env=environment())
            for name in outputs
        ]
        try:
            for process in processes:
                if process.wait(PATIENCE):
                    raise SystemExit(f"{' '.join(words)}: exit code {process.returncode}")
        finally:
            for process in processes:
                process.kill()
        return time.monotonic() - started

    def timed(self, work: Work, way: str) -> tuple[float, str]:
        """Return the seconds taken and the digest of the output."""
        outputs = []
        for _ in range(2 if way == "two processes" else 1):
            self._n_outputs += 1
            outputs.append(f"out-{self._n_outputs}")
        if "worker" in way:
            with self._cluster(1 if way == "one worker" else 2) as file:
                seconds = self._run(*work.words, "--cluster", file, outputs=outputs)
        else:
            threads = "2" if way == "two threads" else "1"
            seconds = self._run(*work.words, "-j", threads, outputs=outputs)
        content = (self.folder / outputs[0] / work.compared).read_bytes()
        return seconds, hashlib.sha256(content).hexdigest()

    @contextmanager
    def _cluster(self, n_workers: int) -> Iterator[str]:
        """Start a scheduler on loopback with single-threaded workers; yield its scheduler file."""
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        at = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
        worker = ["worker", *at, "--nthreads", "1", "--local-directory", str(self.folder)]
        processes = [self._dask("scheduler", *at, "--port", "0", "--no-show")]
        try:
            deadline = time.monotonic() + START_SECONDS
            while not file.exists():
                if time.monotonic() > deadline:
                    raise SystemExit("the scheduler did not start")
                time.sleep(0.1)
            processes += [self._dask(*worker) for _ in range(n_workers)]
            from distributed import Client

            with Client(scheduler_file=str(file), timeout=START_SECONDS) as client:
                client.wait_for_workers(n_workers, timeout=START_SECONDS)
            yield str(file)
        finally:
            for process in processes:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _dask(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{name}", *words],
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def gains(seconds: dict[str, float]) -> dict[str, float]:
    """Return the speedups over one thread or, for clusters, over one worker."""
    found = {}
    for way, taken in seconds.items():
        base = seconds.get("one worker" if "worker" in way else "one thread", taken)
        found[way] = base / taken * (2 if way == "two processes" else 1)
    return found


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m experiments.speed scaling", description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder with covtype's file")
    parser.add_argument("--only", nargs="+", choices=WORK, default=list(WORK))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="resvm-scaling-") as name:
        bench = Bench(Path(name), given.data_dir)
        for key in given.only:
            taken: dict[str, list[float]] = {way: [] for way in given.ways}
            digests = set()
            for _ in range(given.turns):
                for way, times in taken.items():
                    seconds, digest = bench.timed(WORK[key], way)
                    times.append(seconds)
                    digests.add(digest)
                    print(f"{key}, {way}: {seconds:.1f} s", file=sys.stderr, flush=True)
            best = {way: min(times) for way, times in taken.items()}
            print(f"{WORK[key].what}{'' if len(digests) == 1 else ': NOT THE SAME BYTES'}")
            for way, gain in gains(best).items():
                print(f"  {way:14} {best[way]:7.2f} s  {gain:5.2f}x", flush=True)
