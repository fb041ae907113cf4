"""Run a long command and report every few seconds what it is doing, for ``make``.

``python tests/support/patiently.py installing pip install ...`` runs ``python -m pip install ...`` and prints
its last line so often that nobody takes it for dead; all that it printed, if it fails.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from threading import Thread

EVERY = 4.0  # seconds
_WIDTH = 70


def patiently(
    doing: str, command: list[str], say: Callable[[str], None], every: float = EVERY
) -> int:
    """Run a command; return its exit code."""
    lines: list[str] = []
    begun = time.monotonic()
    say(f"{doing} ...")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as run:
        assert run.stdout is not None
        reader = Thread(target=lines.extend, args=(run.stdout,))
        reader.start()
        while reader.is_alive():
            reader.join(every)
            if reader.is_alive():
                last = lines[-1].strip() if lines else "starting"
                say(f"{doing} ... {time.monotonic() - begun:.0f} s: {last[:_WIDTH]}")
        reader.join()
    if run.returncode:
        say("".join(lines))
    return run.returncode


if __name__ == "__main__":
    sys.exit(
        patiently(
            sys.argv[1],
            [sys.executable, "-m", *sys.argv[2:]],
            lambda words: print(words, flush=True),
        )
    )
