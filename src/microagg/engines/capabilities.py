"""The engines, and what each cannot do: plans, settings and files are checked here before any work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from microagg.errors import InputError, TableError, listed, shown
from microagg.formats.parquet import parquet_files
from microagg.grouping.require.from_plan import RULES
from microagg.plan.block import Block
from microagg.plan.plan import Plan

ENGINES = ("memory", "disk", "spark")


# The engines that use a setting, and what it is for.
_USES = {
    "--memory": (("disk",), "limits what a table that is read in parts takes in memory"),
    "--master": (("spark",), "says where Spark runs"),
    "--sheet": (("memory",), "names a sheet of an Excel file"),
    "--delimiter": (("memory", "disk"), "is about CSV files"),
    "--encoding": (("memory", "disk"), "is about text in files"),
    "--decimal": (("memory", "disk"), "is about CSV files"),
    "--escape-formulas": (("memory", "disk"), "is about CSV files"),
    "--public": (("memory",), "writes a report from the whole released table"),
    "--prices": (("memory",), "groups a sample of the table anew for each decision"),
    "--ledger": (("memory",), "keeps the groups of all earlier releases side by side"),
    "--bound": (("memory",), "proves a bound over all records side by side"),
    "--time-limit": (("memory",), "ends one search over the whole table"),
}


def check_engine(engine: str | None, given: Mapping[str, bool]) -> None:
    """Refuse an engine that does not exist, and settings that it does not use.

    Parameters
    ----------
    engine : None: memory or disk, by the size of the table
    given : by flag, whether a setting was given

    >>> check_engine("spark", {"--memory": True})
    Traceback (most recent call last):
    ...
    microagg.errors.InputError: --memory limits what a table that is read in parts takes in memory, and only \
the engine disk uses it; this job runs on spark. Leave --memory out, or say --engine disk.
    """
    if engine not in (None, *ENGINES):
        raise InputError(f"The engine is one of {listed(ENGINES)}; got {shown(engine)}.")
    for flag, (engines, purpose) in _USES.items():
        chosen = {"memory", "disk"} if engine is None else {engine}
        if not given.get(flag) or chosen & {*engines}:
            continue
        which, use = ("the engine", "uses") if len(engines) == 1 else ("the engines", "use")
        where = "this job names no engine" if engine is None else f"this job runs on {engine}"
        raise InputError(
            f"{flag} {purpose}, and only {which} {' and '.join(engines)} {use} it; {where}. Leave {flag} "
            f"out, or say --engine {engines[0]}."
        )


# What a table that is read in parts, on disk or Spark, has: why, and what a plan says that asks for more. The
# last tells whether a plan does; a text that it gives is put into the fact.
_IN_PARTS: dict[str, tuple[str, str, Callable[[Plan, Block], object]]] = {
    "one block of columns": (
        "each record travels with one group",
        "the plan has several",
        lambda p, b: len(p.blocks) > 1,
    ),
    "one partition": (
        "each record travels with one group",
        "per_column asks for one a column",
        lambda p, b: b.per_column and len(b.columns or ()) > 1,
    ),
    "units that are counted": (
        "the records of a unit may lie in several parts",
        "mode is together",
        lambda p, b: p.unit_of(b).mode == "together",
    ),
    "strata of k units": (
        "strata are not compared with each other",
        "small is merge",
        lambda p, b: p.strata_of(b).small == "merge",
    ),
    "identifiers that are dropped": (
        "new numbers are drawn for all records at once",
        "renumber names some",
        lambda p, b: p.renumber,
    ),
    "all records": (
        "the costliest ones show only once all are grouped",
        "suppress leaves some out",
        lambda p, b: p.suppress.most > 0,
    ),
    "requirements of a group by itself": (
        "no part knows how values are spread in the whole table",
        "{} is asked",
        lambda p, b: ", ".join(
            key for key, rule in RULES.items() if not rule.in_parts and getattr(b.require, key)
        ),
    ),
    "values or their logarithms": (
        "ranks need all values in one order",
        "a transform is rank",
        lambda p, b: any(p.column(name).transform == "rank" for name in b.columns or ()),
    ),
}


def check_plan_in_parts(plan: Plan, on_spark: bool = False) -> None:
    """Refuse a ``plan`` that asks for what a table in parts, on disk or on Spark, cannot have."""
    if on_spark and plan.keep_order:
        raise InputError(
            "On Spark rows have no order that could be kept; keep_order is true. Leave it out, or say engine "
            "= memory or disk."
        )
    for rule, (why, fact, asks_for_more) in _IN_PARTS.items():
        if asked := asks_for_more(plan, plan.blocks[0]):
            raise InputError(
                f"A table that is read in parts has {rule}, since {why}; {fact.format(asked)}. Leave that "
                "out, or say engine = memory where the table fits."
            )


def check_spark_source(path: Path) -> None:
    """Refuse a ``path`` that Spark cannot read: neither a Parquet file nor a folder of these."""
    if path.is_dir():
        parquet_files(path)  # which says so if there are none
    elif not path.is_file() or path.suffix.lower() not in (".parquet", ".pq"):
        raise TableError(
            f"On Spark tables are Parquet files, or folders of these; {shown(str(path), 300)} is none. "
            "Convert it, or protect it in memory or from disk."
        )
