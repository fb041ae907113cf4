"""Parts of kernels, which only kernels can call, made callable for a test."""

from __future__ import annotations

from numba import njit


def entry(part):
    return njit(lambda *given: part(*given))
