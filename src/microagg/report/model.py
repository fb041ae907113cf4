"""What the board's report says, as plain data: the page shows it, the JSON twin is it."""

from __future__ import annotations

import datetime
import platform
import shlex
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from microagg.evidence import Evidence

__all__ = ["release_model", "versions"]

_PACKAGES = ("microagg", "numpy", "scipy", "numba", "scikit-learn", "narwhals", "pyarrow")


def release_model(evidence: Evidence) -> dict[str, Any]:
    """Gather what the page shows."""
    found = evidence.as_dict()
    files = found["files"]
    plan = evidence.plan
    if files["input"] and files["output"]:
        words = plan.as_command(files["input"]["path"], files["output"]["path"])
        repeat = {"language": "command", "command": shlex.join(words)}
    else:
        repeat = {"language": "Python", "command": plan.as_call()}
    return {
        "kind": "release",
        "public": False,
        "created": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        **found,
        "words": {
            "loss": evidence.loss_words,
            "hidden": evidence.hidden_words,
            "alone": evidence.alone_words,
            "with_known": evidence.known_words,
            "counted": evidence.counted_words,
            "parts": [evidence.part_words(part) for part in evidence.parts],
        },
        "next": [c.advice for c in evidence.cautions if c.severity in ("amber", "red") and c.advice],
        "plan_text": _plan_text(evidence),
        "pictures": evidence.pictures(),
        "repeat": {**repeat, **versions()},
    }


def _plan_text(evidence: Evidence) -> str | None:
    """The plan as a file, where names are text; a frame's other names have no place in one."""
    named = [*evidence.roles.protected, *evidence.roles.dropped, *evidence.roles.released]
    if not all(isinstance(name, str) and name.isprintable() for name in named):
        return None
    return evidence.plan.to_toml()


def versions() -> dict[str, Any]:
    """What it was made with."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return {
        "versions": {**found, "python": platform.python_version()},
        "platform": platform.system(),
    }
