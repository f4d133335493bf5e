"""The other programs: each trains given bags, predicts, and tells its members' values."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from experiments.speed import agreement
from experiments.speed.agreement import LIMITS, Agreement, Members
from experiments.speed.ensembles import Ensemble
from experiments.speed.measure import Steps, command, run

SCRIPTS = Path(__file__).parent / "scripts"
Solver = Literal["libsvm", "liblinear"]


def script(name: str, *arguments: object) -> Steps:
    """Return the steps for one of the scripts, run by this interpreter."""
    return command(sys.executable, SCRIPTS / f"{name}.py", *arguments)


def has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


class Program(ABC):
    """A way of training and predicting other than that of resvm."""

    peer: ClassVar[str]  # what --peers calls it
    title: str
    kernels: tuple[str, ...] = ("linear", "rbf")
    solver: Solver = "libsvm"  # whose optimum its members are at
    how: str = ""  # how it predicts, if there is more than one way

    @abstractmethod
    def is_installed(self) -> bool:
        """Whether it can be run here."""

    @abstractmethod
    def train(self, ensemble: Ensemble, target: Path) -> Steps:
        """Train the members and write them."""

    @abstractmethod
    def predict(self, ensemble: Ensemble, model: Path, rows: Path, out: Path) -> Steps:
        """Predict rows with all members."""

    @abstractmethod
    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        """Write the members' decision values as an array."""

    def target(self, ensemble: Ensemble) -> Path:
        """Return where its members are."""
        return ensemble.folder / self.title.replace(" ", "-").replace(",", "")

    def trained(self, ensemble: Ensemble) -> Path:
        """Return its members, trained on first use."""
        target = self.target(ensemble)
        if not target.exists():
            run(self.train(ensemble, target), timeout=ensemble.bench.timeout)
        return target

    def members(self, ensemble: Ensemble) -> Members:
        """Return the values of its members beside those of resvm on the probe rows."""
        file = ensemble.folder / f"{self.title}.npy"
        run(self.values(ensemble, self.trained(ensemble), ensemble.probe, file))
        return Members(
            ensemble.reference(ensemble.probe, self.solver),
            np.load(file),
            LIMITS[self.solver],
            ensemble.unfinished(self.solver),
        )

    def check_members(self, ensemble: Ensemble) -> Agreement:
        """Check that its members are those of resvm."""
        return self.members(ensemble).agreement()

    def check_predictions(self, ensemble: Ensemble, rows: Path, out: Path) -> Agreement:
        """Check that its members are those of resvm, and that what it wrote follows from them."""
        members = self.members(ensemble)
        held = members.agreement()
        if not held.agrees:
            return held
        reference = ensemble.reference(rows, self.solver)
        return held & self.check_written(reference, out, members.slack)

    def check_written(self, reference: np.ndarray, out: Path, slack: np.ndarray) -> Agreement:
        """Check that the predictions follow from the values of the members."""
        return agreement.votes_and_values(reference, out, slack)


@dataclass(frozen=True)
class ScikitLearn(Program):
    """A loop over SVC or LinearSVC."""

    title: str
    machine: Literal["svc", "linearsvc"]
    form: Literal["sparse", "dense"]
    values_by: Literal["loop", "stacked"] = "loop"
    kernels: tuple[str, ...] = ("linear", "rbf")
    solver: Solver = "libsvm"
    how: str = ""
    peer = "scikit-learn"

    def run_script(self, name: str, *arguments: object) -> Steps:
        return script(name, *arguments)

    def is_installed(self) -> bool:
        return has_module("sklearn")

    def train(self, ensemble: Ensemble, target: Path) -> Steps:
        problem = ensemble.problem
        data = (ensemble.bags, problem.positives, problem.unlabeled)
        return self.run_script("sklearn_train", *data, target, self.machine, self.form)

    def predict(self, ensemble: Ensemble, model: Path, rows: Path, out: Path) -> Steps:
        return self.run_script("sklearn_predict", model, rows, out, self.values_by, self.form)

    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        arguments = (model, rows, values.with_suffix(".txt"), self.values_by, self.form, values)
        return self.run_script("sklearn_predict", *arguments)


