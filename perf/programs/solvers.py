"""LIBSVM and LIBLINEAR: their Python packages and their own programs."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from perf import agreement
from perf.agreement import Agreement
from perf.ensembles import Ensemble
from perf.measure import Steps
from perf.programs.program import Program, script


@dataclass(frozen=True)
class LibsvmPython(Program):
    """A loop over libsvm-official."""

    title: str = "libsvm-official"
    peer = "libsvm-official"
    slow = True

    def installed(self) -> bool:
        return importlib.util.find_spec("libsvm") is not None

    def train(self, ensemble: Ensemble, target: Path) -> Steps:
        problem = ensemble.problem
        return script("libsvm_train", ensemble.bags, problem.positives, problem.unlabeled, target)

    def predict(self, ensemble: Ensemble, model: Path, rows: Path, out: Path) -> Steps:
        return self.judge(model, rows, out, ensemble.n_models)

    def judge(self, model: Path, rows: Path, out: Path, n_members: int) -> Steps:
        return script("libsvm_predict", model, rows, out, n_members)

    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        text = values.with_suffix(".txt")
        return script("libsvm_predict", model, rows, text, ensemble.n_models, values)


@dataclass(frozen=True)
class LiblinearPython(Program):
    """A loop over liblinear-official."""

    title: str = "liblinear-official"
    kernels: tuple[str, ...] = ("linear",)
    solver: Literal["libsvm", "liblinear"] = "liblinear"
    peer = "liblinear-official"

    def installed(self) -> bool:
        return importlib.util.find_spec("liblinear") is not None

    @property
    def way(self) -> str:
        return ", weights stacked by hand"

    def train(self, ensemble: Ensemble, target: Path) -> Steps:
        problem = ensemble.problem
        return script(
            "liblinear_train", ensemble.bags, problem.positives, problem.unlabeled, target
        )

    def predict(self, ensemble: Ensemble, model: Path, rows: Path, out: Path) -> Steps:
        return script("liblinear_predict", model, rows, out)

    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        return script("liblinear_predict", model, rows, values.with_suffix(".txt"), values)


@dataclass(frozen=True)
class Stock(Program):
    """The solvers' own programs, once for each member; they write labels, not values."""

    title: str
    trainer: str
    predictor: str
    kernels: tuple[str, ...]
    solver: Literal["libsvm", "liblinear"]
    peer = "stock"
    slow = True

    def installed(self) -> bool:
        return all(shutil.which(name) for name in (self.trainer, self.predictor))

    def train(self, ensemble: Ensemble, target: Path) -> Steps:
        target.mkdir(exist_ok=True)
        given = {name: array.tolist() for name, array in ensemble.parameters.items()}
        penalties = ["-c", given["c_unl"], "-w1", given["c_pos"] / given["c_unl"]]
        steps: list[list[list[str]]] = []
        for number, bag in enumerate(ensemble.bag_files):
            if self.solver == "libsvm":
                kind = ["-s", 0, "-t", 0 if ensemble.kernel == "linear" else 2]
                kind += ["-g", given["gamma"], "-e", given["tolerance"]]
            else:
                kind = ["-s", 3, "-B", given["bias"][number], "-e", given["linear_tolerance"]]
            model = target / f"{number:05d}.model"
            arguments = [self.trainer, "-q", *kind, *penalties, bag, model]
            steps.append([[str(argument) for argument in arguments]])
        return steps

    def predict(self, ensemble: Ensemble, model: Path, rows: Path, out: Path) -> Steps:
        return self.judge(model, rows, out, ensemble.n_models)

    def judge(self, model: Path, rows: Path, out: Path, n_members: int) -> Steps:
        members = [model / f"{number:05d}.model" for number in range(n_members)]
        return [
            [[self.predictor, str(rows), str(member), f"{out}.{number}"]]
            for number, member in enumerate(members)
        ]

    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        # their model files are what the Python packages read
        text = values.with_suffix(".txt")
        if self.solver == "liblinear":
            return script("liblinear_predict", model, rows, text, values)
        return script("libsvm_predict", model, rows, text, ensemble.n_models, values)

    def check_written(self, reference: np.ndarray, out: Path, slack: np.ndarray) -> Agreement:
        files = [Path(f"{out}.{number}") for number in range(reference.shape[1])]
        return agreement.labels(reference, files, slack)
