"""The public report, which may be published with the released file.

It is made from the released table and the plan alone, except for a few figures given as bands (:func:`band`),
and for the rounded covariances within groups, where no unit makes much of them
(:mod:`microagg.measure.within_groups`). Anyone who has the file could make all the rest. A new
measure stays private until it is added here. The plan is shown without the seed, which would let an attacker
repeat the search, and without the limits that the board set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from microagg.base.formatting import few_digits, names, narrowed_down, plural
from microagg.base.typing import Labels
from microagg.evidence import Evidence
from microagg.evidence.cautions import cautions_of
from microagg.evidence.measured import History, Signs
from microagg.evidence.over_time import history_cautions, history_sentences, shares_of_counts
from microagg.evidence.sentences import (
    Caution,
    promise_words,
    release_words,
    required_words,
)
from microagg.kernels.labels import combine, group_sizes
from microagg.measure.agreement import agreement_of
from microagg.measure.before_and_after import Summary, column
from microagg.measure.classes import ClassSizes, share_below
from microagg.measure.disclosure_signs import identifiers, unmixed_units
from microagg.measure.known_columns import Known, as_in_file, known_columns
from microagg.measure.linked_rows import linked_rows, linking_columns
from microagg.measure.within_groups import WithinGroups
from microagg.plan.block import Block
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


@dataclass(frozen=True)
class Bands:
    """The only figures that come from originals: each one of a few ranges."""

    information_loss: str
    record_linkage_alone: str
    record_linkage_with_known: str
    unique_before: str
    tables_one: str
    """How far tables of one released column moved, of how far they move in another sample."""
    tables_two: str | None = None
    """None: there are too few columns."""
    tables_three: str | None = None
    over_time: Mapping[str, str] | None = None
    """Of a release with a ledger: units that wait or are withheld, and groups that keep old values."""

    @classmethod
    def of(cls, evidence: Evidence) -> Bands:
        """Put the figures of the evidence into bands."""
        fidelity = evidence.fidelity
        times = [
            band_of_times(fidelity.multiple(order)) if order <= fidelity.order else None
            for order in (1, 2, 3)
        ]
        return cls(
            information_loss=band(evidence.utility.information_loss),
            record_linkage_alone=band(100 * evidence.alone.record_linkage),
            record_linkage_with_known=band(100 * evidence.with_known.record_linkage),
            unique_before=band(100 * evidence.alone.unique_before),
            tables_one=times[0] or "",
            tables_two=times[1],
            tables_three=times[2],
            over_time=evidence.history
            and {name: band(share) for name, share in shares_of_counts(evidence.history).items()},
        )


def _variable(frame: Frame, name: Any, plan: Plan) -> Variable:
    """Read a released column; the kind of the original need not fit the means."""
    setting, codes = plan.columns.get(name, Column()), plan.missing.codes.get(name, ())
    if setting.kind in CATEGORIES and setting.kind != "ordinal":
        setting = Column(kind="nominal")
    elif setting.kind != "ordinal":
        setting = Column(kind=None if setting.kind in (None, "date") else "number")
    return variable_of(frame, name, setting, codes)


def public_model(
    released: Frame,
    plan: Plan,
    roles: Roles,
    bands: Bands,
    file: tuple[str, str] | None,
    text: Frame | None = None,
    within: Sequence[WithinGroups] = (),
    history: History | None = None,
) -> dict[str, Any]:
    """Return the content of the public report.

    Parameters
    ----------
    released, plan, roles : the released table, the plan, and the role of each column
    bands : loss, linkage and uniqueness as ranges
    file : name and hash of the released file; None: none was written
    text : columns that are released as they stand in a CSV file, where 1.5 and 1.50 are two values
    within : the covariances within groups that may be told
    history : what was counted over all releases of a ledger; None: there is none
    """
    protected = [_variable(released, name, plan) for name in roles.protected]
    categories = any(variable.is_category for variable in protected)
    alone = _classes_by(released, roles.protected)
    shared = _distinguished(released, plan.also_shared(), text)
    known = _distinguished(released, roles.known, text)
    promised = combine([alone, *(column.codes for column in shared.values())])
    codes_of_all = (column.codes for column in {**shared, **known}.values())
    with_known = combine([alone, *codes_of_all])
    units = None
    if roles.unit is not None and released.has(roles.unit):
        units = codes_as_written(released, roles.unit, from_csv=False)
    signs = _signs_of_the_file(released, plan, roles, known, text, promised, units)
    if not plan.is_swapped:
        agreements = {name: agreement_of(released, name, with_known) for name in plan.confidential}
        signs = replace(signs, agreements=agreements)
    lossless, summaries = dict.fromkeys(roles.protected, 0.0), [*map(Summary, roles.protected)]
    cautions = cautions_of(plan, roles, signs, lossless, summaries)
    cautions = [caution for caution in cautions if caution.severity == "amber"]
    who = plan.words_of_unit(roles.unit)
    if history is not None and list(history_cautions(history, who)):
        words = f"Over several files fewer than {plan.k} {who} can be told apart."
        cautions.append(Caution("amber", (), words))
    if plan.is_swapped:  # rows of a group are not alike, and which rows are one is not in the file
        verdict, judged = "grey", f"{_NOT_SEEN} {_NOT_JUDGED}"
        counted = _counted_values(released, plan)
    else:
        verdict, judged = _verdict(plan, roles, alone, promised, with_known, units), _NOT_JUDGED
        counted = _counted(plan, roles, alone, with_known, units)
    verdict = "amber" if cautions else verdict
    if verdict == "green" and _needs_originals(released, plan, roles):
        verdict = "grey"
    return {
        "kind": "public",
        "public": True,
        "verdict": verdict,
        "judged": judged if verdict == "grey" else "",
        "cautions": [caution.as_dict() for caution in cautions],
        "promise": promise_words(plan),
        "counted": counted,
        "requirements": [words for block in plan.blocks for words in required_words(block.require)],
        "over_time": []
        if history is None or history.smallest < history.k
        else history_sentences(history._replace(smallest=history.k), who),
        "records": len(released),
        "k": plan.k,
        "unit": None if roles.unit is None else str(roles.unit),
        "columns": {
            "protected": [str(name) for name in roles.protected],
            "confidential": [str(name) for name in roles.confidential],
            "known": [str(name) for name in roles.known],
            "renumbered": [str(name) for name in roles.renumbered],
        },
        "methods": [_method(block, categories) for block in plan.blocks],
        "plan": _public_plan(plan, released)
        if all(isinstance(n, str) for n in roles.named)
        else None,
        "bands": asdict(bands),
        "within_groups": [
            {"columns": [str(name) for name in one.columns], "relative": one.relative.tolist()}
            for one in within
        ],
        "classes": None
        if plan.is_swapped
        else {
            "alone": _classes(alone, plan.k),
            "with_known": _classes(with_known, plan.k),
        },
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


def _method(block: Block, categories: bool) -> dict[str, Any]:
    method = find(block.method)
    return {
        "columns": names(block.columns or (), 12),
        "method": block.method,
        "paper": method.paper,
        "summary": method.summary,
        "k": block.k,
        "per_column": block.per_column,
        "released": block.released,
        "swapped": block.is_swapped,
        "words": release_words(block, categories),
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


def _signs_of_the_file(
    released: Frame,
    plan: Plan,
    roles: Roles,
    known: Mapping[Any, Known],
    text: Frame | None,
    promised: Labels,
    units: Labels | None,
) -> Signs:
    """Return what calls for a caution, as far as the file shows it."""
    extra = {name: column for name, column in known.items() if name not in plan.shared_strata}
    signs = Signs(
        records=len(released),
        looked_at=len(released),
        row_labels=released.distinct_row_labels(),
        identifiers=identifiers(extra),
    )
    if plan.is_swapped:
        return signs
    others = _distinguished(released, [*roles.renumbered, *roles.confidential], text)
    links = linking_columns({**others, **extra}, [*roles.renumbered, *plan.units])
    renumbered = {name: others[name] for name in roles.renumbered}
    return replace(
        signs,
        linked_rows=linked_rows(promised, known, links, plan.k, units),
        unmixed=unmixed_units(_classes_of_records(released, plan), {**known, **renumbered}),
    )


def _classes_of_records(released: Frame, plan: Plan) -> list[tuple[Labels, int]]:
    """Classes by the released values of each block whose k counts records, and this k."""
    classes = []
    for block in plan.blocks:
        if plan.unit_of(block).column is not None:
            continue
        names_of_block = list(block.columns or ())
        for part in [[name] for name in names_of_block] if block.per_column else [names_of_block]:
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


def _verdict(
    plan: Plan,
    roles: Roles,
    alone: Labels,
    promised: Labels,
    with_known: Labels,
    units: Labels | None,
) -> str:
    """Green only if every k of the plan holds for all protected columns together, and with known ones.

    Where the file does not tell whose record it is, the promise is all that is known of units: then known
    columns must not split what it is about.
    """
    k = max(block.k or 1 for block in plan.blocks)
    if k == 1 or share_below(alone, k, units) or share_below(with_known, k, units):
        return "amber"
    hidden = roles.unit is not None and units is None
    several = len(plan.promises()) > 1  # then nothing is promised of all columns together
    return "amber" if hidden and (several or with_known.max() > promised.max()) else "green"


def _counted(
    plan: Plan, roles: Roles, alone: Labels, with_known: Labels, units: Labels | None
) -> str:
    """Say what was counted in the released table: in units, if it tells them, else in records."""
    k, words = plan.k, plan.words_of_unit(None if units is None else roles.unit)

    sizes, all_sizes = (ClassSizes.of_labels(labels, units) for labels in (alone, with_known))
    counted = words.counted(sizes.fewest_units)
    said = f"each combination of all protected values is shared by {counted} or more"
    if sizes.fewest_units < k:
        said = f"combinations of columns need not be: some are shared by {counted} only"
    if not roles.known:
        return said
    rare = share_below(with_known, k, units)
    together = f"{said}; together with the unprotected columns,"
    hidden = roles.unit is not None and units is None
    tail = (
        f"; of how many {plan.words_of_unit(roles.unit)} the file does not tell" if hidden else ""
    )
    if not rare:
        return f"{together} by {words.counted(all_sizes.fewest_units)} or more{tail}"
    return f"{together} {narrowed_down(rare, k, words)}{tail}"


def _counted_values(released: Frame, plan: Plan) -> str:
    """Say how many records have the rarest value of a swapped column, within its stratum."""
    fewest = min(
        int(group_sizes(_classes_by(released, promise.columns or ())).min())
        for promise in plan.promises()
    )
    return f"counted in the file, the rarest value is that of {plural(fewest, 'record')}"


def _classes(labels: Labels, k: int) -> dict[str, Any]:
    """Count the sets of records that agree in the released table."""
    sizes = ClassSizes.of_labels(labels)
    figures: dict[str, Any] = few_digits(
        {
            "smallest_class": sizes.smallest,
            "classes": sizes.n_classes,
            "unique": sizes.unique / len(labels),
            "below_k": sizes.records_below(k) / len(labels),
        },
        _DIGITS,
    )
    return figures
