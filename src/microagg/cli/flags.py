"""The flags that build a plan; protect, plan and compare share them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from microagg.errors import InputError, shown
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.serialise import (
    PART_FLAGS,
    read_value,
    split_claims,
    split_coarsen,
    split_names,
    split_pair,
)
from microagg.plan.settings import check_options

__all__ = ["ANALYSIS_HELP", "plan_of", "with_plan_flags"]

F = TypeVar("F", bound=Callable[..., Any])

ANALYSIS_HELP = (
    "An analysis to run on both tables: 'income ~ age + sex' (regression), 'income by region' (means), "
    "median(income), 'quantile(income, 0.9)', share(status), gini(income), poverty(income) (share below "
    "60 % of the median), each also by a group as in 'poverty(income) by region'. May be given several "
    "times."
)


def _flag(kind: Any, *names: str, help: str, metavar: str | None = None) -> Any:  # noqa: A002
    if kind is bool:
        metavar = ""  # it takes no value
    elif kind == list[str] and metavar is None:
        metavar = "COLUMNS"
    return Annotated[kind | None, typer.Option(*names, help=help, metavar=metavar)]


_FLAGS: dict[str, Any] = {
    "k": _flag(
        int, "--k", "-k", help="Least number of records (or units) that share their values."
    ),
    "columns": _flag(
        list[str],
        "--columns",
        "-c",
        help="Columns to protect, separated by commas (names with commas in double quotes). If left out, "
        "every column gets a role that protects people: ids and names are dropped.",
    ),
    "drop": _flag(list[str], "--drop", help="Columns to leave out of OUT, such as names and ids."),
    "renumber": _flag(
        list[str],
        "--renumber",
        help="Ids to replace by random numbers: none can be looked up, but equal ones stay equal, so that "
        "rows of one household still show as one. --drop hides more.",
    ),
    "confidential": _flag(
        list[str],
        "--confidential",
        help="Columns left as they are that no attacker knows, with the reason why, as in "
        "'diagnosis=medical file; in no register'. It is a claim: the report states what it stakes.",
    ),
    "known": _flag(
        list[str],
        "--known",
        help="Columns left as they are on purpose. An attacker is assumed to know them.",
    ),
    "unit": _flag(
        str,
        "--unit",
        help="Column that tells whose record it is (person, household, firm): k counts its values.",
    ),
    "unit_mode": _flag(
        str,
        "--unit-mode",
        help="count: each group holds k different units; together: whole units move together, each member "
        "in a group with those of the same other units.",
    ),
    "unit_name": _flag(
        str,
        "--unit-name",
        metavar="NOUN",
        help="What one unit is called, such as household: sentences then say 5 households.",
    ),
    "strata": _flag(
        list[str],
        "--strata",
        help="Columns, such as the region, whose values never share a group: figures for each stay exact.",
    ),
    "small_strata": _flag(
        str,
        "--small-strata",
        help="What becomes of a stratum with fewer than k units: error (refuse, and name it) or merge (join "
        "it to another).",
    ),
    "weight": _flag(
        str,
        "--weight",
        help="Column of survey weights, how many of the population a record stands for: means are "
        "weighted, k is not.",
    ),
    "weight_release": _flag(
        str,
        "--weight-release",
        help="What is released of the weight: mean (of the group: keeps weighted totals, singles nobody "
        "out), keep (as it is) or drop.",
    ),
    "weight_grouping": _flag(
        str,
        "--weight-grouping",
        help="weighted: only methods that can weigh records; plain: groups are formed without weights.",
    ),
    "missing": _flag(
        str,
        "--missing",
        help="Missing values: pattern (groups share what is missing), majority, fill, drop (such records) or "
        "error.",
    ),
    "missing_most": _flag(
        float,
        "--missing-most",
        metavar="SHARE",
        help="Largest share of values, 0 to 1, that joining rare patterns of missing values may blank.",
    ),
    "missing_code": _flag(
        list[str],
        "--missing-code",
        metavar="COLUMN=CODES",
        help="Values of a column that mean missing, such as income=-8,-9; may be given for several columns.",
    ),
    "suppress": _flag(
        float,
        "--suppress",
        metavar="SHARE",
        help="Largest share of the records, 0 to 0.5, that may be left out where that lowers the loss most; "
        "units are left out as a whole. By default none is.",
    ),
    "suppress_weighted": _flag(
        bool,
        "--suppress-weighted",
        help="Leave records out also where there are weights, whose totals then change.",
    ),
    "kind": _flag(
        list[str],
        "--kind",
        metavar="COLUMN=KIND",
        help="What a column holds, where its values do not tell: number, integer, boolean, nominal, ordinal, "
        "date, spiked or hierarchy; or its levels from lowest to highest, as in pay=low,middle,high.",
    ),
    "importance": _flag(
        list[str],
        "--importance",
        metavar="COLUMN=NUMBER",
        help="How much a column counts when records are compared, against 1 of the others.",
    ),
    "transform": _flag(
        list[str],
        "--transform",
        metavar="COLUMN=HOW",
        help="Compare the log or the rank of a skewed column; its values are released all the same.",
    ),
    "coarsen": _flag(
        list[str],
        "--coarsen",
        metavar="COLUMN=HOW",
        help="Make values coarser before groups are formed; counted as loss. Numbers: age=bands:5,top:80 "
        "(bands:0/18/65 gives edges), income=round:100, top:80, bottom:16. Categories: job=rare:20 (rarer "
        "ones become other), zip=prefix:2. Dates: born=to:month (day, week, quarter, year). May be given "
        "several times.",
    ),
    "require": _flag(
        list[str],
        "--require",
        metavar="RULE=NUMBER",
        help="What each group must satisfy beside k. Of a column: distinct:illness=3 (l-diversity; also "
        "entropy and recursive), closeness:illness=0.2, p_percent:sales=10, n_k:sales=2,85. Of a group: "
        "population=100, individual_risk=0.05. May be given several times.",
    ),
    "relation": _flag(
        list[str],
        "--relation",
        metavar="TEXT",
        help="What holds between columns, such as 'gross = net + tax' or 'net <= gross': a plan that would "
        "break it is refused.",
    ),
    "analysis": _flag(
        list[str],
        "--analysis",
        metavar="TEXT",
        help=ANALYSIS_HELP,
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
        help="Decimals of released values; if left out, so many that a millionth of the standard "
        "deviation is kept.",
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
    "max_agreeing": _flag(
        float,
        "--max-agreeing",
        help="Accepted: at most this share of records, 0 to 1, whose group discloses a confidential value; "
        "if left out, none.",
    ),
    "max_moved": _flag(
        float,
        "--max-moved",
        help="Accepted: each analysis moves by at most this share of its 95 % interval, on average; with 0.5 "
        "estimates stay within it.",
    ),
    "seed": _flag(
        str,
        "--seed",
        help="Seed of methods that draw random numbers, 0 if left out; the word fresh draws a new one.",
    ),
    "plan": _flag(
        Path,
        "--plan",
        metavar="FILE",
        help="A plan written by microagg plan; flags given here override it.",
    ),
}
_LISTS = ("columns", "drop", "renumber", "known")


def with_plan_flags(*left_out: str) -> Callable[[F], F]:
    """Give a command, in place of its ``**flags``, the flags that build a plan."""

    def added(function: F) -> F:
        signature = inspect.signature(function, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        flags = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in _FLAGS.items()
            if name not in left_out
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
    given = {name: value for name, value in flags.items() if value is not None}
    base = Plan.from_toml(given.pop("plan")) if "plan" in given else Plan()
    for name in (*_LISTS, "strata"):
        if name in given:
            given[name] = split_names(given[name])
    if "confidential" in given:
        given["confidential"] = split_claims(given["confidential"])
    if "seed" in given:
        given["random_state"] = _seed(given.pop("seed"))
    kinds = _columns(given)
    if kinds:
        given["kinds"] = kinds
    if "coarsen" in given:
        given["coarsen"] = _recodings(given["coarsen"])
    if "missing_code" in given:
        given["missing_code"] = _codes(given["missing_code"])
    for part, settings in PART_FLAGS.items():
        named = {flag.removeprefix("--").replace("-", "_"): key for key, flag in settings.items()}
        table = {key: given.pop(flag) for flag, key in named.items() if flag in given}
        if table:
            given[part] = table
    if "require" in given:
        given["require"] = _requirements(given["require"])
    if "relation" in given:
        given["relations"] = given.pop("relation")
    if "analysis" in given:
        given["analyses"] = given.pop("analysis")
    if "bound_effort" in given:
        given["bound"] = given.pop("bound_effort")
    options = dict(_option(word) for word in given.pop("option", ()))
    for block in base.blocks if options else ():
        check_options(find(given.get("method", block.method)), options)
    for name in options.keys() & given.keys():
        raise InputError(f"{shown(name)} is given by --option and by its own flag. Give it once.")
    return base.override(**given, **{name: _number(value) for name, value in options.items()})


def _columns(given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Take the flags that describe single columns; return what is said of each column."""
    found: dict[str, dict[str, Any]] = {}
    for word in given.pop("kind", ()):
        name, kind = split_pair("--kind", word, "sector=nominal")
        said: dict[str, Any] = {"kind": kind}
        if "," in kind:
            said = {"kind": "ordinal", "levels": _values(kind)}
        found.setdefault(name, {}).update(said)
    for word in given.pop("importance", ()):
        name, number = split_pair("--importance", word, "income=2")
        found.setdefault(name, {})["importance"] = read_value(number)
    for word in given.pop("transform", ()):
        name, how = split_pair("--transform", word, "income=log")
        found.setdefault(name, {})["transform"] = how
    return found


