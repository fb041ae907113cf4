"""What an engine says about a release is what memory measures in that very release, key by key, word by word.

Engines may form other groups. So each release is measured again here, in memory, from the original and the
written table, and the evidence of the engine must be the same: figures, cautions, sentences and JSON.
"""

import json
import os
import re
from collections import Counter
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attacks.mixed_cases import draw_wide
from command import here, said
from engine_tables import groups_by_row, mixed_table
from microagg import InputError
from microagg.engines import disk, disk_release
from microagg.engines.aggregates import GROUP
from microagg.engines.memory.table import Table
from microagg.engines.spark.spark_release import measured_in_one_task
from microagg.engines.write_and_count import as_required
from microagg.evidence import Evidence
from microagg.evidence.measuring import Measuring
from microagg.formats.files import read_file
from microagg.grouping.read_table import take_in
from microagg.grouping.require.from_plan import requirements_of
from microagg.job.job import Job
from microagg.job.observer import Observer
from microagg.job.run import run
from microagg.kernels.labels import canonical_labels, combine
from microagg.measure.known_columns import known_columns
from microagg.measure.read_protected import protected_values
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

# What is no measure of the release: files, and the groups as the search left them.
APART = {"files", "verified", "parts", "plan"}
# What is of a sample, where one is drawn; the note about it says so.
OF_SAMPLE = {
    "utility.changed", "utility.blanked", "utility.filled",
    "utility.analyses", "fidelity",
    "risk.alone.diversity", "risk.alone.individual", "risk.alone.linkage", "risk.alone.record_linkage",
    "risk.with_known.linkage", "risk.with_known.record_linkage",
    "risk.if_confidential_known.linkage", "risk.if_confidential_known.record_linkage",
    "risk.known_columns", "risk.pairing", "summaries", "cautions", "swap.pairing", "swap.standing",
}  # fmt: skip


# Groups that release the same are one class in the file, within which more is lost.
OF_GROUPS = {"group_loss", "utility.group_loss", "utility.group_loss_by_column", "requirements"}
# What may differ in a refusal: Spark has no rows, and disk counts those of a batch; of several parts of the
# table that cannot be grouped, each engine names the first that it comes to.
ROW = re.compile(r"some row|row [\d,]+ \([^()]*\)|[\d,]+ records(?= that share both)")
WORDS = [
    name
    for name, one in vars(Evidence).items()
    if name.endswith(("words", "promise")) and isinstance(one, property | cached_property)
]
SPARK_SEEDS = (8,)  # a job on Spark takes seconds
RANDOM_PLANS = int(os.environ.get("MICROAGG_RANDOM_PLANS", "8"))


def table(n: int = 500) -> pa.Table:
    """Columns of several kinds, missing values, weights, strata, persons with several records."""
    found = mixed_table(n)
    rng = np.random.default_rng(n)
    ill = rng.choice(["no", "flu", "cold"], len(found), p=[0.6, 0.3, 0.1])
    row = pa.array(np.arange(len(found)))
    return found.append_column("ill", pa.array(ill)).append_column("row", row)


def mixed_plan(**more) -> Plan:
    """A plan that asks for nearly everything at once."""
    return Plan.of(
        **{
            "k": 4,
            "columns": ["age", "in.come", "town", "wealth"],
            "kinds": {"town": "nominal", "age": {"kind": "number", "importance": 2.0}},
            "confidential": {"ill": "medical file"},
            "known": ["note", "row"],
            "drop": ["person"],
            "strata": ["region"],
            "weight": "weight",
            "unit": {"column": "person", "name": "person"},
            "require": {"distinct": {"ill": 2}},
            "missing": "majority",
            "max_loss": 60.0,
            "analyses": ["wealth by town"],
            "effort": "fast",
            **more,
        }
    )


def read(path: Path) -> Table:
    """A file as a job reads it; of a folder, whose rows are in any order, in the order of its row numbers."""
    if path.is_dir():
        return Table(Frame(pq.read_table(path).sort_by("row")), None, {})
    return Table.of(read_file(path))


