"""Random histories of one table, released file by file, and an attacker who solves all files together.

The attacker knows every original value, who is in which file and in which order its rows stand, and looks
for what follows about fewer than k units: by the intersection of classes, known columns and presence; and by
linear algebra over all numbers that were released, in exact arithmetic. Nothing here is taken from src but
the command under attack: classes are equal rows of a file, and a number is an equation about what its rows
hold now, or, class by class of any file, about what these held in an earlier file; else it is a fault.
"""

import itertools
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PRIME = 2**61 - 1
# What happens between two releases, and how often.
STEPS = "enter leave correct revert wave move rows weights same column"
OFTEN = [0.2, 0.1, 0.2, 0.1, 0.1, 0.05, 0.1, 0.05, 0.05, 0.05]


class History:
    """A table that changes from release to release."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = np.random.default_rng(seed)
        self.k = int(chance.integers(2, 5))
        self.swap = chance.random() < 0.2
        self.several = not self.swap and chance.random() < 0.3
        self.weighted = not self.swap and chance.random() < 0.3
        self.strata = chance.random() < 0.4
        self.known = chance.random() < 0.3
        self.confidential = chance.random() < 0.3
        self.leavers = "accept" if not self.weighted and chance.random() < 0.1 else "withhold"
        self.coarser = not self.swap and chance.random() < 0.3
        self.draws = seed % 4 == 0 and not self.swap
        self.count = 0
        self.table = self.enter(int(chance.integers(5, 10)) * self.k)
        self.was = self.table.copy()

    def enter(self, n: int) -> pd.DataFrame:
        chance = self.chance
        ids = [f"u{self.count + i}" for i in range(n)]
        self.count += n
        regions = np.sort(chance.choice(["N", "S"], n)) if self.strata else np.full(n, "N")
        return pd.DataFrame(
            {
                "id": ids,
                "x": chance.normal(100, 20, n).round(1),
                "y": chance.integers(0, 50, n),
                "c": chance.choice(["a", "b"], n, p=[0.7, 0.3]),
                "region": regions,
                "band": regions,  # known, and as coarse as the strata
                "secret": chance.integers(0, 3, n),
                "w": chance.integers(1, 4, n).astype(float),
            }
        )

    def step(self) -> None:
        """Let something happen between two releases."""
        chance, table = self.chance, self.table
        what = chance.choice(STEPS.split(), p=OFTEN)
        units = table["id"].unique()
        some = chance.choice(units, int(chance.integers(1, max(2, len(units) // 3))), replace=False)
        hit = table["id"].isin(some)
        if what == "enter":
            table = pd.concat([table, self.enter(int(chance.integers(1, 3 * self.k)))])
        elif what == "leave":
            table = table[~hit | (chance.random(len(table)) < 0.3)]
        elif what == "correct":
            table = table.assign(
                x=table["x"] + np.where(hit, chance.normal(0, 9, len(table)).round(1), 0)
            )
        elif what == "revert":
            before = self.was.drop_duplicates("id").set_index("id")["x"]
            old = table["id"].map(before)
            table = table.assign(
                x=np.where(hit & old.notna() & ~table["id"].duplicated(False), old, table["x"])
            )
        elif what == "wave":
            table = table.assign(x=(table["x"] * 1.1 + chance.normal(0, 5, len(table))).round(1))
        elif what == "move" and self.strata:
            table = table.assign(region=np.where(table["id"] == some[0], "S", table["region"]))
        elif what == "rows" and self.several:
            more = table[table["id"] == some[0]].iloc[:1]
            table = pd.concat([table, more.assign(x=more["x"] + 7.5)])
        elif what == "weights" and self.weighted:
            new = dict(zip(units, chance.integers(1, 5, len(units)).astype(float), strict=True))
            table = table.assign(w=table["id"].map(new))
        elif what == "column":
            z = np.where(
                chance.random(len(table)) < 0.4, chance.normal(size=len(table)).round(2), np.nan
            )
            table = table.assign(z=z)
        self.was, self.table = self.table, table.reset_index(drop=True)

    def settings(self, is_last: bool) -> dict[str, Any]:
        """Choose what is released; the last file is as fine as any, so that all groups can be seen."""
        chance, table = self.chance, self.table
        factor = int(chance.integers(1, 4)) if self.coarser and not is_last else 1
        columns = ["x", "y", "c"] if chance.random() < 0.8 else ["x", "c"]
        columns += ["z"] * ("z" in table and not self.swap)
        drop = ["secret"] * (not self.confidential) + ["band"] * (not self.known)
        drop += ["region"] * (not self.strata) + ["z"] * ("z" in table and "z" not in columns)
        drop += ["y"] * ("y" not in columns) + ["w"] * (not self.weighted)
        return {
            "k": self.k * factor,
            "columns": columns,
            "kinds": {name: "nominal" if name == "c" else "number" for name in columns},
            "round": False,
            # By default weighted means are in the steps of their columns: too coarse to read equations from.
            "digits": 6 if self.weighted else None,
            "release": "swap" if self.swap else "mean",
            "categories": "draw" if self.draws else "mode",
            "drop": [*drop, "id"],
            "unit": "id" if self.several else None,
            "weight": "w" if self.weighted else None,
            "strata": ["region"] if self.strata else (),
            "confidential": ["secret"] if self.confidential else (),
            "known": ["band"] if self.known else (),
        }


def released(history: History, files: int, folder: Path, ledger: bool) -> list[dict[str, Any]]:
    """Release a history; return each file with the rows that it was made of, in its order."""
    import microagg
    from microagg.engines.memory import protect
    from microagg.ledger.carry import Carrying

    found = []
    chosen: list[Any] = [None]
    choose, random_order = Carrying.choose, protect.random_order

    def seen(self: Carrying, *table: Any) -> Any:
        chosen[0] = choose(self, *table)
        return chosen[0]

    Carrying.choose, protect.random_order = seen, np.arange  # type: ignore[assignment, method-assign]
    try:
        for number in range(files):
            if number:
                history.step()
            source, target = folder / f"in{number}.csv", folder / f"out{number}.csv"
            history.table.to_csv(source, index=False)
            settings = history.settings(number == files - 1)
            extra = {"ledger": folder / "L", "leavers": history.leavers} if ledger else {}
            if ledger and not history.several:
                extra["key"] = "id"
            chosen[0] = np.arange(len(history.table))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    microagg.protect_file(source, target, **settings, **extra)
            except microagg.InputError as error:
                found.append({"refused": str(error)})
                continue
            table = pd.read_csv(target, dtype=str, keep_default_na=False)
            rows = history.table.iloc[chosen[0]].reset_index(drop=True)
            assert len(rows) == len(table)
            found.append({"file": table, "rows": rows, "columns": settings["columns"]})
    finally:
        Carrying.choose, protect.random_order = choose, random_order  # type: ignore[method-assign]
    return found


def faults(history: History, files: list[dict[str, Any]], ledger: bool) -> list[str]:
    """Say what follows about fewer than k units from all files together."""
    files = [one for one in files if "file" in one]
    if not files:
        return []
    found = alone(history, files)
    if not history.swap:
        for column in ("x", "y", "z", *["w"] * history.weighted):
            found += solved(history, files, column, ledger)
    return found


def alone(history: History, files: list[dict[str, Any]]) -> list[str]:
    """Intersect classes, known columns and presence over all files."""
    of_unit: dict[str, list[Any]] = defaultdict(list)
    units = sorted({unit for one in files for unit in one["rows"]["id"]})
    for one in files:
        # The groups of a swapped file do not show; strata and what is known do.
        shown = [*([] if history.swap else one["columns"])]
        shown += ["region"] * history.strata + ["band"] * history.known + ["w"] * history.weighted
        seen = defaultdict(set)
        values = list(zip(*(one["file"][name] for name in shown), strict=True)) if shown else None
        for at, unit in enumerate(one["rows"]["id"]):
            seen[unit].add(values[at] if values else ())
        for unit in units:
            of_unit[unit].append(tuple(sorted(seen.get(unit, ()))))
    if history.leavers == "accept":
        return []
    if history.swap or history.known or history.confidential:
        often = Counter(tuple(signature) for signature in of_unit.values())
        few = sum(count for count in often.values() if count < history.k)
    else:
        few = _alone_without_links(of_unit, history.k)
    return [f"{few} units are among fewer than {history.k}"] if few else []


def _alone_without_links(of_unit: dict[str, list[Any]], k: int) -> int:
    """Count the units that are told apart where nothing links the rows of two files but their classes.

    Rows of a class are all equal. So whoever left shows by the number of rows that are gone from classes
    that have members in common, and somebody who is there by the classes of all files.
    """
    parts: list[set[str]] = []
    for at in range(len(next(iter(of_unit.values())))):
        classes = defaultdict(set)
        for unit, signature in of_unit.items():
            if signature[at]:
                classes[signature[at]].add(unit)
        for members in classes.values():
            near = [part for part in parts if part & members]
            parts = [part for part in parts if not part & members] + [members.union(*near)]
    few = 0
    for part in parts:
        presence = {unit: tuple(map(bool, of_unit[unit])) for unit in part}
        often = Counter(presence.values())
        for unit in part:
            both = (zip(of_unit[unit], of_unit[other], strict=True) for other in part)
            alike = sum(all(a == b for a, b in pairs if a and b) for pairs in both)
            few += often[presence[unit]] < k or alike < k
    return few


def solved(history: History, files: list[dict[str, Any]], column: str, ledger: bool) -> list[str]:
    """Look for combinations of all equations in which fewer than k units are left.

    With a ledger weights are those of entry; they are averaged over rows like any column, unweighted.
    """
    entry: dict[str, float] = {}
    held: list[dict[str, list[float]]] = []  # in each file, the values of each unit
    classes: list[list[tuple[str, frozenset[str]]]] = []  # in each file, value and members of each
    for one in files:
        rows, file = one["rows"], one["file"]
        for unit, weight in zip(rows["id"], rows["w"], strict=True):
            entry.setdefault(unit, weight)
        own: dict[str, list[float]] = {unit: [] for unit in rows["id"]}
        if column in rows:
            numbers = rows["id"].map(entry) if column == "w" and ledger else rows[column]
            for unit, number in zip(rows["id"], numbers, strict=True):
                own[unit] += [] if np.isnan(number) else [number]
        held.append(own)
        members = defaultdict(set)
        shown = [*one["columns"], *["region"] * history.strata, *["w"] * history.weighted]
        for unit, *values in zip(rows["id"], *(file[name] for name in shown), strict=True):
            members[tuple(values)].add(unit)
        at = shown.index(column) if column in shown else None
        classes.append(
            [("" if at is None else values[at], frozenset(c)) for values, c in members.items()]
        )
    weight_of = entry if history.weighted and column != "w" else dict.fromkeys(entry, 1.0)
    members_only = [[inside for _, inside in file] for file in classes]
    equations, stated = [], []
    for number, file in enumerate(classes):
        for value, members in file:
            if value == "":
                continue
            if any(value == old and members <= before for old, before in stated):
                continue  # nothing new
            stated.append((value, members))
            found = _explained(float(value), members, number, held, members_only, weight_of)
            if found is None:
                return [f"{column}: {value} is neither new nor old"]
            equations.append(found)
    return _few_left(equations, history.k, column)


def _explained(
    value: float,
    members: frozenset[str],
    number: int,
    held: list[dict[str, list[float]]],
    classes: list[list[frozenset[str]]],
    weight_of: dict[str, float],
) -> dict[tuple[str, Any], int] | None:
    """Return the unknowns of which a number is the mean: values of now, or of earlier files."""

    def mean_and_unknowns(parts: list[frozenset[str]], then: tuple[int, ...]) -> Any:
        inside = {
            (unit, tuple(sorted(held[at][unit]))): weight_of[unit]
            for part, at in zip(parts, then, strict=True)
            for unit in part
            if held[at].get(unit)
        }
        mass = sum(len(values) * weight for (_, values), weight in inside.items())
        total = sum(sum(values) * weight for (_, values), weight in inside.items())
        return (total / mass if mass else np.nan), dict.fromkeys(inside, 1)

    mean, unknowns = mean_and_unknowns([members], (number,))
    if abs(mean - value) < 1e-3:
        return unknowns
    # Parts that some file shows: whoever left is in them, too.
    for cover in _covers(members, number, classes):
        # All at one moment at first: weights are small numbers, of which other means fit by chance.
        moments = [(at,) * len(cover) for at in range(number, -1, -1)]
        if len(cover) <= 6:  # else there are too many
            moments += itertools.product(range(number, -1, -1), repeat=len(cover))
        for then in moments:
            mean, unknowns = mean_and_unknowns(cover, then)
            if abs(mean - value) < 1e-3:
                return unknowns
    return None


def _covers(
    members: frozenset[str], number: int, classes: list[list[frozenset[str]]]
) -> Iterator[list[frozenset[str]]]:
    """List ways to cut what a class may be about into parts: the smallest of all files, those of one file."""

    def by_size(known: Iterable[frozenset[str]]) -> list[frozenset[str]]:
        return sorted({*known}, key=lambda one: (len(one), *sorted(one)))

    every = [one for file in classes for one in file]
    earlier = [one for file in classes[:number] for one in file]
    first_seen = [one for file in classes for one in by_size(file)]  # with whoever left since
    one_file = (by_size(file) for file in reversed(classes[:number]))
    for known in (by_size(every), by_size(earlier), first_seen, *one_file):
        parts: list[frozenset[str]] = []
        for one in known:
            if one & members and not any(one & part for part in parts):
                parts.append(one)
        if parts:
            yield parts
    touching = [one for one in every if one & members]
    yield [max(touching, key=lambda one: (len(one), *sorted(one)))]


def _few_left(equations: list[dict[tuple[str, Any], int]], k: int, column: str) -> list[str]:
    """Test every set of fewer than k units of each connected part."""
    equations = [dict(one) for one in {frozenset(one.items()) for one in equations}]
    left = list(range(len(equations)))
    while left:
        part = [left.pop()]
        units = {unit for unit, _ in equations[part[0]]}
        grew = True
        while grew:
            near = [at for at in left if units & {unit for unit, _ in equations[at]}]
            grew = bool(near)
            part += near
            left = [at for at in left if at not in near]
            units |= {unit for at in near for unit, _ in equations[at]}
        unknown = sorted({one for at in part for one in equations[at]})
        matrix = [[equations[at].get(one, 0) for one in unknown] for at in part]
        whole = rank(matrix)
        for size in range(1, k):
            for few in itertools.combinations(sorted(units), size):
                kept = [j for j, (unit, _) in enumerate(unknown) if unit not in few]
                if rank([[row[j] for j in kept] for row in matrix]) < whole:
                    return [f"{column}: a sum over {size} units follows"]
    return []


def rank(matrix: list[list[int]]) -> int:
    """Rank modulo a large prime: of matrices of 0 and 1 as small as these it is the rank."""
    rows, found = [list(row) for row in matrix], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((at for at in range(found, len(rows)) if rows[at][column] % PRIME), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        inverse = pow(rows[found][column], -1, PRIME)
        for at in range(found + 1, len(rows)):
            factor = rows[at][column] * inverse % PRIME
            if factor:
                rows[at] = [
                    (a - factor * b) % PRIME for a, b in zip(rows[at], rows[found], strict=True)
                ]
        found += 1
    return found


def attacked(seed: int, ledger: bool) -> tuple[list[str], int, int]:
    """Release the history of a seed and attack it; return faults, files and refusals."""
    history = History(seed)
    files = int(np.random.default_rng([seed, 1]).integers(2, 7))
    with tempfile.TemporaryDirectory() as folder:
        found = released(history, files, Path(folder), ledger)
    refused = sum("refused" in one for one in found)
    return faults(history, found, ledger), len(found) - refused, refused
