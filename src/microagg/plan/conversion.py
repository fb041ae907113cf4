"""A plan as keywords, as flags, and as plain data for JSON and TOML, in and out; defaults are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.block import Block
from microagg.plan.checks import check_keys, check_table
from microagg.plan.column import Column
from microagg.plan.flag_values import WORD, NoFlagError, words_of
from microagg.plan.plan_settings import PlanSettings
from microagg.plan.registry import METHODS
from microagg.plan.settings_table import Setting, plain, rows_of

FORMAT = 1  # version of the plan file


def _long_keywords(plan: PlanSettings) -> dict[str, Any]:
    """Return the keywords that build this plan with one block; sections and columns as tables."""
    if len(plan.blocks) > 1:
        raise InputError("Keywords describe one block; this plan has several.")
    found: dict[str, Any] = plain(plan.blocks[0])
    found |= found.pop("options", {})
    for row in rows_of(type(plan)):
        value = row.of(plan)
        if row.is_spread and row.section is not Block:
            keywords = {inner.name: inner.keyword for inner in rows_of(row.section)}
            found |= {keywords[name]: own for name, own in plain(value).items()}
        elif not row.is_spread and value != row.default:
            found[row.keyword] = plain(value)
    return found


def as_keywords(plan: PlanSettings) -> dict[str, Any]:
    """Return the keywords that build this plan, defaults left out; only of a plan with one block."""
    found = _long_keywords(plan)
    for row in rows_of(type(plan)):
        short = row.section.short if row.section else ""
        if short and set(found.get(row.keyword, ())) == {short}:
            found[row.keyword] = found[row.keyword][short]
    columns = found.pop("kinds", {})
    coarsen = {name: had.pop("coarsen") for name, had in columns.items() if "coarsen" in had}
    kinds = {n: _in_short(had) for n, had in columns.items() if had or n not in coarsen}
    return found | ({"kinds": kinds} if kinds else {}) | ({"coarsen": coarsen} if coarsen else {})


def _in_short(column: dict[str, Any]) -> Any:
    """Return a column as the keyword ``kinds`` takes it: a kind, levels in order, or a table of settings."""
    if column.keys() == {"kind"}:
        return column["kind"]
    if column.keys() == {"kind", "levels"} and column["kind"] == "ordinal":
        return column["levels"]
    return column


def as_data(plan: PlanSettings) -> dict[str, Any]:
    """Return plain data for JSON and TOML: what differs from the defaults, and every block."""
    found: dict[str, Any] = {"microagg": FORMAT}
    for row in rows_of(type(plan)):
        if row.section is not Block and row.of(plan) != row.default:
            found[row.key] = row.to_file(plain(row.of(plan)))
    return found | {"block": [block.as_dict() for block in plan.blocks]}


def fields_of_data(settings: type[PlanSettings], given: Any) -> dict[str, Any]:
    """Read the fields of a plan from what :func:`as_data` gives; unknown keys are refused."""
    check_table("A plan", given)
    version = given.get("microagg", "missing")
    if version != FORMAT or isinstance(version, bool):
        raise InputError(
            f"A plan begins with the version of its format, microagg = {FORMAT}; here it is "
            f"{shown(version)}."
        )
    rows = rows_of(settings)
    check_keys("a plan", given, ["microagg", *(row.key for row in rows)])
    return {row.name: row.read(given[row.key]) for row in rows if row.key in given}


def flag_rows(settings: type[PlanSettings]) -> list[tuple[tuple[str, ...], Setting]]:
    """Return all settings that have a flag, each with the place of its value among the keywords.

    A place is a keyword, or a keyword and the name of a setting of its section.
    """
    found = [place for row in rows_of(settings) for place in _flags_within(row)]
    return sorted(found, key=lambda place: not place[1].comes_first)


def _flags_within(row: Setting) -> Iterator[tuple[tuple[str, ...], Setting]]:
    if row.flag:
        yield (row.keyword,), row
    if row.other is not None:
        flag, words, form = row.other
        yield (row.keyword,), replace(row, flag=flag, form=form, help=words, other=None)
    if row.section is None or row.flag:
        return
    for inner in rows_of(row.section):
        if inner.flag and not row.is_spread:
            yield (row.keyword, inner.name), inner
        elif inner.flag:
            yield from _flags_within(inner)
        elif inner.name == "options":
            yield from (((option.name,), option) for option in _options_with_flags())


def _options_with_flags() -> list[Setting]:
    """Return the options of methods that have a flag of their own, as rows."""
    found = {option.name: option for method in METHODS.values() for option in method.options}
    return [
        Setting(
            f"{one.help[:1].upper()}{one.help[1:]}.", flag=one.flag, form=one.form, name=one.name
        )
        for one in found.values()
        if one.flag
    ]


def as_flags(plan: PlanSettings) -> list[str] | None:
    """Return the plan as flags of the command; None where some have no flag and a plan file is needed."""
    if len(plan.blocks) > 1:
        return None
    values, words = _by_place(plan), []
    try:
        for place, row in flag_rows(type(plan)):
            if place in values:
                try:
                    words += words_of(row.flag, row.form, values[place])
                except NoFlagError:
                    if row.other is None:
                        raise
                    continue
                del values[place]
    except NoFlagError:
        return None
    options = plan.blocks[0].options
    for name in [place[0] for place in values if len(place) == 1 and place[0] in options]:
        words += words_of("--option", WORD, f"{name}={values.pop((name,))}")
    return None if values else words


def _by_place(plan: PlanSettings) -> dict[tuple[str, ...], Any]:
    """Return what the plan says by place; of settings of columns, a table by column."""
    found: dict[tuple[str, ...], Any] = {}
    sections = {row.keyword for row in rows_of(type(plan)) if row.section and not row.is_spread}
    for keyword, value in _long_keywords(plan).items():
        if keyword == "kinds":
            for name, column in value.items():
                # A column without settings is said to count as much as any other.
                said = dict(column) or {"importance": Column().importance}
                if said.get("kind") == "ordinal" and "levels" in said:
                    said["kind"] = said.pop("levels")
                for key, own in said.items():
                    found.setdefault((keyword, key), {})[name] = own
        elif keyword in sections:
            found |= {(keyword, key): own for key, own in value.items()}
        else:
            found[(keyword,)] = value
    return found


def keywords_of_flags(settings: type[PlanSettings], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that flags give; a flag that is None is not given."""
    found: dict[str, Any] = {}
    for place, row in flag_rows(settings):
        if given.get(row.argument) is None:
            continue
        value = row.form.read(row.flag.split(",")[0], given[row.argument])
        if place[0] == "kinds":
            for name, own in value.items():
                found.setdefault("kinds", {}).setdefault(name, {})[place[1]] = own
        elif len(place) == 2:
            found.setdefault(place[0], {})[place[1]] = value
        else:
            found[place[0]] = value
    return found
