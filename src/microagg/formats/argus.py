"""Descriptions of files without column names, as µ-ARGUS writes them (.rda).

A line names a column, where it starts, how wide it is, and its missing codes; lines in angle brackets
below it tell more::

    SEX   1 1 "9"
        <RECODABLE>
        <CODELIST> "sex.cdl"
    INCOME 2 8 "99999999"
        <NUMERIC>
        <DECIMALS> 2

With <SEPARATOR> in the first line, the fields of the file stand between separators instead, and columns have
no start.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from microagg.errors import TableError, shown

_MOST_MISSING = 2  # codes that a line has room for
# What may stand below a column. Those with an answer take what follows.
_KNOWN = (
    "RECODABLE", "RECODEABLE", "NUMERIC", "DECIMALS", "WEIGHT", "HOUSE_ID", "HOUSEHOLD_ID", "HOUSEHOLD",
    "RELATED", "TRUNCABLE", "IDLEVEL", "SUPPRESSWEIGHT", "CODELIST",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """One column of a description.

    Attributes
    ----------
    name : of the column
    start : position of its first sign, from 1; 0 in files with separators
    width : how many signs it takes
    missing : codes that stand for a missing value
    numeric : whether it holds numbers
    decimals : of its numbers
    codelist : file that tells what its codes mean
    lines : all that stands below it, to be written again
    """

    name: str
    start: int
    width: int
    missing: tuple[str, ...] = ()
    numeric: bool = False
    decimals: int | None = None
    codelist: str | None = None
    lines: tuple[str, ...] = ()

    @property
    def end(self) -> int:
        """Position of its last sign."""
        return self.start + self.width - 1


@dataclass(frozen=True)
class Description:
    """What an .rda file tells.

    Attributes
    ----------
    places : the columns in their order
    separator : what stands between fields; None: they have fixed positions
    names_in_front : whether the first line of the file has the names
    """

    places: tuple[Place, ...]
    separator: str | None = None
    names_in_front: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [place.name for place in self.places]

    def of(self, names: Collection[str], replaced: Collection[str] = ()) -> Description:
        """Return the description of some columns, in which those replaced by other values have no codes."""
        kept = [place for place in self.places if place.name in names]
        return replace(
            self,
            places=tuple(_without_codes(p) if p.name in replaced else p for p in kept),
        )

    def text(self) -> str:
        """As it stands in an .rda file."""
        lines = [] if self.separator is None else [f'<SEPARATOR> "{self.separator}"']
        lines += ["<NAMESINFRONT>"] * self.names_in_front
        for place in self.places:
            start = [] if self.separator is not None else [str(place.start)]
            codes = [f'"{code}"' for code in place.missing]
            lines.append(" ".join([_quoted(place.name), *start, str(place.width), *codes]))
            lines += [f"    {line}" for line in place.lines]
        return "\n".join(lines) + "\n"


def _without_codes(place: Place) -> Place:
    lines = tuple(line for line in place.lines if not line.upper().startswith("<CODELIST>"))
    return replace(place, codelist=None, missing=(), lines=lines)


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def read_description(path: Path, encoding: str = "utf-8") -> Description:
    """Read an .rda file; what does not fit is refused with its line."""
    try:
        text = path.read_bytes().decode(encoding)
    except UnicodeDecodeError:
        text = path.read_bytes().decode("cp1252", errors="replace")
    separator, names_in_front = None, False
    places: list[Place] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        words = _words(line, path, number)
        if not words:
            continue
        tag = words[0].upper()
        if tag == "<SEPARATOR>" and not places:
            separator = _separator(words, path, number)
        elif tag == "<NAMESINFRONT>" and not places:
            names_in_front = True
        elif tag == "<SPSS>":
            raise _wrong(path, number, "it describes an SPSS file; name the .sav file itself")
        elif tag.startswith("<"):
            if not places:
                raise _wrong(path, number, f"{shown(words[0])} stands above the first column")
            places[-1] = _with_line(places[-1], words, line.strip(), path, number)
        else:
            places.append(_place(words, separator is None and not names_in_front, path, number))
    if names_in_front and separator is None:
        separator = ","
    if not places:
        raise TableError(f"A description names columns; {shown(str(path), 300)} names none.")
    _check(places, separator is None, path)
    return Description(tuple(places), separator, names_in_front)


def _words(line: str, path: Path, number: int) -> list[str]:
    reader = shlex.shlex(line, posix=True)
    reader.whitespace_split, reader.commenters, reader.quotes, reader.escape = True, "", '"', ""
    try:
        return list(reader)
    except ValueError:
        raise _wrong(path, number, "a quote is opened and not closed") from None


def _separator(words: list[str], path: Path, number: int) -> str:
    if len(words) < 2 or len(words[1]) != 1:
        raise _wrong(path, number, "<SEPARATOR> needs one sign behind it, in quotes")
    return words[1]


def _place(words: list[str], fixed: bool, path: Path, number: int) -> Place:
    name, rest = words[0], words[1:]
    numbers = rest[: 2 if fixed else 1]
    if len(numbers) < (2 if fixed else 1) or not all(n.isdecimal() and int(n) > 0 for n in numbers):
        wanted = "its start and its width" if fixed else "its width"
        raise _wrong(path, number, f"behind column {shown(name)} stand {wanted}, counted from 1")
    missing = tuple(rest[len(numbers) :])
    start, width = (int(numbers[0]), int(numbers[1])) if fixed else (0, int(numbers[0]))
    if len(missing) > _MOST_MISSING:
        raise _wrong(
            path, number, f"column {shown(name)} has more than {_MOST_MISSING} missing codes"
        )
    if any(len(code) > width for code in missing):
        raise _wrong(
            path, number, f"a missing code of column {shown(name)} is wider than the column"
        )
    return Place(name, start, width, missing)


def _with_line(place: Place, words: list[str], line: str, path: Path, number: int) -> Place:
    """Add what a line in angle brackets says about a column."""
    tag = words[0].strip("<>").upper()
    if tag not in _KNOWN or not words[0].endswith(">"):
        raise _wrong(path, number, f"{shown(words[0])} is not known")
    place = replace(place, lines=(*place.lines, line))
    if tag == "NUMERIC":
        return replace(place, numeric=True)
    if tag == "DECIMALS":
        if len(words) < 2 or not words[1].isdecimal() or int(words[1]) > 15:
            raise _wrong(path, number, "<DECIMALS> needs a number from 0 to 15 behind it")
        return replace(place, decimals=int(words[1]), numeric=True)
    if tag == "CODELIST":
        if len(words) < 2:
            raise _wrong(path, number, "<CODELIST> needs the name of a file behind it")
        return replace(place, codelist=words[1])
    return replace(place, numeric=place.numeric or tag == "WEIGHT")


def _check(places: list[Place], fixed: bool, path: Path) -> None:
    """Refuse columns of one name, and those that share a position."""
    names = [place.name for place in places]
    for place in places:
        if names.count(place.name) > 1:
            raise TableError(
                f"Column names must differ; {shown(str(path), 300)} has {shown(place.name)} more than once. "
                "Rename the columns."
            )
    ordered = sorted(places, key=lambda place: place.start)
    for one, next_one in itertools.pairwise(ordered):
        if fixed and one.end >= next_one.start:
            raise TableError(
                f"Columns of a description must not overlap; in {shown(str(path), 300)} column "
                f"{shown(one.name)} ends at position {one.end} and {shown(next_one.name)} starts at "
                f"{next_one.start}. Correct the positions."
            )


def _wrong(path: Path, number: int, fact: str) -> TableError:
    return TableError(
        f"A line of a description is a column (name, start, width, missing codes) or tells about one; line "
        f"{number} of {shown(str(path), 300)} does not fit: {fact}."
    )
