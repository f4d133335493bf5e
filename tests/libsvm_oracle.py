"""LIBSVM's loader and decision function as an oracle, only for files written by resvm."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_double, c_void_p
from pathlib import Path

import numpy as np

from resvm_cli.rows import Rows
from resvm_cli.svm.libsvm import NodeArray, library


def predict_values(path: Path, rows: Rows) -> np.ndarray:
    """Apply the model in this file to each row with svm_predict_values."""
    code = ctypes.CDLL(library().path)
    code.svm_load_model.argtypes = [c_char_p]
    code.svm_load_model.restype = c_void_p
    code.svm_predict_values.argtypes = [c_void_p, c_void_p, ctypes.POINTER(c_double)]
    code.svm_predict_values.restype = c_double
    code.svm_free_and_destroy_model.argtypes = [ctypes.POINTER(c_void_p)]
    model = code.svm_load_model(str(path).encode())
    assert model, path
    arena = NodeArray(rows)
    out = c_double()
    values = []
    for pointer in arena.pointers(np.arange(len(rows))).tolist():
        code.svm_predict_values(model, pointer, byref(out))
        values.append(out.value)
    code.svm_free_and_destroy_model(byref(c_void_p(model)))
    return np.array(values)
