"""Keyed hashes of what a ledger must recognise and must not hold: units, known columns, strata, rows.

Keyed BLAKE2b is a MAC (RFC 7693) and takes a third of the time of an HMAC. The numbers have 61 random bits:
two of a million units have the same one with a chance of 2 in 10⁷.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from microagg.base.typing import Labels
from microagg.tables.frame import Frame, numbered_as_written


def hashed_texts(key: bytes, purpose: str, texts: Iterable[str]) -> Labels:
    """Return a number above 0 for each text, which only the key gives.

    Parameters
    ----------
    key : of the ledger
    purpose : up to 16 letters; the same text has other numbers for other purposes
    texts : any
    """
    keyed = hashlib.blake2b(key=key, digest_size=8, person=purpose.encode())
    digests = []
    for text in texts:
        digest = keyed.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), "<i8") & np.int64(2**62 - 1) | 1


def hashed_rows(
    key: bytes, purpose: str, frame: Frame, columns: Sequence[Any], is_csv: bool
) -> Labels:
    """Return a number above 0 for the values that each record has in some columns, as they are written.

    Parameters
    ----------
    key, purpose : as for :func:`hashed_texts`
    frame : the records
    columns : their names; none: all records have the same number
    is_csv : whether the values are text of a CSV file
    """
    codes, texts = np.zeros(len(frame), np.int64), [""]
    for name in columns:
        numbers, values = numbered_as_written(frame, name, is_csv)
        spelled = [None, *values.to_pylist()]
        pairs, codes = np.unique(codes * len(spelled) + numbers + 1, return_inverse=True)
        codes = codes.reshape(-1)
        # A missing value is not the word "None".
        texts = [
            f"{texts[b]}\0{name}" + ("" if spelled[v] is None else f"\0{spelled[v]!s}")
            for b, v in (divmod(pair, len(spelled)) for pair in pairs.tolist())
        ]
    return hashed_texts(key, purpose, texts)[codes]
