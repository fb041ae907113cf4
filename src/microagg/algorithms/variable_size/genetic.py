"""Microaggregation by a genetic algorithm, for small tables.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      A partition is a chromosome: one gene a record, its value the number of a group (N-ary coding,
          up to n/k groups). A population of them begins at random. In each generation parents are
          chosen by roulette wheel, the fitter the likelier; two of them exchange what follows a random
          gene (one-point crossover); some genes take another group (mutation). What then has groups
          of fewer than k records, or of 2k and more, is repaired. The fittest live on.
Cost      O(generations · n²·d) at worst, most generations far less; O(n) memory. A heuristic, and
          one for tables of some dozens of records: for hundreds other methods lose less in less time.
Paper     Solanas, Martínez-Ballesté, Mateo-Sanz & Domingo-Ferrer 2006; we have its abstract:
          it finds the optimum in almost all experiments with small data sets.
Here      The paper's rates and its repair are not known to us; these are our own. Fitness is 1/SSE, so
          that the unit does not matter. A group that lacks at most half of k takes the nearest
          records of groups that can spare them; one that lacks more is dissolved, each record to the
          nearest group; one of 2k or more parts with its farthest record and the k−1 nearest to it.
          Groups are numbered by first appearance, so that equal numbers of two parents mostly
          mean the same region. Of parents and children the best survive, but no two of equal loss.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.result import Outcome
from microagg.base.formatting import plural
from microagg.base.progress import DONE, STOP, State, new_state
from microagg.base.typing import Floats
from microagg.compile.jit import kernel, lean_subkernel
from microagg.errors import InputError
from microagg.kernels.label_loops import sum_up
from microagg.kernels.random_numbers import draw
from microagg.plan.registry import find
from microagg.plan.settings import check_count

_POPULATION = 20
_CROSSOVER = 0.5  # share of the children that have two parents
_AGAIN = 0.5  # chance that after a gene another one mutates


class _GroupSums(NamedTuple):
    """The groups of the chromosome at hand."""

    total: Any  # (groups, d)
    size: Any  # (groups,)
    number: Any  # (groups,) scratch
    square: Any  # (n,) scratch


@lean_subkernel
def _distance(X, sums, i, g):
    """Squared distance of a record to the centroid of a group."""
    square = 0.0
    for j in range(X.shape[1]):
        gap = X[i, j] - sums.total[g, j] / sums.size[g]
        square += gap * gap
    return square


@lean_subkernel
def _move(X, genes, sums, i, g):
    """Let a record go to another group."""
    before = genes[i]
    genes[i] = g
    sums.size[before] -= 1
    sums.size[g] += 1
    for j in range(X.shape[1]):
        sums.total[before, j] -= X[i, j]
        sums.total[g, j] += X[i, j]


@lean_subkernel
def _fill(X, genes, sums, k, g):
    """Give a group the record nearest to it of those that can be spared."""
    best, nearest = 0.0, -1
    for i in range(genes.size):
        if genes[i] != g and sums.size[genes[i]] > k:
            square = _distance(X, sums, i, g)
            if nearest < 0 or square < best:
                best, nearest = square, i
    _move(X, genes, sums, nearest, g)


@lean_subkernel
def _dissolve(X, genes, sums, g):
    """Let each record of a group go to the nearest other one."""
    for i in range(genes.size):
        if genes[i] == g:
            best, nearest = 0.0, -1
            for h in range(sums.size.size):
                if h != g and sums.size[h] > 0:
                    square = _distance(X, sums, i, h)
                    if nearest < 0 or square < best:
                        best, nearest = square, h
            _move(X, genes, sums, i, nearest)


@lean_subkernel
def _halve(X, genes, sums, k, g):
    """Make a group of the record farthest from the centroid of a large one and its k−1 nearest."""
    far, most = -1, 0.0
    for i in range(genes.size):
        if genes[i] == g:
            square = _distance(X, sums, i, g)
            if far < 0 or square > most:
                far, most = i, square
    new = 0
    while sums.size[new] > 0:
        new += 1
    for i in range(genes.size):
        sums.square[i] = 0.0
        for j in range(X.shape[1]):
            sums.square[i] += (X[i, j] - X[far, j]) ** 2
    _move(X, genes, sums, far, new)
    for _ in range(k - 1):
        nearest = -1
        for i in range(genes.size):
            if genes[i] == g and (nearest < 0 or sums.square[i] < sums.square[nearest]):
                nearest = i
        _move(X, genes, sums, nearest, new)


@lean_subkernel
def _repair(X, genes, sums, k):
    """Bring all groups to sizes of k to 2k−1, and number them by first appearance."""
    sum_up(X, genes, sums.size, sums.total)
    while True:
        small, large = -1, 0  # the smallest group that has a record, and the largest one
        for g in range(sums.size.size):
            if sums.size[g] > 0 and (small < 0 or sums.size[g] < sums.size[small]):
                small = g
            if sums.size[g] > sums.size[large]:
                large = g
        if sums.size[small] < k:
            if sums.size[large] > k and 2 * sums.size[small] >= k:
                _fill(X, genes, sums, k, small)
            else:
                _dissolve(X, genes, sums, small)
        elif sums.size[large] >= 2 * k:
            _halve(X, genes, sums, k, large)
        else:
            break
    sums.number[:] = -1
    count = 0
    for i in range(genes.size):
        if sums.number[genes[i]] < 0:
            sums.number[genes[i]] = count
            count += 1
        genes[i] = sums.number[genes[i]]


@lean_subkernel
def _loss(X, genes, sums):
    sum_up(X, genes, sums.size, sums.total)
    sse = 0.0
    for i in range(genes.size):
        sse += _distance(X, sums, i, genes[i])
    return sse


@lean_subkernel
def _spin(sse, random):
    """Choose a parent by roulette wheel: one with half the loss is chosen twice as often."""
    least = sse[0]
    for p in range(_POPULATION):
        least = min(least, sse[p])
    if least == 0.0:
        return 0  # nothing can be fitter, and the fittest comes first
    wheel = 0.0
    for p in range(_POPULATION):
        wheel += least / sse[p]
    rest = draw(random) * wheel
    for p in range(_POPULATION - 1):
        rest -= least / sse[p]
        if rest < 0.0:
            return p
    return _POPULATION - 1


@lean_subkernel
def _bear(population, sse, child, groups, random):
    """Make a child of one parent or of two, with some genes of its own."""
    n = population.shape[1]
    parent = second = _spin(sse, random)
    crossing = n
    if draw(random) < _CROSSOVER:
        second, crossing = _spin(sse, random), int(draw(random) * n)
    for i in range(n):
        population[child, i] = population[parent if i < crossing else second, i]
    while True:
        population[child, int(draw(random) * n)] = int(draw(random) * groups)
        if draw(random) >= _AGAIN:
            return


@lean_subkernel
def _select(population, sse):
    """Bring the best to the front, in order; of equals the first lives, or all would soon be one."""
    for rank in range(_POPULATION):
        best = rank
        for p in range(rank, sse.size):
            if rank > 0 and sse[p] == sse[rank - 1]:
                sse[p] = np.inf
            if sse[p] < sse[best]:
                best = p
        if best != rank:
            sse[rank], sse[best] = sse[best], sse[rank]
            for i in range(population.shape[1]):
                genes = population[rank, i]
                population[rank, i] = population[best, i]
                population[best, i] = genes


@kernel
def _evolve(X, k, population, sse, generations, random, state):
    """Let the first half of the population be parents, and the best of all live on."""
    n, groups = X.shape[0], X.shape[0] // k
    sums = _GroupSums(
        np.empty((groups, X.shape[1])),
        np.empty(groups, np.int64),
        np.empty(groups, np.int64),
        np.empty(n),
    )
    for p in range(_POPULATION):
        sse[p] = _loss(X, population[p], sums)
    _select(population[:_POPULATION], sse[:_POPULATION])
    for generation in range(generations):
        if state[STOP]:
            return
        for child in range(_POPULATION, 2 * _POPULATION):
            _bear(population, sse, child, groups, random)
            _repair(X, population[child], sums, k)
            sse[child] = _loss(X, population[child], sums)
        _select(population, sse)
        state[DONE] = n * (generation + 1) // generations


def genetic(
    X: Floats,
    k: int,
    *,
    generations: int = 2_000,
    random_state: int | None = 0,
    state: State | None = None,
) -> Outcome:
    """Partition a small table by a genetic algorithm.

    Parameters
    ----------
    generations : int
        How many times twenty children are born.
    random_state : seed of the random numbers; None draws a fresh one

    >>> genetic(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0], [29.0]]), 2).labels.tolist()
    [0, 1, 0, 1, 0, 2, 2]
    """
    generations = check_count("generations", generations)
    n, most = len(X), find("genetic").most_records
    if most is not None and n > most:
        raise InputError(
            f"Method 'genetic' takes tables of at most {plural(most, 'record')}; this one has {n:,}. "
            "Use method 'auto', which loses less on large tables and is faster."
        )
    state = new_state() if state is None else state
    rng = np.random.default_rng(random_state)
    population = np.zeros((2 * _POPULATION, n), dtype=np.int64)
    for chromosome in population[:_POPULATION]:
        chromosome[:] = rng.permutation(np.arange(n) % (n // k))
    seed = rng.integers(2**63, size=1).astype(np.uint64)
    _evolve(X, k, population, np.full(2 * _POPULATION, np.inf), generations, seed, state)
    return Outcome(population[0])
