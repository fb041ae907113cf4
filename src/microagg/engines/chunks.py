"""Chunks: a table cut into parts that a worker solves by itself, and cut anew along other borders.

Problem   Groups of a table that no single process can hold.
Idea      A sample of the records is halved again and again across random directions; the tree that
          comes of it sends every record of the table to a chunk of about 2^19 neighbours. Each chunk
          is partitioned by itself. Then the groups, by their centroids, are sent through another tree with
          other directions, and every new chunk is refined: what the borders of the first chunks
          cost is made up for in two such rounds, or four where there are many borders.
          Strata and patterns of missing values come first: large ones have trees of their own, small ones
          share chunks, since groups never cross them.
Cost      Linear in the records, apart from the sample; one move of the records a round.
Same      Which records are in a chunk depends on the plan, its seed and the records alone: samples are
          drawn by keys of rows, and a chunk is solved in the order of these keys. Engines, workers and
          the order of files make no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.refine import refine
from microagg.base.progress import new_state
from microagg.base.typing import Floats, Labels
from microagg.encode.release_rules import with_releases
from microagg.encode.space import Space
from microagg.engines.encoding import Encoding, PackedRows, Records
from microagg.errors import InputError
from microagg.grouping.group_table import codes_as_dealt, group, merge_agreeing
from microagg.grouping.one_cell import Problem, is_searched, search_by_release
from microagg.grouping.require.from_plan import RULES, asked_columns, make_requirements, within
from microagg.grouping.require.requirement import Requirement, check_feasible
from microagg.grouping.require.requirement_search import satisfy
from microagg.kernels.halve import leaves_of
from microagg.kernels.labels import canonical_labels
from microagg.measure.row_keys import Keys
from microagg.plan.registry import find

LEAF = 1 << 19  # records in a chunk, about
COPIES = 8  # of the packed records of a chunk that work on it takes, about
_FIRST = 0.5  # of the search is made in the first turn
_SAMPLE = 1 << 17  # records from which trees are made, at least
_SAMPLE_A_LEAF = 64
_MOST = 4  # times the size of a leaf, beyond which it is dealt out by the keys of its records


@dataclass(frozen=True, eq=False)
class Tree:
    """A halving tree over coordinates: node i has the children 2i + 1 and 2i + 2, leaves come last.

    A leaf that would hold far too many records, as where many are equal, is dealt out into parts by their
    keys; each part is a place of its own.
    """

    directions: Floats  # (inner, c)
    thresholds: Floats  # (inner,)
    parts: Labels  # (leaves,) into which each leaf is dealt out, 1 for most

    @cached_property
    def starts(self) -> Labels:
        """First place of each leaf, and their number."""
        return np.append(0, np.cumsum(self.parts)).astype(np.int64)

    def places(self, X: Floats, keys: Keys) -> Labels:
        """Place of each row."""
        leaves = np.zeros(len(X), dtype=np.int64)
        leaves_of(np.ascontiguousarray(X), self.directions, self.thresholds, leaves)
        dealt = keys[:, 1] % self.parts[leaves].astype(np.uint64)
        return np.asarray(self.starts[leaves] + dealt.astype(np.int64))


@dataclass(frozen=True, eq=False)
class ChunkPlan:
    """Which chunk each record, or in later turns each group, is in.

    Small cells share chunks: these are the first chunks of every turn. The places of the trees of
    large cells follow.

    Attributes
    ----------
    small : (cells,) chunk of each small cell; −1: it has trees
    trees : for each turn, the tree of each large cell, by its number
    joined : the chunk of each place of the first turn, where some were joined with their neighbours
    """

    small: tuple[int, ...]
    trees: tuple[dict[int, Tree], ...]
    joined: tuple[int, ...]

    @property
    def rounds(self) -> int:
        """Turns after the first; none if every cell is in one chunk."""
        return len(self.trees) - 1 if self.trees[0] else 0

    @property
    def n_small(self) -> int:
        """Chunks of small cells, in which there is nothing to do after the first turn."""
        return max(self.small, default=-1) + 1

    def first_places(self, turn: int) -> Labels:
        """First place of each large cell, and the number of places in a turn, empty ones included."""
        sizes = [int(tree.starts[-1]) for tree in self.trees[turn].values()]
        return self.n_small + np.cumsum([0, *sizes])

    def n_places(self, turn: int = 0) -> int:
        """Return the number of places in a turn, empty ones included."""
        return int(self.first_places(turn)[-1])

    def assign(self, X: Floats, cells: Labels, keys: Keys, turn: int = 0) -> Labels:
        """Chunk of each record in the first turn; of each group, by its centroid, in later ones.

        ``X`` are the coordinates; ``keys`` those of the records, or of the first record of each group.
        """
        chunks = np.array(self.small, dtype=np.int64)[cells]
        for (cell, tree), start in zip(
            self.trees[turn].items(), self.first_places(turn), strict=False
        ):
            rows = np.flatnonzero(cells == cell)
            chunks[rows] = start + tree.places(X[rows], keys[rows])
        return np.array(self.joined, dtype=np.int64)[chunks] if turn == 0 else chunks

    def places_of(self, encoding: Encoding, packed: PackedRows) -> Labels:
        """Chunk of each record in the first turn."""
        records = encoding.records_of(packed)
        return self.assign(encoding.coordinates(records), encoding.cell_of(records), records.keys)

    def sources(self, turn: int) -> list[tuple[int, list[int]]]:
        """List the chunks of a turn, each with its places."""
        if turn:
            return [(place, [place]) for place in range(self.n_places(turn))]
        places: dict[int, list[int]] = {}
        for place, chunk in enumerate(self.joined):
            places.setdefault(chunk, []).append(place)
        return sorted(places.items())

    def with_sound(self, why_not: Callable[[list[int]], str]) -> ChunkPlan:
        """Join places of the first turn with their neighbours in the tree until all chunks are sound.

        ``why_not`` says why some places together cannot be a chunk: they do not hold k units, or do not
        satisfy what is required as one group. It says nothing if they can.
        """
        joined = list(range(self.n_places()))
        for tree, start in zip(self.trees[0].values(), self.first_places(0), strict=False):
            starts = tree.starts + start

            def chunks(low: int, high: int, starts: Labels = starts) -> list[list[int]] | None:
                """Sound chunks of the leaves from low to high; None: not even all together are one."""
                every = list(range(int(starts[low]), int(starts[high])))
                if high - low == 1:
                    apart = [[place] for place in every]
                    sound = None if any(map(why_not, apart)) else apart
                else:
                    middle = (low + high) // 2
                    left, right = chunks(low, middle), chunks(middle, high)
                    sound = None if left is None or right is None else left + right
                if sound is None and not why_not(every):
                    return [every]
                return sound

            sound = chunks(0, len(starts) - 1)
            if sound is None:  # name the whole table if it is the cause
                raise InputError(why_not(list(range(self.n_places()))))
            for chunk in sound:
                for place in chunk:
                    joined[place] = chunk[0]
        return replace(self, joined=tuple(joined))


def sample_share(records: int) -> float:
    """Share of the records from which chunks are planned."""
    wanted = max(_SAMPLE, _SAMPLE_A_LEAF * (records // LEAF))
    return min(1.0, wanted / max(records, 1))


def in_sample(keys: Keys, share: float) -> Any:
    """Tell which records are in a sample of some share, by their keys."""
    if share >= 1.0:
        return np.ones(len(keys), dtype=bool)
    return keys[:, 0] < np.uint64(int(share * 2.0**64))


def plan_chunks(encoding: Encoding, sample: PackedRows, leaf: int = LEAF) -> ChunkPlan:
    """Plan the chunks of a table.

    Parameters
    ----------
    encoding : of the table
    sample : the packed records that :func:`in_sample` chooses, in any order
    leaf : records in a chunk, about

    >>> from microagg.engines.fit import encoding_of
    >>> from microagg.engines.table_summary import summarise
    >>> from microagg.plan.plan import Plan
    >>> import pyarrow as pa
    >>> table, plan = pa.table({"x": range(1000)}), Plan().override(k=5, columns=["x"])
    >>> encoding = encoding_of(plan, summarise(table, plan))
    >>> plan_chunks(encoding, encoding.packed(table), leaf=300).n_places()
    4
    """
    records = encoding.records_of(sample)
    records = records.taken(by_key(records.keys))
    X, cells = encoding.coordinates(records), encoding.cell_of(records)
    small: list[int] = []
    # How often each cell is halved. The more borders there are, the more often they are moved.
    depths = np.ceil(np.log2(np.maximum(encoding.cell_sizes / leaf, 1.0))).astype(int)
    rounds = 2 if depths.max() <= 2 else 4
    trees: tuple[dict[int, Tree], ...] = tuple({} for _ in range(1 + rounds))
    chunks, room = 0, 0
    for cell, (size, depth) in enumerate(zip(encoding.cell_sizes.tolist(), depths, strict=True)):
        points = X[cells == cell]
        if depth and len(points) >= 2**depth:
            small.append(-1)
            for turn, of_turn in enumerate(trees):
                seed = [encoding.plan.seed or 0, cell, turn]
                of_turn[cell] = _halving_tree(points, depth, seed, size, leaf)
            continue
        if room < size:  # small cells share a chunk until it is full
            chunks, room = chunks + 1, leaf
        room -= size
        small.append(chunks - 1)
    plan = ChunkPlan(tuple(small), trees, ())
    return replace(plan, joined=tuple(range(plan.n_places())))


def _halving_tree(X: Floats, depth: int, seed: Sequence[int], size: int, leaf: int) -> Tree:
    """Halve records again and again across random directions, the wide ones more often.

    ``size`` is the number of records that X is a sample of, ``leaf`` how many a leaf should hold.
    """
    chance = np.random.default_rng(seed)
    inner = 2**depth - 1
    directions, thresholds = np.zeros((inner, X.shape[1])), np.zeros(inner)
    parts: dict[int, Labels] = {0: np.arange(len(X))}
    for node in range(inner):
        rows = parts.pop(node)
        points = X[rows]
        wide = np.ones(X.shape[1])
        if len(points):
            wide = np.square(points - points.mean(axis=0)).sum(axis=0)
        direction = chance.standard_normal(X.shape[1]) * wide
        length = np.sqrt(np.square(direction).sum())
        direction = direction / length if length > 0 else np.eye(X.shape[1])[0]
        # Added up as the kernel does, so that a record on the border falls on the same side.
        along = np.zeros(len(points))
        for j in range(X.shape[1]):
            along += points[:, j] * direction[j]
        order = np.argsort(along, kind="stable")
        threshold = along[order[len(order) // 2]] if len(order) else 0.0
        directions[node], thresholds[node] = direction, threshold
        parts[2 * node + 1], parts[2 * node + 2] = rows[along < threshold], rows[along >= threshold]
    often = np.array([len(parts[inner + at]) for at in range(2**depth)]) * size / len(X)
    dealt = np.where(often > _MOST * leaf, np.ceil(often / leaf), 1).astype(np.int64)
    return Tree(directions, thresholds, dealt)


def by_key(keys: Keys, *ties: Labels) -> Labels:
    """Order of records by their keys, in which chunks are solved wherever they come from, and by ``ties``."""
    return np.lexsort((*ties, keys[:, 1], keys[:, 0]))


def requirements(encoding: Encoding, records: Records) -> list[Requirement]:
    """Return what groups of these records must satisfy in addition to k."""
    asked = asked_columns(encoding.block.require)

    def look(key: str, column: Any) -> tuple[Any, bool]:
        column_keys = np.ascontiguousarray(records.asked[:, asked.index((key, column))])
        if RULES[key].sees == "amounts":
            return column_keys.view(np.float64), False
        return _numbered(column_keys), False  # keys have no order

    units = None if records.units is None else _numbered(records.units)
    return make_requirements(encoding.block, units, encoding.unit, records.weights, look)


def _numbered(values: Any) -> Labels:
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _problem_of(encoding: Encoding, records: Records, span: tuple[float, float]) -> Problem:
    """Return the problem of grouping the records of a chunk, in a span of the search."""
    if encoding.is_one_column:  # cut exactly as it is; missing values have cells of their own
        space = Space(np.nan_to_num(records.values), "none", encoded=False)
    else:
        axes = tuple(coder.axes for coder in encoding.coders)
        space = Space(encoding.coordinates(records), "none", axes=axes)
        if not encoding.is_swapped:  # groups of swapped values release the values themselves
            columns = zip(encoding.coders, np.ascontiguousarray(records.values.T), strict=True)
            space = with_releases(
                space,
                [replace(coder.variable, values=column) for coder, column in columns],
                encoding.states(records),
                None,  # how often each level occurs in the whole table is known
                encoding.plan.missing.policy,
                encoding.block.released,
            )
    wanted, seed = requirements(encoding, records), encoding.plan.seed
    weights = encoding.relative_weights(records) if encoding.weighs else None
    asked = replace(encoding.block, scale="none", bound=False)
    return Problem(space, asked, wanted, weights, seed, encoding.records, span)


def _refined(problem: Problem, labels: Labels) -> Labels:
    """Refine the groups of a chunk of one cell, in the order of :func:`by_key`."""
    block, wanted, span = problem.block, problem.requirements, problem.span
    effort = "fast" if block.options.get("effort") == "fast" else "balanced"
    settings: dict[str, Any] = {
        "weights": problem.weights,
        "random_state": problem.seed,
        "n_total": problem.n_total,
    }
    X, k = problem.space.searched, problem.k
    if wanted:
        labels = satisfy(X, k, wanted, labels, effort="fast", **settings)
    else:
        labels = refine(X, labels, k, effort=effort, span=span, **settings)
    if span[1] < 1.0 or not is_searched(problem.space, block, bool(wanted)):
        return labels
    return search_by_release(problem, labels, effort, new_state())


class Moved(NamedTuple):
    """Records of a chunk after it was worked on, in the order of their keys."""

    packed: PackedRows
    groups: Labels  # a number for each group that no other chunk gives
    chunks: Labels | None  # of each record in the next turn; None after the last


def work_on_chunk(
    encoding: Encoding,
    plan: ChunkPlan,
    number: int,
    packed: PackedRows,
    groups: Labels | None,
    turn: int,
) -> Moved:
    """Do what there is to do in one chunk in one turn: partition it, or refine the groups that came to it.

    ``packed`` are all its records, in any order, and ``groups``, (n,), their groups in all turns but the
    first. Turns are 0, 1, … up to ``plan.rounds``.
    """
    ties = () if groups is None else (groups,)
    order = by_key(encoding.records_of(packed).keys, *ties)
    packed = packed[order]
    records = encoding.records_of(packed)
    block, cells, chunks = encoding.block, encoding.cell_of(records), None
    is_divided = number >= plan.n_small  # whose groups later turns go on with
    if groups is None:
        problem = _problem_of(encoding, records, (0.0, _FIRST if is_divided else 1.0))
        numbers = _numbered(cells)
        check_feasible(_of_groups(encoding, problem.requirements, numbers))
        labels = group(problem, numbers).labels
    else:
        labels = canonical_labels(groups[order])
        if is_divided and (find(block.method).name == "auto" or block.refine):
            step = (1.0 - _FIRST) / plan.rounds
            end = 1.0 if turn == plan.rounds else _FIRST + turn * step
            problem = _problem_of(encoding, records, (_FIRST + (turn - 1) * step, end))
            labels = _refined(problem, labels)
    if turn == plan.rounds and block.standing is not None:
        # Where every chunk keeps to a share, the table does.
        names, states = [coder.variable.name for coder in encoding.coders], encoding.states(records)
        codes = codes_as_dealt(encoding.plan, block, names, records.values, states)
        X = encoding.coordinates(records)
        labels = merge_agreeing(labels, X, cells, codes, block.standing)
    if turn < plan.rounds:
        first, sizes = np.unique(labels, return_index=True, return_counts=True)[1:]
        sums = [np.bincount(labels, column) for column in encoding.coordinates(records).T]
        centroids = np.column_stack(sums) / sizes[:, None]
        chunks = plan.assign(centroids, cells[first], records.keys[first], turn + 1)[labels]
    return Moved(packed, (np.int64(number) << 32) + labels, chunks)


def sound_chunks(
    encoding: Encoding, plan: ChunkPlan, counts: Labels, broken_by: Callable[[list[int]], str]
) -> ChunkPlan:
    """Join chunks that cannot be groups by themselves with their neighbours.

    ``counts`` are the records of each place; ``broken_by`` says what the records of some places break as one
    group, see :func:`broken_requirement`.
    """
    asked = encoding.unit is not None or bool(encoding.block.require)

    def why_not(places: list[int]) -> str:
        if int(counts[places].sum()) < encoding.k:
            return f"A part of the table is smaller than k = {encoding.k}. Lower k, or name coarser strata."
        return broken_by(places) if asked else ""

    if encoding.block.require and plan.n_places() > 1:
        for chunk in range(plan.n_small):  # whose cells are in no tree
            if why_not([chunk]):
                raise InputError(why_not(list(range(plan.n_places()))))
    return plan.with_sound(why_not)


def broken_requirement(encoding: Encoding, packed: PackedRows, by_strata: bool = False) -> str:
    """Say what the records of a cell, or the whole table, break as one group of all that is required.

    Nothing if they break nothing. ``by_strata`` judges strata, before rare patterns are joined.
    """
    records = encoding.records_of(packed)
    cells = encoding.strata[records.cells] if by_strata else encoding.cell_of(records)
    judged = _of_groups(encoding, requirements(encoding, records), _numbered(cells))
    return next((rule.reason() for rule in judged if not rule.feasible()), "")


def _of_groups(
    encoding: Encoding, wanted: Sequence[Requirement], cells: Labels
) -> Iterator[Requirement]:
    """List what is required of all records, if these are the whole table, and of those of each cell."""
    if not wanted:
        return
    if len(cells) == encoding.records:
        yield from wanted
    for cell in range(int(cells.max()) + 1):
        yield from within(wanted, np.flatnonzero(cells == cell))
