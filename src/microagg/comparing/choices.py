"""A choice of method, k and kind of release: what it gives, and which of several choices are worth it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from microagg.engines.memory.release import Release
    from microagg.measure.attack_rates import Residual
    from microagg.measure.linkage import Linkage

# Share of the spread of loss and linkage along the frontier: a smaller difference is no reason to choose.
TOLERANCE = 0.01


@dataclass(frozen=True)
class Choice:
    """One method with one k and one kind of release."""

    method: str
    k: int
    groups: int = 0
    smallest: int = 0
    largest: int = 0
    information_loss: float | None = None
    """100·SSE/SST of the released values; None if there is no result."""
    linkage: Linkage | None = None
    """Distance-based record linkage with the known columns; sampled for large tables."""
    seconds: float = 0.0
    """Time for the grouping, while others ran at the same time."""
    on_frontier: bool = False
    """Whether it is worth choosing, see :func:`mark_frontier`."""
    cut_short: bool = False
    """Whether its search was ended before it was done; with more time it may lose less."""
    tried: bool = True
    """Whether it was tried to its end; False if time was over or somebody asked to stop."""
    problem: str | None = None
    """Why there is no result."""
    group_loss: float | None = None
    """100·SSE/SST if each group released its exact centroid."""
    release: str = "mean"
    """What groups release: means, or swapped values."""
    tables: float | None = None
    """Share of the records in another cell of tables of three columns; None: not measured."""
    tables_multiple: float | None = None
    """The same as a multiple of what another sample of the same size gives."""
    below_k: float | None = None
    """Share of the records that known columns narrow down to fewer than k records, or units."""
    inference: Residual | None = None
    """Share of values guessed beyond those of people who are not in the file; None: not attacked."""

    @property
    def loss(self) -> float:
        """The information loss; the largest number if there is no result."""
        return sys.float_info.max if self.information_loss is None else self.information_loss

    @property
    def linked(self) -> float:
        """Share of the records linked; all if there is no result."""
        return 1.0 if self.linkage is None else self.linkage.share

    @classmethod
    def of(cls, release: Release, tables: bool = False) -> Choice:
        """Return loss and risk of a release; with ``tables``, also how far tables of three columns moved."""
        partitions, utility = [part.partition for part in release.parts], release.utility
        fidelity = release.fidelity if tables else None
        return cls(
            method=release.plan.blocks[0].method,
            k=release.k,
            groups=sum(partition.n_groups for partition in partitions),
            smallest=min(partition.smallest for partition in partitions),
            largest=max(partition.largest for partition in partitions),
            information_loss=utility.information_loss,
            group_loss=utility.group_loss,
            linkage=release.with_known.linkage,
            below_k=release.with_known.below_k,
            release=release.plan.blocks[0].release,
            seconds=release.seconds["partition"],
            cut_short=any(partition.stopped for partition in partitions),
            tables=None if fidelity is None else fidelity.tables[fidelity.order - 1],
            tables_multiple=None if fidelity is None else fidelity.multiple(fidelity.order),
        )

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON: one row of the table."""
        row = asdict(self)
        linkage = row.pop("linkage")
        row["record_linkage"] = linkage and linkage["share"]
        row["record_linkage_interval"] = linkage and [linkage["low"], linkage["high"]]
        row["inference"] = None if self.inference is None else self.inference._asdict()
        return row


def _worth(choice: Choice) -> float:
    """Return what a choice costs the users of the file: how far tables moved, if measured, or the loss."""
    return choice.loss if choice.tables is None else 100 * choice.tables


def _risk(choice: Choice) -> float:
    """Return what an attacker gains: by inference, if that was attacked, or by linkage."""
    return choice.linked if choice.inference is None else max(choice.inference.share, 0.0)


def mark_frontier(choices: Sequence[Choice]) -> list[Choice]:
    """Mark the choices that are worth choosing.

    They are the fewest such that every other choice is better than one of them by a hundredth of the spread
    at most, in cost and in risk alike. Cost is the loss, or how far tables moved where that was measured;
    risk is the linkage, or what is guessed beyond controls. The spread is that of the choices that no
    other beats in one respect and equals in the other. Of equal choices the one with the largest k counts.
    """
    order = sorted(
        (i for i, choice in enumerate(choices) if choice.problem is None),
        key=lambda i: (_worth(choices[i]), _risk(choices[i]), -choices[i].k),
    )
    front: list[int] = []  # beaten by none: each loses more than the one before and links fewer
    for i in order:
        if not front or _risk(choices[i]) < _risk(choices[front[-1]]):
            front.append(i)
    losses, links = [_worth(choices[i]) for i in front], [_risk(choices[i]) for i in front]
    worth: set[int] = set()
    at = 0
    while at < len(front):
        # Of those that lose hardly more than this one, the last links the fewest, and stands for all.
        limit = losses[at] + TOLERANCE * (losses[-1] - losses[0])
        best = max(j for j in range(at, len(front)) if losses[j] <= limit)
        worth.add(front[best])
        limit = links[best] - TOLERANCE * (links[0] - links[-1])
        at = next((j for j in range(best + 1, len(front)) if links[j] < limit), len(front))
    return [replace(choice, on_frontier=i in worth) for i, choice in enumerate(choices)]
