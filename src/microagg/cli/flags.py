"""The flags of the commands, made from rows of the table of settings, and what they give."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from microagg.cli.show import Speaker
from microagg.errors import InputError, shown
from microagg.plan.forms import Form, split_pair
from microagg.plan.job_settings import CsvSettings, JobSettings
from microagg.plan.plan import Plan
from microagg.plan.plan_settings import PlanSettings
from microagg.plan.registry import METHODS, find
from microagg.plan.settings import check_options
from microagg.plan.settings_table import Setting, rows_of

PANELS = {
    "": "columns k drop confidential unit weight strata kind plan report",
    "What is done with columns and records": "renumber known coarsen unit_mode unit_name small_strata "
    "weight_release weight_grouping missing missing_most missing_code suppress suppress_weighted relation",
    "How safe": "strict require max_linkage max_agreeing max_pairing max_inference standing attack_each "
    "digits",
    "How useful": "analysis keep may_drop search_k importance release together categories aggregate round "
    "max_loss max_tables max_moved tables answers prices compare",
    "Files and messages": "ledger key leavers public overwrite keep_rejected keep_order sheet delimiter "
    "encoding decimal escape_formulas as_json quiet verbose",
    "Engines and methods": "engine memory master methods method option effort time_limit budget refine cost "
    "scale transform per_column seed bound",
}
"""The panels of a long help, in their order, each with the parameters of its flags; the common ones first."""

_OPTION = Setting(
    "A setting of the method, such as gamma=0.2 of v-mdav; see: microagg methods.",
    flag="--option",
    form=Form(list[str], "NAME=VALUE"),
)
_PLAN = Setting(
    "A plan written by microagg plan; flags given here override it.",
    flag="--plan",
    form=Form(Path, "FILE"),
)


def flag_rows(settings: type[PlanSettings]) -> list[tuple[tuple[str, ...], Setting]]:
    """Return all settings that have a flag, each with the path of its value among the keywords.

    A path is a keyword, or a keyword and the name of a setting of its section.
    """
    return [flag for row in rows_of(settings) for flag in _flags_within(row)]


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
            options = {option.name: option for m in METHODS.values() for option in m.options}
            for option in options.values():
                if option.flag:
                    words = f"{option.help[:1].upper()}{option.help[1:]}."
                    yield (option.name,), replace(option, help=words)


def keywords_of_flags(settings: type[PlanSettings], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that flags give; a flag that is None is not given."""
    keywords: dict[str, Any] = {}
    for path, row in flag_rows(settings):
        if flags.get(row.argument) is None:
            continue
        value = row.from_flag(flags[row.argument])
        if path[0] == "kinds":
            for name, setting in value.items():
                keywords.setdefault("kinds", {}).setdefault(name, {})[path[1]] = setting
        elif len(path) == 2:
            keywords.setdefault(path[0], {})[path[1]] = value
        else:
            keywords[path[0]] = value
    return keywords


def flag_of(row: Setting) -> Any:
    """Return the default by which typer makes the flag of a setting; its type is that of the row's form."""
    return typer.Option(None, *row.flag.split(", "), help=row.help, metavar=row.form.metavar)


def switch(flags: str, words: str) -> Any:
    """Return the default by which typer makes a flag that is given or not."""
    return typer.Option(False, *flags.split(", "), metavar="", help=words)


PLAN_FLAGS = {row.argument: row for _, row in flag_rows(Plan)} | {"option": _OPTION, "plan": _PLAN}
JOB_FLAGS = {row.argument: row for row in rows_of(JobSettings)}
CSV_FLAGS = {row.argument: row for row in rows_of(CsvSettings)}
_ROWS = PLAN_FLAGS | JOB_FLAGS | CSV_FLAGS


