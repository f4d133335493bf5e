"""scikit-learn, and pulearn on top of it."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from perf import agreement
from perf.agreement import Agreement
from perf.ensembles import Ensemble
from perf.measure import Steps, run
from perf.programs.program import Program, script


@dataclass(frozen=True)
class ScikitLearn(Program):
    """A loop over SVC or LinearSVC."""

    title: str
    machine: Literal["svc", "linearsvc"]
    form: Literal["sparse", "dense"]
    judge: Literal["loop", "stacked"] = "loop"
    kernels: tuple[str, ...] = ("linear", "rbf")
    solver: Literal["libsvm", "liblinear"] = "libsvm"
    peer = "scikit-learn"

    def run_script(self, name: str, *arguments: object) -> Steps:
        return script(name, *arguments)

    def installed(self) -> bool:
        return importlib.util.find_spec("sklearn") is not None

    @property
    def by_rows(self) -> bool:
        return self.machine == "svc" and self.judge == "loop"

    @property
    def way(self) -> str:
        return ", weights stacked by hand" if self.judge == "stacked" else ""

    def train(self, ensemble: Ensemble, target: Path) -> Steps:
        problem = ensemble.problem
        data = (ensemble.bags, problem.positives, problem.unlabeled)
        return self.run_script("sklearn_train", *data, target, self.machine, self.form)

    def predict(self, ensemble: Ensemble, model: Path, rows: Path, out: Path) -> Steps:
        return self.run_script("sklearn_predict", model, rows, out, self.judge, self.form)

    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        text = values.with_suffix(".txt")
        arguments = (model, rows, text, self.judge, self.form, values)
        return self.run_script("sklearn_predict", *arguments)


@dataclass(frozen=True)
class ScikitLearnIntelex(ScikitLearn):
    """The same scripts, scikit-learn's classes replaced by Intel's."""

    title: str = "scikit-learn-intelex SVC, dense rows"
    machine: Literal["svc", "linearsvc"] = "svc"
    form: Literal["sparse", "dense"] = "dense"
    peer = "scikit-learn-intelex"

    def run_script(self, name: str, *arguments: object) -> Steps:
        return script("intelex", name, *arguments)

    def installed(self) -> bool:
        return importlib.util.find_spec("sklearnex") is not None


@dataclass(frozen=True)
class Pulearn(Program):
    """pulearn's bagging SVM: bags of its own, so its members are not compared."""

    title: str = "pulearn BaggingPuClassifier"
    peer = "pulearn"

    @property
    def by_rows(self) -> bool:
        return True

    def installed(self) -> bool:
        return importlib.util.find_spec("pulearn") is not None

    def train(self, ensemble: Ensemble, target: Path) -> Steps:
        problem = ensemble.problem
        return script("pulearn_train", ensemble.bags, problem.positives, problem.unlabeled, target)

    def predict(self, ensemble: Ensemble, model: Path, rows: Path, out: Path) -> Steps:
        return script("pulearn_predict", model, rows, out)

    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        raise NotImplementedError("its members are others")

    def check_members(self, ensemble: Ensemble) -> Agreement:
        out = ensemble.folder / "pulearn.probe"
        run(self.predict(ensemble, self.trained(ensemble), ensemble.probe, out))
        votes = (ensemble.reference(ensemble.probe, "libsvm") > 0).mean(axis=1)
        return agreement.ranks(votes, np.loadtxt(out)[:, 2])

    def check_predictions(self, ensemble: Ensemble, rows: Path, out: Path) -> Agreement:
        del rows, out
        return self.check_members(ensemble)
