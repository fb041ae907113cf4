"""Output of the command: words on stderr, data on stdout, nothing interpreted as markup."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from microagg.base.formatting import visible
from microagg.base.progress import RisingShare
from microagg.errors import MicroaggError, VerificationError, fault_words, system_words
from microagg.plan.registry import METHODS

_SECONDS_BETWEEN_LINES = 30.0  # off a terminal, where a log is kept
WATCHED = 4.0  # the same where somebody waits: nobody takes the command for dead
_INTERRUPTED = 130  # what shells report for a command ended by Ctrl-C


def list_methods(speaker: Speaker) -> None:
    """Print the registry on stdout, a paragraph a method, so that no name is cut on narrow screens."""
    speaker.give({"methods": [method.as_dict() for method in METHODS.values()]})
    out = Console(highlight=False, quiet=speaker.as_json)
    for row in METHODS.values():
        facts = (row.guarantee, row.family, row.time, row.paper)
        lines = [row.summary, *(f"{o.name}={o.default!r}: {o.help}" for o in row.options)]
        out.print(Text(row.name, style="bold"))
        for line in (" · ".join(fact for fact in facts if fact), *lines):
            out.print(Padding(Text(line), (0, 0, 0, 4), expand=False))


def _found(done: int) -> str:
    """Describe the best result of a search so far, or return the words that come with the number."""
    if hasattr(done, "words"):
        return str(done.words)
    loss, gap = getattr(done, "information_loss", None), getattr(done, "gap", None)
    phrases = [] if loss is None else [f"· IL {loss:.4g} %"]
    if gap is not None:
        phrases.append(f"· the optimum loses at most {100 * gap:.2g} % less")
    return " ".join(phrases)


def _is_of_an_interrupt(error: BaseException) -> bool:
    """Return whether an error came while Ctrl-C ended what ran.

    Python's locks can be left in a state that they refuse, with a RuntimeError, if Ctrl-C comes while a
    thread begins to wait.
    """
    before = error.__context__
    return before is not None and (
        isinstance(before, KeyboardInterrupt) or _is_of_an_interrupt(before)
    )


class _Words(Console):
    """What is said on stderr; nobody may listen any more, and the job goes on and ends as it would."""

    def print(self, *objects: Any, **how: Any) -> None:
        """Print, unless that is impossible: a log may lie on a full disk."""
        try:
            super().print(*objects, **how)
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Say nothing more; rich would end the process with 1, although OUT may be released."""
        self.quiet = True
        with suppress(OSError, ValueError):  # what is still buffered goes nowhere, without a word
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


