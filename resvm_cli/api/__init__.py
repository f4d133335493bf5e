"""The Python API behind ``import resvm_cli``: functions and their results."""

from resvm_cli.api.functions import Tuning, fit, tune
from resvm_cli.api.matrices import SvmlightData, read_svmlight
from resvm_cli.api.rankings import Ranking, rank
from resvm_cli.api.results import Model, OutOfBagRows, load
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
