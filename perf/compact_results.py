"""A benchmark's results without their curves. ``python -m perf.compact_results DIR FILE``.

What docs/reproduction/ keeps of a run: everything but the 100 precisions of each line, which are
most of its size and serve only the figures on dominance.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    directory, target = sys.argv[1:]
    lines = []
    for line in (Path(directory) / "results.jsonl").read_text().splitlines():
        record = json.loads(line)
        record.pop("curve", None)
        lines.append(json.dumps(record) + "\n")
    Path(target).write_text("".join(lines))


if __name__ == "__main__":
    main()
