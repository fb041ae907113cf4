"""Facts about single columns of a table, from which its roles are guessed.

A profile holds counts and shapes. Values of records occur in it only as the ends of a range and the
levels of a column, which stay inside the package: no note, message or report shows them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.tables.file_metadata import ColumnFacts
from microagg.tables.frame import Frame
from microagg.tables.frame_libraries import plain_arrow

Type = Literal["number", "truth", "date", "text", "nested"]

_SAMPLE = 1000  # texts that are looked at to see how they are written
_AS_SINGLE = 1e-13  # fifteen digits, to which files write numbers that were single
_DATES = (
    r"\d{4}-\d{1,2}(-\d{1,2}([T ]\d{1,2}:\d{2}.*)?)?",
    r"\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})( \d{1,2}:\d{2}.*)?",
    r"\d{4}[./]\d{1,2}[./]\d{1,2}",
    r"(\d{1,2}[ -])?[A-Za-z]{3,9}\.?[ -]\d{4}",
    r"\d{4} ?Q[1-4]",
    r"\d{1,2}:\d{2}(:\d{2})?",
)
_LEVELS = 60  # distinct texts that may have an order, at most
_SOME = 0.1  # share of numbers from which on a few words among them stand for missing values
_FEW_WORDS = 5  # that may stand for missing values among numbers
_REPEATED = 3  # records from which on a word is a code and no slip


@dataclass(frozen=True)
class Numbers:
    """Facts about the numbers of a column, without missing and infinite ones."""

    whole: bool
    low: float
    high: float
    levels: Floats
    """The distinct values in ascending order."""
    counts: Labels
    """How many records have each."""
    rising: bool
    """Whether no value is lower than the one in the row before."""
    straight: float
    """Correlation of rising values with the number of the row; 0 where they are not rising."""
    infinite: int

    @property
    def zeros(self) -> float:
        """Share of the records that are 0."""
        return float(self.counts[self.levels == 0].sum() / self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean of the records."""
        return float((self.levels * (self.counts / self.counts.sum())).sum())

    @property
    def consecutive(self) -> bool:
        """Whether the values are whole numbers without a gap."""
        return self.whole and self.high - self.low + 1 == len(self.levels)

    @property
    def long_fractions(self) -> float:
        """Share of the distinct values that need more than four decimals."""
        with np.errstate(over="ignore"):
            single = np.isclose(
                self.levels.astype(np.float32), self.levels, rtol=_AS_SINGLE, atol=0
            )
        precision = np.where(single, 1e-7, 1e-12)
        away = np.abs(self.levels - np.round(self.levels, 4))
        return float(np.mean(away > precision * np.abs(self.levels)))


@dataclass(frozen=True)
class Texts:
    """Facts about how the texts of a column are written."""

    dates: bool
    """Whether all of those looked at are dates or times."""
    digit_codes: bool
    """Whether they are digits of one length or with leading zeros, so that they are no quantity."""
    odd: int | None
    """How many are no numbers, where most are; None where most are not."""
    odd_words: tuple[str, ...] = ()
    """Those that are no numbers, where they are few and each stands in several records."""
    numbers: Numbers | None = None
    """Those that are numbers, where most are or the others are a few words."""
    levels: tuple[str, ...] = ()
    """The distinct texts, unless there are many."""
    longest: int = 0
    """Words in the longest of those looked at."""
    with_digits: bool = False
    """Whether most of those looked at have a digit."""


