"""What goes wrong in a real run: full disk, kill, a promise not kept. Nothing half is left."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import microagg
from microagg import VerificationError
from microagg.formats.files import write_file

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

ENDINGS = ["csv", "parquet", "arrow"]
AGE = [30, 31, 34, 61, 65, 66]
SMALL = pa.table({"age": AGE, "city": list("ABABBA")})


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def command(*words: object, first: str = "pass") -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, which may do something first."""
    become = "os.execv(sys.executable, [sys.executable, '-m', 'microagg', *sys.argv[1:]])"
    return subprocess.run(
        [sys.executable, "-c", f"import os, resource, sys; {first}; {become}", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


# Full disk


@pytest.mark.parametrize(("ending", "same"), [("csv", False), ("parquet", True), ("arrow", True)])
@pytest.mark.linux
def test_a_limit_of_the_system_while_writing(tmp_path, ending, same):
    limit = 1 << 20
    source = tmp_path / f"in.{ending}"
    target = source if same else tmp_path / f"out.{ending}"
    rows = 300
    chance = np.random.default_rng(0)
    text = [chance.bytes(8192).hex() for _ in range(rows)]  # cannot be compressed below the limit
    write_file(pa.table({"x": list(range(rows)), "text": text}), source)
    before = source.read_bytes()
    assert len(before) > 2 * limit

    done = command(
        *("protect", source, target, "--k", 3, "--columns", "x", "--known", "text"),
        first=f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))",
    )

    assert done.returncode == 2, done.stderr
    assert "Error: Cannot write" in done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert names(tmp_path) == [source.name]
    assert source.read_bytes() == before


# A promise not kept


@pytest.fixture(params=["too small a group", "records lost"])
def broken(request, monkeypatch):
    """Make what is written break the promise."""
    whole = write_file

    def spoil(table, path, form=None):
        if request.param == "records lost":
            table = table.slice(0, 3)
        else:
            ages = table["age"].to_pylist()
            table = table.set_column(0, "age", pa.array([ages[0] + 1.0, *ages[1:]]))
        whole(table, path, form)

    monkeypatch.setattr("microagg.engines.write_and_count.write_file", spoil)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("old", [None, "old"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_does_not_hold_is_taken_away(tmp_path, old, ending):
    target = tmp_path / f"out.{ending}"
    if old:
        target.write_text(old)
    before = names(tmp_path)
    release = microagg.protect(SMALL, k=3, columns=["age"])
    with pytest.raises(VerificationError, match=r"was read back and does not hold.*was removed"):
        release.write(target)
    assert names(tmp_path) == before
    assert old is None or target.read_text() == old


def test_an_aggregate_that_singles_a_record_out_is_found(tmp_path, monkeypatch):
    # The package has a function of the name of this module.
    module = importlib.import_module("microagg.engines.memory.protect")
    monkeypatch.setattr(module, "released_frame", lambda frame, *_, **__: frame.native)
    release = microagg.protect(SMALL, k=3, columns=["age"])
    with pytest.raises(
        VerificationError,
        match=r"6 of 6 records are there and 6 share their values in 'age' with too few others for k = 3",
    ):
        release.write(tmp_path / "out.csv")
    assert names(tmp_path) == []


@pytest.mark.usefixtures("broken")
def test_the_command_exits_with_1_when_the_file_does_not_hold(tmp_path, capsys):
    from microagg.cli.main import app

    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("age,city\n" + "".join(f"{a},X\n" for a in AGE))
    target.write_text("old")
    with pytest.raises(SystemExit) as caught:
        app(["protect", str(source), str(target), "--k", "3", "-c", "age", "--quiet"])
    assert caught.value.code == 1
    assert "does not hold" in capsys.readouterr().err
    assert names(tmp_path) == ["in.csv", "out.csv"]
    assert target.read_text() == "old"
