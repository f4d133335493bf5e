"""Run the cases of a group in turns, keep the best of each, and compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from perf.agreement import Agreement
from perf.case import Asked, Case, Group
from perf.measure import Failed, Run, Steps, run
from perf.sizes import Sizes

LONG = 10.0  # seconds; what takes longer is run once
STARTS = 3  # a difference of two times is no better than the worse of them


@dataclass(frozen=True)
class Row:
    """What came of one case; ``seconds`` is None where no time counts."""

    name: str
    seconds: float | None
    ratio: float | None  # to the first case of the group
    rate: float | None
    peak_mb: float | None
    agreement: str
    agrees: bool
    note: str = ""
    runs: tuple[float, ...] = ()
    cpu_seconds: float | None = None


@dataclass(frozen=True)
class Verdict:
    """What became of a figure that was asked for."""

    asked: Asked
    ratio: float | None

    @property
    def met(self) -> bool:
        if self.ratio is None:
            return False
        least = self.asked.at == "least"
        return self.ratio >= self.asked.bound if least else self.ratio <= self.asked.bound

    def __str__(self) -> str:
        sign = ">=" if self.asked.at == "least" else "<="
        of = "memory, " if self.asked.of == "peak_mb" else ""
        outcome = "not measured"
        if self.ratio is not None:
            outcome = f"{self.ratio:.3g}x, {'met' if self.met else 'NOT met'}"
        return f"{of}{self.asked.what}: asked {sign} {self.asked.bound:g}x: {outcome}"


@dataclass(frozen=True)
class Outcome:
    """A group with its rows."""

    title: str
    unit: str
    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...]


@dataclass
class _Entry:
    """One case while it competes."""

    case: Case
    runs: list[Run] = field(default_factory=list)
    starts: list[Run] = field(default_factory=list)  # of the command that is taken off
    parts: list[Run] = field(default_factory=list)  # of the smaller part
    agreement: Agreement | None = None
    failure: str = ""

    def turn(self, sizes: Sizes) -> None:
        case = self.case

        def measured(steps: Steps) -> Run:
            return run(steps, stdout=case.stdout, threads=case.threads, timeout=sizes.timeout)

        try:
            if not self.runs and case.prepare is not None:
                case.prepare()
            # the command itself comes last: its output is what is checked
            if case.less is not None:
                self.starts += [measured(case.less) for _ in range(STARTS)]
            if case.part is not None:
                self.parts.append(measured(case.part.smaller))
            if case.reset is not None:
                case.reset()
            self.runs.append(measured(case.steps))
        except Failed as failed:
            self.failure = str(failed)

    def verify(self) -> None:
        if self.case.check is not None and not self.failure:
            try:
                self.agreement = self.case.check()
            except Failed as failed:
                self.failure = f"could not be checked: {failed}"

    @property
    def competes(self) -> bool:
        """Whether another turn could change anything."""
        agrees = self.agreement is None or self.agreement.agrees
        return agrees and not self.failure and self.runs[-1].seconds < LONG

    @property
    def seconds(self) -> float | None:
        return self._best(lambda measured: measured.seconds)

    def _best(self, cost: Callable[[Run], float]) -> float | None:
        """The least of the runs, or None where no time counts."""
        if self.failure or (self.agreement is not None and not self.agreement.agrees):
            return None
        best = min(map(cost, self.runs))
        if self.starts:
            best = max(1e-9, best - min(map(cost, self.starts)))
        if self.case.part is not None:
            return self.case.part.seconds(min(map(cost, self.parts)), best)
        return best

    def row(self, first: float | None, amount: float | None) -> Row:
        seconds = self.seconds
        amount = self.case.amount or amount
        counts = seconds is not None
        note = "" if self.case.part is None else str(self.case.part)
        if note and not counts:
            note += ", too little to tell"
        agrees = not self.failure and (self.agreement is None or self.agreement.agrees)
        text = "" if self.agreement is None else self.agreement.text
        if self.failure:
            text = f"FAILED: {self.failure}"
        elif not agrees:
            text = f"DISAGREES: {text}"
        return Row(
            self.case.name,
            seconds,
            seconds / first if counts and first else None,
            amount / seconds if counts and amount else None,
            max((measured.peak_mb for measured in self.runs), default=None),
            text,
            agrees,
            note,
            tuple(measured.seconds for measured in self.runs),
            self._best(lambda measured: measured.cpu_seconds),
        )


def compete(group: Group, sizes: Sizes, tell: Callable[[str], None]) -> Outcome:
    """Give every case its turns, one after the other, so that a noisy minute hits all alike."""
    entries = [_Entry(case) for case in group.cases]
    playing = entries
    for turn in range(sizes.repeats * group.repeats):
        for entry in playing:
            entry.turn(sizes)
            took = entry.failure or f"{entry.runs[-1].seconds:.3f} s"
            tell(f"{group.title}: turn {turn + 1}: {entry.case.name}: {took}")
        if turn == 0:
            for entry in entries:
                entry.verify()
        playing = [entry for entry in playing if entry.competes]
    first = entries[0].seconds
    rows = tuple(entry.row(first, group.amount) for entry in entries)
    return Outcome(
        group.title, group.unit, rows, tuple(verdict(asked, rows) for asked in group.asked)
    )


def verdict(asked: Asked, rows: tuple[Row, ...]) -> Verdict:
    """A figure that was asked for, from the rows whose time counts."""
    known = {
        row.name: value
        for row in rows
        if row.agrees and (value := getattr(row, asked.of)) is not None
    }
    theirs = [known[name] for name in asked.theirs if name in known]
    if asked.ours not in known or not theirs:
        return Verdict(asked, None)
    ratio = min(theirs) / known[asked.ours]
    return Verdict(asked, ratio if asked.at == "least" else 1.0 / ratio)
