"""Text that a spreadsheet program takes for a formula when it opens a CSV file, and may run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from microagg.errors import InputError, shown
from microagg.tables.frame_libraries import decoded, is_text

_BEGINS = r"^[=+\-@\t\r]"
_HARMLESS = r"^[+\-]?[\d.,\s]*([eE][+\-]?\d+)?\s?%?$"  # numbers, phone numbers, a dash for nothing


def formula_cells(table: pa.Table) -> Counter[str]:
    """Count the cells of each text column that begin like a formula; a name of a column counts as one.

    >>> table = pa.table({"note": ["=1+1", "-5", "+49 30 1234", "@SUM(A1)", "a=b"], "x": [1, 2, 3, 4, 5]})
    >>> dict(formula_cells(table))
    {'note': 2}
    """
    counts: Counter[str] = Counter()
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = int(_like_formula(pa.array([name]))[0].as_py())
        if is_text((texts := decoded(column)).type):
            cells += pc.sum(_like_formula(texts)).as_py() or 0
        if cells:
            counts[name] = cells
    return counts


def with_escaped_formulas(table: pa.Table) -> pa.Table:
    """Return a table with an apostrophe in front of each text or column name that begins like a formula.

    Categories of text become plain text, as a CSV file has them. A name that exists already gets another
    apostrophe.

    >>> with_escaped_formulas(pa.table({"note": ["=1+1", "-5"]}))["note"].to_pylist()
    ["'=1+1", '-5']
    """
    for at, column in enumerate(table.columns):
        if not is_text((texts := decoded(column)).type):
            continue
        marked = pc.binary_join_element_wise(pa.scalar("'", texts.type), texts, "")
        new = pc.if_else(_like_formula(texts), marked, texts)
        table = table.set_column(at, table.schema.field(at).with_type(new.type), new)
    return table.rename_columns(_escaped_names(table.column_names))


def _escaped_names(names: list[str]) -> list[str]:
    escaped, all_names = [], set(names)
    for name, hostile in zip(names, _like_formula(pa.array(names)).to_pylist(), strict=True):
        new = name
        while hostile and new in all_names:
            new = f"'{new}"
        all_names.add(new)
        escaped.append(new)
    return escaped


def no_formulas(target: Path) -> InputError:
    """Say that a file is not one whose text is taken for formulas."""
    return InputError(
        "--escape-formulas (escape_formulas) is about CSV files, whose text a spreadsheet program "
        f"may take for formulas; {shown(str(target), 300)} is none. Leave the setting out."
    )


def _like_formula(texts: Any) -> Any:
    begins = pc.match_substring_regex(texts, _BEGINS)
    return pc.fill_null(
        pc.and_(begins, pc.invert(pc.match_substring_regex(texts, _HARMLESS))), False
    )
