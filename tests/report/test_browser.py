"""Reports in a real browser: no complaint, no request, no sideways scrolling, readable, prints well."""

import json
import re
import warnings

import numpy as np
import pyarrow as pa
import pytest

import microagg
from command import here
from microagg.cli.example import write_example

HOSTILE = [
    "<script>alert(1)</script>",
    "the whole question of the questionnaire, as somebody typed it into the header of the table",
    "x" * 150,
    "$\\frac{a}{b}$",
    "{{7*7}}",
    "所得",
]


def table(n, names, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.lognormal(8, 1, (n, 1)) + rng.lognormal(6, 1, (n, len(names)))
    return pa.table(dict(zip(names, values.T.round(2), strict=True)))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of each kind: the demo's, hostile names, many columns, columns by themselves, a missed
    threshold, a public one, a comparison."""
    folder = tmp_path_factory.mktemp("demo folder")
    source, plan = write_example(folder / "demo")
    found = {"demo": folder / "demo" / "report.html"}
    done = here("protect", source, folder / "demo" / "safe.csv", "--plan", plan, "--report", found["demo"],
                "--effort", "fast", "--quiet")  # fmt: skip
    assert done.returncode == 0, done.stderr
    rng = np.random.default_rng(1)
    hostile = table(90, HOSTILE).append_column("home", pa.array(rng.integers(0, 9, 90).astype(str)))
    wide = table(60, [f"measure_of_something_{i}" for i in range(60)])
    plan = folder / "plan.toml"
    plan.write_text(
        'microagg = 1\n[accept]\nloss = 0.01\n[[block]]\ncolumns = ["a", "b"]\nk = 3\nmethod = "mdav"\n'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", microagg.DisclosureRiskWarning)
        releases = {
            "hostile": microagg.protect(hostile, k=4, columns=HOSTILE, method="mdav", bound=False),
            "wide": microagg.protect(
                wide, k=4, columns=wide.column_names, method="mdav", bound=False
            ),
            "by itself": microagg.protect(table(60, ["a", "b"]), k=3, per_column=True),
            "missed": microagg.protect(table(60, ["a", "b"]), plan=microagg.Plan.from_toml(plan)),
        }
    for name, release in releases.items():
        found[name] = folder / f"{name}.html"
        release.write(folder / f"{name}.csv")
        release.report(found[name])
    found["public"] = folder / "public.html"
    releases["hostile"].report(found["public"], public=True)
    found["comparison"] = folder / "compare.html"
    compared = microagg.compare(table(60, ["a", "b"]), k=[3, 5], methods="mdav")
    compared.report(found["comparison"], max_loss=5)
    return found


RELEASES = ["demo", "hostile", "wide", "by itself", "missed"]
PAGES = [*RELEASES, "public", "comparison"]


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("width", [1280, 390, 320])
@pytest.mark.parametrize("name", PAGES)
def test_no_complaint_no_request_no_sideways_scrolling(browser, pages, name, width, scripts):
    browser.open(pages[name], width, 800, scripts=scripts)
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
@pytest.mark.parametrize("name", PAGES)
def test_nothing_overlaps_or_sticks_out(browser, pages, name, width):
    browser.open(pages[name], width, 800)
    assert browser.evaluate(OVERLAPS) == []
    assert browser.evaluate(OUTSIDE) == []


@pytest.mark.parametrize("name", RELEASES)
def test_first_screen(browser, pages, name):
    """What is promised, the verdict and what it rests on; where nothing is claimed, the loss and linkage."""
    browser.open(pages[name], 1280, 900)
    inside = browser.evaluate(
        "[...document.querySelectorAll('.promise, .verdict, .card, h2')]"
        ".filter(e => e.getBoundingClientRect().bottom <= 900).map(e => e.textContent)"
    )
    text = " ".join(" ".join(inside).split())
    model = json.loads(pages[name].with_suffix(".json").read_text())
    cards = ("information lost", "records found by the true values of the protected columns")
    for words in (
        "In the released file, each",
        f"{model['verdict'].capitalize()}.",
        "Read back and counted",
        *(cards if name != "demo" else ("What this rests on",)),
    ):
        assert words in text, words
    tops = browser.evaluate(
        "[...document.querySelectorAll('.card .name')].map(e => e.getBoundingClientRect().top)"
    )
    known, proof = bool(model["columns"]["known"]), name != "by itself"
    assert len(tops) == 3 + known + proof
    assert len(set(tops)) == 1
    figures = browser.evaluate(
        "[...document.querySelectorAll('.card b:not(.words)')].map(e => e.getBoundingClientRect().top)"
    )
    assert len(set(figures)) == 1


def test_first_screen_of_a_telephone(browser, pages):
    for name in RELEASES:
        browser.open(pages[name], 390, 844)
        bottom = "document.querySelector('.verdict > p').getBoundingClientRect().bottom"
        assert browser.evaluate(bottom) <= 844


def test_the_worst_comes_first(browser, pages):
    browser.open(pages["hostile"], 1280, 900)
    tags = browser.evaluate("[...document.querySelectorAll('.tag')].map(e => e.textContent)")
    order = ["red", "amber", "warning", "note"]
    assert tags == sorted(tags, key=order.index)
    assert len(set(tags)) > 1


# Contrast by WCAG 2.1 of each element that holds text with what lies behind it.
CONTRASTS = """
(() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const found = rgb(getComputedStyle(e).backgroundColor);
      if (found.length == 3 || found[3] == 1) return found;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('body *')].filter(e => !e.closest('svg')
      && [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim())).map(e => {
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
    return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.textContent.slice(0, 40)];
  });
})()
"""


@pytest.mark.parametrize("name", PAGES)
def test_colours_can_be_read(browser, pages, name):
    browser.open(pages[name], 1280, 900)
    found = browser.evaluate(CONTRASTS)
    assert len(found) > 20
    assert [row for row in found if row[0] < 4.5] == []


@pytest.mark.parametrize("name", PAGES)
def test_it_prints_on_a4(browser, pages, name):
    browser.open(pages[name], 1280, 800)
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF")
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", pdf)
    assert 1 <= len(boxes) <= 12
    for width, height in boxes:
        assert float(width) == pytest.approx(595, abs=2)
        assert float(height) == pytest.approx(842, abs=2)


def test_room_to_decide_and_sign_on_paper(browser, pages):
    browser.open(pages["demo"], 680, 900)  # about the width of A4 within its margins
    browser.call("Emulation.setEmulatedMedia", media="print")
    rooms = browser.evaluate(
        "[...document.querySelectorAll('.sign p')].map(e => e.getBoundingClientRect())"
        ".map(r => [r.width, r.height])"
    )
    browser.call("Emulation.setEmulatedMedia", media="")
    assert len(rooms) == 3
    assert all(width > 100 and height > 40 for width, height in rooms)


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


def test_contrasts_would_be_noticed(browser, tmp_path):
    page = tmp_path / "pale.html"
    page.write_text("<body style='background: white'><p style='color: #aaa'>pale</p>")
    browser.open(page, 390, 800)
    ((ratio, text),) = browser.evaluate(CONTRASTS)
    assert text == "pale"
    assert ratio == pytest.approx(2.32, abs=0.01)
