"""Whether a table fits into memory."""

from __future__ import annotations

from microagg.tables.batches import BatchSource
from microagg.tables.memory import free_memory

__all__ = ["fits", "memory_for"]

# What a table takes in memory while it is protected there, for each byte of its Arrow table.
_TIMES = 6.0
_SHARE_OF_FREE = 0.6


def fits(source: BatchSource, memory: int | None) -> bool:
    """Whether a table can be protected in memory."""
    room = free_memory() * _SHARE_OF_FREE if memory is None else float(memory)
    return source.bytes_in_memory * _TIMES <= room


def memory_for(memory: int | None) -> int:
    """Bytes that tables of counts may take."""
    whole = min(free_memory(), 1 << 31) if memory is None else memory
    return max(whole // 4, 1 << 26)
