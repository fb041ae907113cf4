"""The flags that build a plan; protect and plan share them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from microagg.errors import InputError, shown
from microagg.plan import Plan
from microagg.plan_text import split_names
from microagg.registry import find
from microagg.settings import check_options

__all__ = ["plan_of", "with_plan_flags"]

F = TypeVar("F", bound=Callable[..., Any])


def _flag(kind: Any, *names: str, help: str, metavar: str | None = None) -> Any:  # noqa: A002
    return Annotated[kind | None, typer.Option(*names, help=help, metavar=metavar)]


_FLAGS: dict[str, Any] = {
    "k": _flag(
        int, "--k", "-k", help="Least number of records (or units) that share their values."
    ),
    "columns": _flag(
        list[str],
        "--columns",
        "-c",
        help="Columns to protect, separated by commas (names with commas in double quotes); those that "
        "look like quantities if left out.",
    ),
    "drop": _flag(list[str], "--drop", help="Columns to leave out of OUT, such as names and ids."),
    "renumber": _flag(
        list[str],
        "--renumber",
        help="Ids to replace by random numbers: equal ones stay equal, none can be looked up.",
    ),
    "confidential": _flag(
        list[str],
        "--confidential",
        help="Columns left as they are that no attacker knows; l-diversity and t-closeness are told.",
    ),
    "unit": _flag(
        str,
        "--unit",
        help="Column that tells whose record it is (person, household, firm): k counts its values.",
    ),
    "kind": _flag(
        list[str],
        "--kind",
        metavar="COLUMN=KIND",
        help="What a column holds, number or integer, where its values do not tell.",
    ),
    "method": _flag(str, "--method", "-m", help="See: microagg methods; auto if left out."),
    "option": _flag(
        list[str],
        "--option",
        metavar="NAME=VALUE",
        help="A setting of the method, such as gamma=0.2 of v-mdav; see: microagg methods.",
    ),
    "effort": _flag(
        str,
        "--effort",
        help="How long auto searches: fast, balanced or best. Ctrl-C ends the search with the best groups "
        "so far.",
    ),
    "time_limit": _flag(
        float,
        "--time-limit",
        metavar="SECONDS",
        help="End the search after this time with the best groups so far.",
    ),
    "cost": _flag(
        str,
        "--cost",
        help="What exact methods for one column minimise: sse, sae, max, round-up, round-down.",
    ),
    "refine": _flag(
        str,
        "--refine",
        help="Improve what the method found by local search: fast, balanced or best.",
    ),
    "bound": _flag(
        bool,
        "--bound/--no-bound",
        help="Prove how much less any method could lose; with a report, done where it takes seconds.",
    ),
    "bound_effort": _flag(str, "--bound-effort", help="How long to prove: fast, balanced or best."),
    "aggregate": _flag(
        str,
        "--aggregate",
        help="What a group releases: mean, median, midrange, maximum or minimum; the mean, or what fits "
        "the cost, if left out.",
    ),
    "scale": _flag(
        str,
        "--scale",
        help="How columns are made comparable: zscore (if left out), range, robust or none.",
    ),
    "per_column": _flag(
        bool,
        "--per-column",
        help="Each column by itself: loses less, but is no k-anonymity of records.",
    ),
    "round": _flag(
        bool, "--round", help="Whole numbers stay whole: their means are rounded to the nearest."
    ),
    "digits": _flag(
        int,
        "--digits",
        help="Decimals of released values; a millionth of a standard deviation is kept if left out.",
    ),
    "shuffle": _flag(bool, "--shuffle", help="Write the rows in a random order."),
    "max_loss": _flag(
        float, "--max-loss", help="Accepted: at most this information loss, in percent."
    ),
    "max_linkage": _flag(
        float,
        "--max-linkage",
        help="Accepted: at most this share of records linked, 0 to 1, with what an attacker knows.",
    ),
    "seed": _flag(
        str,
        "--seed",
        help="Seed of methods that draw random numbers, 0 if left out; fresh for a new one.",
    ),
    "plan": _flag(
        Path,
        "--plan",
        metavar="FILE",
        help="A plan written by microagg plan; flags given here override it.",
    ),
}
_LISTS = ("columns", "drop", "renumber", "confidential")


def with_plan_flags(function: F) -> F:
    """Give a command, in place of its ``**flags``, all the flags that build a plan."""
    signature = inspect.signature(function, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    flags = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _FLAGS.items()
    ]
    needed = [p for p in own if p.default is p.empty]
    rest = [p.replace(kind=p.KEYWORD_ONLY) for p in own if p.default is not p.empty]
    shown_first = [*needed, *flags, *rest]
    function.__signature__ = signature.replace(parameters=shown_first)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in shown_first}
    return function


def plan_of(flags: dict[str, Any]) -> Plan:
    """Build the plan that flags describe."""
    given = {name: value for name, value in flags.items() if value is not None}
    base = Plan.from_toml(given.pop("plan")) if "plan" in given else Plan()
    for name in _LISTS:
        if name in given:
            given[name] = split_names(given[name])
    if "seed" in given:
        given["random_state"] = _seed(given.pop("seed"))
    if "kind" in given:
        given["kinds"] = dict(_parted("--kind", word) for word in given.pop("kind"))
    if "bound_effort" in given:
        given["bound"] = given.pop("bound_effort")
    options = dict(_parted("--option", word) for word in given.pop("option", ()))
    for block in base.blocks:
        check_options(find(given.get("method", block.method)), options)
    for name in options.keys() & given.keys():
        raise InputError(f"{shown(name)} is given by --option and by its own flag. Give it once.")
    return base.override(**given, **{name: _number(value) for name, value in options.items()})


def _parted(flag: str, word: str) -> tuple[str, str]:
    name, sign, value = word.rpartition("=") if flag == "--kind" else word.partition("=")
    if not sign:
        example = "sector=number" if flag == "--kind" else "gamma=0.2"
        raise InputError(f"{flag} takes a name and a value, such as {example}; got {shown(word)}.")
    return (name, value) if flag == "--kind" else (name.strip(), value.strip())


def _seed(word: str) -> int | None:
    if word == "fresh":
        return None
    try:
        return int(word)
    except ValueError:
        raise InputError(f"--seed takes a whole number, or fresh; got {shown(word)}.") from None


def _number(word: str) -> int | float | str:
    """Read a number, whole if it is written so; anything else stays a word."""
    for read in (int, float):
        try:
            return read(word)
        except ValueError:
            pass
    return word
