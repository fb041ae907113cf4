"""What can go wrong, by class.

Every message states the rule, the fact and the way out:
``k=5 needs at least 5 records; the table has 3. Lower k or add records.``
"""

from __future__ import annotations

__all__ = [
    "DisclosureRiskWarning",
    "InputError",
    "MicroaggError",
    "StopSearch",
    "TableError",
    "VerificationError",
]


class MicroaggError(Exception):
    """Base class of all errors that microagg raises on purpose."""


class InputError(MicroaggError, ValueError):
    """Data, a parameter or an option breaks a rule; nothing was computed."""


class TableError(MicroaggError, ValueError):
    """A file cannot be read or written as asked; what was on disk before is unchanged."""


class VerificationError(MicroaggError):
    """A released file was read back and does not keep the promise; it was taken away again."""


class StopSearch(Exception):  # noqa: N818 - a request, not an error
    """Raised by a ``progress`` callable to end a search early with the best partition so far.

    Where there is no valid partition yet, it comes out of the call like any exception.
    """


class DisclosureRiskWarning(UserWarning):
    """The result is valid, but something in or beside it may still give records away."""


def shown(value: object, limit: int = 60) -> str:
    r"""Quote a name or value for a message: control characters escaped, long text cut.

    >>> shown("income"), shown("a" * 100, limit=5), shown("\x1b[2J")
    ("'income'", "'aaaaa…'", "'\\x1b[2J'")
    """
    if isinstance(value, str):
        return repr(value if len(value) <= limit else value[:limit] + "…")
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "…"


def listed(names: object, limit: int = 12) -> str:
    """Quote several names for a message, the first ``limit`` of them.

    >>> listed(["a", "b"]), listed(range(4), limit=2)
    ("'a', 'b'", '0, 1 and 2 more')
    """
    quoted = [shown(name) for name in names]  # type: ignore[attr-defined]
    extra = len(quoted) - limit
    return ", ".join(quoted[:limit]) + (f" and {extra} more" if extra > 0 else "")


def check_random_state(random_state: object) -> None:
    """Refuse a seed that is neither a whole number from 0 up nor None."""
    whole = hasattr(random_state, "__index__") and not isinstance(random_state, bool)
    if random_state is not None and not (whole and random_state >= 0):  # type: ignore[operator]
        raise InputError(
            f"random_state must be a whole number from 0 up, or None; got {shown(random_state)}."
        )


EFFORTS = ("fast", "balanced", "best")


def check_effort(effort: object) -> None:
    """Refuse anything but the name of an effort."""
    if effort not in EFFORTS:
        raise InputError(f"effort is one of {listed(EFFORTS)}; got {shown(effort)}.")


def check_time_limit(seconds: object) -> None:
    """Refuse anything but None or a number of seconds."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (number and float(str(seconds)) >= 0):
        raise InputError(
            f"time_limit is a number of seconds, 0 or more; got {shown(seconds)}. Leave it out to "
            "search to the end."
        )
