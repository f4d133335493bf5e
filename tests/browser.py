"""Drive a headless Chromium over its debugging pipe; only the browser itself is required."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.programs import PATIENCE_SECONDS, kill_group

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# load nothing but the page: by default, the browser also looks for updates and accounts
QUIET = ("background-networking", "component-update", "sync", "quic")
LEAVING_SECONDS = 10


# texts overlap only if they do so by more than a pixel
OVERLAPS = """[...document.querySelectorAll('figure svg')].flatMap((svg) => {
  const edge = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map(
    (one) => [one.textContent, one.getBoundingClientRect()]);
  const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const pairs = texts.flatMap(([name, box], i) => texts.slice(i + 1)
    .filter(([, other]) => over(box, other)).map(([second]) => `${name} | ${second}`));
  const cut = texts.filter(([, box]) => box.left < edge.left - 1 || box.right > edge.right + 1);
  return [...pairs, ...cut.map(([name]) => `${name} is cut`)];
})"""


def find() -> str | None:
    """Return the first browser found on the PATH, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def far_folder(parent: Path) -> Path:
    """Create a folder with a long name without break opportunities, which pages must wrap."""
    folder = parent / ("deep" * 25)
    folder.mkdir()
    return folder


class Browser:
    """One page in a headless browser, with its console messages and network requests."""

    def __init__(self, program: str, folder: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def connect() -> None:  # the browser reads from descriptor 3 and writes to 4
            os.dup2(to_browser, 63)
            os.dup2(from_browser, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self._process = subprocess.Popen(
            [
                program,
                "--headless",
                "--no-sandbox",  # we trust the page, and containers have no user namespaces
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                *(f"--disable-{name}" for name in QUIET),
                "--remote-debugging-pipe",
                f"--user-data-dir={folder}",
            ],
            close_fds=False,
            preexec_fn=connect,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        os.set_blocking(self._read, False)
        self._waiting = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        try:
            self._attach()
        except BaseException:
            self._end()
            raise

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LEAVING_SECONDS)
        kill_group(self._process.pid)
        self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; add events that arrive first to ``events``."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            for answer in self._messages():
                if answer.get("id") == self._number:
                    assert "error" not in answer, answer
                    return dict(answer.get("result", {}))
                self.events.append(answer)
            select.select([self._read], [], [], 1)
        raise TimeoutError(method)

    def _messages(self) -> list[dict[str, Any]]:
        while True:
            try:
                piece = os.read(self._read, 1 << 20)
            except BlockingIOError:
                break
            if not piece:
                raise EOFError("the browser has gone")
            self._waiting += piece
        *whole, self._waiting = self._waiting.split(b"\0")
        return [json.loads(text) for text in whole]

    def open(self, path: Path, width: int, dark: bool = False) -> None:
        """Load a file with this width and color scheme, and wait until it has loaded."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            if self.run("document.readyState === 'complete' && location.protocol === 'file:'"):
                return
            time.sleep(0.02)
        raise TimeoutError(path)

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression on the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, times: int = 1) -> None:
        """Press and release a key as a user would."""
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                          windowsVirtualKeyCode={"ArrowRight": 39, "ArrowLeft": 37, "Home": 36,
                                                 "End": 35}[key])  # fmt: skip

    def point(self, x: float, y: float) -> None:
        """Move the pointer to this position, in window pixels."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path: Path) -> None:
        """Save an image of the whole page as PNG."""
        height = self.run("document.documentElement.scrollHeight")
        width = self.run("window.innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def keep(self, name: str) -> None:
        """Save a screenshot in the folder given by SCREENSHOTS, if that variable is set."""
        if folder := os.environ.get("SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.screenshot(Path(folder) / f"{name}.png")

    def overlapping_texts(self) -> list[str]:
        """Return chart labels that overlap each other or extend beyond the edge of their chart."""
        found: list[str] = self.run(OVERLAPS)
        return found

    def requests(self) -> list[str]:
        """Return the URLs that the page requested."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Return console messages, log entries and uncaught exceptions."""
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append(str(event["params"]))
            elif event["method"] == "Log.entryAdded":
                found.append(str(event["params"]["entry"]))
        return found
