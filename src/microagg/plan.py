"""The plan: all that is decided about a release, as data that can be written down, read and compared.

Keywords of :func:`microagg.protect`, flags of the command and a TOML file build the same Plan, and every
setting is checked here, once. A plan holds no data: names of columns and settings, nothing else.
What a table adds, the columns that nobody named, comes from :mod:`microagg.draft`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from microagg.errors import InputError, shown
from microagg.plan_checks import (
    check_bool,
    check_keys,
    check_number,
    check_table,
    check_word,
    column_names,
    no_column,
    text_names,
    unknown,
)
from microagg.plan_text import flags, read_plan_file, read_toml, write_toml
from microagg.registry import METHODS, find
from microagg.settings import (
    AGGREGATE_OF_COST,
    check_aggregate,
    check_effort,
    check_k,
    check_options,
    check_random_state,
    check_scale,
    check_time_limit,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["UNSET", "Accept", "Block", "Column", "Plan", "Roles"]

Name = Hashable
Names = tuple[Name, ...]

FORMAT = 1  # version of the plan file
KINDS = ("number", "integer", "boolean", "nominal", "ordinal", "date", "spiked", "hierarchy")
ROUNDINGS = ("no", "nearest")
_FRESH = "fresh"  # a seed of None, which TOML has no word for
_MOST_DIGITS = 15


class _Unset:
    """The value of a setting that nobody gave, so that the plan's stays."""

    def __repr__(self) -> str:
        return "..."


UNSET: Any = _Unset()


@dataclass(frozen=True)
class Column:
    """How one protected column is read and released."""

    kind: str | None = None
    """"number", "integer", or None: what the table says."""
    round: str | None = None
    """"no", "nearest" (whole numbers stay whole), or None: as the plan says."""
    levels: tuple[Any, ...] | None = None
    importance: float = 1.0
    transform: str | None = None
    release: str | None = None
    spike: float | None = None
    prefixes: tuple[int, ...] | None = None
    parents: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if self.kind is not None:
            check_word("kind", self.kind, KINDS)
        if self.round is not None:
            check_word("round", self.round, ROUNDINGS)


@dataclass(frozen=True)
class Block:
    """Columns with one partition and one promise."""

    columns: Names | None = None
    """None: the quantities that the draft finds in the table."""
    k: int | None = None
    method: str = "auto"
    aggregate: str | None = None
    """None: what fits the cost, the mean as a rule."""
    scale: str = "zscore"
    per_column: bool = False
    refine: bool | str = False
    bound: bool | str | None = None
    """None: in a report, where it takes seconds."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the method, such as effort or gamma."""

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", column_names("columns", self.columns))
            if not self.columns:
                raise InputError(
                    "No column was named. Name at least one, or leave columns out to have the "
                    "quantities of the table protected."
                )
        if self.k is not None:
            object.__setattr__(self, "k", check_k(self.k, sys.maxsize))
        object.__setattr__(self, "method", find(self.method).name)
        check_scale(self.scale)
        if self.aggregate is not None:
            check_aggregate(self.aggregate)
        check_bool("per_column", self.per_column)
        if self.refine is True:
            object.__setattr__(self, "refine", "balanced")
        elif self.refine is not False:
            check_effort(self.refine)
        if self.bound is not None and not isinstance(self.bound, bool):
            check_effort(self.bound)
        # An option of None is one that was left out.
        given = {name: value for name, value in self.options.items() if value is not None}
        object.__setattr__(self, "options", given)
        self._check_options()

    def _check_options(self) -> None:
        known = check_options(find(self.method), self.options)
        for name, value in self.options.items():
            if name == "random_state":
                raise InputError(
                    "The seed is a setting of the whole plan; give random_state, --seed or seed there."
                )
            if not isinstance(value, str | int | float | bool | None) or (
                isinstance(value, float) and not math.isfinite(value)
            ):
                raise InputError(
                    f"A plan holds no data: option {shown(name)} must be a number or a word; got a "
                    f"{type(value).__name__}. Use microagg.partition for options that are data."
                )
        if "effort" in known and "effort" in self.options:
            check_effort(self.options["effort"])
        if "time_limit" in known:
            check_time_limit(self.options.get("time_limit"))

    @property
    def released(self) -> str:
        """What a group releases."""
        cost = str(self.options.get("cost", "sse"))
        return self.aggregate or AGGREGATE_OF_COST.get(cost, "mean")


