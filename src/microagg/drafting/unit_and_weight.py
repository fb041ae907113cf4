"""Which identifier is the unit that k counts, and which of several weights is the weight.

Of nested identifiers k should count the one that stands for people: households before persons, since k
households are at least k persons, and both before numbers without a word. Schools, hospitals and other
places where people are get no k of their own: they are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from microagg.base.formatting import names, unit_words
from microagg.drafting import name_words as say
from microagg.drafting.guess import Guess, dropped
from microagg.tables.as_written import codes_as_written
from microagg.tables.frame import Frame

_HOUSEHOLD, _PERSON, _NO_WORD, _ELSE = range(4)
_RECORDS_OF_A_UNIT = 60  # in the middle: five years of months; with more it is a classification
_RECORDS_OF_A_CONTAINER = 12  # at most, where a school, say, is what the records are about


def settle_units(table: Frame, found: Mapping[Any, Guess], k: int, unit: Any) -> dict[Any, Guess]:
    """Choose the unit among identifiers that repeat, and drop the others.

    ``unit`` is the column that somebody named, so that none is chosen.
    """
    settled = dict(found)
    candidates = [name for name, one in found.items() if one.role == "unit"]
    words = {name: _stands_for(name, found[name]) for name in candidates}
    chosen = _chosen(table, words, k) if unit is None and candidates else None
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
        chosen = (of_records or by_name)[0]
    settled = dict(found)
    for name in candidates:
        one = found[name]
        if name == chosen:
            action = (
                "The weight: each group releases its mean weight, so that weighted totals stay exact. If it "
                "is a quantity, protect it instead."
            )
            settled[name] = replace(one, action=action)
        else:
            counted = weight if chosen is None else chosen
            settled[name] = dropped(
                one.looks_like, one.kind, one.fact, f"a release has one weight, {names([counted])}."
            )
    return settled


def _plural_of(word: str) -> str:
    """Return the plural of a noun."""
    return unit_words(word, word).many
