"""The C extensions, which pyproject.toml cannot describe: their ABI depends on the Python."""

import sys
import sysconfig

from setuptools import Extension, setup

# The stable ABI has buffers from 3.11 on, so that one wheel serves every later Python; not yet
# those without the GIL.
STABLE_ABI = sys.version_info >= (3, 11) and not sysconfig.get_config_var("Py_GIL_DISABLED")


def extension(path: str, *options: str, depends: tuple[str, ...] = ()) -> Extension:
    return Extension(
        path.replace("/", "."),
        [f"{path}.c"],
        depends=["resvm_cli/arrays.h", *depends],
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE_ABI else [],
        extra_compile_args=["-std=c11", "-O3", "-Wall", "-Wextra", *options],
        py_limited_api=STABLE_ABI,
    )


setup(
    ext_modules=[
        extension(
            "resvm_cli/svm/_blocks",
            "-ffp-contract=off",
            depends=("resvm_cli/svm/smo.h", "resvm_cli/svm/smo_lanes.h"),
        ),
        extension("resvm_cli/data/_svmlight"),
        extension("resvm_cli/data/_numbers"),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
)
