"""The settings of a plan, and what they say together about columns, units and strata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from microagg.base.formatting import UnitWords, unit_words
from microagg.errors import InputError, shown
from microagg.plan.analysis_formulas import formulas_of, read_formula
from microagg.plan.block import Block
from microagg.plan.checks import Name, Names, check_keys, check_table
from microagg.plan.column import CATEGORIES, QUANTITIES, Coarsen, Column, columns_with
from microagg.plan.forms import CLAIMS, DIGITS, FRESH, NAMES, SEED, SWITCH, TEXTS, Form, split_lines
from microagg.plan.relations import Relation
from microagg.plan.sections import Accept, Missing, Strata, Suppress, Unit, Weight
from microagg.plan.settings import check_random_state
from microagg.plan.settings_table import Section, setting

LISTS = ("drop", "renumber", "confidential", "known")
"""Roles that are lists of columns."""
_MOST_DIGITS = 15
EXACT = "exact"
"""All digits of released values."""


def _check_digits(_: str, value: Any) -> int | str:
    if value == EXACT:
        return EXACT
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MOST_DIGITS:
        raise InputError(
            f"digits is the number of decimals of released values, from −{_MOST_DIGITS} to "
            f"{_MOST_DIGITS} (−3: to thousands), or the word exact; got {shown(value)}."
        )
    return value


def _check_seed(_: str, value: Any) -> Any:
    seed = None if value == FRESH else value
    check_random_state(seed)
    return seed


def _check_relations(_: str, value: Any) -> tuple[Relation, ...]:
    """Make relations from one text or several."""
    several = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    return tuple(r if isinstance(r, Relation) else Relation(r) for r in several)


def _relations_of_tables(_: str, tables: Any) -> tuple[Relation, ...]:
    """Read relations as a file holds them: [[relation]] with holds = "gross = net + tax"."""
    if not isinstance(tables, list):
        raise InputError(
            "Relations are written [[relation]], with two brackets, one for each relation."
        )
    for table in tables:
        check_keys("relation", table, {"holds"})
        if "holds" not in table:
            raise InputError('A relation says what holds: holds = "gross = net + tax".')
    return tuple(Relation(table["holds"]) for table in tables)


def _blocks_of_tables(_: str, tables: Any) -> tuple[Block, ...]:
    if not isinstance(tables, list):
        raise InputError("Blocks are written [[block]], with two brackets, one for each block.")
    return tuple(map(Block.from_dict, tables))


def _columns_of_tables(_: str, tables: Any) -> dict[Any, Column]:
    check_table("columns", tables)
    for name, column in tables.items():
        check_table(f"What columns says of {shown(name)}", column)
    return columns_with({}, "columns", tables)


_RELATIONS = TEXTS._replace(
    check=_check_relations,
    from_file=_relations_of_tables,
    to_file=lambda relations: [{"holds": relation.text} for relation in relations],
    from_field=lambda text: [{"holds": line} for line in split_lines(text)],
    to_field=lambda tables: "\n".join(table["holds"] for table in tables),
)
_ANALYSES = TEXTS._replace(
    check=lambda _, given: formulas_of(given),
    # An analysis may also be a list, which the page does not show.
    to_field=lambda formulas: "\n".join(text for text in formulas if isinstance(text, str)),
)


@dataclass(frozen=True)
class PlanSettings(Section):
    """All settings of a release."""

    flags = "--"

    drop: Names = setting(
        (), form=NAMES, flag="--drop", help="Columns to leave out of OUT, such as names and ids."
    )
    renumber: Names = setting(
        (),
        help="Ids to replace by random numbers: none can be looked up, but equal ones stay equal, so that "
        "rows of one household still show as one. --drop hides more.",
    )
    confidential: Names = setting(
        (),
        form=CLAIMS,
        help="Columns left as they are that no attacker knows, with the reason why, as in 'diagnosis=medical "
        "file; in no register'. It is a claim: the report states what it stakes.",
    )
    reasons: Mapping[Any, str] = field(default_factory=dict)
    """Why no attacker knows a confidential column, for the board; in a file it is the column's value."""
    known: Names = setting(
        (),
        help="Columns left as they are on purpose. An attacker is assumed to know them, as any column "
        "without a role.",
    )
    unit_section: Unit = setting(
        Unit, section=Unit, keyword="unit", key="unit", help="Whose record it is: k counts units."
    )
    strata: Strata = setting(
        Strata, check=Strata.checked, section=Strata, help="Columns that groups never cross."
    )
    weight: Weight | None = setting(
        None, section=Weight, help="How many of the population a record stands for."
    )
    missing: Missing = setting(Missing, section=Missing, help="What becomes of missing values.")
    suppress: Suppress = setting(
        Suppress,
        section=Suppress,
        help="How many records may be left out where that lowers the loss most.",
    )
    columns: Mapping[Any, Column] = setting(
        dict,
        keyword="kinds",
        section=Column,
        form=Form(from_file=_columns_of_tables),
        help="How columns are read, recoded, compared and released.",
    )
    relations: tuple[Relation, ...] = setting(
        (),
        key="relation",
        form=_RELATIONS,
        flag="--relation",
        help="What holds between columns, such as 'gross = net + tax' or 'net <= gross': a plan that would "
        "break it is refused.",
        label="Relations that hold in every record, one a line",
        placeholder="gross = net + tax",
    )
    analyses: tuple[Any, ...] = setting(
        (),
        form=_ANALYSES,
        flag="--analysis",
        help="An analysis to run on both tables: 'income ~ age + sex' (regression), 'income by region' "
        "(means). Also median(income), 'quantile(income, 0.9)', share(status), gini(income) and "
        "poverty(income), the share below 60 % of the median. Each may have groups, as in 'poverty(income) "
        "by region'. May be given several times.",
        label="Analyses that must survive, one a line",
        placeholder="income ~ age + sex",
    )
    blocks: tuple[Block, ...] = setting(
        lambda: (Block(),),
        is_spread=True,
        key="block",
        section=Block,
        form=Form(from_file=_blocks_of_tables),
        help="Columns with one partition and one promise each.",
    )
    round: str = setting(
        "no",
        choices={
            "no": "may get decimals",
            "nearest": "stay whole",
            "totals": "stay whole, totals too",
        },
        form=SWITCH,
        help="Whole numbers stay whole: their means are rounded to the nearest. In a file: no, nearest, or "
        "totals (their sum stays the same too), for columns that say nothing themselves.",
        label="Whole numbers",
    )
    digits: int | str | None = setting(
        None,
        check=_check_digits,
        form=DIGITS,
        help="Decimals of released values; by default they are rounded to a millionth of the standard "
        "deviation, and so is the released weight. Weighted means are rounded to the steps of the column's "
        "own values (whole numbers, cents). Finer ones, and the word exact, which keeps all digits, make "
        "the verdict amber.",
        label="Decimals",
    )
    keep_order: bool | None = setting(
        None,
        flag="--keep-order/--no-keep-order",
        help="Keep the order of the rows; by default a file is in random order, which no seed repeats. Kept "
        "order can show which rows are one household, or the rank of a person, and is judged.",
        label="Keep the order of the rows",
    )
    accept: Accept = setting(
        Accept,
        is_spread=True,
        section=Accept,
        help="What the board decided; checked, and reported as pass or fail.",
    )
    seed: int | None = setting(
        0,
        keyword="random_state",
        check=_check_seed,
        form=SEED,
        help="Seed of methods that draw random numbers, 0 if left out; the word fresh draws a new one.",
        label="Seed",
    )
    notes: Mapping[Any, str] = field(default_factory=dict, compare=False, repr=False)
    """Why a column got its role, for the comments of a drafted plan."""

    @property
    def unit(self) -> Name | None:
        """Column that tells whose record it is; k counts its distinct values."""
        return self.unit_section.column

    def unit_of(self, block: Block) -> Unit:
        """Return the unit whose distinct values k counts in a block."""
        return block.unit or self.unit_section

    def words_of_unit(self, column: Any) -> UnitWords:
        """Return the noun for the units that a column tells apart; None: for records."""
        every = [self.unit_of(block) for block in self.blocks]
        nouns = [unit.name for unit in every if unit.column == column and unit.name is not None]
        return unit_words(column, next(iter(nouns), None))

    def strata_of(self, block: Block) -> Strata:
        """Return the strata that groups of a block never cross."""
        return self.strata if block.strata is None else block.strata

    @property
    def units(self) -> list[Any]:
        """Columns whose distinct values k counts in some block."""
        columns = [self.unit_of(block).column for block in self.blocks]
        return list(dict.fromkeys(name for name in columns if name is not None))

    @property
    def moved_together(self) -> list[Any]:
        """Units whose records are all in one group, in some block."""
        every = map(self.unit_of, self.blocks)
        return [unit.column for unit in every if unit.mode == "together"]

    @property
    def all_strata(self) -> list[Any]:
        """Columns that are strata of some block."""
        columns = [name for block in self.blocks for name in self.strata_of(block).columns]
        return list(dict.fromkeys(columns))

    @property
    def shared_strata(self) -> list[Any]:
        """Columns that are strata of every block, so that all records of any group share them."""
        every = [set(self.strata_of(block).columns) for block in self.blocks]
        return [name for name in self.all_strata if all(name in columns for columns in every)]

    def also_shared(self, block: Block | None = None) -> list[Any]:
        """Return the columns that records share in addition to the protected ones: strata and mean weight.

        They are those of a block, or of all blocks.
        """
        strata = self.all_strata if block is None else self.strata_of(block).columns
        blocks = self.blocks if block is None else (block,)
        mean = self.weight is not None and self.weight.release == "mean"
        mean = mean and not any(block.is_swapped for block in blocks)
        return [*strata, *([self.weight.column] if self.weight and mean else [])]

    def bundles_of(self, block: Block) -> list[list[Any]]:
        """Return the sets of columns of a block whose values are swapped together.

        These are the sets of ``together`` and the columns of each relation; sets that share a column are one.
        """
        chosen = set(block.columns or ())
        bound = [relation.columns for relation in self.relations]
        bundles: list[list[Any]] = []
        for names in [*block.together, *bound]:
            if not chosen.issuperset(names) or len(names) < 2:
                continue
            touched = [bundle for bundle in bundles if set(bundle) & set(names)]
            bundles = [bundle for bundle in bundles if bundle not in touched]
            every = [*(name for bundle in touched for name in bundle), *names]
            bundles.append(list(dict.fromkeys(every)))
        return bundles

    @property
    def is_swapped(self) -> bool:
        """Whether the values of some block are swapped within groups."""
        return any(block.is_swapped for block in self.blocks)

    @property
    def with_other_role(self) -> set[Any]:
        """Columns that cannot be protected, since they have another role or must stay different."""
        columns: set[Any] = {name for role in LISTS for name in getattr(self, role)}
        columns.update(self.all_strata)
        columns.update(name for block in self.blocks for name in block.require.diverse)
        columns.update(() if self.weight is None else (self.weight.column,))
        return columns | set(self.units)

    @property
    def analysed(self) -> set[Any]:
        """Columns that an analysis names, which the released table must have."""
        return {name for wanted in self.analyses for name in read_formula(wanted).columns}

    @property
    def categories(self) -> set[Any]:
        """Columns that the plan takes for categories, be they written as numbers."""
        return {name for name, column in self.columns.items() if column.kind in CATEGORIES}

    @property
    def related(self) -> set[Any]:
        """Columns that a relation names, which are not to be rounded each by itself."""
        return {name for relation in self.relations for name in relation.columns}

    def column(self, name: Any) -> Column:
        """Return the settings of a column, with the rounding of the plan if it fits and none is said."""
        column = self.columns.get(name, Column())
        if column.round is not None:
            return column
        return replace(column, round=self.round if column.kind in (None, *QUANTITIES) else "no")

    @property
    def coarsened(self) -> dict[Any, Coarsen]:
        """How columns are recoded before groups are formed, by name."""
        return {n: c.coarsen for n, c in self.columns.items() if c.coarsen is not None}
