"""A model as one self-contained HTML file, and its JSON twin."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microagg.base import formatting as words
from microagg.errors import InputError, shown
from microagg.formats.atomic import check_target, replacing_all

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from microagg.evidence import Evidence

TEMPLATES = Path(__file__).parent / "templates"
MOST_COLUMNS = 40  # drawn, and listed in a table; the JSON file has all
_MOST_NAMES = 100  # in a line of text
_MOST_SIGNS = 8_000  # of a plan or a command: about a hundred columns
_WORST_FIRST = ("amber", "warning", "note")


def check_report_target(path: Path, *others: Path) -> None:
    """Refuse a report that cannot be written to ``path``, or would replace ``others``, before any work."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"A report is an HTML file; {shown(str(path), 300)} does not end in .html. Choose such a name."
        )
    for target in (path, path.with_suffix(".json")):
        check_target(target.absolute())
        if target.resolve() in [other.resolve() for other in others]:
            raise InputError(
                f"The report would replace {shown(str(target), 300)}, a file of this very run. Choose "
                "another name."
            )


def write_report(model: dict[str, Any], path: Path) -> None:
    """Write the report of a ``model`` to ``path``, its numbers as JSON next to it; both appear together."""
    check_report_target(path)
    texts = report_texts(model)
    with replacing_all([path, path.with_suffix(".json")]) as parts:
        for part, text in zip(parts, texts, strict=True):
            part.write_text(text, encoding="utf-8", errors="backslashreplace")


def report_texts(model: dict[str, Any]) -> tuple[str, str]:
    """Return the report of a ``model`` as HTML, and its JSON twin."""
    return render(model), json.dumps(model, indent=2, allow_nan=False, ensure_ascii=False)


def render(model: dict[str, Any]) -> str:
    """Return a model as HTML."""
    template = environment().get_template(f"{model['kind']}.html")
    return template.render(layout="base.html", m=model, most=MOST_COLUMNS)


def notebook_view(evidence: Evidence) -> str:
    """Show the verdict, the loss and the risk of ``evidence`` in a few lines of HTML."""
    return environment().get_template("notebook.html").render(e=evidence)


@cache
def environment(*folders: Path) -> Environment:
    """Return the environment by which all names and values become HTML; the page adds its folder."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from microagg.report import charts

    templates = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,  # whatever comes from data is text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals.update(charts=charts)
    number = _unbroken(words.number)
    templates.filters.update(
        percent=_unbroken(words.percent),
        number=number,
        share=_unbroken(words.share),
        visible=words.visible,
        figure=lambda value: value if isinstance(value, str) else number(value),  # or a date
        breakable=_breakable,
        names=_names,
        text=_text,
        brief=_brief,
        sentence=_sentence,
        decimals=_decimals,
        worst_first=lambda cautions: sorted(
            cautions, key=lambda caution: _WORST_FIRST.index(caution["severity"])
        ),
    )
    return templates


_BLANK = "\u00a0"  # between a number and its sign a line must not break


def _unbroken(put: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: put(value).replace(" ", _BLANK)


def _text(text: str) -> str:
    """Keep a number and its sign on one line."""
    return re.sub(r"(?<=\d) (?=%)", _BLANK, words.visible(text))


def _brief(text: str) -> str:
    """Cut a text that names thousands of columns."""
    rest = "…\nThe JSON file has all of it." if len(text) > _MOST_SIGNS else ""
    return text[:_MOST_SIGNS] + rest


def _sentence(text: str) -> str:
    """Turn words into a sentence; k stays small.

    >>> _sentence("k = 5: at most one in five"), _sentence("most in age")
    ('k = 5: at most one in five.', 'Most in age.')
    """
    text = _text(text)
    first = text[:1] if text.startswith("k ") else text[:1].upper()
    return first + text[1:] + ("" if text.endswith(".") else ".")


def _breakable(name: str) -> Markup:
    """Let a column's name break where a word of it ends."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(?<=[_.\-/])(?=\w)", "<wbr>", str(escape(words.visible(name)))))


def _names(columns: Sequence[str]) -> Markup:
    """List the names of columns, the first ones if there are very many."""
    from markupsafe import Markup

    listed = Markup(", ").join(_breakable(name) for name in columns[:_MOST_NAMES])
    extra = len(columns) - _MOST_NAMES
    return listed + f" and {extra:,} more, which the JSON file names" if extra > 0 else listed


def _decimals(value: float | None, places: int = 3) -> str:
    r"""Put a deviation with these decimals, all that a board needs; one that they would hide is not 0.

    >>> [_decimals(value) for value in (0.0123, -0.5, 5.4e-10, 0.0, None)]
    ['0.012', '−0.500', '<\xa00.001', '0', '–']
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    least = 10.0**-places
    if abs(value) < least / 2:
        return f"<{_BLANK}{least:.{places}f}"
    return f"{value:,.{places}f}".replace("-", "−")
