"""Parts of kernels, which only kernels can call, made callable for a test."""

from types import FunctionType
from typing import Any

from numba import njit

_IN_PYTHON: dict[Any, FunctionType] = {}


def entry(part):
    """Compile a part as it stands; nothing keeps the code."""
    return njit(lambda *given: part(*given))


def in_python(part):
    """Return the source of a part, and of all that it calls, for Python to run.

    A few records are sooner done than the part is compiled. Overflow and division by 0 are silent in
    kernels: call it within ``np.errstate(all="ignore")``.
    """
    source = part.py_func
    if source not in _IN_PYTHON:
        names = dict(source.__globals__)
        _IN_PYTHON[source] = FunctionType(
            source.__code__, names, source.__name__, source.__defaults__
        )
        for name in source.__code__.co_names:
            if hasattr(names.get(name), "py_func"):
                names[name] = in_python(names[name])
    return _IN_PYTHON[source]
