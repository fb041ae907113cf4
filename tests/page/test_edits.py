"""Edits of the plan by forms: each does what a keyword does, and mistakes are told in the plan's words."""

import pytest

from microagg import InputError, Plan
from microagg.page.edits import edited
from microagg.plan.change_role import ROLE_WORDS, decided, decision_words, role_of

NAMES = ["id", "house", "region", "income", "rent", "job", "w", "illness"]
KINDS = {"job": "nominal", "region": "nominal", "illness": "nominal"}
PLAN = Plan.of(k=5, columns=["income", "rent"])


def after(*edits, plan=PLAN):
    for fields in edits:
        plan = edited(plan, {key: str(value) for key, value in fields.items()}, NAMES, KINDS)
    return plan


def edit(what, column=None, **fields):
    """The fields that a form sends, of a column its place."""
    place = {} if column is None else {"column": NAMES.index(column)}
    return {"what": what, **place, **fields}


def role(name, what):
    return edit("role", name, role=what)


def decide(name, what):
    return edit("decide", name, decision=what)


BLOCK = edit("block", block=0, k=5, method="auto")
REASON = edit("reason", "illness", reason="in no register")
LIMITS = {"loss": 10, "linkage": 0.1, "agreeing": 0.2, "moved": 0.5, "tables": 2, "inference": 0.3}

CASES = {
    "stratum no more": ([role("region", "strata"), role("region", "known")], {"known": "region"}),
    "known no more": ([role("region", "known"), role("region", "drop")], {"drop": "region"}),
    "confidential with a reason": (
        [role("illness", "confidential"), REASON, role("job", "confidential")],
        {"confidential": {"illness": "in no register", "job": ""}},
    ),
    "confidential no more": (
        [role("illness", "confidential"), REASON, role("illness", "drop")],
        {"drop": "illness"},
    ),
    "unit with its noun": (
        [role("house", "unit"), edit("unit", name="household")],
        {"unit": {"column": "house", "name": "household"}, "drop": "house"},
    ),
    "protected no more": ([role("job", "block-0"), role("job", "known")], {"known": "job"}),
    "unit, renumbered": (
        [role("house", "unit"), edit("unit", release="renumber")],
        {"unit": "house", "renumber": "house"},
    ),
    "another unit": (
        [role("house", "unit"), role("id", "unit")],
        {"unit": "id", "drop": ["house", "id"]},
    ),
    "decided": ([decide("rent", "drop")], {"columns": ["income"], "drop": "rent"}),
    "effort that the next method does not have": (
        [{**BLOCK, "effort": "fast"}, {**BLOCK, "method": "mdav"}],
        {"method": "mdav"},
    ),
    "a choice of the map": ([edit("k", k=9, method="mst")], {"k": 9, "method": "mst"}),
    "column": (
        [edit("column", "income", kind="spiked", importance=2, spike=0, codes="-8, -9")],
        {
            "kinds": {"income": {"kind": "spiked", "importance": 2, "spike": 0}},
            "missing": {"codes": {"income": [-8, -9]}},
        },
    ),
    "coarser": (
        [edit("column", "income", kind="", coarsen="round:100, top:9000")],
        {"coarsen": {"income": {"round": 100, "top": 9000}}},
    ),
    "no longer coarser": (
        [
            role("region", "strata"),
            edit("coarsen", "region", coarsen="rare:20"),
            edit("coarsen", "region", coarsen=""),
        ],
        {"strata": ["region"]},
    ),
    "levels": (
        [role("job", "block-0"), edit("column", "job", kind="ordinal", levels="low,\nhigh")],
        {"columns": ["income", "rent", "job"], "kinds": {"job": ["low", "high"]}},
    ),
    "kind that has no spike": (
        [
            edit("column", "income", kind="spiked", spike=1),
            edit("column", "income", kind="number", spike=1),
        ],
        {"kinds": {"income": "number"}},
    ),
    "weight released": (
        [role("w", "weight"), edit("weight", release="keep", grouping="plain")],
        {"weight": {"column": "w", "release": "keep", "grouping": "plain"}},
    ),
    "missing": (
        [edit("missing", policy="majority", most="0.05")],
        {"missing": {"policy": "majority", "most": 0.05}},
    ),
    "required, two numbers": (
        [edit("require", "rent", block=0, rule="n_k", value="2, 85")],
        {"require": {"n_k": {"rent": (2, 85)}}},
    ),
    "required no more": (
        [
            edit("require", "illness", block=0, rule="distinct", value=3),
            edit("no_longer_require", "illness", block=0, rule="distinct"),
        ],
        {},
    ),
    "accepted": (
        [edit("accept", **LIMITS)],
        {f"max_{name}": limit for name, limit in LIMITS.items()},
    ),
    "whole": (
        [edit("whole", round="totals", digits=2, seed=7, keep_order="yes")],
        {"round": "totals", "digits": 2, "random_state": 7, "keep_order": True},
    ),
    "analyses": (
        [edit("whole", analyses="income ~ rent\ngini(income)\n")],
        {"analyses": ["income ~ rent", "gini(income)"]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_edit_says_what_the_keyword_says(name):
    edits, keywords = CASES[name]
    assert after(*edits) == PLAN.override(**keywords)


def test_text():
    text = PLAN.override(drop="id", k=4).to_toml()
    assert after({"what": "text", "text": text}) == PLAN.override(drop="id", k=4)


def test_a_new_block_and_back():
    found = after(role("rent", "block-new"))
    assert [block.columns for block in found.blocks] == [("income",), ("rent",)]
    assert [block.k for block in found.blocks] == [5, 5]
    assert role_of(found, "rent") == "block-1"
    found = after({**BLOCK, "block": 1, "k": 3}, role("rent", "block-0"), plan=found)
    assert [block.columns for block in found.blocks] == [("income", "rent")]


def test_every_role_is_told_as_it_was_chosen():
    for what in ("block-0", *ROLE_WORDS):
        assert role_of(after(role("w", what)), "w") == what


@pytest.mark.parametrize(
    "what",
    [*ROLE_WORDS.values(), "protect", "coarsen bands:5", "importance 5"],
)
def test_every_decision_can_be_carried_out_and_said(what):
    assert decided(PLAN, "income", what) != PLAN or what == "protect"
    assert "income" in decision_words(what, "income")


def test_a_requirement_is_said_in_words():
    assert decision_words("require distinct:2", "job") == "require 2 different values of job"


def test_notes_stay():
    plan = Plan(blocks=PLAN.blocks, notes={"id": "why"})
    assert after(role("id", "drop"), plan=plan).notes == {"id": "why"}


MISTAKES = {
    "k": ({**BLOCK, "k": "many"}, "k"),
    "no unit": ({"what": "unit", "mode": "together"}, "role unit"),
    "place": ({"what": "role", "column": 99, "role": "drop"}, "no column number"),
    "block place": ({**BLOCK, "block": 3}, "no block number"),
    "role": ({"what": "role", "column": 0, "role": "king"}, "no role 'king'"),
    "edit": ({"what": "all"}, "no edit 'all'"),
    "rule": ({"what": "require", "block": 0, "rule": "x", "value": 1}, "no requirement"),
    "nothing required": (
        {"what": "require", "block": 0, "rule": "distinct", "column": 7},
        "Fill it in",
    ),
    "small without strata": ({"what": "strata", "small": "merge"}, "no strata"),
    "release without a weight": ({"what": "weight", "release": "keep"}, "weight"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_in_words(name):
    fields, words = MISTAKES[name]
    with pytest.raises(InputError, match=words):
        after(fields)