def measured_again(
    source: Table, target: Table, said: Evidence, labels: np.ndarray | None = None
) -> Evidence:
    """The evidence of a written table, measured in memory.

    ``labels`` are the groups of swapped values, which a file does not tell; None: those of the evidence.
    """
    plan, before, after, text = said.plan, source.frame.native, target.frame.native, source.text
    if plan.missing.policy == "drop":
        filled = replace(plan, missing=replace(plan.missing, policy="fill"))
        found = take_in(source.frame, filled, text, source.coded).variables.values()
        kept = pa.array(~np.any([variable.missing for variable in found], axis=0))
        before, text = before.filter(kept), None if text is None else text.filter(kept)
    for at, column in enumerate(before.schema):
        if column.name not in after.column_names:
            after = after.add_column(at, column, before[column.name])
        elif pa.types.is_timestamp(column.type):  # which Spark counts in microseconds
            own = before[column.name].cast(after.schema.field(column.name).type)
            before = before.set_column(at, column.name, own)
    after = after.select(before.column_names)
    intake = take_in(Frame(before), plan, text)
    values = np.column_stack(
        [protected_values(v, intake.frame, Frame(after)) for v in intake.variables.values()]
    )
    states = _states(intake.plan, after)
    values[states != 0] = np.nan  # codes for missing values too
    part = said.parts[0]
    if labels is None:
        labels = part.partition.labels if plan.is_swapped else classes_of(target, said)
    labels = canonical_labels(labels)
    part = part._replace(
        rows=np.arange(len(before)), partition=replace(part.partition, labels=labels)
    )
    found = Measuring(
        plan,
        intake,
        [part],
        Frame(after),
        values,
        states,
        np.repeat(labels[:, None], values.shape[1], axis=1),
        said.signs.missing_counts,
    ).measured()
    block = intake.plan.blocks[0]
    unit, units = intake.plan.unit_of(block).column, intake.units_of(block)
    required = [
        as_required(rule, rule.say(rule.figure(labels)), rule.holds(labels))
        for rule in requirements_of(intake.frame, block, units, unit, intake.weights)
    ]
    counted = replace(said.counted, required=tuple(required))
    found = replace(found, counted=counted, dropped=said.dropped, formulas=said.formulas)
    return replace(Evidence.of(plan, found), rejected=said.rejected)


def classes_of(target: Table, said: Evidence) -> np.ndarray:
    """Number of the combination of shared values of each record, as the file has them."""
    written = target.frame if target.text is None else Frame(target.text)
    shared = known_columns(written, [*said.roles.protected, *said.plan.also_shared()])
    return combine([column.codes for column in shared.values()])


def _states(plan: Plan, after: pa.Table) -> np.ndarray:
    """States of the released values, in which each code for missing is one of its own."""
    for at, name in enumerate(after.column_names):
        texts = after[name].type in (pa.string(), pa.large_string())
        if texts and plan.column(name).kind == "date" and not any(after[name].to_pylist()):
            # Blanked throughout: a CSV file does not tell that these were dates.
            after = after.set_column(at, name, pa.nulls(len(after), pa.date32()))
    read = take_in(Frame(after), replace(plan, missing=replace(plan.missing, policy="fill")))
    return np.column_stack([variable.states for variable in read.variables.values()])


def differences(said, found, path="", apart=frozenset()):
    """Where two pieces of evidence differ, with both values; figures have three digits."""
    if path.lstrip(".") in apart:
        return
    if isinstance(said, dict) and isinstance(found, dict):
        for key in {**said, **found}:
            if key not in said or key not in found:
                yield f"{path}.{key} is on one side only"
            else:
                yield from differences(said[key], found[key], f"{path}.{key}", apart)
    elif isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        if path.endswith(".estimates"):  # by first appearance, which rows of Spark have none of
            said, found = (sorted(one, key=lambda group: group["name"]) for one in (said, found))
        for j, pair in enumerate(zip(said, found, strict=True)):
            yield from differences(*pair, f"{path}[{j}]", apart)
    elif isinstance(said, float) and isinstance(found, float | int):
        if said != pytest.approx(found, rel=0.011, abs=0.0011):
            yield f"{path}: {said} and {found}"
    elif _without_advice(said) != _without_advice(found):
        yield f"{path}: {said} and {found}"


def _without_advice(words):
    """What is said, without the advice to require different values: only a release can try what cures it."""
    if not isinstance(words, str):
        return words
    return re.sub(
        r"(This prevents it|No requirement that|Require different values|Raise k, or protect).*",
        "",
        words,
    )


class Ended(NamedTuple):
    """How a job ended: with evidence and a written table, or refused."""

    said: Evidence | None
    after: Table | None
    refused: str = ""


def work(folder: Path, engine: str, plan: Plan, source: Path) -> Ended:
    """Do a job; the written table has its rows in the order of the source."""
    target, rejected = (folder / f"{engine} {name}{source.suffix}" for name in ("out", "rejected"))
    for path in (target, rejected):
        rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if engine != "spark":  # whose rows are found by their numbers
        plan = plan.override(keep_order=True)
    try:
        said = run(Job(source, target, plan, engine=engine, keep_rejected=rejected)).evidence
    except InputError as error:
        assert not target.exists()
        return Ended(None, None, ROW.sub("some", str(error)))
    return Ended(said, read(rejected if said.rejected else target))


