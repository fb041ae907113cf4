"""The flags that build a plan; protect, plan and compare share them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from microagg.errors import InputError, shown
from microagg.plan.conversion import flag_rows, keywords_of_flags
from microagg.plan.flag_values import NUMBER, FlagForm, split_pair
from microagg.plan.plan import Plan
from microagg.plan.plan_settings import PlanSettings
from microagg.plan.registry import find
from microagg.plan.settings import check_options
from microagg.plan.settings_table import Setting

F = TypeVar("F", bound=Callable[..., Any])

_OPTION = Setting(
    "A setting of the method, such as gamma=0.2 of v-mdav; see: microagg methods.",
    flag="--option",
    form=FlagForm(list[str], "NAME=VALUE", NUMBER.read, NUMBER.write),
)
_PLAN = Setting(
    "A plan written by microagg plan; flags given here override it.",
    flag="--plan",
    form=FlagForm(Path, "FILE", NUMBER.read, NUMBER.write),
)


def flag_of(row: Setting) -> Any:
    """Return the annotation by which typer makes the flag of a setting."""
    names = row.flag.split(", ")
    return Annotated[
        row.form.type | None, typer.Option(*names, help=row.help, metavar=row.form.metavar)
    ]


def plan_flags(settings: type[PlanSettings]) -> dict[str, Any]:
    """Return the flags that build a plan, by the name of their parameter."""
    found = {}
    for _, row in flag_rows(settings):
        found[row.argument] = flag_of(row)
        if row.argument == "method":
            found["option"] = flag_of(_OPTION)
    return {**found, "plan": flag_of(_PLAN)}


def with_plan_flags(
    *left_out: str, only: Collection[str] = (), settings: type[PlanSettings] = Plan
) -> Callable[[F], F]:
    """Give a command, in place of its ``**flags``, the flags that build a plan, or only some of them."""

    def added(function: F) -> F:
        signature = inspect.signature(function, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        flags = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in plan_flags(settings).items()
            if name not in left_out and (not only or name in only)
        ]
        needed = [p for p in own if p.default is p.empty]
        rest = [p.replace(kind=p.KEYWORD_ONLY) for p in own if p.default is not p.empty]
        shown_first = [*needed, *flags, *rest]
        function.__signature__ = signature.replace(parameters=shown_first)  # type: ignore[attr-defined]
        function.__annotations__ = {p.name: p.annotation for p in shown_first}
        return function

    return added


def plan_of(flags: dict[str, Any]) -> Plan:
    """Build the plan that flags describe."""
    base = Plan() if flags.get("plan") is None else Plan.from_toml(flags["plan"])
    given = keywords_of_flags(Plan, flags)
    pairs = (split_pair("--option", word, "gamma=0.2") for word in flags.get("option") or ())
    options = {name.strip(): _number(value.strip()) for name, value in pairs}
    for block in base.blocks if options else ():
        check_options(find(given.get("method", block.method)), options)
    for name in options.keys() & given.keys():
        raise InputError(f"{shown(name)} is given by --option and by its own flag. Give it once.")
    return base.override(**given, **options)


def _number(word: str) -> int | float | str:
    """Read a number, whole if it is written so; anything else stays a word."""
    for read in (int, float):
        with suppress(ValueError):
            return read(word)
    return word
