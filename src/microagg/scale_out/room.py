"""How much memory there is, and whether a table fits into it."""

from __future__ import annotations

from pathlib import Path

from microagg.tables.batches import BatchSource

__all__ = ["fits", "free_memory", "memory_for"]

# What a table takes in memory while it is protected there, for each byte of its Arrow table.
_TIMES = 6.0
_SHARE_OF_FREE = 0.6


def free_memory() -> int:
    """Bytes of memory that are free, as far as the machine tells."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 1 << 62


def fits(source: BatchSource, memory: int | None) -> bool:
    """Whether a table can be protected in memory."""
    room = free_memory() * _SHARE_OF_FREE if memory is None else float(memory)
    return source.bytes_in_memory * _TIMES <= room


def memory_for(memory: int | None) -> int:
    """Bytes that tables of counts may take."""
    whole = min(free_memory(), 1 << 31) if memory is None else memory
    return max(whole // 4, 1 << 26)
