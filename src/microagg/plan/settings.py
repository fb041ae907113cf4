"""Checks of settings that the plan shares with public functions and methods.

A check states the rule, the fact and the way out, and is made before any work.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from microagg.base.formatting import plural
from microagg.errors import InputError, listed, shown
from microagg.plan.checks import as_number, check_word
from microagg.plan.registry import Method

EFFORTS = ("fast", "balanced", "best")
# Groups of more than this are searched as large ones: with tables of all their distances, k² for each
# group, a step could look at two groups at most.
LARGE_K = 13
# Up to this many records looking at all of them takes about the time of a search in a tree, or less, and what
# does it is compiled much sooner.
FEW_RECORDS = 2_000
# Up to this k the search for the groups that a bound prices ends by itself, see bounds/repeated_pricing.py.
EXACT_K = 5
SCALES = ("zscore", "range", "robust", "none")
AGGREGATES = ("mean", "median", "midrange", "maximum", "minimum")

# What a group releases when its cost is measured so (Stamm & Schaub 2024, Corollary 7).
AGGREGATE_OF_COST = {
    "sse": "mean",
    "sae": "median",
    "max": "midrange",
    "round-up": "maximum",
    "round-down": "minimum",
}


def check_count(name: str, count: Any, least: int = 1) -> int:
    """Return what was given for a setting that counts something as an int of at least ``least``."""
    number = _whole(count)
    if number is None or number < least:
        got = shown(count if number is None else number)
        raise InputError(f"{name} must be a whole number of at least {least}; got {got}.")
    return number


def _whole(value: Any) -> int | None:
    """Any integer type as an int; None for all else, also for yes and no."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def check_k(k: Any, n: int) -> int:
    """Return ``k`` as an int if it is a valid least group size for ``n`` records."""
    value = check_count("k, the least number of records in a group,", k)
    if value > sys.maxsize:
        raise InputError(
            f"k, the least number of records in a group, is at most {sys.maxsize:,}; got {shown(value)}. "
            "Lower k."
        )
    if value > n:
        raise InputError(
            f"k={value} needs at least {plural(value, 'record')}; the table has {n:,}. Lower k or add "
            "records."
        )
    return value


def check_random_state(random_state: object) -> None:
    """Refuse ``random_state``, a seed, if it is neither a whole number from 0 up nor None."""
    number = _whole(random_state)
    if random_state is not None and (number is None or number < 0):
        raise InputError(
            f"random_state must be a whole number from 0 up, or None; got {shown(random_state)}."
        )


def check_effort(effort: object, name: str = "effort") -> str:
    """Return an effort if it exists; ``name`` is the setting that holds it."""
    check_word(name, effort, EFFORTS)
    return str(effort)


def check_time_limit(seconds: object) -> None:
    """Refuse anything but None or a number of seconds."""
    number = as_number(seconds)
    if seconds is not None and (number is None or not number >= 0):
        raise InputError(
            f"time_limit is a number of seconds, 0 or more; got {shown(seconds)}. Leave it out to "
            "search to the end."
        )


def check_options(method: Method, options: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse options that the method does not have; return those it has, with their defaults.

    Parameters
    ----------
    method : as registered
    options : as given by the user, name to value
    """
    known = {option.name: option.default for option in method.options}
    for name in options:
        if name == "random_state":
            raise InputError(
                "random_state must not be among the options of a method; it is a setting of its own. "
                "Pass random_state=..., on the command line --seed."
            )
        if name in method.refuses:
            why = method.refuses[name]
            raise InputError(f"method {shown(method.name)} has no option {shown(name)}: {why}.")
        if name not in known:
            others = [option for option in known if option != "random_state"]
            has = f"it takes {listed(others)}" if others else "it takes none"
            raise InputError(f"method {shown(method.name)} has no option {shown(name)}; {has}.")
    return known


def settings_of(
    method: Method, options: dict[str, Any], random_state: int | None
) -> dict[str, Any]:
    """Complete the options by their defaults; refuse those that the method does not have.

    Parameters
    ----------
    method : of the registry
    options : as given; stay as they are
    random_state : seed for methods that draw; None: a new one each time
    """
    check_random_state(random_state)
    known = check_options(method, options)
    settings = {**known, **options}
    if "effort" in known:
        check_effort(settings["effort"])
    if "time_limit" in known:
        check_time_limit(settings["time_limit"])
    if "random_state" in known:
        settings["random_state"] = random_state
    return settings


_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_BYTES |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def bytes_of(name: str, text: str) -> int:
    """Read a number of bytes, such as 2GiB or 500 MB.

    >>> bytes_of("memory", "2GiB"), bytes_of("memory", "1.5 kB")
    (2147483648, 1500)
    """
    number = text.strip().rstrip("BbKkMmGgTtIi").strip()
    unit = text.strip()[len(number) :].strip().lower()
    try:
        size = float(number) * _BYTES[unit]
    except (ValueError, KeyError):
        size = 0.0
    if not 1 <= size < 2**62:
        raise InputError(f"{name} is a number of bytes such as 2GiB or 500MB; got {shown(text)}.")
    return int(size)
