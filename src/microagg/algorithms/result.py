"""A partition, as a value that cannot change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from microagg.base.typing import Labels
from microagg.kernels.labels import group_sizes

# A bound within this share of the SSE proves a partition optimal: rounding allows no more.
PROOF = 1e-9


class Outcome(NamedTuple):
    """The result of a method: the group of each record, and what else it knows."""

    labels: Labels  # (n,), any whole numbers
    lower_bound: float | None = None  # on the SSE of any partition, in the scaled space
    lost: float | None = None  # SSE/SST, from methods that have it at less than a sum over rows


class GroupCount(NamedTuple):
    """Number and sizes of groups; those of parts of a table are put together by :meth:`merge`."""

    number: int
    smallest: int
    """Records of the smallest group."""
    largest: int
    """Records of the largest group."""

    @classmethod
    def of(cls, sizes: Labels) -> GroupCount:
        """Count groups by the records of each, (g,)."""
        return cls(len(sizes), int(sizes.min()), int(sizes.max()))

    def merge(self, other: GroupCount) -> GroupCount:
        """Add the groups of other records."""
        smallest, largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        return GroupCount(self.number + other.number, smallest, largest)


def _plain(value: object) -> object:
    """Turn an option into plain data; some, as a spanning tree, know how."""
    if hasattr(value, "as_dict"):
        return value.as_dict()
    return value.tolist() if hasattr(value, "tolist") else value


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of n records into groups of at least k.

    ``sse`` and ``information_loss`` (100·SSE/SST) are taken in the scaled space; where records have
    weights, each square counts by its record's weight, in units of the mean weight.
    """

    labels: Labels = field(repr=False)  # (n,), groups 0..g-1 numbered by first appearance
    k: int
    method: str
    scale: str
    options: Mapping[str, object]
    sse: float
    sst: float
    seconds: float
    lower_bound: float | None = None
    stopped: bool = False  # whether the search was ended early, see :class:`microagg.StopSearch`
    weighted: bool = False  # whether records had weights that differ
    counted: GroupCount | None = None  # all groups, where labels are those of a sample

    def __post_init__(self) -> None:
        self.labels.setflags(write=False)

    @cached_property
    def sizes(self) -> Labels:
        """Number of records of each group, int64 of shape (g,)."""
        sizes = group_sizes(self.labels)
        sizes.setflags(write=False)
        return sizes

    @cached_property
    def group_count(self) -> GroupCount:
        """Number and sizes of all groups."""
        return self.counted or GroupCount.of(self.sizes)

    @property
    def n_groups(self) -> int:
        """Number of groups g."""
        return self.group_count.number

    @property
    def smallest(self) -> int:
        """Records of the smallest group."""
        return self.group_count.smallest

    @property
    def largest(self) -> int:
        """Records of the largest group."""
        return self.group_count.largest

    @property
    def information_loss(self) -> float:
        """100·SSE/SST: 0 when nothing was lost, 100 when only the column means are left."""
        return 100 * self.sse / self.sst if self.sst > 0 else 0.0

    @property
    def gap(self) -> float | None:
        """By what share of its SSE the partition could still improve at most; None without a bound.

        0 when the bound is within a part in 10⁹ of the SSE, which is as near as rounding lets a proof
        come: then the partition is proved optimal.
        """
        if self.lower_bound is None:
            return None
        gap = 1 - self.lower_bound / self.sse if self.sse > 0 else 0.0
        return gap if gap > PROOF else 0.0

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON, without the labels."""
        return {
            "method": self.method,
            "k": self.k,
            "scale": self.scale,
            "options": {name: _plain(value) for name, value in self.options.items()},
            "groups": self.n_groups,
            "smallest": self.smallest,
            "largest": self.largest,
            "sse": self.sse,
            "information_loss": self.information_loss,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "stopped": self.stopped,
            "weighted": self.weighted,
            "seconds": self.seconds,
        }
