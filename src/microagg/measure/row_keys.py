"""Hash the values of each row, so that equal rows have equal keys wherever they are read.

A record is known by a hash of 128 bits of its values, which depends on them alone: not on the batch, on
chunks, or on whether texts lie in a dictionary. Counting keys is exact unless two different combinations
have one hash. Among m combinations that happens with a chance of about m²/2¹²⁹: at 10¹⁰ combinations
1.5 · 10⁻¹⁹. This holds for values that nobody chose for it: whoever writes the values of a table could make
two combinations with one key, as far as multiplications by known constants can be undone. Keys are the same
in every run, since samples are drawn by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microagg.errors import InputError
from microagg.kernels.row_hash import hash_bytes, hash_words, start
from microagg.measure.classes import simple_values
from microagg.tables.frame_libraries import is_text

Keys = NDArray[np.uint64]

_A_SECOND = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
_A_DAY = 86400
_NAN = 0x7FF8000000000000  # the bits of each


def row_keys(columns: Sequence[pa.Array | pa.ChunkedArray], seed: int = 0) -> Keys:
    """Hash the values of each row of ``columns`` to 128 bits, by a ``seed``: an array of shape (n, 2).

    Rows are equal, and have the same key, exactly as :func:`microagg.measure.classes.count_combinations`
    has it: missing is a value, −0 is 0, every NaN is the same. Moments are compared whatever their unit.

    >>> age, city = pa.array([30, 64, 30]), pa.array(["A", None, "A"])
    >>> keys = row_keys([age, city])
    >>> bool((keys[0] == keys[2]).all()), bool((keys[0] == keys[1]).any())
    (True, False)
    >>> bool((keys == row_keys([age, city.dictionary_encode()])).all())
    True
    """
    n = len(columns[0])
    if any(len(column) != n for column in columns):
        raise InputError("Columns of one table have the same number of records; these differ.")
    keys: Keys = start(n, seed)
    for column in columns:
        at = 0
        whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        for chunk in simple_values(whole).chunks:
            if len(chunk):
                _mix_in(chunk, keys[at : at + len(chunk)])
            at += len(chunk)
    return keys


def _mix_in(chunk: pa.Array, keys: Keys) -> None:
    """Mix the values of an array into the keys of its rows."""
    kind = chunk.type
    types = pa.types
    other_texts = types.is_binary(kind) or types.is_string_view(kind) or types.is_binary_view(kind)
    if is_text(kind) or other_texts:
        chunk = chunk.cast(pa.large_binary())
    elif types.is_boolean(kind):
        chunk = chunk.cast(pa.uint8())
    elif types.is_floating(kind):
        chunk = chunk.cast(pa.float64())
    elif types.is_null(kind):
        chunk = pa.nulls(len(chunk), pa.int64())
    kind = chunk.type
    valid = _bytes(chunk.buffers()[0] if chunk.null_count else None)
    first = chunk.offset
    if types.is_floating(kind):
        values = _of_width(chunk, np.float64)
        bits = values.view(np.uint64).copy()
        bits[values == 0.0] = 0
        bits[np.isnan(values)] = _NAN
        hash_words(_frozen(bits).reshape(-1, 1), False, valid, first, keys)
    elif types.is_temporal(kind) and not types.is_interval(kind):
        values = _of_width(chunk, np.dtype(f"i{kind.bit_width // 8}")).astype(np.int64)
        moments = np.zeros((len(values), 2), np.int64)  # seconds and nanoseconds
        if types.is_date32(kind):
            moments[:, 0] = _A_DAY * values
        else:
            a_second = _A_SECOND[getattr(kind, "unit", "ms")]
            np.divmod(values, a_second, out=(moments[:, 0], moments[:, 1]))
            moments[:, 1] *= _A_SECOND["ns"] // a_second
        hash_words(_frozen(moments.view(np.uint64)), False, valid, first, keys)
    elif types.is_large_binary(kind):
        _, offsets, data = chunk.buffers()
        ends = _frozen(np.frombuffer(offsets, np.int64, first + len(chunk) + 1)[first:])
        hash_bytes(ends, _bytes(data), valid, first, keys)
    elif types.is_fixed_size_binary(kind):
        width = kind.byte_width
        data = _of_width(chunk, np.dtype((np.void, width))).view(np.uint8) if width else None
        offsets = _frozen(width * np.arange(len(chunk) + 1))
        hash_bytes(offsets, _bytes(None) if data is None else data, valid, first, keys)
    elif types.is_primitive(kind) or types.is_decimal(kind):
        hash_words(_words(chunk), types.is_uint64(kind), valid, first, keys)
    else:
        raise pa.ArrowNotImplementedError(f"Keys of type {kind}")


def _words(chunk: pa.Array) -> Any:
    """Return values of a fixed width as (n, words) numbers of 64 bits, short ones widened."""
    width = chunk.type.bit_width // 8
    if width > 8:
        packed_rows = _of_width(chunk, np.dtype((np.void, width))).view(np.uint64)
        return packed_rows.reshape(len(chunk), width // 8)
    sign = "u" if pa.types.is_unsigned_integer(chunk.type) else "i"
    values = _of_width(chunk, np.dtype(f"{sign}{width}"))
    return _frozen(values.astype(f"{sign}8", copy=False)).view(np.uint64).reshape(-1, 1)


def _of_width(chunk: pa.Array, kind: Any) -> Any:
    """Return the values of an array of fixed width, without a copy."""
    return np.frombuffer(chunk.buffers()[1], kind, chunk.offset + len(chunk))[chunk.offset :]


def _bytes(buffer: pa.Buffer | None) -> Any:
    if buffer is None or not buffer.size:
        return _frozen(np.empty(0, np.uint8))
    return np.frombuffer(buffer, np.uint8)


def _frozen(values: Any) -> Any:
    """Forbid writing to an array, as Arrow does: kernels are compiled once for both."""
    values.setflags(write=False)
    return values
