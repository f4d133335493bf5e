"""Run the cases of a group in turn, and compare the best run of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.speed.agreement import Agreement
from experiments.speed.measure import Failed, Run, Steps, run

LONG = 3.0  # seconds; longer cases run only once
STARTS = 3  # runs of the start-up command, whose time must be as precise as that of the case


@dataclass(frozen=True)
class Case:
    """One program that does one piece of work."""

    name: str
    steps: Steps
    stdout: Path | None = None
    threads: int | None = 1
    prepare: Callable[[], object] | None = None  # once, not timed
    reset: Callable[[], object] | None = None  # before each run, not timed
    check: Callable[[], Agreement] | None = None  # after the first run; None: nothing to compare
    less: Steps | None = None  # a command for start-up alone, whose time is subtracted


@dataclass(frozen=True)
class Group:
    """Cases that do the same work; the first is the baseline for the others."""

    title: str
    cases: Sequence[Case]
    megabytes: float | None = None  # of text, for a rate
    repeats: int = 1  # multiplies the number of repeats; short cases need more


@dataclass(frozen=True)
class Row:
    """The result of one case; ``seconds`` is None if the time does not count."""

    name: str
    seconds: float | None
    cpu_seconds: float | None
    ratio: float | None  # relative to the first case of the group
    peak_mb: float | None
    agreement: str
    agrees: bool


@dataclass
class _Entry:
    """A case and its runs so far."""

    case: Case
    timeout: float
    runs: list[Run] = field(default_factory=list)
    starts: list[Run] = field(default_factory=list)  # runs of the start-up command
    agreement: Agreement | None = None
    failure: str = ""

    def measure(self, steps: Steps) -> Run:
        case = self.case
        return run(steps, stdout=case.stdout, threads=case.threads, timeout=self.timeout)

    def take_turn(self) -> None:
        case = self.case
        try:
            if not self.runs and case.prepare is not None:
                case.prepare()
            # run the command itself last, because its output is checked
            if case.less is not None:
                self.starts += [self.measure(case.less) for _ in range(STARTS)]
            if case.reset is not None:
                case.reset()
            self.runs.append(self.measure(case.steps))
        except Failed as failed:
            self.failure = str(failed)

    def verify(self) -> None:
        if self.case.check is not None and not self.failure:
            try:
                self.agreement = self.case.check()
            except Failed as failed:
                self.failure = f"could not be checked: {failed}"

    @property
    def agrees(self) -> bool:
        return not self.failure and (self.agreement is None or self.agreement.agrees)

    def best(self, cost: Callable[[Run], float]) -> float | None:
        """Return the lowest cost of all runs, or None if the time does not count."""
        if not self.agrees:
            return None
        best = min(map(cost, self.runs))
        return max(1e-9, best - min(map(cost, self.starts))) if self.starts else best

    def row(self, first: float | None) -> Row:
        seconds = self.best(lambda measured: measured.seconds)
        text = "" if self.agreement is None else self.agreement.text
        if self.failure:
            text = f"FAILED: {self.failure}"
        elif not self.agrees:
            text = f"DISAGREES: {text}"
        return Row(
            self.case.name,
            seconds,
            self.best(lambda measured: measured.cpu_seconds),
            seconds / first if seconds and first else None,
            max((measured.peak_mb for measured in self.runs), default=None),
            text,
            self.agrees,
        )


def compete(group: Group, repeats: int, timeout: float, tell: Callable[[str], object]) -> list[Row]:
    """Run all cases in turn, so that noise on the machine affects them equally."""
    entries = [_Entry(case, timeout) for case in group.cases]
    playing = entries
    for turn in range(repeats * group.repeats):
        for entry in playing:
            entry.take_turn()
            took = entry.failure or f"{entry.runs[-1].seconds:.3f} s"
            tell(f"{group.title}: turn {turn + 1}: {entry.case.name}: {took}")
        if turn == 0:
            for entry in entries:
                entry.verify()
        playing = [entry for entry in playing if entry.agrees and entry.runs[-1].seconds < LONG]
    first = entries[0].best(lambda measured: measured.seconds)
    return [entry.row(first) for entry in entries]


def table(group: Group, rows: Sequence[Row]) -> str:
    """Format the results of a group as Markdown."""
    rate = ["MB/s"] if group.megabytes else []
    head = ["what was run", "seconds", "CPU", *rate, "ratio", "peak MB", "agreement"]
    cells = [head, ["---", *["--:"] * (len(head) - 2), "---"]]
    for row in rows:
        speed = [_shown(row.seconds and group.megabytes / row.seconds, ".0f")] if rate else []
        numbers = [_shown(row.seconds, ".3f"), _shown(row.cpu_seconds, ".3f"), *speed]
        numbers += [_shown(row.ratio, ".2f"), _shown(row.peak_mb, ".0f")]
        cells.append([row.name, *numbers, row.agreement])
    lines = ["| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in cells]
    return "\n".join([f"**{group.title}**", "", *lines]) + "\n"


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
