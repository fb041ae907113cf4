"""The values that templates show and the session does not have as such: fields, estimates, choices, files."""

from __future__ import annotations

import contextlib
import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from microagg.base.formatting import TRADE_OFF, lost_words, percent, share
from microagg.comparing.choices import FAST, about_methods, suggestion
from microagg.errors import TableError
from microagg.formats.addresses import kind_by_ending
from microagg.page.edits import RULES, UNIT_RELEASES
from microagg.page.session import OpenTable, Session, WrittenRelease
from microagg.plan.block import Block
from microagg.plan.change_role import ROLE_WORDS, UNPRICED, decision_words, role_of
from microagg.plan.column import Column, fits_kind
from microagg.plan.forms import LIST
from microagg.plan.job_settings import JobSettings
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.sections import Accept, Missing, Strata, Unit, Weight
from microagg.plan.settings_table import Section, Setting, rows_of
from microagg.report.html import MOST_COLUMNS

_SIZES = (3, 5, 10)
# Offered in addition to that of the source.
_ENDINGS = (".csv", ".parquet", ".xlsx", ".sav", ".dta")
_SECTIONS = (JobSettings, Plan, Block, Column, Unit, Missing, Strata, Weight, Accept)
_ON_PAGE = {row.argument: row for section in _SECTIONS for row in rows_of(section) if row.label}
_LINES_OF_A_PLAN = {
    r'\bsay kind = "(\w+)"': r"choose the kind “\1”",
    r'\bkind = "(\w+)"': r"the kind “\1”",
    r"\brenumber puts random numbers": "The role “renumber” puts random numbers",
    r"The order that was taken is in levels\.": "The order stands under “more”.",
    r"\(missing\.codes\)": "(“Codes for missing”, under “more”)",
    r"missing\.codes with the kind": "“Codes for missing” with the kind",
    r"leave out release\.": "choose “nearest to the mean” under “more”.",
    r'leave release = "spike" out of the plan': "choose “nearest to the mean” for the column",
}
_FLAG = re.compile(r"--([a-z-]*[a-z])")
_FLAGS_IN_BRACKETS = re.compile(r"\((--[^()]*)\)")
_FLAG_WITH_VALUE = re.compile(r"--([a-z-]*[a-z])(?: (?:COLUMN=)?([^\s()]+))?")


def in_page_words(words: str) -> str:
    """Name the fields and roles of the page where a sentence names flags, or lines of a plan file.

    In brackets a flag has its value.

    >>> in_page_words("Name it in --drop, or say it with --ledger.")
    'Name it in the role “drop”, or say it with “Ledger”.'
    >>> in_page_words("release (--release swap --k 6), or merge (--coarsen COLUMN=rare:50)")
    'release (“A group releases” its values, swapped at random; “k” 6), or merge (“Made coarser” rare:50)'
    >>> in_page_words('Codes. If it is a quantity, say kind = "number".')
    'Codes. If it is a quantity, choose the kind “number”.'
    """
    for line, said in _LINES_OF_A_PLAN.items():
        words = re.sub(line, said, words)
    words = _FLAGS_IN_BRACKETS.sub(
        lambda found: f"({'; '.join(map(_put, _FLAG_WITH_VALUE.finditer(found[1])))})", words
    )
    return _FLAG.sub(_put, words)


def _put(flag: re.Match[str]) -> str:
    """Return what the page calls a flag, with its value if the match has one."""
    name = flag[1].replace("-", "_")
    if name in ROLE_WORDS:
        return f"the role “{ROLE_WORDS[name]}”"
    if name not in _ON_PAGE:
        return flag[0]
    row = _ON_PAGE[name]
    value = f" {row.choices.get(flag[2], flag[2])}" if flag.lastindex == 2 else ""
    return f"“{row.label}”{value}"


class Field(NamedTuple):
    """A field of the page for one setting, as the templates show it."""

    row: Setting
    id: str
    value: str
    choices: list[tuple[str, str]]
    is_number: bool


