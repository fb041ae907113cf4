"""Numbers that stand for missing values: −8, −9, 99, 999 that stand apart and are labelled or repeat.

A code is one of the usual ones (a negative number among positive ones, or a number of nines or eights) and
lies outside all other values, farther than these lie from each other. It has a value label that says so,
or it stands in several records, more than its neighbours do. So 99 among ages from 0 to 98 is an age.
"""

from __future__ import annotations

import re

import numpy as np

from microagg.base.typing import Floats
from microagg.drafting.profile import Numbers, Profile

# Codes of one digit, but for −7, −8 and −9, and 77 and 88 are too common as values: they need a label.
_USUAL = (-7.0, -8.0, -9.0, -77.0, -88.0, -97.0, -98.0, -99.0, -777.0, -888.0, -997.0, -998.0, -999.0,
          -9998.0, -9999.0, -99999.0, 96.0, 97.0, 98.0, 99.0, 777.0, 888.0, 996.0, 997.0, 998.0, 999.0,
          7777.0, 8888.0, 9997.0, 9998.0, 9999.0, 99998.0, 99999.0, 999998.0, 999999.0, 9999998.0,
          9999999.0, 99999999.0, 999999999.0)  # fmt: skip
_SAYS_SO = re.compile(
    r"missing|refus|don'?t know|do not know|\bdk\b|no answer|not answered|unanswered|not applicable|"
    r"inapplicable|\bn/?a\b|\biap\b|unknown|not stated|not asked|not reported|not available|skipped|"
    r"keine angabe|weiss nicht|weiß nicht|verweigert|trifft nicht zu|sans reponse|ne sait pas|no contesta",
    re.IGNORECASE,
)
_REPEATED = 3  # records from which on a value is no accident
_FEWEST = 20  # other values of a quantity, below which the shape says nothing
_APART = 3.0  # times the largest step between the other values at that end
_OF_THE_RANGE = 0.1


def says_missing(text: str) -> bool:
    """Return whether a text says that there is no answer.

    >>> says_missing("Don't know"), says_missing("good")
    (True, False)
    """
    return bool(_SAYS_SO.search(text))


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
    labels = {v: text for v, text in profile.facts.value_labels if isinstance(v, int | float)}
    levels, counts = numbers.levels, numbers.counts
    labelled = np.isin(levels, [float(v) for v, text in labels.items() if says_missing(text)])
    usual = np.isin(levels, _USUAL) & (counts >= _REPEATED)
    found = _standing_apart(numbers, levels[usual | labelled]) | set(levels[labelled].tolist())
    return tuple(sorted(found))


def _standing_apart(numbers: Numbers, candidates: Floats) -> set[float]:
    """Return candidates that lie outside all other values, farther than these lie from each other."""
    levels, counts = numbers.levels, numbers.counts
    others = levels[~np.isin(levels, candidates)]
    if len(others) < _FEWEST:
        return set()
    span, steps = others[-1] - others[0], np.diff(others)
    tenth = max(len(steps) // 10, 5)
    least = _OF_THE_RANGE * span
    found = set()
    for code in candidates:
        often = counts[levels == code][0]
        if code < 0:
            apart = others[0] >= 0
        else:
            ends = counts[np.isin(levels, others[-tenth:])]
            apart = (
                code - others[-1] > max(least, _APART * steps[-tenth:].max()) and often > ends.max()
            )
        if apart:
            found.add(float(code))
    return found
