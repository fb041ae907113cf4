"""What can go wrong, by class.

Every message states the rule, the fact and the way out:
``k=5 needs at least 5 records; the table has 3. Lower k or add records.``
"""

from __future__ import annotations

from collections.abc import Iterable


class MicroaggError(Exception):
    """Base class of all errors that microagg raises on purpose."""


class InputError(MicroaggError, ValueError):
    """Data, a parameter or an option breaks a rule; nothing was computed."""


class TableError(MicroaggError, ValueError):
    """A file cannot be read or written as asked; what was on disk before is unchanged."""


class VerificationError(MicroaggError):
    """A released file was read back and does not keep the promise; it was taken away again."""


class RejectedError(MicroaggError):
    """A release misses what was asked of it and was not released; ``evidence`` says all about it."""

    def __init__(self, words: str, evidence: object) -> None:
        super().__init__(words)
        self.evidence = evidence


class StopSearch(Exception):  # noqa: N818 - a request, not an error
    """Raised by a ``progress`` callable to end a search early with the best partition so far.

    Where there is no valid partition yet, it comes out of the call like any exception.
    """


class DisclosureRiskWarning(UserWarning):
    """The result is valid, but something in it or next to it may still give records away."""


def fault_words(error: BaseException) -> str:
    """Say that the program is at fault, and where; the error's own words may hold values of records."""
    return (
        f"microagg did not expect this input: {type(error).__name__} in {_where(error)}. That is a fault of "
        "the program, please report it; MICROAGG_TRACEBACK=1 shows all, values of the table included."
    )


def system_words(error: OSError) -> str:
    """Say what the operating system refused by ``error``, of which file, and what to do.

    >>> system_words(FileNotFoundError(2, "No such file", "a.csv"))
    "The system reports for 'a.csv': No such file. Check the path, its rights and the free space."
    """
    about = "" if error.filename is None else f" for {shown(str(error.filename), 300)}"
    reason = error.strerror or f"{type(error).__name__} in {_where(error)}"
    return f"The system reports{about}: {reason}. Check the path, its rights and the free space."


def _where(error: BaseException) -> str:
    """Return the line of this package at which an error arose."""
    import os
    import traceback

    where = "an unknown place"
    for frame in traceback.extract_tb(error.__traceback__):
        if "microagg" in frame.filename:
            where = f"{os.path.basename(frame.filename)}, line {frame.lineno}"
    return where


def shown(value: object, limit: int = 60) -> str:
    r"""Quote a name or value for a message: control characters escaped, long text cut.

    >>> shown("income"), shown("a" * 100, limit=5), shown("\x1b[2J")
    ("'income'", "'aaaaa…'", "'\\x1b[2J'")
    """
    if isinstance(value, str):
        return repr(value if len(value) <= limit else value[:limit] + "…")
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "…"


def listed(names: Iterable[object], limit: int = 12) -> str:
    """Quote several names for a message, the first ``limit`` of them.

    >>> listed(["a", "b"]), listed(range(4), limit=2)
    ("'a', 'b'", '0, 1 and 2 more')
    """
    quoted = [shown(name) for name in names]
    extra = len(quoted) - limit
    return ", ".join(quoted[:limit]) + (f" and {extra} more" if extra > 0 else "")
