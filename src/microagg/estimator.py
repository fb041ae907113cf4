"""Microaggregator: a scikit-learn transformer over protect()."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from microagg.algorithms.result import Partition
from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.encode.number import group_aggregates
from microagg.engines.memory.protect import protect_table
from microagg.errors import InputError, shown
from microagg.plan.checks import check_word
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame
from microagg.tables.matrix import is_frame

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "Microaggregator needs the package scikit-learn, which is not installed. Install it with: "
        'pip install "microagg[sklearn]"'
    ) from error

__all__ = ["Microaggregator"]

_OWN_SETTINGS = {"method", "scale", "aggregate", "missing", "kinds", "random_state", "progress"}
_NEW_ROWS = ("refuse", "unchanged")
_ROWS_AT_ONCE = 100_000
_MISSING = ("pattern", "majority", "fill", "error")


class Microaggregator(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace each record by the aggregate of its group of at least k similar ones.

    A release is a table, not a model: k-anonymity is a property of all its rows together.
    ``transform`` returns the release for the very table that was fitted. ``new_rows`` decides about any
    other table.

    Parameters
    ----------
    k : int
        Least number of records in a group.
    method, scale
        As for :func:`microagg.partition`.
    aggregate, missing, kinds
        As for :func:`microagg.protect`. Columns of an array are numbers; those of a data frame may be
        of any kind, as there. By default a group releases what most of its records have, a value or
        none; "drop" is refused, since rows would no longer match ``y``.
    new_rows : {"refuse", "unchanged"}
        What ``transform`` does with a table that was not fitted. "refuse": an error, since a record that is
        put into a group later breaks the promise. "unchanged": the rows come back as they are, so that a
        pipeline learns from protected rows and is judged on original ones (``cross_val_score``,
        ``GridSearchCV``, ``predict``). Such rows are not protected and must not be published.
    random_state : int, None, numpy Generator or RandomState
        As for :func:`microagg.partition`; of a generator one number is drawn.
    options : dict, optional
        Settings of the method.

    Attributes
    ----------
    labels_ : int64 array of shape (n,)
        The group of each record.
    partition_ : Partition
        With ``sse``, ``information_loss`` and more.

    >>> import numpy as np
    >>> X = np.array([[1.0], [9.0], [2.0], [8.0]])
    >>> Microaggregator(k=2).fit_transform(X).ravel().tolist()
    [1.5, 8.5, 1.5, 8.5]
    >>> Microaggregator(k=2, new_rows="unchanged").fit(X).transform([[3.0], [7.0]]).ravel().tolist()
    [3.0, 7.0]
    """

    def __init__(
        self,
        k: int = 5,
        *,
        method: str = "auto",
        scale: str = "zscore",
        aggregate: str = "mean",
        missing: str = "majority",
        kinds: Mapping[Any, Any] | None = None,
        new_rows: str = "refuse",
        random_state: Any = 0,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.method = method
        self.scale = scale
        self.aggregate = aggregate
        self.missing = missing
        self.kinds = kinds
        self.new_rows = new_rows
        self.random_state = random_state
        self.options = options

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Microaggregator:
        """Partition the records of X, of shape (n, d).

        With ``sample_weight``, the survey weight of each record, groups release weighted means.
        """
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Partition the records of X and return them protected, of the same shape."""
        given = self._fit(X, sample_weight)
        return self._values_of(self.labels_, given)

    def transform(self, X: Any) -> Any:
        """Return the fitted table protected; ``new_rows`` decides about any other table."""
        check_is_fitted(self)
        table, given = self._given(X, reset=False)
        if _fingerprint(table) == self._fitted:
            return self._values_of(self.labels_, given)
        if self.new_rows == "unchanged":
            return given
        raise InputError(
            "A microaggregated release holds for the table that was fitted, as a whole; these are "
            "other rows. Putting new records into its groups, or releasing a part of them, would "
            "break k-anonymity. Call fit_transform on all records that are to be released; to judge a "
            'model on original rows, set new_rows="unchanged".'
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.categorical = True
        return tags

    def _fit(self, X: Any, sample_weight: Any) -> Any:
        """Partition the records, and return them as they were given."""
        check_word("new_rows", self.new_rows, _NEW_ROWS)
        check_word("missing", self.missing, _MISSING)
        options = {} if self.options is None else self.options
        if not isinstance(options, dict) or _OWN_SETTINGS & set(options):
            raise InputError(
                "options is a dict of settings of the method; those of the estimator itself are "
                f"its own parameters. Got {shown(options)}."
            )
        fitted, given = self._given(X, reset=True)
        table, names, weight = fitted, fitted.names, None
        if sample_weight is not None:
            table, column = _with_weights(table, sample_weight)
            weight = {"column": column, "release": "drop"}
        seed = self.random_state
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**31))
        elif isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31))
        # Columns of an array are numbers, even if they look like codes.
        is_array = isinstance(given, np.ndarray)
        numbers = dict.fromkeys(names, "number") if is_array else {}
        plan = Plan.of(
            k=self.k,
            columns=names,
            method=self.method,
            scale=self.scale,
            aggregate=self.aggregate,
            missing=self.missing,
            random_state=seed,
            kinds={**numbers, **(self.kinds or {})},
            weight=weight,
            **options,
        )
        release = protect_table(table, plan)
        self.partition_: Partition = release.partition
        self.labels_ = self.partition_.labels
        first = np.unique(self.labels_, return_index=True)[1]
        self._released = _rows(nw.from_native(release.data, eager_only=True), first)
        if is_array and sample_weight is None and not np.isnan(given).any():
            # Unrounded: only files need rounded values.
            values = (group_aggregates(column, self.labels_, self.aggregate) for column in given.T)
            self._released = pa.table(dict(zip(names, values, strict=True)))
        self._fitted = _fingerprint(fitted)
        return given

    def _given(self, X: Any, reset: bool) -> tuple[Frame, Any]:
        """Check the records; return them as a table, and as given: a frame, or a matrix of doubles."""
        least = self.k if isinstance(self.k, int) and self.k > 1 and reset else 1
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            table = Frame(X)
            if len(table) < least or not table.names:
                raise InputError(
                    f"Found array with {len(table)} sample(s) (shape={(len(table), len(table.names))}) while "
                    f"a minimum of {least} is required: groups of k = {self.k} need that many records."
                )
            return table, X
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)  # a masked value is a missing one
        matrix: Floats = validate_data(
            self,
            X,
            dtype=np.float64,
            order="C",
            ensure_min_samples=least,
            ensure_all_finite="allow-nan",
            reset=reset,
        )
        if self.missing == "error" and np.isnan(matrix).any():
            row, column = np.argwhere(np.isnan(matrix))[0].tolist()
            raise InputError(
                f'With missing="error" no value may be missing; X has a NaN in row {row}, column {column} '
                '(both counted from 0). Fill it, or choose another policy, such as missing="majority".'
            )
        columns = {f"x{j}": pa.array(column, from_pandas=True) for j, column in enumerate(matrix.T)}
        return Frame(pa.table(columns)), matrix

    def _values_of(self, groups: Labels, given: Any) -> Any:
        """Return what groups release, a row for each record, in the type of the table given."""
        released = _rows(self._released, groups)
        if isinstance(given, np.ndarray):
            table = Frame(released)
            return np.column_stack([table.doubles(name) for name in table.names])
        has_labels = nw.from_native(released).implementation.is_pandas_like()
        return released.set_axis(given.index) if has_labels else released


def _with_weights(table: Frame, weights: Any) -> tuple[Frame, str]:
    """Add the weights as a column with a name that the table does not have."""
    name = "sample_weight"
    while table.has(name):
        name += "_"
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(table),) or not (values > 0).all():
        raise InputError(
            "sample_weight has one number above zero for each of the "
            f"{plural(len(table), 'record')}; got shape {values.shape}, and {np.sum(~(values > 0))} "
            "of them are not above zero. A record of weight zero would be released unprotected."
        )
    column = nw.from_native(table.doubles_like(table.names[0], values), series_only=True)
    frame = nw.from_native(table.native, eager_only=True)
    return Frame(frame.with_columns(column.alias(name))), name


def _rows(native: Any, rows: Labels) -> Any:
    """Return some rows of a frame, in the order given."""
    return nw.to_native(nw.from_native(native, eager_only=True)[rows])


def _fingerprint(table: Frame) -> str:
    """Return a digest of a table, so that no record is kept."""
    arrow = table.to_arrow(unnamed_index=False).combine_chunks().replace_schema_metadata(None)
    digest = hashlib.sha256(arrow.schema.serialize())
    for batch in arrow.to_batches(max_chunksize=_ROWS_AT_ONCE):
        digest.update(batch.serialize())
    return digest.hexdigest()
