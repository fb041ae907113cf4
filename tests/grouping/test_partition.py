"""partition(): what it refuses, and what it returns."""

import dataclasses
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import microagg
from microagg import InputError

GOOD = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0], [float("nan")], [3.0]], r"missing values; column 0 has 1, the first in row 2"),
        ([[1.0, 2.0], [3.0, -np.inf]], r"column 1 has an infinite value, the first in row 2"),
        ([1.0, None, 2.0], r"missing values; column 0 has 1"),
        (np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 1]), r"column 0 has 1, the first in row 3"),
        ([10**400, 1, 2], r"must be numbers"),
        ([["1", "2"], ["3", "4"]], r"must be numbers; row 1 .* holds a value of type str"),
        ([1.0, "x", 2.0], r"must be numbers; row \d"),
        (
            np.array([1, 2, "3"], dtype=object),
            r"must be numbers; row 3 .* holds a value of type str",
        ),
        (np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"), r"must be numbers"),
        ([[1.0, 2.0], [3.0]], r"same number of values; the rows differ in length"),
        (np.array([1 + 2j, 3, 4]), r"real numbers; the data are complex"),
        ([1 + 2j, 3, 4], r"real numbers; the data are complex"),
        (np.zeros((2, 2, 2)), r"3 dimensions"),
        (np.float64(3), r"0 dimensions"),
        ([], r"at least one record"),
        (np.empty((0, 3)), r"at least one record"),
        (np.empty((3, 0)), r"at least one record and one column"),
        ({"a": [1, 2]}, r"must be numbers"),
        (None, r"0 dimensions"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), r"column 'b' holds text"),
        (pl.DataFrame({"a": [1.0, None]}), r"column 'a' has 1, the first in row 2"),
        (pd.DataFrame(), r"at least one record"),
        (pa.table({"a": pa.array([], pa.float64())}), r"at least one record"),
    ],
)
def test_bad_data_is_refused_with_the_reason(X, message):
    with pytest.raises(InputError, match=message):
        microagg.partition(X, 2)


def test_sparse_data_are_refused():
    from scipy.sparse import csr_array

    with pytest.raises(InputError, match="sparse"):
        microagg.partition(csr_array(np.eye(5)), 2)


def test_k_larger_than_the_table():
    with pytest.raises(InputError) as caught:
        microagg.partition(GOOD, 5)
    assert str(caught.value) == (
        "k=5 needs at least 5 records; the table has 3. Lower k or add records."
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "mdva"}, r"method='mdva' is not known; choose one of .*'mdav'"),
        ({"method": None}, r"method=None is not known"),
        ({"method": ["mdav"]}, r"method=\['mdav'\] is not known"),
        ({"gama": 1}, r"method 'mdav' has no option 'gama'; it takes none"),
        ({"random_state": -1}, r"random_state must be a whole number from 0 up, or None; got -1"),
    ],
)
def test_unknown_names_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        microagg.partition(GOOD, 2, **{"method": "mdav", **settings})


@pytest.mark.parametrize("settings", [{"effort": "most"}, {"time_limit": -3}, {"time_limit": "1"}])
@pytest.mark.parametrize("columns", [1, 2])
def test_settings_of_the_search_are_checked_for_any_number_of_columns(columns, settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        microagg.partition(np.ones((8, columns)), 2, **settings)


def test_errors_are_value_errors_of_our_family():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, microagg.MicroaggError)


