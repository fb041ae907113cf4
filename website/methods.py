"""Pages of methods: what the registry tells, the drawing, and the figures, around the text of the page."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from microagg.plan.registry import METHODS, Method, find
from website.tables import FIGURES, rows

__all__ = ["completed", "navigation"]

# Pages with whole published tables beside ours.
_PAPERS = {
    "mdav": "solanas_martinez",
    "v-mdav": "solanas_martinez",
    "mst": "laszlo_mukherjee",
    "mst-d": "laszlo_mukherjee",
    "mst-c": "laszlo_mukherjee",
    "diameter": "laszlo_mukherjee",
    "centroid": "laszlo_mukherjee",
    "hansen-mukherjee": "hansen_mukherjee",
    "rep-ord-mic": "mortazavi",
    "imhm": "mortazavi",
    "igd": "mortazavi",
    "kmeans-merge": "stamm_schaub_figure_6",
    "mu-approx": "stamm_schaub_figure_6",
    "pca": "stamm_schaub_figure_6",
    "random-projection": "stamm_schaub_figure_6",
}
_NAMES = {"tarragona": "Tarragona", "census": "Census", "eia": "EIA"}


def _family(method: Method) -> str:
    return method.family


def navigation() -> list[dict[str, list[dict[str, str]]]]:
    """Sections of the navigation: the methods by family."""
    ordered = sorted(METHODS.values(), key=_family)
    return [
        {family.capitalize(): [{m.name: f"methods/{m.name}.md"} for m in members]}
        for family, members in groupby(ordered, key=_family)
    ]


def completed(name: str, text: str) -> str:
    """Put facts before the text of a page and figures after it; the index gets the whole list."""
    if name == "index":
        return f"{text}\n\n{_overview()}"
    method = find(name)
    parts = [
        f"# {name}",
        f"{method.summary[0].upper()}{method.summary[1:]}.",
        _facts(method),
        f"![How {name} groups two dozen records](drawings/{name}.svg)",
        text,
        _figures(method),
    ]
    return "\n\n".join(part for part in parts if part)


def _overview() -> str:
    table: list[list[object]] = [["method", "family", "guarantee", "time", "source"]]
    for method in METHODS.values():
        link = f"[{method.name}]({method.name}.md)"
        facts = (method.family, _guarantee(method), method.time, method.paper or "our own")
        table.append([link, *facts])
    return rows(table)


def _guarantee(method: Method) -> str:
    if method.one_column:
        return "exact, one column"
    if method.univariate:
        return f"{method.guarantee}; exact for one column"
    return method.guarantee


def _facts(method: Method) -> str:
    table: list[list[object]] = [
        ["", ""],
        ["Family", method.family],
        ["Source", method.paper or "our own"],
        ["Guarantee", _guarantee(method)],
        ["Cost", method.time],
        ["Weights of records", "yes" if method.weighted else "no"],
    ]
    if method.most_records is not None:
        table.append(["Largest table", f"{method.most_records:,} records"])
    for option in method.options:
        told = f"default `{option.default!r}`: {option.help}"
        table.append([f"Option `{option.name}`", told])
    for option, reason in method.refuses.items():
        table.append([f"Refuses `{option}`", reason])
    return rows(table)


def _figures(method: Method) -> str:
    measured = json.loads(FIGURES.read_text(encoding="utf-8"))
    told = f"Measured with version {measured['version']} ({measured['machine']}) by `make figures`."
    several = measured["several columns"].get(method.name)
    one = measured["one column"].get(method.name)
    parts = ["## Figures"] if several or one or method.name in _PAPERS else []
    if several:
        parts += [
            "Information loss in percent of z-scored data, and how long it takes on this table. A published "
            "figure is shown where the paper, or one that quotes it, has one.",
            _several(several),
            told,
        ]
    if one:
        parts += [
            "Seconds for a million uniform values, sorting and labels included:",
            rows(
                [
                    ["k", *(cell["k"] for cell in one)],
                    ["seconds", *(f"{cell['seconds']:.3f}" for cell in one)],
                ]
            ),
            told,
        ]
    if method.name in _PAPERS:
        parts.append(
            f"[Published tables beside ours](../papers/{_PAPERS[method.name]}.md), written by `make papers`."
        )
    return "\n\n".join(parts)


def _several(cells: list[dict[str, Any]]) -> str:
    table: list[list[object]] = [["table", "k", "published", "ours", "seconds"]]
    for cell in cells:
        known = "" if cell["published"] is None else f"{cell['published']:g}"
        name = _NAMES[cell["table"]]
        table.append([name, cell["k"], known, f"{cell['loss']:.4g}", cell["seconds"]])
    return rows(table)
