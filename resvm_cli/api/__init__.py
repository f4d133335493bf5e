"""The Python API of ``import resvm_cli``: functions and their results."""

from resvm_cli.api.functions import fit, rank, tune
from resvm_cli.api.matrices import SvmlightData, read_svmlight
from resvm_cli.api.rankings import Ranking
from resvm_cli.api.results import Model, OutOfBagRows, Tuning, load
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
