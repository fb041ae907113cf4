"""The values that each template shows, taken from the session."""

from __future__ import annotations

import contextlib
import difflib
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from microagg.base.formatting import TRADE_OFF, plural
from microagg.comparing.suggestion import FAST, about_methods, suggestion
from microagg.errors import TableError
from microagg.formats.addresses import kind_by_ending
from microagg.page.edits import RULES, UNIT_RELEASES
from microagg.page.plan_figures import answers_part, cures_of, gives_part, next_part
from microagg.page.session import OpenTable, Session, WrittenRelease
from microagg.page.tasks import CompareTask, ProtectTask, ScatterTask
from microagg.plan.block import Block
from microagg.plan.change_role import ROLE_WORDS, UNPRICED, role_of
from microagg.plan.column import Column, fits_kind
from microagg.plan.flag_values import SWITCH, write_list
from microagg.plan.job_settings import JobSettings
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.sections import Accept
from microagg.plan.settings_table import Section, Setting, plain, rows_of
from microagg.report.html import MOST_COLUMNS

_SIZES = (3, 5, 10)
_MOST_K = 50  # at the right end of the slider
_NAMED_ON_PAGE = {row.flag: f"“{row.label}”" for row in rows_of(JobSettings) if row.label}
_NAMED_ON_PAGE |= {f"--{role}": f"the role “{role}”" for role in ("unit", "drop", "renumber")}
# Offered in addition to that of the source.
_ENDINGS = (".csv", ".parquet", ".xlsx", ".sav", ".dta")


def frame_of(session: Session, step: str, idle: float) -> dict[str, Any]:
    """Return the values of the frame around every screen."""
    there, released = session.table is not None, bool(session.releases)
    return {
        "table": session.table,
        "step": step,
        "steps": [
            ("open", "Open", True),
            ("table", "Understand", there),
            ("plan", "Plan", there),
            ("try", "Try", there),
            ("protect", "Protect", there),
            ("see", "See", released),
            ("take", "Take away", released),
        ],
        "busy": session.running,
        "waiting": sum(entry.state == "waiting" for entry in session.entries),
        "idle": plural(round(idle / 60), "minute")
        if idle >= 120
        else plural(round(idle), "second"),
    }


class Field(NamedTuple):
    """A field of the page for one setting, as the templates show it."""

    name: str
    id: str
    label: str
    hint: str
    placeholder: str
    value: str
    choices: list[tuple[str, str]]
    is_switch: bool
    is_long: bool
    is_number: bool


def fields_of(section: Section, place: int | str = "") -> dict[str, Field]:
    """Return the fields of a section's settings by name; those of a column are the ones that fit its kind.

    ``place`` is the number of the column or block.
    """
    kind = getattr(section, "kind", None)
    return {
        row.name: _field(row, plain(row.of(section)), f"-{place}" if place != "" else "", kind)
        for row in rows_of(type(section))
        if row.label and (not row.fits or kind in row.fits)
    }


def _field(row: Setting, value: Any, end: str, kind: Any) -> Field:
    choices = [(word, words) for word, words in row.choices.items() if fits_kind(row, word, kind)]
    if choices and row.placeholder:
        choices.insert(0, ("", row.placeholder))
    is_default = value in (None, [], {}, False) or value == row.default
    typed = "" if value is None and row.default is None else row.typed.write(value)
    return Field(
        name=row.name,
        id=(row.argument or row.name).replace("_", "-") + end,
        label=row.label,
        hint=row.hint,
        placeholder=row.placeholder,
        value="" if is_default and row.placeholder else str(value) if choices else typed,
        choices=choices,
        is_switch=row.form is SWITCH,
        is_long=row.typed.is_long,
        is_number=row.form.type in (int, float),
    )


def plan_screen(
    session: Session, table: OpenTable, error: Any = None, text: str | None = None
) -> dict[str, Any]:
    """Return the values of the plan's menus and fields; ``text`` is TOML that the user typed."""
    plan, names = session.plan, table.names
    places = {name: place for place, name in enumerate(names)}
    of_blocks = [
        (f"block-{i}", "protect" if len(plan.blocks) == 1 else f"protect, block {i + 1}")
        for i in range(len(plan.blocks))
    ]
    every = [(place, name) for place, name in enumerate(names)]
    return {
        **gives_part(session, table),
        **next_part(session, table),
        **answers_part(session, table),
        "plan": plan,
        "at": session.at,
        "versions": len(session.plans),
        "error": error,
        "columns": [_column(plan, place, column) for place, column in enumerate(table.columns)],
        "roles": [
            *of_blocks,
            *((role, ROLE_WORDS[role]) for role in ROLE_WORDS),
            ("block-new", "protect, new block"),
        ],
        "blocks": [_block(block, place) for place, block in enumerate(plan.blocks)],
        "block_places": [(i, i + 1) for i in range(len(plan.blocks))],
        "unit_releases": list(UNIT_RELEASES.items()),
        "unit_release": next(
            (role for role in UNIT_RELEASES if plan.unit in getattr(plan, role)), "known"
        ),
        "unit_fields": fields_of(plan.unit_section).values(),
        "weight_fields": [] if plan.weight is None else fields_of(plan.weight).values(),
        "strata_fields": fields_of(plan.strata).values(),
        "missing_fields": fields_of(plan.missing).values(),
        "accept_fields": fields_of(plan.accept).values(),
        "whole_fields": fields_of(plan).values(),
        "required": _required(plan, places),
        "rules": [(rule, f"{rule}: {row.label}") for rule, row in RULES.items()],
        "every_column": every,
        "text": plan.to_toml() if text is None else text,
    }


