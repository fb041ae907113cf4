"""How the parts of kernels are compiled: once, as a part of the kernel that calls them."""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

__all__ = ["PartCompiler"]


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


class PartCompiler(Compiler):
    """Leaves the code of a function to the kernel that calls it."""

    def define_pipelines(self) -> Any:
        """Return numba's steps, with a library of ours."""
        state = self.state
        state.library = _InlinedCode(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()
