"""Compiling ahead: what the command says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from microagg.cli.show import Speaker
from microagg.warm import Warming, lacking
from microagg.warm_parts import PARTS
from microagg.words import FIRST_RUN

__all__ = ["compile_all", "compiling"]


class _Compiled(int):
    """Number of parts compiled."""

    doing = "compiling"
    words = FIRST_RUN


@contextmanager
def compiling(speaker: Speaker, parts: Sequence[str]) -> Iterator[Callable[..., None]]:
    """Compile what is lacking of some parts beside the block; gives a function that waits for it."""
    lack = lacking(parts)
    if not lack:
        yield lambda bar: None
        return
    speaker.say("compiling", f"{FIRST_RUN}; microagg warmup does this in advance")
    warming = Warming(lack)

    def wait(bar: Callable[[int, int], None] | None) -> None:
        warming.wait(bar and (lambda done, total: bar(_Compiled(done), total)))

    try:
        yield wait
    finally:
        warming.stop()


def compile_all(speaker: Speaker) -> None:
    """Compile all that is not compiled yet."""
    parts = list(PARTS)
    lack = lacking(parts)
    with compiling(speaker, lack) as wait, speaker.progress("compiling") as bar:
        wait(bar)
    speaker.say("compiled", f"{len(lack)} of {len(parts)} parts now, the others before")
    speaker.give({"parts": parts, "compiled_now": lack})
