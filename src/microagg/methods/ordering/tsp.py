"""tsp: a short tour through all records.

Problem   Put records in a sequence in which neighbours are near, to be cut optimally.
Idea      The tour of a travelling salesman is such a sequence, the same for every k: it is built once
          and cut as often as one likes. Start with nearest point next; then 2-opt (replace two
          steps of the tour by shorter ones) and Or-opt (move up to three records elsewhere) while
          they shorten it. Only steps to one of ten nearest neighbours are tried.
Cost      That of npn-mhm, ten nearest neighbours of each record, and moves that reverse a part of
          the tour, at most half of it. The cut takes O(kn·d).
Paper     FDM, Mortazavi & Jalili 2014, as described in section 3 of Mortazavi 2020.
Here      The tour is opened at its longest step (the first of equals) and runs from its end with the
          lower row. Ties go to the lower row. Or-opt is made of reversals, like 2-opt.
"""

from __future__ import annotations

import numpy as np

from microagg.groups import Floats
from microagg.kernels.jit import kernel
from microagg.kernels.neighbours import nearest_rows
from microagg.methods.ordering.cut import Order
from microagg.methods.ordering.npn import npn_order
from microagg.progress import STOP, State, new_state

_NEAR = 10  # neighbours tried of each record
# A move must shorten the tour by more than this share of the steps it replaces.
_LEAST = 1e-10


@kernel
def _distance(X, a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(X.shape[1]):
        gap = X[a, j] - X[b, j]
        total += gap * gap
    return np.sqrt(total)


@kernel
def _reverse(tour, place, i, j):  # type: ignore[no-untyped-def]
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
        place[b], place[a] = i, j
        i, j = (i + 1) % n, (j - 1) % n


@kernel
def _connect(tour, place, a, b, c, d):  # type: ignore[no-untyped-def]
    """Replace the steps a → b and c → d of the tour by a → c and b → d."""
    _reverse(tour, place, place[b], place[c])


@kernel
def _two_opt(X, near, tour, place, a, touched):  # type: ignore[no-untyped-def]
    """Try to replace a step from a; the ends of what changed go to ``touched``."""
    n = tour.size
    for forward in (True, False):
        b = tour[(place[a] + (1 if forward else -1)) % n]
        ab = _distance(X, a, b)
        for t in range(near.shape[1]):
            c = near[a, t]
            ac = _distance(X, a, c)
            if ac >= ab:
                break
            d = tour[(place[c] + (1 if forward else -1)) % n]
            if c == b or d == a:
                continue
            old = ab + _distance(X, c, d)
            if old - (ac + _distance(X, b, d)) > _LEAST * old:
                if forward:
                    _connect(tour, place, a, b, c, d)
                else:
                    _connect(tour, place, b, a, d, c)
                touched[0], touched[1], touched[2], touched[3] = a, b, c, d
                return True
    return False


@kernel
def _or_opt(X, near, tour, place, a, touched):  # type: ignore[no-untyped-def]
    """Try to move a and up to two of those behind it next to a neighbour c of a."""
    n = tour.size
    for forward in (True, False):
        step = 1 if forward else -1
        p = tour[(place[a] - step) % n]
        for length in range(1, 4):
            if n < length + 3:
                break
            e = tour[(place[a] + step * (length - 1)) % n]
            q = tour[(place[e] + step) % n]
            freed = _distance(X, p, a) + _distance(X, e, q) - _distance(X, p, q)
            for t in range(near.shape[1]):
                c = near[a, t]
                ac = _distance(X, a, c)
                if ac >= freed:
                    break
                if c == p or (step * (place[c] - place[a])) % n < length:
                    continue  # c is there already, or moves along
                for side in (step, -step):
                    f = tour[(place[c] + side) % n]
                    if f == p or (step * (place[f] - place[a])) % n < length:
                        continue
                    gain = freed - (ac + _distance(X, e, f) - _distance(X, c, f))
                    if gain > _LEAST * (freed + ac):
                        _move(tour, place, p, a, e, q, c, f)
                        touched[0], touched[1], touched[2] = p, a, e
                        touched[3], touched[4], touched[5] = q, c, f
                        return True
    return False


@kernel
def _swap_steps(tour, place, a, b, c, d):  # type: ignore[no-untyped-def]
    """Replace the neighbouring pairs a, b and c, d, met in this order, by a, c and b, d."""
    n = tour.size
    if tour[(place[a] + 1) % n] == b:
        _connect(tour, place, a, b, c, d)
    else:
        _connect(tour, place, d, c, b, a)


@kernel
def _move(tour, place, p, a, e, q, c, f):  # type: ignore[no-untyped-def]
    """Take a … e out from between p and q and put it between c and f, a beside c."""
    n = tour.size
    forward = tour[(place[p] + 1) % n] == a
    ahead = (place[c] - place[p]) % n if forward else (place[p] - place[c]) % n
    other = (place[f] - place[p]) % n if forward else (place[p] - place[f]) % n
    if ahead < other:
        # p a…e q…c f: reverse a…c, then the part q…c back: p q…c e…a f needs one more.
        _swap_steps(tour, place, p, a, c, f)  # p c…q e…a f
        _swap_steps(tour, place, p, c, q, e)  # p q…c e…a f
        _swap_steps(tour, place, c, e, a, f)  # p q…c a…e f
    else:
        # p a…e q…f c: p q…f e…a c
        _swap_steps(tour, place, p, a, f, c)  # p f…q e…a c
        _swap_steps(tour, place, p, f, q, e)  # p q…f e…a c


@kernel
def _improve(X, near, tour, place, queue, waits, state):  # type: ignore[no-untyped-def]
    """Shorten the tour until no record has a move that does."""
    n = tour.size
    touched = np.empty(6, np.int64)
    head, count = 0, n
    while count > 0:
        if state[STOP]:
            return
        a = queue[head]
        head, count = (head + 1) % n, count - 1
        waits[a] = False
        better = True
        while better:
            ends = 0
            if _two_opt(X, near, tour, place, a, touched):
                ends = 4
            elif _or_opt(X, near, tour, place, a, touched):
                ends = 6
            better = ends > 0
            for t in range(ends):
                row = touched[t]
                if not waits[row]:
                    waits[row] = True
                    queue[(head + count) % n] = row
                    count += 1


def tour_length(X: Floats, tour: Order) -> float:
    """Length of the closed tour."""
    steps = X[tour] - X[np.roll(tour, -1)]
    return float(np.sqrt(np.einsum("ij,ij->i", steps, steps)).sum())


def tsp_order(X: Floats, k: int, *, progress: State | None = None) -> Order:
    """Order records along a short tour; k has no influence.

    >>> tsp_order(np.array([[0.0, 0], [1, 1], [1, 0], [0, 1], [5, 5]]), 2).tolist()
    [3, 0, 2, 1, 4]
    """
    state = new_state() if progress is None else progress
    n = len(X)
    tour = npn_order(X, k, progress=state)
    if n < 5 or state[STOP]:
        return tour
    near = nearest_rows(X, min(_NEAR, n - 1), state)
    place = np.empty(n, dtype=np.int64)
    place[tour] = np.arange(n)
    _improve(X, near, tour, place, tour.copy(), np.ones(n, dtype=bool), state)
    steps = X[tour] - X[np.roll(tour, -1)]
    longest = int(np.einsum("ij,ij->i", steps, steps).argmax())
    order = np.roll(tour, -longest - 1)
    return np.ascontiguousarray(order if order[0] < order[-1] else order[::-1])
