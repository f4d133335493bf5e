"""Whether an installed resvm does its work: run by the Python that it is installed for.

    python smoke_test.py SAMPLE_DATA

Needs nothing but what resvm itself needs, so that it runs wherever a package is built.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tempfile
from importlib import import_module
from pathlib import Path

EXTENSIONS = ("resvm_cli.data._svmlight", "resvm_cli.data._numbers", "resvm_cli.svm._blocks")


def resvm(*arguments: object) -> str:
    """What the installed command writes to stdout; an error ends the test with its message."""
    command = Path(sysconfig.get_path("scripts"), "resvm")
    ran = subprocess.run(
        [command, *map(str, arguments)], capture_output=True, text=True, timeout=600
    )
    if ran.returncode != 0:
        sys.exit(f"resvm {arguments[0]} exited with {ran.returncode}:\n{ran.stderr}")
    return ran.stdout


def main(sample_data: Path) -> None:
    package = import_module("resvm_cli")
    beside = Path(__file__).resolve().parent.parent / "resvm_cli"
    if Path(package.__file__).resolve().parent == beside:
        sys.exit("this is the source, not what was installed; run it with python -I")
    for name in EXTENSIONS:
        print(import_module(name).__file__)

    digits = sample_data.resolve() / "digits"
    data = ("-P", digits / "pos.svm", "-U", digits / "unl.svm")
    with tempfile.TemporaryDirectory() as folder:
        model, predictions = Path(folder, "model"), Path(folder, "test.pred")
        page = Path(folder, "ranking.html")
        assert resvm("--version").split()[-1] == package.__version__
        resvm("train", *data, "-o", model, "-q")
        resvm("predict", model, digits / "test.svm", "-o", predictions, "-q")
        scores = json.loads(resvm("score", predictions, "--labels", digits / "test.svm", "--json"))
        area = scores["files"][0]["roc_auc"]
        assert area > 0.9, f"the ROC AUC is {area}"
        ranked = resvm("rank", *data, "--model", model, "--html", page, "-q").splitlines()
        assert len(ranked) > 100, f"the ranking has {len(ranked)} lines"
        assert "</script>" in page.read_text(encoding="utf-8"), "the page lacks its drawing"
        loaded = package.load(model)
        assert loaded is not None
    print(
        f"resvm {package.__version__} works on Python {sys.version.split()[0]}: ROC AUC {area:.3f}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