@dataclass(frozen=True)
class ScikitLearnIntelex(ScikitLearn):
    """The same scripts, with scikit-learn's classes replaced by Intel's."""

    title: str = "scikit-learn-intelex SVC, dense rows"
    machine: Literal["svc", "linearsvc"] = "svc"
    form: Literal["sparse", "dense"] = "dense"
    peer = "scikit-learn-intelex"

    def run_script(self, name: str, *arguments: object) -> Steps:
        return script("intelex", name, *arguments)

    def is_installed(self) -> bool:
        return has_module("sklearnex")


@dataclass(frozen=True)
class Pulearn(Program):
    """pulearn's bagging SVM, which draws bags of its own, so its members are not compared."""

    title: str = "pulearn BaggingPuClassifier"
    peer = "pulearn"

    def is_installed(self) -> bool:
        return has_module("pulearn")

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
        return self.check_members(ensemble)


@dataclass(frozen=True)
class SolverPackage(Program):
    """A loop over libsvm-official or liblinear-official."""

    title: str
    solver: Solver = "libsvm"
    kernels: tuple[str, ...] = ("linear", "rbf")
    how: str = ""

    @property
    def peer(self) -> str:  # type: ignore[override]
        return f"{self.solver}-official"

    def is_installed(self) -> bool:
        return has_module(self.solver)

    def train(self, ensemble: Ensemble, target: Path) -> Steps:
        problem = ensemble.problem
        data = (ensemble.bags, problem.positives, problem.unlabeled)
        return script(f"{self.solver}_train", *data, target)

    def predict(self, ensemble: Ensemble, model: Path, rows: Path, out: Path) -> Steps:
        return script(f"{self.solver}_predict", model, rows, out)

    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        return script(f"{self.solver}_predict", model, rows, values.with_suffix(".txt"), values)


@dataclass(frozen=True)
class Stock(Program):
    """The solvers' own programs, once for each member; they write labels, not values."""

    title: str
    trainer: str
    predictor: str
    kernels: tuple[str, ...]
    solver: Solver
    peer = "stock"

    def is_installed(self) -> bool:
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
        members = [model / f"{number:05d}.model" for number in range(ensemble.n_models)]
        return [
            [[self.predictor, str(rows), str(member), f"{out}.{number}"]]
            for number, member in enumerate(members)
        ]

    def values(self, ensemble: Ensemble, model: Path, rows: Path, values: Path) -> Steps:
        # the Python packages read the same model files
        return script(f"{self.solver}_predict", model, rows, values.with_suffix(".txt"), values)

    def check_written(self, reference: np.ndarray, out: Path, slack: np.ndarray) -> Agreement:
        files = [Path(f"{out}.{number}") for number in range(reference.shape[1])]
        return agreement.labels(reference, files, slack)


STACKED = ", weights stacked by hand"
SVC_SPARSE = ScikitLearn("scikit-learn SVC, sparse rows", "svc", "sparse")
SVC_STACKED = ScikitLearn(SVC_SPARSE.title, "svc", "sparse", "stacked", ("linear",), how=STACKED)
PROGRAMS: tuple[Program, ...] = (
    SVC_SPARSE,
    ScikitLearn("scikit-learn SVC, dense rows", "svc", "dense"),
    ScikitLearnIntelex(),
    ScikitLearn("scikit-learn LinearSVC", "linearsvc", "sparse", "loop", ("linear",), "liblinear"),
    SolverPackage("libsvm-official"),
    SolverPackage("liblinear-official", "liblinear", ("linear",), STACKED),
    Stock(
        "stock svm-train and svm-predict", "svm-train", "svm-predict", ("linear", "rbf"), "libsvm"
    ),
    Stock(
        "stock liblinear-train and -predict",
        *("liblinear-train", "liblinear-predict", ("linear",), "liblinear"),
    ),
    Pulearn(),
)


def programs(ensemble: Ensemble) -> Iterator[Program]:
    """Yield those that are installed, are wanted and can train this kernel."""
    for program in PROGRAMS:
        wanted = ensemble.bench.wants(program.peer)
        if wanted and ensemble.kernel in program.kernels and program.is_installed():
            yield program