class Speaker:
    """The output of one run of the command, and its exit code."""

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = False
        self.lines = 0  # written on stderr
        self.doing = ""  # the stage of the job, for a line in a log
        self.every = _SECONDS_BETWEEN_LINES  # of a log
        self.written: list[str] = []  # complete files, for the message of an interrupt
        self._err = _Words(stderr=True, highlight=False, soft_wrap=True)

    def say(self, label: str, words: str, style: str = "bold") -> None:
        """Write a line on stderr, unless the run is quiet."""
        if not self.quiet:
            self._print(label, words, style)

    def warn(self, text: str) -> None:
        """Write a warning about disclosure on stderr, also in a quiet run."""
        self._print("warning", text, "bold yellow")

    def _print(self, label: str, text: str, style: str) -> None:
        """Control characters, such as those in a name of a file, must not reach the terminal."""
        self.lines += 1
        self._err.print(Text(f"{label:<12} ", style=style) + Text(visible(text)))

    def give(self, data: dict[str, Any]) -> None:
        """Write the result as JSON on stdout, if that was asked for."""
        if self.as_json:
            print(json.dumps(data, indent=2, allow_nan=False, default=str), flush=True)

    @contextmanager
    def run(self) -> Iterator[None]:
        """Turn errors into a sentence and an exit code."""
        try:
            yield
        except MicroaggError as error:
            self._fail(error, 1 if isinstance(error, VerificationError) else 2)
        except OSError as error:
            self.as_json = False  # stdout itself may be what fails
            self._fail(MicroaggError(system_words(error)), 2)
        except MemoryError:
            self._fail(MicroaggError("The table does not fit into memory."), 2)
        except KeyboardInterrupt:
            self._end_interrupted()
        except Exception as error:  # its own words may hold values of records
            if _is_of_an_interrupt(error):
                self._end_interrupted()
            if os.environ.get("MICROAGG_TRACEBACK"):
                raise
            self._fail(MicroaggError(fault_words(error)), 2)

    def _end_interrupted(self) -> NoReturn:
        written = ", ".join(self.written) or "nothing"
        self._err.print(Text(visible(f"Interrupted: {written} was written."), style="bold"))
        sys.exit(_INTERRUPTED)

    def _fail(self, error: MicroaggError, code: int) -> NoReturn:
        self._err.print(Text("Error: ", style="bold red") + Text(visible(str(error))))
        self.give({"error": {"type": type(error).__name__, "message": str(error)}})
        sys.exit(code)

    @contextmanager
    def stoppable(
        self, searching: Callable[[], bool] = lambda: True
    ) -> Iterator[Callable[[], bool]]:
        """Let a first Ctrl-C in the block end a search, and a second one the command.

        Yield a function that returns whether there was one. If no search runs, the first one ends the
        command.
        """
        asked = False

        def ask(*_: object) -> None:
            nonlocal asked
            asked = True
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if not searching():
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, ask)
        try:
            yield lambda: asked
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def _beating(self, doing: str, of_job: bool) -> Iterator[Callable[[int, int], None]]:
        """Write to a log now and then where a long job is; yield a function that takes the progress."""
        self.doing, ended = doing, threading.Event()
        compiling, how_far = "", ""
        started, share = time.monotonic(), RisingShare(of_job)

        def note(done: int, total: int) -> None:
            nonlocal compiling, how_far
            doing_now = getattr(done, "doing", self.doing)
            if doing_now != self.doing:
                compiling = f"{doing_now} {100 * int(done) // max(total, 1)} %"
            else:
                compiling, how_far = "", f" {100 * share.at(self.doing, done, total):.0f} %"

        def say() -> None:
            while not ended.wait(self.every):
                line = compiling or f"{self.doing}{how_far}"
                line += f", {time.monotonic() - started:,.0f} s so far"
                self._err.print(Text(f"{'working':<12} ", style="bold") + Text(line))

        thread = threading.Thread(target=say, daemon=True)
        thread.start()
        try:
            yield note
        finally:
            ended.set()
            thread.join()

    @contextmanager
    def progress(
        self, doing: str, of_job: bool = False
    ) -> Iterator[Callable[[int, int], None] | None]:
        """Show a bar with the share of records done; off a terminal a line every 30 seconds instead.

        The bar is of a whole job, or of one thing that is done. A number may say by its attribute ``doing``
        what else is being done. The bar never runs backwards.
        """
        if self.quiet:
            yield None
            return
        if not self._err.is_terminal:
            with self._beating(doing, of_job) as note:
                yield note
            return
        bar = Progress(
            TextColumn("{task.description:<10}", style="bold"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[found]}"),
            TimeRemainingColumn(),
            console=self._err,
            transient=True,
        )
        self.doing, share = doing, RisingShare(of_job)

        def show(done: int, total: int) -> None:
            doing_now = getattr(done, "doing", self.doing)
            if doing_now != self.doing:  # compiling is no part of a job
                bar.update(task, description=doing_now, found=f"{done} of {total}")
                return
            full = share.at(self.doing, done, total)
            bar.update(task, description=self.doing, completed=full, found=_found(done))

        with bar:
            task = bar.add_task(doing, total=1.0, found="")
            yield show
