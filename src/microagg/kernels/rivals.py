"""How many records lie as near to a point as its own twin does."""

from __future__ import annotations

from microagg.kernels.jit import kernel
from microagg.kernels.kd_search import count_within


@kernel
def credit_links(X, rows, inner, outer, tree, sizes, credit):
    """Set ``credit`` of each row to 1/m if its twin is among the m nearest records, else to 0.

    ``sizes`` are the records that a row of the tree stands for.
    """
    for i in rows:
        m = count_within(tree, X[i], inner[i], outer[i], sizes)
        credit[i] = 1.0 / m if m else 0.0


@kernel
def credit_links_by_scan(X, rows, inner, outer, points, sizes, begin, end, credit):
    """Do the same without a tree: row i is compared with the points from ``begin`` up to ``end``.

    ``begin`` and ``end`` are in the order of ``rows``. Distances are summed as the tree sums them,
    until they are too long.
    """
    for a in range(rows.size):
        i = rows[a]
        m = 0
        for p in range(begin[a], end[a]):
            distance = 0.0
            for j in range(X.shape[1]):
                distance += (points[p, j] - X[i, j]) * (points[p, j] - X[i, j])
                if distance > outer[i]:
                    break
            if distance < inner[i]:
                m = 0
                break
            if distance <= outer[i]:
                m += sizes[p]
        credit[i] = 1.0 / m if m else 0.0
