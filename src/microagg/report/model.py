"""What a report says, as plain data: the page shows it, the JSON twin is it.

No original record is in it, ever. Of the original there are statistics of all records, and counts
of bins that hold at least k. The public variant leaves out more: see :mod:`microagg.report.public`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.errors import listed
from microagg.groups import Floats
from microagg.measure.risk import Risk
from microagg.measure.utility import Utility
from microagg.registry import find
from microagg.report.provenance import about_method, call, file_facts, now, repetition
from microagg.report.public import without_what_reveals
from microagg.results import Partition

if TYPE_CHECKING:
    from microagg.measure.pairs import Pair
    from microagg.protect import Release

__all__ = ["release_model"]

Model = dict[str, Any]

# Other k are tried beside the one chosen while that takes seconds.
_RECORDS_FOR_ALTERNATIVES = 5_000
_BINS = 24
_FEWEST = 3  # records in a bin or a group shown, even where k is smaller
_MIDDLE = (0.01, 0.99)


def release_model(
    release: Release,
    *,
    measured: tuple[Utility, Risk],
    public: bool,
    source: str | Path | None,
    command: list[str] | None,
) -> Model:
    """Gather the evidence about a protected table; see :meth:`Release.measure`."""
    both = release._pair
    utility, risk = measured
    written = release._written[-1] if release._written else None
    model = {
        "kind": "release",
        "public": public,
        "created": now(),
        "records": len(both),
        "k": release.k,
        "aggregate": release.aggregate,
        "per_column": len(release.parts) > 1,
        "columns": {
            "protected": _texts(release.columns),
            "untouched": _texts(release.untouched),
            "identifying": _texts(release.identifying),
        },
        "parts": [
            {"columns": _texts(names), **_about_part(part, len(names)), **part.as_dict()}
            for names, part in release.parts
        ],
        "verified": written and {**written.verification.as_dict(), "sha256": written.sha256},
        "files": {
            "input": file_facts(source),
            "output": written and {"path": str(written.path), "sha256": written.sha256},
        },
        "utility": _utility(utility, release.k),
        "risk": risk.as_dict(),
        "pictures": {
            "distributions": {
                str(name): _distribution(x, y, release.k)
                for name, x, y in zip(both.names, both.original.T, both.protected.T, strict=True)
            },
            "correlations": _correlations(utility),
            "class_sizes": _class_sizes(risk),
        },
        "alternatives": _alternatives(release, both),
        "cautions": _cautions(release, risk, public),
        "repeat": repetition(command, call("protect", dict(release.settings))),
    }
    return without_what_reveals(model) if public else model


def _texts(names: Sequence[Any]) -> list[str]:
    return [str(name) for name in names]


def _about_part(part: Partition, n_columns: int) -> Model:
    """The method, and what is proved for so many columns."""
    used = find(part.method)
    return {**about_method(used.name), "guarantee": used.guarantee_for(n_columns)}


def _utility(utility: Utility, k: int) -> Model:
    """All measures of loss; of the user's analyses, no group of fewer than k records.

    Nor one of two, whatever k is: a mean and its interval can be solved for both values.
    """
    k = max(k, _FEWEST)
    found = utility.as_dict()
    shown = []
    for analysis in utility.analyses:
        large = [estimate for estimate in analysis.estimates if estimate.records >= k]
        shown.append(
            {
                "formula": analysis.formula,
                "kind": analysis.kind,
                "overlap": float(np.mean([e.overlap for e in large])) if large else None,
                "worst": min((e.overlap for e in large), default=None),
                "left_out": analysis.left_out + len(analysis.estimates) - len(large),
                "estimates": [dict(vars(estimate)) for estimate in large],
            }
        )
    return {**found, "analyses": shown}


def _distribution(x: Floats, y: Floats, k: int) -> Model:
    """Counts of both columns in common bins of at least k original and protected records.

    Bins are cut by protected values alone, between their quantiles 1 and 99 %; the outermost
    are open, so that no end of the original shows.
    """
    k = max(k, _FEWEST)
    low, high = np.quantile(y, _MIDDLE)
    cuts = np.unique(np.linspace(low, high, _BINS + 1)) if high > low else np.array([low])
    before, after = (
        np.bincount(np.searchsorted(cuts, v, "right"), minlength=len(cuts) + 1) for v in (x, y)
    )
    keep, counts = [], [[0, 0]]
    for cut, a, b in zip([*cuts, None], before.tolist(), after.tolist(), strict=True):
        counts[-1][0] += a
        counts[-1][1] += b
        if cut is not None and min(counts[-1]) >= k:
            keep.append(float(cut))
            counts.append([0, 0])
    while len(counts) > 1 and min(counts[-1]) < k:  # what is left goes to the bin before
        a, b = counts.pop()
        counts[-1][0] += a
        counts[-1][1] += b
        keep.pop()
    return {
        "cuts": keep,
        "before": [a for a, _ in counts],
        "after": [b for _, b in counts],
    }


def _correlations(utility: Utility) -> Model:
    before, after = utility.correlation_matrices
    return {
        "before": before.tolist(),
        "after": after.tolist(),
        "difference": (after - before).tolist(),
    }


def _class_sizes(risk: Risk) -> list[Model]:
    sizes, counts = np.unique(risk.class_sizes, return_counts=True)
    return [
        {"size": int(size), "classes": int(count)}
        for size, count in zip(sizes, counts, strict=True)
    ]


def _alternatives(release: Release, both: Pair) -> Model | None:
    """The same method with other k, for the risk–utility map; None for tables that take long."""
    n, k = len(both), release.k
    if n > _RECORDS_FOR_ALTERNATIVES or len(release.parts) > 1:
        return None
    sizes = sorted({size for size in (2, k // 2, k, 2 * k, 4 * k) if 2 <= size <= n})
    if len(sizes) < 2:
        return None
    part = release.partition
    known = {option.name for option in find(part.method).options} - {"random_state"}
    chosen = {name: value for name, value in part.options.items() if name in known}
    if "refine" in part.options:
        chosen["refine"] = part.options["refine"]
    # A map need not take as long for every k as the release did.
    chosen.pop("time_limit", None)
    chosen |= {name: "balanced" for name in ("effort", "refine") if chosen.get(name) == "best"}
    from microagg.compare import compare

    return compare(
        both.original,
        sizes,
        part.method,
        scale=part.scale,
        random_state=release.settings["random_state"],
        options={part.method: chosen},
        budget=None,
    ).as_dict()


def _cautions(release: Release, risk: Risk, public: bool) -> list[str]:
    """What there is to weigh although the promise holds; in public, how many groups is not said."""
    found = []
    if release.identifying:
        found.append(
            f"All or nearly all values differ in {listed(release.identifying)}, left as in the "
            "original: such a column points to single records whatever is done to the others."
        )
    if len(release.parts) > 1:
        found.append(
            "Each column was protected by itself: combinations of columns need not be shared by k "
            "records, so this is not k-anonymity of the records."
        )
    if release.k == 1:
        found.append("k = 1 protects nothing: every record may form a group of its own.")
    for name, column in risk.diversity.items():
        if column.homogeneous:
            where = f"{len(column.homogeneous)} groups with {column.records_disclosed} records"
            found.append(
                f"In {'some groups' if public else where} all agree in the confidential column "
                f"{listed([name])}: their value is disclosed."
            )
    for name, rule in risk.dominance.items():
        if not rule.holds:
            found.append(
                f"In {'some' if public else rule.classes_over} groups one record makes up more than "
                f"{rule.percent:g} % of the total of {listed([name])}."
            )
    if not risk.diversity and release.untouched:
        found.append(
            "No confidential column was named. If all members of a group agree in an untouched column, "
            "its value is disclosed for all of them."
        )
    return found
