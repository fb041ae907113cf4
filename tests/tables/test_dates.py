"""Dates as numbers of their own unit and back."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg.tables.dates import dates_in_text, first_no_date, instants, to_arrow

TYPES = [
    pa.date32(),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    pa.timestamp("ms", "Asia/Tokyo"),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
@given(values=st.lists(st.none() | st.integers(-20_000, 40_000), min_size=1, max_size=9))
def test_there_and_back(kind, values):
    column = pa.chunked_array([pa.array(values, pa.int32() if kind == pa.date32() else pa.int64())])
    column = column.cast(kind)
    found = instants(column)
    assert np.isnan(found.values).tolist() == [value is None for value in values]
    present = [value for value in values if value is not None]
    if present:
        assert found.origin == min(present)
    back = to_arrow(found.values, kind, found.origin, found.format)
    assert back.equals(column.combine_chunks())


@given(st.lists(st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)), min_size=1, max_size=9))
def test_date64_is_of_whole_days(days):
    column = pa.chunked_array([pa.array(days, pa.date64())])
    found = instants(column)
    assert to_arrow(found.values, pa.date64(), found.origin, None).to_pylist() == days
    moved = to_arrow(found.values + 40_000_000, pa.date64(), found.origin, None)  # 11 hours
    assert moved.to_pylist() == days


FORMATS = ["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%m-%Y"]


@given(
    st.lists(st.none() | st.dates(dt.date(1900, 1, 1)), min_size=1, max_size=9),
    st.sampled_from(FORMATS),
)
def test_texts_equal_what_python_reads(days, form):
    texts = [None if day is None else day.strftime(form) for day in days]
    # strftime leaves zeros out in front of small years on some systems; these are after 1900.
    column = pa.chunked_array([pa.array(texts, pa.string())])
    found = instants(column)
    if all(day is None for day in days):
        assert found is None
        return
    assert found.format == form
    first = min(day for day in days if day is not None)
    expected = [np.nan if day is None else (day - first).days for day in days]
    assert np.array_equal(found.values, expected, equal_nan=True)
    back = to_arrow(found.values, pa.string(), found.origin, form)
    assert back.to_pylist() == texts


@pytest.mark.parametrize(
    "texts",
    [
        ["01/02/2024", "03/04/2024"],  # which is the day?
        ["2024-03-01", "01.03.2024"],
        ["2024-3-1", "2024-3-2"],
        ["2024-03-01", "never"],
        ["20240301"],
        ["a"],
        [None],
        [""],
    ],
)
def test_what_is_not_taken_for_dates(texts):
    assert dates_in_text(pa.chunked_array([pa.array(texts, pa.string())])) is None


def test_a_day_beyond_twelve_tells_day_from_month():
    column = pa.chunked_array([["01/02/2024", "13/02/2024"]])
    assert dates_in_text(column)[1] == "%d/%m/%Y"
    column = pa.chunked_array([["01/02/2024", "02/13/2024"]])
    assert dates_in_text(column)[1] == "%m/%d/%Y"


@pytest.mark.parametrize("form", ["%H:%M", "%H:%M:%S"])
def test_times_of_day_are_read_and_written_back(form):
    texts = ["11:38", "00:00", None, "23:59"]
    texts = [text and text + (":07" if "%S" in form else "") for text in texts]
    found = instants(pa.chunked_array([pa.array(texts)]))
    assert found.format == form
    assert (found.values[3] - found.values[0]) == 60 * (12 * 60 + 21)
    assert to_arrow(found.values, pa.string(), found.origin, form).to_pylist() == texts


def test_codes_beside_dates():
    column = pa.chunked_array([["2024-03-01", "refused", None, "2024-03-05"]])
    found = instants(column, ["refused"])
    assert np.array_equal(found.values, [0, np.nan, np.nan, 4], equal_nan=True)
    assert found.coded.tolist() == [-1, 0, -1, -1]
    assert instants(column) is None
    assert first_no_date(column) == 1
    assert first_no_date(column, ["refused"]) is None


def test_numbers_are_no_dates():
    assert instants(pa.chunked_array([[1, 2]])) is None
