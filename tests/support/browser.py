"""A real browser, driven over a pipe: what it shows, what it complains of, what it asks the net for."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    """Path of a Chromium on this machine; none on Windows, whose processes get no pipes at 3 and 4."""
    if os.name != "posix":
        return None
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserError(Exception):
    """The browser's own error for a command."""


class Browser:
    """A headless Chromium with one page; speaks the DevTools protocol, messages end with a zero."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_by_it, self._to = os.pipe()
        self._from, written_by_it = os.pipe()
        self._process = subprocess.Popen(
            # The pipe has to be at 3 and 4; bash puts it there.
            [
                "bash",
                "-c",
                f'exec "$@" 3<&{read_by_it} 4>&{written_by_it}',
                "bash",
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                f"--user-data-dir={self._folder.name}",
                "--remote-debugging-pipe",
                "about:blank",
            ],
            pass_fds=(read_by_it, written_by_it),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_by_it)
        os.close(written_by_it)
        self._rest = b""
        self._number = 0
        self.events: list[dict] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    _session: str | None = None

    def call(self, method: str, **parameters):
        """Send a command and wait for its answer; events on the way are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(answer["error"])
                return answer["result"]
            self.events.append(answer)

    def _receive(self) -> dict:
        while b"\0" not in self._rest:
            more = os.read(self._from, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window this size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def open(self, path: Path, width: int, height: int, scripts: bool = True) -> None:
        """Load a file in a window of this size and wait until all of it is there."""
        self.resize(width, height)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.leave()
        self._load(path.resolve().as_uri())

    def leave(self) -> None:
        """Leave the page of the test before, and forget what it complained of and asked for.

        It may poll a server that has ended; each poll that fails is a complaint. So first leave, then forget.
        """
        self._load("about:blank")
        self.events.clear()

    def go(self, address: str, width: int, height: int = 900, dark: bool = False) -> None:
        """Load an address in a window of this size; what was complained of and asked for is kept."""
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._load(address)

    def _load(self, address: str) -> None:
        """Go to an address and wait until this page, not one before it, has loaded."""
        loader = self.call("Page.navigate", url=address)["loaderId"]

        def loaded(event: dict) -> bool:
            told = event.get("params", {})
            return (event.get("method"), told.get("name"), told.get("loaderId")) == (
                "Page.lifecycleEvent",
                "load",
                loader,
            )

        while not any(loaded(event) for event in self.events):
            self.events.append(self._receive())

    def wait(self, expression: str, seconds: float = 600) -> None:
        """Wait until an expression is true in the page."""
        ends = time.monotonic() + seconds
        while not self.holds(expression):
            assert time.monotonic() < ends, f"waited in vain for {expression}"
            time.sleep(0.05)

    def holds(self, expression: str) -> bool:
        """Whether an expression is true; it is not while the page is being replaced."""
        try:
            found = self.call(
                "Runtime.evaluate", expression=f"Boolean({expression})", returnByValue=True
            )
        except BrowserError as error:
            if "navigated" in str(error):
                return False
            raise
        return "exceptionDetails" not in found and bool(found["result"]["value"])

    def evaluate(self, expression: str):
        """Value of an expression in the page; of a promise, what it comes to."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings of the console and the log."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Log.entryAdded":
                found.append(parameters["entry"]["text"])
            elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                found.append(json.dumps(parameters))
        return found

    @property
    def requests(self) -> list[str]:
        """What was asked for, the page itself and data within it aside."""
        urls = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in urls[1:] if not url.startswith("data:")]

    def picture(self, whole: bool = True) -> bytes:
        """The page as PNG, all of it or what is in the window."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])

    def pdf(self) -> bytes:
        """The page as it prints on A4."""
        found = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(found["data"])

    def close(self) -> None:
        with contextlib.suppress(AssertionError, OSError):
            self._session = None
            self.call("Browser.close")
        for end in (self._to, self._from):
            os.close(end)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()
