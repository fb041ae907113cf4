"""The sources that machine code depends on, without loading the compiler."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
# How code is kept, or compiled in advance, changes no code.
_NO_KERNELS = ("disk_cache.py", "source_digest.py", "warm.py")


def sources() -> Iterator[Path]:
    """Yield the files with kernels or with constants that kernels use."""
    for folder in ("algorithms", "bounds", "compile", "kernels"):
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            if path.name not in _NO_KERNELS:
                yield path
    yield _PACKAGE / "base" / "progress.py"


@cache
def stamp() -> str:
    """Return a digest of all kernels: it changes when one of them does."""
    whole = hashlib.sha256()
    for path in sources():
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()
