"""Whether a file that was written holds what was to be in it, beside what was protected."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import pyarrow as pa

from microagg.errors import shown
from microagg.formats import FORMATS
from microagg.formats.files import Source
from microagg.tables.file_metadata import ColumnFacts, Labelled

__all__ = ["difference"]

_OF_VALUES = ("storage", "width")  # which follow new values


def difference(table: pa.Table, back: Source, untouched: Iterable[str]) -> str | None:
    """Say what first differs between a table and the file that it was written to; None: nothing.

    Compared are the names of all columns, the values of those untouched, and the labels, missing codes and
    formats of all that the format of the file has a place for.
    """
    found, own = back.as_written, FORMATS[back.kind]
    if sorted(found.column_names) != sorted(table.column_names):
        return "its columns have other names"
    if found.num_rows != table.num_rows:
        return f"it has {found.num_rows} of {table.num_rows} records"
    kept = set(untouched)
    for name in table.column_names:
        if name in kept and not own.same(table, found, name):
            return f"the values of column {shown(name)} are not those that were to be written"
    return _other_fact(Labelled.of(table.schema), back, kept)


def _other_fact(given: Labelled, back: Source, untouched: set[str]) -> str | None:
    own = FORMATS[back.kind]
    if not own.keeps_facts and given.family != back.kind:
        return None
    found = back.labelled
    may_widen = FORMATS.get(given.family, own).may_widen
    for name, facts in given.columns.items():
        for field in dataclasses.fields(ColumnFacts):
            value, other = getattr(facts, field.name), getattr(found[name], field.name)
            if field.name in _OF_VALUES and (name not in untouched or may_widen(facts, given)):
                continue
            if field.name == "value_labels":
                value, other = dict(value), dict(other)
            if value not in (None, ()) and value != other:
                what = field.name.replace("_", " ")
                return f"column {shown(name)} has another {what}"
    if (given.label, given.notes) != (found.label, found.notes) and given.family != "sas":
        return "the label or the notes of the table are others"
    return None