def _column(plan: Plan, place: int, column: Any) -> dict[str, Any]:
    name, setting = column["name"], plan.columns.get(column["name"], Column())
    role = role_of(plan, name)
    return {
        "place": place,
        "name": name,
        "role": role,
        "is_protected": role.startswith("block-"),
        "fields": fields_of(setting, place),
        "codes": write_list(plan.missing.codes.get(name, ())),
        "reason": column["reason"],
        "is_priced": role not in UNPRICED,
        "label": column["label"],
        "value_labels": column["value_labels"],
        "more_labels": column["more_labels"],
        "claim": plan.reasons.get(name, ""),
    }


def _block(block: Block, place: int) -> dict[str, Any]:
    method = find(block.method)
    summary = method.summary[:1].upper() + method.summary[1:]
    fields = fields_of(block, place)
    first = [fields.pop("k"), fields.pop("method")._replace(hint=f"{summary}.")]
    return {
        "columns": block.columns,
        "first_fields": first,
        "more_fields": fields.values(),
        "has_effort": "effort" in {option.name for option in method.options},
        "effort": block.options.get("effort", "balanced"),
    }


def _required(plan: Plan, places: dict[str, int]) -> list[dict[str, Any]]:
    found = []
    for number, block in enumerate(plan.blocks):
        for rule in RULES:
            given = getattr(block.require, rule)
            rows = given.items() if isinstance(given, dict) else [(None, given)]
            found += [
                {
                    "block": number,
                    "rule": rule,
                    "name": name,
                    "place": None if name is None else places.get(str(name)),
                    "value": _in_words(value),
                }
                for name, value in rows
                if value is not None
            ]
    return found


def _in_words(value: Any) -> str:
    """Write a number, or the two numbers of a rule."""
    return (
        str(value) if isinstance(value, int | float) else ", ".join(map(str, vars(value).values()))
    )


def try_screen(session: Session, problem: str | None = None) -> dict[str, Any]:
    """Return the choices that were tried, and the form to try more."""
    entry, cells = session.latest(CompareTask), session.map()
    block = session.plan.blocks[0]
    k = block.k or _SIZES[0]
    task = entry.task if entry is not None and isinstance(entry.task, CompareTask) else None
    targets = Accept() if task is None else Accept(task.max_loss, task.max_linkage)
    sizes = sorted({*_SIZES, k}) if task is None else task.sizes
    return {
        "entry": entry,
        "live": entry is not None and entry.open,
        "problem": problem,
        "cells": cells,
        "points": [cell.as_dict() for cell in cells],
        "old": session.map_is_old,
        "suggestion": suggestion(cells, targets),
        "offered": list(dict.fromkeys([block.method, *FAST])),
        "ticked": [block.method] if task is None else task.methods,
        "sizes": ", ".join(map(str, sizes)),
        "attack": task is not None and task.attack,
        "max_loss": "" if targets.loss is None else targets.loss,
        "max_linkage": "" if targets.linkage is None else targets.linkage,
        "plan_k": k,
        "plan_method": block.method,
        "most_k": max(_MOST_K, k),
        "trade_off": TRADE_OFF,
        "about_methods": about_methods(session.plan),
    }


def protect_screen(
    session: Session, table: OpenTable, problem: str | None = None
) -> dict[str, Any]:
    """Return running and finished releases, and the form for the next one."""
    entry, plan = session.latest(ProtectTask), session.plan
    open_ones = [e for e in session.entries if isinstance(e.task, ProtectTask) and e.open]
    return {
        "entry": entry,
        "waiting_for": open_ones,
        "problem": problem,
        "done": session.releases[-1] if session.releases and not open_ones else None,
        "plan": plan,
        "protected": [name for block in plan.blocks for name in block.columns or ()],
        "k": ", ".join(str(block.k) for block in plan.blocks),
        "units": plan.words_of_unit(plan.unit),
        "plan_method": ", ".join(block.method for block in plan.blocks),
        "endings": _writable(table.opened.path.suffix.lower()),
    }


