"""A model as one HTML file that needs nothing else, and its JSON twin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microagg.errors import InputError, shown
from microagg.report import pictures
from microagg.tables.atomic import check_target, replacing

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["check_report_target", "render", "write_report"]

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_DISTRIBUTIONS = 40
_MOST_CORRELATIONS = 40


def check_report_target(path: Path, *others: Path) -> None:
    """Refuse a place where a report cannot go, before any work is done for it."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"A report is an HTML file; {shown(str(path), 300)} does not end in .html. Choose such a name."
        )
    for target in (path, path.with_suffix(".json")):
        check_target(target.absolute())
        if any(target.resolve() == other.resolve() for other in others):
            raise InputError(
                f"The report would replace {shown(str(target), 300)}, a file of this very run. Choose "
                "another name."
            )


def write_report(model: dict[str, Any], path: Path) -> None:
    """Write the page, and every number of it as JSON beside it."""
    check_report_target(path)
    page = render(model)
    with replacing(path) as part:
        part.write_text(page, encoding="utf-8")
    with replacing(path.with_suffix(".json")) as part:
        part.write_text(
            json.dumps(model, indent=2, allow_nan=False, ensure_ascii=False), encoding="utf-8"
        )


def render(model: dict[str, Any]) -> str:
    """Turn a model into a page."""
    draw = {"release": _release_pictures, "comparison": _comparison_pictures}.get(model["kind"])
    template = _environment().get_template(f"{model['kind']}.html")
    return template.render(m=model, pictures=draw(model) if draw else {})


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    found = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,  # whatever comes from data is text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        percent=_percent, number=_number, share=_share, svg=Markup, visible=_visible
    )
    return found


_BLANK = "\u00a0"  # between a number and its sign a line must not break


def _percent(value: float | None) -> str:
    """A percentage with two decimals, or one digit of what would show as nothing.

    >>> [_percent(value).replace(_BLANK, " ") for value in (5.897, 0.0, 0.0004, None)]
    ['5.90 %', '0 %', '0.0004 %', '–']
    """
    if value is None:
        return "–"
    if value == 0:
        return f"0{_BLANK}%"
    return f"{value:.2f}{_BLANK}%" if abs(value) >= 0.01 else f"{value:.1g}{_BLANK}%"


def _share(value: float | None) -> str:
    """A share as a percentage.

    >>> [_share(value).replace(_BLANK, " ") for value in (0.169, 1.0, 1e-6)]
    ['16.9 %', '100 %', '0.0001 %']
    """
    if value is None:
        return "–"
    return f"{100 * value:.3g}{_BLANK}%" if value < 0.9995 else f"100{_BLANK}%"


def _number(value: float | int | None) -> str:
    """A number with three digits, thousands apart; a minus sign that is one.

    >>> [_number(value) for value in (1234567, 0.01234, -0.5, 1e-17, 98765.4, 1e20)]
    ['1,234,567', '0.0123', '−0.5', '0', '98,800', '1e+20']
    """
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) < 1e-12:
        return "0"
    short = f"{value:.3g}"
    if 1000 <= abs(value) < 1e15:
        short = f"{float(short):,.0f}"
    return short.replace("-", "−")


def _visible(text: str) -> str:
    """Show control characters as what they are not.

    >>> _visible("a" + chr(27) + "b")
    'a�b'
    """
    return "".join(sign if sign.isprintable() else "�" for sign in text)


def _release_pictures(m: dict[str, Any]) -> dict[str, Any]:
    names = m["columns"]["protected"]
    found: dict[str, Any] = {
        "distributions": [
            (
                name,
                f"distribution-{i}",
                pictures.distribution(f"distribution-{i}", data, m["records"]),
            )
            for i, (name, data) in enumerate(m["pictures"]["distributions"].items())
            if i < _MOST_DISTRIBUTIONS
        ],
        "correlations": [],
        "sizes": pictures.class_sizes("sizes", m["pictures"]["class_sizes"], m["k"]),
        "linkage": pictures.linkage(
            "linkage",
            [
                ("blind guess", m["risk"]["blind_guess"]),
                ("linked", m["risk"]["record_linkage"]),
                (f"limit 1/{m['risk']['smallest_class']:,}", m["risk"]["prosecutor"]),
            ],
        ),
        "intervals": pictures.intervals(
            "intervals", m["risk"]["sd_disclosure"], m["risk"]["rank_disclosure"]
        ),
        "map": None,
    }
    if 1 < len(names) <= _MOST_CORRELATIONS:
        matrices = m["pictures"]["correlations"]
        for key, title in (
            ("before", "before"),
            ("after", "after"),
            ("difference", "after − before"),
        ):
            picture = pictures.correlation(f"correlation-{key}", names, matrices[key], 1.0)
            found["correlations"].append((title, f"correlation-{key}", picture))
    if m["alternatives"]:
        part = m["parts"][0]
        found["map"] = pictures.risk_utility_map(
            "map", m["alternatives"]["cells"], m["risk"]["blind_guess"], (part["method"], m["k"])
        )
    return found


def _comparison_pictures(m: dict[str, Any]) -> dict[str, Any]:
    cell = m["suggestion"]["cell"]
    return {
        "map": pictures.risk_utility_map(
            "map",
            m["comparison"]["cells"],
            m["comparison"]["blind_guess"],
            cell and (cell["method"], cell["k"]),
        )
    }
