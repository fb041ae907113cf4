"""What the board's report says, as plain data: the page shows it, the JSON twin is it."""

from __future__ import annotations

from typing import Any

from microagg.evidence import Evidence
from microagg.report.provenance import now, repetition
from microagg.words import TRADE_OFF, among_fewer

__all__ = ["release_model"]


def release_model(evidence: Evidence) -> dict[str, Any]:
    """Gather what the page shows."""
    found = evidence.as_dict()
    files = found["files"]
    plan = evidence.plan
    words = None
    if files["input"] and files["output"]:
        words = plan.as_command(files["input"]["path"], files["output"]["path"])
    return {
        "kind": "release",
        "public": False,
        "created": now(),
        **found,
        "words": {
            "loss": evidence.loss_words,
            "hidden": evidence.hidden_words,
            "alone": evidence.alone_words,
            "with_known": evidence.known_words,
            "counted": evidence.counted_words,
            "among": among_fewer(evidence.k, evidence.roles.unit),
            "parts": [evidence.part_words(part) for part in evidence.parts],
        },
        "next": [
            c.advice for c in evidence.cautions if c.severity in ("amber", "red") and c.advice
        ],
        "trade_off": TRADE_OFF,
        "plan_text": _plan_text(evidence),
        "pictures": evidence.pictures(),
        "repeat": repetition(words, plan.as_call()),
    }


def _plan_text(evidence: Evidence) -> str | None:
    """The plan as a file, where names are text; a frame's other names have no place in one."""
    named = [*evidence.roles.protected, *evidence.roles.dropped, *evidence.roles.released]
    if not all(isinstance(name, str) and name.isprintable() for name in named):
        return None
    return evidence.plan.to_toml()
