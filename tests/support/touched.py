"""Print the tests of what differs from main, for ``make quick``.

A changed test counts, and a changed module counts for the tests that are named after it and, unless many
tests import it, for those that do. The others, and tests that take minutes, are left to ``make test``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALWAYS = ["tests/test_layers.py"]
MOST_IMPORTERS = 10  # files of tests; what more of them import is part of everything
SLOW = re.compile(r"(algorithms/test_(threads|methods)|test_(spark_runs|examples|way|work))\.py$")


def changed() -> list[str]:
    """Files that differ from main, or from the last commit on main itself, new ones included."""
    found = []
    for command in (
        ["git", "diff", "--name-only", "--merge-base", "main"],
        ["git", "ls-files", "--others", "--exclude-standard"],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found += done.stdout.splitlines()
    return sorted(path for path in set(found) if (ROOT / path).exists())


def tests_of(paths: list[str]) -> list[str]:
    """Return the files of tests to run for changed files.

    >>> tests_of(["src/microagg/errors.py"])[0]
    'src/microagg/errors.py'
    """
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    found = set(ALWAYS)
    for name in paths:
        path = Path(name)
        if path.match("test_*.py"):
            found.add(name)
        if path.suffix != ".py" or path.parts[:2] != ("src", "microagg"):
            continue
        found.add(name)  # its doctests
        module = ".".join(path.with_suffix("").parts[1:])
        imports = re.compile(rf"\b{re.escape(module)}\b")
        named = {test for test in texts if test.stem.startswith(f"test_{path.stem}")}
        importers = {test for test, text in texts.items() if imports.search(text)}
        if len(importers) > MOST_IMPORTERS:
            print(f"{len(importers)} files of tests import {module}: make test", file=sys.stderr)
            importers = set()
        found |= {test.relative_to(ROOT).as_posix() for test in named | importers}
    return sorted(test for test in found if not SLOW.search(test))


if __name__ == "__main__":
    print("\n".join(tests_of(changed())))
