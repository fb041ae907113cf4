"""auto: the method for whoever does not want to choose one.

One column goes to the exact univariate methods (see the registry). Several go to MDAV here,
the standard of the field for tables of any width. ``microagg.compare`` shows what others would lose.
"""

from __future__ import annotations

from microagg.errors import InputError, shown
from microagg.groups import Floats, Labels
from microagg.methods.fixed_size.mdav import mdav
from microagg.progress import State


def auto(X: Floats, k: int, *, cost: str = "sse", progress: State | None = None) -> Labels:
    """Partition several columns by the method that suits them; costs other than sse are refused."""
    if cost != "sse":
        raise InputError(
            f"cost={shown(cost)} is for one column; with {X.shape[1]} columns it is sse. Protect each "
            "column by itself (per_column=True), or leave the cost out."
        )
    return mdav(X, k, progress=progress)