def fields_of(section: Section, place: int | str = "") -> dict[str, Field]:
    """Return the fields of a section's settings by name; those of a column are the ones that fit its kind.

    ``place`` is the number of the column or block.
    """
    kind = getattr(section, "kind", None)
    return {
        row.name: _field(row, row.in_file(section), f"-{place}" if place != "" else "", kind)
        for row in rows_of(type(section))
        if row.label and (not row.fits or kind in row.fits)
    }


def _field(row: Setting, value: Any, end: str, kind: Any) -> Field:
    choices = [(word, words) for word, words in row.choices.items() if fits_kind(row, word, kind)]
    if choices and row.placeholder:
        choices.insert(0, ("", row.placeholder))
    is_default = value in (None, [], {}, False) or value == row.default
    typed = "" if value is None and row.default is None else row.form.to_field(value)
    return Field(
        row,
        id=(row.argument or row.name).replace("_", "-") + end,
        value="" if is_default and row.placeholder else str(value) if choices else typed,
        choices=choices,
        is_number=row.form.type in (int, float),
    )


GLOBALS = {
    "Column": Column,
    "ROLE_WORDS": ROLE_WORDS,
    "RULES": RULES,
    "TRADE_OFF": TRADE_OFF,
    "UNIT_RELEASES": UNIT_RELEASES,
    "UNPRICED": UNPRICED,
    "fields_of": fields_of,
    "find": find,
    "role_of": role_of,
    "write_list": LIST.to_field,
}
"""What all templates know, in addition to the session, its table and its plan."""


# The plan: estimates, what to do next, what is required.


def plan_screen(session: Session, table: OpenTable, text: str | None = None) -> dict[str, Any]:
    """Return the values of the Plan screen; ``text`` is TOML that the user typed.

    The page offers claims about answers, cures of cautions, the best decisions and a search.
    """
    plan, places, prices = session.plan, _places(table), session.prices(session.plan)
    best = None if prices is None else prices["best"]
    last = session.releases[-1] if session.releases else None
    targets, claims = session.asked("search"), session.result("claim")
    loss = targets.get("max_loss", plan.accept.loss)
    required = []  # number of the block, rule, column with its place, and value in words
    for number, block in enumerate(plan.blocks):
        for rule in RULES:
            asked = getattr(block.require, rule)
            by_column = asked if isinstance(asked, Mapping) else {None: asked}
            for name, value in by_column.items():
                if value is not None:
                    several = [value] if isinstance(value, int | float) else vars(value).values()
                    words = ", ".join(map(str, several))
                    required.append((number, rule, name, places.get(str(name)), words))
    return {
        **gives_part(session, table),
        "claims": [
            (",".join(str(places[name]) for name in columns), columns, words, refused is None)
            for columns, words, refused in (claims["claims"] if claims else ())
        ],
        "cures": cures_of(last.model, table) if last and last.plan == plan else [],
        "best": best
        and [
            (places[name], decision, _sentence(decision_words(decision, name)), words)
            for name, decision, words in best
        ],
        "max_loss": 10 if loss is None else loss,
        "max_linkage": targets.get("max_linkage", plan.accept.linkage),
        "protects": [(place, name) for name, place in places.items() if _is_protected(plan, name)],
        "required": required,
        "text": plan.to_toml() if text is None else text,
    }


def _places(table: OpenTable) -> dict[str, int]:
    return {name: place for place, name in enumerate(table.names)}


def _is_protected(plan: Plan, name: Any) -> bool:
    return role_of(plan, name).startswith("block-")


def gives_part(session: Session, table: OpenTable) -> dict[str, Any]:
    """Return the estimates for the current plan; until they exist, those before the last change."""
    none: dict[str, Any] = {"facts": (), "basis": "", "losses": {}, "stakes": {}}
    now = session.prices(session.plan)
    before = session.prices(session.plans[session.at - 1]) if session.at > 0 else None
    former = {label: figure for label, figure, _ in before["facts"]} if now and before else {}
    estimates, refused = now or before or none, "" if now else session.refused_pricing()
    notes = dict.fromkeys(table.names, "")
    for name, stake in (now or none)["stakes"].items():
        notes[name] = f"if it is known after all, {share(stake)} of the records are below k"
    for name, loss in (now or none)["losses"].items():
        notes[name] = f"{percent(loss)} of it lost" if loss < 100.5 else lost_words(loss)
    return {
        "facts": [(*fact, former.get(fact[0])) for fact in estimates["facts"]],
        "facts_about": estimates["basis"],
        "facts_wait": now is None and not refused,
        "facts_are_old": now is None and estimates is not none,
        "facts_problem": refused,
        "notes": [notes[name] for name in table.names],
        "oob": False,
    }


