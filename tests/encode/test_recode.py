"""Recoding: naive twins by pandas, what holds whatever the table, and what is lost by it."""

import datetime as dt
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
from microagg.encode.bands import ends_of_label, rounded
from microagg.encode.recode import fit, tally, unfitted
from microagg.encode.recoded_table import recode_table, recoders_of
from microagg.errors import InputError
from microagg.plan.column import Coarsen
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame


class Recoded(NamedTuple):
    frame: Frame
    plan: Plan
    recoders: dict


def recode(frame, name, how, **settings):
    """A column of a frame after its recoding, as a list, and the recoded table."""
    plan = Plan.of(k=2, columns=[name], coarsen={name: how}, **settings)
    recoders = recoders_of(Frame(frame), plan)
    recoded, _, after = recode_table(Frame(frame), plan, recoders)
    return recoded.arrow_column(name).to_pylist(), Recoded(recoded, after, recoders)


def column(values, kind=None):
    return pa.table({"x": pa.array(values, kind)})


NUMBERS = st.lists(st.one_of(st.none(), st.integers(-200, 200)), min_size=1, max_size=40)


@given(values=NUMBERS, width=st.integers(1, 60))
def test_bands_are_those_of_pandas(values, width):
    found, _ = recode(column(values, pa.int64()), "x", {"bands": width})
    edges = list(range(-width * 300, width * 301, width))
    cut = pd.cut(pd.Series(values, dtype="float64"), edges, right=False)
    for value, band, label in zip(values, cut, found, strict=True):
        if value is None:
            assert label is None
        else:
            assert ends_of_label(label) == (band.left, band.right)


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    how=st.sampled_from(
        [{"bands": 0.1}, {"bands": [-3, 0.5, 100]}, {"bands": 7, "top": 21, "bottom": -14}]
    ),
)
def test_every_number_is_in_its_band_and_bands_are_in_order(values, how):
    found, table = recode(column(values), "x", how)
    ends = [ends_of_label(label) for label in found]
    assert all(
        low - _off(value) <= value <= high + _off(value)
        for value, (low, high) in zip(values, ends, strict=True)
    )
    labels = table.recoders["x"].labels
    assert sorted(set(ends)) == [ends_of_label(label) for label in labels]
    means = pd.Series(values).groupby(pd.Series(found)).mean()
    assert np.allclose([means[label] for label in labels], table.recoders["x"].places)


def _off(value):
    """How far from an edge a value may be taken for the edge itself."""
    return 2e-6 * abs(value) + 1e-300


def test_labels_can_be_read():
    ages = [0, 4, 24, 25, 79, 80, 101]
    found, _ = recode(column(ages), "x", {"bands": 5, "top": 80, "bottom": 5})
    assert found == ["4 or less"] * 2 + ["20–24", "25–29", "75–79"] + ["80 or more"] * 2
    found, _ = recode(column([0.25, 1.5, 7.0]), "x", {"bands": [1, 5]})
    assert found == ["under 1", "1 to under 5", "5 or more"]
    found, _ = recode(column([-3, 0, 1]), "x", {"bands": 5})
    assert found == ["−5 to −1", "0–4", "0–4"]
    assert recode(column([7, 8]), "x", {"bands": 1})[0] == ["7", "8"]
    assert recode(column([0.3, 0.7]), "x", {"bands": 0.1})[0] == [
        "0.3 to under 0.4",
        "0.7 to under 0.8",
    ]


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    how=st.sampled_from(
        [
            Coarsen(round=100),
            Coarsen(round=0.05),
            Coarsen(round=7, top=50, bottom=-20),
            Coarsen(top=3),
            Coarsen(bottom=2.5),
        ]
    ),
)
def test_recoding_twice_is_recoding_once(values, how):
    once = rounded(how, np.array(values))
    assert np.array_equal(rounded(how, once), once)
    assert how.top is None or (once <= how.top).all()
    assert how.bottom is None or (once >= how.bottom).all()
    if how.round is not None and how.top is None:
        assert (np.abs(once - values) <= how.round / 2 * (1 + 1e-6)).all()


def test_numbers_keep_their_type_and_what_does_not_change_its_cell():
    large = 2**60 + 1  # which no double is
    found, table = recode(column([3, 4, 90, None, large], pa.int64()), "x", {"bottom": 50})
    assert found == [50, 50, 90, None, large]
    assert table.frame.native.schema.field("x").type == pa.int64()
    found, table = recode(pd.DataFrame({"x": [149, 151]}), "x", {"round": 100})
    assert found == [100, 200]
    assert table.frame.native["x"].dtype == "int64"


