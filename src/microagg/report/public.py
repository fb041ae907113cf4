"""The public report, which may be published with the released file.

It is made from the released table and the plan alone, except for a few figures given as bands (:func:`band`),
and for the rounded covariances within groups, where no unit makes much of them
(:mod:`microagg.measure.utility`). Anyone who has the file could make all the rest. A new
measure stays private until it is added here. The plan is shown without the seed, which would let an attacker
repeat the search, and without the limits that the board set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from microagg.base.formatting import few_digits, names, narrowed_down, plural
from microagg.base.typing import Labels
from microagg.evidence import Evidence
from microagg.evidence.cautions import cautions_of
from microagg.evidence.measured import History, Signs
from microagg.evidence.over_time import history_cautions, history_sentences
from microagg.evidence.sentences import Caution, promise_words, release_words, required_words
from microagg.kernels.labels import combine, group_sizes
from microagg.measure.before_and_after import column
from microagg.measure.classes import ClassSizes
from microagg.measure.disclosure_signs import identifiers, unmixed_units
from microagg.measure.known_columns import Known, as_in_file, known_columns
from microagg.measure.linked_rows import linked_rows, linking_columns
from microagg.measure.risk import agreement_of
from microagg.measure.utility import WithinGroups
from microagg.plan.column import CATEGORIES, Column
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.sections import Accept, Roles
from microagg.report.model import versions
from microagg.tables.frame import Frame, codes_as_written
from microagg.tables.variable import Variable, variable_of

_DIGITS = 3
_NOT_JUDGED = (
    "The file alone does not show how much was lost, and whether an unprotected column gives a protected one "
    "away."
)
_NOT_SEEN = "Groups, and whose value is whose, cannot be seen in the file."


# Bands are the only form in which loss, linkage and uniqueness go into public output. Digits of a statistic
# of all records can be solved for the one record that somebody does not know; a band changes only if its edge
# lies between what two values of that record would give.
EDGES = (1, 2, 5, 10, 20, 50)  # percent
TIMES = {1.1: "as another sample", 2.0: "up to twice"}
"""Bands of multiples: how far tables moved, of how far they move in another sample."""


def band(percent: float) -> str:
    """Name the band that a percentage lies in.

    >>> band(0.3), band(1.0), band(16.9), band(50)
    ('under 1 %', 'under 2 %', 'under 20 %', '50 % or more')
    """
    if not percent >= 0:
        raise ValueError(f"a percentage is 0 or more; got {percent}")
    for edge in EDGES:
        if percent < edge:
            return f"under {edge} %"
    return f"{EDGES[-1]} % or more"


def band_of_times(multiple: float) -> str:
    """Name the band of a multiple of what another sample gives.

    >>> band_of_times(0.0), band_of_times(1.3), band_of_times(float("inf"))
    ('as another sample', 'up to twice', 'more')
    """
    for edge, words in TIMES.items():
        if multiple < edge:
            return words
    return "more"


def bands_of(evidence: Evidence) -> dict[str, Any]:
    """Put figures of the evidence into bands: the only ones that come from originals.

    ``tables_two`` and ``tables_three`` are None where columns are too few; ``over_time`` is of a release
    with a ledger: units that wait or are withheld, and groups that changed and keep old values.
    """
    fidelity, alone, history = evidence.fidelity, evidence.alone, evidence.history
    tables = {
        f"tables_{words}": band_of_times(fidelity.multiple(order))
        if order <= fidelity.order
        else None
        for order, words in enumerate(("one", "two", "three"), 1)
    }
    over_time = None
    if history is not None:
        counts = history.counts
        withheld = sum(count for name, count in counts.items() if name.startswith("withheld"))
        units, groups = max(counts.get("units", 0), 1), max(counts.get("groups", 0), 1)
        over_time = {
            "waiting": band(100 * counts.get("waiting", 0) / units),
            "withheld": band(100 * withheld / units),
            "uncarried": band(100 * counts.get("groups_kept", 0) / groups),
        }
    return {
        "information_loss": band(evidence.utility.information_loss),
        "record_linkage_alone": band(100 * alone.record_linkage),
        "record_linkage_with_known": band(100 * evidence.with_known.record_linkage),
        "unique_before": band(100 * alone.unique_before),
        **tables,
        "over_time": over_time,
    }


def _variable(frame: Frame, name: Any, plan: Plan) -> Variable:
    """Read a released column; the kind of the original need not fit the means."""
    setting, codes = plan.columns.get(name, Column()), plan.missing.codes.get(name, ())
    if setting.kind != "ordinal":
        kind = None if setting.kind in (None, "date") else "number"
        setting = Column(kind="nominal" if setting.kind in CATEGORIES else kind)
    return variable_of(frame, name, setting, codes)


def public_model(
    released: Frame,
    plan: Plan,
    roles: Roles,
    bands: Mapping[str, Any],
    file: tuple[str, str] | None,
    text: Frame | None = None,
    within: Sequence[WithinGroups] = (),
    history: History | None = None,
) -> dict[str, Any]:
    """Return the content of the public report.

    Parameters
    ----------
    released, plan, roles : the released table, the plan, and the role of each column
    bands : of :func:`bands_of`
    file : name and hash of the released file; None: none was written
    text : columns that are released as they stand in a CSV file, where 1.5 and 1.50 are two values
    within : the covariances within groups that may be told
    history : what was counted over all releases of a ledger; None: there is none
    """
    protected = [_variable(released, name, plan) for name in roles.protected]
    categories = any(variable.is_category for variable in protected)
    signs, (promised, alone, known) = _seen_in_file(released, plan, roles, text)
    cautions = [c for c in cautions_of(plan, roles, signs) if c.severity == "amber"]
    who = plan.words_of_unit(roles.unit)
    if list(history_cautions(history, who)):
        words = f"Over several files fewer than {plan.k} {who} can be told apart."
        cautions.append(Caution("amber", (), words))
    if plan.is_swapped:  # rows of a group are not alike, and which rows are one is not in the file
        verdict, judged, classes = "grey", f"{_NOT_SEEN} {_NOT_JUDGED}", None
        promises = [_classes_by(released, promise.columns or ()) for promise in plan.promises()]
        fewest = min(int(group_sizes(labels).min()) for labels in promises)  # within their strata
        counted = f"counted in the file, the rarest value is that of {plural(fewest, 'record')}"
    else:
        hidden = roles.unit is not None and not released.has(roles.unit)
        verdict, judged = _verdict(plan, alone, known, promised.n_classes, hidden), _NOT_JUDGED
        counted = _counted(plan, roles, alone, known, hidden)
        classes = {"alone": _classes(alone, plan.k), "with_known": _classes(known, plan.k)}
    verdict = "amber" if cautions else verdict
    if verdict == "green" and _needs_originals(released, plan, roles):
        verdict = "grey"
    over_time: list[str] = []
    if history is not None and history.smallest >= history.k:
        over_time = history_sentences(history._replace(smallest=history.k), who)
    is_text = all(isinstance(name, str) for name in roles.named)
    return {
        "kind": "public",
        "public": True,
        "verdict": verdict,
        "judged": judged if verdict == "grey" else "",
        "cautions": [caution.as_dict() for caution in cautions],
        "promise": promise_words(plan),
        "counted": counted,
        "requirements": [words for block in plan.blocks for words in required_words(block.require)],
        "over_time": over_time,
        "records": len(released),
        "k": plan.k,
        "unit": None if roles.unit is None else str(roles.unit),
        "columns": {
            role: [str(name) for name in getattr(roles, role)]
            for role in ("protected", "confidential", "known", "renumbered")
        },
        "methods": [
            {
                "columns": names(block.columns or (), 12),
                "method": block.method,
                "paper": find(block.method).paper,
                "summary": find(block.method).summary,
                "k": block.k,
                "per_column": block.per_column,
                "released": block.released,
                "swapped": block.is_swapped,
                "words": release_words(block, categories),
            }
            for block in plan.blocks
        ],
        "plan": _public_plan(plan, released) if is_text else None,
        "bands": bands,
        "within_groups": [
            {"columns": [str(name) for name in one.columns], "relative": one.relative.tolist()}
            for one in within
        ],
        "classes": classes,
        "pictures": {
            "distributions": {
                str(v.name): column(v, [v.values], max(plan.k, 3), released) for v in protected
            },
            "categories": categories,
        },
        "files": {
            "output": None if file is None else {"path": Path(file[0]).name, "sha256": file[1]}
        },
        "versions": versions(),
    }


def _public_plan(plan: Plan, released: Frame) -> dict[str, Any]:
    """Return the plan without what would help an attacker, and without what only the board reads.

    Levels that no record was released with would tell that somebody had them.
    """
    columns = {
        name: replace(column, levels=_released_levels(column, released, name))
        for name, column in plan.columns.items()
    }
    public = replace(
        plan,
        columns=columns,
        # Thresholds of dominance rules would help an attacker.
        blocks=tuple(
            replace(block, require=replace(block.require, p_percent={}, n_k={}))
            for block in plan.blocks
        ),
        seed=0,
        accept=Accept(),
        reasons={},
        notes={},
    )
    return public.as_dict()


def _released_levels(column: Column, released: Frame, name: Any) -> tuple[Any, ...] | None:
    """Return the levels of a column that the release has; None if these are fewer than two."""
    if column.levels is None or not released.has(name):
        return column.levels
    # As texts and as numbers: 1 in a plan is 1.0 in a column of doubles.
    values = set(released.arrow_column(name).unique().to_pylist())
    texts = {str(value) for value in values}
    levels = tuple(level for level in column.levels if level in values or str(level) in texts)
    return levels if len(levels) > 1 else None


def _classes_by(released: Frame, columns: Iterable[Any]) -> Labels:
    """Return the class of each record by its values in some columns."""
    return combine([column.codes for column in known_columns(released, columns).values()])


def _distinguished(released: Frame, wanted: Sequence[Any], text: Frame | None) -> dict[Any, Known]:
    """Return the values of columns, distinguished as anyone who has the released file can."""
    columns = known_columns(released, wanted)
    written = {} if text is None else known_columns(text, [n for n in columns if text.has(n)])
    return columns | {name: as_in_file(columns[name], column) for name, column in written.items()}


def _seen_in_file(
    released: Frame, plan: Plan, roles: Roles, text: Frame | None
) -> tuple[Signs, list[ClassSizes]]:
    """Return what calls for a caution, as far as the file shows it, and the sizes of three kinds of classes.

    Classes are by what the promise is about, by the protected columns alone, and with the known ones.
    """
    alone = _classes_by(released, roles.protected)
    shared = _distinguished(released, plan.also_shared(), text)
    known = _distinguished(released, roles.known, text)
    promised = combine([alone, *(column.codes for column in shared.values())])
    with_known = combine([alone, *(column.codes for column in {**shared, **known}.values())])
    units = None
    if roles.unit is not None and released.has(roles.unit):
        units = codes_as_written(released, roles.unit, from_csv=False)
    extra = {name: column for name, column in known.items() if name not in plan.shared_strata}
    n, row_labels = len(released), released.distinct_row_labels()
    signs = Signs(records=n, looked_at=n, row_labels=row_labels, identifiers=identifiers(extra))
    if not plan.is_swapped:
        others = _distinguished(released, [*roles.renumbered, *roles.confidential], text)
        links = linking_columns({**others, **extra}, [*roles.renumbered, *plan.units])
        renumbered = {name: others[name] for name in roles.renumbered}
        signs = replace(
            signs,
            linked_rows=linked_rows(promised, known, links, plan.k, units),
            unmixed=unmixed_units(_classes_of_records(released, plan), {**known, **renumbered}),
            agreements={n: agreement_of(released, n, with_known) for n in plan.confidential},
        )
    classes = (promised, alone, with_known)
    return signs, [ClassSizes.of_labels(labels, units) for labels in classes]


def _classes_of_records(released: Frame, plan: Plan) -> list[tuple[Labels, int]]:
    """Classes by the released values of each block whose k counts records, and this k."""
    classes = []
    for block in plan.blocks:
        if plan.unit_of(block).column is not None:
            continue
        together = block.columns or ()
        for part in [(name,) for name in together] if block.per_column else [together]:
            columns = [*part, *plan.also_shared(block)]
            classes.append((_classes_by(released, columns), block.k or 1))
    return classes


def _needs_originals(released: Frame, plan: Plan, roles: Roles) -> bool:
    """Return whether the board's verdict needs more than the file shows.

    Only the original values show whether an unprotected column gives a protected one away, and whether
    limits of loss and linkage hold. A file without its unit column does not show how many units its sets of
    rows have, and nothing of what its order shows.
    """
    if plan.keep_order or plan.accept != Accept():
        return True
    if roles.unit is not None and not released.has(roles.unit) and roles.renumbered:
        return True
    left = [name for name in roles.released if name not in plan.shared_strata]
    return any(column.distinct > 1 for column in known_columns(released, left).values())


def _verdict(plan: Plan, alone: ClassSizes, known: ClassSizes, promised: int, hidden: bool) -> str:
    """Green only if every k of the plan holds for all protected columns together, and with known ones.

    Where units are ``hidden``, as the file does not tell whose record it is, the promise is all that is known
    of them: then known columns must not split the ``promised`` number of classes that it is about.
    """
    k = max(block.k or 1 for block in plan.blocks)
    if k == 1 or alone.records_below(k) or known.records_below(k):
        return "amber"
    several = len(plan.promises()) > 1  # then nothing is promised of all columns together
    return "amber" if hidden and (several or known.n_classes > promised) else "green"


def _counted(plan: Plan, roles: Roles, alone: ClassSizes, known: ClassSizes, hidden: bool) -> str:
    """Say what was counted in the released table: in units, unless it hides them, else in records."""
    k, words = plan.k, plan.words_of_unit(None if hidden else roles.unit)
    fewest = words.counted(alone.fewest_units)
    said = f"each combination of all protected values is shared by {fewest} or more"
    if alone.fewest_units < k:
        said = f"combinations of columns need not be: some are shared by {fewest} only"
    if not roles.known:
        return said
    together = f"by {words.counted(known.fewest_units)} or more"
    if rare := known.records_below(k):
        together = narrowed_down(rare / known.n_records, k, words)
    if hidden:
        together += f"; of how many {plan.words_of_unit(roles.unit)} the file does not tell"
    return f"{said}; together with the unprotected columns, {together}"


def _classes(sizes: ClassSizes, k: int) -> dict[str, Any]:
    """Count the sets of records that agree in the released table."""
    n = sizes.n_records
    figures = {
        "smallest_class": sizes.smallest,
        "classes": sizes.n_classes,
        "unique": sizes.unique / n,
        "below_k": ClassSizes.of(sizes.records).records_below(k) / n,  # units aside
    }
    return {name: few_digits(figure, _DIGITS) for name, figure in figures.items()}
