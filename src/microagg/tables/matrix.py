"""From whatever the caller has to a C-contiguous float64 matrix, or a clear refusal."""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.base.formatting import table_size
from microagg.base.typing import Floats
from microagg.errors import InputError
from microagg.tables.finite import check_finite


def is_frame(data: Any) -> bool:
    """Return whether ``data`` are a frame (of any library, eager or lazy) rather than an array."""
    if isinstance(data, np.ndarray | list | tuple):
        return False
    import narwhals as nw

    from microagg.tables.frame import narwhals_frame  # with pyarrow, which arrays do not need

    return isinstance(narwhals_frame(data), nw.DataFrame | nw.LazyFrame)


def as_matrix(X: Any) -> Floats:
    """Convert ``X``, an array-like of shape (n,) or (n, d) or a frame, to a float64 matrix.

    It may be the caller's own array, which nobody must write to.

    >>> as_matrix([1, 2, 3]).shape, as_matrix([[1, 2], [3, 4]]).shape
    ((3, 1), (2, 2))
    """
    if is_frame(X):
        from microagg.tables.frame import Frame

        frame = Frame(X)
        if not frame.names or not len(frame):
            raise InputError(
                "A partition needs at least one record and one column; the table to work on has "
                f"{table_size(len(frame), len(frame.names))}. Pass some data."
            )
        matrix = np.empty((len(frame), len(frame.names)))
        for j, name in enumerate(frame.names):
            matrix[:, j] = frame.values(name)
        return matrix
    if hasattr(X, "toarray"):
        raise InputError(
            "Records must be dense; the data are a sparse matrix. Call .toarray() first."
        )
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)  # a masked value is a missing one
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError(
            "Records must all have the same number of values; the rows differ in length "
            f"({error}). Pass a rectangular table."
        ) from None
    if array.dtype.kind == "c":
        raise InputError(
            "Records must be real numbers; the data are complex. Pass real and imaginary parts "
            "as two columns."
        )
    if array.dtype.kind not in "biuf":
        array = _numbers_from_objects(array)
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2:
        raise InputError(
            f"Records must form a table of shape (n,) or (n, d); the data have {array.ndim} "
            "dimensions. Reshape them to one row a record."
        )
    if array.size == 0:
        raise InputError(
            f"A partition needs at least one record and one column; the data have shape "
            f"{array.shape}. Pass some data."
        )
    # A read-only array is copied, since kernels would be compiled once more for it.
    matrix = np.require(array, np.float64, ["C", "A", "W"])
    for j in range(matrix.shape[1]):
        check_finite(matrix[:, j], j)
    return matrix


def _numbers_from_objects(array: np.ndarray[Any, Any]) -> Floats:
    """Accept Python numbers (int, Fraction, Decimal) held as objects; refuse text and dates."""
    if array.dtype.kind == "O":
        for value in array.flat:
            if isinstance(value, str | bytes | complex | np.complexfloating):
                break
        else:
            try:
                return array.astype(np.float64)
            except (TypeError, ValueError, OverflowError):
                pass
    numbers = (int, float, np.integer, np.floating)
    cells = array.reshape(-1)
    row = next((i for i, value in enumerate(cells) if not isinstance(value, numbers)), 0)
    first = cells[row]
    where = np.unravel_index(row, array.shape)[0] + 1 if array.ndim else 1
    raise InputError(
        f"Records must be numbers; row {where} (the first record is row 1) holds a value of type "
        f"{type(first).__name__}. Convert or leave out such columns."
    )
