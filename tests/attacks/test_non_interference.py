"""Public output is a function of the released file and the plan, but for bands.

Two originals that differ in one record and lead to the same released file must give byte-identical
public reports; where a band's edge lies between them, they must be so but for the bands.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from typer.testing import CliRunner

from attacks.mixed_cases import draw_mixed
from attacks.originals import (
    Case,
    change_one_record,
    draw_case,
    public_files,
    public_twin,
    released,
    same_file,
)
from microagg.cli.main import app
from microagg.engines.memory.release import Release
from microagg.errors import InputError
from microagg.report.public import EDGES, TIMES, bands_of

_TRIES = 16  # changes that are tried on one table in search of one that the file does not show


def figures(release: Release) -> dict[str, float]:
    """What the bands are made of, in percent; of tables, as a multiple of what another sample gives."""
    found = release.evidence
    return {
        "information_loss": found.utility.information_loss,
        "record_linkage_alone": 100 * found.alone.record_linkage,
        "record_linkage_with_known": 100 * found.with_known.record_linkage,
        "unique_before": 100 * found.alone.unique_before,
        "tables_one": found.fidelity.multiple(1),
        "tables_two": found.fidelity.multiple(2),
        "tables_three": found.fidelity.multiple(3),
    }


def an_edge_lies_between(name: str, a: float, b: float) -> bool:
    low, high = sorted((a, b))
    return any(low < edge <= high for edge in (TIMES if name.startswith("tables") else EDGES))


def hidden_pair(seed: int) -> tuple[Release, Release] | None:
    """Two releases of one file from originals that differ in one record; None if none was found."""
    rng = np.random.default_rng(seed)
    case = draw_case(rng)
    try:
        one = released(case)
    except InputError:  # too few units for k
        return None
    for attempt in range(_TRIES):  # a large change first: the larger, the more a leak would show
        changed = change_one_record(rng, case, one, 3 * 0.6**attempt)
        if changed.table.equals(case.table):
            continue
        other = released(changed)
        if other.plan == one.plan and same_file(one, other):
            return one, other
    return None


def mixed_case(seed: int) -> Case | None:
    """A mixed table and a plan that draws nothing from chance: no order, no new numbers."""
    try:
        drawn = draw_mixed(seed)
    except InputError:  # settings that exclude each other
        return None
    plan = replace(
        drawn.plan,
        keep_order=True,
        renumber=(),
        drop=tuple(dict.fromkeys([*drawn.plan.drop, *drawn.plan.renumber])),
        # A change of one member of a mean shows in no file only if few digits are released.
        digits=None if drawn.plan.relations else -4,
    )
    return Case(plan, pa.Table.from_pandas(drawn.frame, preserve_index=False))


def hidden_mixed_pair(seed: int) -> tuple[Release, Release, str] | None:
    """The same for mixed tables: a category, a date, a missing value, a weight or a unit is another one."""
    case = mixed_case(seed)
    if case is None:
        return None
    try:
        one = released(case)
    except InputError:
        return None
    rng = np.random.default_rng(seed)
    hidden = [name for name in ("household", "turnover") if name in one.roles.dropped]
    if one.plan.weight is not None and one.plan.weight.release == "drop":
        hidden.append("w")
    for _ in range(_TRIES // 2):
        name = str(rng.choice([*one.roles.protected, *hidden]))
        row, other_row = rng.integers(case.table.num_rows, size=2).tolist()
        values = case.table[name].to_pylist()
        value = None if name in one.roles.protected and rng.random() < 0.3 else values[other_row]
        if value == values[row]:
            continue
        values[row] = value
        at = case.table.column_names.index(name)
        column = pa.array(values, case.table[name].type)
        try:
            other = released(Case(case.plan, case.table.set_column(at, name, column)))
        except InputError:
            continue
        if same_file(one, other):
            return one, other, name
    return None


def check_pair(one: Release, other: Release, folder: Path, pages: bool) -> bool:
    """Check that public output tells the two apart by bands only; return whether it does."""
    twins = [public_twin(release, folder / side) for release, side in ((one, "a"), (other, "b"))]
    bands = [bands_of(release.evidence) for release in (one, other)]
    if bands[0] == bands[1]:
        assert twins[0] == twins[1]
        if pages:
            files = [public_files(r, folder / side) for r, side in ((one, "a"), (other, "b"))]
            assert files[0] == files[1]
            assert files[0][1].decode() == twins[0]
        return False
    before, after = figures(one), figures(other)
    for name in before:
        is_between = an_edge_lies_between(name, before[name], after[name])
        assert (bands[0][name] != bands[1][name]) == is_between
    models = [json.loads(twin) for twin in twins]
    assert [model.pop("bands") for model in models] == bands
    assert models[0] == models[1]
    return True


def run_pairs(
    wanted: int, first_seed: int, folder: Path, pages_of_each: int
) -> tuple[int, int, int]:
    """Check this number of pairs; return how many tables were drawn, and in how many pairs figures differ.

    First in a band, which may be told; then in the three digits of the loss, which must not be.
    """
    pairs = apart = differ = 0
    seed = first_seed
    while pairs < wanted:
        pair = hidden_pair(seed)
        if pair is not None:
            apart += check_pair(*pair, folder / str(seed), pages=pairs % pages_of_each == 0)
            differ += len({f"{side.utility.information_loss:.3g}" for side in pair}) == 2
            pairs += 1
        seed += 1
    return seed - first_seed, apart, differ


def test_originals_with_the_same_file_have_the_same_public_report(tmp_path):
    tables, apart, differ = run_pairs(12, 0, tmp_path, pages_of_each=10)
    assert tables < 50  # else the search for pairs has become a search for easy ones
    assert apart < 6
    assert differ >= 3  # where the public report would show a figure that is no band


def run_mixed_pairs(seeds: range, folder: Path) -> Counter[str]:
    """Check the pairs that are found; count what differs in them."""
    found: Counter[str] = Counter()
    for seed in seeds:
        pair = hidden_mixed_pair(seed)
        if pair is not None:
            check_pair(pair[0], pair[1], folder / str(seed), pages=seed % 10 == 0)
            found[pair[2]] += 1
    return found


KINDS = {"nominal", "ordinal", "boolean", "hierarchy", "date", "w", "household"}


@pytest.mark.parametrize(
    ("seeds", "least", "kinds"),
    [
        (range(30), 3, set()),
        pytest.param(range(1_000, 2_000), len(KINDS), KINDS, marks=pytest.mark.long),
    ],
)
def test_mixed_originals_with_the_same_file_have_the_same_public_report(
    tmp_path, seeds, least, kinds
):
    found = run_mixed_pairs(seeds, tmp_path)
    print(found)
    assert sum(found.values()) >= 8
    assert len(found) >= least  # kinds of columns
    assert kinds <= set(found)


@pytest.mark.long
@pytest.mark.parametrize("first_seed", range(10_000, 50_000, 10_000))
def test_the_same_in_two_thousand_pairs(tmp_path, first_seed):
    tables, apart, _ = run_pairs(500, first_seed, tmp_path, pages_of_each=50)
    print(f"500 pairs from {tables} tables; a band's edge lay between {apart}")
    assert apart < 100


def test_the_command_writes_the_same_public_report_for_both_originals(tmp_path):
    """Folders, times and the names of inputs differ; the median hides the change of one member."""
    rng = np.random.default_rng(0)
    income = rng.lognormal(7, 0.5, 40).round()
    outputs = []
    for side, last in (("house-of-alice", 0.0), ("house-of-bob", 1.0)):
        folder = tmp_path / side
        folder.mkdir()
        values = income.copy()
        values[np.argmax(values)] += last  # not the middle one of its group
        source = folder / f"{side}.csv"
        pacsv.write_csv(pa.table({"income": values, "region": ["n", "s"] * 20}), source)
        words = ["protect", source, folder / "safe.csv", "-k", 5, "-c", "income", "--public"]
        words += ["--aggregate", "median", "--report", folder / "r.html", "--max-loss", 90]
        words += ["--keep-order"]
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        outputs.append([(folder / name).read_bytes() for name in ("safe.csv", "r.html", "r.json")])
    assert outputs[0] == outputs[1]
    assert b"house-of" not in outputs[0][1] + outputs[0][2]
    assert "max_loss" not in outputs[0][2].decode()
