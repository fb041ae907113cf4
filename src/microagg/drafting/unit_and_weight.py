"""Which identifier is the unit that k counts, and which of several weights is the weight.

Of nested identifiers k should count the one that stands for people: households before persons, since k
households are at least k persons, and both before numbers without a word. Schools, hospitals and other
places where people are get no k of their own: they are dropped.

Where no identifier can be counted, names or codes of which each is seen again and again while a date, year or
visit goes on are the unit: firms, countries and doctors by their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from microagg.base.formatting import names, unit_words
from microagg.base.typing import Labels
from microagg.drafting import name_words as say
from microagg.drafting.guess import FEW, Guess, dropped
from microagg.tables.as_written import codes_as_written
from microagg.tables.frame import Frame

_HOUSEHOLD, _PERSON, _NO_WORD, _ELSE = range(4)
_RECORDS_OF_A_UNIT = 60  # in the middle: five years of months; with more it is a classification
_FEWEST_UNITS = 5
_RECORDS_OF_A_TIME = 3  # on average, so that several units are seen at a time
_OF_THE_GRID = 0.1  # of units and times: the least share that has a record
_MOMENTS = 60  # different times that are no whole numbers, at most
_ONCE = 0.98  # of the records: no other has the same unit and time
_NEARLY_ALL = 0.9  # of the units have a name of their own
_RECORDS_OF_A_CONTAINER = 12  # at most, where a school, say, is what the records are about


def settle_units(table: Frame, found: Mapping[Any, Guess], k: int, unit: Any) -> dict[Any, Guess]:
    """Choose the unit among identifiers that repeat, and drop the others.

    ``unit`` is the column that somebody named, so that none is chosen.
    """
    settled = dict(found)
    candidates = [name for name, one in found.items() if one.role == "unit"]
    words = {name: _stands_for(name, found[name]) for name in candidates}
    chosen = _chosen(table, words, k) if unit is None and candidates else None
    if chosen is None and unit is None:
        chosen, unsure = _seen_again(table, found, k)
        for name in unsure:
            one = found[name]
            hint = "Each value is seen again at other times: if these are people or firms, name it as unit."
            settled[name] = replace(one, action=f"{one.action} {hint}")
        if chosen is not None:
            settled[chosen] = _named_unit(chosen, found[chosen])
            candidates = [name for name in candidates if name != chosen]
    for name in candidates:
        word = words[name][1]
        one = replace(found[name], stands_for=word)
        if name == chosen:
            settled[name] = replace(one, action=_why_unit(name, words))
        else:
            why = _why_not(word, unit if chosen is None else chosen)
            settled[name] = replace(
                dropped(one.looks_like, one.kind, one.fact, why), stands_for=word
            )
    counted = unit if chosen is None else chosen
    return settled if counted is None else _without_aliases(table, settled, counted)


def _seen_again(table: Frame, found: Mapping[Any, Guess], k: int) -> tuple[Any, list[Any]]:
    """Return the column of names or codes that are seen again at later times, and those that may be such.

    None if there is none, or if there are fewer than two groups of them and no name says what they are.

    Each value stands in several records, each time has several records, and no value stands twice at one
    time; where the name says person, firm or name, it may.
    """
    times = [name for name, one in found.items() if _is_time(name, one)]
    open_ones = [name for name, one in found.items() if _may_be_seen_again(one, k)]
    open_ones = [name for name in open_ones if name not in times]
    if not times or not open_ones:
        return None, []
    codes = {name: codes_as_written(table, name, from_csv=False) for name in (*times, *open_ones)}
    time = _together([codes[name] for name in times])
    able: dict[Any, tuple[int, int]] = {}
    unsure: list[Any] = []
    for name in open_ones:
        distinct = found[name].distinct
        again, once = seen_again(codes[name], time)
        rank = _rank_of_name(name)
        many = distinct >= 2 * k and (rank == 1 or distinct > FEW)
        if again and (rank == 0 or (once and many)):
            able[name] = rank, -distinct
        elif again and once and found[name].role == "protect":
            unsure.append(name)
    return (min(able, key=lambda name: able[name]), []) if able else (None, unsure)


def seen_again(values: Labels, time: Labels) -> tuple[bool, bool]:
    """Tell whether values go on in time, as people and firms do that are asked every year.

    Parameters
    ----------
    values, time : int64 (n,)
        Codes of a column of names or codes, −1 where missing, and of the time of each record.

    Returns
    -------
    again, once : bool
        Whether each value stands at three times or more and each time has several records; and whether no
        value stands twice at one time, but for few.

    >>> seen_again(np.repeat(np.arange(6), 5), np.tile(np.arange(5), 6))
    (True, True)
    """
    rows, moments = len(values), int(time.max()) + 1
    distinct = len(np.unique(values[values >= 0]))
    pairs = len(np.unique(_together([values, time])))
    dense = rows >= _RECORDS_OF_A_TIME * moments and rows >= _OF_THE_GRID * distinct * moments
    return dense and pairs >= 3 * distinct, pairs >= _ONCE * rows


def _is_time(name: Any, found: Guess) -> bool:
    """Return whether a column says when a record was made, at three times or more."""
    if found.looks_like == "date":
        return found.distinct >= 3
    return tells_time(name, found.kind, found.distinct, say.TIME)


def tells_time(
    name: Any, kind: str | None, distinct: int, called: frozenset[str] = say.TIME | say.YEAR
) -> bool:
    """Return whether a column of this kind and number of values says when a record was made."""
    named = any(word in called for word in say.words(name)) and (
        kind in ("integer", "ordinal") or (kind in ("number", "spiked") and distinct <= _MOMENTS)
    )
    return distinct >= 3 and (kind == "date" or named)


def _may_be_seen_again(found: Guess, k: int) -> bool:
    """Return whether a column has names or codes of which each stands in several records."""
    looks = ("category", "place", "code", "name or text", "repeated identifier")
    return (
        found.looks_like in looks
        and found.kind in ("nominal", "integer")
        and not found.unreadable
        and found.distinct >= max(k, _FEWEST_UNITS)
        and found.present >= 3 * found.distinct
    )


def _rank_of_name(name: Any) -> int:
    """Return 0 for a name of people or firms, 1 for a place or another thing, 2 for no such name."""
    own = say.words(name)
    if any(word in {*say.HOUSEHOLDS, *say.UNITS} for word in own) or set(own) <= say.NAME:
        return 0
    known = say.ENTITY | say.PLACE | say.NAME | say.IDENTIFIER
    return 1 if any(word in known for word in own) else 2


def _named_unit(name: Any, found: Guess) -> Guess:
    nouns = {**say.UNITS, **say.HOUSEHOLDS}
    noun = next((nouns[word] for word in say.words(name) if word in nouns), None)
    what = _plural_of(noun) if noun else "its distinct values"
    return Guess(
        "unit",
        "repeated identifier",
        found.kind,
        f"{found.fact}, each seen again at other times",
        f"The unit: k counts {what}, and the column is dropped. If it classifies records of different units, "
        "leave the unit out and name a kind.",
        stands_for=noun,
        distinct=found.distinct,
        present=found.present,
    )


def _together(columns: Sequence[Labels]) -> Labels:
    """Return the number of the combination of values that each record has."""
    joint = np.zeros(len(columns[0]), dtype=np.int64)
    for codes in columns:
        joint = joint * (int(codes.max()) + 2) + codes + 1
        joint = np.unique(joint, return_inverse=True)[1].astype(np.int64)
    return joint


def _without_aliases(table: Frame, found: Mapping[Any, Guess], unit: Any) -> dict[Any, Guess]:
    """Drop categories that are other names of the unit: nearly each unit has its own."""
    settled = dict(found)
    open_ones = [
        name
        for name, one in found.items()
        if name != unit and one.role == "protect" and one.kind == "nominal" and one.distinct >= 3
    ]
    if not open_ones or unit not in table.names:
        return settled
    units = codes_as_written(table, unit, from_csv=False)
    distinct = len(np.unique(units[units >= 0]))
    for name in open_ones:
        one = found[name]
        if one.distinct < _NEARLY_ALL * distinct:
            continue
        values = codes_as_written(table, name, from_csv=False)
        both = (values >= 0) & (units >= 0)
        if len(np.unique(_together([units[both], values[both]]))) <= distinct:
            why = f"it is another name of {names([unit])}, which k counts."
            settled[name] = dropped(one.looks_like, one.kind, one.fact, why)
    return settled


def _stands_for(name: Any, found: Guess) -> tuple[int, str | None]:
    """Return what an identifier stands for by its name: the rank of the word, and the word."""
    own = say.words(name)
    for rank, known in (
        (_HOUSEHOLD, say.HOUSEHOLDS),
        (_PERSON, say.UNITS),
        (_ELSE, say.CONTAINERS),
    ):
        for word in own:
            if word in known:
                return rank, known[word]
    if any(word in say.THINGS | say.PLACE for word in own) or not found.counts_units:
        return _ELSE, None
    return _NO_WORD, None


def _chosen(table: Frame, words: Mapping[Any, tuple[int, str | None]], k: int) -> Any:
    """Return the identifier that k should count; None if none can be counted."""
    values, sizes = {}, {}
    for name in words:
        values[name] = codes_as_written(table, name, from_csv=False)
        counts = np.bincount(values[name][values[name] >= 0])
        sizes[name] = counts[counts > 0]
    containers = [name for name, (rank, word) in words.items() if rank == _ELSE and word]
    able = []
    for name, (rank, word) in words.items():
        most = _RECORDS_OF_A_UNIT if rank != _ELSE else _RECORDS_OF_A_CONTAINER if word else 0
        numbered_within = any(
            _tell_records_apart(values[name], values[other])
            for other in containers
            if other != name
        )
        if (
            len(sizes[name]) >= max(k, 2)
            and np.median(sizes[name]) <= most
            and sizes[name].mean() <= 2 * most
            and 2 * sizes[name].max() <= len(values[name])  # else most have none, such as "no firm"
            and not numbered_within
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
        if fewer and _is_nested(values[chosen], values[name]):
            chosen = name
    return chosen


def _tell_records_apart(numbers: Any, container: Any) -> bool:
    """Return whether numbers start again in each container, so that only both together identify records."""
    pairs = np.unique(np.column_stack([numbers, container]), axis=0)
    return len(pairs) > 0.99 * len(numbers)


def _is_nested(fine: Any, coarse: Any) -> bool:
    """Return whether records that agree in the fine identifier agree in the coarse one."""
    pairs = np.unique(np.column_stack([fine, coarse]), axis=0)
    return len(pairs) == len(np.unique(fine))


def _why_unit(name: Any, words: Mapping[Any, tuple[int, str | None]]) -> str:
    rank, word = words[name]
    what = _plural_of(word) if word else "its distinct values"
    people = [other for other in words if other != name and words[other][0] != _ELSE]
    why = ""
    if rank == _HOUSEHOLD and people:
        why = f" rather than {names(people)}, since k {what} are at least k of their members"
    if_not = "these are no people, households or firms" if word is None else "that is wrong"
    return f"The unit: k counts {what}{why}, and the column is dropped. If {if_not}, leave the unit out."


def _why_not(word: str | None, counted: Any) -> str:
    what = (
        f"it identifies {_plural_of(word)}" if word else "it identifies records or groups of them"
    )
    if counted is not None:
        return f"{what}, and k counts {names([counted])}."
    return f"{what}. Name it as unit if k should count them."


def settle_weights(found: Mapping[Any, Guess], unit: Any, weight: Any) -> dict[Any, Guess]:
    """Choose one of several weights, that of the records before that of their units; drop the others.

    ``weight`` is the column that somebody named, so that none is chosen.
    """
    candidates = [name for name, one in found.items() if one.role == "weight"]
    if unit is None:
        unit = next((name for name, one in found.items() if one.role == "unit"), None)
    own = set() if unit is None else set(say.words(unit))
    of_units = {*own, *say.HOUSEHOLDS}
    chosen = None
    if weight is None and candidates:
        by_name = [name for name in candidates if "by its name" in found[name].fact] or candidates
        of_records = [name for name in by_name if not of_units & set(say.words(name))]
        # The record's own has no word but that of a weight.
        chosen = min(of_records or by_name, key=lambda name: len(_other_words(name)))
    settled = dict(found)
    for name in candidates:
        one = found[name]
        if name == chosen:
            action = (
                "The weight: each group releases its mean weight, so that weighted totals are kept. If it "
                "is a quantity, protect it instead."
            )
            settled[name] = replace(one, action=action)
        else:
            counted = weight if chosen is None else chosen
            settled[name] = dropped(
                one.looks_like, one.kind, one.fact, f"a release has one weight, {names([counted])}."
            )
    return settled


def _other_words(name: Any) -> list[str]:
    known = say.WEIGHT | say.WEIGHT_ONLY | say.SAMPLING
    return [word for word in say.words(name) if word not in known]


def _plural_of(word: str) -> str:
    """Return the plural of a noun."""
    return unit_words(word, word).many
