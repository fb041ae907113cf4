"""Addresses of tables: local paths, stores that pyarrow knows, standard input and output; nothing is read.

The ending of a file's name tells its format, without any library that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from microagg.errors import MicroaggError, TableError, shown

_ENDINGS = {
    "csv": ".csv .tsv .txt",
    "parquet": ".parquet .pq",
    "arrow": ".arrow .feather .ipc",
    "spss": ".sav .zsav .por",
    "stata": ".dta",
    "sas": ".xpt .sas7bdat",
    "excel": ".xlsx .xlsm .xlsb .xls .ods",
}
KINDS = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
ENDINGS = tuple(KINDS)
# What is only read, and the ending that is written instead.
_READ_ONLY = {".por": ".sav", ".sas7bdat": ".xpt"}
_READ_ONLY |= dict.fromkeys((".xlsm", ".xlsb", ".xls", ".ods"), ".xlsx")


def kind_by_ending(path: Path, writing: bool = False) -> str:
    """Tell the format of one file by its ``path``: csv, parquet, arrow, spss, stata, sas or excel.

    With ``writing`` a format that is only read is refused.

    >>> kind_by_ending(Path("survey.SAV"))
    'spss'
    """
    ending = path.suffix.lower()
    if writing and ending in _READ_ONLY:
        raise TableError(
            f"Files ending in {ending} are read, not written; {shown(str(path), 300)} would be one. Write "
            f"{_READ_ONLY[ending]} instead."
        )
    try:
        return KINDS[ending]
    except KeyError:
        raise TableError(
            f"The ending of a file's name tells its format; {shown(str(path), 300)} has none that is "
            f"known. Use one of {' '.join(KINDS)}."
        ) from None


STANDARD = Path("-")  # standard input or output
CODECS = {".gz": "gzip", ".zst": "zstd"}
_SCHEMES = ("s3", "gs", "gcs", "abfss", "abfs", "hdfs", "viewfs")


@dataclass(frozen=True)
class Address:
    """A file or folder in a store that pyarrow knows.

    As text it has no credentials: neither those before the host nor the settings after a question mark.

    >>> str(Address("s3://key:secret@bucket/in.csv?endpoint_override=localhost"))
    's3://bucket/in.csv'
    >>> str(Address("abfss://container:secret@account.dfs.core.windows.net/in.csv"))
    'abfss://container@account.dfs.core.windows.net/in.csv'
    """

    text: str = field(repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.text)
        user, _, host = parts.netloc.rpartition("@")
        container = user.partition(":")[0] if parts.scheme.startswith("abfs") else ""
        where = f"{container}@{host}" if container else host
        return f"{parts.scheme}://{where}{parts.path}"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return urlsplit(self.text).path.rstrip("/").rpartition("/")[2]

    @contextmanager
    def reached(self) -> Iterator[tuple[Any, str]]:
        """Open the file system of pyarrow, and give the path within it; errors are without credentials."""
        import pyarrow as pa
        from pyarrow import fs

        try:
            store, path = fs.FileSystem.from_uri(self.text)
        except (OSError, ValueError, pa.ArrowException) as error:
            # What pyarrow says may quote the address with its credentials.
            raise TableError(
                f"A store is named as in s3://bucket/folder/file.csv; {shown(str(self), 300)} cannot be "
                f"opened ({type(error).__name__}). Check the address, its settings and the credentials."
            ) from None
        try:
            yield store, path.rstrip("/")
        except MicroaggError:
            raise
        except (OSError, pa.ArrowException) as error:
            parts = urlsplit(self.text)
            message = (str(error).strip().splitlines() or [""])[0].rstrip(".")
            secrets = [parts.query, parts.netloc.rpartition("@")[0], parts.password or ""]
            if any(secret and secret in message for secret in secrets) or not message.isprintable():
                message = type(error).__name__
            raise TableError(
                f"Cannot use {shown(str(self), 300)}: {message[:300]}. Check the address and the credentials."
            ) from None


Place = Path | Address


def as_place(address: str | Path | Address) -> Place:
    """Take an ``address`` as that of a store, or as a local path."""
    scheme, mark, _ = address.partition("://") if isinstance(address, str) else ("", "", "")
    if mark and scheme.lower() in _SCHEMES:
        return Address(str(address))
    return address if isinstance(address, Address) else Path(address)


def is_plain(place: Place) -> bool:
    """Return whether ``place`` is a local file or folder that is read and written as it is."""
    return isinstance(place, Path) and place != STANDARD and place.suffix.lower() not in CODECS


def plain_name(place: Place) -> str:
    """Return the name of the local file that stands for ``place``, without the ending of a codec.

    >>> plain_name(Path("survey.csv.gz"))
    'survey.csv'
    """
    name = Path(place.name)
    if name.suffix.lower() not in CODECS:
        return place.name
    if KINDS.get(Path(name.stem).suffix.lower()) != "csv":
        raise TableError(
            f"Compressed files hold CSV, as in survey.csv.gz; {shown(str(place), 300)} does not end so. "
            "Other formats are compressed within; write .parquet, for example."
        )
    return name.stem
