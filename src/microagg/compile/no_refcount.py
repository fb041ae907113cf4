"""Lean kernels, which count no references: for many small functions on arrays that their caller owns.

numba counts the references of arrays at every call that it does not expand in place, which costs
more than such a function's own work, and compiles longer. None of these functions makes
or keeps an array, so the counting is left out. Functions that only other compiled code calls also
need no entry from Python, which saves compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from microagg.compile.jit import compiled, compiled_part, kernel, subkernel

_MIN_SCAN = {"nnan", "nsz", "contract", "reassoc"}


def lean_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile what Python calls; it must not make arrays."""
    return _lean(compiled, kernel, function)


def lean_subkernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile what only compiled code calls; it must not make arrays."""
    return _lean(compiled_part, subkernel, function)


def inlined_subkernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile what compiled code calls in one or two places, as a part of these; it must not make arrays.

    To hand over many arrays takes longer than a short function.
    """
    return _lean(compiled_part, subkernel, function, forceinline=True)


def scan(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a search that may run in any order and round in any way."""
    return _lean(compiled_part, subkernel, function, fastmath=_MIN_SCAN)


def _lean(
    compile_: Callable[..., Any],
    plainly: Callable[..., Any],
    function: Callable[..., Any],
    **options: Any,
) -> Callable[..., Any]:
    try:
        lean: Callable[..., Any] = compile_(function, **options, error_model="numpy", _nrt=False)
    except KeyError:  # a numba that does not know one of the options
        lean = plainly(function)
    return lean
