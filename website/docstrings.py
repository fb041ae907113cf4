"""Docstrings for the reference: a doctest that stands at the end of one, without a heading, gets one."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["Examples"]

_FIRST = re.compile(r"^(?=>>> )", re.M)


class Examples(griffe.Extension):
    """Puts the heading that the parser of docstrings looks for."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of whatever was read."""
        text = obj.docstring and obj.docstring.value
        if text and "Examples\n---" not in text:
            obj.docstring.value = _FIRST.sub("Examples\n--------\n", text, count=1)
