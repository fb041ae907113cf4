"""The ledger on disk: one SQLite file, sealed by a key that lies in a file of its own.

What is in the open: the number of each release, its date, plan digest, k, kind, the hash of its file, counts,
and a chain of hashes over all of that. What is sealed, so that it can be read with the key only: whose base
group is which (units as keyed hashes), the versions of their values, entry weights, and what groups released.
A seal over everything tells a damaged ledger.

The file is written anew for each release and takes its name in the same step as the release. The key file
also notes the number and the chain of the last release: a ledger that is older than its key, such as a
restored copy, is refused, since it would form other groups of the same people.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microagg.base.formatting import plural
from microagg.errors import TableError, shown
from microagg.formats.atomic import HAS_LOCKS, lock, sha256

FORMAT = 2
_KEY_BYTES = 32
_NONCE_BYTES = 16
_SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE releases (number INTEGER PRIMARY KEY, facts TEXT NOT NULL, chain TEXT NOT NULL)",
    "CREATE TABLE sealed (name TEXT PRIMARY KEY, nonce BLOB NOT NULL, type TEXT NOT NULL, "
    "shape TEXT NOT NULL, data BLOB NOT NULL)",
)

Array = NDArray[Any]


@dataclass
class Ledger:
    """What a ledger holds."""

    about: dict[str, Any] = field(default_factory=dict)
    """The column that tells units apart, the least k, the weight."""
    releases: list[dict[str, Any]] = field(default_factory=list)
    """Facts of each release, the first at first."""
    chain: list[str] = field(default_factory=list)
    """For each release the hash of its facts and of the chain before."""
    arrays: dict[str, Array] = field(default_factory=dict)
    """What is sealed, by name; see :mod:`microagg.ledger.carry`."""

    def add(self, facts: Mapping[str, Any]) -> None:
        """Add a release to the chain."""
        whole = (self.chain[-1] if self.chain else "") + json.dumps(facts, sort_keys=True)
        self.releases.append(dict(facts))
        self.chain.append(hashlib.sha256(whole.encode()).hexdigest())


def key_file(path: Path) -> Path:
    """Return where the key of the ledger at ``path`` lies."""
    return path.with_name(f"{path.name}.key")


@contextmanager
def opened_key(path: Path, make: bool) -> Iterator[bytes]:
    """Yield the key of a ledger, which no other run can have at the same time.

    Parameters
    ----------
    path : the ledger
    make : whether to make a key if there is neither a ledger nor a key
    """
    place, shown_place = key_file(path), shown(str(key_file(path)), 300)
    may_make = make and not path.exists()
    if not (may_make or place.exists()):
        raise TableError(
            f"A ledger is read with its key; there is no {shown_place}. Put the key there, or link to it."
        )
    try:
        held = os.fdopen(os.open(place, os.O_RDWR | (os.O_CREAT if may_make else 0), 0o600), "rb+")
    except OSError as error:
        raise TableError(
            f"Cannot open {shown_place}: {error.strerror}. Choose a folder that exists and is writable."
        ) from None
    with held:
        # A run that failed removes the key that it made: whoever opened it before has no key.
        if HAS_LOCKS and not (lock(held.fileno(), wait=False) and os.fstat(held.fileno()).st_nlink):
            raise TableError(
                f"One run at a time writes to a ledger; another has {shown(str(path), 300)} now. Try again "
                "when it has ended."
            )
        first_line = held.readline()
        is_new = may_make and not first_line  # by us, or by a run that was killed right then
        if is_new:
            first_line = secrets.token_bytes(_KEY_BYTES).hex().encode() + b"\n"
            held.write(first_line)
            held.flush()
            os.fsync(held.fileno())
        try:
            key = bytes.fromhex(first_line.decode("ascii").strip())
        except ValueError:
            key = b""
        if len(key) != _KEY_BYTES:
            raise TableError(
                f"The first line of a ledger's key has {2 * _KEY_BYTES} hexadecimal digits; that of "
                f"{shown_place} has not. Put the right key there."
            )
        try:
            yield key
        except BaseException:
            if is_new and not path.exists():  # nothing was released
                place.unlink(missing_ok=True)
            raise


def note_release(path: Path, ledger: Ledger) -> None:
    """Note the last release of ``ledger`` in the key file, by which an older ledger is found out.

    Nothing is noted if it is not the ledger at ``path``: then nothing was released.
    """
    if not path.exists():
        return
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
        rows = base.execute("SELECT chain FROM releases ORDER BY number").fetchall()
    if [chain for (chain,) in rows] != ledger.chain:
        return
    with key_file(path).open("a", encoding="ascii") as file:
        file.write(f"{len(ledger.releases)} {ledger.chain[-1]}\n")
        file.flush()
        os.fsync(file.fileno())


def read_ledger(path: Path, key: bytes) -> Ledger:
    """Read the ledger at ``path``, sealed by ``key``; one that does not exist is empty.

    Raises
    ------
    TableError
        If the file is no ledger, damaged, of a newer version, older than its key, or of another key.
    """
    here, key_here = (shown(str(place), 300) for place in (path, key_file(path)))
    if not path.exists():
        if _noted(path):
            raise TableError(
                f"The key {key_here} belongs to a ledger with {_noted(path)[-1][0]} releases; {here} does "
                "not exist. Put the ledger there: a new one would form other groups of the same people."
            )
        return Ledger()
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            about = dict(base.execute("SELECT name, value FROM about"))
            version = int(about["format"])
            if version == FORMAT:
                rows = base.execute("SELECT facts, chain FROM releases ORDER BY number").fetchall()
                sealed = base.execute("SELECT * FROM sealed ORDER BY name").fetchall()
        if version == FORMAT and about["key"] == _name_of(key):
            # Nothing is looked at before the seal over all of it is known to be right.
            if not hmac.compare_digest(about["seal"], _seal(about, rows, sealed, key)):
                raise ValueError("the seal is broken")
            arrays = {}
            for name, nonce, kind, shape, data in sealed:
                array = np.frombuffer(_sealed(data, key, nonce), kind)
                arrays[name] = array.reshape(json.loads(shape)).copy()
            facts = [json.loads(text) for text, _ in rows]
            ledger = Ledger(json.loads(about["facts"]), facts, [chain for _, chain in rows], arrays)
    except (sqlite3.Error, KeyError, TypeError, ValueError):
        raise TableError(
            f"{here} is no ledger of microagg, or it is damaged. Put back the last copy that has every "
            "release."
        ) from None
    if version != FORMAT:
        way_out = "Install a newer microagg" if version > FORMAT else "Start a new ledger"
        raise TableError(
            f"This microagg reads ledgers of version {FORMAT}; {here} is of version {version}. {way_out}."
        )
    if about["key"] != _name_of(key):
        raise TableError(
            f"A ledger is read with its own key; {key_here} is that of another. Put the right key there."
        )
    for number, chain in _noted(path):
        if number > len(ledger.chain) or ledger.chain[number - 1] != chain:
            raise TableError(
                f"A ledger has every release that its key notes; {here} has "
                f"{plural(len(ledger.chain), 'release')} and its key notes number {number}: it is an older "
                "copy, or one that went another way. Put the last one there: this one would form other "
                "groups of the same people."
            )
    return ledger


def write_ledger(path: Path, ledger: Ledger, key: bytes) -> None:
    """Write ``ledger`` to the empty file ``path``, sealed by ``key``."""
    facts = json.dumps(ledger.about, sort_keys=True)
    about = {"format": str(FORMAT), "key": _name_of(key), "facts": facts}
    rows = [
        (json.dumps(facts, sort_keys=True), chain)
        for facts, chain in zip(ledger.releases, ledger.chain, strict=True)
    ]
    sealed = []
    for name, array in sorted(ledger.arrays.items()):
        nonce = secrets.token_bytes(_NONCE_BYTES)
        data = _sealed(np.ascontiguousarray(array).tobytes(), key, nonce)
        sealed.append((name, nonce, array.dtype.str, json.dumps(array.shape), data))
    about["seal"] = _seal(about, rows, sealed, key)
    with closing(sqlite3.connect(path)) as base:
        base.execute("PRAGMA journal_mode=OFF")  # the file takes its name once it is complete
        base.execute("PRAGMA synchronous=OFF")
        for statement in _SCHEMA:
            base.execute(statement)
        base.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        numbered = [(number, *row) for number, row in enumerate(rows, start=1)]
        base.executemany("INSERT INTO releases VALUES (?, ?, ?)", numbered)
        base.executemany("INSERT INTO sealed VALUES (?, ?, ?, ?, ?)", sealed)
        base.commit()


def finish_killed_run(ledger: Ledger) -> None:
    """Give the last release of ``ledger`` and its reports their names, if a run was killed before that."""
    if not ledger.releases:
        return
    last = ledger.releases[-1]
    files = [(Path(part), Path(target)) for part, target in last["parts"]]  # the table is the last
    if files[-1][0].exists() and sha256(files[-1][0]) == last["sha256"]:
        for part, target in files:
            if part.exists():
                part.replace(target)


def _derived(key: bytes, purpose: bytes) -> bytes:
    """Return a key for one purpose, which gives away neither the key nor that of another purpose."""
    return hmac.digest(key, purpose, "sha256")


def _name_of(key: bytes) -> str:
    """Return a name of the key that does not give it away."""
    return _derived(key, b"name of this key").hex()[:16]


def _sealed(data: bytes, key: bytes, nonce: bytes) -> bytes:
    """Seal, or open, bytes by a stream that only the key and a number used once give."""
    stream = hashlib.shake_256(_derived(key, b"stream") + nonce).digest(len(data))
    both = np.frombuffer(data, np.uint8) ^ np.frombuffer(stream, np.uint8)
    return both.tobytes()


def _seal(about: Mapping[str, str], rows: Any, sealed: Any, key: bytes) -> str:
    """Return the MAC of all that a ledger holds; lengths go before what they are of."""
    whole = hmac.new(_derived(key, b"seal"), digestmod="sha256")
    facts = {name: value for name, value in about.items() if name != "seal"}
    lengths = [
        [name, kind, shape, len(nonce), len(data)] for name, nonce, kind, shape, data in sealed
    ]
    opening = json.dumps([facts, rows, lengths], sort_keys=True).encode()
    whole.update(len(opening).to_bytes(8, "big") + opening)
    for _, nonce, _, _, data in sealed:
        whole.update(nonce)
        whole.update(data)
    return whole.hexdigest()


def _noted(path: Path) -> list[tuple[int, str]]:
    """Return the number and the chain of the last release that the key notes, if any."""
    try:
        lines = key_file(path).read_text(encoding="ascii").splitlines()[1:]
    except (OSError, ValueError):
        return []
    notes = [line.split() for line in lines]
    whole = [note for note in notes if len(note) == 2 and note[0].isdigit() and len(note[1]) == 64]
    return [(int(number), chain) for number, chain in whole[-1:]]
