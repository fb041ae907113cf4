"""The reference of the command and of the plan file, read from the program itself."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import typer

from microagg.cli.main import app
from microagg.plan.block import Block, Dominance, Require
from microagg.plan.column import Coarsen, Column
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept, Missing, Strata, Suppress, Unit, Weight
from microagg.plan.settings_table import Section, rows_of

__all__ = ["PARTS", "command_page", "keys_of", "plan_page"]

# The parts of a plan and where they stand in a file.
PARTS: dict[type[Any], str] = {
    Plan: "at the top of the file",
    Block: "`[[block]]`, one for each block",
    Require: "`[block.require]`",
    Dominance: "`n_k = { COLUMN = [n, k] }` of `[block.require]`",
    Column: "`[columns.NAME]`",
    Coarsen: "`[columns.NAME]`, `coarsen = { … }`",
    Strata: "`strata = { … }`, of the plan or of a block",
    Unit: "`unit = { … }`, of the plan or of a block",
    Weight: "`weight = { … }`",
    Missing: "`[missing]`",
    Suppress: "`suppress = { … }`",
    Accept: "`[accept]`",
}


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def command_page() -> str:
    """Write the reference of the command."""
    group: Any = typer.main.get_command(app)
    parts = [
        "# The command",
        "Made from the program itself: what `microagg COMMAND --help` says.",
        group.help,
        group.epilog,
    ]
    for name, command in group.commands.items():
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option"]
        usage = " ".join(["microagg", name, *(_metavar(p) for p in arguments)])
        parts += [f"## `microagg {name}`", f"```text\n{usage} [OPTIONS]\n```"]
        parts.append(inspect.cleandoc(command.help or ""))
        if arguments:
            parts.append(_rows("argument", [(_metavar(p), p.help or "") for p in arguments]))
        if options:
            parts.append(_rows("option", [_option(p) for p in options]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _option(parameter: Any) -> tuple[str, str]:
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    value = "" if parameter.is_flag else f" {_metavar(parameter)}"
    default = parameter.default
    told = "" if default in (None, False, ()) or callable(default) else f" Default: `{default}`."
    return f"{names}{value}", f"{parameter.help or ''}{told}"


def _rows(header: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| {header} | |", "|---|---|"]
    lines += [f"| `{_cell(name)}` | {_cell(words)} |" for name, words in rows]
    return "\n".join(lines)


def plan_page() -> str:
    """Write the reference of the plan file."""
    parts = [
        "# Every key of a plan",
        "Made from the definition in the program. [The plan file](../plan.md) explains them with examples; "
        "a key that is not listed here is refused.",
    ]
    for part, place in PARTS.items():
        words = inspect.cleandoc(part.__doc__ or "").split("\n\n")[0]
        parts += [f"## {part.__name__}", f"{words}\n\nWhere: {place}."]
        parts.append(keys_of(part))
    return "\n\n".join(parts) + "\n"


def keys_of(part: type[Section]) -> str:
    """Write the keys of a part of the plan as a table."""
    lines = ["| key | type | default | flag | |", "|---|---|---|---|---|"]
    types = {field.name: _type(field.type) for field in dataclasses.fields(part)}
    for row in rows_of(part):
        flag = f"`{row.flag.split(',')[0]}`" if row.flag else ""
        cells = (f"`{row.key}`", f"`{types[row.name]}`", _default(row.default), flag, row.help)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(lines)


def _type(annotation: Any) -> str:
    """Return an annotation as it was written, or by the names of its classes where it was evaluated."""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(default: Any) -> str:
    if default is dataclasses.MISSING:
        return "required"
    plain_value = default is None or isinstance(default, Section | tuple | dict)
    return "" if plain_value else f"`{default!r}`"
