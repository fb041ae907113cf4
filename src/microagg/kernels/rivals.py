"""How many records lie as near to a point as its own twin does."""

from __future__ import annotations

from microagg.kernels.jit import kernel
from microagg.kernels.kd_tree import count_within


@kernel
def credit_links(X, rows, inner, outer, tree, sizes, credit):
    """Set ``credit`` of each row to 1/m if its twin is among the m nearest records, else to 0.

    ``sizes`` are the records that a row of the tree stands for.
    """
    for i in rows:
        m = count_within(tree, X[i], inner[i], outer[i], sizes)
        credit[i] = 1.0 / m if m else 0.0