@dataclass(frozen=True)
class Profile:
    """Facts about one column."""

    type: Type
    rows: int
    missing: int
    distinct: int
    """Distinct values, missing not counted."""
    numbers: Numbers | None = None
    texts: Texts | None = None
    categorical: bool = False
    """Whether the type says that the values are categories."""
    ordered: bool = False
    """Whether it says that they have an order."""
    facts: ColumnFacts = field(default_factory=ColumnFacts)
    """Metadata of the column in the file of a statistical package."""

    @property
    def labelled(self) -> float:
        """Share of the distinct numbers that have a value label."""
        if self.numbers is None or not self.facts.value_labels:
            return 0.0
        values = [v for v, _ in self.facts.value_labels if isinstance(v, int | float)]
        return float(np.isin(self.numbers.levels, values).mean())

    def without(self, codes: Sequence[float]) -> Self:
        """Return the profile of the same numbers with some of them counted as missing."""
        numbers = self.numbers
        if numbers is None or not len(codes):
            return self
        kept = ~np.isin(numbers.levels, codes)
        levels, counts = numbers.levels[kept], numbers.counts[kept]
        if not len(levels):
            return self
        gone = int(numbers.counts[~kept].sum())
        fewer = replace(
            numbers, low=float(levels[0]), high=float(levels[-1]), levels=levels, counts=counts
        )
        return replace(self, missing=self.missing + gone, distinct=len(levels), numbers=fewer)

    @property
    def present(self) -> int:
        """Records whose value is not missing."""
        return self.rows - self.missing

    @property
    def missing_words(self) -> str:
        """How many values are missing, if any."""
        return f", {self.missing:,} missing" if self.missing else ""

    @property
    def distinct_words(self) -> str:
        """How many different values there are."""
        return f"{self.distinct:,} distinct in {plural(self.present, 'record')}{self.missing_words}"


def profiles(
    frame: Frame, wanted: Collection[Any] | None = None, missing_words: Sequence[str] = ()
) -> Iterator[tuple[Any, Profile]]:
    """Give the name and the profile of each column, or of some. O(n log n) for each.

    Parameters
    ----------
    frame : the records
    wanted : names of columns, by default all
    missing_words : texts that mean missing, such as NA in a CSV file
    """
    import narwhals as nw
    import pyarrow as pa

    native, is_arrow = frame.native, isinstance(frame.native, pa.Table)
    if is_arrow:  # Arrow cannot filter views of text
        for place, column in enumerate(native.schema):
            if pa.types.is_string_view(column.type):
                texts = native.column(place).cast(pa.string())
                native = native.set_column(place, column.with_type(pa.string()), texts)
    columns = nw.from_native(native, eager_only=True).iter_columns()
    for place, (name, column) in enumerate(zip(frame.names, columns, strict=True)):
        if wanted is not None and name not in wanted:
            continue
        if not column.dtype.is_numeric() and frame.is_numeric(name):
            # Numbers that narwhals does not recognise: in a dictionary, in runs, or very long decimals.
            encoded = plain_arrow(frame.arrow_column(name))
            is_whole = frame.is_integer(name) and not encoded.null_count
            profile = of_values(np.asarray(encoded) if is_whole else frame.doubles(name))
            # In Arrow a dictionary is only a way to store numbers; elsewhere they are categories.
            declared = column.dtype in (nw.Categorical, nw.Enum) and not is_arrow
            order = getattr(getattr(column.to_native(), "dtype", None), "ordered", False)
            profile = replace(profile, categorical=declared, ordered=declared and bool(order))
        else:
            profile = _profile(column, missing_words)
        if is_arrow:
            profile = replace(profile, facts=ColumnFacts.of(frame.native.schema.field(place)))
        yield name, profile


