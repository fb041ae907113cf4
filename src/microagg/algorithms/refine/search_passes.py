"""Passes over all patches of a table while the temperature falls: the frame of every search.

A pass splits the groups into patches of neighbours (patches.py), searches each patch by itself, and puts
the new groups together. The next pass splits anew, so that no border lasts. The best groups of all passes
are returned, never groups worse than those given.

A patch's random numbers depend on the seed, the pass and the patch alone: the result is the same however many
threads there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.anneal import Heat, PoolSettings, anneal_patches
from microagg.algorithms.refine.large import anneal_large_patches, part_pairs
from microagg.algorithms.refine.patches import (
    NewGroups,
    PackedGroups,
    Patches,
    compacted,
    grouped,
    groups_in_a_patch,
    labelled,
    split_groups,
)
from microagg.base.progress import STOP, State, tell_best
from microagg.base.typing import Floats, Labels
from microagg.compile.threads import share_out
from microagg.kernels.labels import sum_of_squares
from microagg.kernels.require_kinds import Demands, no_demands
from microagg.plan.settings import LARGE_K

_HOTTEST = 1.5
_STEPS_IN_A_PASS = 1.5  # for each group at least: less would not pay for the splitting
IN_A_PATCH = (16, 128)  # fewest and most groups
_HEATS = (0.4, 0.12, 0.24, 0.06)  # shares of the first turn's temperature, for the turns after it


class AnnealBudget(NamedTuple):
    """Limits on the length of an anneal."""

    each: float  # steps for each group
    table: float  # steps for the table, times the records of a group: a step costs about that
    most: float  # steps for each group at most, so that a small table is done at once
    passes: int  # at most
    hot: float  # temperature to begin with, in units of the mean SSE of a group and of √steps
    groups: int = 0  # in a pool at most
    records: int = 0  # in a pool, about
    sweeps: int = 0  # over pairs of large groups, before and after they are annealed

    def in_turn(self, turn: int, share: float = 1.0) -> AnnealBudget:
        """Return the budget of a share of a turn: later ones are longer and begin less hot than the first."""
        length = length_of(turn) * share
        return self._replace(
            each=self.each * length,
            table=self.table * length,
            most=self.most * length,
            hot=self.hot if turn == 0 else self.hot * _HEATS[(turn - 1) % len(_HEATS)],
        )


def length_of(turn: int) -> int:
    """Return how many times as long as the first a turn is."""
    return 1 if turn == 0 else 2 ** ((turn - 1) // 2)


class Run(NamedTuple):
    """The settings that stay the same from pass to pass."""

    X: Floats
    k: int
    seed: int
    state: State
    weights: Floats | None = None  # (n,); None where all records weigh the same
    demands: Demands | None = None  # in addition to k; None: groups have at most 2k − 1 records

    def loss(self, labels: Labels) -> float:
        """Return the SSE of a partition."""
        return sum_of_squares(self.X, labels, self.weights)


def search_patches_once(
    run: Run,
    old: PackedGroups,
    turn: int,
    in_a_patch: tuple[int, int],
    search_patches: Callable[[Patches, int, int], Any],
    done: int = 0,
) -> tuple[PackedGroups, float]:
    """Search every patch once; return the new groups and what they lose.

    ``search_patches`` gets the patches, the first of them to search and where to end. The records done rise
    by ``done`` on the way.
    """
    n, d = run.X.shape
    rng = np.random.default_rng([run.seed, turn])
    random = rng.integers(0, 2**63, size=1, dtype=np.uint64)
    most = groups_in_a_patch(len(old.centroid), *in_a_patch)
    groups, first = split_groups(old.centroid, most, random)
    count = len(first) - 1
    seeds = rng.integers(0, 2**63, size=count, dtype=np.uint64)
    records = np.append(0, np.cumsum(np.diff(old.start)[groups]))[first]
    places = n // run.k
    new = NewGroups(np.empty(n, np.intp), np.zeros(places, np.intp), np.empty((places, d)))
    patches = Patches(old, groups, first, records, seeds, new, np.full(count, np.nan))

    def work(begin: int, end: int, _: int = 0) -> None:
        search_patches(patches, begin, end)

    share_out(work, count, run.state, done, at_once=1, shrinking=True)
    for patch in np.flatnonzero(np.isnan(patches.loss)):  # stopped: these patches stay as they are
        work(int(patch), int(patch) + 1)
    return compacted(new), float(patches.loss.sum())


def best_of_passes(
    state: State,
    groups: PackedGroups,
    least: float,
    turns: range,
    search_once: Callable[[PackedGroups, int], tuple[PackedGroups, float]],
) -> tuple[PackedGroups, PackedGroups]:
    """Make some passes: return the groups that lose least, and the last ones.

    The given groups lose ``least``. ``search_once`` gets groups and the number of the pass, and returns
    other groups and what they lose.
    """
    best = groups
    for turn in turns:
        if state[STOP] or least == 0:
            break
        groups, loss = search_once(groups, turn)
        if loss < least:
            best, least = groups, loss
    return best, groups


def heat_of(turn: int, passes: int, hot: float, unit: float) -> Heat:
    """Return the temperatures of a pass; the last pass ends at 0."""
    return Heat(hot * (1 - turn / passes) ** 2, hot * (1 - (turn + 1) / passes) ** 2, unit)


def anneal_in_passes(
    run: Run,
    labels: Labels,
    budget: AnnealBudget,
    search: PoolSettings,
    steps: float,
    records: int,
    *,
    span: tuple[float, float] = (0.0, 1.0),
    first_turn: int = 0,
) -> tuple[Labels, Labels]:
    """Anneal labels 0, 1, … in passes: return the best partition seen, and the last.

    Parameters
    ----------
    run : the records, and what stays the same
    labels : (n,) int64, groups 0, 1, …; never written to
    budget : passes at most, and the temperature to begin with
    search : limits on pools and groups
    steps : for each group, in all passes together
    records : by how many the records done rise
    span : the passes to make, of all from 0 to 1
    first_turn : the pass whose random numbers the first one has
    """
    least, n_groups = run.loss(labels), int(labels.max()) + 1
    passes = min(budget.passes, int(steps / _STEPS_IN_A_PASS) + 1)
    in_a_pass = steps / passes
    # The more steps there are, the slower it cools, and the more of its order it may lose at first.
    hot = min(budget.hot * np.sqrt(in_a_pass * passes), _HOTTEST)
    X, weights, demands = run.X, run.weights, run.demands
    if weights is not None and demands is None:
        demands = no_demands(len(X))  # compiled once for weights, with requirements or without

    def search_once(old: PackedGroups, turn: int) -> tuple[PackedGroups, float]:
        rest = (in_a_pass, heat_of(turn, passes, hot, least / n_groups), run.state)

        def search_patches(patches: Patches, begin: int, end: int) -> None:
            if run.k > LARGE_K and run.demands is None:
                anneal_large_patches(X, weights, patches, begin, end, run.k, search.groups, *rest)
            else:
                anneal_patches(X, weights, demands, patches, begin, end, run.k, search, *rest)

        done = records * (turn + 1) // passes - records * turn // passes
        improved, sse = search_patches_once(
            run, old, first_turn + turn, IN_A_PATCH, search_patches, done
        )
        tell_best(run.state, sse)
        return improved, sse

    turns = range(round(span[0] * passes), round(span[1] * passes))
    best, last = best_of_passes(run.state, grouped(X, labels, n_groups), least, turns, search_once)
    return labelled(best), labelled(last)


def parted(run: Run, labels: Labels, budget: AnnealBudget) -> Labels:
    """Part pairs of neighbouring groups anew, where groups are large; never worse than given."""
    if not budget.sweeps or run.state[STOP]:
        return labels
    improved = part_pairs(run.X, run.weights, labels, run.k, budget.sweeps, run.seed, run.state)
    return improved if run.loss(improved) < run.loss(labels) else labels


def anneal_table(
    run: Run,
    labels: Labels,
    budget: AnnealBudget,
    records: int,
    span: tuple[float, float] = (0.0, 1.0),
) -> tuple[Labels, Labels]:
    """Anneal groups of k to 2k−1 records as :func:`anneal_in_passes` does."""
    most = max(2, min(budget.groups, budget.records // run.k))
    search = PoolSettings(most, most * (2 * run.k - 1), True, 0.0)
    n_groups = int(labels.max()) + 1
    steps = min(budget.each + budget.table / run.k / n_groups, budget.most)
    best, last = anneal_in_passes(run, labels, budget, search, steps, records, span=span)
    return parted(run, best, budget), last
