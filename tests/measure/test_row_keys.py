"""Keys of rows: equal exactly where values are, whatever the batch, the chunks and the encoding."""

import datetime as dt
import decimal
from collections import Counter as Tally

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg import InputError
from microagg.measure.classes import count_combinations
from microagg.measure.row_keys import row_keys


def texts(kind):
    return st.text("ab\0é", max_size=20).map(lambda s: s.encode() if kind == pa.binary() else s)


moments = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1))
VALUES = {
    pa.int8(): st.integers(-3, 3),
    pa.int32(): st.integers(-3, 3),
    pa.int64(): st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]),
    pa.uint16(): st.integers(0, 3),
    pa.uint64(): st.sampled_from([0, 1, 2**63, 2**64 - 1]),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 5e-324]),
    pa.float32(): st.sampled_from([0.0, -0.0, 1.5, np.nan]),
    pa.bool_(): st.booleans(),
    pa.string(): texts(pa.string()),
    pa.large_string(): texts(pa.string()),
    pa.string_view(): texts(pa.string()),
    pa.binary(): texts(pa.binary()),
    pa.binary(3): st.sampled_from([b"abc", b"abd", b"\0\0\0"]),
    pa.date32(): st.dates(),
    pa.date64(): st.dates(),
    pa.timestamp("us"): moments,
    pa.timestamp("s"): moments.map(lambda when: when.replace(microsecond=0)),
    pa.timestamp("ns", "UTC"): st.integers(-3, 3),
    pa.time32("s"): st.times().map(lambda when: when.replace(microsecond=0)),
    pa.time64("us"): st.times(),
    pa.duration("ms"): st.integers(-2000, 2000).map(lambda ms: dt.timedelta(milliseconds=ms)),
    pa.decimal128(5, 2): st.integers(-999, 999).map(lambda i: decimal.Decimal(i) / 4),
    pa.decimal256(40, 2): st.integers(-999, 999).map(lambda i: decimal.Decimal(i) / 4),
    pa.month_day_nano_interval(): st.tuples(*[st.integers(-1, 1)] * 3),
    pa.null(): st.none(),
}


@st.composite
def columns(draw):
    """One to three columns of some types with few different values, some of them missing."""
    n = draw(st.integers(1, 12))
    found = []
    for kind in draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3)):
        few = draw(st.lists(st.one_of(VALUES[kind], st.none()), min_size=1, max_size=4))
        cells = draw(st.lists(st.sampled_from(few), min_size=n, max_size=n))
        found.append(pa.array(cells, kind))
    return found


def plain(value):
    """A value that Python has equal exactly where counting does; NaN is not equal to itself."""
    return "NaN" if isinstance(value, float) and value != value else (value is None, value)


def partition_of(rows) -> list[int]:
    """Number of the first row that is equal to each."""
    first: dict[object, int] = {}
    return [first.setdefault(row, i) for i, row in enumerate(rows)]


@given(given_columns=columns(), seed=st.integers(0, 2**63))
def test_keys_are_equal_exactly_where_values_are(given_columns, seed):
    rows = zip(*[[plain(v) for v in column.to_pylist()] for column in given_columns], strict=True)
    keys = [tuple(key) for key in row_keys(given_columns, seed).tolist()]
    assert partition_of(keys) == partition_of(rows)
    # Each half alone tells rows apart as well, as far as so few can show.
    for half in range(2):
        assert partition_of([key[half] for key in keys]) == partition_of(keys)


@given(given_columns=columns())
def test_keys_tell_apart_what_is_counted_apart(given_columns):
    whole = [pa.chunked_array([column]) for column in given_columns]
    records, _ = count_combinations(whole)
    found = Tally(tuple(key) for key in row_keys(given_columns).tolist())
    assert sorted(found.values()) == sorted(records.tolist())


@given(given_columns=columns(), data=st.data())
def test_keys_are_those_of_any_slice_and_chunk(given_columns, data):
    n = len(given_columns[0])
    expected = row_keys(given_columns)
    cut = data.draw(st.integers(0, n))
    parts = [pa.chunked_array([c.slice(0, cut), c.slice(cut)]) for c in given_columns]
    assert np.array_equal(row_keys(parts), expected)
    sliced = row_keys([c.slice(cut) for c in given_columns])
    assert np.array_equal(sliced, expected[cut:])
    within = [pa.concat_arrays([c, c, c]).slice(n, n) for c in given_columns]
    assert np.array_equal(row_keys(within), expected)


