"""Settings for a process that runs this package and nothing else: the command, the page's worker."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any


def start_quickly() -> None:
    """Save work at the start that only programs with other code in them need.

    Python looks for unreachable objects after every 700 new ones; loading modules makes many, and all stay.
    pyarrow imports pandas with its first array, so that it recognises objects of pandas. Here there are
    none until something asks for one (``Table.from_pandas``), and pyarrow imports pandas then. numba colours
    the words of the thousands of faults that it finds while it compiles and puts aside.
    """
    gc.set_threshold(50_000)
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    if "pandas" in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        import pyarrow as pa

        pa.scalar(0)
    finally:
        sys.meta_path.remove(hidden)


class _Hidden:
    """Finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
