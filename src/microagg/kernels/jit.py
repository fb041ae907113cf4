"""How kernels are compiled: one place for the flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["compiled", "kernel", "subkernel"]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when first called, outside the interpreter lock."""
    return compiled(function)


def subkernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only kernels call: no entry from Python saves compilation."""
    return compiled(function, no_cpython_wrapper=True)


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile with more options.

    The machine code is kept on disk for the next process, unless there is no folder that can be
    written to, as for a service user without a home.
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True}  # no kernel is called from C
    try:
        machine_code: Callable[..., Any] = njit(**options, cache=True)(function)
    except RuntimeError:
        machine_code = njit(**options)(function)
    return machine_code