def _profile(column: Any, missing_words: Sequence[str]) -> Profile:
    import narwhals as nw

    dtype = column.dtype
    if dtype.is_numeric():
        if dtype in (nw.Int128, nw.UInt128):
            column = column.cast(nw.Float64())  # numpy has no such integers
        values = np.asarray(column.to_numpy())
        # Whole numbers stay what they are: as doubles, long ids would be fewer than they are.
        return of_values(values if values.dtype.kind in "iu" else values.astype(np.float64))
    rows, missing = len(column), int(column.null_count())
    if dtype.is_nested():
        distinct = len({repr(value) for value in column.drop_nulls().to_list()})
        return Profile("nested", rows, missing, distinct)
    present = column.drop_nulls()
    if dtype == nw.String and missing_words:
        present = present.filter(~present.str.strip_chars().is_in(list(missing_words)))
        missing = rows - len(present)
    try:
        distinct = int(present.n_unique())
    except Exception:  # objects of Python that cannot be compared: by their text
        distinct = len({repr(value) for value in present.to_list()})
    if dtype == nw.Boolean:
        return Profile("truth", rows, missing, distinct)
    if dtype.is_temporal():
        return Profile("date", rows, missing, distinct)
    categorical = dtype in (nw.Categorical, nw.Enum)
    texts = _of_texts(present)
    return Profile("text", rows, missing, distinct, texts=texts, categorical=categorical)


def of_values(values: Any) -> Profile:
    """Profile an array of numbers, missing ones as NaN."""
    rows = len(values)
    finite, infinite = values, 0
    if values.dtype.kind == "f":
        usable = np.isfinite(values)
        if not usable.all():
            finite = values[usable]
            infinite = int(np.isinf(values).sum())
    missing = rows - len(finite) - infinite
    if not len(finite):
        return Profile("number", rows, missing, min(infinite, 1))
    levels, counts = np.unique(finite, return_counts=True)
    doubles = levels.astype(np.float64)
    rising, straight = bool((finite[1:] >= finite[:-1]).all()), 0.0
    y = finite[:: max(len(finite) // 5000, 1)].astype(np.float64)  # a few thousand rows
    if rising and len(y) >= 3 and y.min() < y.max():
        # Divided, so that squares do not overflow.
        straight = float(np.corrcoef(y / np.abs(y).max(), np.arange(len(y)))[0, 1])
    numbers = Numbers(
        whole=bool((doubles == np.floor(doubles)).all()),
        low=float(levels[0]),
        high=float(levels[-1]),
        levels=doubles,
        counts=counts,
        rising=rising,
        straight=straight,
        infinite=infinite,
    )
    return Profile("number", rows, missing, len(levels), numbers=numbers)


def _of_texts(present: Any) -> Texts:
    sample = [str(value).strip() for value in present.head(_SAMPLE).to_list()]
    if not sample:
        return Texts(dates=False, digit_codes=False, odd=None)
    digits = [text for text in sample if text.isdigit()]
    padded = any(len(text) > 1 and text[0] == "0" for text in digits)
    one_length = len({len(text) for text in digits}) == 1 and len(digits[0]) > 1
    share = sum(number_of(text) is not None for text in sample) / len(sample)
    often = Counter(str(v).strip() for v in present.to_list()) if share >= _SOME else Counter()
    parsed = {text: number_of(text) for text in often}
    odd = {text: often[text] for text, number in parsed.items() if number is None}
    are_codes = len(odd) <= _FEW_WORDS and min(odd.values(), default=0) >= _REPEATED
    mixed = share > 0.5 or (share >= _SOME and are_codes)
    values = {text: number for text, number in parsed.items() if mixed and number is not None}
    numbers = np.repeat(list(values.values()), [often[text] for text in values])
    levels: list[Any] = []
    with suppress(Exception):  # objects of Python that cannot be compared have no order
        levels = present.unique().to_list()
    return Texts(
        dates=all(map(re.compile("|".join(_DATES)).fullmatch, sample)),
        digit_codes=len(digits) == len(sample) and (padded or one_length),
        odd=sum(odd.values()) if mixed else None,
        odd_words=tuple(sorted(odd)) if are_codes else (),
        numbers=of_values(numbers).numbers if len(values) else None,
        levels=tuple(sorted(map(str, levels))) if len(levels) <= _LEVELS else (),
        longest=max(len(text.split()) for text in sample),
        with_digits=2 * sum(any(c.isdigit() for c in text) for text in sample) > len(sample),
    )


def number_of(text: str) -> float | None:
    """Return the number that a text is, with a point or a comma for the decimals; None if it is none."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None
