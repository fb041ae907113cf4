"""A plan from flags, and as plain data for JSON and TOML, in and out; defaults are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.block import Block
from microagg.plan.checks import check_keys, check_table
from microagg.plan.plan_settings import PlanSettings
from microagg.plan.registry import METHODS
from microagg.plan.settings_table import Setting, plain, rows_of

FORMAT = 1  # version of the plan file


def as_data(plan: PlanSettings) -> dict[str, Any]:
    """Return plain data for JSON and TOML: what differs from the defaults, and every block."""
    data: dict[str, Any] = {"microagg": FORMAT}
    for row in rows_of(type(plan)):
        if row.section is not Block and row.of(plan) != row.default:
            data[row.key] = row.to_file(plain(row.of(plan)))
    return data | {"block": [block.as_dict() for block in plan.blocks]}


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
    return [place for row in rows_of(settings) for place in _flags_within(row)]


def _flags_within(row: Setting) -> Iterator[tuple[tuple[str, ...], Setting]]:
    if row.flag:
        yield (row.keyword,), row
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
    options = {option.name: option for method in METHODS.values() for option in method.options}
    return [
        Setting(
            f"{choice.help[:1].upper()}{choice.help[1:]}.",
            flag=choice.flag,
            form=choice.form,
            name=choice.name,
        )
        for choice in options.values()
        if choice.flag
    ]


def keywords_of_flags(settings: type[PlanSettings], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that flags give; a flag that is None is not given."""
    keywords: dict[str, Any] = {}
    for path, row in flag_rows(settings):
        if given.get(row.argument) is None:
            continue
        value = row.form.read(row.flag.split(",")[0], given[row.argument])
        if path[0] == "kinds":
            for name, setting in value.items():
                keywords.setdefault("kinds", {}).setdefault(name, {})[path[1]] = setting
        elif len(path) == 2:
            keywords.setdefault(path[0], {})[path[1]] = value
        else:
            keywords[path[0]] = value
    return keywords
