"""Microaggregator: a scikit-learn transformer over partition()."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from microagg.aggregate import aggregate
from microagg.errors import InputError, shown
from microagg.groups import Floats
from microagg.partition import partition
from microagg.results import Partition
from microagg.settings import check_aggregate

__all__ = ["Microaggregator"]


_OWN_SETTINGS = {"method", "scale", "random_state", "progress"}


class Microaggregator(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace each record by the aggregate of its group of at least k similar ones.

    A release is a table, not a model: k-anonymity is a property of all its rows together.
    ``transform`` therefore accepts the very table that was fitted and refuses any other,
    since a new record put into a group, or a part of the rows, would break the promise.

    Parameters
    ----------
    k : int
        Least number of records in a group.
    method, scale, random_state
        As for :func:`microagg.partition`.
    aggregate : {"mean", "median"}
        What a group releases.
    options : dict, optional
        Settings of the method.

    Attributes
    ----------
    labels_ : int64 array of shape (n,)
        The group of each record.
    partition_ : Partition
        With ``sse``, ``information_loss`` and more.

    >>> import numpy as np
    >>> Microaggregator(k=2).fit_transform(np.array([[1.0], [9.0], [2.0], [8.0]])).ravel().tolist()
    [1.5, 8.5, 1.5, 8.5]
    """

    def __init__(
        self,
        k: int = 5,
        *,
        method: str = "auto",
        scale: str = "zscore",
        aggregate: str = "mean",
        random_state: int | None = 0,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.method = method
        self.scale = scale
        self.aggregate = aggregate
        self.random_state = random_state
        self.options = options

    def fit(self, X: Any, y: Any = None) -> Microaggregator:
        """Partition the records of X, of shape (n, d)."""
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Partition the records of X and return them protected, of the same shape."""
        return self._release(self._fit(X))

    def transform(self, X: Any) -> Any:
        """Return the fitted table protected; any other table is refused."""
        check_is_fitted(self)
        matrix = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        if _fingerprint(matrix) != self._fitted:
            raise InputError(
                "A microaggregated release holds for the table that was fitted, as a whole; these are "
                "other rows. Putting new records into its groups, or releasing a part of them, would "
                "break k-anonymity. Call fit_transform on all records that are to be released."
            )
        return self._release(matrix)

    def _fit(self, X: Any) -> Floats:
        check_aggregate(self.aggregate)
        options = {} if self.options is None else self.options
        if not isinstance(options, dict) or _OWN_SETTINGS & set(options):
            raise InputError(
                "options is a dict of settings of the method; those of the estimator itself are "
                f"its own parameters. Got {shown(options)}."
            )
        least = self.k if isinstance(self.k, int) and self.k > 1 else 1
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)  # a masked value is a missing one
        matrix: Floats = validate_data(
            self, X, dtype=np.float64, order="C", ensure_min_samples=least
        )
        self.partition_: Partition = partition(
            matrix,
            self.k,
            method=self.method,
            scale=self.scale,
            random_state=self.random_state,
            **options,
        )
        self.labels_ = self.partition_.labels
        self._fitted = _fingerprint(matrix)
        return matrix

    def _release(self, matrix: Floats) -> Floats:
        return np.column_stack(
            [aggregate(column, self.labels_, self.aggregate) for column in matrix.T]
        )


def _fingerprint(matrix: Floats) -> str:
    """Tell one table from another without keeping its records."""
    return hashlib.sha256(repr(matrix.shape).encode() + matrix.tobytes()).hexdigest()
