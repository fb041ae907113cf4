"""tsp: a short tour through all records.

Problem   Put records in a sequence in which neighbours are near, to be cut optimally.
Idea      The tour of a travelling salesman is such a sequence, the same for every k: it is built once
          and cut as often as one likes. Greedy start: take the shortest steps first, wherever they
          do not branch or close a circle, then connect the paths so found, always to the nearest
          end. Then 2-opt (replace two steps of the tour by shorter ones) and Or-opt (move up to
          three records elsewhere) while they shorten it. Only steps to one of ten nearest
          neighbours are tried.
Cost      Mostly that of the ten nearest neighbours of each record. Moves reverse a part of
          the tour, at most half of it. The cut takes O(kn·d).
Paper     FDM, Mortazavi & Jalili 2014, as described in section 3 of Mortazavi 2020.
Here      The tour is opened at its longest step (the first of equals) and runs from its end with the
          lower row. Ties go to the lower row. Or-opt is made of reversals, like 2-opt.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.algorithms.ordering.cut import Order
from microagg.algorithms.ordering.mhm import connect_paths
from microagg.base.progress import DONE, STOP, State, new_state
from microagg.base.typing import Floats
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel
from microagg.kernels.block_tree import nearest_rows
from microagg.kernels.distances import distance

_NEAR = 10  # neighbours tried of each record
_LOOK = 256  # records between two reports
# A move must shorten the tour by more than this share of the steps it replaces.
_LEAST = 1e-10


@lean_kernel
def _greedy(first, second, link, far_end):
    """Take steps in the order given, unless they branch or close a circle.

    ``link`` gets the up to two neighbours of each record, ``far_end`` knows the other end of the
    path that ends at a record.
    """
    for t in range(first.size):
        a, b = first[t], second[t]
        if link[a, 1] < 0 and link[b, 1] < 0 and far_end[a] != b:
            link[a, 0 if link[a, 0] < 0 else 1] = b
            link[b, 0 if link[b, 0] < 0 else 1] = a
            end_a, end_b = far_end[a], far_end[b]
            far_end[end_a], far_end[end_b] = end_b, end_a


def greedy_tour(X: Floats, near: Any, state: State) -> Order:
    """Go the shortest steps first; ``near`` lists the neighbours to which steps are tried."""
    n = len(X)
    first, second = np.repeat(np.arange(n), near.shape[1]), near.ravel().astype(np.int64)
    steps = X[first] - X[second]
    by_length = np.argsort(np.einsum("ij,ij->i", steps, steps), kind="stable")
    link, far_end = np.full((n, 2), -1), np.arange(n)
    _greedy(first[by_length], second[by_length], link, far_end)
    centred = X - X.mean(axis=0)
    out = np.einsum("ij,ij->i", centred, centred)
    first_end = int(
        np.where(link[:, 1] < 0, out, -1.0).argmax()
    )  # the one farthest from the centroid
    return connect_paths(X, link, far_end, first_end, False, state)


@lean_subkernel
def _reverse(tour, position, i, j):
    """Reverse the part of the tour from place i to place j, around the end if need be.

    Reversing the other part instead gives the same tour, so the shorter one is reversed.
    """
    n = tour.size
    inside = (j - i) % n + 1
    if 2 * inside > n:
        i, j = (j + 1) % n, (i - 1) % n
        inside = n - inside
    for _ in range(inside // 2):
        a, b = tour[i], tour[j]
        tour[i], tour[j] = b, a
        position[b], position[a] = i, j
        i, j = (i + 1) % n, (j - 1) % n


@lean_subkernel
def _two_opt(X, near, tour, position, a, touched):
    """Try to replace a step from a; the ends of what changed go to ``touched``."""
    n = tour.size
    for forward in (True, False):
        b = tour[(position[a] + (1 if forward else -1)) % n]
        ab = distance(X, a, b)
        for t in range(near.shape[1]):
            c = near[a, t]
            ac = distance(X, a, c)
            if ac >= ab:
                break
            d = tour[(position[c] + (1 if forward else -1)) % n]
            if c == b or d == a:
                continue
            old = ab + distance(X, c, d)
            if old - (ac + distance(X, b, d)) > _LEAST * old:
                if forward:  # a → b, c → d becomes a → c, b → d
                    _reverse(tour, position, position[b], position[c])
                else:
                    _reverse(tour, position, position[a], position[d])
                touched[0], touched[1], touched[2], touched[3] = a, b, c, d
                return True
    return False


@lean_subkernel
def _or_opt(X, near, tour, position, a, touched):
    """Try to move a and up to two of those behind it next to a neighbour c of a."""
    n = tour.size
    for forward in (True, False):
        step = 1 if forward else -1
        p = tour[(position[a] - step) % n]
        for length in range(1, 4):
            if n < length + 3:
                break
            e = tour[(position[a] + step * (length - 1)) % n]
            q = tour[(position[e] + step) % n]
            freed = distance(X, p, a) + distance(X, e, q) - distance(X, p, q)
            for t in range(near.shape[1]):
                c = near[a, t]
                ac = distance(X, a, c)
                if ac >= freed:
                    break
                if c == p or (step * (position[c] - position[a])) % n < length:
                    continue  # c is there already, or moves along
                for side in (step, -step):
                    f = tour[(position[c] + side) % n]
                    if f == p or (step * (position[f] - position[a])) % n < length:
                        continue
                    gain = freed - (ac + distance(X, e, f) - distance(X, c, f))
                    if gain > _LEAST * (freed + ac):
                        _move(tour, position, p, a, e, q, c, f)
                        touched[0], touched[1], touched[2] = p, a, e
                        touched[3], touched[4], touched[5] = q, c, f
                        return True
    return False


@lean_subkernel
def _swap_steps(tour, position, a, b, c, d):
    """Replace the neighbouring pairs a, b and c, d, met in this order, by a, c and b, d."""
    n = tour.size
    if tour[(position[a] + 1) % n] == b:
        _reverse(tour, position, position[b], position[c])
    else:
        _reverse(tour, position, position[c], position[b])


@lean_subkernel
def _move(tour, position, p, a, e, q, c, f):
    """Take a … e out from between p and q and put it between c and f, a next to c."""
    n = tour.size
    forward = tour[(position[p] + 1) % n] == a
    ahead = (position[c] - position[p]) % n if forward else (position[p] - position[c]) % n
    beyond = (position[f] - position[p]) % n if forward else (position[p] - position[f]) % n
    if ahead < beyond:
        # p a…e q…c f: reverse a…c, then the part q…c back: p q…c e…a f needs one more.
        _swap_steps(tour, position, p, a, c, f)  # p c…q e…a f
        _swap_steps(tour, position, p, c, q, e)  # p q…c e…a f
        _swap_steps(tour, position, c, e, a, f)  # p q…c a…e f
    else:
        # p a…e q…f c: p q…f e…a c
        _swap_steps(tour, position, p, a, f, c)  # p f…q e…a c
        _swap_steps(tour, position, p, f, q, e)  # p q…f e…a c


@kernel
def _improve(X, near, tour, position, queue, waits, state):
    """Shorten the tour until no record has a move that does."""
    n = tour.size
    touched = np.empty(6, np.int64)
    head, count, handled, before = 0, n, 0, state[DONE]
    while count > 0:
        if state[STOP]:
            return
        if handled % _LOOK == 0:
            share = handled / (handled + count)
            state[DONE] = max(state[DONE], before + np.int64((n - before) * share))
        handled += 1
        a = queue[head]
        head, count = (head + 1) % n, count - 1
        waits[a] = False
        better = True
        while better:
            ends = 0
            if _two_opt(X, near, tour, position, a, touched):
                ends = 4
            elif _or_opt(X, near, tour, position, a, touched):
                ends = 6
            better = ends > 0
            for t in range(ends):
                row = touched[t]
                if not waits[row]:
                    waits[row] = True
                    queue[(head + count) % n] = row
                    count += 1


def tsp_order(X: Floats, k: int, *, state: State | None = None) -> Order:
    """Order records along a short tour; k has no influence.

    >>> tsp_order(np.array([[0.0, 0], [1, 1], [1, 0], [0, 1], [5, 5]]), 2).tolist()
    [3, 0, 2, 1, 4]
    """
    state = new_state() if state is None else state
    n = len(X)
    near, _ = nearest_rows(X, min(_NEAR, n - 1), state, n - n // 8)
    tour = greedy_tour(X, near, state)
    if state[STOP]:
        return tour
    position = np.empty(n, dtype=np.int64)
    position[tour] = np.arange(n)
    if n >= 5:
        _improve(X, near, tour, position, tour.copy(), np.ones(n, dtype=bool), state)
    steps = X[tour] - X[np.roll(tour, -1)]
    longest = int(np.einsum("ij,ij->i", steps, steps).argmax())
    order = np.roll(tour, -longest - 1)
    return np.ascontiguousarray(order if order[0] < order[-1] else order[::-1])
