"""The flags that several commands have: those that build a plan, and those about files and output."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from microagg.cli.show import Speaker
from microagg.errors import InputError, shown
from microagg.formats.addresses import as_place
from microagg.plan.forms import Form, split_pair
from microagg.plan.job_settings import CsvSettings, JobSettings
from microagg.plan.plan import Plan
from microagg.plan.plan_settings import PlanSettings
from microagg.plan.registry import METHODS, find
from microagg.plan.settings import check_options
from microagg.plan.settings_table import Section, Setting, rows_of

if TYPE_CHECKING:
    from microagg.formats.layouts import CsvFormat


F = TypeVar("F", bound=Callable[..., Any])

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


def keywords_of_flags(settings: type[PlanSettings], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that flags give; a flag that is None is not given."""
    keywords: dict[str, Any] = {}
    for path, row in flag_rows(settings):
        if flags.get(row.argument) is None:
            continue
        value = row.form.read(row.flag.split(",")[0], flags[row.argument])
        if path[0] == "kinds":
            for name, setting in value.items():
                keywords.setdefault("kinds", {}).setdefault(name, {})[path[1]] = setting
        elif len(path) == 2:
            keywords.setdefault(path[0], {})[path[1]] = value
        else:
            keywords[path[0]] = value
    return keywords


def flag_of(row: Setting) -> Any:
    """Return the annotation by which typer makes the flag of a setting."""
    names = row.flag.split(", ")
    return Annotated[
        row.form.type | None, typer.Option(*names, help=row.help, metavar=row.form.metavar)
    ]


def plan_flags(settings: type[PlanSettings]) -> dict[str, Any]:
    """Return the flags that build a plan, by the name of their parameter."""
    flags = {}
    for _, row in flag_rows(settings):
        flags[row.argument] = flag_of(row)
        if row.argument == "method":
            flags["option"] = flag_of(_OPTION)
    return {**flags, "plan": flag_of(_PLAN)}


def command(function: Callable[..., bool | None]) -> Callable[..., None]:
    """Make a command of a function that gets a Speaker: with --json and --quiet, errors as sentences.

    The command ends with 1 where the function returns False.
    """

    def run(as_json: bool, quiet: bool, **arguments: Any) -> None:
        speaker = Speaker(as_json, quiet)
        with speaker.run():
            if function(speaker, **arguments) is False:
                sys.exit(1)

    parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    of_all = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("as_json", Json), ("quiet", Quiet))
    ]
    rest = [p for p in parameters if p.kind is p.VAR_KEYWORD]
    shown_first = [*(p for p in parameters if p not in rest), *of_all, *rest]
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__signature__ = inspect.Signature(shown_first)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in shown_first}
    return run


def with_plan_flags(
    *left_out: str,
    only: Collection[str] = (),
    more: Collection[str] = (),
    settings: type[PlanSettings] = Plan,
) -> Callable[[F], F]:
    """Give a command, in place of its ``**flags``, the flags that build a plan, or only some of them.

    ``more`` names those of a job, and of CSV files, that it has, too.
    """

    def added(function: F) -> F:
        signature = inspect.signature(function, eval_str=True)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        of_plan = {
            name: kind
            for name, kind in plan_flags(settings).items()
            if name not in left_out and (not only or name in only)
        }
        rows = [*rows_of(JobSettings), *rows_of(CsvSettings)]
        others = {row.argument: flag_of(row) for row in rows if row.name in more}
        flags = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in (of_plan | others).items()
        ]
        needed = [p for p in parameters if p.default is p.empty]
        rest = [p.replace(kind=p.KEYWORD_ONLY) for p in parameters if p.default is not p.empty]
        options = [*flags, *rest]
        if not only:  # a few flags need no panels
            options = _in_panels(options)
        shown_first = [*needed, *options]
        function.__signature__ = signature.replace(parameters=shown_first)  # type: ignore[attr-defined]
        function.__annotations__ = {p.name: p.annotation for p in shown_first}
        return function

    return added


def _in_panels(options: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Return the parameters in the order of the panels, each flag with the title of its panel."""
    ranks = {
        name: (title, rank)
        for title, listed in PANELS.items()
        for rank, name in enumerate(listed.split())
    }
    titles = list(PANELS)

    def order(option: inspect.Parameter) -> tuple[int, int]:
        title, rank = ranks.get(option.name, ("", len(ranks)))
        return titles.index(title), rank

    def titled(option: inspect.Parameter) -> inspect.Parameter:
        kind, row = get_args(option.annotation)
        row = copy(row)
        row.rich_help_panel = ranks.get(option.name, ("", 0))[0] or None
        return option.replace(annotation=Annotated[kind, row])

    return [titled(option) for option in sorted(options, key=order)]


JOB_FLAGS = tuple(row.name for row in rows_of(JobSettings))
CSV_FLAGS = tuple(row.name for row in rows_of(CsvSettings))


def given_by(flags: dict[str, Any], section: type[Section]) -> dict[str, Any]:
    """Return the settings of a section that flags give; a flag that is None is not given."""
    return {
        row.name: row.form.read(row.flag, flags[row.argument])
        for row in rows_of(section)
        if flags.get(row.argument) is not None
    }


def csv_of(flags: dict[str, Any]) -> CsvFormat:
    """Return the format that the flags about CSV files describe."""
    from microagg.formats.layouts import CsvFormat

    return CsvFormat(**given_by(flags, CsvSettings))


def plan_of(flags: dict[str, Any]) -> Plan:
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


In = Annotated[
    Path,
    typer.Argument(
        metavar="IN",
        parser=as_place,
        help="File whose ending gives its format: CSV .csv .tsv .txt, also compressed: .csv.gz .csv.zst. "
        "Parquet .parquet, also a folder, or a pattern in quotes. Arrow .arrow .feather, SPSS .sav .zsav "
        ".por, Stata .dta, SAS .xpt .sas7bdat, Excel .xlsx .xls .ods. Also an address "
        "(s3:// gs:// abfss:// hdfs://), or - for CSV or Arrow from standard input.",
    ),
]
Out = Annotated[
    Path,
    typer.Argument(
        metavar="OUT",
        parser=as_place,
        help="File to write; its ending tells the format. Written are all of these but .por, .sas7bdat, "
        ".xls and .ods; a folder, if IN is one; - for standard output.",
    ),
]
# Of commands that protect nothing.
Columns = flag_of(
    replace(
        next(row for _, row in flag_rows(Plan) if row.argument == "columns"),
        help="Columns to work on, separated by commas (names with commas in double quotes).",
    )
)
Confidential = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Confidential columns: reported with l-diversity and t-closeness.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", metavar="", help="Give everything as one JSON object on stdout.")
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", metavar="", help="Say nothing but errors and warnings about disclosure."
    ),
]

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", metavar="", help="Say also why each column has its role, and every note."
    ),
]
