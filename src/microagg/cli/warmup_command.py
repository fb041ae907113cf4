"""The command ``warmup``, and the messages of every command that compiles in advance."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from microagg.base.formatting import FIRST_RUN, plural
from microagg.cli.show import Speaker
from microagg.compile.warm import PARTS, Warming


class Compiled(int):
    """Number of parts compiled."""

    doing = "compiling"
    words = FIRST_RUN


class Compiling(Warming):
    """Parts that a command compiles in advance, in processes that end with the block."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__()
        self._speaker = speaker

    def ask(self, parts: Iterable[str]) -> list[str]:
        """Compile the parts that were never compiled here, and say so once; return them."""
        before = bool(self._parts)
        new = super().ask(parts)
        if new and not before:
            self._speaker.say("compiling", f"{FIRST_RUN}; microagg warmup does this in advance")
        return new

    def wait(
        self, on_progress: Callable[[int, int], None] | None = None, without: Collection[str] = ()
    ) -> None:
        """Wait for all parts but some; show on a bar how many are compiled."""
        super().wait(
            on_progress and (lambda done, total: on_progress(Compiled(done), total)), without
        )

    @contextmanager
    def progress(self, doing: str) -> Iterator[Callable[[int, int], None] | None]:
        """Yield the bar of something that needs all parts, once they are compiled."""
        with self._speaker.progress(doing) as bar:
            self.wait(bar)
            yield bar


def compile_all(speaker: Speaker) -> None:
    """Compile all that is not compiled yet."""
    with Compiling(speaker) as compiling, speaker.progress("compiling") as bar:
        new = compiling.ask(PARTS)
        compiling.wait(bar)
    speaker.say("compiled", f"{len(new)} of {plural(len(PARTS), 'part')} now, the others before")
    speaker.give({"parts": list(PARTS), "compiled_now": new})