@dataclass(frozen=True)
class Accept:
    """What the board decided: a release beyond these figures fails."""

    loss: float | None = None
    """Most information loss, in percent."""
    linkage: float | None = None
    """Largest share of records linked, 0 to 1, with what an attacker knows."""

    def __post_init__(self) -> None:
        check_number("max_loss", self.loss, "a percentage from 0 up", 0, math.inf)
        check_number(
            "max_linkage",
            self.linkage,
            "a share of the records from 0 to 1 (for 20 % write 0.2)",
            0,
            1,
        )


@dataclass(frozen=True)
class Roles:
    """Who is what in a table: every column has exactly one of these, beside being a unit."""

    protected: list[Any]
    dropped: list[Any]
    renumbered: list[Any]
    confidential: list[Any]
    known: list[Any]
    """Left as they are and not confidential: taken as known to an attacker."""
    unit: Any = None

    @property
    def released(self) -> list[Any]:
        """Columns left as they are, known or confidential."""
        return [*self.confidential, *self.known]

    @property
    def named(self) -> list[Any]:
        """All columns of the table."""
        return [*self.protected, *self.dropped, *self.renumbered, *self.released]


@dataclass(frozen=True)
class Plan:
    """All settings of a release.

    Build one by keywords, :meth:`of`, from a file, :meth:`from_toml`, or from a table,
    :func:`microagg.draft`; :meth:`override` changes some settings.
    """

    blocks: tuple[Block, ...] = field(default_factory=lambda: (Block(),))
    columns: Mapping[Any, Column] = field(default_factory=dict)
    drop: Names = ()
    renumber: Names = ()
    confidential: Names = ()
    unit: Name | None = None
    shuffle: bool = False
    round: str = "no"
    digits: int | None = None
    """Decimals of released values; None: a millionth of a column's standard deviation is kept."""
    seed: int | None = 0
    accept: Accept = field(default_factory=Accept)
    notes: Mapping[Any, str] = field(default_factory=dict, compare=False, repr=False)
    """Why a column got its role, for the comments of a drafted plan."""

    def __post_init__(self) -> None:
        for role in ("drop", "renumber", "confidential"):
            object.__setattr__(self, role, column_names(role, getattr(self, role)))
        if not self.blocks:
            raise InputError("A plan needs at least one block of columns to protect.")
        if len(self.blocks) > 1 and any(block.columns is None for block in self.blocks):
            raise InputError("With several blocks each must name its columns; one does not.")
        column_names("unit", (self.unit,))
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
        self._check_roles()

    def _check_roles(self) -> None:
        """Refuse a column that is given two things to be."""
        seen: dict[Any, str] = {}
        protected = {f"block {i + 1}": b.columns or () for i, b in enumerate(self.blocks)}
        if len(self.blocks) == 1:
            protected = {"columns": self.blocks[0].columns or ()}
        for role, names in (
            *protected.items(),
            ("drop", self.drop),
            ("renumber", self.renumber),
            ("confidential", self.confidential),
        ):
            for name in names:
                if name in seen:
                    raise InputError(
                        f"A column has one role; {shown(name)} is named in {seen[name]} and in {role}. "
                        "Name it once."
                    )
                seen[name] = role
        chosen = {name for block in self.blocks for name in block.columns or ()}
        if self.unit is not None and self.unit in chosen:
            raise InputError(
                f"The unit {shown(self.unit)} tells whose record it is and cannot be protected by "
                "averaging. Leave it out of the columns; renumber or drop it before release."
            )
        for name in self.columns:
            if name in seen and name not in chosen:
                raise InputError(
                    f"columns describes how a column is protected; {shown(name)} is in {seen[name]}."
                )

    @classmethod
    def of(cls, **settings: Any) -> Plan:
        """Build a plan from the keywords of :func:`microagg.protect`.

        >>> Plan.of(k=5, columns=["age", "income"], drop="name").drop
        ('name',)
        """
        return cls().override(**settings)

    def override(self, **settings: Any) -> Plan:
        """Return the plan with some settings changed, by their keywords; UNSET ones stay."""
        given = {name: value for name, value in settings.items() if value is not UNSET}
        whole: dict[str, Any] = {}
        if "random_state" in given:
            whole["seed"] = given.pop("random_state")
        accepted = {
            key: given.pop(f"max_{key}") for key in ("loss", "linkage") if f"max_{key}" in given
        }
        if accepted:
            whole["accept"] = replace(self.accept, **accepted)
        if isinstance(given.get("round"), bool):
            given["round"] = "nearest" if given["round"] else "no"
        if "kinds" in given:
            whole["columns"] = _with_kinds(self.columns, given.pop("kinds"))
        for name in ("drop", "renumber", "confidential"):
            if name in given:
                whole[name] = column_names(name, given.pop(name) or ())
        for name in ("unit", "shuffle", "round", "digits"):
            if name in given:
                whole[name] = given.pop(name)
        if given:
            whole["blocks"] = self._blocks_with(given)
        return replace(self, **whole)

    def _blocks_with(self, given: dict[str, Any]) -> tuple[Block, ...]:
        if "columns" in given and len(self.blocks) > 1:
            raise InputError(
                f"The plan has {len(self.blocks)} blocks, each with its own columns; change them there."
            )
        own = {f.name for f in fields(Block)} - {"options"}
        changes = {name: value for name, value in given.items() if name in own}
        added = {name: value for name, value in given.items() if name not in own}
        blocks = []
        for block in self.blocks:
            method = find(changes.get("method", block.method))
            has = {option.name for option in method.options}
            for name in added:
                # A word that no method knows is a slip; one of another method is told by its check.
                if name not in has | set(method.refuses) and not _is_option(name):
                    raise unknown("setting", name, own | has | _KEYWORDS)
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

    def roles(self, names: Collection[Any]) -> Roles:
        """Give every column of a table its role; refuse names that the table does not have."""
        protected = [name for block in self.blocks for name in block.columns or ()]
        there = set(names)
        named = [*protected, *self.drop, *self.renumber, *self.confidential, *self.columns]
        for name in [*named, *(() if self.unit is None else (self.unit,))]:
            if name not in there:
                raise no_column(name, names)
        rest = {*protected, *self.drop, *self.renumber, *self.confidential}
        return Roles(
            protected=protected,
            dropped=list(self.drop),
            renumbered=list(self.renumber),
            confidential=list(self.confidential),
            known=[name for name in names if name not in rest],
            unit=self.unit,
        )

    def column(self, name: Any) -> Column:
        """How a column is read and released; round is filled in."""
        own = self.columns.get(name, Column())
        return replace(own, round=own.round or self.round)

    def settings(self) -> dict[str, Any]:
        """Return the keywords that build this plan, defaults left out; only of a plan with one block."""
        if len(self.blocks) > 1:
            raise InputError("Keywords describe one block; this plan has several.")
        block, usual = self.blocks[0], Block()
        found: dict[str, Any] = {}
        for f in fields(Block):
            value = getattr(block, f.name)
            if f.name != "options" and value != getattr(usual, f.name):
                found[f.name] = list(value) if f.name == "columns" else value
        found |= dict(block.options)
        for name in ("drop", "renumber", "confidential"):
            if getattr(self, name):
                found[name] = list(getattr(self, name))
        if self.unit is not None:
            found["unit"] = self.unit
        if self.shuffle:
            found["shuffle"] = True
        if self.round != "no":
            found["round"] = True
        if self.digits is not None:
            found["digits"] = self.digits
        if self.columns:
            found["kinds"] = {
                name: column.kind if column.round is None else vars(column)
                for name, column in self.columns.items()
            }
        if self.seed != 0:
            found["random_state"] = self.seed
        for name in ("loss", "linkage"):
            if getattr(self.accept, name) is not None:
                found[f"max_{name}"] = getattr(self.accept, name)
        return found

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
        """Return the words of the command that does the same; of several blocks, with a plan file.

        >>> Plan.of(k=5, columns=["age", "net, gross"]).as_command("in.csv", "out.csv")[4:]
        ['--columns', 'age,"net, gross"', '--k', '5']
        """
        words = ["microagg", "protect", source, target]
        if len(self.blocks) > 1 or any(c.round is not None for c in self.columns.values()):
            return [*words, "--plan", plan]
        return [*words, *flags(self.settings())]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON and TOML: what differs from the defaults, and every block."""
        found: dict[str, Any] = {"microagg": FORMAT}
        if self.seed != 0:
            found["seed"] = _FRESH if self.seed is None else self.seed
        for name in ("drop", "renumber", "confidential"):
            if getattr(self, name):
                found[name] = list(getattr(self, name))
        if self.unit is not None:
            found["unit"] = {"column": self.unit}
        if self.shuffle:
            found["shuffle"] = True
        if self.round != "no":
            found["round"] = self.round
        if self.digits is not None:
            found["digits"] = self.digits
        if self.columns:
            found["columns"] = {
                name: {key: value for key, value in vars(column).items() if value is not None}
                for name, column in self.columns.items()
            }
        accepted = {key: value for key, value in vars(self.accept).items() if value is not None}
        if accepted:
            found["accept"] = accepted
        found["block"] = [_block_as_dict(block) for block in self.blocks]
        return found

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Plan:
        """Build a plan from what :meth:`as_dict` gives; unknown keys are refused."""
        check_table("A plan", given)
        version = given.get("microagg", "missing")
        if version != FORMAT or isinstance(version, bool):
            raise InputError(
                f"A plan begins with the version of its format, microagg = {FORMAT}; here it is "
                f"{shown(version)}."
            )
        check_keys("a plan", given, _KEYS)
        whole: dict[str, Any] = {}
        for name in ("drop", "renumber", "confidential"):
            if name in given:
                whole[name] = text_names(name, given[name])
        for name in ("shuffle", "round", "digits"):
            if name in given:
                whole[name] = given[name]
        if "seed" in given:
            whole["seed"] = None if given["seed"] == _FRESH else given["seed"]
        if "unit" in given:
            whole["unit"] = _unit(given["unit"])
        if "accept" in given:
            check_keys("accept", given["accept"], {f.name for f in fields(Accept)})
            whole["accept"] = Accept(**given["accept"])
        if "columns" in given:
            check_table("columns", given["columns"])
            for name, column in given["columns"].items():
                check_keys(f"columns.{name}", column, {f.name for f in fields(Column)})
            whole["columns"] = {name: Column(**c) for name, c in given["columns"].items()}
        blocks = given.get("block", [{}])
        if not isinstance(blocks, list):
            raise InputError("Blocks are written [[block]], with two brackets, one for each block.")
        whole["blocks"] = tuple(_block_from_dict(block) for block in blocks)
        return cls(**whole)

    def to_toml(self) -> str:
        """Return the plan as the text of a TOML file, with its notes as comments."""
        named = {name for block in self.blocks for name in block.columns or ()}
        named |= {*self.drop, *self.renumber, *self.confidential}
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


_KEYS = {
    "microagg",
    "seed",
    "drop",
    "renumber",
    "confidential",
    "unit",
    "shuffle",
    "round",
    "digits",
    "columns",
    "accept",
    "block",
}
# Keywords of protect() that are not settings of a block.
_KEYWORDS = {
    "random_state",
    "drop",
    "renumber",
    "confidential",
    "unit",
    "shuffle",
    "round",
    "digits",
    "kinds",
    "max_loss",
    "max_linkage",
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


def _with_kinds(columns: Mapping[Any, Column], kinds: Any) -> dict[Any, Column]:
    check_table("kinds", kinds)
    found = dict(columns)
    for name, kind in kinds.items():
        if isinstance(kind, Mapping):
            check_keys(f"kinds[{name!r}]", kind, {f.name for f in fields(Column)})
            found[name] = Column(**kind)
        else:
            found[name] = replace(found.get(name, Column()), kind=kind)
    return found


def _block_as_dict(block: Block) -> dict[str, Any]:
    usual = Block()
    found: dict[str, Any] = {}
    for f in fields(Block):
        value = getattr(block, f.name)
        if f.name != "options" and value != getattr(usual, f.name):
            found[f.name] = list(value) if f.name == "columns" else value
    return found | {name: value for name, value in block.options.items() if value is not None}


def _block_from_dict(given: Any) -> Block:
    check_table("block", given)
    own = {f.name for f in fields(Block)} - {"options"}
    method = find(given.get("method", "auto"))
    has = {option.name for option in method.options} - {"random_state"}
    for name in given:
        if name not in own | has and name not in method.refuses:
            raise unknown("key of a block", name, own | has)
    settings = {name: value for name, value in given.items() if name in own}
    if "columns" in given:
        settings["columns"] = text_names("columns", given["columns"])
    return Block(
        **settings,
        options={name: value for name, value in given.items() if name not in own},
    )


def _unit(given: Any) -> Any:
    if isinstance(given, Mapping):
        check_keys("unit", given, {"column"})
        if "column" not in given:
            raise InputError('unit names a column: unit = { column = "household" }.')
        given = given["column"]
    if not isinstance(given, str):
        raise InputError(f"unit is the name of one column; got {shown(given)}.")
    return given
