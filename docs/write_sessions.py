"""Run the console blocks of pages and write the output below each command.

``python docs/write_sessions.py [PAGE...]`` defaults to README.md and all pages in docs/. The
commands of a page share a folder with a copy of sample_data/. Review the diff before you commit it:
tests/docs/test_readme.py checks the pages against the real output.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.S)
COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)", re.M)  # continuation lines begin with >
PATIENCE_SECONDS = 600


def with_output(block: str, folder: Path) -> str:
    """Return the commands of a block, each followed by its output."""
    lines = []
    for shown in COMMAND.findall(block):
        command = shown.replace("\n> ", "\n")
        ran = subprocess.run(
            ["sh", "-ec", f"exec 2>&1\n{command}"],  # interleaved as on a terminal
            cwd=folder,
            env={**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        if ran.returncode:
            raise SystemExit(f"{command}\n{ran.stdout}")
        lines += [f"$ {shown}\n", ran.stdout]
    return "".join(lines)


def rewrite(page: Path) -> None:
    """Run the console blocks of a page in a temporary folder and write their output."""
    text = page.read_text()
    if not BLOCK.search(text):
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(ROOT / "sample_data", folder / "sample_data")
        (folder / "bin").mkdir()
        program = folder / "bin" / "resvm"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m resvm_cli "$@"\n')
        program.chmod(0o755)
        page.write_text(BLOCK.sub(lambda block: with_output(block[0], folder), text))


def main() -> None:
    named = [Path(argument).resolve() for argument in sys.argv[1:]]
    for page in named or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        rewrite(page)


if __name__ == "__main__":
    main()
