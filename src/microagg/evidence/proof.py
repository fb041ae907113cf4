"""What is proved about the groups: whether any method could lose less."""

from __future__ import annotations

from microagg.base.formatting import percent
from microagg.evidence.measured import Measured, Part
from microagg.evidence.sentences import percent_words
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.plan.registry import find


def proof(plan: Plan, measured: Measured, part: Part) -> tuple[str, str]:
    """Say whether any method could do better: a word, and the sentence.

    Proofs are about the loss of the groups, and say so where the released values lose more, or columns were
    recoded before.
    """
    partition, block, utility = part.partition, plan.block_of(part.columns), measured.utility
    used, frozen = guarantee(plan, measured, part), measured.has_frozen_groups
    # Bounds are on the loss of means, which lose least: they say little of other aggregates.
    if block.released != "mean":
        return "not known", (
            f"Not computed: bounds are for means, and these groups release their {block.released}."
        )
    options, merged = partition.options, _satisfies_more(plan, block)
    plain_cost = str(options.get("cost", "sse")) == "sse" and not options.get("group_cost")
    weighted, counts = plan.weight is not None, measured.signs.missing_counts.values()
    missing = any(column.missing for column in counts)
    in_cells = plan.strata_of(block).columns or (missing and plan.missing.policy == "pattern")
    # Groups of one cell never cross into another, and a bound is the sum of those of all cells.
    where = " that keep to strata and patterns of missing values" if in_cells else ""
    where += ", all made anew," * frozen
    gap = None if measured.weighted and not partition.weighted else partition.gap
    if used == "exact" and plain_cost and not weighted:
        word, sentence = "no", f"The method is exact: no groups with this k{where} lose less"
    elif gap == 0:
        word, sentence = "no", f"Proved: no groups of {partition.k:,} or more{where} lose less"
    elif gap is not None:
        word = f"by at most {percent_words(100 * gap)}"
        least = percent_words(partition.information_loss * (1 - gap))
        sentence = (
            f"of the loss: it is proved that groups of {partition.k:,} or more{where} lose at least {least}"
            + ", whatever else they satisfy" * merged
        )
    elif frozen:
        return "not known", "Not computed: groups of earlier files are kept."
    elif weighted or merged:
        return "not known", "Not computed for plans with a weight, a unit or extra requirements."
    else:
        exact = "exact for another cost, and others may lose less"
        kind = {"exact": exact, "approximation": "an approximation", "heuristic": "a heuristic"}[
            used
        ]
        return "not known", f"Not computed: the method is {kind}."
    recoded = not plan.coarsened.keys().isdisjoint(part.columns)
    if recoded or percent(utility.information_loss) != percent(utility.group_loss):
        of = "of the recoded table, without rounding and categories" if recoded else "alone"
        blanked = any(column.blanked for column in counts)
        of += ", blanked values aside," if blanked else "," * recoded
        sentence += f"; these groups {of} lose {percent_words(partition.information_loss)}"
    return word, f"{sentence}."


def guarantee(plan: Plan, measured: Measured, part: Part) -> str:
    """Return what is proved of the groups of a part: methods prove theirs for k records and nothing else."""
    if measured.has_frozen_groups:
        return "heuristic"
    partition = part.partition
    used = find(partition.method).guarantee_for(part.coordinates, partition.weighted)
    more = _satisfies_more(plan, plan.block_of(part.columns))
    return "heuristic" if more and used == "exact" else str(used)


def _satisfies_more(plan: Plan, block: Block) -> bool:
    """Return whether groups of a block must satisfy more than k records."""
    requires_more = bool(block.require) or block.standing is not None
    return plan.unit_of(block).column is not None or requires_more
