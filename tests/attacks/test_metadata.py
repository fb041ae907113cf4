"""Metadata: nothing that a release does not need goes out beside the values, in any format."""

import base64
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pyreadstat
import pytest

import microagg
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan
from microagg.tables.file_metadata import ColumnFacts, Labelled

N = 60
CANARY = "CANARY"
PLAN = Plan.of(k=3, columns=["age", "pay"], drop=["name"], confidential=["code"])


def values() -> dict[str, object]:
    rng = np.random.default_rng(3)
    age = rng.integers(18, 80, N)
    age[7] = 107
    return {
        "age": age,
        "pay": rng.lognormal(7, 0.5, N).round(2),
        "code": rng.integers(1, 4, N),
        "name": [f"{CANARY}{i}" for i in range(N)],
    }


def marked_arrow() -> pa.Table:
    """Every place of an Arrow schema has a canary, beside what a release needs."""
    nested = pa.struct([pa.field("zip", pa.int64(), metadata={CANARY: CANARY})])
    table = pa.table(values())
    table = table.append_column(
        "home", pa.array([{"zip": 1}] * N, pa.struct([("zip", pa.int64())]))
    )
    facts = Labelled(
        {
            "age": ColumnFacts(label="Age", value_labels=((107, f"{CANARY} Smith"),)),
            "code": ColumnFacts(
                label="Code",
                value_labels=((1, "one"), (2, "two"), (3, "three"), (4, CANARY)),
                missing=(4,),
            ),
        },
        "spss",
        label=f"{CANARY} survey",
        notes=(f"{CANARY} called twice",),
        table_name=CANARY,
        lost=(CANARY,),
    )
    fields = []
    for field in table.schema:
        kind = nested if field.name == "home" else field.type
        fields.append(pa.field(field.name, kind, metadata={CANARY: CANARY}))
    schema = facts.on(pa.schema(fields, {"author": CANARY, CANARY: "x"}))
    return table.cast(schema)


def marked_pandas() -> pd.DataFrame:
    frame = pd.DataFrame(values())
    frame.attrs["source"] = CANARY
    return frame


def content(path: Path) -> bytes:
    """All that a reader can find in a file, unpacked."""
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    found = b""
    for file in files:
        data = file.read_bytes()
        found += data
        if file.suffix == ".parquet":
            metadata = pq.read_metadata(file).metadata or {}
            found += b"".join(k + v for k, v in metadata.items())
            found += base64.b64decode(metadata.get(b"ARROW:schema", b""))
        if file.suffix == ".xlsx":
            with zipfile.ZipFile(file) as book:
                found += b"".join(book.read(name) for name in book.namelist())
        if file.suffix == ".zsav":
            found += b"".join(_unpacked(data, at) for at in range(len(data)) if data[at] == 0x78)
    return found


def _unpacked(data: bytes, at: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data[at:])
    except zlib.error:
        return b""


def written(folder: Path, ending: str) -> Path:
    """A file of some kind with canaries in all places that its format has for metadata."""
    path = folder / f"in{ending}"
    frame = pd.DataFrame(values())
    labels = {"age": {107: f"{CANARY} Smith"}, "code": {1: "one", 2: "two", 3: "three", 4: CANARY}}
    if ending == ".parquet":
        pq.write_table(marked_arrow(), path)
    elif ending == ".arrow":
        feather.write_feather(marked_arrow(), path, compression="uncompressed")
    elif ending == ".dta":
        pyreadstat.write_dta(frame, path, file_label=f"{CANARY} file", variable_value_labels=labels)
    elif ending == ".xpt":
        pyreadstat.write_xport(frame, path, file_label=CANARY, table_name=CANARY)
    else:
        pyreadstat.write_sav(
            frame,
            path,
            file_label=f"{CANARY} file",
            note=[f"{CANARY} note"],
            variable_value_labels=labels,
            missing_ranges={"code": [4]},
            compress=ending == ".zsav",
        )
    return path


@pytest.mark.parametrize("target", [".parquet", ".arrow", ".sav", ".zsav", ".dta", ".csv"])
@pytest.mark.parametrize("source", [".parquet", ".arrow", ".sav", ".zsav", ".dta", ".xpt"])
def test_no_metadata_but_what_a_release_needs(tmp_path, source, target):
    given = written(tmp_path, source)
    assert CANARY.encode() in content(given)
    plan = PLAN
    if source in (".parquet", ".arrow"):
        drop = ["name"] if target in (".parquet", ".arrow") else ["name", "home"]
        plan = PLAN.override(drop=drop)
    outcome = run(Job(given, tmp_path / f"out{target}", plan))
    assert CANARY.encode() not in content(tmp_path / f"out{target}")
    assert len([words for words in outcome.left_out if "does not need it" in words]) <= 1
    if target != ".csv":
        assert "Left out, because a release does not need it:" in outcome.left_out[-1]


