"""The Python API of ``import resvm_cli``: functions and their results."""

from resvm_cli.api.functions import fit, load, rank, read_svmlight, tune
from resvm_cli.api.results import Model, OutOfBagRows, Ranking, SvmlightData, Tuning
from resvm_cli.errors import ResultWarning

__all__ = [
    "Model",
    "OutOfBagRows",
    "Ranking",
    "ResultWarning",
    "SvmlightData",
    "Tuning",
    "fit",
    "load",
    "rank",
    "read_svmlight",
    "tune",
]
