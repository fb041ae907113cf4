"""The reference of the command and of the plan file, read from the program itself."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from typing import Any

import typer

from microagg.cli.main import app
from microagg.plan.block import Block, Dominance, Recursive, Require
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept, Coarsen, Column, Missing, Strata, Unit, Weight

__all__ = ["PARTS", "command_page", "documented_fields", "plan_page"]

# The parts of a plan and where they stand in a file.
PARTS: dict[type[Any], str] = {
    Plan: "at the top of the file",
    Block: "`[[block]]`, one for each block",
    Require: "`[block.require]`",
    Recursive: "`recursive = { COLUMN = [c, l] }` of `[block.require]`",
    Dominance: "`n_k = { COLUMN = [n, k] }` of `[block.require]`",
    Column: "`[columns.NAME]`",
    Coarsen: "`[columns.NAME]`, `coarsen = { … }`",
    Strata: "`strata = { … }`, of the plan or of a block",
    Unit: "`unit = { … }`, of the plan or of a block",
    Weight: "`weight = { … }`",
    Missing: "`[missing]`",
    Accept: "`[accept]`",
}
# Fields with another name in a file, and those that no file has.
_IN_FILES = {"blocks": "block", "relations": "relation"}
_IN_NO_FILE = {"notes", "unit_mode"}


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


def documented_fields(part: type[Any]) -> dict[str, str]:
    """The docstring right under each field of a dataclass; none where there is none."""
    (made,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
    assert isinstance(made, ast.ClassDef)
    found: dict[str, str] = {}
    last = None
    for line in made.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            last = line.target.id
            found[last] = ""
        elif isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and last:
            found[last] = str(line.value.value)
    return found


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
        docs = documented_fields(part)
        rows = ["| key | type | default | |", "|---|---|---|---|"]
        for field in dataclasses.fields(part):
            if field.name in _IN_NO_FILE:
                continue
            key = _IN_FILES.get(field.name, field.name)
            kind, default = _cell(str(field.type)), _cell(_default(field))
            rows.append(f"| `{key}` | `{kind}` | {default} | {_cell(docs[field.name])} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"`{field.default!r}`" if field.default not in (None, ()) else ""
    return "" if field.default_factory is not dataclasses.MISSING else "required"
