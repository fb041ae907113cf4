"""What the columns of a table look like, and the role that each gets by default.

All open questions are decided in favour of the people in the table: identifiers, names and texts are
dropped, k counts the unit that an identifier names, and everything else is protected by its kind. Types,
value labels and measure levels of a file come first, then names and values together.

Of nested identifiers k should count the one that stands for people: households before persons, since k
households are at least k persons, and both before numbers without a word. Schools, hospitals and other
places where people are get no k of their own: they are dropped. Where no identifier can be counted, names or
codes of which each is seen again and again while a date, year or visit goes on are the unit: firms, countries
and doctors by their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from microagg.base.formatting import names as named
from microagg.base.formatting import plural, unit_words
from microagg.base.typing import Labels
from microagg.drafting import name_words as say
from microagg.drafting.computed_columns import settle_computed
from microagg.drafting.guess import FEW, Guess, NamedProfile, dropped, protected
from microagg.drafting.number_columns import guess_numbers
from microagg.drafting.profile import profiles
from microagg.drafting.text_columns import guess_texts
from microagg.errors import InputError
from microagg.kernels.labels import combine
from microagg.tables.dates import dates_in_text
from microagg.tables.frame import Frame, codes_as_written

_BATTERY = 3  # columns with the same range from which on their numbers are answers on one scale
_HOUSEHOLD, _NO_WORD, _ELSE = 0, 2, 3  # ranks of what identifiers stand for; 1: a person
_RECORDS_OF_A_UNIT = 60  # in the middle: five years of months; with more it is a classification
_FEWEST_UNITS = 5
_RECORDS_OF_A_TIME = 3  # on average, so that several units are seen at a time
_OF_THE_GRID = 0.1  # of units and times: the least share that has a record
_MOMENTS = 60  # different times that are no whole numbers, at most
_ONCE = 0.98  # of the records: no other has the same unit and time
_OF_ALL_CELLS = 0.9  # with a record, at least, where each unit has one at a time for each sex, say
_NEARLY_ALL = 0.9  # of the units have a name of their own
_RECORDS_OF_A_CONTAINER = 12  # at most, where a school, say, is what the records are about
# Numbers that start again in each school go at most this many times as far as the largest school has records.
_NUMBERS_OF_A_CONTAINER = 10


def guess(
    frame: Any,
    *,
    k: int = 5,
    unit: Any = None,
    weight: Any = None,
    names: Collection[Any] | None = None,
    other_roles: Collection[Any] = (),
    missing_words: Sequence[str] = ("",),
) -> dict[Any, Guess]:
    """Guess what each column of a table is, and its role.

    O(n log n) for each column.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow
    k : least group size
    unit, weight : columns that have this role already, so that no other gets it
    names : columns to look at, by default all; then none is found to follow from another
    other_roles : columns whose role somebody decided, from which none follows
    missing_words : texts that mean missing, such as NA in a CSV file

    Returns
    -------
    dict
        By name, in the order of the table.

    >>> import pandas as pd
    >>> found = guess(pd.DataFrame({"plz": ["01067", "80331", "01067"], "wage": [9.5, 12.25, 11.0]}))
    >>> found["plz"].looks_like, found["plz"].kind, found["wage"].role
    ('code', 'nominal', 'protect')
    """
    table = frame if isinstance(frame, Frame) else Frame(frame)
    index = set(table.index_columns())
    columns = dict(profiles(table, names, missing_words))
    # Ranges of whole numbers without a gap that several columns share, as answers do.
    ends = {
        name: (profile.numbers.low, profile.numbers.high)
        for name, profile in columns.items()
        if profile.numbers is not None and profile.numbers.consecutive
    }
    often = Counter(ends.values())
    guesses = {}
    for name, profile in columns.items():
        in_battery = name in ends and often[ends[name]] >= _BATTERY
        column = NamedProfile(**vars(profile), words=say.words(name), k=k, battery=in_battery)
        looks = _guess(table, name, column)
        if name in index:
            fact = "The row labels of a frame of pandas"
            looks = dropped("identifier", None, fact, "they identify records.")
        guesses[name] = replace(looks, distinct=profile.distinct, present=profile.present)
    guesses = _settle_weights(_settle_units(table, guesses, k, unit), unit, weight)
    if names is None:
        undecided = {name: looks for name, looks in guesses.items() if name not in other_roles}
        guesses |= settle_computed(table, undecided)
    return guesses


def _guess(table: Frame, name: Any, column: NamedProfile) -> Guess:
    texts = column.texts
    if column.present == 0:
        return dropped("empty", None, "No value at all", "it holds no information.")
    if column.distinct == 1 and (column.missing or column.type == "nested"):
        fact = f"The same value wherever it is present{column.missing_words}"
        return dropped("constant", None, fact, "it only shows where it is missing.")
    if column.distinct == 1:
        why = "Kept: it is the same for everybody."
        return Guess("known", "constant", None, "The same value in all records", why)
    if column.type == "truth":
        return protected("truth value", "boolean", f"Truth values{column.missing_words}")
    if column.type == "date":
        return protected("date", "date", f"Dates or times, {column.distinct_words}")
    if column.type == "nested":
        why = "lists and records cannot be averaged. Take it apart into columns to protect it."
        return dropped("nested", None, f"Lists or records, {column.distinct_words}", why)
    if texts is not None:
        # Only the texts themselves tell an order, dates, and cells that are no numbers.
        with suppress(InputError):  # objects of several types have neither an order nor dates
            readable = texts.dates and dates_in_text(table.arrow_column(name)) is not None
            odd = None if texts.odd is None else table.odd_numbers(name)
            ordered = table.is_ordered(name)
            column = replace(column, ordered=ordered, readable_dates=readable, odd=odd)
    looks = guess_numbers(column) if texts is None else guess_texts(column)
    if looks.role == "protect" and looks.kind == "nominal" and column.has_too_many:
        return looks.dropped(
            f"with fewer than {plural(max(column.k, 2), 'record')} for each value on average, groups could "
            "keep few of them. Have coarser categories to protect it, as by --coarsen COLUMN=rare:20."
        )
    return looks


def _settle_units(
    table: Frame, guesses: Mapping[Any, Guess], k: int, unit: Any
) -> dict[Any, Guess]:
    """Choose the unit among identifiers that repeat, and drop the others.

    ``unit`` is the column that somebody named, so that none is chosen.
    """
    settled = dict(guesses)
    candidates = {n: _stands_for(n, looks) for n, looks in guesses.items() if looks.role == "unit"}
    counted = unit
    if unit is None:
        counted = _chosen(table, candidates, k)
        if counted is None:
            counted, unsure = _seen_again(table, guesses, k)
            hint = "Each value is seen again at other times: if these are people or firms, name it as unit."
            for name in unsure:
                settled[name] = replace(guesses[name], action=f"{guesses[name].action} {hint}")
            if counted is not None:
                settled[counted] = _named_unit(counted, guesses[counted])
    for name, (rank, word) in candidates.items():
        looks, what = guesses[name], unit_words(word, word).many if word else None
        if name == counted != unit and settled[name] is looks:
            people = [c for c in candidates if c != name and candidates[c][0] != _ELSE]
            more_than = (
                f" rather than {named(people)}, since k {what} are at least k of their members"
            )
            why = more_than if rank == _HOUSEHOLD and people else ""
            if_not = "that is wrong" if what else "these are no people, households or firms"
            action = (
                f"The unit: k counts {what or 'its distinct values'}{why}, and the column is dropped. If "
                f"{if_not}, leave the unit out."
            )
            settled[name] = replace(looks, action=action, stands_for=word)
        elif name != counted or name == unit:
            why = f"it identifies {what or 'records or groups of them'}"
            by_name = ". Name it as unit if k should count them."
            why += by_name if counted is None else f", and k counts {named([counted])}."
            settled[name] = replace(looks.dropped(why), stands_for=word)
    return settled if counted is None else _without_aliases(table, settled, counted)


def _seen_again(table: Frame, guesses: Mapping[Any, Guess], k: int) -> tuple[Any, list[Any]]:
    """Return the column of names or codes that are seen again at later times, and those that may be such.

    None if there is none, or if there are fewer than two groups of them and no name says what they are.

    Each value stands in several records, each time has several records, and no value stands twice at one
    time, unless once for each sex, say; where the name says person, firm or name, it may.
    """
    times = [
        name
        for name, looks in guesses.items()
        if (looks.looks_like == "date" and looks.distinct >= 3)
        or tells_time(name, looks.kind, looks.distinct, say.TIME)
    ]
    kinds = ("category", "place", "code", "name or text", "repeated identifier")
    repeated = [
        name
        for name, looks in guesses.items()
        if name not in times
        and looks.looks_like in kinds
        and looks.kind in ("nominal", "integer")
        and not looks.unreadable
        and looks.distinct >= max(k, _FEWEST_UNITS)
        and looks.present >= 3 * looks.distinct
    ]
    if not times or not repeated:
        return None, []
    codes = {name: _codes(table, name) for name in (*times, *repeated)}
    time = combine([codes[name] for name in times])
    sorts = {
        name: _codes(table, name)
        for name, looks in guesses.items()
        if looks.role == "protect"
        and looks.kind in ("nominal", "ordinal", "boolean")
        and looks.distinct <= FEW
        and name not in times
    }
    able: dict[Any, tuple[int, int]] = {}
    unsure: list[Any] = []
    for name in repeated:
        distinct = guesses[name].distinct
        others = [sorts[other] for other in sorts if other != name]
        again, once = seen_again(codes[name], time, others)
        words = set(say.words(name))
        if words & {*say.HOUSEHOLDS, *say.UNITS} or words <= say.NAME:
            rank = 0
        else:  # a place or another thing, or no such name
            rank = 1 if words & (say.ENTITY | say.PLACE | say.NAME | say.IDENTIFIER) else 2
        many = distinct >= 2 * k and (rank == 1 or distinct > FEW)
        if again and (rank == 0 or (once and many)):
            able[name] = rank, -distinct
        elif again and once and guesses[name].role == "protect":
            unsure.append(name)
    return (min(able, key=able.__getitem__), []) if able else (None, unsure)


def seen_again(values: Labels, time: Labels, sorts: Sequence[Labels] = ()) -> tuple[bool, bool]:
    """Tell whether values go on in time, as people and firms do that are asked every year.

    Parameters
    ----------
    values, time : int64 (n,)
        Codes of a column of names or codes, −1 where missing, and of the time of each record.
    sorts : int64 (n,) each
        Codes of other columns of few categories, by which a table may go on beside time: sexes, ages.

    Returns
    -------
    again, once : bool
        Whether each value stands at three times or more and each time has several records; and whether no
        value stands twice at one time, but for few, or once for each combination of the other categories.

    >>> seen_again(np.repeat(np.arange(6), 5), np.tile(np.arange(5), 6))
    (True, True)
    """
    rows, moments = len(values), int(time.max()) + 1
    distinct = len(np.unique(values[values >= 0]))
    pairs = _count([values, time])
    dense = rows >= _RECORDS_OF_A_TIME * moments and rows >= _OF_THE_GRID * distinct * moments
    once = pairs >= _ONCE * rows
    if not once and sorts:
        cell = combine(sorts)
        whole = rows >= _OF_ALL_CELLS * pairs * (int(cell.max()) + 1)
        once = whole and _count([values, time, cell]) >= _ONCE * rows
    return dense and pairs >= 3 * distinct, once


def tells_time(
    name: Any, kind: str | None, distinct: int, called: frozenset[str] = say.TIME | say.YEAR
) -> bool:
    """Return whether a column says when a record was made.

    Parameters
    ----------
    name, kind : of the column
    distinct : number of its different values
    called : words of names that say so
    """
    named = any(word in called for word in say.words(name)) and (
        kind in ("integer", "ordinal") or (kind in ("number", "spiked") and distinct <= _MOMENTS)
    )
    return distinct >= 3 and (kind == "date" or named)


def _named_unit(name: Any, looks: Guess) -> Guess:
    rank, word = _stands_for(name, looks)
    noun = word if rank < _NO_WORD else None
    what = unit_words(noun, noun).many if noun else "its distinct values"
    return replace(
        looks,
        role="unit",
        looks_like="repeated identifier",
        fact=f"{looks.fact}, each seen again at other times",
        action=f"The unit: k counts {what}, and the column is dropped. If it classifies records of different "
        "units, leave the unit out and name a kind.",
        codes=(),
        levels=(),
        stands_for=noun,
    )


def _codes(table: Frame, name: Any) -> Labels:
    return codes_as_written(table, name, from_csv=False)


def _count(columns: Sequence[Labels]) -> int:
    """Count the combinations of values that records have."""
    return int(combine(columns).max(initial=-1)) + 1


def _without_aliases(table: Frame, guesses: Mapping[Any, Guess], unit: Any) -> dict[Any, Guess]:
    """Drop categories that are other names of the unit: nearly each unit has its own."""
    settled = dict(guesses)
    if unit not in table.names:
        return settled
    units = _codes(table, unit)
    distinct = len(np.unique(units[units >= 0]))
    for name, looks in guesses.items():
        is_category = looks.role == "protect" and looks.kind == "nominal" and looks.distinct >= 3
        if name == unit or not is_category or looks.distinct < _NEARLY_ALL * distinct:
            continue
        values = _codes(table, name)
        both = (values >= 0) & (units >= 0)
        if _count([units[both], values[both]]) <= distinct:
            why = f"it is another name of {named([unit])}, which k counts."
            settled[name] = looks.dropped(why)
    return settled


def _stands_for(name: Any, looks: Guess) -> tuple[int, str | None]:
    """Return what an identifier stands for by its name: the rank of the word, and the word."""
    words = say.words(name)
    for rank, known in enumerate((say.HOUSEHOLDS, say.UNITS, {}, say.CONTAINERS)):
        for word in words:
            if word in known:
                return rank, known[word]
    if any(word in say.THINGS | say.PLACE for word in words) or not looks.counts_units:
        return _ELSE, None
    return _NO_WORD, None


def _chosen(table: Frame, words: Mapping[Any, tuple[int, str | None]], k: int) -> Any:
    """Return the identifier that k should count; None if none can be counted."""
    values = {name: _codes(table, name) for name in words}
    sizes = {name: np.bincount(codes[codes >= 0]) for name, codes in values.items()}
    sizes = {name: counts[counts > 0] for name, counts in sizes.items()}

    def pairs(name: Any, other: Any) -> int:
        return _count([values[name], values[other]])

    def starts_again(name: Any, other: Any) -> bool:
        """Return whether numbers start again in each value of another: only both identify a record."""
        own, around = sizes[name], sizes[other]
        few = len(own) <= _NUMBERS_OF_A_CONTAINER * around.max()
        if name == other or not few or pairs(name, other) <= 0.99 * len(values[name]):
            return False
        rank, word = words[other]
        # In families the first numbers occur in each, and the others are rare.
        often = np.sort(own)[::-1]
        in_families = len(own) < len(around) and often[: len(own) // 2].sum() > 0.8 * own.sum()
        return (rank == _ELSE and word is not None) or bool(in_families)

    able = []
    for name, (rank, word) in words.items():
        most = _RECORDS_OF_A_UNIT if rank != _ELSE else _RECORDS_OF_A_CONTAINER if word else 0
        if (
            len(sizes[name]) >= max(k, 2)
            and np.median(sizes[name]) <= most
            and sizes[name].mean() <= 2 * most
            and 2 * sizes[name].max() <= len(values[name])  # else most have none, such as "no firm"
            and not any(starts_again(name, other) for other in words)
        ):
            able.append(name)
    if not able:
        return None
    best = min(words[name][0] for name in able)
    same = [name for name in able if words[name][0] == best]
    # The finest, and of nested ones the coarsest: k firms are at least k plants.
    chosen = max(same, key=lambda name: len(sizes[name]))
    for name in same:
        fewer = len(sizes[name]) < len(sizes[chosen])
        if fewer and pairs(chosen, name) == len(np.unique(values[chosen])):
            chosen = name
    return chosen


def _settle_weights(guesses: Mapping[Any, Guess], unit: Any, weight: Any) -> dict[Any, Guess]:
    """Choose one of several weights, that of the records before that of their units; drop the others.

    ``weight`` is the column that somebody named, so that none is chosen.
    """
    candidates = [name for name, looks in guesses.items() if looks.role == "weight"]
    if unit is None:
        unit = next((name for name, looks in guesses.items() if looks.role == "unit"), None)
    of_units = {*say.HOUSEHOLDS, *(() if unit is None else say.words(unit))}
    of_weights = say.WEIGHT | say.WEIGHT_ONLY | say.SAMPLING
    counted = weight
    if weight is None and candidates:
        by_name = [name for name in candidates if "by its name" in guesses[name].fact] or candidates
        of_records = [name for name in by_name if not of_units & set(say.words(name))]
        # The record's own has no word but that of a weight.
        counted = min(
            of_records or by_name,
            key=lambda name: sum(word not in of_weights for word in say.words(name)),
        )
    settled = dict(guesses)
    for name in candidates:
        settled[name] = guesses[name].dropped(f"a release has one weight, {named([counted])}.")
    if counted in candidates:
        action = (
            "The weight: each group releases its mean weight, so that weighted totals are kept. If it "
            "is a quantity, protect it instead."
        )
        settled[counted] = replace(guesses[counted], action=action)
    return settled
