"""The content of the board's report as plain data; the JSON twin of the report is this model."""

from __future__ import annotations

import datetime
import platform
import shlex
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from microagg.base.formatting import fewer_than
from microagg.evidence import Evidence
from microagg.evidence.over_time import history_words
from microagg.evidence.sentences import most_lost_words, release_words, tables_words, whole_share
from microagg.formats.atomic import sha256
from microagg.version import VERSION

# What repeats a job is its plan, which every report shows; saved under this name it is used by:
PLAN_FILE = "plan.toml"
FROM_FILE = f'microagg.Plan.from_toml("{PLAN_FILE}")'
_PACKAGES = ("numpy", "scipy", "numba", "narwhals", "pyarrow")


def release_model(evidence: Evidence) -> dict[str, Any]:
    """Return the content of the board's report about ``evidence``."""
    figures = evidence.as_dict()
    files = figures["files"]
    plan = evidence.plan
    # A frame may have names that are no text, which no plan file can hold.
    in_words = all(isinstance(name, str) and name.isprintable() for name in evidence.roles.named)
    command = None
    if files["input"] and files["output"] and in_words:
        paths = [files["input"]["path"], files["output"]["path"]]
        command = ["microagg", "protect", *paths, "--plan", PLAN_FILE]
    call = f"microagg.protect(frame, plan={FROM_FILE})" if in_words else repr(plan)
    fidelity, order = evidence.fidelity, evidence.fidelity.order
    categories = any(row.levels is not None for row in evidence.summaries)
    return {
        "kind": "release",
        "public": False,
        "created": now(),
        **figures,
        "words": {
            "loss": evidence.loss_words,
            "tables": tables_words(order),
            "moved": whole_share(fidelity.tables[order - 1]),
            "sampling": whole_share(fidelity.sampling[order - 1]),
            "most_lost": most_lost_words(evidence.utility),
            "over_time": history_words(evidence.history, evidence.who),
            "guess": evidence.guess_words,
            "unique": evidence.unique_words,
            "alone": evidence.alone_words,
            "with_known": evidence.known_words,
            "guessed": evidence.guessed_words,
            "claims": evidence.claim_words,
            "all_claims": evidence.all_claims_words,
            "counted": evidence.counted_words,
            "units": evidence.who.many,
            "fewer": fewer_than(evidence.k, evidence.who),
            "parts": [evidence.part_words(part) for part in evidence.parts],
            "released": [*dict.fromkeys(release_words(b, categories) for b in plan.blocks)],
        },
        "next": [
            {
                "severity": c.severity,
                "words": c.sentence,
                "decisions": [[str(name), decision] for name, decision in c.cures],
            }
            for c in evidence.cautions
            if c.cures
        ],
        "plan_text": plan.to_toml() if in_words else None,
        "pictures": evidence.pictures,
        "repeat": repetition(command, call),
    }


def now() -> str:
    """Return the time to the minute."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def file_facts(path: str | Path | None) -> dict[str, Any] | None:
    """Return the name and the hash of the file at ``path``; None without one."""
    return None if path is None else {"path": str(path), "sha256": sha256(Path(path))}


def versions() -> dict[str, str]:
    """Return the versions of microagg and of the packages that compute the numbers."""
    versions_of = {"microagg": VERSION, **dict.fromkeys(_PACKAGES, "unknown")}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions_of[package] = version(package)
    return {**versions_of, "python": platform.python_version()}


def repetition(command: list[str] | None, python: str) -> dict[str, Any]:
    """Return how to repeat the work: by the ``command``, or by the call in ``python`` if there was none."""
    return {
        "language": "Python" if command is None else "command",
        "command": python if command is None else shlex.join(command),
        "words": command,
        "versions": versions(),
        "platform": platform.system(),
    }
