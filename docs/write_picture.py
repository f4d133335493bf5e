"""Take the screenshot in the README: the ranking page of the sample data in a browser.

``python docs/write_picture.py`` runs resvm and a headless Chromium, and writes
docs/ranking-page.png.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
TABLE = FOLDER.parent / "sample_data" / "payments" / "payments.csv"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 1160, 1260
PATIENCE_SECONDS = 300


def main() -> None:
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "ranking.html"
        shutil.copy(TABLE, folder)  # the page shows file names as given
        rank = [sys.executable, "-m", "resvm_cli", "rank", "--data", TABLE.name]
        rank += ["--id-column", "payment", "--label-column", "status"]
        rank += ["--positive-label", "fraud", "--html", page.name, "-q"]
        subprocess.run(
            rank, cwd=folder, stdout=subprocess.DEVNULL, check=True, timeout=PATIENCE_SECONDS
        )
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--user-data-dir={folder}/browser",
                f"--window-size={WIDTH},{HEIGHT}",
                f"--screenshot={FOLDER / 'ranking-page.png'}",
                page.as_uri(),
            ],
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=PATIENCE_SECONDS,
        )


if __name__ == "__main__":
    main()