def check(
    source: Path, ended: Ended, apart: set[str] = frozenset(), labels: np.ndarray | None = None
) -> None:
    """Compare evidence with that which memory finds in the written table, and with its groups if it swaps."""
    said, after = ended.said, ended.after
    classes = 1 + int(classes_of(after, said).max())
    if not said.plan.is_swapped and classes < said.parts[0].partition.n_groups:
        apart = {*apart, *OF_GROUPS}
    found = measured_again(read(source), after, said, labels)
    told = list(differences(said.as_dict(), found.as_dict(), apart=APART | apart))
    assert not told, told
    for words in [] if "cautions" in apart else WORDS:
        if words != "loss_words" or "group_loss" not in apart:
            assert getattr(said, words) == getattr(found, words), words


def spark_groups(monkeypatch) -> list[np.ndarray]:
    """Get the groups of a release on Spark, by the numbers of the rows: its evidence has no records."""
    groups = []

    def measured(grouped, measure):
        groups.append(measured_in_one_task(grouped, groups_by_row).labels)
        return measured_in_one_task(grouped, measure)

    monkeypatch.setattr("microagg.engines.spark.spark_release.measured_in_one_task", measured)
    return groups


@pytest.mark.parametrize("release", ["mean", "swap"])
def test_the_evidence_is_that_of_the_written_table(engine, release, tmp_path, monkeypatch):
    source = tmp_path / "in.parquet"
    pq.write_table(table(), source)
    groups = spark_groups(monkeypatch)
    ended = work(tmp_path, engine, mixed_plan(release=release), source)
    labels = groups[0] if engine == "spark" and release == "swap" else None
    check(source, ended, labels=labels)
    found = measured_again(read(source), ended.after, ended.said, labels).as_dict()
    (told,) = differences(ended.said.as_dict(), {**found, "information_loss": 1.0}, apart=APART)
    assert told.startswith(".information_loss")


def test_the_evidence_about_codes_that_became_their_parents(engine, tmp_path):
    parents = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "b3": "b", "a": "all", "b": "all"}
    code = np.array(["a1", "a2", "b1", "b2", "b3"])[np.arange(90) % 23 % 5]
    x = np.random.default_rng(0).normal(size=90)
    pq.write_table(pa.table({"x": x, "code": code, "row": range(90)}), tmp_path / "in.parquet")
    kinds = {"x": "number", "code": {"kind": "hierarchy", "parents": parents}}
    coarsen = {"code": {"rare": 18}}
    plan = Plan.of(k=3, columns=["x", "code"], known=["row"], kinds=kinds, coarsen=coarsen)
    ended = work(tmp_path, engine, plan, tmp_path / "in.parquet")
    assert set(ended.after.frame.native["code"].to_pylist()) & {"a", "b"}
    check(tmp_path / "in.parquet", ended)


def firms() -> pa.Table:
    """Monthly sales of firms, as the reference table of utilities has them: each firm is a stratum."""
    chance = np.random.default_rng(3)
    firm = np.repeat(np.arange(40), chance.integers(3, 9, 40))
    sales = np.exp(chance.normal(8, 1, 40))[firm] * chance.normal(1, 0.1, (2, len(firm)))
    return pa.table({"firm": firm, "sales": sales[0], "revenue": sales[1]})


