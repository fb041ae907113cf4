"""What a column of numbers is: a quantity, an identifier, a weight, a code, part of a date or of a place.

Rules are asked in order and the first that answers decides; what none claims is a quantity. A rule takes the
values and the name together, since either alone misleads.

Before, codes for missing values are taken out: −8, −9, 99, 999. A code is one of the usual ones (a negative
number among positive ones, or a number of nines or eights) and lies outside all other values, farther than
these lie from each other. It has a value label that says so, or it stands in several records, more than its
neighbours do. So 99 among ages from 0 to 98 is an age.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from microagg.base.formatting import plural
from microagg.drafting import name_words as say
from microagg.drafting.guess import FEW, IDENTIFIES, MANY, Guess, NamedProfile, dropped, protected
from microagg.drafting.profile import Numbers, Profile

_NEARLY_ALL = 0.9  # an id may repeat in a few records
_SPREAD = 20  # times the mean: beyond that, weights are not those of bodies
_VARIES = 10  # times the least weight: beyond that, with many decimals, likewise
_CLASSIFIES = 60  # records for each value, beyond which numbers of things classify them
_YEARS_AT_SCHOOL = 25  # at most
_LEAST_RATIO = 1.2  # of the largest weight to the least
_MOST_WEIGHTS = 200  # different ones of strata
_MANY_ZEROS = 0.2  # share of records from which on zeros are a spike
_RARER = -0.85  # correlation of the rank of a frequency with the number
_STEPS = 5  # of a scale, at least
_LONG_SCALE = 8  # steps without a gap from which on they are no codes, whatever their frequencies
_READABLE = 20  # different numbers from which on it is no accident that all can be read as dates

_NO_ANSWER = "|".join(say.RULES["missing"][language] for language in say.LANGUAGES)
_REPEATED = 3  # records from which on a value is no accident
_FEWEST = 20  # other values of a quantity, below which the shape says nothing
_APART = 3.0  # times the largest step between the other values at that end
_OF_THE_RANGE = 0.1
_FEWEST_WITHOUT_GAP = 5  # other values, if they are whole numbers without a gap from 0 or 1 on
_FAR = 3.0  # times the largest of these: a code is beyond

_IF_CODES = 'If they are codes without an order, say kind = "nominal".'


def guess_numbers(column: NamedProfile) -> Guess:
    """Guess what a column of numbers is; codes for missing values are taken out first."""
    if column.numbers is None:
        return dropped("empty", None, "No finite number at all", "it has no value.")
    codes = missing_codes(column)
    looks = _guess(column.without(codes))
    if codes and looks.role == "protect" and looks.kind in ("integer", "number", "ordinal"):
        many = int(column.numbers.counts[np.isin(column.numbers.levels, codes)].sum())
        what = (
            f"{plural(len(codes), 'value')} that stand" if len(codes) > 1 else "A value that stands"
        )
        note = f"{what} apart in {plural(many, 'record')}"
        verb = "are" if len(codes) > 1 else "is"
        action = f"{looks.action} {note} {verb} taken as missing (missing.codes)."
        return replace(looks, codes=codes, action=action.strip())
    return _guess(column) if codes else looks


def _guess(column: NamedProfile) -> Guess:
    numbers = column.numbers
    assert numbers is not None
    guesses = (rule(column, numbers) for rule in _RULES)
    looks = next(guess for guess in guesses if guess is not None)
    if numbers.infinite and looks.role == "protect":
        way_out = "they have no mean. Replace them, or leave those records out, to protect it."
        fact = f"{looks.fact}, {numbers.infinite} infinite"
        return replace(looks.dropped(way_out), fact=fact, unreadable=True)
    return looks


def _quantity(column: NamedProfile, numbers: Numbers) -> Guess:
    words = "whole numbers" if numbers.whole else "numbers with decimals"
    fact = f"A quantity: {words}, {column.distinct_words}"
    if is_spiked(numbers):
        return protected("quantity", "spiked", f"{fact}, {100 * numbers.zeros:.0f} % are 0")
    hint = ""
    if column.last in say.WEIGHT:
        hint = "If it is the weight of a sample, name it as weight instead."
    elif numbers.whole and column.distinct <= FEW:
        hint = 'Taken as counts or amounts; if they are codes, say kind = "nominal".'
    return Guess("protect", "quantity", "integer" if numbers.whole else "number", fact, hint)


def is_spiked(numbers: Numbers) -> bool:
    """Return whether so many of the numbers are 0 that these stand apart from the others."""
    return numbers.zeros >= _MANY_ZEROS and len(numbers.levels) > FEW


def is_scale(column: NamedProfile, numbers: Numbers) -> bool:
    """Return whether few numbers are steps of a scale rather than codes.

    They follow each other without a gap, and have a name for it, or a range that several columns share, or
    are many, or their frequencies rise to one top and fall: those of codes have no order.

    ``numbers`` are those of the ``column``, without those that stand for missing values.
    """
    steps = len(numbers.levels)
    if not numbers.consecutive or column.named(say.CODE, say.PLACE):
        return False
    if column.named(say.SCALE):
        return 3 <= steps <= MANY
    if column.last in say.SORT | say.ENTITY or abs(numbers.low) > FEW:
        return False
    return _STEPS <= steps <= FEW and (
        steps >= _LONG_SCALE or column.battery or _has_one_top(numbers) or thins_out(numbers)
    )


def _has_one_top(numbers: Numbers) -> bool:
    """Return whether frequencies rise to one top and fall from there; neighbours may differ by chance."""
    often = numbers.counts
    chance = 2 * np.sqrt(often[1:] + often[:-1])
    steps, top = np.diff(often), int(np.argmax(often))
    return bool((steps[:top] >= -chance[:top]).all() and (steps[top:] <= chance[top:]).all())


def _labelled(column: NamedProfile, numbers: Numbers) -> Guess | None:
    """Categories by their type or value labels, unless the file says that they are on a scale; pairs."""
    measure = column.facts.measure
    if column.categorical and column.k * column.distinct <= column.present:
        fact = f"Categories by their type, {column.distinct_words}"
        return protected("category", "ordinal" if column.ordered else "nominal", fact)
    is_pair = column.distinct <= 2
    if column.labelled >= 0.5 and (measure != "scale" or is_pair):
        fact = f"Codes with value labels, {column.distinct_words}"
        is_ordinal = measure == "ordinal"
        return protected("code", "ordinal", fact) if is_ordinal else _code(fact, numbers)
    return _code(f"Two different numbers{column.missing_words}", numbers) if is_pair else None


def _measure_level(column: NamedProfile, numbers: Numbers) -> Guess | None:
    """Categories by the measure level that the file states."""
    measure = column.facts.measure
    fact = f"The file says {measure}, {column.distinct_words}"
    if measure == "nominal":
        return _code(fact, numbers)
    return protected("code", "ordinal", fact) if measure == "ordinal" else None


def _code(fact: str, numbers: Numbers) -> Guess:
    kind = "integer" if numbers.whole else "number"
    return protected("code", "nominal", fact, f'If it is a quantity, say kind = "{kind}".')


def _calendar(column: NamedProfile, numbers: Numbers) -> Guess | None:
    """Years, months, days, hours, and dates written as one number."""
    if not numbers.whole:
        return None
    low, high, levels = numbers.low, numbers.high, numbers.levels
    count, many = column.distinct_words, column.present >= 20
    is_year = many and low >= 1900 and high <= 2035 and not column.named(say.MEASURE, say.COUNT)
    if column.named(say.YEAR):
        is_year = is_year or (low >= 1000 and high <= 2200) or (low >= 40 and high <= 99)
    if is_year:
        return protected("date", "integer", f"Years, {count}", "It is rounded to a year.")
    outer = {column.first, column.last}  # cough in hour 4 is no hour
    ends = [say.PARTS_OF_DATES[word] for word in outer if word in say.PARTS_OF_DATES]
    if any(first <= low and high <= last for first, last in ends):
        return protected("date", "ordinal", f"Parts of dates or times of day, {count}")
    month, day = levels // 100 % 100, levels % 100
    dates = low >= 18000101 and high <= 21001231 and _within(month, 1, 12) and _within(day, 1, 31)
    months = low >= 180001 and high <= 210012 and _within(day, 1, 12)
    clock = low >= 0 and high <= 2400 and _within(day, 0, 59) and (levels >= 100).sum() >= 60
    # By halves or quarters of an hour, as 430, 500, 530.
    steps = np.diff(60 * (levels // 100) + day)
    goes_on = len(levels) > FEW and low >= 0 and high <= 2400 and day.max() < 60
    goes_on = goes_on and (steps == steps[0]).all() and np.ptp(np.diff(levels)) > 0
    if many and (dates or months or clock or goes_on):
        return protected("date", "ordinal", f"Dates or times of day written as numbers, {count}")
    if len(levels) >= _READABLE and _is_date_with_the_year_last(numbers):
        fact = f"Dates written as numbers with the year at the end, {count}"
        why = "their numbers have another order than the days. Write them as 2024-03-31 to protect them."
        return replace(dropped("date", "date", fact, why), unreadable=True)
    return None


def _is_date_with_the_year_last(numbers: Numbers) -> bool:
    """Return whether all numbers are days, months and years, such as 111597 or 12312016."""
    for years in (100, 10_000):
        days, year = numbers.levels // years, numbers.levels % years
        parts = days // 100, days % 100
        months = any(_within(part, 1, 12) for part in parts)
        a_day = any(_within(part, 1, 31) and part.max() > 12 for part in parts)
        if months and a_day and (years == 100 or _within(year, 1800, 2100)):
            return True
    return False


def _coordinates(column: NamedProfile, numbers: Numbers) -> Guess | None:
    for word in (column.last,) if numbers.whole else column.words:
        low, high = say.COORDINATE.get(word, (np.inf, -np.inf))
        if low <= numbers.low and numbers.high <= high:
            fact = f"Coordinates of a place, {column.distinct_words}"
            return protected("place", "integer" if numbers.whole else "number", fact)
    return None


def _identifiers(column: NamedProfile, numbers: Numbers) -> Guess | None:
    """Numbers that stand for records or for what records are about."""
    distinct, present = column.distinct, column.present
    if not numbers.whole:
        if column.named(say.IDENTIFIER) and distinct >= _NEARLY_ALL * present:
            fact = f"Numbers, {column.distinct_words}, identifiers by their name"
            return dropped("identifier", "number", fact, IDENTIFIES)
        return None
    years_at_school = column.last in ("school", "schooling") and numbers.high <= _YEARS_AT_SCHOOL
    measured = column.named(say.MEASURE) or years_at_school
    identifier = column.named(say.IDENTIFIER)
    called = identifier or (column.last in say.NUMBER and column.last != "numbers")
    entity = column.last in say.ENTITY and numbers.low >= 0 and not measured
    if distinct == present:
        from_the_start = numbers.low in (0, 1)
        if measured and not called:
            return None
        if numbers.consecutive and from_the_start and present >= 5:
            fact = "one for each record without a gap"
        elif numbers.rising and (present >= 100 or (present >= MANY and numbers.straight > 0.99)):
            fact = "none twice and rising from row to row"
        elif present >= MANY and from_the_start and numbers.high < 1.5 * present:
            fact = "none twice, from the first on with few gaps"
        elif called or entity:
            fact = "none twice"
        else:
            return None
        return dropped("identifier", "integer", f"Whole numbers, {fact}", IDENTIFIES)
    # Rising numbers look like groups of rows if they have no gap, or all stand equally often.
    without_gap = numbers.consecutive and numbers.low in (0, 1)
    equally_often = bool((numbers.counts == numbers.counts[0]).all())
    neighbours = distinct >= 10 and numbers.rising and (without_gap or equally_often)
    # In any order, so do those of a panel.
    in_a_panel = without_gap and equally_often and distinct > MANY and numbers.counts[0] > 1
    if (called and (distinct > FEW or distinct >= _NEARLY_ALL * present)) or (
        entity and distinct > FEW
    ):
        few = distinct <= MANY and present > _CLASSIFIES * distinct
        if few and (column.named(say.THINGS) or not called):
            return None  # a few plots, departments or teams: codes; sizes of families
        fact = "identifiers by their name"
    elif neighbours and not measured and column.last not in say.PLACE:
        fact = "each in neighbouring rows only and rising"
    elif in_a_panel and not measured and column.last not in say.TIME | say.PLACE:
        fact = "from the first on without a gap, all equally often"
    else:
        return None
    fact = f"Whole numbers, {column.distinct_words}, {fact}"
    counts_units = identifier or entity or neighbours or bool(in_a_panel)
    return Guess("unit", "repeated identifier", "integer", fact, counts_units=counts_units)


def _weights(column: NamedProfile, numbers: Numbers) -> Guess | None:
    if numbers.low < 0 or column.distinct < 3:
        return None
    probability = column.named({"prob", "probability"}) and numbers.high <= 1
    called = column.named(say.WEIGHT) or probability or column.words == ("w",)
    if column.named(say.WEIGHT_ONLY) or (called and column.named(say.SAMPLING)):
        fact = "by its name"
    elif called and not numbers.whole and 0.99 < numbers.mean < 1.01:
        fact = "by its name and its mean of one"
    elif called and not numbers.whole and numbers.high > _SPREAD * numbers.mean:
        fact = "by its name and how much it varies"
    elif called and numbers.long_fractions > 0.5 and numbers.high > _VARIES * numbers.low:
        fact = "by its name, its many decimals and how much it varies"
    elif _has_the_shape_of_weights(column, numbers):
        fact = "few fractions of many digits, each shared by many records"
    else:
        return None
    fact, why = f"Survey weights: {fact}, {column.distinct_words}", ""
    if probability:
        why = "it looks like the chance to be drawn. One divided by it can be named as weight."
    elif numbers.low <= 0 or column.missing or numbers.infinite:
        why = "a weight must be above 0 in every record. Correct it to use it as weight."
    if why:
        return dropped("weight", "number", fact, why)
    return Guess("weight", "weight", "number", fact)


def _has_the_shape_of_weights(column: NamedProfile, numbers: Numbers) -> bool:
    """Return whether numbers repeat as the weights of strata do, and go beyond 1, unlike shares."""
    steps = np.diff(numbers.levels)
    is_grid = steps.max() - steps.min() <= 1e-3 * steps.max()  # as in a designed table
    return bool(
        column.present >= 500
        and numbers.low > 0
        and numbers.high > max(1, _LEAST_RATIO * numbers.low)
        and column.distinct <= _MOST_WEIGHTS
        and 20 * column.distinct <= column.present
        and 5 * (numbers.counts >= 5).sum() >= 4 * column.distinct
        and not column.named(say.MEASURE)
        and numbers.long_fractions > 0.5
        and not is_grid
    )


def _codes(column: NamedProfile, numbers: Numbers) -> Guess | None:
    """Few distinct numbers that stand for something, and are no small counts."""
    whole, scale = numbers.whole, is_scale(column, numbers)
    words = f"Whole numbers, {column.distinct_words}"
    measured = column.named(say.MEASURE, say.COUNT)
    if whole and column.named(say.CODE):
        return _code(f"{words}, codes by their name", numbers)
    counted = measured or column.named(say.COUNTED)
    which = bool(column.words) and column.words[-1].isdigit()  # ci_dept_1033: of department 1033
    may_count = not counted and (which or column.last not in say.SORT | say.PLACE)
    # Counts of what most records have none of: 0, some 1, fewer 2.
    mostly_zero = numbers.zeros >= 0.8 and int(np.argmax(numbers.counts)) == 0
    rare = mostly_zero and 3 <= column.distinct <= FEW and _has_one_top(numbers)
    if column.battery and may_count and rare:
        if column.distinct >= _STEPS:
            return None
        fact = f"Counts or steps: mostly 0 and larger ones rarer, {column.distinct_words}"
        return protected("code", "ordinal", f"{fact}, as other columns of this range", _IF_CODES)
    if whole and column.last in say.PLACE and numbers.low >= 0 and not measured:
        return _code(f"{words}, places by their name", numbers)
    if column.distinct == 3 < column.present and not counted and not scale:
        three = f"Three different numbers{column.missing_words}"
        if whole:
            return _code(three, numbers)
        return protected("code", "ordinal", three, _IF_CODES)  # a dose, a price: codes are whole
    is_sort = column.last in say.SORT or column.named(say.THINGS)
    if whole and is_sort and column.distinct <= MANY and numbers.low >= 0 and not scale:
        return _code(f"{words}, sorts of something by their name", numbers)
    scale_by_name = scale and column.last in say.SCALE
    if not whole or (column.distinct > FEW and not scale_by_name):
        return None
    if column.named(say.COUNTED, say.MEASURE) or {column.first, column.last} & say.COUNT:
        return None
    from_the_start = numbers.low in (0, 1) and numbers.high <= FEW
    if from_the_start and falls_off(numbers) and not scale_by_name:
        return None
    if scale:
        fact = f"A scale: whole numbers without a gap, {column.distinct_words}"
        return protected("code", "ordinal", fact, _IF_CODES)
    if from_the_start:
        return _code(f"{words}, looks like codes", numbers)
    levels = numbers.levels
    # Amounts that were chosen: multiples in growing steps, as 6, 12, 24.
    by_factors = len(levels) > 3 and (np.diff(levels, 2) > 0).all()
    by_factors = by_factors and np.gcd.reduce(levels.astype(np.int64)) > 1
    if column.distinct < 6 and column.present >= MANY and not by_factors:
        return _code(f"{words}, each in many records", numbers)
    return None


def thins_out(numbers: Numbers) -> bool:
    """Return whether larger numbers are rarer with few exceptions, as counts from 0 or 2 are."""
    often = numbers.counts
    if len(often) < _STEPS or numbers.low not in (0, 2):
        return False
    ranks = np.argsort(np.argsort(often, kind="stable"), kind="stable")
    return bool(np.corrcoef(ranks, np.arange(len(often)))[0, 1] <= _RARER)


def falls_off(numbers: Numbers) -> bool:
    """Return whether frequencies rise to a top among the low numbers and fall to a thin end, as counts do."""
    often = numbers.counts
    least = 5 if numbers.low == 0 else 8  # answers on a scale go from 1 to 7
    top = int(np.argmax(often))
    is_thin = len(often) >= least and 2 * top < len(often) and 10 * often[-1] <= often[top]
    return bool(is_thin and _has_one_top(numbers))


_RULES: tuple[Callable[[NamedProfile, Numbers], Guess | None], ...] = (
    _labelled,
    _calendar,
    _coordinates,
    _weights,
    _identifiers,
    _measure_level,
    _codes,
    _quantity,
)


def _within(values: Any, low: float, high: float) -> bool:
    return bool((values >= low).all() and (values <= high).all())


def says_missing(text: str) -> bool:
    """Return whether a text says that there is no answer.

    >>> says_missing("Don't know"), says_missing("good")
    (True, False)
    """
    return bool(re.search(_NO_ANSWER, text, re.IGNORECASE))


def missing_codes(profile: Profile) -> tuple[float, ...]:
    """Return the numbers of a column that stand for missing values, in ascending order.

    >>> from microagg.drafting.profile import of_values
    >>> ages = np.arange(20, 80).repeat(3)
    >>> missing_codes(of_values(np.append(ages, [999] * 5)))
    (999.0,)
    >>> missing_codes(of_values(np.append(np.arange(99).repeat(3), [99] * 5)))
    ()
    """
    numbers = profile.numbers
    if numbers is None or len(numbers.levels) < 3:
        return ()
    levels, counts = numbers.levels, numbers.counts
    says_so = [v for v, text in profile.facts.value_labels if says_missing(text)]
    labelled = np.isin(levels, [float(v) for v in says_so if isinstance(v, int | float)])
    is_usual = np.isin(levels, say.RULES["missing"]["numbers"])
    candidates = labelled | (is_usual & (counts >= _REPEATED))
    others = levels[~candidates]
    steps = np.diff(others)
    if len(others) >= _FEWEST:
        end = max(len(steps) // 10, 5)
        apart = max(_OF_THE_RANGE * (others[-1] - others[0]), _APART * steps[-end:].max())
        often = counts > counts[np.isin(levels, others[-end:])].max()
        outside = np.where(levels < 0, others[0] >= 0, (levels - others[-1] > apart) & often)
    else:  # whole numbers without a gap from 0 or 1 on: 99 after 0 to 10 children
        few = len(others) >= _FEWEST_WITHOUT_GAP and others[0] in (0, 1) and (steps == 1).all()
        outside = levels > (_FAR * others[-1] if few else np.inf)
    return tuple(levels[labelled | (candidates & outside)].tolist())