def prices_part(session: Session, table: OpenTable, place: int) -> dict[str, Any]:
    """Return what other decisions about one column would cost."""
    name = table.names[place]
    prices, entry = session.prices(session.plan), session.pricing((name,))
    priced = None if prices is None else prices["columns"].get(name)
    done, refused = entry is not None and entry.state == "done", session.refused_pricing((name,))
    return {
        "place": place,
        "decisions": [
            (decision, _sentence(decision_words(decision)), words, problem is None)
            for decision, words, problem in priced or ()
        ],
        "prices_wait": priced is None and not done and not refused,
        "prices_problem": refused,
    }


def cures_of(model: Mapping[str, Any], table: OpenTable) -> list[dict[str, Any]]:
    """Return the cautions of a release that a decision about a column cures, with these decisions."""
    places = _places(table)
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


# Try, protect, see, take away.


def try_screen(session: Session, _: OpenTable) -> dict[str, Any]:
    """Return the choices that were tried, and the form to try more."""
    cells, block, asked = session.map(), session.plan.blocks[0], session.asked("compare")
    targets = Accept(asked.get("max_loss"), asked.get("max_linkage"))
    k = block.k or _SIZES[0]
    return {
        "cells": cells,
        "points": [cell.as_dict() for cell in cells],
        "suggestion": suggestion(cells, targets),
        "targets": targets,
        "offered": list(dict.fromkeys([block.method, *FAST])),
        "ticked": asked.get("methods", [block.method]),
        "sizes": asked.get("sizes") or sorted({*_SIZES, k}),
        "plan_k": k,
        "plan_method": block.method,
        "plan_release": block.release,
        "about_methods": about_methods(session.plan),
    }


def protect_screen(
    session: Session, table: OpenTable, folder: Path, ledgers: Sequence[str]
) -> dict[str, Any]:
    """Return running and finished releases, and the form for the next one.

    The fields for a ledger are as the last release had them: once begun, it is for every release. ``folder``
    is where ``ledgers`` lie, and where a new one is made.
    """
    waiting = [entry for entry in session.entries if entry.task.kind == "protect" and entry.open]
    plan, places = session.plan, _places(table)
    entry = session.latest("protect")
    last = entry.task.settings if entry and entry.task.opened == table.opened else {}
    used: Path | None = last.get("ledger")
    path = "" if used is None else used.name if used.parent == folder else str(used)
    named = [("", "none, for this file alone"), *((name, name) for name in ledgers)]
    if path not in ("", *ledgers):
        named.append((path, path))
    columns = [(str(places[str(name)]), str(name)) for name in (*plan.drop, *plan.renumber)]
    rows = {row.name: _field(row, None, "", None) for row in rows_of(JobSettings)}
    fields = [
        rows["ledger"]._replace(choices=named, value=path),
        rows["key"]._replace(
            choices=[("", "choose a column"), *columns],
            value=str(places.get(last.get("key") or "", "")),
        ),
        rows["leavers"]._replace(value=last.get("leavers", "withhold")),
    ]
    if plan.units:  # which tell people apart
        del fields[1]
    return {
        "waiting_for": waiting,
        "done": session.releases[-1] if session.releases and not waiting else None,
        "endings": writable_endings(table),
        "ledger_fields": fields,
        "ledger_folder": folder,
    }


def writable_endings(table: OpenTable) -> list[str]:
    """Return the endings that can be written, that of the source first."""
    endings = []
    for ending in dict.fromkeys([table.opened.path.suffix.lower(), *_ENDINGS]):
        with contextlib.suppress(TableError):
            kind_by_ending(Path(f"x{ending}"), writing=True)
            endings.append(ending)
    return endings


