"""The plan: all that is decided about a release, as data that can be written down, read and compared.

Keywords of :func:`microagg.protect`, flags of the command and a TOML file build the same Plan. Every setting
is a row of a section (:mod:`microagg.plan.settings_table`) and is checked there, once. A plan holds no data:
names of columns and settings, nothing else. Roles of columns that nobody named come from
:mod:`microagg.drafting.draft`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from microagg.base.formatting import plural
from microagg.errors import InputError, TableError, shown
from microagg.plan.analysis_formulas import naming_formula, read_formula
from microagg.plan.block import BLOCK_SETTINGS, OWN_SECTIONS, Block
from microagg.plan.checks import check_keys, check_table, name_in_file, no_column, unknown
from microagg.plan.column import columns_with
from microagg.plan.consistency import check_plan
from microagg.plan.plan_settings import LISTS, PlanSettings
from microagg.plan.registry import METHODS, find
from microagg.plan.sections import Accept, Roles, claims_of
from microagg.plan.settings_table import rows_of

_FORMAT = 1  # version of the plan file
_EASILY_BOUND = 15_000  # records times k (at least 10) up to which a bound is proved within seconds
_HEADER = """\
# What is protected and how. Edit it, then: microagg protect IN OUT --plan THIS_FILE
# Columns that are named nowhere are left as they are and taken as known to an attacker.
"""


class _Unset:
    """The value of a setting that nobody gave, so that the plan's stays."""

    def __repr__(self) -> str:
        return "..."


UNSET: Any = _Unset()


class Promise(NamedTuple):
    """What is counted in a file: each combination of some columns is shared by at least k units."""

    k: int
    columns: Iterable[Any] | None  # none: all that are numbers
    unit: Any = None  # column whose distinct values are counted; None: records are


