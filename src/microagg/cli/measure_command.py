"""The commands measure and verify."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.formatting import UnitWords, names, number, percent, plural, share, table_size
from microagg.cli.lines import (
    analysis_lines,
    dominance_lines,
    say_caution,
    say_diversity,
    say_lines,
)
from microagg.cli.show import Speaker
from microagg.errors import InputError, TableError, shown
from microagg.evidence.cautions import about_agreement, about_dominance, about_known
from microagg.evidence.sentences import attacker_words, cases_words, loss_words
from microagg.formats import FORMATS
from microagg.formats.addresses import Place
from microagg.formats.files import kind_of, read_file
from microagg.formats.layouts import CsvFormat
from microagg.formats.places import at_hand
from microagg.measure.both_tables import Pair, align, pair
from microagg.measure.harmful_columns import enough, rank
from microagg.measure.known_columns import Known, KnownRisk, known_columns, known_risk
from microagg.measure.linkage import check_sample, sample_for
from microagg.measure.risk import Ask, Risk, risk_of
from microagg.measure.utility import utility_of
from microagg.measure.verify import Verification, count_promises, verify_all
from microagg.plan.analysis_formulas import computed_with
from microagg.plan.plan import Plan, Promise
from microagg.plan.sections import Accept
from microagg.protecting.protect import Clock
from microagg.tables.frame import Frame
from microagg.tables.frame_libraries import plain_arrow
from microagg.tables.variable import QUANTITIES


def measure_files(
    speaker: Speaker,
    original: Place,
    protected: Place,
    csv: CsvFormat,
    columns: list[str] | None,
    id_: str | None,
    plan: Plan,
    *,
    confidential: list[str],
    dominance: list[str],
    min_distinct: int | None,
    sample: int | None,
    **settings: Any,
) -> bool:
    """Measure a protected file against its original and say so; return whether all holds."""
    clock, kinds = Clock(), plan.columns
    weight = None if plan.weight is None else str(plan.weight.column)
    check_sample(sample)
    if min_distinct is not None and not confidential:
        raise InputError(
            "--min-distinct is about confidential columns; name them with --confidential."
        )
    numbers = [
        *(columns or ()),
        *dominance,
        *(str(n) for n in map(computed_with, plan.analyses) if n is not None),
    ]
    numbers = [n for n in numbers if n not in kinds or kinds[n].kind in QUANTITIES]
    with clock.time("read"), at_hand(original, protected) as files:
        before, after = (read_file(path, numbers, csv).table for path in files)
    for path, table in ((original, before), (protected, after)):
        speaker.say("read", f"{path}: {table_size(table.num_rows, table.num_columns)}")
    with clock.time("match"):
        aside = list(confidential)
        if id_ is not None:
            after = align(before, after, id_)
            aside.append(id_)
        aside += [weight] if weight is not None else []
        both = pair(before, after, columns, aside, kinds=kinds, weights=weight)
        both = _changed(both, columns is None)
        known_names = _unchanged(before, after, [*both.names, *aside])
        known = known_columns(Frame(after), known_names)
    speaker.say("compared", names(both.names, 40))
    if known:
        speaker.say(
            "known", f"{names(known_names, 40)}: the same in both files, so an attacker knows them"
        )
    unmeasured = [n for n, ok in zip(both.names, both.varies, strict=True) if not ok]
    with clock.time("loss"):
        utility = utility_of(both, plan.analyses)
        lost = utility.as_dict()
    speaker.say("lost", loss_words(utility))
    say_lines(speaker, analysis_lines(utility))
    if unmeasured:
        speaker.say("", f"{names(unmeasured)}: constant in the original, so its loss has no unit")
    ask = Ask(
        k=plan.blocks[0].k,
        confidential=tuple(confidential),
        dominance=tuple(dominance),
        sample=sample or sample_for(len(both)),
        **settings,
    )
    with clock.time("risk"):
        alone, with_known = _link(speaker, both, known, ask)
    _say_risk(speaker, both, known, alone, with_known, ask.k)
    gates = _gates(
        utility.information_loss, with_known.linkage.high, alone, plan.accept, min_distinct
    )
    for words, passed in gates:
        speaker.say("target", words, style="bold" if passed else "bold red")
    speaker.say(
        "more",
        f"IL1s {number(utility.il1s)}; correlations off by {number(utility.correlation_deviation)} on "
        f"average; pMSE {number(utility.propensity.pmse)}; SDID at 5 % {share(alone.sd_disclosure[5.0])}; "
        "all measures with --json",
    )
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
            "risk": {"alone": _alone(alone), "with_known": with_known.as_dict()},
            "targets": [{"words": words, "passed": passed} for words, passed in gates],
            "seconds": clock.seconds,
        }
    )
    return all(passed for _, passed in gates)


def _link(
    speaker: Speaker, both: Pair, known: Mapping[Any, Known], ask: Ask
) -> tuple[Risk, KnownRisk]:
    """Link the records by the protected columns alone, and with the known ones."""
    with speaker.progress("linking") as bar:
        alone, n = risk_of(both, ask), ask.sample or len(both)
        alone.link(None if bar is None else lambda done: bar(done, 2 * n))
        with_known = known_risk(
            both,
            known,
            ask.k or alone.smallest_class,
            sample=ask.sample,
            progress=None if bar is None else lambda done: bar(n + done, 2 * n),
        )
    return alone, with_known


def _say_risk(
    speaker: Speaker,
    both: Pair,
    known: Mapping[Any, Known],
    alone: Risk,
    with_known: KnownRisk,
    k: int | None,
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
    say_lines(speaker, dominance_lines(alone))
    cautions = [
        *about_agreement({n: one.agreement for n, one in alone.diversity.items()}),
        *about_dominance(alone),
    ]
    if with_known.below_k and k is not None:
        harms, drop = rank(both, known, k), enough(both, known, k)
        cautions = [*about_known(k, len(known), with_known.below_k, harms, drop), *cautions]
    for caution in cautions:
        say_caution(speaker, caution)


def _alone(risk: Any) -> dict[str, Any]:
    found = risk.as_dict()
    return {**found, "unique": found["unique_after"]}


def _changed(both: Pair, choose: bool) -> Pair:
    """Without named columns, compare those that differ; if none does, all."""
    same = both.original == both.protected
    same |= np.isnan(both.original) & np.isnan(both.protected)
    moved = ~same.all(axis=0)
    if not choose or not moved.any() or moved.all():
        return both
    return both.of_columns(np.flatnonzero(moved))


def _unchanged(before: pa.Table, after: pa.Table, aside: list[str]) -> list[str]:
    """Columns that both tables have with the very same values, however each file stores them."""
    return [
        name
        for name in before.column_names
        if name not in aside
        and name in after.column_names
        and _same(plain_arrow(before[name]), plain_arrow(after[name]))
    ]


def _same(first: pa.ChunkedArray, second: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(first.type):
        first = first.cast(first.type.value_type)
    try:
        return bool(first.equals(second.cast(first.type)))
    except (
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
    ):  # values that the other type does not have
        return False


def _gates(
    loss: float, linkage: float, alone: Any, accept: Accept, min_distinct: int | None
) -> list[tuple[str, bool]]:
    """Check the promised k and the targets: a sentence for each, and whether it holds."""
    found = []
    if alone.below_k is not None:
        holds = not alone.below_k
        rest = "holds" if holds else f"does not hold for {share(alone.below_k)} of the records"
        found.append((f"k {rest}", holds))
    if accept.loss is not None:
        found.append((f"loss at most {accept.loss:g} %: {percent(loss)}", loss <= accept.loss))
    if accept.linkage is not None:
        words = f"linkage with what is known at most {share(accept.linkage)}: {share(linkage)}"
        found.append((words, linkage <= accept.linkage))
    if min_distinct is not None:
        for name, column in alone.diversity.items():
            words = (
                f"at least {min_distinct} different {names([name])} in a group: {column.distinct_l}"
            )
            found.append((words, column.distinct_l >= min_distinct))
    return found


def verify_file(
    speaker: Speaker,
    file: Place,
    k: int | None,
    columns: list[str] | None,
    unit: str | None,
    promise: Path | None,
    csv: CsvFormat,
) -> bool:
    """Count in a file whether a promise holds, and say so."""
    if promise is None:
        if k is None:
            raise InputError(
                "Which k? Give --k and, if you like, --columns; or --promise with the report's JSON or the "
                "plan."
            )
        plan, found = Plan(), _counted(file, [Promise(k, columns, unit)], csv)
    else:
        if k is not None or columns is not None or unit is not None:
            raise InputError(
                "Give the promise by --promise, or by --k, --columns and --unit; not both."
            )
        plan = _read_promise(promise)
        for unit in plan.units:
            if unit in plan.drop:
                who = plan.words_of_unit(unit)
                speaker.warn(
                    f"The promise is about {who}, which the plan drops from the file: only records can be "
                    "counted in it."
                )
        found = _promised(file, plan, csv)
    for one in found:
        _say_count(speaker, file, one, plan.words_of_unit(one.unit))
    least = min(found, key=lambda one: (one.holds, one.smallest))
    speaker.give(
        {
            "file": str(file),
            **least.as_dict(),
            "holds": all(one.holds for one in found),
            "parts": [one.as_dict() for one in found],
        }
    )
    return all(one.holds for one in found)


def _read_promise(path: Path) -> Plan:
    """Read the plan from a TOML file, or from the JSON of a report."""
    if path.suffix.lower() != ".json":
        return Plan.from_toml(path)
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        plan = given["plan"]
    except OSError as error:
        raise TableError(f"Cannot read {shown(str(path), 300)}: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"A promise is the JSON of a report of microagg, or a plan; {shown(str(path), 300)} is neither."
        ) from None
    return Plan.from_dict(plan)


def _promised(file: Place, plan: Plan, csv: CsvFormat) -> list[Verification]:
    plan.check_complete()
    if any(block.columns is None for block in plan.blocks):
        raise InputError(
            "The plan does not name the columns to protect; take that of the report, which does."
        )
    promises = [
        one._replace(
            columns=[str(name) for name in one.columns or ()],
            unit=None if one.unit is None or one.unit in plan.drop else str(one.unit),
        )
        for one in plan.promises()
    ]
    return _counted(file, promises, csv)


def _counted(place: Place, promises: list[Promise], csv: CsvFormat) -> list[Verification]:
    """Count in a file, in parts where it does not fit into memory."""
    with at_hand(place) as (file,):
        return _counted_locally(file, promises, csv)


def _counted_locally(file: Path, promises: list[Promise], csv: CsvFormat) -> list[Verification]:
    if FORMATS[kind_of(file)].in_batches:
        from tempfile import TemporaryDirectory

        from microagg.engines.disk_counts import CountsOnDisk
        from microagg.engines.memory_needed import fits, memory_for
        from microagg.formats.batches import open_batches

        source = open_batches(file, csv)
        if not fits(source, None):
            with TemporaryDirectory(prefix="microagg-") as folder:
                rows = CountsOnDisk(source, Path(folder), memory_for(None))
                return count_promises(rows, promises)[0]
    return verify_all(file, promises, csv)


def _say_count(speaker: Speaker, file: Place, found: Verification, who: UnitWords) -> None:
    speaker.say("columns", names(found.columns, 40))
    if found.left_out:
        why = "; ".join(f"{names([name])}: {reason}" for name, reason in found.left_out.items())
        speaker.say("left out", f"{why} (name columns to count them)", style="bold yellow")
    counted = (
        f"{file}: {plural(found.records, 'record')} with {plural(found.combinations, 'combination')}; the "
        f"rarest is shared by {who.counted(found.smallest)}"
    )
    if found.holds:
        speaker.say("verified", f"{counted}; k = {found.k:,} holds", style="bold green")
    else:
        below = plural(found.records_below_k, "record")
        speaker.say(
            "fails", f"{counted}; k = {found.k:,} does not hold for {below}", style="bold red"
        )
