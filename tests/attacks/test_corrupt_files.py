"""Files with flipped bits: each is read as some table or refused in a sentence, never a crash.

Every file is read in a process of its own, forked from one that has loaded everything, so that
a signal, a hang or a foreign error is seen. ``make test-all`` tries many more of them.
"""

import json
import os
import random
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pyreadstat
import pytest

from microagg import MicroaggError
from microagg.formats.files import read_file, write_file
from microagg.formats.layouts import CsvFormat
from microagg.measure.known_columns import known_columns
from microagg.measure.verify import verify_all
from microagg.plan.plan import Promise
from microagg.tables.frame import Frame

QUICK, LONG = range(12), range(12, 712)  # files of each kind
SECONDS = 600  # until a hang is taken for one
_ANSWER = "faults: "


def table() -> pa.Table:
    """Many types, since each is damaged in its own way."""
    n = 300
    text = [f"text {i % 7}" * (i % 5) for i in range(n)]
    return pa.table(
        {
            "age": np.arange(n) % 90,
            "pay": np.linspace(0.0, 1e6, n),
            "text": text,
            "big": pa.array(text, pa.large_string()),
            "view": pa.array(text, pa.string_view()),
            "city": pa.array(text).dictionary_encode(),
            "code": pa.array([i % 3 for i in range(n)]).dictionary_encode(),
            "kids": [[i, None] * (i % 3) for i in range(n)],
            "home": [{"zip": f"{i:05}", "no": i} for i in range(n)],
            "paid": pa.array(
                [Decimal(i) if i % 4 else None for i in range(n)], pa.decimal128(9, 2)
            ),
            "seen": pa.array(range(n), pa.timestamp("us", "Europe/Berlin")),
            "flag": [i % 2 == 0 for i in range(n)],
        }
    )


def with_columns(*names: str) -> Callable[[Path], None]:
    """Write some columns of the table."""
    return lambda path: write_file(table().select(list(names)), path)


def as_parquet(path: Path) -> None:
    whole = table().drop_columns("view")
    pq.write_table(whole, path, row_group_size=100, compression={"age": "ZSTD", "text": "SNAPPY"})


def as_plain_arrow(path: Path) -> None:
    feather.write_feather(_with_runs(), path, compression="uncompressed", chunksize=100)


def as_zipped_arrow(path: Path) -> None:
    feather.write_feather(_with_runs(), path, compression="zstd")


def _with_runs() -> pa.Table:
    whole = table()
    return whole.append_column(
        "runs", pc.run_end_encode(pc.divide(whole["age"], 10).combine_chunks())
    )


def _survey() -> pd.DataFrame:
    """What a file of a statistical package holds."""
    n = 120
    return pd.DataFrame(
        {
            "AGE": [float(i % 90) for i in range(n)],
            "PAY": np.linspace(0, 1e6, n),
            "CITY": [["Aachen", "Zürich", "", "Łódź"][i % 4] for i in range(n)],
            "SEX": [float(1 + i % 2) for i in range(n)],
        }
    )


_LABELS = {"variable_value_labels": {"SEX": {1: "männlich", 2: "weiblich"}}}
_MISSING = {"missing_ranges": {"AGE": [{"lo": 88, "hi": 99}]}}


def surveyed(write: Callable[..., None], **settings: Any) -> Callable[[Path], None]:
    """Write the survey with pyreadstat."""
    return lambda path: write(_survey(), path, **settings)


def as_portable(path: Path) -> None:
    plain = _survey().replace({"Zürich": "Zurich", "Łódź": "Lodz"})
    pyreadstat.write_por(plain, path, column_labels={"AGE": "Age"})


def as_folder(path: Path) -> None:
    """Parquet files in folders that tell a column."""
    for year in (2023, 2024):
        (path / f"year={year}").mkdir(parents=True)
        as_parquet(path / f"year={year}" / "part.parquet")


def in_encoding(encoding: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        lines = ["alter;stadt;betrag", *(f"{i % 90};Züri{i % 3};{i},5" for i in range(200))]
        path.write_bytes("\r\n".join(lines).encode(encoding))

    return write


def as_beginning_of_sas(path: Path) -> None:
    """Nothing writes SAS tables but SAS: here a header of 64-bit Unix and pages of noise."""
    magic = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
    head = bytearray(magic + b"33" + bytes(65_536 - 34))
    head[35], head[37], head[39] = 0x33, 1, 0x31
    head[84:92], head[92:156], head[156:164] = b"SAS FILE", b"SURVEY".ljust(64), b"DATA    "
    head[196:200] = (65_536).to_bytes(4, "little")
    head[200:204] = (4_096).to_bytes(4, "little")
    head[204:212] = (4).to_bytes(8, "little")
    path.write_bytes(bytes(head) + random.Random(1).randbytes(4 * 4_096))


WRITERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "csv": ("csv", with_columns("age", "pay", "text", "paid", "seen", "flag")),
    "parquet": ("parquet", as_parquet),
    "arrow": ("arrow", as_plain_arrow),
    "zipped arrow": ("arrow", as_zipped_arrow),
    "spss": ("sav", surveyed(pyreadstat.write_sav, **_LABELS, **_MISSING)),
    "zipped spss": ("zsav", surveyed(pyreadstat.write_sav, **_LABELS, compress=True)),
    "portable": ("por", as_portable),
    "stata": ("dta", surveyed(pyreadstat.write_dta, **_LABELS)),
    "transport": ("xpt", surveyed(pyreadstat.write_xport)),
    "workbook": ("xlsx", with_columns("age", "pay", "text", "flag")),
    "folder": ("", as_folder),
    "csv in utf-16": ("csv", in_encoding("utf-16")),
    "csv in latin-1": ("csv", in_encoding("latin-1")),
    "sas": ("sas7bdat", as_beginning_of_sas),
}


