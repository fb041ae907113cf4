"""Tables in other places than plain files: an S3 server on the loopback, compressed CSV, standard streams."""

import gzip
import hashlib
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

import microagg
from command import here, said
from microagg.errors import TableError, VerificationError
from microagg.formats import remote
from microagg.formats.addresses import Address, as_place

ASKED = ["--k", 3, "--columns", "age,income", "--method", "mdav", "--keep-order"]
SECRET = "sEcrEt"


@pytest.fixture(scope="module")
def server():
    """A server of S3, and how an address says where it is."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    yield f"?scheme=http&endpoint_override={host}:{port}&region=us-east-1"
    moto.stop()


@pytest.fixture
def bucket(server, request):
    """An address in a bucket of this test."""
    name = f"b{abs(hash(request.node.name))}"
    store = fs.FileSystem.from_uri(
        f"s3://key:{SECRET}@{name}/x{server}&allow_bucket_creation=true"
    )[0]
    store.create_dir(name)

    def address(path: str) -> str:
        return f"s3://key:{SECRET}@{name}/{path}{server}"

    return address


def opened(address: str) -> tuple[fs.FileSystem, str]:
    return fs.FileSystem.from_uri(address)


def put(address: str, content: bytes) -> None:
    store, path = opened(address)
    with store.open_output_stream(path) as stream:
        stream.write(content)


def get(address: str) -> bytes:
    store, path = opened(address)
    with store.open_input_stream(path) as stream:
        return stream.read()


def names_in(address: str) -> list[str]:
    store, path = opened(address)
    found = store.get_file_info(fs.FileSelector(path.split("/")[0], recursive=True))
    return sorted(one.path.partition("/")[2] for one in found if one.type == fs.FileType.File)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"age": rng.integers(18, 90, 40), "income": rng.lognormal(8, 1, 40).round(2)}
    )


@pytest.fixture
def safe(table, tmp_path):
    """What a job with local files gives."""
    table.to_csv(tmp_path / "in.csv", index=False)
    done = here("protect", tmp_path / "in.csv", tmp_path / "local.csv", *ASKED)
    assert done.returncode == 0, done.stderr
    return (tmp_path / "local.csv").read_bytes()


def test_a_store_gives_and_gets_what_local_files_do(bucket, table, safe, tmp_path):
    given = table.to_csv(index=False).encode()
    put(bucket("in.csv"), given)
    report = tmp_path / "report.html"
    done = here(
        "protect", bucket("in.csv"), bucket("out.csv"), *ASKED, "--report", report, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert get(bucket("out.csv")) == safe
    assert names_in(bucket("x")) == ["in.csv", "out.csv"]  # and no temporary file
    told = json.loads(report.with_suffix(".json").read_text())
    assert told["files"]["input"]["sha256"] == hashlib.sha256(given).hexdigest()
    assert told["files"]["output"]["sha256"] == hashlib.sha256(safe).hexdigest()
    assert told["files"]["output"]["path"] == str(as_place(bucket("out.csv")))
    everything = done.stdout + done.stderr + report.read_text() + json.dumps(told)
    for hidden in (SECRET, "endpoint_override", "microagg-files-"):
        assert hidden not in everything
    assert "s3://b" in said(done)


def test_every_other_command_reads_from_a_store(bucket, table, safe):
    put(bucket("in.csv.gz"), gzip.compress(table.to_csv(index=False).encode()))
    put(bucket("out.csv"), safe)
    verified = here("verify", bucket("out.csv"), "--k", 3)
    assert (verified.returncode, "k = 3 holds" in said(verified)) == (0, True)
    measured = here("measure", bucket("in.csv.gz"), bucket("out.csv"), "--json")
    assert measured.returncode == 0, measured.stderr
    drafted = here("plan", bucket("in.csv.gz"), "--json")
    assert drafted.returncode == 0, drafted.stderr
    for done in (verified, measured, drafted):
        assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_folder_in_a_store(bucket, table, engine, tmp_path):
    for part in range(2):
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pandas(table[20 * part : 20 * part + 20]), sink)
        put(bucket(f"in/{part}.parquet"), sink.getvalue())
    put(bucket("out/old.parquet"), b"old")
    words = ["protect", bucket("in"), bucket("out"), *ASKED, "--engine", engine]
    refused = here(*words, "--no-overwrite")
    assert (refused.returncode, "exists" in said(refused)) == (2, True)
    done = here(*words)
    assert done.returncode == 0, done.stderr
    assert names_in(bucket("x")) == [
        *(f"in/{j}.parquet" for j in "01"),
        *(f"out/{j}.parquet" for j in "01"),
    ]
    found = pd.concat([pd.read_parquet(io.BytesIO(get(bucket(f"out/{j}.parquet")))) for j in "01"])
    assert len(found) == 40
    assert microagg.verify(found, 3, ["age", "income"]).holds


def test_what_is_rejected_or_arrives_otherwise_takes_no_name(bucket, table, monkeypatch, tmp_path):
    put(bucket("in.csv"), table.to_csv(index=False).encode())
    put(bucket("out.csv"), b"of before")
    words = ["protect", bucket("in.csv"), bucket("out.csv"), *ASKED]
    kept = tmp_path / "rejected.csv"
    done = here(*words, "--max-loss", 0.01, "--keep-rejected", kept)
    assert done.returncode == 1
    assert "out.csv' was not released" in said(done)
    assert (get(bucket("out.csv")), len(pd.read_csv(kept))) == (b"of before", 40)
    monkeypatch.setattr(remote, "_sent", lambda *_: "another hash")
    with pytest.raises(VerificationError, match="is not what was written"):
        microagg.protect_file(bucket("in.csv"), bucket("out.csv"), k=3, columns=["age", "income"])
    assert names_in(bucket("x")) == ["in.csv", "out.csv"]
    assert get(bucket("out.csv")) == b"of before"


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("nothing.csv", "out.csv", "There is no file 's3://"),
        ("torn.parquet", "out.csv", "torn.parquet' is no complete parquet file"),
        ("in.csv", "out.parquet.gz", "Compressed files hold CSV"),
        ("in.csv", "out.xyz", "The ending of a file's name tells its format; 'out.xyz'"),
        ("in.csv", "", "names no file"),
    ],
)
def test_what_stores_cannot_give_is_said_without_credentials(bucket, table, source, target, told):
    put(bucket("in.csv"), table.to_csv(index=False).encode())
    put(bucket("torn.parquet"), b"PAR1")
    done = here("protect", bucket(source), bucket(target), *ASKED)
    assert (done.returncode, told in said(done)) == (2, True), done.stderr
    assert SECRET not in done.stderr
    assert "microagg-files-" not in done.stderr


def test_spark_is_told_to_read_stores_itself(bucket):
    done = here("protect", bucket("in"), bucket("out"), *ASKED, "--engine", "spark")
    assert (done.returncode, "microagg.spark.protect" in said(done)) == (2, True)


@pytest.mark.parametrize(
    "text",
    [
        "s3://key:pass@/",
        "s3://key:pass@bucket/a b?nonsense=pass",
        "hdfs://user:pass@nowhere.invalid:1/x.csv?pass=pass",
    ],
)
def test_addresses_that_are_none_keep_their_secrets(text):
    place = as_place(text)
    assert isinstance(place, Address)
    assert "pass" not in f"{place} {place!r}"
    with pytest.raises(TableError) as raised:
        place.reached().__enter__()
    assert "pass" not in str(raised.value)


@pytest.mark.parametrize(
    ("ending", "engine"), [(".csv.gz", "memory"), (".tsv.gz", "memory"), (".csv.zst", "disk")]
)
def test_compressed_files_in_and_out(table, safe, tmp_path, ending, engine):
    separator = "\t" if "tsv" in ending else ","
    given, target = tmp_path / f"given{ending}", tmp_path / f"safe{ending}"
    codec = "zstd" if ending.endswith("zst") else "gzip"
    with pa.CompressedOutputStream(str(given), codec) as out:
        out.write(table.to_csv(index=False, sep=separator).encode())
    words = ["protect", given, target, *ASKED, "--engine", engine]
    done = here(*words, "--json")
    assert done.returncode == 0, done.stderr
    with pa.CompressedInputStream(str(target), codec) as back:
        found = pd.read_csv(io.BytesIO(back.read()), sep=separator)
    if engine == "memory":
        pd.testing.assert_frame_equal(found, pd.read_csv(io.BytesIO(safe)))
    assert microagg.verify(found, 3, ["age", "income"]).holds
    files = json.loads(done.stdout)["files"]
    for one, path in (("input", given), ("output", target)):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert files[one] == {"path": str(path), "sha256": digest}
    before = target.read_bytes()
    assert here(*words, "--no-overwrite").returncode == 2
    assert here(*words, "--max-loss", 0.01).returncode == 1
    assert target.read_bytes() == before


def test_a_torn_compressed_file_is_refused(table, tmp_path):
    whole = gzip.compress(table.to_csv(index=False).encode())
    (tmp_path / "in.csv.gz").write_bytes(whole[: len(whole) // 2])
    done = here("protect", tmp_path / "in.csv.gz", tmp_path / "out.csv", *ASKED)
    assert (done.returncode, "in.csv.gz' is no complete gzip file" in said(done)) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv.gz"]


def through_pipes(given: bytes, *words: object) -> tuple[int, bytes, str]:
    """Run the command with bytes as standard input; what it writes are bytes too."""
    from typer.testing import CliRunner

    from microagg.cli.main import app

    done = CliRunner().invoke(app, [str(word) for word in words], input=given)
    return done.exit_code, done.stdout_bytes, done.stderr


def test_csv_through_pipes(table, safe):
    given = table.to_csv(index=False).encode()
    code, out, _ = through_pipes(given, "protect", "-", "-", *ASKED)
    assert (code, out) == (0, safe)
    code, out, err = through_pipes(given, "protect", "-", "-", *ASKED, "--max-loss", 0.01)
    assert (code, out) == (1, b"")
    assert "'-' was not released" in err
    code, out, err = through_pipes(given, "protect", "-", "-", *ASKED, "--json")
    assert (code, "--json has no place" in " ".join(err.split())) == (2, True)


def test_arrow_through_pipes(table, safe):
    whole = pa.Table.from_pandas(table, preserve_index=False)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole, max_chunksize=7)
    code, out, err = through_pipes(sink.getvalue(), "protect", "-", "-", *ASKED)
    assert code == 0, err
    found = pa.ipc.open_stream(out).read_all().to_pandas()
    pd.testing.assert_frame_equal(found, pd.read_csv(io.BytesIO(safe)))
    torn = sink.getvalue()[:-200]
    code, out, err = through_pipes(torn, "protect", "-", "-", *ASKED)
    assert (code, out, "no complete one" in " ".join(err.split())) == (2, b"", True)


@pytest.mark.posix
def test_a_private_folder_goes_with_its_run(tmp_path, monkeypatch, table):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    orphan = tmp_path / "microagg-files-killed"
    orphan.mkdir()
    (orphan / "in.csv").write_text("of a run that was killed")
    with remote.private_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        with remote.private_folder(tmp_path) as other:
            assert folder.exists()
            assert other.exists()
    assert list(tmp_path.iterdir()) == []