@dataclass(frozen=True)
class Plan(PlanSettings):
    """All settings of a release.

    Build one by keywords, :meth:`of`, from a file, :meth:`from_toml`, or from a table,
    :func:`microagg.draft`; :meth:`override` changes some settings.
    """

    def __post_init__(self) -> None:
        _, claimed = claims_of(self.confidential)
        _, named = claims_of(dict(self.reasons))
        object.__setattr__(self, "reasons", {**claimed, **named})
        super().__post_init__()

    def check_together(self) -> None:
        """Take what the one block has of its own for the plan's; refuse what does not go together."""
        apart = [
            block for block in self.blocks if block.unit is not None or block.strata is not None
        ]
        if len(self.blocks) == len(apart) == 1:
            # What the one block has of its own is the plan's, so that it is written in one way.
            (block,) = apart
            object.__setattr__(self, "unit_section", block.unit or self.unit_section)
            object.__setattr__(self, "strata", self.strata_of(block))
            object.__setattr__(self, "blocks", (replace(block, unit=None, strata=None),))
        check_plan(self)

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
        changes = {name: value for name, value in settings.items() if value is not UNSET}
        for name in OWN_SECTIONS:
            if name in changes and any(getattr(block, name) is not None for block in self.blocks):
                raise InputError(
                    f"Blocks of the plan have a {name} of their own; change it there, in each block."
                )
        if isinstance(changes.get("round"), bool):
            changes["round"] = "nearest" if changes["round"] else "no"
        whole: dict[str, Any] = {}
        if "kinds" in changes:
            whole["columns"] = columns_with(self.columns, "kinds", changes.pop("kinds"))
        if "coarsen" in changes:
            check_table("coarsen", changes["coarsen"])
            recoded = {name: {"coarsen": how} for name, how in changes.pop("coarsen").items()}
            whole["columns"] = columns_with(whole.get("columns", self.columns), "coarsen", recoded)
        for row in rows_of(type(self)):
            if row.keyword in changes and not row.is_spread:
                whole[row.name] = row.changed(getattr(self, row.name), changes.pop(row.keyword))
        accepted = {
            row.name: changes.pop(row.keyword) for row in rows_of(Accept) if row.keyword in changes
        }
        if accepted:
            whole["accept"] = replace(self.accept, **accepted)
        if "confidential" in whole:
            claims = claims_of(whole["confidential"], self.reasons)
            whole |= dict(zip(("confidential", "reasons"), claims, strict=True))
        if changes:
            whole["blocks"] = self._blocks_with(changes)
        return replace(self, **whole) if whole else self

    def _blocks_with(self, settings: dict[str, Any]) -> tuple[Block, ...]:
        if "columns" in settings and len(self.blocks) > 1:
            raise InputError(
                f"The plan has {plural(len(self.blocks), 'block')}, each with its own columns; "
                "change them there."
            )
        changes = {name: value for name, value in settings.items() if name in BLOCK_SETTINGS}
        added = {name: value for name, value in settings.items() if name not in BLOCK_SETTINGS}
        options_of_methods = {option.name for m in METHODS.values() for option in m.options}
        blocks = []
        for block in self.blocks:
            if "require" in settings:
                changes["require"] = BLOCK_SETTINGS["require"].changed(
                    block.require, settings["require"]
                )
            method = find(changes.get("method", block.method))
            has = {option.name for option in method.options}
            for name in added:
                # A word that no method knows is a slip; a word of another method is refused by its check.
                if name not in has | set(method.refuses) | options_of_methods:
                    raise unknown("setting", name, has | self._keywords())
            options = {name: value for name, value in block.options.items() if name in has}
            blocks.append(replace(block, **changes, options={**options, **added}))
        return tuple(blocks)

    def _keywords(self) -> set[str]:
        """Return all keywords of protect() that are settings, and its other ones."""
        rows = [*rows_of(type(self)), *rows_of(Accept), *rows_of(Block)]
        return {"coarsen", "plan", "progress", *(row.keyword for row in rows if not row.is_spread)}

    @property
    def k(self) -> int:
        """The least k of all blocks."""
        return min(_k(block) for block in self.blocks)

    def check_complete(self) -> None:
        """Refuse a plan that does not say k."""
        for block in self.blocks:
            _k(block)

    def is_easily_bound(self, records: int) -> bool:
        """Return whether a bound on the loss of this many records is proved, for the board's report.

        It is where that takes seconds, and where records count alike.
        """
        if len(self.blocks) > 1 or self.weight is not None:
            return False
        (block,) = self.blocks
        asked = block.bound is not False and block.released == "mean"
        return asked and records * max(block.k or 0, 10) <= _EASILY_BOUND

    def block_of(self, columns: Iterable[Any]) -> Block:
        """Find the block that protects some columns."""
        first = next(iter(columns))
        return next(block for block in self.blocks if first in (block.columns or ()))

    def promises(self, written: Mapping[Any, Any] = MappingProxyType({})) -> list[Promise]:
        """Return what is counted in a file: one promise for each partition, or for each swapped column.

        ``written`` has the names of columns in the file, where they differ from those of the table.

        >>> Plan.of(k=3, columns=["age", "income"], strata="region").promises()
        [Promise(k=3, columns=['age', 'income', 'region'], unit=None)]
        """
        promises = []
        for block in self.blocks:
            chosen = list(block.columns or ())
            sets = [[name] for name in chosen] if block.per_column else [chosen]
            if block.is_swapped:
                bundles = self.bundles_of(block)
                bundled = {name for bundle in bundles for name in bundle}
                sets = [*bundles, *([name] for name in chosen if name not in bundled)]
                if self.weight is not None and self.weight.release == "mean":
                    sets.append([self.weight.column])
            shared, unit = self.also_shared(block), self.unit_of(block).column
            for columns in sets:
                names = [written.get(name, name) for name in (*columns, *shared)]
                promises.append(Promise(_k(block), names, written.get(unit, unit)))
        return promises

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
                    with naming_formula(wanted):
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

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON and TOML: what differs from the defaults, and every block."""
        data = {"microagg": _FORMAT, **super().as_dict()}
        if self.reasons:
            data["confidential"] = {name: self.reasons.get(name, "") for name in self.confidential}
        data.pop("block", None)
        return data | {"block": [block.as_dict() for block in self.blocks]}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Plan:
        """Build a plan from what :meth:`as_dict` gives; unknown keys are refused."""
        check_table("A plan", given)
        version = given.get("microagg", "missing")
        if version != _FORMAT or isinstance(version, bool):
            raise InputError(
                f"A plan begins with the version of its format, microagg = {_FORMAT}; here it is "
                f"{shown(version)}."
            )
        rows = rows_of(cls)
        check_keys("a plan", given, ["microagg", *(row.key for row in rows)])
        return cls(**{row.name: row.read(given[row.key]) for row in rows if row.key in given})

    def to_toml(self) -> str:
        """Return the plan as the text of a TOML file, with its notes as comments."""
        named = {name for block in self.blocks for name in block.columns or ()}
        named |= {name for role in LISTS for name in getattr(self, role)}
        if self.weight is not None and self.weight.release != "keep":
            named.add(self.weight.column)
        known = {name: note for name, note in self.notes.items() if name not in named}
        data, lines = self.as_dict(), [_HEADER]
        for key, value in data.items():
            if key not in ("block", "columns", "accept", "relation"):
                lines.append(_entry(key, value, {} if key == "analyses" else self.notes))
        for column_name, column in data.get("columns", {}).items():
            lines += ["", f"[columns.{_key(column_name)}]", *_entries(column)]
        if "accept" in data:
            lines += ["", "[accept]", *_entries(data["accept"])]
        for block in data["block"]:
            settings = {key: value for key, value in block.items() if key != "require"}
            lines += ["", "[[block]]", *_entries(settings, self.notes)]
            if "require" in block:
                lines += ["[block.require]", *_entries(block["require"])]
        for relation in data.get("relation", ()):
            lines += ["", "[[relation]]", *_entries(relation)]
        if known:
            lines += ["", "# Left as they are, and taken as known to an attacker:"]
            lines += [f"#   {_comment(name)}: {_comment(note)}" for name, note in known.items()]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml_text(cls, text: str) -> Plan:
        """Build a plan from the text of a TOML file."""
        try:
            return cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"The plan is not a TOML file: {error}.") from None
        except RecursionError:
            raise InputError(
                "Lists and tables of a plan are at most four deep; these are deeper. Remove brackets."
            ) from None

    @classmethod
    def from_toml(cls, path: str | Path) -> Plan:
        """Build a plan from a TOML file."""
        try:
            return cls.from_toml_text(Path(path).read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise TableError(f"A plan is text in UTF-8; {shown(str(path), 300)} is not.") from None
        except OSError as error:
            raise TableError(
                f"Cannot read the plan {shown(str(path), 300)}: {error.strerror}."
            ) from None


def _k(block: Block) -> int:
    if block.k is None:
        raise InputError(
            "k, the least number of records that share their values, is not given. Say k=5, --k 5, or "
            "k = 5 in the block of the plan."
        )
    return block.k


# The plan as text: a TOML file with comments.


def _entries(
    table: Mapping[str, Any], notes: Mapping[Any, str] = MappingProxyType({})
) -> list[str]:
    return [_entry(key, value, notes) for key, value in table.items()]


def _entry(key: str, value: Any, notes: Mapping[Any, str]) -> str:
    """One setting; a list of columns takes a line for each that has a note."""
    if notes and isinstance(value, list) and any(name in notes for name in value):
        rows = [(f"    {_value(name)},", notes.get(name)) for name in value]
        width = min(max(len(row) for row, _ in rows), 40)
        body = "\n".join(
            row if note is None else f"{row:<{width}}  # {_comment(note)}" for row, note in rows
        )
        return f"{key} = [\n{body}\n]"
    return f"{key} = {_value(value)}"


def _comment(text: Any) -> str:
    """Text that stays on its line, whatever a column is called."""
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in str(text))


def _key(name: Any) -> str:
    """Write the name of a setting or column; bare where TOML lets it be."""
    text = name_in_file(name)
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else _string(text)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):  # one of numpy has another repr
        return repr(int(value) if isinstance(value, int) else float(value))
    if isinstance(value, list):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    if isinstance(value, Mapping):
        entries = (f"{_key(key)} = {_value(entry)}" for key, entry in value.items())
        return f"{{ {', '.join(entries)} }}"
    return _string(name_in_file(value))


def _string(text: str) -> str:
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InputError(f"A plan file is text in UTF-8, which {shown(text)} is not. Rename it.")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