@pytest.mark.parametrize("to", ["day", "week", "month", "quarter", "year"])
def test_dates_become_the_first_day_of_their_period(to):
    days = [dt.date(2024, 2, 29), dt.date(2023, 12, 31), None, dt.date(2024, 8, 7)]
    period = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}[to]
    expected = [
        None if day is None else pd.Timestamp(day).to_period(period).start_time.date()
        for day in days
    ]
    assert recode(column(days, pa.date32()), "x", {"to": to})[0] == expected
    texts = [None if day is None else day.strftime("%d.%m.%Y") for day in days]
    found, _ = recode(column(texts), "x", {"to": to})
    assert found == [None if day is None else day.strftime("%d.%m.%Y") for day in expected]
    stamps = [
        None if day is None else dt.datetime(day.year, day.month, day.day, 13) for day in days
    ]
    found, table = recode(column(stamps, pa.timestamp("ms", "UTC")), "x", {"to": to})
    assert [None if one is None else one.date() for one in found] == expected
    assert table.frame.native.schema.field("x").type == pa.timestamp("ms", "UTC")


def test_rare_levels_become_other():
    jobs = ["a"] * 5 + ["b"] * 3 + ["c", "d", None, "d"]
    assert recode(column(jobs), "x", {"rare": 3})[0] == [
        *(["a"] * 5 + ["b"] * 3),
        *("other", "other", None, "other"),
    ]
    named = recode(column([*jobs, "Other"]), "x", {"rare": 3})[0]
    assert set(named) == {"a", "b", "other levels", None}
    assert recode(column([1, 1, 1, 2, 3]), "x", {"rare": 2})[0] == ["1", "1", "1", "other", "other"]
    assert recode(column(["a", "a"]), "x", {"rare": 2})[0] == ["a", "a"]


def test_rare_levels_of_an_order_join_a_neighbour():
    grades = ["low"] * 2 + ["middle"] * 5 + ["high"] * 4 + ["top"]
    order = {"kind": "ordinal", "levels": ["none", "low", "middle", "high", "top"]}
    kinds = {"x": order}
    found, table = recode(column(grades), "x", {"rare": 3}, kinds=kinds)
    assert found == ["middle"] * 7 + ["high"] * 5
    assert table.plan.columns["x"].levels == tuple(order["levels"])  # each level keeps its place
    assert recode(column(grades), "x", {"rare": 6}, kinds=kinds)[0] == ["middle"] * 12
    numbers = {"x": {"kind": "ordinal"}}
    assert recode(column([1, 1, 1, 2, 3, 3, 3]), "x", {"rare": 2}, kinds=numbers)[0] == [
        *([1] * 4 + [3] * 3)
    ]
    declared = {"x": {"kind": "ordinal", "levels": ["0", "1", "2", "3"]}}
    whole, _ = recode(column([1, 1, 1, 2, 3, 3, 3]), "x", {"rare": 2}, kinds=declared)
    assert whole == [1, 1, 1, 1, 3, 3, 3]


