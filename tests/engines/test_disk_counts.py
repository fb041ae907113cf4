"""Counting on disk: counts and verifications are those in memory, and memory is kept to."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microagg import InputError
from microagg.engines.release_counts import CountsOnDisk
from microagg.formats.batches import open_batches
from microagg.formats.files import read_file, write_file
from microagg.measure.count_by_keys import ClassCounter
from microagg.measure.row_keys import row_keys
from microagg.measure.verify import Question, count_promises, verify_all
from microagg.plan.plan import Promise

MEMORY = 1 << 22


def verify_batches(source, promises, scratch, memory, units=None):
    return count_promises(CountsOnDisk(source, scratch, memory, units or {}), promises)[0]


def in_batches(keys, units, at_once):
    for start in range(0, len(keys), at_once):
        stop = start + at_once
        yield keys[start:stop], None if units is None else units[start:stop]


@pytest.mark.parametrize("memory", [1, 1 << 17, 1 << 30])
@pytest.mark.parametrize("with_units", [False, True])
def test_counts_are_those_of_a_dictionary(tmp_path, memory, with_units):
    rng = np.random.default_rng(0)
    n = 60_000
    # Some combinations are rare, one is most of the table, and it has the most units.
    values = np.where(rng.random(n) < 0.5, 0, rng.geometric(0.0005, n))
    homes = rng.integers(0, 30_000, n)
    keys = row_keys([pa.array(values)])
    units = row_keys([pa.array(homes)]) if with_units else None
    counter = ClassCounter(tmp_path, memory, distinct=with_units)
    for some in in_batches(keys, units, 7000):
        counter.add(*some)
    found = counter.sizes()
    records, shared = Counter(values.tolist()), Counter(values.tolist())
    if with_units:
        shared = Counter(
            value for value, _ in set(zip(values.tolist(), homes.tolist(), strict=True))
        )
    assert found.n_records == n
    assert found.n_classes == len(records)
    assert found.fewest_units == min(shared.values())
    assert found.smallest == min(records.values())
    assert found.unique == sum(1 for own in records.values() if own == 1)
    sizes = Counter()
    for size, classes in zip(found.units.tolist(), found.classes.tolist(), strict=True):
        sizes[size] += classes
    assert sizes == Counter(shared.values())
    for k in (1, 2, 5, 50, 10**6):
        assert found.records_below(k) == sum(records[v] for v in records if shared[v] < k)


def test_files_are_used_where_memory_is_small_and_go_with_an_error(tmp_path):
    pq.write_table(
        pa.table({"a": np.arange(20_000), "b": np.arange(20_000)}), tmp_path / "in.parquet"
    )
    scratch, seen = tmp_path / "scratch", []
    scratch.mkdir()

    class Stopped(type(open_batches(tmp_path / "in.parquet"))):
        def batches(self, columns=None, at_once=1000):
            for batch in super().batches(columns, at_once):
                yield batch
                seen.append(len(list(scratch.rglob("*"))))
            raise KeyboardInterrupt

    source = open_batches(tmp_path / "in.parquet")
    source.__class__ = Stopped
    rows = CountsOnDisk(source, scratch, 1 << 16)
    for work in (
        lambda: rows.count([Question(["a"])]),
        lambda: rows.count([Question(["a"], "b")]),
        lambda: rows.count([Question(["a"], "b", common=True)]),
    ):
        seen.clear()
        with pytest.raises(KeyboardInterrupt):
            work()
        assert max(seen) > 1
        assert list(scratch.iterdir()) == []


_MANY = """
import resource, sys
from pathlib import Path
import numpy as np
from tempfile import TemporaryDirectory
from microagg.measure.count_by_keys import ClassCounter
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
def count(batches, memory):
    rng = np.random.default_rng(0)
    with TemporaryDirectory(dir=sys.argv[1]) as folder:
        counter = ClassCounter(Path(folder), memory)
        for _ in range(batches):
            counter.add(rng.integers(0, 2**64 - 1, (1 << 16, 2), dtype=np.uint64))
        return counter.sizes()
