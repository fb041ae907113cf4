"""The engines, and which settings each of them uses: one that an engine would ignore is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from microagg.errors import InputError, listed, shown

__all__ = ["ENGINES", "check_engine"]

ENGINES = ("memory", "disk", "spark")


class _Use(NamedTuple):
    """Engines that use a setting, and what it is for."""

    engines: tuple[str, ...]
    purpose: str


_USES = {
    "--memory": _Use(("disk",), "limits what a table that is read in parts takes in memory"),
    "--master": _Use(("spark",), "says where Spark runs"),
    "--sheet": _Use(("memory",), "names a sheet of an Excel file"),
    "--delimiter": _Use(("memory", "disk"), "is about CSV files"),
    "--encoding": _Use(("memory", "disk"), "is about text in files"),
    "--decimal": _Use(("memory", "disk"), "is about CSV files"),
    "--escape-formulas": _Use(("memory", "disk"), "is about CSV files"),
    "--public": _Use(("memory",), "writes a report from the whole released table"),
    "--compare": _Use(("memory",), "groups the whole table anew with other k"),
    "--prices": _Use(("memory",), "groups a sample of the table anew for each decision"),
    "--bound": _Use(("memory",), "proves a bound over all records side by side"),
    "--time-limit": _Use(("memory",), "ends one search over the whole table"),
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
    for flag, use in _USES.items():
        if not given.get(flag) or engine in use.engines:
            continue
        if engine is None and {"memory", "disk"} & {*use.engines}:
            continue
        which = "the engine" if len(use.engines) == 1 else "the engines"
        where = "this job names no engine" if engine is None else f"this job runs on {engine}"
        raise InputError(
            f"{flag} {use.purpose}, and only {which} {' and '.join(use.engines)} "
            f"{'uses' if len(use.engines) == 1 else 'use'} it; {where}. Leave {flag} out, or say --engine "
            f"{use.engines[0]}."
        )
