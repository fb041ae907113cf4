"""The protected columns of a released table, as the public report counts and draws them.

It looks at the released table and the plan only. A column holds numbers, dates or categories; categories of
too few records are not named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.kernels.labels import combine
from microagg.measure.associations import associations
from microagg.measure.chart_data import bars, distribution, with_dates
from microagg.measure.classes import classes
from microagg.measure.known_columns import known_columns
from microagg.measure.timescale import time_scale
from microagg.plan.column import CATEGORIES, Column
from microagg.tables.frame import Frame
from microagg.tables.variable import Variable, variable_of


class ReleasedColumns:
    """Protected columns as they were released."""

    def __init__(
        self,
        frame: Frame,
        names: Sequence[Any],
        settings: Mapping[Any, Column],
        codes: Mapping[Any, Sequence[Any]],
    ) -> None:
        self._frame = frame
        self.names = list(names)
        self.variables = [
            _variable(frame, name, settings.get(name, Column()), codes.get(name, ()))
            for name in names
        ]

    @cached_property
    def _matrix(self) -> Floats:
        return np.column_stack([variable.values for variable in self.variables])

    @cached_property
    def classes(self) -> Labels:
        """Class of each record by all its protected values; missing is a value."""
        if any(v.is_category or v.missing.any() or v.kind == "date" for v in self.variables):
            columns = known_columns(self._frame, self.names)
            return combine([column.codes for column in columns.values()])
        return classes(self._matrix)

    def distributions(self, least: int) -> dict[str, dict[str, Any]]:
        """Count each column in bins or categories of at least ``least`` records."""
        return {
            str(variable.name): self._distribution(variable, least) for variable in self.variables
        }

    def _distribution(self, variable: Variable, least: int) -> dict[str, Any]:
        values = variable.values[~variable.missing]
        if variable.is_category:
            names = [str(level) for level in variable.levels]
            return bars([values.astype(np.int64)], names, least, variable.kind == "ordinal")
        if len(values) < least:
            return {"levels": [], "after": []}
        found = distribution([values], least)
        return with_dates(found, time_scale(self._frame, variable, values))

    def associations(self) -> Floats:
        """Return the association of any two columns, see :mod:`microagg.measure.associations`."""
        return associations(self._matrix, [variable.is_category for variable in self.variables])

    @property
    def has_categories(self) -> bool:
        """Whether some column holds categories."""
        return any(variable.is_category for variable in self.variables)


def _variable(frame: Frame, name: Any, setting: Column, codes: Sequence[Any]) -> Variable:
    """Read a released column; the kind of the original need not fit the means."""
    if setting.kind == "ordinal":
        return variable_of(frame, name, setting, codes)
    if setting.kind in CATEGORIES:
        return variable_of(frame, name, Column(kind="nominal"), codes)
    if setting.kind is not None and setting.kind != "date":
        return variable_of(frame, name, Column(kind="number"), codes)
    return variable_of(frame, name, Column(kind=None), codes)
