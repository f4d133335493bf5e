"""What a peer must be able to do: train given bags, judge rows, tell its members' values."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from perf import agreement
from perf.agreement import LIMITS, Agreement, Members
from perf.case import Part
from perf.ensembles import Ensemble
from perf.measure import Steps, command, run

SCRIPTS = Path(__file__).parent.parent / "peers"


def script(name: str, *arguments: object) -> Steps:
    """One of the peers' scripts, run by this interpreter."""
    return command(sys.executable, SCRIPTS / f"{name}.py", *arguments)


class Program(ABC):
    """A way of training and judging other than resvm's."""

    peer: ClassVar[str]  # what --peers calls it
    title: str
    kernels: tuple[str, ...] = ("linear", "rbf")
    solver: Literal["libsvm", "liblinear"] = "libsvm"  # whose optimum its members are at
    slow: ClassVar[bool] = False  # judges with a part of the members, and the whole follows

    @abstractmethod
    def installed(self) -> bool:
        """Whether it can be run here."""

    @abstractmethod
    def train(self, ensemble: Ensemble, target: Path) -> Steps:
        """Train the members and write them."""

    @abstractmethod
    def predict(self, ensemble: Ensemble, model: Path, rows: Path, out: Path) -> Steps:
        """Judge rows with all members."""

    @abstractmethod
    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        """Write the members' decision values as an array."""

    def judge(self, model: Path, rows: Path, out: Path, n_members: int) -> Steps:
        """Judge rows with the first members."""
        raise NotImplementedError

    @property
    def by_rows(self) -> bool:
        """Whether it judges a part of the rows, and the whole follows."""
        return False

    def judged(self, ensemble: Ensemble) -> Path:
        """The test rows that are judged."""
        rows = ensemble.problem.test
        n_rows = ensemble.bench.sizes.test_rows // 4
        return ensemble.bench.data.head(rows, n_rows) if self.by_rows else rows

    def part(self, ensemble: Ensemble, model: Path, out: Path) -> tuple[Steps, Part] | None:
        """Where judging takes minutes: the part to run, and how the whole follows."""
        if self.by_rows:
            n_rows = ensemble.bench.sizes.test_rows
            fewer = ensemble.bench.data.head(ensemble.problem.test, n_rows // 20)
            smaller = self.predict(ensemble, model, fewer, out.with_suffix(".less"))
            larger = self.predict(ensemble, model, self.judged(ensemble), out)
            return larger, Part(smaller, (n_rows // 20, n_rows // 4), n_rows, "rows")
        counts = self.part_members(ensemble)
        if counts is None:
            return None
        rows, other = ensemble.problem.test, out.with_suffix(".less")
        smaller = self.judge(model, rows, other, counts[0])
        whole = Part(smaller, counts, ensemble.n_models, "members")
        return self.judge(model, rows, out, counts[1]), whole

    @property
    def way(self) -> str:
        """How rows are judged, where there is more than one way."""
        return ""

    def target(self, ensemble: Ensemble) -> Path:
        """Where its members are."""
        return ensemble.folder / self.title.replace(" ", "-").replace(",", "")

    def trained(self, ensemble: Ensemble) -> Path:
        """Its members, trained now if they are not there."""
        target = self.target(ensemble)
        if not target.exists():
            run(self.train(ensemble, target), timeout=ensemble.bench.sizes.timeout)
        return target

    def members(self, ensemble: Ensemble) -> Members:
        """Its members beside resvm's, value by value, on the probe rows."""
        file = ensemble.folder / f"{self.title}.npy"
        run(self.values(ensemble, self.trained(ensemble), ensemble.probe, file))
        return Members(
            ensemble.reference(ensemble.probe, self.solver),
            np.load(file),
            LIMITS[self.solver],
            ensemble.unfinished(self.solver),
        )

    def check_members(self, ensemble: Ensemble) -> Agreement:
        """Whether its members are resvm's."""
        return self.members(ensemble).agreement()

    def check_predictions(self, ensemble: Ensemble, rows: Path, out: Path) -> Agreement:
        """Whether its members are resvm's, and what it wrote of all rows follows from them."""
        members = self.members(ensemble)
        held = members.agreement()
        if not held.agrees:
            return held
        judged = ensemble.n_models
        if (some := self.part_members(ensemble)) is not None:
            judged = some[1]
        reference = ensemble.reference(rows, self.solver)[:, :judged]
        return held & self.check_written(reference, out, members.slack[:judged])

    def check_written(self, reference: np.ndarray, out: Path, slack: np.ndarray) -> Agreement:
        """Whether the predictions it wrote are those of these members."""
        return agreement.votes_and_values(reference, out, slack)

    def part_members(self, ensemble: Ensemble) -> tuple[int, int] | None:
        """Where it is too slow to judge with all members: two numbers of them to judge with."""
        less, more = ensemble.bench.sizes.part_members
        return (less, more) if self.slow and more < ensemble.n_models else None