def ages() -> pa.Table:
    """Ages within decades, which give most of an age away."""
    age = np.random.default_rng(4).integers(18, 90, 400)
    return pa.table({"age": age, "decade": age // 10, "town": age % 3})


def commanded(folder: Path, engine: str, plan: Plan) -> tuple[int, dict]:
    """Let the command do a job: its exit code and JSON, which say what words and report say."""
    (folder / "plan.toml").write_text(plan.to_toml())
    target, page = folder / f"{engine} by command.parquet", folder / f"{engine}.html"
    asked = ["protect", folder / "in.parquet", target, "--plan", folder / "plan.toml"]
    done = here(*asked, "--engine", engine, "--strict", "--json", "--report", page)
    told, words = json.loads(done.stdout), said(done)
    report = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    for what in ("verdict", "verdict_words", "cautions", "thresholds", "risk", "utility"):
        assert told[what] == report[what], what
    for caution in report["cautions"]:  # notes are said with --verbose
        assert caution["severity"] == "note" or caution["words"] in words
    assert report["verdict_words"] in words
    assert target.exists() is (done.returncode == 0)
    return done.returncode, told


COMMANDS = {
    "firms": (firms, Plan.of(k=3, columns=["sales", "revenue"], strata=["firm"])),
    "decades": (ages, Plan.of(k=3, columns=["age"], strata=["decade"], drop=["town"])),
    "mixed": (table, mixed_plan(drop=["person", "row"], known=["note"])),
}


@pytest.mark.parametrize(
    ("engine", "command"),
    [
        *(("disk", command) for command in COMMANDS),
        ("spark", "firms"),
        *(pytest.param("spark", one, marks=pytest.mark.long) for one in ("decades", "mixed")),
    ],
    indirect=["engine"],
)
def test_the_command_says_the_same_on_every_engine(engine, tmp_path, command):
    made, plan = COMMANDS[command]
    pq.write_table(made(), tmp_path / "in.parquet")
    code, told = commanded(tmp_path, engine, plan)
    expected, by_memory = commanded(tmp_path, "memory", plan)
    assert code == expected == (0 if told["verdict"] == "green" else 1)
    assert told["verdict"] == by_memory["verdict"]
    assert told.keys() == by_memory.keys()
    gists = [
        {(one["severity"], *one["columns"]) for one in some["cautions"]}
        for some in (told, by_memory)
    ]
    assert gists[0] == gists[1]


def test_every_engine_says_how_far_it_is(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("microagg.job.engine_in_parts._EVERY", 0.01)
    monkeypatch.setattr(disk, "LEAF", 2500)
    heard = []

    class Hears(Observer):
        def progress(self, stage, done, total):
            heard.append((stage, int(done), total))

    rng = np.random.default_rng(2)
    pq.write_table(
        pa.table({name: rng.normal(size=9000) for name in "ab"}), tmp_path / "in.parquet"
    )
    job = Job(tmp_path / "in.parquet", tmp_path / "out.parquet", Plan.of(k=3, columns=["a", "b"]))
    run(replace(job, engine=engine), Hears())
    shares = [done / total for stage, done, total in heard if stage == "grouping"]
    assert shares
    assert 0 <= min(shares) < max(shares) <= 1


@pytest.mark.parametrize("release", ["mean", "swap"])
def test_what_is_of_a_sample_is_what_is_said_to_be(release, tmp_path, monkeypatch):
    monkeypatch.setattr("microagg.engines.aggregates._SAMPLED", 150)
    count, groups = disk_release.count_release, []

    def counted(rows, *more):
        groups.append(np.unique(rows.units[GROUP], return_inverse=True)[1] if rows.units else None)
        return count(rows, *more)

    monkeypatch.setattr(disk_release, "count_release", counted)
    source = tmp_path / "in.parquet"
    pq.write_table(table(), source)
    plan = mixed_plan(unit=None, drop=["person", "row"], known=["note"], release=release)
    ended = work(tmp_path, "disk", plan, source)
    assert ended.said.signs.looked_at < ended.said.records
    check(source, ended, OF_SAMPLE, groups[0])
    assert ended.said.cautions[-1].words.startswith(
        "Promise, loss, classes and totals were counted in all"
    )


def ends_of(case, folder, engines) -> set[str]:
    """Protect a random table on several engines; the verdicts, or the words of a refusal."""
    source, ends = folder / f"drawn{case.ending}", set()
    case.write(source)
    for engine in engines:
        ended = work(folder, engine, case.plan, source)
        if ended.said is not None:
            check(source, ended)
        ends.add(ended.refused or ended.said.verdict)
    return ends


def sweep(folder, seeds, engines, only_parquet=False, **settings) -> Counter:
    """Count how random plans end; a plan that one engine refuses, all refuse in the same words."""
    ends: Counter = Counter()
    for seed in seeds:
        try:
            case = draw_wide(seed, only_parquet)
            case = replace(case, plan=case.plan.override(**settings))
        except InputError:  # settings that exclude each other
            continue
        try:
            found = ends_of(case, folder, engines)
            refused = found - {"green", "amber", "red"}
            assert not refused or len(found) == 1, found
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        ends.update(["refused"] if refused else found)
    return ends


@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("release", ["mean", "swap"])
def test_the_evidence_of_random_plans_is_that_of_the_written_tables(tmp_path, release):
    seeds = [*range(RANDOM_PLANS), 30]  # the last ends green with means
    ends = sweep(tmp_path, seeds, ["memory", "disk"], release=release)
    assert ends["amber"] + ends["green"] + ends["red"] >= RANDOM_PLANS / 2, ends
    assert ends["green"] or release == "swap", ends


def test_the_evidence_of_random_plans_on_spark_is_that_of_the_written_tables(spark, tmp_path):
    ends = sweep(tmp_path, SPARK_SEEDS, ["spark"], only_parquet=True)
    assert ends["amber"] + ends["green"] == len(SPARK_SEEDS), ends


@pytest.mark.long
def test_the_evidence_of_more_random_plans_on_spark(spark, tmp_path):
    sweep(tmp_path, range(9, 30), ["memory", "spark"], only_parquet=True)


@pytest.mark.long
@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("start", range(1000, 4000, 500))
def test_the_evidence_of_three_thousand_random_plans(tmp_path, start):
    sweep(tmp_path, range(start, start + 500), ["memory", "disk"])
