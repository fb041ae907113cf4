"""How kernels are compiled and kept: one place for the flags.

Lean kernels count no references: numba counts those of arrays at every call that it does not expand in place,
which costs more than a small function's own work, and compiles longer. None of them makes or keeps an array,
so the counting is left out. Functions that only kernels call are compiled once, as a part of each kernel.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numba
from numba import njit

try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.types import unliteral

    from microagg.compile.disk_cache import KernelCache
except (ImportError, AttributeError) as moved:
    warnings.warn(
        f"microagg uses private parts of numba, and numba {numba.__version__} lacks one of them "
        f"({moved}). Results are the same, but every process compiles again, for minutes. Install the numba "
        "that microagg asks for: pip install --upgrade microagg.",
        RuntimeWarning,
        stacklevel=2,
    )
    HAS_PRIVATE_PARTS = False
    JITCodeLibrary = Compiler = object  # type: ignore[misc, assignment]
else:
    HAS_PRIVATE_PARTS = True

__all__ = ["inlined_subkernel", "kernel", "lean_kernel", "lean_subkernel", "subkernel"]

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_LEAN: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


def _compiled(
    function: Callable[..., Any], is_part: bool = False, **options: Any
) -> Callable[..., Any]:
    """Compile with options of numba.

    A part has no entry from Python and nothing of its own on disk: what calls it holds its code. Other
    machine code is kept on disk for the next process, unless there is no folder that can be written to, as
    for a service user without a home.
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True}  # no kernel is called from C
    if is_part:
        options["no_cpython_wrapper"] = True
        if HAS_PRIVATE_PARTS:
            options["pipeline_class"] = _PartCompiler
    dispatcher: Any
    try:
        dispatcher = njit(**options)(function)
    except KeyError:  # a numba that does not know one of the options
        dispatcher = njit(nogil=True)(function)
    dispatcher.compile = _without_collecting(dispatcher.compile)
    if HAS_PRIVATE_PARTS:
        if not is_part:
            with suppress(RuntimeError):
                dispatcher._cache = KernelCache(function)
        # A call with a constant would otherwise be compiled by itself, for this very number.
        template = dispatcher.get_call_template
        dispatcher.get_call_template = lambda given, named: template(
            tuple(map(unliteral, given)), {n: unliteral(t) for n, t in named.items()}
        )
    machine_code: Callable[..., Any] = dispatcher
    return machine_code


# What Python calls, compiled when first called, outside the interpreter lock.
kernel: _Decorator = _compiled
# What only kernels call, compiled as a part of theirs.
subkernel: _Decorator = partial(_compiled, is_part=True)
# The same for functions that make no arrays.
lean_kernel: _Decorator = partial(_compiled, **_LEAN)
lean_subkernel: _Decorator = partial(_compiled, is_part=True, **_LEAN)
# Inlined into its one or two callers: to hand over many arrays takes longer than a short function.
inlined_subkernel: _Decorator = partial(_compiled, is_part=True, **_LEAN, forceinline=True)


class _NoEnvironment:
    """Stands where numba leaves what raising an error with computed words needs.

    A part of a kernel raises constant words only, which are in its code.
    """

    @staticmethod
    def set_env(name: str, environment: object) -> None:
        pass


class _InlinedCode(JITCodeLibrary):
    """Code of a function that only kernels call, before optimisation.

    numba would optimise each function and make machine code of it, and then do both again in every
    function that calls it. A part is optimised and translated once, together with the kernel.
    """

    codegen = _NoEnvironment

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code to point to."""
        self._ensure_finalized()
        return 0


class _PartCompiler(Compiler):
    """Leaves the code of a function to the kernel that calls it."""

    def define_pipelines(self) -> Any:
        """Return numba's steps, with a library of ours."""
        state = self.state
        state.library = _InlinedCode(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


def _without_collecting(work: Callable[..., Any]) -> Callable[..., Any]:
    """Let Python not look for unreachable objects meanwhile: that takes a sixth of the time of compiling."""

    def quickly(*given: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            return work(*given)
        finally:
            if collects:
                gc.enable()

    return quickly
