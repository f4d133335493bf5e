"""Run a study of quality: ``python -m experiments.quality STUDY``."""

from __future__ import annotations

import importlib
import sys

STUDIES = {
    "methods": "resvm and other PU methods on the same rows (docs/quality.md)",
    "compare": "methods or versions in logs of `methods`, compared over all tasks",
    "candidates": "lists of settings that the search could try (docs/quality.md)",
    "estimates": "stated precision and false discovery rates (docs/quality.md)",
    "campaigns": "five rounds of 96 tests with `rank --next` (docs/quality.md)",
}


def main() -> int:
    name, arguments = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if name not in STUDIES:
        lines = [f"  {study:11}{what}" for study, what in STUDIES.items()]
        print("usage: python -m experiments.quality STUDY [--help]", *lines, sep="\n")
        return 0 if name in ("-h", "--help") else 2
    importlib.import_module(f"experiments.quality.{name}").main(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
