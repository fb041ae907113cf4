"""The plan: all that is decided about a release, as data that can be written down, read and compared.

Keywords of :func:`microagg.protect`, flags of the command and a TOML file build the same Plan, and every
setting is checked here, once. A plan holds no data: names of columns and settings, nothing else.
What a table adds, the columns that nobody named, comes from :mod:`microagg.draft`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from microagg.base.formatting import UnitWords, unit_words
from microagg.errors import InputError, shown
from microagg.plan.analyses import blaming, formulas_of, read_formula
from microagg.plan.block import (
    BLOCK_SETTINGS,
    OWN_PARTS,
    Block,
    Dominance,
    Recursive,
    Require,
    require_with,
)
from microagg.plan.checks import (
    check_bool,
    check_table,
    check_word,
    column_names,
    no_column,
    unknown,
)
from microagg.plan.consistency import (
    check_reasons,
    check_relations,
    check_roles,
    check_small_strata,
    check_suppress,
    check_weight,
)
from microagg.plan.conversion import ACCEPTED, LISTS, SHORT, as_data, as_keywords, fields_of_data
from microagg.plan.registry import METHODS, find
from microagg.plan.relations import Relation
from microagg.plan.sections import (
    CATEGORIES,
    ROUNDINGS,
    Accept,
    Coarsen,
    Column,
    Missing,
    Roles,
    Strata,
    Suppress,
    Unit,
    Weight,
    claims_of,
    columns_with,
    missing_with,
    strata_with,
    suppress_with,
    unit_with,
    weight_with,
)
from microagg.plan.serialise import flags, read_plan_file, read_toml, write_toml
from microagg.plan.settings import check_random_state

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "UNSET",
    "Accept",
    "Block",
    "Coarsen",
    "Column",
    "Dominance",
    "Missing",
    "Plan",
    "Promise",
    "Recursive",
    "Relation",
    "Require",
    "Roles",
    "Strata",
    "Suppress",
    "Unit",
    "Weight",
]

Name = Hashable
Names = tuple[Name, ...]

_MOST_DIGITS = 15


class _Unset:
    """The value of a setting that nobody gave, so that the plan's stays."""

    def __repr__(self) -> str:
        return "..."


UNSET: Any = _Unset()


class Promise(NamedTuple):
    """What is counted in a file: each combination of some columns is shared by at least k units."""

    k: int
    columns: Iterable[Any] | None
    """None: all that are numbers."""
    unit: Any = None
    """Column whose distinct values are counted; None: records are."""


