"""protect(): the whole way of a table on one page.

read → roles, checks → encode, scale → partition → aggregate → measure → verify → write
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.aggregate import aggregate as group_aggregate
from microagg.errors import DisclosureRiskWarning, VerificationError, listed, shown
from microagg.groups import Floats
from microagg.partition import partition
from microagg.progress import Report
from microagg.registry import find
from microagg.results import Partition
from microagg.settings import AGGREGATE_OF_COST, check_aggregate, check_effort, check_k, check_scale
from microagg.tables.frames import Frame
from microagg.tables.matrix import columns_matrix
from microagg.tables.roles import choose_columns, warn_of_identifiers, warn_of_numbers_as_text

if TYPE_CHECKING:
    from pathlib import Path

    from microagg.measure.pairs import Pair
    from microagg.measure.risk import Risk
    from microagg.measure.utility import Utility
    from microagg.tables.files import CsvFormat, FileFormat
    from microagg.verify import Verification

__all__ = ["Release", "protect"]


@dataclass(frozen=True)
class Written:
    """A file that was read back, and the hash of what was read."""

    path: Path
    verification: Verification
    sha256: str


@dataclass(frozen=True, eq=False)
class Release:
    """A protected table and how it came about."""

    data: Any = field(repr=False)
    parts: list[tuple[list[Any], Partition]]  # columns and their partition; one part but per column
    columns: list[Any]
    untouched: list[Any]
    identifying: list[Any]
    aggregate: str
    settings: Mapping[str, Any] = field(repr=False)  # what protect() was called with
    seconds: Mapping[str, float] = field(repr=False)
    _original: Floats = field(repr=False)  # (n, columns), for the measures
    _written: list[Written] = field(default_factory=list, repr=False)

    @property
    def partition(self) -> Partition:
        """The partition of the records, if all columns share one."""
        if len(self.parts) > 1:
            raise AttributeError("each column was protected by itself; see .parts")
        return self.parts[0][1]

    @property
    def k(self) -> int:
        """Least number of records in a group."""
        return self.parts[0][1].k

    @cached_property
    def utility(self) -> Utility:
        """What was lost, see :func:`microagg.utility`."""
        from microagg.measure.utility import utility_of

        return utility_of(self._pair)

    @cached_property
    def risk(self) -> Risk:
        """What an attacker still gains, see :func:`microagg.risk`."""
        from microagg.measure.risk import Ask, risk_of

        return risk_of(self._pair, Ask(k=self.k))

    def measure(
        self,
        *,
        analyses: Iterable[Any] = (),
        confidential: Iterable[Any] = (),
        dominance: Iterable[Any] = (),
        dominance_percent: float = 80.0,
    ) -> tuple[Utility, Risk]:
        """Loss and risk with more to measure; the linkage of a large table is sampled.

        The parameters are those of :func:`microagg.utility` and :func:`microagg.risk`.
        """
        from microagg.measure.linkage import sample_for
        from microagg.measure.risk import Ask, risk_of
        from microagg.measure.utility import utility_of

        ask = Ask(
            k=self.k,
            confidential=tuple(confidential),
            dominance=tuple(dominance),
            dominance_percent=dominance_percent,
            sample=sample_for(len(self._original)),
        )
        return utility_of(self._pair, analyses), risk_of(self._pair, ask)

    @cached_property
    def _pair(self) -> Pair:
        from microagg.measure.pairs import Pair

        after = Frame(self.data)
        original = dict(zip(self.columns, self._original.T, strict=True))
        before = Frame(after.replace(original))
        return Pair(
            self.columns, self._original, columns_matrix(after, self.columns), before, after
        )

    def __reduce__(self) -> Any:
        raise TypeError(
            "A Release holds the original values and is not pickled, lest they travel. Pickle "
            "its .data and .partition."
        )

    def write(self, path: str | Path, csv: CsvFormat | FileFormat | None = None) -> Verification:
        """Write the protected table; it gets its name only after it was read back and counted.

        The ending of the name tells the format: .csv, .parquet, .arrow and some more.

        Raises
        ------
        VerificationError
            If a combination of protected values occurs fewer than k times in the file, or
            records are missing from it. The file is removed.
        """
        from pathlib import Path

        from microagg.tables.atomic import replacing, sha256
        from microagg.tables.files import CsvFormat, FileFormat, kind_of, write_file
        from microagg.verify import verify_all

        target = Path(path)
        kind = kind_of(target)  # an unknown ending is refused before any work
        frame = Frame(self.data)
        table = frame.to_arrow(unnamed_index=kind != "csv")
        written = dict(zip(frame.names, table.column_names, strict=False))  # an index comes last
        promised = [[written[name] for name in columns] for columns, _ in self.parts]
        with replacing(target) as part:
            form = csv if isinstance(csv, FileFormat) else FileFormat(csv or CsvFormat())
            write_file(table, part, form)
            counts = verify_all(part, [self.k] * len(promised), promised, csv=form.csv)
            found = min(counts, key=lambda count: count.smallest)
            if not found.holds or found.records != len(self._original):
                raise VerificationError(
                    f"{shown(str(path), 300)} was read back and does not hold: {found.records} of "
                    f"{len(self._original)} records are there and {found.records_below_k} share "
                    f"their values in {listed(found.columns)} with fewer than {found.k - 1} others. "
                    "The file was removed."
                )
            digest = sha256(part)
        self._written.append(Written(target, found, digest))
        return found

    def report(
        self,
        path: str | Path,
        *,
        public: bool = False,
        source: str | Path | None = None,
        command: list[str] | None = None,
        measured: tuple[Utility, Risk] | None = None,
        **measures: Any,
    ) -> None:
        """Write the evidence as one HTML file, and every number of it as JSON beside it.

        Parameters
        ----------
        path : file to write, such as report.html; its twin is report.json
        public : leave out what could reveal a record: for readers of the release, not the board
        source : the file that the table came from, of which the report gives the hash
        command : the words to repeat it with; by default the call of :func:`microagg.protect`
        measured : what :meth:`measure` gave, if that was asked already
        **measures
            As for :meth:`measure`: ``analyses``, ``confidential``, ``dominance``.
        """
        from pathlib import Path

        from microagg.report.html import check_report_target, write_report
        from microagg.report.model import release_model

        check_report_target(Path(path))
        if measured is None:
            measured = self.measure(**measures)
        model = release_model(
            self, measured=measured, public=public, source=source, command=command
        )
        write_report(model, Path(path))


def protect(
    frame: Any,
    k: int,
    *,
    columns: Iterable[Any] | None = None,
    method: str = "auto",
    aggregate: str | None = None,
    scale: str = "zscore",
    per_column: bool = False,
    round: bool = False,  # noqa: A002 - the word that users look for
    random_state: int | None = 0,
    progress: Report | None = None,
    **options: Any,
) -> Release:
    """Protect a table: replace values by those of groups of at least k similar records.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow. Never changed.
    k : int
        Least number of records that share their protected values.
    columns : names of the columns to protect; by default all numeric ones
    method, scale, random_state, progress, **options
        As for :func:`microagg.partition`, which also takes ``refine`` and ``bound``.
    aggregate : {"mean", "median", "midrange", "maximum", "minimum"}
        What a group releases; by default the mean, or what fits the ``cost`` of the method.
    per_column : bool
        Protect each column by itself (individual ranking). Loses far less, but is no
        k-anonymity of the combination of columns.
    round : bool
        Round the aggregates of integer columns, which so stay integers. Groups stay
        indistinguishable; column means are kept up to rounding only.

    Returns
    -------
    Release
        ``data`` has the type, row order, index and column order of ``frame``.

    Warns
    -----
    DisclosureRiskWarning
        If a column that is left as it was has (nearly) only distinct values.

    >>> import pyarrow as pa
    >>> t = pa.table({"age": [30, 31, 34, 61, 65, 66], "city": ["A", "B", "A", "B", "B", "A"]})
    >>> r = protect(t, k=3)
    >>> r.data["age"].to_pylist(), r.risk.smallest_class
    ([31.666..., 31.666..., 31.666..., 64.0, 64.0, 64.0], 3)
    """
    if aggregate is None:
        aggregate = AGGREGATE_OF_COST.get(str(options.get("cost", "sse")), "mean")
    check_settings(k, method, scale, aggregate, **options)
    clock = Clock()
    with clock.time("check"):
        table = Frame(frame)
        chosen = choose_columns(table, columns)
        matrix = columns_matrix(table, chosen)
        whole = [name for name in chosen if round and table.is_integer(name)]
        for name in whole:
            table.check_roundable(name, matrix[:, chosen.index(name)])
        protected = set(chosen)
        untouched = [name for name in table.names if name not in protected]
        identifying = warn_of_identifiers(table, untouched)
        if columns is None:
            warn_of_numbers_as_text(table, untouched)
        _warn_of_weak_promises(k, chosen, per_column)
    with clock.time("partition"):
        parts = [
            (
                names,
                partition(
                    matrix[:, [chosen.index(name) for name in names]],
                    k,
                    method=method,
                    scale=scale,
                    random_state=random_state,
                    progress=progress,
                    **options,
                ),
            )
            for names in ([[name] for name in chosen] if per_column else [chosen])
        ]
    with clock.time("aggregate"):
        released = {
            name: group_aggregate(matrix[:, chosen.index(name)], part.labels, aggregate)
            for names, part in parts
            for name in names
        }
        for name in whole:
            released[name] = np.rint(released[name])
        data = table.replace(released, whole=whole)
    return Release(
        data=data,
        parts=parts,
        columns=chosen,
        untouched=untouched,
        identifying=identifying,
        aggregate=aggregate,
        settings={
            "k": k,
            "columns": chosen,
            "method": method,
            "aggregate": aggregate,
            "scale": scale,
            "per_column": per_column,
            "round": round,
            "random_state": random_state,
            **options,
        },
        seconds=clock.seconds,
        _original=matrix,
    )


def check_settings(
    k: int,
    method: str = "auto",
    scale: str = "zscore",
    aggregate: str | None = None,
    refine: bool | str = False,
    **_: object,
) -> None:
    """Refuse wrong settings of :func:`protect` before anything is read."""
    check_k(k, sys.maxsize)
    find(method)
    check_scale(scale)
    if not isinstance(refine, bool):
        check_effort(refine)
    if aggregate is not None:
        check_aggregate(aggregate)


def _warn_of_weak_promises(k: int, columns: list[Any], per_column: bool) -> None:
    """Warn of settings that are allowed but protect less than one may think."""
    if k == 1:
        warnings.warn(
            "k = 1 protects nothing: every record may form a group of its own.",
            DisclosureRiskWarning,
            stacklevel=3,
        )
    if per_column and len(columns) > 1:
        warnings.warn(
            f"Each of {listed(columns)} is protected by itself: every value is shared by at least {k} "
            "records, but combinations of columns need not be, so this is not k-anonymity.",
            DisclosureRiskWarning,
            stacklevel=3,
        )


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
