"""What the plan gives, what other decisions cost, and buttons that carry them out."""

import re

import pandas as pd
import pytest

import microagg
from microagg.base.formatting import percent, share
from microagg.comparing.offers import price_answers
from microagg.engines.memory.table import Table
from microagg.page.screens import cures_of
from microagg.plan.change_role import decided, with_role
from microagg.tables.frame import Frame

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


def estimated(visitor, path="plan/gives"):
    """Ask as the page does until the answer is there."""
    visitor.get(path)
    visitor.wait()
    return visitor.get(path).text


def prices_of(visitor, **settings):
    frame = pd.read_csv(visitor.server.session.table.opened.path)
    return microagg.prices(frame, visitor.server.session.plan, budget=300, **settings)


def test_the_plan_is_told_what_it_gives_and_each_change_changes_it(visitor):
    assert 'hx-trigger="load delay' in visitor.get("plan").text
    text = estimated(visitor)
    found = prices_of(visitor)
    for figure in (percent(found.now.loss), share(found.now.linkage), share(found.now.below_k)):
        assert f"<dd>{figure}" in text.replace("\xa0", " ")
    assert "Tried on all 60 records" in text
    assert "hx-trigger" not in text  # nothing is asked for any more
    place = visitor.server.session.table.names.index("income")
    assert f"{percent(found.now.by_column['income'])} of it lost".replace(" %", "\xa0%") in text
    assert f'id="note-{place}" hx-swap-oob="true"' in text
    before = percent(found.now.loss)
    answer = visitor.post("plan", what="decide", column=place, decision="drop").text
    assert "these figures are from before the last change" in answer
    assert f"<dd>{before}" in answer.replace("\xa0", " ")  # until the new ones are there
    text = estimated(visitor).replace("\xa0", " ")
    after = percent(prices_of(visitor).now.loss)
    assert f'<dd>{after} <span class="small soft">before the change {before}' in text
    visitor.post("plan/undo")
    assert f"<dd>{before}" in visitor.get("plan").text.replace("\xa0", " ")  # kept


def test_a_claim_is_told_what_it_stakes(visitor):
    place = visitor.server.session.table.names.index("diagnosis")
    visitor.post("plan", what="role", column=place, role="confidential")
    text = estimated(visitor).replace("\xa0", " ")
    found = prices_of(visitor)
    assert found.now.at_stake == found.now.stakes["diagnosis"] > 0
    assert f"known after all, {share(found.now.at_stake)} of the records are below k" in text
    assert "the same if confidential columns are known" in text


def test_each_decision_has_its_price_and_a_button_that_does_it(visitor):
    session = visitor.server.session
    plan, place = session.plan, session.table.names.index("diagnosis")
    text = estimated(visitor, f"plan/prices/{place}").replace("\xa0", " ")
    (column,) = (c for c in prices_of(visitor).columns if c.column == "diagnosis")
    assert {"stratum", "drop", "confidential"} <= {p.decision for p in column.decisions}
    for price in column.decisions:
        assert price.words in text
        assert (f'value="{price.decision}">' in text) == (price.problem is None)
        if price.problem is None:
            visitor.post("plan", what="decide", column=place, decision=price.decision)
            assert session.plan == decided(plan, "diagnosis", price.decision)
            visitor.post("plan/undo")
    assert visitor.get("plan/prices/99").status == 404


def test_the_best_decisions(visitor):
    """A known age leaves records below k: protecting or dropping it helps."""
    place = visitor.server.session.table.names.index("age")
    visitor.post("plan", what="role", column=place, role="known")
    visitor.get("plan")
    visitor.post("plan/prices")
    visitor.wait()
    text = visitor.part("plan/next").text.replace("\xa0", " ")
    for column, price in prices_of(visitor).best():
        assert price.words in text
        assert column in text
    assert text.count('value="decide"') == len(prices_of(visitor).best()) > 0


def test_a_plan_is_searched_and_taken(visitor):
    session = visitor.server.session
    before, keep = session.plan, session.table.names.index("age")
    (words,) = visitor.problems(visitor.post("plan/search"))
    assert "needs a target" in words
    (words,) = visitor.problems(visitor.post("plan/search", max_loss="-3"))
    assert "max_loss" in words
    visitor.post("plan/search", max_loss="20", keep=str(keep))
    visitor.wait()
    assert session.asked("search")["keep"] == ("age",)
    text = visitor.part("plan/next").text
    assert session.plan == before  # until somebody takes it
    found = session.result("search")
    assert found["meets"]
    assert "Take this plan" in text
    assert "age" not in found["plan"].drop
    visitor.post("plan", what="found")
    assert session.plan == found["plan"] != before
    frame = pd.read_csv(session.table.opened.path)
    assert microagg.protect(frame, plan=session.plan).utility.information_loss <= 20
    visitor.post("plan/undo")
    assert session.plan == before


