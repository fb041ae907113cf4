"""How many records lie as near to a point as its own twin does: a ball search that gives up early.

A k-d tree is walked with the distance to the twin as the radius from the start. A record that
is clearly nearer ends the search, since then the twin is not among the nearest.
"""

from __future__ import annotations

import numpy as np

from microagg.kernels.jit import kernel

_DEEPEST = 128  # a stack holds at most one node a level


@kernel
def _squared_distance_to_box(x, low, high):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(x.size):
        if x[j] < low[j]:
            total += (low[j] - x[j]) * (low[j] - x[j])
        elif x[j] > high[j]:
            total += (x[j] - high[j]) * (x[j] - high[j])
    return total


@kernel
def _count_near(x, inner, outer, points, sizes, start, end, leaf, low, high, stack):  # type: ignore[no-untyped-def]
    """Records of points with a squared distance up to ``outer``; 0 if one is under ``inner``."""
    found = 0
    depth = 1
    stack[0] = 0
    while depth:
        depth -= 1
        node = stack[depth]
        if leaf[node]:
            for p in range(start[node], end[node]):
                distance = 0.0
                for j in range(x.size):
                    distance += (x[j] - points[p, j]) * (x[j] - points[p, j])
                    if distance > outer:
                        break
                if distance < inner:
                    return 0
                if distance <= outer:
                    found += sizes[p]
            continue
        near, far = 2 * node + 1, 2 * node + 2
        a = _squared_distance_to_box(x, low[near], high[near])
        b = _squared_distance_to_box(x, low[far], high[far])
        if b < a:
            near, far, a, b = far, near, b, a
        if b <= outer:
            stack[depth] = far
            depth += 1
        if a <= outer:
            stack[depth] = near
            depth += 1
    return found


@kernel
def credit_links(X, rows, inner, outer, points, sizes, start, end, leaf, low, high, credit):  # type: ignore[no-untyped-def]
    """Set ``credit`` of each row to 1/m if its twin is among the m nearest records, else to 0."""
    stack = np.empty(_DEEPEST, dtype=np.intp)
    for r in range(rows.size):
        i = rows[r]
        m = _count_near(X[i], inner[i], outer[i], points, sizes, start, end, leaf, low, high, stack)
        credit[i] = 1.0 / m if m else 0.0