@pytest.mark.parametrize("target", ["out.parquet", "folder"])
def test_the_same_on_disk(tmp_path, target):
    given = tmp_path / "in"
    given.mkdir()
    pq.write_table(marked_arrow(), given / "a.parquet")
    pq.write_table(marked_arrow(), given / "b.parquet")
    outcome = run(Job(given, tmp_path / target, PLAN, engine="disk"))
    assert CANARY.encode() not in content(tmp_path / target)
    (words,) = outcome.left_out
    for named in ("'author'", "label of the file", "notes", "'age', 'pay', 'code', 'home'"):
        assert named in words
    schema = pq.read_schema(next((tmp_path).glob(f"{target}/**/*.parquet"), tmp_path / target))
    assert ColumnFacts.of(schema.field("code")) == ColumnFacts(
        label="Code", value_labels=((1, "one"), (2, "two"), (3, "three"))
    )
    assert ColumnFacts.of(schema.field("age")) == ColumnFacts(label="Age")


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
@pytest.mark.parametrize("make", [marked_arrow, marked_pandas])
def test_frames_have_no_metadata_but_what_a_release_needs(tmp_path, make):
    frame = make()
    release = microagg.protect(frame, plan=PLAN)
    assert len(release.left_out) == 1
    if isinstance(frame, pd.DataFrame):
        assert frame.attrs == {"source": CANARY}
        assert release.data.attrs == {}
    else:
        assert CANARY not in release.data.schema.to_string(truncate_metadata=False)
        assert release.data.schema.field("home").type.field(0).metadata is None
        assert frame.equals(marked_arrow(), check_metadata=True)
    for name in ("out.parquet", "out.arrow"):
        release.write(tmp_path / name)
        assert CANARY.encode() not in content(tmp_path / name)


def test_what_pandas_needs_is_written_anew(tmp_path):
    frame = pd.DataFrame(
        {
            "age": pd.array(values()["age"], dtype="Int32"),
            "pay": pd.array(values()["pay"], dtype="Float64"),
            "code": pd.Categorical(list("abc") * 20, ordered=True),
            "seen": pd.date_range("2024-01-01", periods=N, tz="Europe/Berlin"),
            "flag": pd.array([True, None] * 30, dtype="boolean"),
            "text": pd.array(["x", "y"] * 30, dtype="string"),
            "wide": pd.array([2**60] * N, dtype="UInt64"),
        },
        index=pd.MultiIndex.from_arrays([range(N), list("uv") * 30], names=["no", None]),
    )
    frame.attrs["source"] = CANARY
    frame.to_parquet(tmp_path / "in.parquet")
    notes = pq.read_schema(tmp_path / "in.parquet").metadata[b"pandas"]
    assert CANARY.encode() in notes
    secret = ["code", "flag", "text", "wide"]
    plan = Plan.of(k=3, columns=["age", "pay"], confidential=secret, keep_order=True)
    outcome = run(Job(tmp_path / "in.parquet", tmp_path / "out.parquet", plan))
    after = pd.read_parquet(tmp_path / "out.parquet")
    assert after.attrs == {}
    protected = ["age", "pay"]
    pd.testing.assert_frame_equal(after.drop(columns=protected), frame.drop(columns=protected))
    assert CANARY.encode() not in content(tmp_path / "out.parquet")
    assert "the attributes of the pandas frame" in outcome.left_out[0]


def test_types_that_nobody_has_are_not_copied():
    table = pa.Table.from_pandas(pd.DataFrame({"age": range(9), "pay": range(9), "t": ["x"] * 9}))
    notes = table.schema.metadata[b"pandas"].decode()
    for word in ('"object"', '"int64"', '"unicode"', '"UTF-8"', '"pyarrow"'):
        hostile = notes.replace(word, f'"{CANARY}"')
        given = table.replace_schema_metadata({b"pandas": hostile.encode()})
        release = microagg.protect(given, k=3, columns=["age", "pay"], confidential=["t"])
        assert CANARY not in release.data.schema.to_string(truncate_metadata=False), word