@given(given_columns=columns())
def test_keys_are_those_of_any_encoding(given_columns):
    expected = row_keys(given_columns)
    kinds = {
        pa.string(): [pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()],
        pa.int8(): [pa.int16(), pa.int32(), pa.int64()],
        pa.uint16(): [pa.uint32(), pa.int64(), pa.uint64()],
        pa.float32(): [pa.float64()],
        pa.timestamp("s"): [pa.timestamp("ms"), pa.timestamp("us")],
        pa.timestamp("us"): [pa.timestamp("us", "UTC")],
        pa.time32("s"): [pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
        pa.date32(): [pa.date64()],
    }
    for j, column in enumerate(given_columns):
        others = [column.cast(kind) for kind in kinds.get(column.type, [])]
        if not (pa.types.is_null(column.type) or pa.types.is_interval(column.type)):
            text = column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
            others.append(text.dictionary_encode())
        for other in others:
            changed = [*given_columns[:j], other, *given_columns[j + 1 :]]
            assert np.array_equal(row_keys(changed), expected)


def test_keys_depend_on_the_seed_and_on_the_order_of_columns():
    a, b = pa.array([1, 2]), pa.array([2, 1])
    assert not (row_keys([a]) == row_keys([a], seed=1)).any()
    assert not (row_keys([a, b])[0] == row_keys([a, b])[1]).any()
    texts_a, texts_b = pa.array(["ab", "a"]), pa.array(["c", "bc"])
    assert not (row_keys([texts_a, texts_b])[0] == row_keys([texts_a, texts_b])[1]).any()


def test_large_numbers_are_not_negative_ones():
    large, negative = pa.array([2**63], pa.uint64()), pa.array([-(2**63)], pa.int64())
    assert not (row_keys([large]) == row_keys([negative])).any()


def test_every_nan_is_the_same():
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], np.uint64)
    keys = row_keys([pa.array(bits.view(np.float64))])
    assert (keys == keys[0]).all()


def test_nested_values_are_told_apart():
    keys = row_keys([pa.array([[1], [1, 2], None, [1]])])
    assert (keys[0] == keys[3]).all()
    assert len(set(keys[:, 0].tolist())) == 3
    records = row_keys([pa.array([{"zip": "1"}, {"zip": None}, {"zip": "1"}])])
    assert (records[0] == records[2]).all()
    assert (records[0] != records[1]).all()


def test_columns_of_one_table_are_of_one_length():
    with pytest.raises(InputError, match="same number of records"):
        row_keys([pa.array([1]), pa.array([1, 2])])


def test_one_bit_changes_half_of_the_bits():
    rng = np.random.default_rng(0)
    values = rng.integers(-(2**63), 2**63 - 1, 2000)
    base = row_keys([pa.array(values)])
    for bit in range(64):
        other = row_keys([pa.array(values ^ np.int64(-(2**63) if bit == 63 else 1 << bit))])
        # A share of 1/2 of 2000·64 bits has a standard deviation of 0.0014; over rows 2000 each bit.
        for half in range(2):
            flipped = np.unpackbits(
                (base ^ other)[:, half : half + 1].copy().view(np.uint8), axis=1
            )
            assert abs(flipped.mean() - 0.5) < 0.01
            assert np.abs(flipped.mean(axis=0) - 0.5).max() < 0.08


def test_parts_of_keys_of_regular_values_collide_no_more_than_random_ones():
    grid = np.stack(np.meshgrid(*[np.arange(64.0)] * 3), -1).reshape(-1, 3)
    keys = row_keys([pa.array(column.copy()) for column in grid.T])
    expected = len(grid) ** 2 / 2 / 2**32
    for words in (keys & np.uint64(0xFFFFFFFF), keys >> np.uint64(32)):
        for half in range(2):
            collisions = len(grid) - len(np.unique(words[:, half]))
            assert collisions < expected + 6 * np.sqrt(expected)
