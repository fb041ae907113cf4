"""What is looked at while a table larger than memory is written: a sample, keys for counts and linkage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.engines.aggregates import Shared, dealt_columns
from microagg.engines.disk import AT_ONCE, DiskRun
from microagg.engines.encoding import Words
from microagg.engines.evidence_at_scale import Sample, sought
from microagg.engines.scratch import Scratch
from microagg.formats.batches import Batch, BatchSource
from microagg.measure.count_by_keys import ClassCounter
from microagg.measure.known_columns import views_of
from microagg.measure.linkage import Linkage, ReleasedRows, count_near, linkage_of
from microagg.measure.row_keys import Keys, row_keys
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles
from microagg.tables.as_written import values_as_written
from microagg.tables.frame import Frame


class GatheredOnDisk:
    """What is gathered while the output is written; the parameters are as for a ``DiskRelease``."""

    def __init__(
        self,
        source: BatchSource,
        plan: Plan,
        roles: Roles,
        run: DiskRun,
        scratch: Scratch,
        memory: int,
    ) -> None:
        self._source, self._run = source, run
        self._wanted = run.sampled
        self._before: list[pa.Table] = []
        self._after: list[pa.Table] = []
        self._text: list[pa.Table] = []
        self._uniques = ClassCounter(scratch.folder, memory // 2)
        self.views = views_of(roles)
        self._sample_keys: dict[str, list[Any]] = {view: [] for view in self.views}
        dropped = [name for name in plan.units if name in roles.dropped]
        self._dropped = dropped
        self.names = [*dropped, *dealt_columns(run.encoding)]
        """What :meth:`add` returns of each row, in its order."""
        self._key_files = {name: scratch.folder / f"keys-{j}" for j, name in enumerate(self.names)}
        for path in self._key_files.values():
            path.unlink(missing_ok=True)
        self._last_units: dict[Any, Keys] = {}
        self.together: set[Any] = set()
        """Dropped units of which two rows follow each other in the file."""
        self._batches = 0
        for view in self.views:
            scratch.shelf(view).remove()
        self._keys_at = {view: scratch.shelf(view) for view in self.views}

    def add(self, released: pa.Table, batch: Batch, kept: Any, dealt: Words | None) -> list[Keys]:
        """Look at a batch before and after; return what :meth:`add_keys` needs of its rows.

        These are the keys of dropped units and, if values are swapped, ``dealt``: see :class:`Shared`.
        """
        self._batches += 1
        table = batch.table if kept is None else batch.table.filter(pa.array(kept))
        text = batch.as_written if kept is None else batch.as_written.filter(pa.array(kept))
        source = self._source
        rows = batch.first + (np.arange(table.num_rows) if kept is None else np.flatnonzero(kept))
        protected = [coder.name for coder in self._run.encoding.coders]
        self._uniques.add(row_keys([table[name] for name in protected]))
        seen, written = self._run.encoding.recoded(table, text if source.is_text else None)
        whole = Frame(seen if written is None else written)
        keys = {}
        for view, columns in self.views.items():
            values = [values_as_written(whole, name, source.is_text) for name in columns]
            keys[view] = row_keys(values)[:, :1]
            self._keys_at[view].put(self._batches, keys[view], rows // AT_ONCE)
        at = np.flatnonzero(np.isin(rows, self._wanted[:, 0]))
        if len(at):
            chosen = pa.array(at)
            self._before.append(table.take(chosen))
            self._after.append(released.take(chosen))
            if source.is_text:
                self._text.append(text.take(chosen))
            for view, own_keys in keys.items():
                self._sample_keys[view].append(own_keys[at, 0])
        units = ([values_as_written(whole, name, source.is_text)] for name in self._dropped)
        found = [np.ascontiguousarray(row_keys(values)[:, 0]) for values in units]
        return found if dealt is None else [*found, *np.ascontiguousarray(dealt.T)]

    def add_keys(self, keys: Sequence[pa.ChunkedArray]) -> None:
        """Keep keys that no file tells, a column for each, in the order in which records are written."""
        for (name, path), column in zip(self._key_files.items(), keys, strict=True):
            own = column.to_numpy()
            if name in self._dropped:
                before = np.append(self._last_units.get(name, ~own[:1]), own[:-1])
                if (own == before).any():
                    self.together.add(name)
                self._last_units[name] = own[-1:]
            with path.open("ab") as file:
                file.write(own.tobytes())  # which says why, if it cannot

    @property
    def unique_before(self) -> int:
        """Records whose original values no other has."""
        return self._uniques.sizes().unique

    def keys(self) -> dict[Any, pa.Array]:
        """Return keys that the file does not have, such as those of units, in the order of its records."""
        found = {}
        for name, path in self._key_files.items():
            keys = np.memmap(path, dtype=np.uint64, mode="r")
            found[name] = pa.Array.from_buffers(pa.uint64(), len(keys), [None, pa.py_buffer(keys)])
        return found

    def sample(self) -> Sample:
        """Return the sampled records."""
        run = self._run
        rows, labels = self._wanted[:, 0], self._wanted[:, 1]
        words = []
        for number in np.unique(rows // AT_ONCE).tolist():
            own, shared = run.shared(number * AT_ONCE, (number + 1) * AT_ONCE)
            at = np.searchsorted(own, rows[rows // AT_ONCE == number])
            words.append(shared.words()[at])
        shared = Shared.of(np.concatenate(words), run.encoding)
        text = pa.concat_tables(self._text) if self._text else None
        before, after = pa.concat_tables(self._before), pa.concat_tables(self._after)
        return Sample(before, after, text, labels, shared)

    def linked(self, view: str, sample: Sample) -> Linkage | None:
        """Link records for an attacker who knows the columns of a view; None where it has none."""
        if view not in self.views:
            return None
        encoding, keys = self._run.encoding, np.concatenate(self._sample_keys[view])
        released = self._released_with_keys(view)
        near = count_near(encoding.attacker, sought(encoding, sample, keys), released)
        return linkage_of(near, encoding.records)

    def _released_with_keys(self, view: str) -> Iterator[ReleasedRows]:
        """Yield what all records release, and the keys of their values of a view."""
        run, total = self._run, self._source.rows
        for first in range(0, total, AT_ONCE):
            _, shared = run.shared(first, min(first + AT_ONCE, total))
            keys = self._keys_at[view].take([first // AT_ONCE])[:, 0]
            yield ReleasedRows(shared.values, shared.states, known=keys)