count(2, 1 << 16)
before = peak()
found = count(64, 1 << 24)
print(found.n_classes, peak() - before)
"""


@pytest.mark.linux
def test_memory_is_what_was_asked_for(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _MANY, tmp_path], capture_output=True, text=True, check=True
    )
    combinations, used = map(int, done.stdout.split())
    assert combinations == 64 << 16
    # The keys alone take 67 MB; asked for were 17 MB.
    assert used < 40e6


def test_nothing_is_counted_as_nothing(tmp_path):
    found = ClassCounter(tmp_path, 1).sizes()
    figures = (found.n_records, found.n_classes, found.smallest, found.fewest_units, found.unique)
    assert (*figures, found.records_below(5)) == (0,) * 6


def survey(n: int = 3000) -> pa.Table:
    rng = np.random.default_rng(0)
    pay = rng.integers(0, 4, n) / 2 * rng.choice([1.0, -1.0], n)
    city = rng.choice(["A", "B", "", "NA", " A", "00123"], n)
    return pa.table(
        {
            "age": rng.integers(0, 9, n),
            "pay": pa.array(pay, mask=rng.random(n) < 0.1),
            "city": pa.array(city, mask=rng.random(n) < 0.05),
            "home": rng.integers(0, 400, n),
            "firm": pa.array(rng.choice(["x", "y", "", "NA", "x "], n)),
            "odd": [*["1.5"] * (n - 2), "many", "2,5"],
            "comma": [*["1,5"] * (n - 1), "none"],
            "code": [f"{i % 7:05d}" for i in range(n)],
            "when": pa.array(rng.integers(0, 5, n), pa.timestamp("s")),
        }
    )


PROMISES = [
    Promise(5, ["age"]),
    Promise(3, ["age", "pay"]),
    Promise(10, ["pay", "city", "when"]),
    Promise(3, ["age", "city"], "home"),
    Promise(2, ["pay"], "firm"),
    Promise(4, None),
    Promise(4, None, "home"),
    Promise(2, "code"),
]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("memory", [1, 1 << 28])
def test_verifications_are_those_of_the_whole(tmp_path, ending, memory):
    path = tmp_path / f"in.{ending}"
    write_file(survey(), path)
    expected = verify_all(path, PROMISES)
    assert verify_batches(open_batches(path), PROMISES, tmp_path, memory) == expected
    assert len({one.smallest for one in expected}) > 2
    assert expected[5].left_out["odd"] == "2 odd cells, the first in row 2999"


def test_a_table_of_several_batches(tmp_path):
    path = tmp_path / "in.parquet"
    table = survey(140_000)
    odd = pa.chunked_array([["x"], table["odd"].chunk(0)[1:]]).combine_chunks()
    write_file(table.set_column(5, "odd", odd).append_column("late", table["odd"]), path)
    source = open_batches(path)
    assert len(list(source.batches(["age"]))) == 2
    expected = verify_all(path, PROMISES)
    assert expected[5].left_out["late"] == "2 odd cells, the first in row 139999"
    assert expected[5].left_out["odd"] == "3 odd cells, the first in row 1"
    assert verify_batches(source, PROMISES, tmp_path, MEMORY) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a,u\n1,x\n1.0,x\n1,y\n1.0,y\n1e0,y\n",
        "a,u\n1,x\n1,NA\n1,\n1,  x\n2, NA\n",
        'a,u\n"1",x\n1,y\n" 1",z\n,z\nNA,z\n',
        "a,b,u\n-0,0,1\n0,-0.0,1\n0,0,01\n",
    ],
)
def test_text_of_a_csv_file_is_counted_to_the_letter(tmp_path, text):
    path = tmp_path / "in.csv"
    path.write_text(text)
    promises = [Promise(2, ["a"]), Promise(2, ["a"], "u"), Promise(1, None, "u")]
    assert verify_batches(open_batches(path), promises, tmp_path, MEMORY) == verify_all(
        path, promises
    )


def test_a_folder_and_units_that_were_dropped(tmp_path):
    table = survey(300)
    for i in range(3):
        (tmp_path / f"year={i % 2}").mkdir(exist_ok=True)
        part = table.slice(100 * i, 100)
        pq.write_table(part.drop_columns(["home"]), tmp_path / f"year={i % 2}" / f"{i}.parquet")
    whole = read_file(tmp_path)
    homes = pa.array(np.arange(300) % 40)
    promises = [Promise(2, ["age", "year"], "home"), Promise(3, ["age"])]
    expected = verify_all(whole, promises, units={"home": homes})
    found = verify_batches(open_batches(tmp_path), promises, tmp_path, MEMORY, {"home": homes})
    assert found == expected
    for wrong in (homes[:-1], pa.concat_arrays([homes, homes])):
        with pytest.raises(InputError, match="one value for each of its records"):
            verify_batches(open_batches(tmp_path), promises, tmp_path, MEMORY, {"home": wrong})
    assert verify_batches(open_batches(tmp_path), [], tmp_path, MEMORY) == []


@pytest.mark.parametrize(
    ("promise", "table"),
    [
        (Promise(3, ["b"]), {"a": [1]}),
        (Promise(3, ["a"], "b"), {"a": [1]}),
        (Promise(3, ["a"], "a"), {"a": [1]}),
        (Promise(3, None), {"a": ["x"]}),
        (Promise(0, ["a"]), {"a": [1]}),
        (Promise(3, ["a"]), {"a": pa.array([], pa.int64())}),
    ],
)
def test_errors_are_those_of_the_whole(tmp_path, promise, table):
    path = tmp_path / "in.parquet"
    write_file(pa.table(table), path)
    with pytest.raises(InputError) as whole:
        verify_all(path, [promise])
    with pytest.raises(InputError) as parts:
        verify_batches(open_batches(path), [promise], tmp_path, MEMORY)
    assert str(parts.value) == str(whole.value)
