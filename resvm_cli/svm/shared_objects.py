"""Where the solvers' compiled code lies: found without importing their Python packages."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
from glob import escape, glob
from os.path import join

from resvm_cli.errors import SolverError

PRINT_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


def find_shared_object(package: str, name: str) -> str:
    """The path of the one shared object inside an installed package."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [path for folder in folders for path in sorted(glob(join(escape(folder), "clib*")))]
    if not found:
        raise SolverError(
            f"{name}'s shared object is not there", f"reinstall it: pip install {package}-official"
        )
    return found[0]


def package_version(distribution: str) -> str:
    return importlib.metadata.version(distribution)
