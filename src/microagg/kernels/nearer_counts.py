"""Count the records that lie as near to a point as its own twin does."""

from __future__ import annotations

from microagg.compile.jit import lean_kernel
from microagg.kernels.kd_search import begin, next_leaf


@lean_kernel
def count_by_tree(X, rows, inner, outer, tree, sizes, count):
    """Count the records about as far from each row as its twin: −1 if one is nearer.

    Parameters
    ----------
    X : (n, d) doubles
    rows : those to count for
    inner, outer : (n,) squared distances: a record below the first is nearer, one up to the second counts
    tree : of distinct points, with scratch arrays of this thread
    sizes : (points,) how many records each point stands for
    count : (n,); filled in at ``rows``
    """
    for i in rows:
        near, top = 0, begin(tree, X[i])
        while near >= 0:
            leaf, top = next_leaf(tree, top, X[i], outer[i], tree.leaf_of.size)
            if leaf < 0:
                break
            for s in range(tree.count[leaf]):
                if tree.entry[s] < inner[i]:
                    near = -1
                    break
                if tree.entry[s] <= outer[i]:
                    near += sizes[tree.rows[leaf, s]]
        count[i] = near


@lean_kernel
def count_by_scan(X, rows, inner, outer, points, sizes, count):
    """Do the same without a tree, for few points: each row is compared with all of them.

    Parameters
    ----------
    X, rows, inner, outer, sizes, count : as in :func:`count_by_tree`
    points : (points, d) distinct points
    """
    for i in rows:
        near, p = 0, 0
        while p < points.shape[0] and near >= 0:
            distance, j = 0.0, 0
            while j < X.shape[1] and distance <= outer[i]:
                distance += (points[p, j] - X[i, j]) * (points[p, j] - X[i, j])
                j += 1
            if distance < inner[i]:
                near = -1
            elif distance <= outer[i]:
                near += sizes[p]
            p += 1
        count[i] = near
