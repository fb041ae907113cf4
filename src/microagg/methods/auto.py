"""auto: the method for whoever does not want to choose one.

It runs MDAV, which of the methods here loses least for its time on tables of any
width. Better choices by size and shape of the table come in with their methods.
"""

from __future__ import annotations

from microagg.groups import Floats, Labels
from microagg.methods.fixed_size.mdav import mdav
from microagg.progress import State


def auto(X: Floats, k: int, *, progress: State | None = None) -> Labels:
    """Partition by the method that suits the data; see :func:`~microagg.methods.fixed_size.mdav.mdav`."""
    return mdav(X, k, progress=progress)
