"""Reports of earlier releases next to a file: the only trace that these leave outside a ledger."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from microagg.errors import TableError, shown
from microagg.ledger.ledger_file import Ledger

_LARGEST = 20_000_000  # bytes of a report; others are not looked at
_MOST = 500  # files of a folder that are looked at


def _reports_in(folders: Collection[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the reports for the board in some folders, as plain data."""
    for folder in {folder.absolute() for folder in folders}:
        for path in sorted(folder.glob("[!.]*.json"))[:_MOST]:
            try:
                if path.stat().st_size > _LARGEST:
                    continue
                model = json.loads(path.read_bytes())
            except (OSError, ValueError):
                continue  # somebody else's file
            is_report = isinstance(model, dict) and {"files", "ledger", "swap"} <= {*model}
            if is_report and isinstance(model["files"], dict):
                yield path, model


def earlier_swap(
    folders: Collection[Path], target: Path, source_sha256: str, elsewhere: Collection[Path] = ()
) -> str:
    """Return the name of another swapped file of the same table without a ledger; empty: none is known.

    Parameters
    ----------
    folders : where reports may lie
    target : the file that is released; its own report does not count
    source_sha256 : of the table
    elsewhere : folders of other releases, where a file may have the name of the target
    """
    for path, model in _reports_in([*folders, *elsewhere]):
        read, written = model["files"].get("input") or {}, model["files"].get("output") or {}
        name = Path(str(written.get("path", ""))).name
        is_other = name != target.name or path.parent in elsewhere
        is_of_table = name != "" and read.get("sha256") == source_sha256
        if is_other and is_of_table and model["swap"] is not None and model["ledger"] is None:
            return name
    return ""


def check_newest(folders: Collection[Path], path: Path, ledger: Ledger) -> None:
    """Refuse a ledger that does not have a release which a report next to the target tells of.

    The key notes the last release; a copy of both, put back together, shows by the reports alone.

    Parameters
    ----------
    folders : where reports may lie
    path : of the ledger
    ledger : as it was read
    """
    for report, model in _reports_in(folders):
        told = model["ledger"]
        if told is None or ledger.chain[:1] != [told.get("first")]:
            continue
        number = told["files"]
        if number > len(ledger.chain) or ledger.chain[number - 1] != told["chain"]:
            raise TableError(
                f"A ledger has all its releases; {shown(str(report), 300)} tells of release {number}, which "
                f"{shown(str(path), 300)} does not have: it is an older copy, or one that went another way. "
                "Put the last one there, or remove the report if that release was never published."
            )
