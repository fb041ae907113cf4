"""Blocks: a table cut into parts that a worker solves by itself, and cut anew along other borders.

Problem   Groups of a table that no single process can hold.
Idea      A sample of the records is halved again and again across random directions; the tree that
          comes of it sends every record of the table to a block of about 2^17 neighbours. Each block
          is partitioned by itself. Then the groups, by their centroids, are sent through another tree with
          other directions, and every new block is refined: what the borders of the first blocks
          cost is made up for in two such rounds.
          Strata and patterns of missing values come first: large ones have trees of their own, small ones
          are packed together, since groups never cross them.
Cost      Linear in the records, apart from the sample; one move of the records a round.
Same      Which records are in a block depends on the plan, its seed and the records alone: samples are
          drawn by keys of rows, and a block is solved in the order of these keys. Engines, workers and
          the order of files make no difference.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from microagg.encode.space import Space
from microagg.errors import InputError
from microagg.grouping import group
from microagg.groups import Floats, Labels, canonical_labels
from microagg.kernels.halving_tree import leaves_of
from microagg.methods.refine.refine import refine
from microagg.registry import find
from microagg.require.distinct import Distinct
from microagg.require.dominance import LargestShare, PPercent
from microagg.require.entropy import Entropy
from microagg.require.individual_risk import IndividualRisk
from microagg.require.population import Population
from microagg.require.recursive import Recursive
from microagg.require.requirement import Requirement
from microagg.require.search import satisfy
from microagg.require.units import Units
from microagg.scale_out.recipe import Recipe, Records, Words
from microagg.words import names

__all__ = [
    "LEAF",
    "BlockPlan",
    "Moved",
    "Tree",
    "centroids",
    "in_order",
    "in_sample",
    "plan_blocks",
    "refine_block",
    "requirements",
    "sample_share",
    "solve_block",
    "work_on_block",
]

LEAF = 1 << 17  # records in a block, about
_ROUNDS = 2  # of re-blocking
_SAMPLE = 1 << 17  # records from which trees are made, at least
_SAMPLE_A_LEAF = 64
_MOST = 4  # times the size of a leaf, beyond which it is dealt out by the keys of its records


@dataclass(frozen=True, eq=False)
class Tree:
    """A halving tree over coordinates: node i has the children 2i + 1 and 2i + 2, leaves come last."""

    directions: Floats  # (inner, c)
    thresholds: Floats  # (inner,)

    def leaves(self, X: Floats) -> Labels:
        """Leaf of each row."""
        found = np.zeros(len(X), dtype=np.int64)
        leaves_of(np.ascontiguousarray(X), self.directions, self.thresholds, found)
        return found

    @property
    def n_leaves(self) -> int:
        """Number of leaves, a power of two."""
        return len(self.thresholds) + 1


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """Which block each record, or in later rounds each group, is in.

    Attributes
    ----------
    first : (cells,) the first block of each cell
    trees : for each round, the tree of each cell; None where the whole cell is in one block
    joined : for each cell, the block of each leaf of its first tree, counted from its first block
    dealt : for each block of the first round, into how many parts it is dealt by the keys of its records
    """

    seed: int
    first: tuple[int, ...]
    trees: tuple[tuple[Tree | None, ...], ...]
    joined: tuple[tuple[int, ...], ...]
    dealt: tuple[int, ...]

    @property
    def rounds(self) -> int:
        """Rounds of re-blocking; none if every cell is in one block."""
        return len(self.trees) - 1 if any(tree is not None for tree in self.trees[0]) else 0

    @property
    def n_blocks(self) -> int:
        """Number of blocks in each round, some of which may be empty."""
        return int(self._starts[-1])

    @property
    def _starts(self) -> Labels:
        return np.append(0, np.cumsum(self.dealt))

    def is_done(self, number: int) -> bool:
        """Whether a block holds whole cells, for which no other border could be better."""
        cells = [cell for cell, start in enumerate(self.first) if self._starts[start] == number]
        return bool(cells) and all(self.trees[0][cell] is None for cell in cells)

    def assign(self, X: Floats, cells: Labels | None, keys: Words | None, turn: int = 0) -> Labels:
        """Block of each record in the first round; of each group, by its centroid, in later ones.

        Parameters
        ----------
        X : (n, c) coordinates
        cells : (n,) the cell of each; None where there is but one
        keys : (n, 2) of the records; None in later rounds, in which nothing is dealt out
        turn : 0, 1, …
        """
        found = np.empty(len(X), dtype=np.int64)
        which = np.zeros(len(X), dtype=np.int64) if cells is None else cells
        for cell in np.unique(which).tolist():
            rows = slice(None) if cells is None else np.flatnonzero(which == cell)
            tree = self.trees[turn][cell]
            own = 0 if tree is None else np.array(self.joined[cell])[tree.leaves(X[rows])]
            found[rows] = self.first[cell] + own
        starts = self._starts
        if keys is None:
            return np.asarray(starts[found])
        parts = np.array(self.dealt)[found]
        return np.asarray(starts[found] + (keys[:, 1] % parts.astype(np.uint64)).astype(np.int64))

    def with_counts(self, counts: Labels, least: int) -> BlockPlan:
        """Join leaves with fewer than ``least`` units with their sibling; deal out those far too large.

        ``counts`` are of the blocks of the first round, before any was joined or dealt out.
        """
        joined, dealt = [], np.ones(len(counts), dtype=np.int64)
        for cell, start in enumerate(self.first):
            tree = self.trees[0][cell]
            if tree is None:
                joined.append(self.joined[cell])
                continue
            own = _join_small(counts[start : start + tree.n_leaves], least)
            joined.append(tuple(own.tolist()))
        for cell, start in enumerate(self.first):
            if self.trees[0][cell] is not None:
                leaves = np.array(joined[cell])
                sizes = np.bincount(leaves, counts[start : start + len(leaves)])
                for at in np.flatnonzero(sizes > _MOST * LEAF).tolist():
                    dealt[start + at] = -(-int(sizes[at]) // LEAF)
        return replace(self, joined=tuple(joined), dealt=tuple(dealt.tolist()))

    def to_json(self) -> str:
        """As text, from which :meth:`from_json` makes the same plan."""
        plain = {
            "seed": self.seed,
            "first": self.first,
            "joined": self.joined,
            "dealt": self.dealt,
            "trees": [
                [
                    None if t is None else [t.directions.tolist(), t.thresholds.tolist()]
                    for t in turn
                ]
                for turn in self.trees
            ],
        }
        return json.dumps(plain)

    @classmethod
    def from_json(cls, text: str) -> BlockPlan:
        """Read what :meth:`to_json` wrote."""
        plain = json.loads(text)
        trees = tuple(
            tuple(None if t is None else Tree(_matrix(t[0]), np.array(t[1])) for t in turn)
            for turn in plain["trees"]
        )
        joined = tuple(tuple(own) for own in plain["joined"])
        return cls(plain["seed"], tuple(plain["first"]), trees, joined, tuple(plain["dealt"]))


def _matrix(rows: Sequence[Sequence[float]]) -> Floats:
    return np.array(rows, dtype=np.float64)


def _join_small(counts: Labels, least: int) -> Labels:
    """Block of each leaf: that of the lowest subtree around it in which no part has too few.

    >>> _join_small(np.array([9, 1, 9, 9]), 3).tolist()
    [0, 0, 2, 3]
    """
    found = np.arange(len(counts))
    width = 1
    while width < len(counts):
        for start in range(0, len(counts), 2 * width):
            halves = (
                counts[start : start + width].sum(),
                counts[start + width : start + 2 * width].sum(),
            )
            if min(halves) < least:
                found[start : start + 2 * width] = start
        width *= 2
    return found


def sample_share(records: int) -> float:
    """Share of the records from which blocks are planned."""
    wanted = max(_SAMPLE, _SAMPLE_A_LEAF * (records // LEAF))
    return min(1.0, wanted / max(records, 1))


def in_sample(keys: Words, share: float) -> Any:
    """Which records are in a sample of some share, by their keys."""
    if share >= 1.0:
        return np.ones(len(keys), dtype=bool)
    return keys[:, 0] < np.uint64(int(share * 2.0**64))


def plan_blocks(recipe: Recipe, sample: Words, leaf: int = LEAF) -> BlockPlan:
    """Plan the blocks of a table.

    Parameters
    ----------
    recipe : of the table
    sample : words of the records that :func:`in_sample` chooses, in any order
    leaf : records in a block, about

    >>> from microagg.scale_out.recipe import recipe_of, summarise
    >>> from microagg.plan import Plan
    >>> import pyarrow as pa
    >>> table, plan = pa.table({"x": range(1000)}), Plan().override(k=5, columns=["x"])
    >>> recipe = recipe_of(plan, summarise(table, plan))
    >>> plan_blocks(recipe, recipe.words(table), leaf=300).n_blocks
    4
    """
    records = in_order(recipe.records_of(sample))
    X = recipe.coordinates(records)
    apart = recipe.apart(records)
    cells = np.zeros(len(records), np.int64) if apart is None else apart
    first: list[int] = []
    joined: list[tuple[int, ...]] = []
    room, blocks = 0, 0
    trees: list[list[Tree | None]] = [[] for _ in range(1 + _ROUNDS)]
    for cell, size in enumerate(recipe.cell_sizes.tolist()):
        own = X[cells == cell]
        depth = int(np.ceil(np.log2(max(size / leaf, 1.0))))
        if depth == 0 or len(own) < 2**depth:
            # Small cells share a block until it is full.
            if room < size:
                blocks, room = blocks + 1, leaf
            room -= size
            first.append(blocks - 1)
            joined.append((0,))
            for turn in trees:
                turn.append(None)
            continue
        first.append(blocks)
        joined.append(tuple(range(2**depth)))
        blocks, room = blocks + 2**depth, 0
        for number, turn in enumerate(trees):
            turn.append(_halving_tree(own, depth, [recipe.plan.seed or 0, cell, number]))
    return BlockPlan(
        recipe.plan.seed or 0,
        tuple(first),
        tuple(map(tuple, trees)),
        tuple(joined),
        (1,) * blocks,
    )


def _halving_tree(X: Floats, depth: int, seed: Sequence[int]) -> Tree:
    """Halve records again and again across random directions, the wide ones more often."""
    chance = np.random.default_rng(seed)
    inner = 2**depth - 1
    directions, thresholds = np.zeros((inner, X.shape[1])), np.zeros(inner)
    parts: dict[int, Labels] = {0: np.arange(len(X))}
    for node in range(inner):
        rows = parts.pop(node)
        own = X[rows]
        wide = (
            np.square(own - own.mean(axis=0)).T @ np.ones(len(own))
            if len(own)
            else np.ones(X.shape[1])
        )
        direction = chance.standard_normal(X.shape[1]) * wide
        length = np.sqrt(np.square(direction).sum())
        direction = direction / length if length > 0 else np.eye(X.shape[1])[0]
        # As the kernel adds them up, lest a record on the border falls elsewhere.
        along = np.zeros(len(own))
        for j in range(X.shape[1]):
            along += own[:, j] * direction[j]
        order = np.argsort(along, kind="stable")
        threshold = along[order[len(order) // 2]] if len(order) else 0.0
        directions[node], thresholds[node] = direction, threshold
        parts[2 * node + 1], parts[2 * node + 2] = rows[along < threshold], rows[along >= threshold]
    return Tree(directions, thresholds)


def in_order(records: Records) -> Records:
    """Return records in the order of their keys, in which blocks are solved wherever they come from."""
    return records.taken(np.lexsort((records.keys[:, 1], records.keys[:, 0])))


def requirements(recipe: Recipe, records: Records) -> list[Requirement]:
    """What groups of these records must satisfy beside k, as :mod:`microagg.require.wanted` has it."""
    found: list[Requirement] = []
    asked, k = recipe.block.require, recipe.k
    units = None if records.units is None else _numbered(records.units)
    if units is not None:
        found.append(Units(units, k, names([recipe.unit])))
    for at, (kind, name) in enumerate(recipe.asked_columns):
        words, column = np.ascontiguousarray(records.asked[:, at]), names([name])
        wanted: Any = getattr(asked, kind)[name]
        if kind == "distinct":
            found.append(Distinct(_numbered(words), wanted, column))
        elif kind == "entropy":
            found.append(Entropy(_numbered(words), wanted, column))
        elif kind == "recursive":
            found.append(Recursive(_numbered(words), wanted.c, wanted.l, column))
        elif kind == "p_percent":
            found.append(PPercent(words.view(np.float64), wanted, units, column))
        else:
            found.append(LargestShare(words.view(np.float64), wanted.n, wanted.k, units, column))
    for wanted, rule in ((asked.population, Population), (asked.individual_risk, IndividualRisk)):
        if wanted is not None:
            if records.weights is None:
                raise InputError(
                    "population and individual_risk are counted in survey weights; the plan names none. "
                    "Name their column as weight."
                )
            found.append(rule(records.weights, wanted))
    return found


def _numbered(values: Any) -> Labels:
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def solve_block(recipe: Recipe, records: Records, effort: str | None = None) -> Labels:
    """Partition the records of a block, which are :func:`in_order`; the group of each, 0, 1, ….

    The cells among them are solved by themselves. ``effort`` is that of the plan if left out.
    """
    block, X = recipe.block, recipe.coordinates(records)
    if effort is not None and "effort" in {option.name for option in find(block.method).options}:
        block = replace(block, options={**block.options, "effort": effort})
    cells = recipe.apart(records)
    cells = np.zeros(len(X), np.int64) if cells is None else _numbered(cells)
    weights = recipe.relative_weights(records) if recipe.weighs else None
    found = group(
        Space(X, "none"),
        replace(block, scale="none", bound=False),
        cells,
        weights=weights,
        requirements=requirements(recipe, records),
        seed=recipe.plan.seed,
        whole=recipe.records,
    )
    return found.labels


def refine_block(recipe: Recipe, records: Records, labels: Labels) -> Labels:
    """Refine the groups of a block of one cell, the records :func:`in_order`; never worse than given."""
    block = recipe.block
    if not (find(block.method).name == "auto" or block.refine) or labels.max() == 0:
        return canonical_labels(labels)
    X = recipe.coordinates(records)
    weights = recipe.relative_weights(records) if recipe.weighs else None
    wanted = requirements(recipe, records)
    labels = canonical_labels(labels)
    if wanted:
        return satisfy(
            X,
            recipe.k,
            wanted,
            labels,
            weights=weights,
            effort="fast",
            random_state=recipe.plan.seed,
            whole=recipe.records,
        )
    return refine(
        X,
        labels,
        recipe.k,
        weights=weights,
        effort="fast",
        random_state=recipe.plan.seed,
        whole=recipe.records,
    )


def centroids(recipe: Recipe, records: Records, labels: Labels) -> Floats:
    """Mean coordinates of each group 0, 1, …, which tell the block that it goes to."""
    X = recipe.coordinates(records)
    sizes = np.bincount(labels).astype(np.float64)
    return np.column_stack([np.bincount(labels, column) for column in X.T]) / sizes[:, None]


class Moved(NamedTuple):
    """Records of a block after it was worked on, in the order of their keys."""

    words: Words
    groups: Labels  # a number for each group that no other block gives
    blocks: Labels | None  # of each record in the next turn; None after the last


def work_on_block(
    recipe: Recipe,
    plan: BlockPlan,
    number: int,
    words: Words,
    groups: Labels | None = None,
    turn: int = 0,
) -> Moved:
    """Do what there is to do in one block in one turn: partition it, or refine the groups that came to it.

    Parameters
    ----------
    number : of the block
    words : of all its records, in any order
    groups : (n,) their groups, in all turns but the first
    turn : 0, 1, … up to ``plan.rounds``
    """
    keys = recipe.records_of(words).keys
    order = np.lexsort(
        (keys[:, 1], keys[:, 0]) if groups is None else (groups, keys[:, 1], keys[:, 0])
    )
    words = words[order]
    records = recipe.records_of(words)
    if groups is None:
        labels = solve_block(recipe, records)
    elif plan.is_done(number):
        labels = canonical_labels(groups[order])
    else:
        labels = refine_block(recipe, records, canonical_labels(groups[order]))
    blocks = None
    if turn < plan.rounds:
        apart = recipe.apart(records)
        own = None
        if apart is not None:
            own = np.zeros(int(labels.max()) + 1, dtype=np.int64)
            own[labels] = apart
        blocks = plan.assign(centroids(recipe, records, labels), own, None, turn + 1)[labels]
    return Moved(words, (np.int64(number) << 32) + labels, blocks)
