"""Figures from the literature: ``MDAV["census"][3]`` and others, each a table of published.toml."""

import tomllib
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_suffix(".toml")
_TABLES = tomllib.loads(_FILE.read_text(encoding="utf-8"))


def _numbered(table: dict[str, Any]) -> dict[Any, Any]:
    """The table with numbers where keys are digits, which TOML has as text: sizes, k."""
    return {
        int(key) if key.isdigit() else key: _numbered(value) if isinstance(value, dict) else value
        for key, value in table.items()
    }


def __getattr__(name: str) -> dict[Any, Any]:
    if name not in _TABLES:
        raise AttributeError(f"published.toml has no table {name}")
    return _numbered(_TABLES[name])