UNREADABLE = ("sas",)
ENCODINGS = {"csv in latin-1": "latin-1"}


def part_to_damage(path: Path, seed: int) -> Path:
    """The file that is damaged: of a folder one of its files."""
    if path.is_dir():
        return path / f"year={2023 + seed % 2}" / "part.parquet"
    return path


def damaged(data: bytes, seed: int) -> bytes:
    """Flip bits anywhere, or in the metadata at either end; or cut, repeat or zero a stretch."""
    chance = random.Random(seed)
    spoilt = bytearray(data)
    low, high = chance.choice([(0, len(data)), (0, 2000), (max(0, len(data) - 4000), len(data))])
    low, high = min(low, len(data) - 1), min(high, len(data))
    way = chance.choice(["bits", "bits", "bits", "bytes", "cut", "repeat", "zero"])
    start = chance.randrange(low, high)
    end = min(len(data), start + chance.randrange(1, 64))
    if way == "bits":
        for _ in range(chance.choice([1, 1, 2, 8])):
            spoilt[chance.randrange(low, high)] ^= 1 << chance.randrange(8)
    elif way == "bytes":
        spoilt[chance.randrange(low, high)] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
    elif way == "cut":
        del spoilt[start:end]
    elif way == "repeat":
        spoilt[start:start] = spoilt[start:end]
    else:
        spoilt[start:end] = bytes(end - start)
    return bytes(spoilt)


def use(path: Path, encoding: str | None = None) -> None:
    """Do all that a run does with a table: read it, look at each column, count, write it."""
    try:
        form = CsvFormat(encoding=encoding)
        read = read_file(path, csv=form)
        frame = Frame(read.table)
        for name in frame.names:
            known_columns(frame, [name])
            frame.odd_numbers(name)
            if frame.is_numeric(name):
                frame.levels(name)
        if path.is_file() and path.suffix not in (".por", ".sas7bdat"):
            write_file(read.as_written, path.with_name(f"copy{path.suffix}"), read.format)
        verify_all(path, [Promise(2, None)], csv=form)
    except MicroaggError as error:
        sentence = str(error)
    else:
        return
    assert sentence.isprintable()
    assert len(sentence) < 2000
    assert sentence.endswith(".")


def fault_of(path: Path, encoding: str | None = None) -> str | None:
    """Use a file in a forked process; return what went wrong, if anything did."""
    errors = path.with_name("error")
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(SECONDS)  # which ends a process that hangs
            use(path, encoding)
            code = 0
        except BaseException:
            errors.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        return signal.Signals(-code).name
    return errors.read_text() if code else None


def main() -> None:
    """Use the damaged files that lines on stdin ask for, and answer each line with the faults by seed."""
    warnings.simplefilter("ignore")
    pa.set_cpu_count(1)  # other threads do not come along when a process is forked
    for line in sys.stdin:
        kind, folder, low, high = json.loads(line)
        print(_ANSWER + json.dumps(faults_of(kind, Path(folder), range(low, high))), flush=True)


def faults_of(kind: str, folder: Path, seeds: range) -> dict[int, str]:
    """Use many damaged files of one kind; return the faults by seed."""
    ending, write = WRITERS[kind]
    path = folder / (f"in.{ending}" if ending else "in")
    write(path)
    encoding = ENCODINGS.get(kind)
    use(path, encoding)  # loads all that the processes need
    if kind not in UNREADABLE:  # as it is, the file is read
        verify_all(path, [Promise(1, None)], csv=CsvFormat(encoding=encoding))
    faults = {}
    for seed in seeds:
        part = part_to_damage(path, seed)
        data = part.read_bytes()
        part.write_bytes(damaged(data, seed))
        fault = fault_of(path, encoding)
        part.write_bytes(data)
        if fault is not None:
            faults[seed] = fault
    return faults


@pytest.fixture(scope="module")
def faults() -> Iterator[Callable[[Path, str, range], dict[str, str]]]:
    """Ask one process for the faults of every kind: loading everything takes longer than most kinds."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(folder: Path, kind: str, seeds: range) -> dict[str, str]:
            asked = json.dumps([kind, str(folder), seeds.start, seeds.stop])
            print(asked, file=process.stdin, flush=True)
            answer = next((said for said in process.stdout if _ANSWER in said), None)
            assert answer is not None, "the process ended"
            found: dict[str, str] = json.loads(answer.partition(_ANSWER)[2])
            return found

        yield ask


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("seeds", [QUICK, pytest.param(LONG, marks=pytest.mark.long)])
@pytest.mark.posix
def test_damaged_files_are_refused_in_a_sentence(faults, tmp_path, kind, seeds):
    assert faults(tmp_path, kind, seeds) == {}


if __name__ == "__main__":
    main()
