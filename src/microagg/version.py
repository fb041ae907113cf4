"""The version of the package, also where it runs from a folder and is not installed."""

from __future__ import annotations

__all__ = ["VERSION"]

VERSION = "0.3.0"