def ledger_form(
    session: Session, table: OpenTable, folder: Path, ledgers: Sequence[str]
) -> dict[str, Any]:
    """Return the fields for a ledger, as the last release had it: once begun, it is for every release.

    ``folder`` is where ``ledgers`` lie, and where a new one is made.
    """
    plan, places = session.plan, {name: str(j) for j, name in enumerate(table.names)}
    entry = session.latest(ProtectTask)
    last = None if entry is None or entry.task.opened != table.opened else entry.task
    used, people, leavers = (
        (last.ledger, last.key, last.leavers)
        if isinstance(last, ProtectTask)
        else (None, None, "withhold")
    )
    path = "" if used is None else used.name if used.parent == folder else str(used)
    named = [("", "none, for this file alone"), *((name, name) for name in ledgers)]
    if path not in ("", *ledgers):
        named.append((path, path))
    columns = [(places[str(name)], str(name)) for name in (*plan.drop, *plan.renumber)]
    shown_fields = {row.name: _field(row, None, "", None) for row in rows_of(JobSettings)}
    fields = [
        shown_fields["ledger"]._replace(choices=named, value=path),
        shown_fields["key"]._replace(
            choices=[("", "choose a column"), *columns], value=places.get(people or "", "")
        ),
        shown_fields["leavers"]._replace(value=leavers),
    ]
    if plan.units:  # which tell people apart
        del fields[1]
    return {"ledger_fields": fields, "ledger_folder": folder}


def in_page_words(words: str) -> str:
    """Name the fields and roles of the page where a sentence names flags of the command.

    >>> in_page_words("Name it in --drop, or say it with --ledger.")
    'Name it in the role “drop”, or say it with “Ledger”.'
    """
    return re.sub(r"--[a-z]+", lambda flag: _NAMED_ON_PAGE.get(flag[0], flag[0]), words)


def _writable(own: str) -> list[str]:
    """Return the endings that can be written, that of the source first."""
    found = []
    for ending in dict.fromkeys([own, *_ENDINGS]):
        with contextlib.suppress(TableError):
            kind_by_ending(Path(f"x{ending}"), writing=True)
            found.append(ending)
    return found


def see_screen(
    session: Session, table: OpenTable, release: WrittenRelease, x: str, y: str
) -> dict[str, Any]:
    """Return the model of a release's report, and a scatter of two columns."""
    numeric = [
        (str(place), column["name"])
        for place, column in enumerate(table.columns)
        if column["type"] == "number" and column["name"] not in _gone(release)
    ]
    names = dict(numeric)
    if not x and not y and len(numeric) > 1:
        protected = {str(name) for block in release.plan.blocks for name in block.columns or ()}
        x, y = sorted(names, key=lambda place: names[place] not in protected)[:2]
    chosen = x in names and y in names
    entry = session.latest(ScatterTask)
    found = session.scatters.get((release.number, names[x], names[y])) if chosen else None
    return {
        "m": release.model,
        "cures": cures_of(release.model, table),
        "most": MOST_COLUMNS,
        "release": release,
        "releases": session.releases,
        "numeric": numeric,
        "x_place": x if chosen else "",
        "y_place": y if chosen else "",
        "x_name": names.get(x, ""),
        "y_name": names.get(y, ""),
        "points": found,
        "scatter_entry": entry,
        "scatter_waits": chosen and found is None and entry is not None and entry.open,
    }


def _gone(release: WrittenRelease) -> set[str]:
    columns = release.model["columns"]
    return {*columns["dropped"], *columns["renumbered"]}


def versions_screen(session: Session, a: WrittenRelease, b: WrittenRelease) -> dict[str, Any]:
    """Return two releases side by side."""
    drawn = [r.model["pictures"]["distributions"] for r in (a, b)]
    losses = [r.model["utility"]["by_column"] for r in (a, b)]
    before, after = (r.plan.to_toml().splitlines() for r in (a, b))
    lines = list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]
    kinds = {"+": "added", "-": "removed"}
    return {
        "releases": session.releases,
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
        "file": (release.task.target, "everybody", "the protected table"),
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
    there = {key for key, (name, *_) in files.items() if (release.task.folder / name).exists()}
    return {key: facts for key, facts in files.items() if key in {*there, "plan"}}


def take_screen(session: Session, table: OpenTable, release: WrittenRelease) -> dict[str, Any]:
    """Return the files to take away, and the command that makes them from the plan."""
    source = table.opened.path.name if table.opened.uploaded else str(table.opened.path)
    words = ["microagg", "protect", source, release.task.target, "--plan", "plan.toml"]
    return {
        "release": release,
        "releases": session.releases,
        "files": [(key, *facts) for key, facts in take_files(release).items()],
        "command": shlex.join([*words, *_flags(release.task)]),
    }


def _flags(task: ProtectTask) -> list[str]:
    """Return the flags with which the file was read and remembered."""
    opened = task.opened
    flags = {
        "--delimiter": opened.delimiter,
        "--encoding": opened.encoding,
        "--decimal": None if opened.decimal == "." else opened.decimal,
        "--sheet": opened.sheet,
        "--ledger": None if task.ledger is None else str(task.ledger),
        "--key": task.key,
        "--leavers": None if task.leavers == "withhold" else task.leavers,
    }
    return [word for flag, value in flags.items() if value is not None for word in (flag, value)]