@pytest.mark.parametrize("settings", [{}, {"kinds": {"x": "ordinal"}}], ids=["type", "plan"])
def test_rare_levels_of_a_type_with_an_order_join_a_neighbour(settings):
    names = ["low", "middle", "high", "top"]
    grades = pd.Categorical(["high"] * 5 + ["low"] * 4 + ["top", None], names, ordered=True)
    found, table = recode(pd.DataFrame({"x": grades}), "x", {"rare": 3}, **settings)
    assert found == ["high"] * 5 + ["low"] * 4 + ["high", None]
    released = table.frame.native["x"].dtype
    assert released.ordered
    assert [name for name in names if name in released.categories] == list(released.categories)


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
def test_rare_codes_that_are_floats_lose_what_whole_ones_lose(tmp_path):
    """Codes with gaps come as floats; "other" among them turns all into texts, on every engine."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=40), "c": [1.0] * 20 + [2.0] * 15 + [3.0] * 5})
    settings = {
        "k": 3,
        "columns": ["x", "c"],
        "kinds": {"c": "nominal"},
        "coarsen": {"c": {"rare": 10}},
        "method": "mdav",
    }
    losses = [
        microagg.protect(frame.astype({"c": kind}), **settings).utility.by_column["c"]
        for kind in ("int64", "float64")
    ]
    frame.to_parquet(tmp_path / "in.parquet")
    on_disk = microagg.protect_file(
        tmp_path / "in.parquet", tmp_path / "out.parquet", engine="disk", **settings
    )
    losses.append(on_disk.utility.by_column["c"])
    assert losses == pytest.approx([losses[0]] * 3)


def test_rare_counts_units_where_there_are_any():
    table = pa.table({"x": ["a", "a", "a", "b", "b"], "u": [1, 1, 1, 2, 3]})
    assert recode(table, "x", {"rare": 2}, unit="u", drop=["u"])[0] == ["other"] * 3 + ["b", "b"]


def test_rare_codes_go_up_their_hierarchy():
    codes = ["A11"] * 4 + ["A12", "A21", "B10"]
    kinds = {"x": {"kind": "hierarchy", "prefixes": [1, 2]}}
    found, _ = recode(column(codes), "x", {"rare": 2}, kinds=kinds)
    assert found == ["A11"] * 4 + ["A", "A", "B"]
    parents = {"A11": "A", "A12": "A", "A21": "A", "B10": "B", "A": "all", "B": "all"}
    kinds = {"x": {"kind": "hierarchy", "parents": parents}}
    found, _ = recode(column(codes), "x", {"rare": 2}, kinds=kinds)
    assert found == ["A11"] * 4 + ["A", "A", "all"]


def test_codes_keep_their_first_characters():
    assert recode(column(["1010", "1090", None, "8"]), "x", {"prefix": 2})[0] == [
        "10",
        "10",
        None,
        "8",
    ]
    assert recode(column([1010, 1090, 8000]), "x", {"prefix": 1})[0] == ["1", "1", "8"]


def test_codes_for_missing_stay_what_they_are():
    missing = {"codes": {"x": [-8]}}
    found, _ = recode(column([-8, 7, 120, 130]), "x", {"top": 100, "bottom": 0}, missing=missing)
    assert found == [-8, 7, 100, 100]
    assert recode(column([-8, 7, 12]), "x", {"bands": 5}, missing=missing)[0] == [
        *("-8", "5–9", "10–14"),
    ]
    missing = {"codes": {"x": ["refused"]}}
    texts = ["refused", "7", "120", "130"]
    assert recode(column(texts), "x", {"top": 100}, missing=missing)[0] == [
        *("refused", "7", "100", "100"),
    ]


@given(values=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=2, max_size=30))
def test_tallies_of_batches_merge(values):
    plan = Plan.of(k=2, columns=["x"], coarsen={"x": {"rare": 3}})
    table = column(values, pa.string())
    recoder = unfitted(Frame(table), plan, "x")
    whole = tally(recoder, Frame(table), plan.k)
    half = len(values) // 2
    first, second = (tally(recoder, Frame(part), plan.k) for part in (table[:half], table[half:]))
    parts = first.merge(second)
    once, merged = (fit(recoder, Frame(table), one).becomes for one in (whole, parts))
    assert once == merged


@pytest.mark.parametrize(
    ("values", "how", "words"),
    [
        (["a", "b"], {"bands": 5}, "which is for numbers; it holds text"),
        (["a", "b"], {"to": "month"}, "holds dates or times"),
        ([1, 2], {"to": "month"}, "which is for dates; it holds numbers"),
        (["11:38", "23:59"], {"to": "month"}, "times without a day"),
        ([1, 2], {"round": 2.5}, "Round to a whole number"),
    ],
)
def test_a_recoding_that_does_not_fit_is_refused(values, how, words):
    with pytest.raises(InputError, match=words):
        recode(column(values), "x", how)


def test_values_of_fewer_than_k_units_are_not_cut():
    plan = {"columns": ["x"], "coarsen": {"x": {"top": 8, "bottom": 1}}}
    with pytest.raises(InputError, match=r"top, of coarsen, is for at least k = 3 records.* 1 of"):
        recoders_of(Frame(column(range(10))), Plan.of(k=3, **plan))
    table = pa.table({"x": [0, 1, 9, 9, 9], "u": [1, 2, 3, 3, 4]})
    with pytest.raises(InputError, match=r"at least k = 3 units.* 2 of column 'x' are above"):
        recoders_of(Frame(table), Plan.of(k=3, unit="u", drop=["u"], **plan))
    assert recode(column([1, 9, 9]), "x", {"top": 8})[0] == [1, 8, 8]


def test_the_same_in_pandas_polars_and_arrow():
    import polars as pl

    frame = pd.DataFrame({"age": [21, 23, 24, 61, 65, 66], "job": list("aabbbc")})
    how = {"age": {"bands": 10}, "job": {"rare": 2}}
    seen = []
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        found = microagg.protect(table, 3, columns=["age", "job"], coarsen=how)
        seen.append(Frame(found.data).to_arrow().to_pydict())
    assert seen[0] == seen[1] == seen[2]
    assert set(seen[0]["age"]) == {"20–29", "60–69"}
