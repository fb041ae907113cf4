"""Packages that only some files need."""

from __future__ import annotations

import importlib
from typing import Any

from microagg.errors import TableError

__all__ = ["needed"]


def needed(module: str) -> Any:
    """Import a package that only some files need, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise TableError(
            f"Files of this format need the package {module.partition('.')[0]}, which is not installed. "
            'Install it with: pip install "microagg[files]"'
        ) from None
