"""Look at a page in a headless Chromium, which prints what steps of JavaScript return there."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

from tests.programs import run

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    "--disable-web-security",  # the frame below and the page around it are different origins
    *("--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom"),
)
# Each step is an expression of the page's ``document`` and ``window``, and has half a second.
AROUND = """<!doctype html><iframe src="{page}" style="width: {width}px; height: 900px; border: 0">
</iframe><pre></pre><script>
const steps = {steps};
document.querySelector("iframe").onload = async (event) => {{
  const frame = event.target.contentWindow, found = [];
  for (const step of steps) {{
    found.push(new Function("document", "window", "return " + step)(frame.document, frame));
    await new Promise((done) => setTimeout(done, 500));
  }}
  document.querySelector("pre").textContent = JSON.stringify(found);
}};
</script>"""


def find() -> str | None:
    """Return the first browser found on the PATH, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def look(
    page: Path, *steps: str, folder: Path, width: int = 1280, dark: bool = False
) -> tuple[list[Any], list[str]]:
    """Return the value of each step on a page, and what the page logged to its console."""
    program = find()
    assert program is not None
    around = folder / "around.html"
    around.write_text(AROUND.format(page=page.as_uri(), width=width, steps=json.dumps(steps)))
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    place = f"--user-data-dir={folder / 'profile'}"
    ran = run([program, *OPTIONS, place, scheme, "--window-size=1300,1000", around.as_uri()])
    found = re.search(r"<pre>(.*?)</pre>", ran.out.decode(), re.S)
    logged = re.findall(r"CONSOLE.*", ran.err)
    assert found is not None, ran.err
    assert found[1], logged
    return json.loads(html.unescape(found[1])), logged
