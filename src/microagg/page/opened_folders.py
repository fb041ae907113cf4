"""The folders that the user opened: the page reads files in them and no others."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from microagg.errors import InputError, shown
from microagg.formats.addresses import ENDINGS
from microagg.ledger.ledger_file import key_file

_MOST = 500  # entries that a listing shows


@dataclass(frozen=True)
class Listing:
    """The folders and tables in a folder, by their full paths."""

    path: Path
    above: Path | None
    """The folder above, if that was opened too."""
    folders: list[Path]
    files: list[tuple[Path, int]]
    """Tables with their sizes in bytes."""
    more: int
    """Entries beyond those listed."""


class Folders:
    """The opened folders, by their true paths."""

    def __init__(self, opened: Sequence[Path]) -> None:
        self.roots = [path.resolve(strict=True) for path in opened]

    def check(self, path: Path) -> Path:
        """Return the true path of a file in an opened folder; refuse all others, and links out of it."""
        true: Path | None = None
        if path.is_absolute() and "\0" not in str(path):
            with contextlib.suppress(OSError, RuntimeError):
                true = path.resolve(strict=True)
        if true is None or not any(true.is_relative_to(root) for root in self.roots):
            # One sentence for both, so that nobody learns which files exist elsewhere.
            raise InputError(
                "The page reads only files in the folders that it was started with "
                f"({', '.join(shown(str(root), 300) for root in self.roots)}); "
                f"{shown(str(path), 300)} is in none of them, or does not exist. Start microagg page with "
                "that file, or upload it."
            )
        return true

    def check_ledger(self, path: Path) -> Path:
        """Return the true path of a ledger, which may be new; it and its key are in an opened folder."""
        folder = self.check(path.parent)
        for file in (path, key_file(path)):
            if os.path.lexists(file):
                self.check(file)
        return folder / path.name

    def ledgers(self, folder: Path) -> list[str]:
        """Return the names of the ledgers in a folder: files that have a key next to them."""
        names = sorted(key.name.removesuffix(".key") for key in folder.glob("[!.]*.key"))
        return [name for name in names if (folder / name).is_file()][:_MOST]

    def listing(self, path: Path) -> Listing:
        """List the folders and tables in a folder; hidden ones and links out of it are left out."""
        folder = self.check(path)
        if not folder.is_dir():
            raise InputError(f"{shown(str(path), 300)} is not a folder. Choose one from the list.")
        folders, files, count = [], [], 0
        try:
            entries = sorted(folder.iterdir(), key=lambda entry: entry.name.casefold())
        except OSError as error:
            raise InputError(
                f"Cannot open {shown(str(path), 300)}: {error.strerror}. Choose another folder."
            ) from None
        for entry in entries:
            is_table = entry.suffix.lower() in ENDINGS
            if entry.name.startswith("."):
                continue
            try:
                true = self.check(entry)
                if true.is_dir():
                    folders.append(entry)
                elif is_table and true.is_file():
                    files.append((entry, true.stat().st_size))
                else:
                    continue
            except (InputError, OSError):
                continue
            count += 1
        first = folders[:_MOST]
        above = folder.parent if any(folder.parent.is_relative_to(r) for r in self.roots) else None
        tables = files[: _MOST - len(first)]
        return Listing(folder, above, first, tables, count - len(first) - len(tables))
