"""How kernels are compiled: one place for the flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["kernel"]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when first called, outside the interpreter lock.

    The machine code is kept on disk for the next process, unless there is no folder that can be
    written to, as for a service user without a home.
    """
    try:
        compiled = njit(cache=True, nogil=True)(function)
    except RuntimeError:
        compiled = njit(nogil=True)(function)
    return compiled
