"""Run the console blocks of pages and write what the commands print below them.

``python docs/write_sessions.py [PAGE...]``, by default README.md and all pages of docs/. The
commands of a page share a folder with a copy of sample_data/. Read the difference before it is
committed: tests/test_readme.py holds the pages to what is written here.
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
COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)", re.M)  # lines that go on begin with >
PATIENCE_SECONDS = 600


def with_output(block: str, folder: Path) -> str:
    """The commands of a block, each with what it prints."""
    lines = []
    for shown in COMMAND.findall(block):
        command = shown.replace("\n> ", "\n")
        ran = subprocess.run(
            ["sh", "-ec", f"exec 2>&1\n{command}"],  # in the order of a terminal
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
    """Run a page's sessions in a folder of their own."""
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
