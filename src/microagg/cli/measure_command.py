"""The command measure."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.formatting import names, number, percent, plural, share, table_size
from microagg.base.progress import Clock
from microagg.cli.lines import say_caution, say_diversity
from microagg.cli.show import Speaker
from microagg.evidence.cautions import about_agreement, about_known
from microagg.evidence.measured import Signs
from microagg.evidence.sentences import (
    attacker_words,
    cases_words,
    fidelity_words,
    loss_words,
    thresholds_of,
)
from microagg.formats.addresses import Place
from microagg.formats.files import read_file
from microagg.formats.layouts import CsvFormat
from microagg.formats.remote import local_copies
from microagg.measure.both_tables import Pair, align, pair
from microagg.measure.fidelity import fidelity
from microagg.measure.known_columns import Known, KnownRisk, enough, known_columns, known_risk, rank
from microagg.measure.linkage import check_sample, sample_for
from microagg.measure.risk import Risk, risk_of
from microagg.measure.utility import utility_of
from microagg.plan.analysis_formulas import computed_with
from microagg.plan.forms import split_names
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles
from microagg.tables.frame import Frame
from microagg.tables.frame_libraries import plain_arrow
from microagg.tables.variable import QUANTITIES

_ROWS_OF_OTHERS = 95.0  # percent: means of any groups lose at most 100, rows of other people more


def measure_files(
    speaker: Speaker,
    original: Place,
    protected: Place,
    plan: Plan,
    csv: CsvFormat,
    columns: list[str] | None,
    id_: str | None,
    confidential: list[str] | None,
    sample: int | None,
) -> bool:
    """Measure a protected file against its original and say so; return whether all holds."""
    clock, k = Clock(), plan.blocks[0].k
    named, secret = split_names(columns), split_names(confidential) or []
    check_sample(sample)
    with clock.time("read"), local_copies(original, protected) as files:
        # These are read as numbers even if they look like codes.
        analysed = [str(name) for name in map(computed_with, plan.analyses) if name is not None]
        numbers = [
            name
            for name in (*(named or []), *analysed)
            if name not in plan.columns or plan.columns[name].kind in QUANTITIES
        ]
        before, after = (read_file(path, numbers, csv).table for path in files)
    for path, table in ((original, before), (protected, after)):
        speaker.say("read", f"{path}: {table_size(table.num_rows, table.num_columns)}")
    weight = None if plan.weight is None else str(plan.weight.column)
    with clock.time("match"):
        if id_ is not None:
            after = align(before, after, id_)
        aside = [*secret, *(name for name in (id_, weight) if name is not None)]
        both = pair(before, after, named, aside, kinds=plan.columns, weights=weight)
        if named is None:  # those that differ
            both = _changed(both)
        known_names = _unchanged(before, after, [*both.names, *aside])
        known = known_columns(Frame(after), known_names)
    speaker.say("compared", names(both.names, 40))
    if known:
        speaker.say(
            "known", f"{names(known_names, 40)}: the same in both files, so an attacker knows them"
        )
    with clock.time("loss"):
        utility = utility_of(both, plan.analyses)
        lost = utility.as_dict()
    speaker.say("lost", loss_words(utility))
    for analysis in utility.analyses:
        speaker.say("", analysis.words)
    unmeasured = [name for name, varies in zip(both.names, both.varies, strict=True) if not varies]
    if unmeasured:
        speaker.say("", f"{names(unmeasured)}: constant in the original, so its loss has no unit")
    if id_ is None:
        _say_order(speaker, utility.information_loss)
    with clock.time("fidelity"):
        shared = [
            n for n in before.column_names if n in after.column_names and n not in (id_, weight)
        ]
        kinds = {name: column for name, column in plan.columns.items() if name in shared}
        usable = fidelity(before, after, shared, kinds=kinds, weight=weight)
    speaker.say("usable", fidelity_words(usable))
    with clock.time("risk"), speaker.progress("linking") as bar:
        linked = sample or sample_for(len(both))
        alone, n = risk_of(both, k, secret, sample=linked), linked or len(both)
        alone = alone.linked(bar and (lambda done: bar(done, 2 * n)))
        with_known = known_risk(
            both,
            known,
            k or alone.smallest_class,
            sample=linked,
            progress=bar and (lambda done: bar(n + done, 2 * n)),
        )
    _say_risk(speaker, both, known, alone, with_known, plan)
    limits = thresholds_of(
        plan.accept, utility.information_loss, with_known.linkage, utility.analyses, usable
    )
    gates = [(f"{limit.what} {limit.found} ({limit.limit})", limit.passed) for limit in limits]
    if alone.below_k is not None:
        holds = not alone.below_k
        rest = "holds" if holds else f"does not hold for {share(alone.below_k)} of the records"
        gates.insert(0, (f"k {rest}", holds))
    for text, passed in gates:
        speaker.say("target", text, style="bold" if passed else "bold red")
    off = ""
    if usable.correlations is not None:
        off = f"correlations off by {number(usable.correlations)} on average; "
    speaker.say("more", f"{off}all measures with --json")
    speaker.give(
        {
            "original": str(original),
            "protected": str(protected),
            "records": len(both),
            "columns": [str(name) for name in both.names],
            "known": [str(name) for name in known_names],
            "unmeasured": unmeasured,
            "information_loss": utility.information_loss,
            "record_linkage": alone.record_linkage,
            "utility": lost,
            "fidelity": usable.as_dict(),
            "risk": {
                "alone": {**alone.as_dict(), "unique": alone.unique_after},
                "with_known": with_known.as_dict(),
            },
            "targets": [{"words": text, "passed": passed} for text, passed in gates],
            "seconds": clock.seconds,
        }
    )
    return all(passed for _, passed in gates)


def _say_order(speaker: Speaker, loss: float) -> None:
    """Say that rows are compared by their place, and warn if they hardly can belong together."""
    way_out = (
        "`microagg attack ORIGINAL PROTECTED` needs no order. The JSON of the report (--report) has what was "
        "measured before the rows were mixed. --id names a column by which rows are matched."
    )
    if loss > _ROWS_OF_OTHERS:
        speaker.warn(
            f"Rows are compared by their place, and {percent(loss)} is lost: these rows hardly belong to the "
            f"same people. Files that microagg writes are in random order. {way_out}"
        )
    else:
        speaker.say(
            "rows",
            "compared by their place. If PROTECTED is in random order, as microagg writes files unless "
            f"--keep-order is given, no figure here means anything: {way_out}",
        )


def _say_risk(
    speaker: Speaker,
    both: Pair,
    known: dict[Any, Known],
    alone: Risk,
    with_known: KnownRisk,
    plan: Plan,
) -> None:
    """Say what an attacker gains, and every caution about it."""
    speaker.say(
        "hidden",
        f"the rarest combination is shared by {plural(alone.smallest_class, 'record')}; "
        f"{share(alone.unique_after)} of the records are unique, before {share(alone.unique_before)}",
    )
    speaker.say("attacker", attacker_words(alone))
    if known:
        speaker.say(
            "",
            "an attacker who also knows the unchanged columns finds the right record in "
            f"{cases_words(with_known.linkage)}; {share(with_known.unique)} of the records are "
            "then unique",
        )
    say_diversity(speaker, alone)
    signs = Signs(
        records=len(both),
        looked_at=len(both),
        agreements={name: column.agreement for name, column in alone.diversity.items()},
    )
    if with_known.below_k and (k := plan.blocks[0].k) is not None:
        harms, drop = rank(both, known, k), enough(both, known, k)
        signs = replace(signs, below_k=with_known.below_k, harms=harms, enough=drop)
    roles = Roles([], [], [], [], list(known))
    for caution in (*about_known(plan, roles, signs), *about_agreement(plan, roles, signs)):
        say_caution(speaker, caution)


def _changed(both: Pair) -> Pair:
    """Return the columns that differ; all, if none does."""
    same = both.original == both.protected
    same |= np.isnan(both.original) & np.isnan(both.protected)
    moved = ~same.all(axis=0)
    return both.of_columns(np.flatnonzero(moved)) if moved.any() else both


def _unchanged(before: pa.Table, after: pa.Table, aside: list[str]) -> list[str]:
    """Columns that both tables have with the very same values, however each file stores them."""
    unchanged = []
    for name in before.column_names:
        if name in aside or name not in after.column_names:
            continue
        first, second = plain_arrow(before[name]), plain_arrow(after[name])
        if pa.types.is_dictionary(first.type):
            first = first.cast(first.type.value_type)
        # Values that the other type does not have are not the same.
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            if first.equals(second.cast(first.type)):
                unchanged.append(name)
    return unchanged
