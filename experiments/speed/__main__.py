"""Measure the speed of resvm, or compare two of its versions: ``python -m experiments.speed``."""

from __future__ import annotations

import importlib
import sys

TOOLS = {
    "peers": "time and memory beside other programs that do the same work",
    "growth": "time and memory by rows, members and features",
    "scaling": "what a second core and a cluster gain",
    "same_bytes": "whether two resvm programs write the same",
}


def main() -> int:
    name, arguments = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if name not in TOOLS:
        lines = [f"  {tool:12}{what}" for tool, what in TOOLS.items()]
        print("usage: python -m experiments.speed TOOL [--help]", *lines, sep="\n")
        return 0 if name in ("-h", "--help") else 2
    return importlib.import_module(f"experiments.speed.{name}").main(arguments) or 0


if __name__ == "__main__":
    sys.exit(main())
