"""What the paper reports, as tables that come with the package: facts, never computed here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from resvm_cli.files.delimited import fields_of
from resvm_cli.files.streams import package_text

RESULTS = "published.csv"
PARAMETERS = "published_parameters.csv"


@dataclass(frozen=True)
class PublishedResult:
    """A cell of the paper's tables: an interval of the PR area in percent, and wins of 20."""

    setting: str
    task: str
    method: str
    low: float
    high: float
    wins: int
    p_below: float | None  # of resvm over bagging, one-sided; None where it is not significant

    @property
    def middle(self) -> float:
        """The mean of the interval, which is that of the repetitions."""
        return (self.low + self.high) / 2

    @property
    def width(self) -> float:
        """From bound to bound."""
        return self.high - self.low


@dataclass(frozen=True)
class PublishedParameters:
    """Medians of resvm's tuned parameters on one digit of mnist."""

    setting: str
    task: str
    n_pos: float
    unl_per_pos: float
    w_pos: float


def read_published() -> dict[tuple[str, str, str], PublishedResult]:
    """The paper's tables of areas by setting, task and method, in their order."""
    return {
        (setting, task, method): PublishedResult(
            setting, task, method, float(low), float(high), int(wins), float(p) if p else None
        )
        for setting, task, method, low, high, wins, p in _lines(RESULTS)
    }


def read_published_parameters() -> dict[tuple[str, str], PublishedParameters]:
    """The paper's table of parameters by setting and task."""
    return {
        (setting, task): PublishedParameters(setting, task, float(n_pos), float(ratio), float(w))
        for setting, task, n_pos, ratio, w in _lines(PARAMETERS)
    }


def _lines(name: str) -> Iterator[list[str]]:
    text = package_text(f"benchmark/{name}")
    for number, line in enumerate(text.splitlines()[1:], 2):
        yield fields_of(line, ",", f"{name}:{number}")