def command(
    implementation: str, plan: Collection[str] = (), more: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function without a body: its parameters are flags, its docstring is the help.

    The command has --json and --quiet, too. Errors become sentences, and it ends with 1 if its implementation
    returns False.

    Parameters
    ----------
    implementation : function that does the work, such as "plan_command.draft_plan"; its module is loaded when
        the command runs. It gets a Speaker, and all flags by name.
    plan : flags that build the argument ``plan``
    more : other flags of the plan and of jobs; those of CSV files build the argument ``csv``
    """

    def run(as_json: bool, quiet: bool, **arguments: Any) -> None:
        speaker = Speaker(as_json, quiet)
        with speaker.run():
            flags = {name: arguments.pop(name) for name in plan}
            if plan:
                arguments["plan"] = plan_of(flags)
            for name in more:
                if arguments[name] is not None:
                    arguments[name] = _ROWS[name].from_flag(arguments[name])
            if "delimiter" in more:
                from microagg.formats.layouts import CsvFormat

                csv = {name: arguments.pop(name) for name in CSV_FLAGS}
                arguments["csv"] = CsvFormat(**{n: v for n, v in csv.items() if v is not None})
            module, _, name = implementation.partition(".")
            if (
                getattr(import_module(f"microagg.cli.{module}"), name)(speaker, **arguments)
                is False
            ):
                sys.exit(1)

    def made(function: Callable[..., None]) -> Callable[..., None]:
        declared = list(inspect.signature(function, eval_str=True).parameters.values())
        needed = [p for p in declared if isinstance(p.default, typer.models.ArgumentInfo)]
        options = [
            *(
                _option(name, flag_of(row), row.form.type | None)
                for name, row in _ROWS.items()
                if name in {*plan, *more}
            ),
            *(p for p in declared if p not in needed),
            _option("as_json", switch("--json", "Give everything as one JSON object on stdout.")),
            _option(
                "quiet",
                switch("--quiet, -q", "Say nothing but errors and warnings about disclosure."),
            ),
        ]
        parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in (*needed, *_in_panels(options))]
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return made


def _option(name: str, flag: Any, kind: Any = bool) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=flag, annotation=kind)


def _in_panels(options: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Return the options of a long help in the order of the panels, each with the title of its panel."""
    if len(options) < 30:
        return options
    remaining, titled = {option.name: option for option in options}, []
    for title, names in PANELS.items():
        for name in names.split():
            if name in remaining:
                option = remaining.pop(name)
                flag = copy(option.default)
                flag.rich_help_panel = title or None
                titled.append(option.replace(default=flag))
    return [*titled, *remaining.values()]


def plan_of(flags: Mapping[str, Any]) -> Plan:
    """Build the plan that flags describe."""
    base = Plan() if flags.get("plan") is None else Plan.from_toml(flags["plan"])
    keywords = keywords_of_flags(Plan, flags)
    pairs = (split_pair("--option", word, "gamma=0.2") for word in flags.get("option") or ())
    options = {name.strip(): _number(value.strip()) for name, value in pairs}
    for block in base.blocks if options else ():
        check_options(find(keywords.get("method", block.method)), options)
    for name in options.keys() & keywords.keys():
        raise InputError(f"{shown(name)} is given by --option and by its own flag. Give it once.")
    return base.override(**keywords, **options)


def _number(word: str) -> int | float | str:
    """Read a number, whole if it is written so; anything else stays a word."""
    for read in (int, float):
        with suppress(ValueError):
            return read(word)
    return word


def whole_numbers(text: str, flag: str = "--k") -> list[int]:
    """Read numbers and ranges such as 3,5,10-12."""
    numbers: list[int] = []
    try:
        for word in text.split(","):
            first, _, last = word.partition("-")
            numbers += range(int(first), int(last or first) + 1)
    except ValueError:
        numbers = []
    if not numbers:
        raise InputError(
            f"{flag} takes whole numbers or ranges separated by commas, such as 3,5,10 or 3-6; got "
            f"{shown(text)}."
        )
    return numbers
