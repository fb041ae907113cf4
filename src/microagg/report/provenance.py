"""Where the numbers of a report come from: files, versions, methods, and how to repeat it."""

from __future__ import annotations

import datetime
import platform
import shlex
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from microagg.formats.atomic import sha256
from microagg.plan.registry import find
from microagg.version import VERSION

# What repeats a job is its plan, which every report shows; saved under this name it is used by:
PLAN_FILE = "plan.toml"
FROM_FILE = f'microagg.Plan.from_toml("{PLAN_FILE}")'
_PACKAGES = ("numpy", "scipy", "numba", "narwhals", "pyarrow")


def now() -> str:
    """Return the time to the minute."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def about_method(name: str) -> dict[str, Any]:
    """Return the facts of the registry about a method."""
    method = find(name)
    return {"paper": method.paper, "guarantee": method.guarantee, "summary": method.summary}


def file_facts(path: str | Path | None) -> dict[str, Any] | None:
    """Return the name and the hash of a file; None without one."""
    return None if path is None else {"path": str(path), "sha256": sha256(Path(path))}


def versions() -> dict[str, str]:
    """Return the versions of microagg and of the packages that compute the numbers."""
    found = {"microagg": VERSION}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return {**found, "python": platform.python_version()}


def repetition(command: list[str] | None, python: str) -> dict[str, Any]:
    """Return how to repeat the work: by the command, or by the call in Python if there was none."""
    return {
        "language": "Python" if command is None else "command",
        "command": python if command is None else shlex.join(command),
        "words": command,
        "versions": versions(),
        "platform": platform.system(),
    }