def _recodings(words: list[str]) -> dict[str, dict[str, Any]]:
    """How columns are recoded, each once."""
    found: dict[str, dict[str, Any]] = {}
    for name, how in map(split_coarsen, words):
        if name in found:
            raise InputError(
                f"--coarsen is given twice for column {shown(name)}. Give all of it once, as in "
                "age=bands:5,top:80."
            )
        found[name] = how
    return found


def _codes(words: list[str]) -> dict[str, list[Any]]:
    """Codes of missing values; those of a column may come one by one."""
    found: dict[str, list[Any]] = {}
    for word in words:
        name, codes = split_pair("--missing-code", word, "income=-8")
        found.setdefault(name, []).extend(_values(codes))
    return found


def _requirements(words: list[str]) -> dict[str, Any]:
    """Rules, each of a column (distinct:diagnosis=3) or of the whole group (population=100)."""
    found: dict[str, Any] = {}
    for word in words:
        rule, sign, rest = word.partition(":")
        if sign and "=" not in rule:
            name, value = split_pair("--require", rest, "distinct:diagnosis=3")
            numbers = [read_value(number) for number in value.split(",")]
            table = found.setdefault(rule, {})
            if not isinstance(table, dict) or name in table:
                raise _twice(rule)
            table[name] = numbers[0] if len(numbers) == 1 else numbers
        else:
            rule, value = split_pair("--require", word, "distinct:diagnosis=3 or population=100")
            if rule in found:
                raise _twice(rule)
            found[rule] = read_value(value)
    return found


def _twice(rule: str) -> InputError:
    return InputError(
        f"Each requirement of a column is given once; --require gives {shown(rule)} twice. Leave one out."
    )


def _values(word: str) -> list[Any]:
    return [read_value(value) for value in split_names([word]) or ()]


def _option(word: str) -> tuple[str, str]:
    name, value = split_pair("--option", word, "gamma=0.2")
    return name.strip(), value.strip()


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
