"""A model as one HTML file that needs nothing else, and its JSON twin."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microagg import words
from microagg.errors import InputError, shown
from microagg.report import pictures
from microagg.tables.atomic import check_target, replacing_all

if TYPE_CHECKING:
    from jinja2 import Environment

    from microagg.evidence import Evidence

__all__ = ["check_report_target", "notebook_view", "render", "report_texts", "write_report"]

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_DISTRIBUTIONS = 40


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
    """Write the page, and every number of it as JSON beside it; both take their names together."""
    check_report_target(path)
    texts = report_texts(model)
    with replacing_all([path, path.with_suffix(".json")]) as parts:
        for part, text in zip(parts, texts, strict=True):
            part.write_text(text, encoding="utf-8", errors="backslashreplace")


def report_texts(model: dict[str, Any]) -> tuple[str, str]:
    """Return the page and its JSON twin."""
    return render(model), json.dumps(model, indent=2, allow_nan=False, ensure_ascii=False)


def render(model: dict[str, Any]) -> str:
    """Turn a model into a page."""
    draw = {
        "release": _release_pictures,
        "public": _public_pictures,
        "comparison": _comparison_pictures,
    }.get(model["kind"])
    template = _environment().get_template(f"{model['kind']}.html")
    return template.render(m=model, pictures=draw(model) if draw else {})


def notebook_view(evidence: Evidence) -> str:
    """Show the verdict, the loss and the risk in a few lines of HTML."""
    return _environment().get_template("notebook.html").render(e=evidence)


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
        percent=_unbroken(words.percent),
        number=_unbroken(words.number),
        share=_unbroken(words.share),
        svg=Markup,
        visible=words.visible,
        sentence=_sentence,
    )
    return found


_BLANK = "\u00a0"  # between a number and its sign a line must not break


def _unbroken(put: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: put(value).replace(" ", _BLANK)


def _sentence(text: str) -> str:
    """Words as a sentence of their own."""
    text = words.visible(text)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _release_pictures(m: dict[str, Any]) -> dict[str, Any]:
    names, drawn = m["columns"]["protected"], m["pictures"]
    alone, with_known = m["risk"]["alone"], m["risk"]["with_known"]
    found: dict[str, Any] = {
        "distributions": _distributions(drawn["distributions"], m["records"]),
        "correlations": [],
        "sizes": pictures.class_sizes("sizes", drawn["class_sizes"], m["k"]),
        "linkage": pictures.linkage(
            "linkage",
            [
                ("blind guess", alone["blind_guess"]),
                ("protected columns alone", alone["record_linkage"]),
                ("with known columns", with_known["record_linkage"]),
            ],
        ),
        "intervals": pictures.intervals(
            "intervals", alone["sd_disclosure"], alone["rank_disclosure"]
        ),
        "map": None,
    }
    for key, title in (("before", "before"), ("after", "after"), ("difference", "after − before")):
        if "correlations" in drawn:
            picture = pictures.correlation(
                f"correlation-{key}", names, drawn["correlations"][key], 1.0
            )
            found["correlations"].append((title, f"correlation-{key}", picture))
    if m["alternatives"]:
        found["map"] = pictures.risk_utility_map(
            "map",
            m["alternatives"]["cells"],
            alone["blind_guess"],
            (m["parts"][0]["method"], m["k"]),
        )
    return found


def _public_pictures(m: dict[str, Any]) -> dict[str, Any]:
    drawn, names = m["pictures"], m["columns"]["protected"]
    found: dict[str, Any] = {
        "distributions": _distributions(drawn["distributions"], m["records"]),
        "sizes": pictures.class_sizes("sizes", drawn["class_sizes"], m["k"]),
        "correlations": None,
    }
    if drawn["correlations"]:
        found["correlations"] = pictures.correlation(
            "correlation-after", names, drawn["correlations"], 1.0
        )
    return found


def _distributions(data: dict[str, Any], n: int) -> list[tuple[str, str, str]]:
    first = list(data.items())[:_MOST_DISTRIBUTIONS]
    return [
        (name, f"distribution-{i}", pictures.distribution(f"distribution-{i}", counts, n))
        for i, (name, counts) in enumerate(first)
    ]


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
