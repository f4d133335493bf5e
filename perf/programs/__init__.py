"""The peers that resvm is measured beside."""

from __future__ import annotations

from collections.abc import Iterator

from perf.ensembles import Ensemble
from perf.programs.ensemble_svm import EnsembleSvm
from perf.programs.program import Program
from perf.programs.scikit_learn import Pulearn, ScikitLearn, ScikitLearnIntelex
from perf.programs.solvers import LiblinearPython, LibsvmPython, Stock

SVC_SPARSE = ScikitLearn("scikit-learn SVC, sparse rows", "svc", "sparse")
SVC_DENSE = ScikitLearn("scikit-learn SVC, dense rows", "svc", "dense")
SCRIPTS_ASKED = {
    "the scikit-learn script": SVC_SPARSE.title,  # rows as its loader gives them
    "the same over dense rows": SVC_DENSE.title,
}
SVC_STACKED = ScikitLearn(SVC_SPARSE.title, "svc", "sparse", "stacked", ("linear",))
INTELEX = ScikitLearnIntelex()
LINEAR_SVC = ScikitLearn(
    "scikit-learn LinearSVC", "linearsvc", "sparse", "loop", ("linear",), "liblinear"
)
PROGRAMS: tuple[Program, ...] = (
    SVC_SPARSE,
    SVC_DENSE,
    INTELEX,
    LINEAR_SVC,
    LibsvmPython(),
    LiblinearPython(),
    Stock(
        "stock svm-train and svm-predict", "svm-train", "svm-predict", ("linear", "rbf"), "libsvm"
    ),
    Stock(
        "stock liblinear-train and -predict",
        *("liblinear-train", "liblinear-predict", ("linear",), "liblinear"),
    ),
    EnsembleSvm(),
    Pulearn(),
)


def programs(ensemble: Ensemble) -> Iterator[Program]:
    """Those that are here, are wanted and can train this kernel."""
    for program in PROGRAMS:
        wanted = ensemble.bench.wants(program.peer)
        if wanted and ensemble.kernel in program.kernels and program.installed():
            yield program
