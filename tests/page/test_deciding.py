"""Deciding in a real browser, wide and narrow: figures follow the plan, buttons do what they say.

The file is one of Stata whose labels attack the page.
"""

from __future__ import annotations

import pytest

from tour import NARROW, WIDE, Tour
from visitor import served, survey

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

LABEL = "<img src=x onerror='window.hit=1'> of the person"
VALUE = "<script>window.hit = 1</script>north"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("stata")
    frame = survey().assign(region=lambda f: (f["region"] == "north").astype("int8"))
    labels = {"income": LABEL}
    values = {"region": {0: "south", 1: VALUE}}
    for name in ("survey", "other"):
        frame.to_stata(
            found / f"{name}.dta",
            write_index=False,
            variable_labels=labels,
            value_labels=values,
            version=118,
        )
    return found


# Every screen is looked at in a narrow window too, and tests/page/test_way.py goes its way in the dark.
@pytest.mark.parametrize(
    ("width", "dark"), [(WIDE, False), pytest.param(NARROW, True, marks=pytest.mark.long)]
)
def test_deciding(browser, folder, tmp_path, width, dark):
    browser.leave()
    with served(folder / "survey.dta", folder, temporary=tmp_path) as server:
        tour = Tour(browser, server, width, dark, tmp_path)
        browser.go(server.address, width, dark=dark)
        browser.wait("location.pathname.endsWith('/table')")
        server.desk.edit(server.desk.plan.override(k=3, method="mdav", bound=False))
        labels_are_text(tour, "table")
        labels_are_text(tour, "plan")
        figures_follow_the_plan(tour)
        the_best_decisions(tour)
        a_search(tour)
        another_table(tour)
        tour.quiet()


def labels_are_text(tour, screen):
    tour.go(screen)
    tour.do("document.querySelectorAll('details').forEach(e => e.open = true)")
    text = tour.browser.evaluate("document.querySelector('main').innerText")
    assert LABEL in text
    assert VALUE in text
    assert tour.browser.evaluate("window.hit === undefined")


def figures_follow_the_plan(tour):
    """Figures come by themselves; a decision is priced, made by a click, and taken back."""
    browser, desk = tour.browser, tour.server.desk
    tour.go("plan")
    browser.wait("document.querySelector('#gives dl:not(.old)')")
    assert "Tried on all 60 records" in browser.evaluate(
        "document.querySelector('#gives').innerText"
    )
    before = desk.plan
    place = desk.table.names.index("rent")
    browser.wait(f"document.querySelector('#note-{place}').innerText.includes('of it lost')")
    tour.do(f"document.querySelector('#prices-{place}').open = true")
    drop = f"document.querySelector('#prices-{place} button[value=drop]')"
    browser.wait(drop)
    tour.look("plan")
    tour.do(f"{drop}.click()")
    tour.until(lambda: "rent" in desk.plan.drop)
    tour.answered()
    browser.wait("document.querySelector('#gives').innerText.includes('before the change')")
    # What was opened stays so, with the prices of the plan as it is now.
    browser.wait(f"document.querySelector('#prices-{place} button[value=protect]')")
    tour.do("document.querySelector('#undo').click()")
    tour.until(lambda: desk.plan == before)
    tour.answered()


def the_best_decisions(tour):
    tour.browser.wait("document.querySelector('#find-best')")
    tour.do("document.querySelector('#find-best').click()")
    tour.browser.wait("document.querySelector('#next .choices button')")


def a_search(tour):
    browser, desk = tour.browser, tour.server.desk
    tour.set("#search-loss", "25")
    tour.do("document.querySelector('#search').click()")
    browser.wait("document.querySelector('#take-found')")
    tour.look("search")
    tour.do("document.querySelector('#take-found').click()")
    tour.until(lambda: desk.plan == desk.found["plan"])
    tour.answered()


def another_table(tour):
    """Work stands against it: the page asks, and stays or goes."""
    browser, desk = tour.browser, tour.server.desk
    entry = (
        "[...document.querySelectorAll('button.entry')].find(b => b.value.endsWith('other.dta'))"
    )
    for button, name in (("stay", "survey.dta"), ("open-pending", "other.dta")):
        tour.go("open")
        tour.do(f"{entry}.click()")
        browser.wait(f"document.querySelector('#{button}')")
        assert desk.table.opened.path.name == "survey.dta"
        if button == "stay":
            tour.look("asks")
        tour.do(f"document.querySelector('#{button}').click()")
        tour.until(lambda name=name: desk.pending is None and desk.table.opened.path.name == name)
    browser.wait("location.pathname.endsWith('/table')")
