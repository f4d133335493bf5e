"""The Python API of ``import resvm_cli``: functions and their results."""

from resvm_cli.api.functions import fit, load, rank, read_svmlight, tune
from resvm_cli.api.results import Model, OutOfBagRows, Ranking, SvmlightData, Tuning

__all__ = [
    "Model",
    "OutOfBagRows",
    "Ranking",
    "SvmlightData",
    "Tuning",
    "fit",
    "load",
    "rank",
    "read_svmlight",
    "tune",
]