def test_the_first_question_says_what_a_claim_wins_and_stakes(visitor):
    """Nothing is claimed until somebody presses the button of a claim, which may be about several columns."""
    session, names = visitor.server.session, visitor.server.session.table.names
    page = visitor.get("plan").text
    assert page.index("answers that nobody outside knows?") < page.index("What the plan gives now")
    (words,) = visitor.problems(visitor.post("plan/answers"))
    assert "at least one column" in words
    places = f"{names.index('rent')},{names.index('age')}"
    visitor.post("plan/answers", answers=places)
    visitor.wait()
    before = session.plan
    assert not before.confidential
    text = visitor.part("plan/answers").text.replace("\xa0", " ")
    records = Table(Frame(pd.read_csv(session.table.opened.path)))
    claims = price_answers(records, before, ["rent", "age"], sample=2_500)
    assert [columns for columns, _ in claims] == [("rent",), ("age",), ("rent", "age")]
    for _, price in claims:
        assert "if an attacker knows it after all" in price.words
        assert price.words in text
    visitor.post("plan", what="decide", column=places, decision="confidential")
    assert {"rent", "age"} == set(session.plan.confidential)
    # It was of another plan.
    assert "Call rent confidential" not in visitor.part("plan/answers").text
    visitor.post("plan/undo")


def test_estimates_give_way(visitor):
    """An edit ends what is estimated of the plan before it; a release goes first."""
    session = visitor.server.session
    with session.lock:  # else estimates may be done before they could give way
        for column in ("age", "rent"):
            session.price((column,))
        session.edit(with_role(session.plan, session.table.names[0], "renumber"))
    visitor.wait()
    states = [(e.state, e.stopping) for e in session.entries if e.task.kind == "price"]
    assert states[-1] == ("cancelled", False)
    assert states[-2][0] == "done" or states[-2] == ("refused", True)
    with session.lock:
        for column in ("age", "rent"):
            session.price((column,))
        session.new_release(session.plan, ".csv")
    visitor.wait()
    assert session.entries[-1].state == "done"
    assert session.entries[-1].task.kind == "protect"
    assert session.entries[-2].state == "cancelled"
    visitor.get("plan/gives")
    visitor.wait()  # asked for again, it is done
    assert session.prices(session.plan) is not None


def test_a_plan_that_cannot_be_carried_out_says_why_and_is_not_tried_again(visitor):
    session = visitor.server.session
    visitor.post("plan", what="k", k="59")
    (words,) = visitor.problems(type("Answer", (), {"text": estimated(visitor)}))
    assert (
        "k=59 needs at least 59 distinct values of the unit household; the table has 30." in words
    )
    count = len(session.entries)
    visitor.get("plan/gives")
    assert len(session.entries) == count


def test_cautions_of_a_release_have_buttons(visitor):
    session = visitor.server.session
    place = session.table.names.index("age")
    visitor.post("plan", what="role", column=place, role="known")
    visitor.post("protect", ending=".csv", prices="yes")
    visitor.wait()
    number = len(session.releases)
    assert "What other decisions would cost" in visitor.get(f"take/{number}/report").text
    assert "other decisions" not in visitor.get(f"take/{number}/public").text
    assert '"prices"' not in visitor.get(f"take/{number}/public-numbers").text
    cures = cures_of(session.releases[-1].model, session.table)
    assert (place, "protect", "Protect age") in [way for one in cures for way in one["ways"]]
    for path in ("plan", "see"):
        text = visitor.get(path).text
        button = rf'name="column" value="{place}"><button[^>]*value="protect"'
        (form,) = re.findall(rf'<form method="post" action="[^"]*"([^>]*)>[^\n]*{button}', text)
        # On See there is no plan that htmx could replace: the answer is the Plan screen.
        assert ("hx-post" in form) == (path == "plan")
    visitor.post("plan", what="decide", column=place, decision="protect")
    assert "age" in session.plan.blocks[0].columns
    assert "needs a decision" not in visitor.get("plan").text  # they were of another plan
