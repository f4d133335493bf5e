"""EnsembleSVM, which the authors' script drives; no package brings it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perf.agreement import Agreement, Members
from perf.ensembles import Ensemble
from perf.measure import Steps
from perf.programs.program import Program, script


@dataclass(frozen=True)
class EnsembleSvm(Program):
    """esvm-train and esvm-predict, where they are on the PATH.

    esvm-predict takes as many threads as there are: of it, CPU seconds compare.
    """

    title: str = "EnsembleSVM"
    peer = "ensemblesvm"

    def installed(self) -> bool:
        return all(shutil.which(name) for name in ("esvm-train", "esvm-predict"))

    def train(self, ensemble: Ensemble, target: Path) -> Steps:
        given = ensemble.parameters
        rows, bags = self.written(ensemble)
        arguments = {
            "-data": rows,
            "-bootstrap": bags,
            "-nmodels": ensemble.n_models,
            "-pospen": float(given["c_pos"]),
            "-negpen": float(given["c_unl"]),
            "-kfun": 0 if ensemble.kernel == "linear" else 2,
            "-gamma": float(given["gamma"]),
            "-threads": 1,
            "-o": target,
        }
        words = [str(word) for pair in arguments.items() for word in pair]
        return [[["esvm-train", "-labels", "1", "-1", *words]]]

    def written(self, ensemble: Ensemble) -> tuple[Path, Path]:
        """All rows in one file, P first, and a line of row numbers for each bag."""
        rows, bags = ensemble.folder / "esvm.svm", ensemble.folder / "esvm.bags"
        if not bags.exists():
            lines = [
                f"{label} {line.split(maxsplit=1)[1]}"
                for label, path in (
                    (1, ensemble.problem.positives),
                    (-1, ensemble.problem.unlabeled),
                )
                for line in path.read_text().splitlines(keepends=True)
            ]
            rows.write_text("".join(lines))
            given = ensemble.parameters
            n_positives = ensemble.bench.sizes.rows_pos
            numbers = np.hstack([given["positive"] + 1, given["unlabeled"] + n_positives + 1])
            bags.write_text("".join(" ".join(map(str, bag)) + "\n" for bag in numbers.tolist()))
        return rows, bags

    def predict(self, ensemble: Ensemble, model: Path, rows: Path, out: Path) -> Steps:
        del ensemble
        return [[self._judge(model, rows, out)]]

    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        del ensemble
        text = values.with_suffix(".txt")
        return [[[*self._judge(model, rows, text), "-base"]], *script("esvm_values", text, values)]

    def members(self, ensemble: Ensemble) -> Members:
        return super().members(ensemble).matched()  # it stores them in another order

    def _judge(self, model: Path, rows: Path, out: Path) -> list[str]:
        files = ["-data", str(rows), "-model", str(model), "-o", str(out)]
        return ["esvm-predict", "-labeled", *files]

    def check_written(self, reference: np.ndarray, out: Path, slack: np.ndarray) -> Agreement:
        """Labels of the majority, and shares of votes where no member is near to zero."""
        votes = np.loadtxt(out, ndmin=2)[:, 1]
        least, most = (reference > slack).mean(axis=1), (reference > -slack).mean(axis=1)
        wrong = (votes < least - 1e-5) | (votes > most + 1e-5)
        if len(votes) != len(reference) or wrong.any():
            return Agreement(False, f"votes differ in {wrong.sum():,} of {len(reference):,} rows")
        return Agreement(True, f"votes of {len(votes):,} rows")
