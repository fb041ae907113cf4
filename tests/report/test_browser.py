"""The demo's report in a real browser: no complaint, no request, no sideways scrolling, prints well."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pyarrow.csv as pacsv
import pytest

import microagg
from browser import Browser, find_browser


@pytest.fixture(scope="module")
def browser():
    program = find_browser()
    if program is None:
        reason = "no Chromium on this machine; Debian's package is called chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    found = Browser(program)
    yield found
    found.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo folder")
    subprocess.run([sys.executable, "-m", "microagg", "demo", "--quiet"], cwd=folder, check=True)
    table = pacsv.read_csv(folder / "microagg-demo" / "diabetes.csv")
    columns = ["age", "bmi", "bp", "s1", "s2", "s3", "s4"]
    found = microagg.compare(table, k=[3, 5], methods="mdav", columns=columns)
    found.report(folder / "compare.html", max_loss=5)
    release = microagg.protect(table.select(columns), k=4)
    release.report(folder / "public.html", public=True)
    return [
        folder / "microagg-demo" / "report.html",
        folder / "public.html",
        folder / "compare.html",
    ]


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_no_complaint_no_request_no_sideways_scrolling(browser, pages, width, scripts):
    for page in pages:
        browser.open(page, width, 800, scripts=scripts)
        assert browser.complaints == []
        assert browser.requests == []
        size = browser.call("Page.getLayoutMetrics")["cssContentSize"]
        assert size["width"] <= width
        assert size["height"] > 1000


OVERLAPS = """
(() => {
  const boxes = [...document.querySelectorAll('h1, h2, h3, p, figure, table, .card, pre, dt, dd, li')]
    .filter(e => !e.closest('.card') || e.matches('.card'))
    .map(e => [e, e.getBoundingClientRect()]);
  const found = [];
  for (const [a, x] of boxes) for (const [b, y] of boxes)
    if (a !== b && !a.contains(b) && !b.contains(a)
        && Math.min(x.right, y.right) - Math.max(x.left, y.left) > 1
        && Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top) > 1)
      found.push(a.textContent.slice(0, 30) + ' / ' + b.textContent.slice(0, 30));
  return found;
})()
"""

OUTSIDE = """
[...document.querySelectorAll('td, th, svg text')].filter(e => {
  const r = e.getBoundingClientRect();
  return r.right > innerWidth + 1 || r.left < -1;
}).map(e => e.textContent)
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overlaps_or_sticks_out(browser, pages, width):
    for page in pages:
        browser.open(page, width, 800)
        assert browser.evaluate(OVERLAPS) == []
        assert browser.evaluate(OUTSIDE) == []


def test_first_screen_holds_the_verdict(browser, pages):
    browser.open(pages[0], 1280, 800)
    places = browser.evaluate(
        "[...document.querySelectorAll('.verdict, .card')].map(e => e.getBoundingClientRect().bottom)"
    )
    assert len(places) == 5
    assert max(places) < 800


def test_it_prints_on_a4(browser, pages):
    for page in pages:
        browser.open(page, 1280, 800)
        pdf = browser.pdf()
        assert pdf.startswith(b"%PDF")
        boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", pdf)
        assert 1 <= len(boxes) <= 12
        for width, height in boxes:
            assert float(width) == pytest.approx(595, abs=2)
            assert float(height) == pytest.approx(842, abs=2)


def test_the_browser_would_notice(browser, tmp_path):
    """The checks above can fail: a page with a script error and a picture from the net."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<body style='width: 3000px'><script>null.x</script><img src='http://127.0.0.1:9/x.png'>"
    )
    browser.open(page, 390, 800)
    assert browser.complaints
    assert browser.requests == ["http://127.0.0.1:9/x.png"]
    assert browser.call("Page.getLayoutMetrics")["cssContentSize"]["width"] > 390
