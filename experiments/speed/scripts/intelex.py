"""Run one of the scikit-learn scripts with Intel's classes: NAME ARGUMENTS."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from sklearnex import patch_sklearn

patch_sklearn(verbose=False)
name = sys.argv.pop(1)
runpy.run_path(str(Path(__file__).with_name(f"{name}.py")), run_name="__main__")
