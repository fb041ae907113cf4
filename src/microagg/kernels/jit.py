"""How kernels are compiled and kept: one place for the flags."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target

from microagg.kernels.kept import KernelCache

__all__ = ["compiled", "compiled_part", "kernel", "load_compiler", "subkernel"]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when first called, outside the interpreter lock."""
    return compiled(function)


def subkernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only kernels call, as a part of theirs."""
    return compiled_part(function)


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile with more options.

    The machine code is kept on disk for the next process, unless there is no folder that can be
    written to, as for a service user without a home.
    """
    return _compiled(function, options, keep=True)


def compiled_part(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function that only kernels call with more options.

    It has no entry from Python and nothing of its own on disk: what calls it holds its code.
    """
    options |= {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
    return _compiled(function, options, keep=False)


def _compiled(
    function: Callable[..., Any], options: dict[str, Any], keep: bool
) -> Callable[..., Any]:
    options |= {"nogil": True, "no_cfunc_wrapper": True}  # no kernel is called from C
    dispatcher: Any = njit(**options)(function)
    if keep:
        with suppress(RuntimeError):
            dispatcher._cache = KernelCache(function)
    # A call with a constant would otherwise be compiled by itself, for this very number.
    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda given, named: template(
        tuple(map(types.unliteral, given)), {n: types.unliteral(t) for n, t in named.items()}
    )
    machine_code: Callable[..., Any] = dispatcher
    return machine_code


def load_compiler() -> None:
    """Load what numba would else load with the first kernel."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


class _NoEnvironment:
    """Stands where numba leaves what raising an error with computed words needs.

    A part of a kernel raises constant words only, which are in its code.
    """

    @staticmethod
    def set_env(name: str, environment: object) -> None:
        pass


class _Part(JITCodeLibrary):
    """Code of a function that only kernels call, before optimisation.

    numba would optimise each function and make machine code of it, and then do both again in every
    function that calls it. A part is optimised and translated once, together with the kernel.
    """

    codegen = _NoEnvironment

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
    def define_pipelines(self) -> Any:
        state = self.state
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()