def see_screen(
    session: Session, table: OpenTable, release: WrittenRelease, x: str, y: str
) -> dict[str, Any]:
    """Return the model of a release's report, and a scatter of two columns, which places name.

    The worker is asked for columns that it did not read yet.
    """
    gone = {*release.model["columns"]["dropped"], *release.model["columns"]["renumbered"]}
    names = {
        str(place): column["name"]
        for place, column in enumerate(table.columns)
        if column["type"] == "number" and column["name"] not in gone
    }
    if not x and not y and len(names) > 1:
        x, y = sorted(names, key=lambda place: not _is_protected(release.plan, names[place]))[:2]
    chosen = x in names and y in names
    points = None
    if chosen:
        released = release.folder / release.task.settings["target"]
        asked = {"released": released, "number": release.number, "x": names[x], "y": names[y]}
        points = session.result("scatter", release.plan, **asked)
        is_new = points is None and session.asked("scatter") != asked
        if is_new and released.exists():  # it was not rejected
            session.ask("scatter", release.plan, **asked)
    entry = session.latest("scatter")
    return {
        "m": release.model,
        "cures": cures_of(release.model, table),
        "most": MOST_COLUMNS,
        "release": release,
        "numeric": names,
        "x_place": x if chosen else "",
        "y_place": y if chosen else "",
        "x_name": names.get(x, ""),
        "y_name": names.get(y, ""),
        "points": points,
        "scatter_entry": entry,
        "scatter_waits": chosen and points is None and entry is not None and entry.open,
    }


def versions_screen(a: WrittenRelease, b: WrittenRelease) -> dict[str, Any]:
    """Return two releases side by side."""
    drawn = [r.model["pictures"]["distributions"] for r in (a, b)]
    losses = [r.model["utility"]["by_column"] for r in (a, b)]
    before, after = (r.plan.to_toml().splitlines() for r in (a, b))
    lines = list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]
    kinds = {"+": "added", "-": "removed"}
    return {
        "a": a,
        "b": b,
        "losses": list(dict.fromkeys([*losses[0], *losses[1]])),
        "drawn": list(dict.fromkeys([*drawn[0], *drawn[1]]))[:MOST_COLUMNS],
        "difference": [
            (kinds.get(line[:1], "same"), line) for line in lines if not line.startswith("@@")
        ],
    }


def take_files(release: WrittenRelease) -> dict[str, tuple[str, str, str]]:
    """Return the files to take away: name, readers and content of each."""
    files = {
        "file": (release.task.settings["target"], "everybody", "the protected table"),
        "report": (
            "report.html",
            "the board",
            "the evidence; statistics of the originals to three digits",
        ),
        "numbers": ("report.json", "the board", "every number of it"),
        "public": (
            "public-report.html",
            "everybody",
            "what the file and the plan give, and four bands",
        ),
        "public-numbers": ("public-report.json", "everybody", "every number of it"),
        "plan": ("plan.toml", "you", "the plan, to do the same again; no data"),
    }
    # A rejected table is not there.
    there = {key for key, (name, *_) in files.items() if (release.folder / name).exists()}
    return {key: facts for key, facts in files.items() if key in {*there, "plan"}}


def take_screen(release: WrittenRelease) -> dict[str, Any]:
    """Return the files to take away, and the command that makes them from the plan."""
    settings, opened = release.task.settings, release.task.opened
    source = opened.path.name if opened.uploaded else str(opened.path)
    usual = {"decimal": ".", "leavers": "withhold"}
    flags = {name: getattr(opened, name) for name in ("delimiter", "encoding", "decimal", "sheet")}
    flags |= {name: settings.get(name) for name in ("ledger", "key", "leavers")}
    command = ["microagg", "protect", source, settings["target"], "--plan", "plan.toml"]
    for name, value in flags.items():
        command += [] if value in (None, usual.get(name)) else [f"--{name}", str(value)]
    return {"release": release, "files": take_files(release), "command": shlex.join(command)}
