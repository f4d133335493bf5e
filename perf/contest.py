"""Run the cases of a group in turn, and compare the best run of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from perf.agreement import Agreement
from perf.case import Asked, Case, Group
from perf.measure import Failed, Run, Steps, run
from perf.sizes import Sizes

LONG = 3.0  # seconds; longer cases run only once
STARTS = 3  # runs of the start-up command, whose time must be as precise as that of the case


@dataclass(frozen=True)
class Row:
    """The result of one case; ``seconds`` is None if the time does not count."""

    name: str
    seconds: float | None
    ratio: float | None  # relative to the first case of the group
    rate: float | None
    peak_mb: float | None
    agreement: str
    agrees: bool
    note: str = ""
    runs: tuple[float, ...] = ()
    cpu_seconds: float | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether a target ratio was met."""

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
    """The results of one group."""

    title: str
    unit: str
    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...]


@dataclass
class _Entry:
    """A case and its runs so far."""

    case: Case
    runs: list[Run] = field(default_factory=list)
    starts: list[Run] = field(default_factory=list)  # runs of the start-up command
    parts: list[Run] = field(default_factory=list)  # runs of the smaller part
    agreement: Agreement | None = None
    failure: str = ""

    def turn(self, sizes: Sizes) -> None:
        case = self.case

        def measured(steps: Steps) -> Run:
            return run(steps, stdout=case.stdout, threads=case.threads, timeout=sizes.timeout)

        try:
            if not self.runs and case.prepare is not None:
                case.prepare()
            # run the command itself last, because its output is checked
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
        """Whether another run could change the result."""
        agrees = self.agreement is None or self.agreement.agrees
        return agrees and not self.failure and self.runs[-1].seconds < LONG

    @property
    def seconds(self) -> float | None:
        return self._best(lambda measured: measured.seconds)

    def _best(self, cost: Callable[[Run], float]) -> float | None:
        """The lowest cost of all runs, or None if the time does not count."""
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
    """Run all cases in turn, so that noise on the machine affects them equally."""
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
    """Compute the ratio for a target from the rows whose times count."""
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
