"""Instants in words, whatever the type of the column."""

import datetime

import pyarrow as pa
import pytest

from microagg.measure.before_and_after import time_scale
from microagg.tables.frame import Frame
from microagg.tables.variable import variable_of

DAYS = [datetime.date(1931, 2, 28), datetime.date(1999, 12, 31), datetime.date(2024, 2, 29)]
MINUTES = [datetime.datetime(2024, 2, 29, 7, m) for m in (5, 30, 59)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_one_day_have_hours(unit):
    words = _words(pa.array(MINUTES, pa.timestamp(unit)))
    assert words == ["2024-02-29 07:05", "2024-02-29 07:30", "2024-02-29 07:59"]


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("s", "UTC")])
def test_dates_of_many_years_have_none(kind):
    stamps = [datetime.datetime(d.year, d.month, d.day) for d in DAYS]
    values = DAYS if pa.types.is_date(kind) else stamps
    assert _words(pa.array(values, kind)) == [str(day) for day in DAYS]


def test_texts_times_and_spans():
    assert _words(pa.array(["29.02.2024", "31.12.1999"])) == ["2024-02-29", "1999-12-31"]
    times = ["2024-02-29 07:05:00", "2024-03-01 23:59:00"]
    assert _words(pa.array(times)) == ["2024-02-29 07:05", "2024-03-01 23:59"]
    assert _words(pa.array([datetime.time(7, 5), datetime.time(23, 59)])) == ["07:05", "23:59"]
    spans = pa.array([datetime.timedelta(days=2), datetime.timedelta(days=30)])
    assert _words(spans) == ["2 days", "30 days"]


def test_differences():
    days = time_scale(*_read(pa.array(DAYS)))
    assert [days.span(d) for d in (0, 0.5, 30, 3652.425)] == [
        "0 days",
        "12 hours",
        "30 days",
        "10 years",
    ]


def test_nothing_is_made_up_where_the_type_is_not_known():
    _, variable, values = _read(pa.array(DAYS))
    assert time_scale(None, variable, values) is None
    frame, number, values = _read(pa.array([1.0, 2.0]))
    assert time_scale(frame, number, values) is None
    gone = time_scale(*_read(pa.array([*DAYS, None])))
    assert gone.words(float("nan")) == "–"


def _read(array):
    frame = Frame(pa.table({"x": array}))
    variable = variable_of(frame, "x")
    return frame, variable, variable.values


def _words(array):
    frame, variable, values = _read(array)
    scale = time_scale(frame, variable, values)
    return [scale.words(value) for value in values]
