"""How much a group discloses about a confidential column although its records look alike.

k-anonymity hides which record is whose. If all records of a group agree in a confidential column,
their value is known all the same. Measured for each class of equal protected rows:

- distinct l-diversity: the number of different values (Machanavajjhala et al. 2007);
- entropy l-diversity: exp(−Σ p·ln p), the number of values if they were equally frequent;
- t-closeness: the earth mover's distance of the class to the whole table (Li, Li &
  Venkatasubramanian 2007). For numbers, values are ranked 1..m and the distance of two
  neighbours is 1/(m−1): EMD = Σᵢ|Σ_{j≤i}(p_j−q_j)|/(m−1). For other values all are equally far:
  EMD = ½·Σ|p−q|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.grouping.require.from_plan import values_and_numbers
from microagg.kernels.labels import canonical_labels, group_sizes
from microagg.measure.agreement import Agreement, agreement
from microagg.tables.frame import Frame


@dataclass(frozen=True)
class Diversity:
    """A confidential column in the classes of equal protected rows."""

    distinct_l: int
    """Fewest distinct values in a class; 1 gives the value away."""
    entropy_l: float
    """Least exp(entropy) of a class."""
    t: float
    """Largest earth mover's distance of a class to the whole table; 0 to 1, lower is safer."""
    homogeneous: list[int]
    """Classes in which all records agree, numbered by first appearance."""
    records_disclosed: int
    """Records in them."""
    agreement: Agreement
    """Records whose value a class discloses although it is not common."""


def diversity(frame: Frame, name: Any, own: Labels) -> Diversity:
    """Measure a confidential column; ``own`` is the class of each record."""
    codes, levels = frame.levels(name)
    own = canonical_labels(own)
    sizes = group_sizes(own)
    m, g = len(levels), len(sizes)
    # Each combination of class and value, in that order, and how often it occurs.
    key, count = np.unique(own * np.int64(m) + codes, return_counts=True)
    owner, value = key // m, key % m
    share = count / sizes[owner]
    distinct = np.bincount(owner, minlength=g)
    entropy = np.bincount(owner, weights=-share * np.log(share), minlength=g)
    overall = np.bincount(codes, minlength=m) / len(codes)
    t = (_ordered_distance if frame.is_numeric(name) else _equal_distance)(
        owner, value, share, overall, g
    )
    homogeneous = np.flatnonzero(distinct == 1) if m > 1 else np.arange(0)
    return Diversity(
        distinct_l=int(distinct.min()),
        entropy_l=float(np.exp(max(entropy.min(), 0.0))),
        t=float(t.max()),
        homogeneous=homogeneous.tolist(),
        records_disclosed=int(sizes[homogeneous].sum()),
        agreement=agreement_of(frame, name, own),
    )


def agreement_of(frame: Frame, name: Any, own: Labels) -> Agreement:
    """Count the records whose class discloses their value of a confidential column."""
    codes, numbers = values_and_numbers(frame, name)
    return agreement(codes, own, numbers)


def _equal_distance(owner: Labels, value: Labels, share: Floats, overall: Floats, g: int) -> Floats:
    """½·Σ|p−q| of each class: the sum of what it has more of than the table."""
    more = np.maximum(share - overall[value], 0.0)
    return np.asarray(np.bincount(owner, weights=more, minlength=g), dtype=np.float64)


def _ordered_distance(
    owner: Labels, value: Labels, share: Floats, overall: Floats, g: int
) -> Floats:
    """Earth mover's distance of each class to the table, for ranked values.

    A class's distribution function P is constant between its values and the table's function Q
    rises, so that a piece of Σ|P−Q| is two prefix sums of Q, split where Q passes P: O(n log m)
    for all classes together rather than O(gm).
    """
    m = len(overall)
    if m == 1:
        return np.zeros(g)
    Q = np.cumsum(overall)
    Q[-1] = 1.0
    prefix = np.concatenate([[0.0], np.cumsum(Q)])
    starts_class = np.flatnonzero(np.diff(owner, prepend=-1))
    running = np.cumsum(share)
    P = running - np.repeat(
        running[starts_class] - share[starts_class], np.diff(starts_class, append=len(owner))
    )
    last = np.append(owner[1:] != owner[:-1], True)
    P[last] = 1.0
    end = np.where(last, m, np.append(value[1:], m))
    total = np.bincount(owner, weights=_area(P, value, end, Q, prefix), minlength=g)
    head = value[starts_class]  # before its first value a class has P = 0
    total += prefix[head]
    return np.asarray(total / (m - 1))


def _area(P: Floats, start: Labels, end: Labels, Q: Floats, prefix: Floats) -> Floats:
    """Σ|P−Q_i| for start ≤ i < end."""
    crossing = np.clip(np.searchsorted(Q, P), start, end)
    below = P * (crossing - start) - (prefix[crossing] - prefix[start])
    above = (prefix[end] - prefix[crossing]) - P * (end - crossing)
    return np.asarray(below + above)
