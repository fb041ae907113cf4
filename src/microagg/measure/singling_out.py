"""Singling out: predicates, made from the released file alone, that hold for exactly one person.

Predicates  Of one column: a value that one distinct released row alone has, or an end of the column's range.
            Of several: a random released row gives its values of random columns; numbers become "at least"
            above the column's median and "at most" below it, so that few records satisfy them. Kept are
            predicates that hold for exactly one distinct released row; k equal rows count once, since a
            release of means would otherwise give none.
Success     The predicate holds for exactly one original.
Controls    The same predicates on people who are not in the file. A predicate that holds for a share w of the
            population singles out one of n with chance n·w·(1 − w)^(n−1), which depends on n. With fewer
            controls than originals, w is taken to vary over predicates as a gamma distribution, fitted to
            the numbers of controls that satisfy each predicate (which are then negative binomial), and the
            rate is the one expected among as many people as there are originals, less its bias as seen in
            the deals below. With more controls, it is the mean over all samples of that size.
Baseline    Predicates of random columns, values and operators.
Errors      Predicates overlap, so that one person makes several of them succeed or fail together. Originals
            and controls are therefore dealt to the two tables anew, at random, many times: if the difference
            of the two rates varies f times as much as that of independent predicates would, intervals are
            those of 1/f as many.
Papers      Cohen & Nissim 2020, Towards formalizing the GDPR's notion of singling out; Giomi, Boenisch,
            Wehmeyer & Tasnádi 2023, A unified framework for quantifying privacy risk in synthetic data.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.measure.attack_rates import AttackFigure, Rate
from microagg.measure.attack_tables import AttackTables

_COLUMNS = 3  # of a predicate of several columns
_TRIES = 5  # predicates tried for each one wanted, in a round
_ROUNDS = 8  # at most, until there are as many as wanted
_MATCHES = 32  # of a predicate among all people; one with more singles out nobody, nearly surely
_DEALS = 100  # of originals and controls to the two tables, for the errors


class _Predicates(NamedTuple):
    columns: Any  # (q, w) whole numbers, −1 for none
    operators: Any  # (q, w) whole numbers
    values: Any  # (q, w) coordinates

    def take(self, rows: Labels | slice) -> _Predicates:
        return _Predicates(*(array[rows] for array in self))

    def distinct(self) -> _Predicates:
        """Return each predicate once, in the order of its first appearance."""
        return self.take(np.sort(np.unique(np.hstack(self), axis=0, return_index=True)[1]))


def single_out(tables: AttackTables, attacks: int, seed: int) -> dict[str, AttackFigure | None]:
    """Attack by ``attacks`` predicates of one column, and as many of several; fewer if the file gives fewer.

    Predicates are drawn by ``seed``. Returns ``one_column`` and ``several_columns``; None where the file
    gives no such predicate.
    """
    rng = np.random.default_rng(seed)
    distinct, _ = tables.released.distinct()
    numbers = np.array([kind != "category" for kind in tables.kinds])
    several = _of_several(distinct, numbers, attacks, rng) if len(numbers) > 1 else None
    one = _of_one(distinct, numbers, attacks, rng)
    return {
        "one_column": _judge(tables, one, distinct, numbers, rng),
        "several_columns": several and _judge(tables, several, distinct, numbers, rng),
    }


def _of_one(
    distinct: Floats, numbers: Labels, wanted: int, rng: np.random.Generator
) -> _Predicates:
    from microagg.kernels.attack_loops import AT_LEAST, AT_MOST, EQUAL, MISSING

    candidates = []
    for j, column in enumerate(distinct.T):
        values, often = np.unique(column, return_counts=True)
        candidates += [(j, EQUAL, value) for value in values[often == 1]]
        there = values[values != MISSING]
        if numbers[j] and len(there):
            candidates += [(j, AT_MOST, there[0]), (j, AT_LEAST, there[-1])]
    chosen = np.array(candidates, np.float64).reshape(-1, 3)[rng.permutation(len(candidates))]
    columns, operators = chosen[:, :2].astype(np.int64).T
    made = _Predicates(columns[:, None], operators[:, None], chosen[:, 2:])
    return made.take(np.flatnonzero(_matches(distinct, made, 2)[1] == 1)[:wanted])


def _of_several(
    distinct: Floats, numbers: Labels, wanted: int, rng: np.random.Generator
) -> _Predicates:
    from microagg.kernels.attack_loops import AT_LEAST, AT_MOST, EQUAL, MISSING

    d = distinct.shape[1]
    width = min(_COLUMNS, d)
    medians = [np.median(c[c != MISSING]) if (c != MISSING).any() else 0 for c in distinct.T]
    kept = _Predicates(*(np.zeros((0, width), kind) for kind in (np.int64, np.int64, np.float64)))
    for _ in range(_ROUNDS):
        columns = np.sort(np.argsort(rng.random((wanted * _TRIES, d)), axis=1)[:, :width], axis=1)
        rows = distinct[rng.integers(len(distinct), size=len(columns))]
        values = np.take_along_axis(rows, columns, axis=1)
        ordered = numbers[columns] & (values != MISSING)
        towards = np.where(values > np.array(medians)[columns], AT_LEAST, AT_MOST)
        made = _Predicates(columns, np.where(ordered, towards, EQUAL), values).distinct()
        made = made.take(np.flatnonzero(_matches(distinct, made, 2)[1] == 1))
        kept = _Predicates(*map(np.concatenate, zip(kept, made, strict=True))).distinct()
        if len(kept.columns) >= wanted:
            break
    return kept.take(slice(wanted))


def _matches(rows: Floats, predicates: _Predicates, most: int) -> tuple[Labels, Labels]:
    """Return up to ``most`` records for which each predicate holds, (q, most), and their number, (q,)."""
    from microagg.compile.threads import share_with_helpers
    from microagg.kernels.attack_loops import list_matches

    columns = np.ascontiguousarray(rows.T)
    count = np.zeros(len(predicates.columns), np.int64)
    matches = np.zeros((len(count), most), np.int64)

    def work(begin: int, end: int, _: int) -> None:
        some = predicates.take(np.arange(begin, end))
        list_matches(columns, *some, matches[begin:end], count[begin:end])

    share_with_helpers(work, len(count), at_once=100)
    return matches, count


def _judge(
    tables: AttackTables,
    predicates: _Predicates,
    distinct: Floats,
    numbers: Labels,
    rng: np.random.Generator,
) -> AttackFigure | None:
    """Compare predicates on originals, on controls, and random predicates."""
    made, n = len(predicates.columns), len(tables.original)
    if not made:
        return None
    # Random columns, operators and values.
    shape = predicates.columns.shape
    columns = np.argsort(rng.random((made, len(numbers))), axis=1)[:, : shape[1]]
    values = distinct[rng.integers(len(distinct), size=shape), columns]
    naive = _Predicates(columns, np.where(numbers[columns], rng.integers(0, 3, shape), 0), values)
    originals = tables.original.coordinates
    baseline = Rate.of((_matches(originals, naive, 2)[1] == 1).mean(), made)
    among, count = _matches(originals, predicates, _MATCHES)
    attack = (count == 1).mean()
    if tables.control is None:
        return AttackFigure(Rate.of(attack, made), baseline)
    controls = len(tables.control)
    others, count_of_controls = _matches(tables.control.coordinates, predicates, _MATCHES)
    control = _control_rate(count_of_controls, controls, n)
    # All people who match, originals first; the place after the last one matches nobody.
    nobody = n + controls
    places = np.arange(_MATCHES)
    people = np.hstack(
        [
            np.where(places < count[:, None], among, nobody),
            np.where(places < count_of_controls[:, None], n + others, nobody),
        ]
    )
    overlap, bias = _overlap(people, n, controls, rng)
    weight = made / overlap
    if controls < n:  # else the rate has no bias
        control = min(max(control + bias, 0.0), 1.0)
    return AttackFigure(Rate.of(attack, made, weight), baseline, Rate.of(control, made, weight))


def _overlap(
    people: Labels, n: int, controls: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return by what factor overlap makes the difference of rates vary more, and the mean of it.

    ``people`` (q, w) are the originals and controls that match each predicate, n + controls for none.
    """
    dealt = np.zeros(n + controls + 1, dtype=bool)
    differences, variances = [], []
    for _ in range(_DEALS):
        dealt[:-1] = rng.permutation(n + controls) < n
        here = dealt[people].sum(axis=1)
        there = (people < n + controls).sum(axis=1) - here
        attack, control = float((here == 1).mean()), _control_rate(there, controls, n)
        differences.append(attack - control)
        variances.append((attack * (1 - attack) + control * (1 - control)) / len(people))
    expected = float(np.mean(variances))
    factor = max(1.0, float(np.var(differences)) / expected) if expected > 0 else 1.0
    return factor, float(np.mean(differences))


def _control_rate(counts: Labels, controls: int, n: int) -> float:
    """Return the expected share of predicates that hold for exactly one of n people of the population.

    ``counts`` (q,) are the controls for which each predicate holds.
    """
    if controls == n:
        return float((counts == 1).mean())
    if controls > n:
        from scipy.stats import hypergeom

        # Exactly one of the matching controls is in a random sample of n of them.
        seen, often = np.unique(counts, return_counts=True)
        return float(hypergeom.pmf(1, controls, seen, n) @ often / len(counts))
    mean, variance = float(counts.mean()), float(counts.var())
    if mean == 0:
        return 0.0
    # Moments: the variance of a negative binomial with mean m and shape a is m + m²/a.
    shape = mean**2 / (variance - mean) if variance > mean else 1e6
    scaled = mean * n / controls
    return float(scaled * (1 + scaled / shape) ** (-shape - 1))
