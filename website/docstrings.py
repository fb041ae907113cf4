"""Docstrings for the reference: doctests get their heading, settings their help."""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe

__all__ = ["Examples", "Settings"]

_FIRST = re.compile(r"^(?=>>> )", re.M)


class Examples(griffe.Extension):
    """Puts the heading that the parser of docstrings looks for."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of whatever was read."""
        text = obj.docstring and obj.docstring.value
        if text and "Examples\n---" not in text:
            obj.docstring.value = _FIRST.sub("Examples\n--------\n", text, count=1)


class Settings(griffe.Extension):
    """Shows a setting, which is a row of the table, as its default and its help."""

    def on_attribute_instance(self, *, attr: Any, **_: Any) -> None:
        """Take docstring and value of an attribute from its row."""
        call = attr.value
        if not isinstance(call, griffe.ExprCall) or str(call.function) not in ("setting", "_names"):
            return
        given = {a.name: a.value for a in call.arguments if isinstance(a, griffe.ExprKeyword)}
        place = [a for a in call.arguments if not isinstance(a, griffe.ExprKeyword)]
        help_text = given.get("help", place[0])
        attr.docstring = griffe.Docstring(ast.literal_eval(str(help_text)), parent=attr)
        attr.value = None if "help" not in given or str(place[0]) == "MISSING" else place[0]
