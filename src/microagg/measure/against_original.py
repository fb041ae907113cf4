"""Measures of loss are about the original: a recoded column is compared as it was before its recoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.recoded_table import Recoded
from microagg.measure.both_tables import Pair
from microagg.tables.frame import Frame
from microagg.tables.variable import Variable, variable_of


def against_original(
    both: Pair,
    recoded: Mapping[Any, Recoded],
    before: Frame | None,
) -> Pair:
    """Return a pair with the originals of recoded columns, and with those of known columns and strata.

    Parameters
    ----------
    both : the recoded table before and after the release
    recoded : every recoded column, known ones and strata included
    before : the table before it was recoded
    """
    assert both.after is not None
    names, typed = list(both.names), list(both.variables)
    protected = [*both.protected.T]
    groups = [_groups(both, j) for j in range(len(names))]
    states = [
        np.isnan(released).astype(np.int64) if both.states is None else both.states[:, j]
        for j, released in enumerate(protected)
    ]
    for name, column in recoded.items():
        if name in both.names:
            j = names.index(name)
            protected[j] = column.stands_for(protected[j], typed[j])
            typed[j] = column.before
            continue
        after = _read(both.after, name, column)
        names.append(name)
        typed.append(column.before)
        protected.append(column.stands_for(after.values, after))
        groups.append(_numbered(after.values))
        states.append(after.states)
    return replace(
        both,
        variables=typed,
        protected=np.column_stack(protected),
        labels=np.column_stack(groups),
        states=np.column_stack(states),
        before=before,
        recoded_only=frozenset(recoded) - frozenset(both.names),
        after=_as_numbers(both.after, recoded),
    )


def _groups(both: Pair, j: int) -> Labels:
    labels = both.groups_of(j)
    assert labels is not None  # who releases knows the groups
    return labels


def _read(frame: Frame, name: Any, column: Recoded) -> Variable:
    recoder = column.recoder
    return variable_of(frame, name, recoder.after, recoder.codes, recoder.missing_words)


def _numbered(values: Floats) -> Labels:
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _as_numbers(frame: Frame, recoded: Mapping[Any, Recoded]) -> Frame:
    """Return a frame in which bands are the means of their values, for analyses of numbers."""
    banded = [name for name, column in recoded.items() if column.recoder.how.bands is not None]
    columns = {}
    for name in banded:
        after = _read(frame, name, recoded[name])
        columns[name] = frame.doubles_like(name, recoded[name].stands_for(after.values, after))
    return Frame(frame.with_columns(columns)) if columns else frame
