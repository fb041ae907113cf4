"""A browser on its way through the page, and what every screen must keep to.

With MICROAGG_PICTURES the screens of one way are saved in that folder, for the documentation.
"""

import importlib.util
import io
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from browser import Browser

AXE = Path(importlib.util.find_spec("axe_core_python").origin).with_name("axe.min.js")
WIDE, NARROW = 1280, 390
PHONE, MOST_SCREENS = 844, 3  # height of the narrow window, and how many of it See may take


@dataclass
class Tour:
    """A browser on its way through the page."""

    browser: Browser
    server: object
    width: int
    dark: bool
    folder: Path
    seen: list[str] = field(default_factory=list)

    @property
    def home(self):
        return f"http://127.0.0.1:{self.server.port}{self.server.keys.home}"

    def go(self, path):
        """Leave a screen once it has heard the answers that it asked for, and asks for no more.

        A request that is broken off by leaving is an error to htmx, which it writes into the console.
        """
        self.browser.wait(
            "!document.querySelector('.htmx-request') && "
            "(document.querySelectorAll('[hx-trigger]').forEach(e => e.remove()), true)"
        )
        self.browser.go(self.home + path, self.width, dark=self.dark)

    def do(self, script):
        self.browser.evaluate(f"(() => {{ {script} }})()")

    def set(self, selector, value):
        """Choose or type as a person does: the browser tells the page of a change."""
        self.browser.wait(f"document.querySelector({selector!r})")
        self.do(
            f"const e = document.querySelector({selector!r}); e.value = {value!r};"
            "e.dispatchEvent(new Event('change', {bubbles: true}))"
        )

    def role(self, name, role):
        place = self.server.session.table.names.index(name)
        shown = f"document.querySelector('#role-{place}')"
        self.browser.wait(shown)
        if self.browser.evaluate(f"{shown}.value") == role:  # as drafted
            return
        before = self.server.session.at
        self.set(f"#role-{place}", role)
        self.until(lambda: self.server.session.at > before)
        self.answered()
        assert self.browser.evaluate(f"{shown}.value") == role

    def answered(self):
        """Wait until the page shows the plan as it stands."""
        step = f"step {self.server.session.at + 1} of"
        self.browser.wait(f"document.querySelector('.toolbar')?.innerText.includes({step!r})")

    def until(self, holds, seconds=600):
        told = "[...document.querySelectorAll('.problem:not([hidden]), .toolbar')].map(e => e.innerText)"
        ends = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < ends, self.browser.evaluate(told)
            time.sleep(0.03)

    def look(self, screen):
        """Check what every screen must keep to."""
        self.seen.append(screen)
        self.browser.wait("document.readyState == 'complete'")
        for width in (NARROW, self.width):
            self.browser.resize(width)
            size = self.browser.call("Page.getLayoutMetrics")["cssContentSize"]
            assert size["width"] <= width, screen
            if (screen, width) == ("see", NARROW):
                assert size["height"] <= MOST_SCREENS * PHONE, size["height"]
        stored = "localStorage.length + sessionStorage.length + document.cookie.length"
        assert self.browser.evaluate(stored) == 0
        self.browser.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
        found = json.loads(
            self.browser.evaluate(
                "axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify("
                "r.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html + n.failureSummary)])))"
            )
        )
        assert [v for v in found if v[0] in ("serious", "critical")] == [], screen
        folder = os.environ.get("MICROAGG_PICTURES")
        if folder and self.width == WIDE and not self.dark:
            save(self.browser.picture(whole=False), Path(folder) / f"{screen}.png")

    def quiet(self):
        """Whether the browser had nothing to complain of and asked nobody else."""
        complaints = self.browser.complaints
        assert complaints == [], complaints  # pytest shows no values in helpers
        asked = {url.split("/")[2] for url in self.browser.requests if not url.startswith("data:")}
        assert asked == {f"127.0.0.1:{self.server.port}"}


def save(png, path):
    """With few colours, which is enough for a screen."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").quantize(96).save(path, optimize=True)
