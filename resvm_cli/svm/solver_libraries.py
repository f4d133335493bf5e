"""Where the solvers' compiled code lies: found without importing their Python packages."""

from __future__ import annotations

import ctypes
import importlib.util
from glob import escape, glob
from os.path import basename, dirname, join

from resvm_cli.errors import SolverError

PRINT_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


def find_shared_object(package: str, name: str) -> str:
    """The path of the one shared object inside an installed package."""
    folders = _folders(package)
    paths = [path for folder in folders for path in sorted(glob(join(escape(folder), "clib*")))]
    if not paths:
        raise SolverError(
            f"{name}'s shared object is not there", f"reinstall it: pip install {package}-official"
        )
    return paths[0]


def package_version(package: str) -> str:
    """The version of the distribution that a solver's package came in: PACKAGE-official."""
    # the folder beside it is named by it; importlib.metadata takes 40 ms to import
    pattern = f"{package}_official-*.dist-info"
    beside = {dirname(folder) for folder in _folders(package)}
    folders = [path for folder in beside for path in glob(join(escape(folder), pattern))]
    if len(folders) == 1:
        return basename(folders[0]).removesuffix(".dist-info").partition("-")[2]
    from importlib.metadata import version

    return version(f"{package}-official")


def _folders(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []
