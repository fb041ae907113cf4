"""Which pictures go with which model."""

from __future__ import annotations

from typing import Any

from microagg.report import pictures
from microagg.report.loss_bands import MOST_COLUMNS

__all__ = ["illustrations"]


def illustrations(model: dict[str, Any]) -> dict[str, Any]:
    """Draw the pictures of a model as SVG."""
    draw = {
        "release": _release_pictures,
        "public": _public_pictures,
        "comparison": _comparison_pictures,
    }.get(model["kind"])
    return draw(model) if draw else {}


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
                *(
                    [("unprotected columns too", with_known["record_linkage"])]
                    * bool(m["columns"]["known"])
                ),
            ],
        ),
        "intervals": pictures.intervals(
            "intervals", alone["sd_disclosure"], alone["rank_disclosure"]
        ),
        "map": None,
    }
    for key, title in (("before", "before"), ("after", "after"), ("difference", "after − before")):
        if "correlations" in drawn:
            picture = pictures.correlation(f"correlation-{key}", names, drawn["correlations"][key])
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
            "correlation-after", names, drawn["correlations"]
        )
    return found


def _distributions(data: dict[str, Any], n: int) -> list[tuple[str, str, str]]:
    first = list(data.items())[:MOST_COLUMNS]
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
