"""Figures on the Plan screen: estimates for the plan, prices of decisions, what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microagg.base.formatting import lost_words, percent, share
from microagg.page.session import OpenTable, Session
from microagg.page.tasks import ClaimTask, SearchTask
from microagg.plan.change_role import decision_words, role_of

_ALL = None  # columns


def gives_part(session: Session, table: OpenTable) -> dict[str, Any]:
    """Return the estimates for the current plan; until they exist, those before the last change."""
    now, before = session.prices(session.plan), None
    if session.at > 0:
        before = session.prices(session.plans[session.at - 1])
    entry = session.pricing()
    refused = entry is not None and not entry.open and not entry.stopping and entry.words
    former = {label: figure for label, figure, _ in before["facts"]} if before else {}
    shown = now or before
    return {
        "facts": [
            (label, figure, of, former.get(label) if now is not None else None)
            for label, figure, of in (shown["facts"] if shown else ())
        ],
        "facts_about": shown["basis"] if shown else "",
        "facts_wait": now is None and not refused,
        "facts_are_old": now is None and shown is not None,
        "facts_problem": entry.words if now is None and refused and entry is not None else "",
        "notes": column_notes(now, table),
        "oob": False,
    }


def column_notes(prices: Mapping[str, Any] | None, table: OpenTable) -> list[str]:
    """Say for each column what it loses, or what happens if it is known after all; empty if nothing."""
    if prices is None:
        return [""] * len(table.names)
    lost = {
        name: f"{percent(loss)} of it lost" if loss < 100.5 else lost_words(loss)
        for name, loss in prices["losses"].items()
    }
    staked = {
        name: f"if it is known after all, {share(part)} of the records are below k"
        for name, part in prices["stakes"].items()
    }
    return [lost.get(name) or staked.get(name, "") for name in table.names]


def prices_part(session: Session, table: OpenTable, place: int) -> dict[str, Any]:
    """Return what other decisions about one column would cost."""
    name = table.names[place]
    prices, entry = session.prices(session.plan), session.pricing((name,))
    priced = None if prices is None else prices["columns"].get(name)
    done = entry is not None and entry.state == "done"
    refused = entry is not None and not entry.open and not entry.stopping and entry.words
    return {
        "place": place,
        "decisions": [
            (decision, _sentence(decision_words(decision)), words, problem is None)
            for decision, words, problem in priced or ()
        ],
        "prices_wait": priced is None and not done and not refused,
        "prices_problem": entry.words if refused and entry is not None else "",
    }


def next_part(session: Session, table: OpenTable, problem: str = "") -> dict[str, Any]:
    """Return what to do next: cures of cautions, the best decisions, and a search."""
    places = {name: place for place, name in enumerate(table.names)}
    prices, of_all, search = (
        session.prices(session.plan),
        session.pricing(_ALL),
        session.latest(SearchTask),
    )
    best = None if prices is None else prices["best"]
    last = session.releases[-1] if session.releases else None
    found = session.found
    asked = search.task if search is not None and isinstance(search.task, SearchTask) else None
    accept = session.plan.accept
    return {
        "next_problem": problem,
        "cures": cures_of(last.model, table) if last and last.plan == session.plan else [],
        "best": best
        and [
            (places[name], decision, _sentence(decision_words(decision, name)), words)
            for name, decision, words in best
        ],
        "best_is_known": best is not None,
        "best_rule": prices["rule"] if prices else "",
        "best_is_about_k": bool(prices and prices["below_k"]),
        "prices_entry": of_all,
        "search_entry": search,
        "next_waits": any(entry is not None and entry.open for entry in (of_all, search)),
        "found": found if found is not None and found["of"].plan == session.plan else None,
        "max_loss": _given(asked.max_loss if asked else accept.loss, 10),
        "max_linkage": _given(asked.max_linkage if asked else accept.linkage, ""),
        "may_keep": [
            (places[name], name, asked is not None and name in asked.keep)
            for name in table.names
            if role_of(session.plan, name).startswith("block-")
        ],
    }


def answers_part(session: Session, table: OpenTable, problem: str = "") -> dict[str, Any]:
    """Return the first question: which columns nobody outside knows, and what that claim wins and stakes."""
    entry, found = session.latest(ClaimTask), session.claims
    asked = entry.task.answers if entry is not None and isinstance(entry.task, ClaimTask) else ()
    places = {name: place for place, name in enumerate(table.names)}
    return {
        "answers_problem": problem,
        "answers_entry": entry,
        "answers_wait": entry is not None and entry.open,
        "may_answer": [
            (place, name, name in asked)
            for name, place in places.items()
            if role_of(session.plan, name).startswith("block-")
        ],
        "claims": [
            (",".join(str(places[name]) for name in columns), columns, words, refused is None)
            for columns, words, refused in found["claims"]
        ]
        if found is not None and found["of"].plan == session.plan
        else [],
    }


def cures_of(model: Mapping[str, Any], table: OpenTable) -> list[dict[str, Any]]:
    """Return the cautions of a release that a decision about a column cures, with these decisions."""
    places = {name: place for place, name in enumerate(table.names)}
    return [
        {
            "severity": caution["severity"],
            "words": caution["words"],
            "ways": [
                (places[name], decision, _sentence(decision_words(decision, name)))
                for name, decision in caution["decisions"]
                if name in places
            ],
        }
        for caution in model["next"]
    ]


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _given(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value
