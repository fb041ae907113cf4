"""Compiling ahead: what the command says of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Self

from microagg.base.formatting import FIRST_RUN
from microagg.cli.show import Speaker
from microagg.warming.jobs import PARTS
from microagg.warming.warm import Warming, lacking

__all__ = ["Compiling", "compile_all"]


class _Compiled(int):
    """Number of parts compiled."""

    doing = "compiling"
    words = FIRST_RUN


class Compiling:
    """What a command compiles ahead, in processes that end with the block."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self._warming: Warming | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._warming is not None:
            self._warming.stop()

    def ask(self, parts: Sequence[str]) -> list[str]:
        """Have those of some parts compiled that never were, beside all else; return them."""
        lack = lacking(parts)
        if self._warming is not None:
            self._warming.ask(lack)
        elif lack:
            self._speaker.say("compiling", f"{FIRST_RUN}; microagg warmup does this in advance")
            self._warming = Warming(lack)
        return lack

    def wait(self, bar: Callable[[int, int], None] | None, without: Collection[str] = ()) -> None:
        """Wait for all that was asked for, but for some parts; tell a bar how much is compiled."""
        if self._warming is not None:
            told = bar and (lambda done, total: bar(_Compiled(done), total))
            self._warming.wait(told, without)


def compile_all(speaker: Speaker) -> None:
    """Compile all that is not compiled yet."""
    parts = list(PARTS)
    with Compiling(speaker) as compiling, speaker.progress("compiling") as bar:
        lack = compiling.ask(parts)
        compiling.wait(bar)
    speaker.say("compiled", f"{len(lack)} of {len(parts)} parts now, the others before")
    speaker.give({"parts": parts, "compiled_now": lack})