@pytest.mark.parametrize(
    "X",
    [
        np.arange(6),
        np.arange(6).reshape(-1, 1),
        list(range(6)),
        tuple(range(6)),
        [Fraction(i) for i in range(6)],
        [Decimal(i) for i in range(6)],
        np.arange(6, dtype=np.uint8),
        np.arange(6, dtype=np.float16),
        np.arange(6, dtype=object),
        pd.Series(range(6), index=list("abcdef")),
        pd.DataFrame({"a": range(6)}, index=list("abcdef")),
        pd.DataFrame({"a": pd.array(range(6), dtype="Int64")}),
        pl.DataFrame({"a": range(6)}),
        pl.Series(range(6)),
        pa.table({"a": list(range(6))}),
        pa.chunked_array([[0, 1, 2], [3, 4, 5]]),
    ],
    ids=lambda X: type(X).__name__,
)
def test_anything_that_holds_numbers_is_accepted(X):
    p = microagg.partition(X, 3)
    assert p.labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_negative_zero_is_zero():
    a = microagg.partition([0.0, -0.0, 5.0, 0.0, 6.0, 7.0], 3)
    b = microagg.partition([0.0, 0.0, 5.0, 0.0, 6.0, 7.0], 3)
    assert a.labels.tolist() == b.labels.tolist()


def test_result_tells_how_it_came_about():
    p = microagg.partition(GOOD, np.int64(3), method="mdav", scale="range", random_state=None)
    assert (p.k, p.method, p.scale, dict(p.options)) == (3, "mdav", "range", {})
    assert type(p.k) is int
    assert p.seconds > 0
    assert p.lower_bound is None
    assert p.gap is None


def test_result_cannot_be_changed():
    p = microagg.partition(GOOD, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.k = 2
    with pytest.raises(ValueError, match="read-only"):
        p.labels[0] = 9
    with pytest.raises(ValueError, match="read-only"):
        p.sizes[0] = 9


def test_gap_is_the_share_that_could_still_be_gained():
    p = microagg.partition([1.0, 2.0, 3.0, 7.0], 2)
    bounded = dataclasses.replace(p, lower_bound=p.sse / 4)
    assert bounded.gap == pytest.approx(0.75)


def test_result_survives_pickling():
    p = microagg.partition(GOOD, 3)
    again = pickle.loads(pickle.dumps(p))
    assert again.labels.tolist() == p.labels.tolist()
    assert (again.sse, again.options) == (p.sse, p.options)


def test_representation_shows_no_record():
    p = microagg.partition([123456.0, 123457.0, 999999.0], 3)
    assert "123456" not in repr(p)


def test_import_is_light():
    code = (
        "import sys, microagg\n"
        "heavy = {'numba', 'pandas', 'sklearn', 'matplotlib', 'scipy', 'pyarrow', 'polars',\n"
        "         'narwhals', 'typer', 'rich', 'jinja2'}\n"
        "loaded = heavy & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "assert set(microagg.__all__) <= set(dir(microagg))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_attribute_that_does_not_exist():
    with pytest.raises(AttributeError, match="no attribute 'protekt'"):
        _ = microagg.protekt


def test_bound_takes_an_effort():
    X = np.random.default_rng(0).normal(size=(50, 3))
    fast, good = (microagg.partition(X, 8, bound=effort) for effort in ("fast", True))
    assert 0 < fast.lower_bound < good.lower_bound <= good.sse
    assert fast.lower_bound == microagg.lower_bound(X, 8)
    with pytest.raises(microagg.InputError, match="bound is one of"):
        microagg.partition(X, 8, bound="heroic")


def test_who_stops_the_bound_keeps_the_groups(monkeypatch):
    X = np.random.default_rng(0).normal(size=(80, 3))

    def stopped(*_, **__):
        raise microagg.StopSearch

    monkeypatch.setattr(sys.modules["microagg.grouping.partition"], "_bounded", stopped)
    p = microagg.partition(X, 8, method="mdav", bound=True)
    assert p.stopped
    assert p.lower_bound is None
    assert p.sizes.min() >= 8


@pytest.mark.parametrize("method", ["auto", "optimal"])
def test_values_whose_squares_underflow(method):
    X = np.random.default_rng(0).normal(size=(24, 2))
    p = microagg.partition(X * 1e-160, 3, method=method, scale="none", bound=True)
    assert p.sizes.min() >= 3
    assert 0 <= p.lower_bound <= p.sse < 1e-300
    assert np.isfinite(microagg.lower_bound(X * 1e-160, 8, scale="none", effort="best"))