@dataclass(frozen=True)
class Plan:
    """All settings of a release.

    Build one by keywords, :meth:`of`, from a file, :meth:`from_toml`, or from a table,
    :func:`microagg.draft`; :meth:`override` changes some settings.
    """

    blocks: tuple[Block, ...] = field(default_factory=lambda: (Block(),))
    """Columns with one partition and one promise each."""
    columns: Mapping[Any, Column] = field(default_factory=dict)
    """How columns are read, recoded, compared and released."""
    drop: Names = ()
    """Columns to leave out."""
    renumber: Names = ()
    """Columns to replace by random numbers, one for each value."""
    confidential: Names = ()
    """Columns that no attacker knows but many would like to; a claim, see ``reasons``."""
    reasons: Mapping[Any, str] = field(default_factory=dict)
    """Why no attacker knows a confidential column, for the board."""
    known: Names = ()
    """Columns left as they are on purpose. An attacker is taken to know them, as any column without a
    role."""
    strata: Strata = field(default_factory=Strata)
    """What groups never cross."""
    weight: Weight | None = None
    """How many of the population a record stands for."""
    unit: Name | None = None
    """Column that tells whose record it is; k counts its distinct values."""
    unit_mode: str = "count"
    """How the records of a unit are grouped; see :class:`Unit`."""
    unit_name: str | None = None
    """The noun for a unit, such as household."""
    missing: Missing = field(default_factory=Missing)
    """What becomes of missing values."""
    suppress: Suppress = field(default_factory=Suppress)
    """How many records may be left out where that lowers the loss most."""
    relations: tuple[Relation, ...] = ()
    """What holds between columns in every record, and after release still does."""
    shuffle: bool = False
    """Release the rows in a random order."""
    round: str = "no"
    """Of whole-number columns that say nothing themselves: no, nearest, totals."""
    digits: int | None = None
    """Decimals of released values; None: a millionth of a column's standard deviation is kept."""
    seed: int | None = 0
    """Of methods that draw random numbers; "fresh" in a file: another one each time."""
    analyses: tuple[Any, ...] = ()
    """Formulas of analyses that must survive, such as "income ~ age + sex"; see
    :mod:`microagg.plan.analyses`."""
    accept: Accept = field(default_factory=Accept)
    """What the board decided; checked, and told as pass or fail."""
    notes: Mapping[Any, str] = field(default_factory=dict, compare=False, repr=False)
    """Why a column got its role, for the comments of a drafted plan."""

    def __post_init__(self) -> None:
        self._take_reasons()
        for role in LISTS:
            object.__setattr__(self, role, column_names(role, getattr(self, role)))
        if not self.blocks:
            raise InputError("A plan needs at least one block of columns to protect.")
        if len(self.blocks) > 1 and any(block.columns is None for block in self.blocks):
            raise InputError("With several blocks each must name its columns; one does not.")
        if len(self.blocks) == 1:
            self._take_from_the_block()
        object.__setattr__(self, "unit_name", self._unit.name)
        object.__setattr__(self, "analyses", formulas_of(self.analyses))
        check_word("round", self.round, ROUNDINGS)
        check_bool("shuffle", self.shuffle)
        check_random_state(self.seed)
        if self.digits is not None and not (
            isinstance(self.digits, int)
            and not isinstance(self.digits, bool)
            and -_MOST_DIGITS <= self.digits <= _MOST_DIGITS
        ):
            raise InputError(
                f"digits is the number of decimals of released values, from −{_MOST_DIGITS} to "
                f"{_MOST_DIGITS} (−3: to thousands); got {shown(self.digits)}."
            )
        check_roles(self)
        check_weight(self)
        check_small_strata(self)
        check_suppress(self)
        check_relations(self)

    def _take_reasons(self) -> None:
        """Check the reasons of confidential columns, which may also be given with their names."""
        _, given = claims_of(self.confidential)
        _, named = claims_of(dict(self.reasons))
        object.__setattr__(self, "reasons", {**given, **named})
        check_reasons(self)

    def _take_from_the_block(self) -> None:
        """What the one block has of its own is the plan's, so that it is written in one way."""
        (block,) = self.blocks
        if block.unit is not None:
            object.__setattr__(self, "unit", block.unit.column)
            object.__setattr__(self, "unit_mode", block.unit.mode)
            object.__setattr__(self, "unit_name", block.unit.name)
        if block.strata is not None:
            object.__setattr__(self, "strata", block.strata)
        if block.unit is not None or block.strata is not None:
            object.__setattr__(self, "blocks", (replace(block, unit=None, strata=None),))

    @classmethod
    def of(cls, **settings: Any) -> Plan:
        """Build a plan from the keywords of :func:`microagg.protect`.

        >>> Plan.of(k=5, columns=["age", "income"], drop="name").drop
        ('name',)
        """
        return cls().override(**settings)

    def with_little_effort(self) -> Plan:
        """Return the plan with effort "fast" for each block whose method is auto."""
        blocks = [
            replace(block, options={**block.options, "effort": "fast"})
            if block.method == "auto"
            else block
            for block in self.blocks
        ]
        return replace(self, blocks=tuple(blocks))

    def override(self, **settings: Any) -> Plan:
        """Return the plan with some settings changed, by their keywords; UNSET ones stay.

        Lists of columns, relations and analyses are replaced. Of the other parts (kinds, coarsen, strata,
        weight, unit, missing, require) what is named changes and the rest stays; None takes a part away,
        save for kinds and coarsen.

        >>> plan = Plan.of(strata=["region"], weight={"column": "w", "release": "keep"})
        >>> plan.override(weight="v", strata=None).weight
        Weight(column='v', release='keep', grouping='weighted')
        """
        given = {name: value for name, value in settings.items() if value is not UNSET}
        whole: dict[str, Any] = {}
        if "random_state" in given:
            whole["seed"] = given.pop("random_state")
        accepted = {key: given.pop(f"max_{key}") for key in ACCEPTED if f"max_{key}" in given}
        if accepted:
            whole["accept"] = replace(self.accept, **accepted)
        if isinstance(given.get("round"), bool):
            given["round"] = "nearest" if given["round"] else "no"
        if "kinds" in given:
            whole["columns"] = columns_with(self.columns, "kinds", given.pop("kinds"))
        if "coarsen" in given:
            check_table("coarsen", given["coarsen"])
            recoded = {name: {"coarsen": how} for name, how in given.pop("coarsen").items()}
            whole["columns"] = columns_with(whole.get("columns", self.columns), "coarsen", recoded)
        if "confidential" in given:
            claims = claims_of(given.pop("confidential") or (), self.reasons)
            whole |= dict(zip(("confidential", "reasons"), claims, strict=True))
        for name in LISTS:
            if name in given:
                whole[name] = column_names(name, given.pop(name) or ())
        for name in OWN_PARTS:
            if name in given and any(getattr(block, name) is not None for block in self.blocks):
                raise InputError(
                    f"Blocks of the plan have a {name} of their own; change it there, in each block."
                )
        for name, changed in _PARTS.items():
            if name in given:
                whole[name] = changed(getattr(self, name), given.pop(name))
        if "unit" in given:
            unit = unit_with(self._unit, given.pop("unit"))
            whole |= {"unit": unit.column, "unit_mode": unit.mode, "unit_name": unit.name}
        if "relations" in given:
            whole["relations"] = _relations(given.pop("relations"))
        for name in ("shuffle", "round", "digits", "analyses"):
            if name in given:
                whole[name] = given.pop(name)
        if given:
            whole["blocks"] = self._blocks_with(given)
        return replace(self, **whole) if whole else self

    def _blocks_with(self, given: dict[str, Any]) -> tuple[Block, ...]:
        if "columns" in given and len(self.blocks) > 1:
            raise InputError(
                f"The plan has {len(self.blocks)} blocks, each with its own columns; change them there."
            )
        changes = {name: value for name, value in given.items() if name in BLOCK_SETTINGS}
        added = {name: value for name, value in given.items() if name not in BLOCK_SETTINGS}
        blocks = []
        for block in self.blocks:
            if "require" in given:
                changes["require"] = require_with(block.require, given["require"])
            method = find(changes.get("method", block.method))
            has = {option.name for option in method.options}
            for name in added:
                # A word that no method knows is a slip; one of another method is told by its check.
                if name not in has | set(method.refuses) and not _is_option(name):
                    raise unknown("setting", name, BLOCK_SETTINGS | has | _KEYWORDS)
            kept = {name: value for name, value in block.options.items() if name in has}
            blocks.append(replace(block, **changes, options={**kept, **added}))
        return tuple(blocks)

    @property
    def k(self) -> int:
        """The least k of all blocks."""
        return min(_k(block) for block in self.blocks)

    def check_complete(self) -> None:
        """Refuse a plan that does not say k."""
        for block in self.blocks:
            _k(block)

    def block_of(self, columns: Iterable[Any]) -> Block:
        """The block that protects some columns."""
        first = next(iter(columns))
        return next(block for block in self.blocks if first in (block.columns or ()))

    def unit_of(self, block: Block) -> Unit:
        """Whose distinct values k counts in a block."""
        return block.unit or self._unit

    @property
    def _unit(self) -> Unit:
        return Unit(self.unit, self.unit_mode, self.unit_name)

    def words_of_unit(self, column: Any) -> UnitWords:
        """Return the noun for the units that a column tells apart; None: for records.

        >>> plan = Plan.of(unit={"column": "db030", "name": "household"})
        >>> plan.words_of_unit("db030").counted(5), plan.words_of_unit(None).counted(1)
        ('5 households', '1 record')
        """
        every = [self.unit_of(block) for block in self.blocks]
        nouns = [unit.name for unit in every if unit.column == column and unit.name is not None]
        return unit_words(column, next(iter(nouns), None))

    def strata_of(self, block: Block) -> Strata:
        """What groups of a block never cross."""
        return self.strata if block.strata is None else block.strata

    @property
    def units(self) -> list[Any]:
        """Columns whose distinct values k counts in some block."""
        found = [self.unit_of(block).column for block in self.blocks]
        return list(dict.fromkeys(name for name in found if name is not None))

    @property
    def moved_together(self) -> list[Any]:
        """Units all records of which are in one group, in some block."""
        every = map(self.unit_of, self.blocks)
        return [unit.column for unit in every if unit.mode == "together"]

    @property
    def all_strata(self) -> list[Any]:
        """Columns that are strata of some block."""
        found = [name for block in self.blocks for name in self.strata_of(block).columns]
        return list(dict.fromkeys(found))

    @property
    def shared_strata(self) -> list[Any]:
        """Columns that are strata of every block, so that whoever shares any group shares them."""
        every = [set(self.strata_of(block).columns) for block in self.blocks]
        return [name for name in self.all_strata if all(name in own for own in every)]

    def shared_beside(self, block: Block | None = None) -> list[Any]:
        """Columns that records share beside the protected ones of a block: strata and mean weight.

        Without a block: beside the protected columns of all of them.
        """
        strata = self.all_strata if block is None else self.strata_of(block).columns
        mean = self.weight is not None and self.weight.release == "mean"
        return [*strata, *([self.weight.column] if self.weight and mean else [])]

    def promises(self) -> list[Promise]:
        """What is counted in a file, one promise for each partition.

        >>> Plan.of(k=3, columns=["age", "income"], strata="region").promises()
        [Promise(k=3, columns=['age', 'income', 'region'], unit=None)]
        """
        found = []
        for block in self.blocks:
            chosen = list(block.columns or ())
            sets = [[name] for name in chosen] if block.per_column else [chosen]
            beside, unit = self.shared_beside(block), self.unit_of(block).column
            found += [Promise(_k(block), [*columns, *beside], unit) for columns in sets]
        return found

    @property
    def spoken_for(self) -> set[Any]:
        """Columns that cannot be protected, since they have another role or must stay different."""
        found: set[Any] = {name for role in LISTS for name in getattr(self, role)}
        found.update(self.all_strata)
        found.update(name for block in self.blocks for name in block.require.diverse)
        found.update(() if self.weight is None else (self.weight.column,))
        return found | set(self.units)

    @property
    def analysed(self) -> set[Any]:
        """Columns that an analysis names, which the released table must have."""
        return {name for wanted in self.analyses for name in read_formula(wanted).columns}

    @property
    def categories(self) -> set[Any]:
        """Columns that the plan takes for categories, be they written as numbers."""
        return {name for name, own in self.columns.items() if own.kind in CATEGORIES}

    @property
    def related(self) -> set[Any]:
        """Columns that a relation names, which are not to be rounded each by itself."""
        return {name for relation in self.relations for name in relation.columns}

    def roles(self, names: Collection[Any]) -> Roles:
        """Give every column of a table its role; refuse names that the table does not have."""
        protected = [name for block in self.blocks for name in block.columns or ()]
        required = [name for block in self.blocks for name in block.require.columns]
        there = set(names)
        named = [*protected, *(name for role in LISTS for name in getattr(self, role))]
        named += [*self.columns, *self.all_strata, *self.missing.codes, *required, *self.units]
        named += [name for relation in self.relations for name in relation.columns]
        weight = None if self.weight is None else self.weight.column
        for name in [*named, *([] if weight is None else [weight])]:
            if name not in there:
                raise no_column(name, names)
        for wanted in self.analyses:
            for name in read_formula(wanted).columns:
                if name not in there:
                    with blaming(wanted):
                        raise no_column(name, names)
        rest = {*protected, *self.drop, *self.renumber, *self.confidential}
        dropped = list(self.drop)
        if self.weight is not None and self.weight.release != "keep":
            rest.add(weight)
            dropped += [weight] if self.weight.release == "drop" else []
        return Roles(
            protected=protected,
            dropped=dropped,
            renumbered=list(self.renumber),
            confidential=list(self.confidential),
            known=[name for name in names if name not in rest],
            unit=next(iter(self.units), None),
            strata=self.all_strata,
            weight=weight,
        )

    def column(self, name: Any) -> Column:
        """How a column is read and released; round is filled in."""
        return self.columns.get(name, Column()).completed(self.round)

    @property
    def coarsened(self) -> dict[Any, Coarsen]:
        """How columns are recoded before groups are formed, by name."""
        return {n: c.coarsen for n, c in self.columns.items() if c.coarsen is not None}

    def settings(self) -> dict[str, Any]:
        """Return the keywords that build this plan, defaults left out; only of a plan with one block."""
        return as_keywords(self)

    def as_call(self) -> str:
        """Return the call of Python that does the same; ``frame`` is the table.

        >>> Plan.of(k=5, columns=["age"], method="mdav").as_call()
        "microagg.protect(frame, columns=['age'], k=5, method='mdav')"
        """
        if len(self.blocks) > 1:
            return f"microagg.protect(frame, plan=microagg.Plan.from_toml_text({self.to_toml()!r}))"
        words = "".join(f", {name}={value!r}" for name, value in self.settings().items())
        return f"microagg.protect(frame{words})"

    def as_command(self, source: str, target: str, plan: str = "plan.toml") -> list[str]:
        """Return the words of the command that does the same; with a plan file where flags cannot say it.

        >>> Plan.of(k=5, columns=["age", "net, gross"]).as_command("in.csv", "out.csv")[4:]
        ['--columns', 'age,"net, gross"', '--k', '5']
        """
        words = ["microagg", "protect", source, target]
        said = flags(self.settings()) if len(self.blocks) == 1 else None
        return [*words, *(["--plan", plan] if said is None else said)]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON and TOML: what differs from the defaults, and every block."""
        return as_data(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Plan:
        """Build a plan from what :meth:`as_dict` gives; unknown keys are refused."""
        return cls(**fields_of_data(given))

    def to_toml(self) -> str:
        """Return the plan as the text of a TOML file, with its notes as comments."""
        named = {name for block in self.blocks for name in block.columns or ()}
        named |= {name for role in LISTS for name in getattr(self, role)}
        if self.weight is not None and self.weight.release != "keep":
            named.add(self.weight.column)
        known = {name: note for name, note in self.notes.items() if name not in named}
        return write_toml(self.as_dict(), self.notes, known)

    @classmethod
    def from_toml_text(cls, text: str) -> Plan:
        """Build a plan from the text of a TOML file."""
        return cls.from_dict(read_toml(text))

    @classmethod
    def from_toml(cls, path: str | Path) -> Plan:
        """Build a plan from a TOML file."""
        return cls.from_toml_text(read_plan_file(path))


_PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "strata": strata_with,
    "weight": weight_with,
    "missing": missing_with,
    "suppress": suppress_with,
}
# Keywords of protect() that are not settings of a block.
_KEYWORDS = {
    "random_state",
    *LISTS,
    *SHORT,
    "shuffle",
    "round",
    "digits",
    "kinds",
    "coarsen",
    "relations",
    "analyses",
    *(f"max_{name}" for name in ACCEPTED),
    "plan",
    "progress",
}


def _k(block: Block) -> int:
    if block.k is None:
        raise InputError(
            "k, the least number of records that share their values, is not given. Say k=5, --k 5, or "
            "k = 5 in the block of the plan."
        )
    return block.k


def _is_option(name: str) -> bool:
    return any(name == option.name for m in METHODS.values() for option in m.options)


def _relations(given: Any) -> tuple[Relation, ...]:
    """Relations from one text or several."""
    if given is None:
        return ()
    several = given if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    return tuple(r if isinstance(r, Relation) else Relation(r) for r in several)
