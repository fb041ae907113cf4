"""What is proved about the groups: whether any method could lose less."""

from __future__ import annotations

from microagg.evidence.measured import Measured, Part
from microagg.evidence.sentences import group_loss_words, percent_words
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.plan.registry import find


def proof(plan: Plan, measured: Measured, part: Part) -> tuple[str, str]:
    """Say whether any method could do better: a word, and the sentence.

    Proofs are about the loss of the groups, and say so where the released values lose more, or columns were
    recoded before.
    """
    word, sentence = _proof(plan, measured, part)
    utility = measured.utility
    recoded = not plan.coarsened.keys().isdisjoint(part.columns)
    differs = recoded or group_loss_words(utility.information_loss, utility.group_loss)
    if word == "not known" or not differs:
        return word, sentence
    loss = percent_words(part.partition.information_loss)
    of = "of the recoded table, without rounding and categories," if recoded else "alone"
    if any(column.blanked for column in measured.signs.missing_counts.values()):
        of = f"{of.removesuffix(',')}, blanked values aside,"
    return word, f"{sentence.removesuffix('.')}; these groups {of} lose {loss}."


def _proof(plan: Plan, measured: Measured, part: Part) -> tuple[str, str]:
    partition, block = part.partition, plan.block_of(part.columns)
    used = guarantee(plan, part)
    # Bounds are on the loss of means, which lose least: they say little of other aggregates.
    if block.released != "mean":
        return "not known", (
            f"Not computed: bounds are for means, and these groups release their {block.released}."
        )
    plain_cost = str(partition.options.get("cost", "sse")) == "sse" and not partition.options.get(
        "group_cost"
    )
    merged = _satisfies_more(plan, block)
    weighted = plan.weight is not None
    # Groups of one cell never cross into another, and a bound is the sum of those of all cells.
    where = " that keep to strata and patterns of missing values"
    where = where if _in_cells(plan, measured, block) else ""
    if used == "exact" and plain_cost and not weighted:
        return "no", f"The method is exact: no groups with this k{where} lose less."
    if measured.weighted and not partition.weighted:
        return "not known", (
            "Not computed: the groups were formed without the weights with which the loss is counted."
        )
    if partition.gap is not None and partition.gap == 0:
        return "no", f"Proved: no groups of {partition.k:,} or more{where} lose less."
    if partition.gap is not None:
        least = percent_words(partition.information_loss * (1 - partition.gap))
        return (
            f"by at most {percent_words(100 * partition.gap)}",
            f"of the loss: it is proved that groups of {partition.k:,} or more{where} lose at least {least}"
            + (", whatever else they satisfy." if merged else "."),
        )
    if weighted:
        return "not known", "Not computed: no method is exact for records with weights."
    if merged:
        return "not known", "Not computed for plans with a unit or extra requirements."
    if used == "exact":
        return "not known", (
            f"The groups are the best for the cost {partition.options.get('cost')}; others may lose less "
            "information."
        )
    kind = "an approximation" if used == "approximation" else "a heuristic"
    return "not known", f"Not computed: the method is {kind}."


def guarantee(plan: Plan, part: Part) -> str:
    """Return what is proved of the groups of a part: methods prove theirs for k records and nothing else."""
    partition = part.partition
    used = find(partition.method).guarantee_for(part.coordinates, partition.weighted)
    more = _satisfies_more(plan, plan.block_of(part.columns))
    return "heuristic" if more and used == "exact" else str(used)


def _satisfies_more(plan: Plan, block: Block) -> bool:
    """Return whether groups of a block must satisfy more than k records."""
    return plan.unit_of(block).column is not None or bool(block.require)


def _in_cells(plan: Plan, measured: Measured, block: Block) -> bool:
    missing = any(column.missing for column in measured.signs.missing_counts.values())
    return bool(plan.strata_of(block).columns) or (missing and plan.missing.policy == "pattern")
