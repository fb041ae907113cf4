"""Which balls hold a point: a tree over balls, for few balls and a great many points.

A node has the smallest box around its balls. Points are looked up one after the other, so that the tree
stays in the cache however many there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.groups import Floats
from microagg.kernels.jit import kernel

__all__ = ["BallTree", "build_balls", "count_rivals"]

_LEAF = 8
_DEPTH = 64


class BallTree(NamedTuple):
    """Nodes are numbered from the root; the left child of a node follows it."""

    low: Any  # (nodes, d)
    high: Any  # (nodes, d)
    right: Any  # (nodes,) the other child; 0: a leaf
    begin: Any  # (nodes,) a leaf's balls are rows[begin:end]
    end: Any  # (nodes,)
    rows: Any  # (balls,) row numbers


def build_balls(centres: Floats, squares: Floats, rows: Any) -> BallTree:
    """Build the tree of some rows, of balls with these centres, (n, d), and squared radii, (n,).

    The root's box is a little wider than rounding asks for.
    """
    radius = np.sqrt(squares) * (1 + 1e-12) + 1e-300
    margin = 1e-14 * np.abs(centres)
    low = centres - radius[:, None] - margin
    high = centres + radius[:, None] + margin
    rows = np.array(rows, dtype=np.intp)
    nodes: list[list[int]] = []  # right, begin, end
    boxes: list[tuple[Floats, Floats]] = []

    def add(begin: int, end: int) -> None:
        node = len(nodes)
        nodes.append([0, begin, end])
        own = rows[begin:end]
        boxes.append((low[own].min(axis=0), high[own].max(axis=0)))
        if end - begin <= _LEAF:
            return
        widest = int(np.argmax(np.ptp(centres[own], axis=0)))
        rows[begin:end] = own[np.argsort(centres[own, widest], kind="stable")]
        middle = (begin + end) // 2
        add(begin, middle)
        nodes[node][0] = len(nodes)
        add(middle, end)

    if len(rows):
        add(0, len(rows))
    table = np.array(nodes, dtype=np.intp).reshape(-1, 3)
    d = centres.shape[1]
    return BallTree(
        np.array([box[0] for box in boxes]).reshape(-1, d),
        np.array([box[1] for box in boxes]).reshape(-1, d),
        right=table[:, 0].copy(),
        begin=table[:, 1].copy(),
        end=table[:, 2].copy(),
        rows=rows,
    )


@kernel
def count_rivals(tree, centres, inner, outer, points, sizes, count):
    """Add to ``count`` of each row the sizes of the points that are as far from it as its radii say.

    −1 instead, and for good, where a point is nearer.
    """
    d = points.shape[1]
    stack = np.empty(_DEPTH, np.intp)
    for p in range(points.shape[0]):
        stack[0], top = 0, min(tree.right.size, 1)
        while top > 0:
            top -= 1
            node = stack[top]
            inside = True
            for j in range(d):
                if points[p, j] < tree.low[node, j] or points[p, j] > tree.high[node, j]:
                    inside = False
                    break
            if not inside:
                continue
            if tree.right[node] > 0:
                stack[top], stack[top + 1] = tree.right[node], node + 1
                top += 2
                continue
            for a in range(tree.begin[node], tree.end[node]):
                i = tree.rows[a]
                if count[i] < 0:
                    continue
                distance = 0.0
                for j in range(d):
                    distance += (points[p, j] - centres[i, j]) * (points[p, j] - centres[i, j])
                    if distance > outer[i]:
                        break
                if distance < inner[i]:
                    count[i] = -1
                elif distance <= outer[i]:
                    count[i] += sizes[p]
