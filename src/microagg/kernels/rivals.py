"""How many records lie as near to a point as its own twin does: a ball search that gives up early.

The tree is walked with the distance to the twin as the radius from the start. A record that
is clearly nearer ends the search, since then the twin is not among the nearest. The tree is only
read, so that threads can share it.
"""

from __future__ import annotations

import numpy as np

from microagg.kernels.jit import kernel
from microagg.kernels.kd_tree import WIDTH, _distances_to_boxes, _first


@kernel
def _count_near(point, inner, outer, tree, sizes, path, keys, entry):  # type: ignore[no-untyped-def]
    """Records at rows with a squared distance up to ``outer``; 0 if one is under ``inner``."""
    leaves = tree.count.size
    found = 0
    top = 0
    path[0] = tree.low.shape[0] - 1
    _distances_to_boxes(tree, path[0], point, keys[0])
    while top >= 0:
        s, bound = _first(keys[top])
        if bound > outer or bound == np.inf:
            top -= 1
            continue
        keys[top, s] = np.inf
        block = tree.first_child[path[top]] + s
        if block >= leaves:
            top += 1
            path[top] = block - leaves
            _distances_to_boxes(tree, block - leaves, point, keys[top])
            continue
        entry[:] = 0.0
        for j in range(point.size):
            values, x = tree.values[block, j], point[j]
            for s in range(entry.size):
                entry[s] += (values[s] - x) * (values[s] - x)
        for s in range(tree.count[block]):
            if entry[s] < inner:
                return 0
            if entry[s] <= outer:
                found += sizes[tree.rows[block, s]]
    return found


@kernel
def credit_links(X, rows, inner, outer, tree, sizes, credit):  # type: ignore[no-untyped-def]
    """Set ``credit`` of each row to 1/m if its twin is among the m nearest records, else to 0.

    ``sizes`` are the records that a row of the tree stands for.
    """
    levels = tree.keys.shape[0]
    path, keys, entry = np.empty(levels, np.intp), np.empty((levels, WIDTH)), np.empty(WIDTH)
    for i in rows:
        m = _count_near(X[i], inner[i], outer[i], tree, sizes, path, keys, entry)
        credit[i] = 1.0 / m if m else 0.0
