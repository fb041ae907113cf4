"""Dates and times of statistical packages against Python's own calendar."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg.formats.statistical import as_moments, as_numbers, moment_format

# When each package begins to count, and in what.
DAYS = {
    "spss": (dt.date(1582, 10, 14), 86_400, "EDATE10"),
    "stata": (dt.date(1960, 1, 1), 1, "%td"),
    "sas": (dt.date(1960, 1, 1), 1, "DATE9."),
}
TIMES = {
    "spss": (dt.datetime(1582, 10, 14), 1, "DATETIME20"),
    "stata": (dt.datetime(1960, 1, 1), 1000, "%tc"),
    "sas": (dt.datetime(1960, 1, 1), 1, "DATETIME19."),
}


@pytest.mark.parametrize("family", DAYS)
@given(days=st.lists(st.dates(dt.date(1583, 1, 1)) | st.none(), min_size=1))
def test_days(family, days):
    start, unit, form = DAYS[family]
    numbers = pa.array(
        [None if d is None else float((d - start).days * unit) for d in days], pa.float64()
    )
    found = as_moments(numbers, family, form)
    assert found.to_pylist() == days
    assert as_numbers(found, family, form).equals(numbers)


@pytest.mark.parametrize("family", TIMES)
@given(
    times=st.lists(
        st.datetimes(dt.datetime(1583, 1, 1), dt.datetime(2200, 1, 1)).map(
            lambda t: t.replace(microsecond=0)
        )
    )
)
def test_times(family, times):
    start, unit, form = TIMES[family]
    numbers = pa.array([(t - start).total_seconds() * unit for t in times], pa.float64())
    found = as_moments(numbers, family, form)
    assert found.to_pylist() == times
    assert as_numbers(found, family, form).equals(numbers)


@pytest.mark.parametrize("form", ["EDATE10", "DATETIME23.2"])
@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_come_back_or_stay(form, values):
    numbers = pa.array(values)
    found = as_moments(numbers, "spss", form)
    if found is not None:
        back = np.asarray(as_numbers(found, "spss", form))
        assert back.tobytes() == np.asarray(values).tobytes()


@pytest.mark.parametrize(
    ("family", "form"),
    [
        ("spss", "F8.2"),
        ("spss", "TIME11"),
        ("spss", "MOYR8"),
        ("stata", "%9.0g"),
        ("stata", "%tm"),
        ("stata", "%tC"),
        ("sas", "BEST12"),
        ("sas", "TIME8."),
        ("sas", None),
    ],
)
def test_other_formats_are_numbers(family, form):
    assert as_moments(pa.array([1.0]), family, form) is None


@pytest.mark.parametrize("family", DAYS)
@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns")])
def test_moments_from_elsewhere_get_a_format(family, kind):
    day = pa.array([dt.date(2024, 2, 29)]).cast(kind)
    form = moment_format(family, kind)
    found = as_moments(as_numbers(day, family, None), family, form)
    assert found.cast(pa.date32(), safe=False).to_pylist() == [dt.date(2024, 2, 29)]
