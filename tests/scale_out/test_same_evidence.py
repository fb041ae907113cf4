"""What an engine says of a release is what memory measures in that very release, key by key.

Engines may form other groups. So each release is measured anew here, in memory, from the original and the
written table, and the evidence of the engine must be the same: figures, cautions and words.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microagg.evidence import Evidence
from microagg.evidence.measuring import Measuring
from microagg.groups import canonical_labels
from microagg.intake import take_in
from microagg.job import Job, run
from microagg.measure.classes import combine
from microagg.measure.known import known_columns
from microagg.measure.reading import protected_values
from microagg.plan import Plan
from microagg.tables.frames import Frame
from scale_out.tables import mixed_table

# What is no measure of the release: files, and the groups as the search left them.
APART = {"files", "verified", "parts", "plan", "requirements"}
# What is of a sample, where one is drawn; the note about it says so.
OF_SAMPLE = {
    "utility.il1s", "utility.il1s_by_column", "utility.mean_deviation", "utility.variance_deviation",
    "utility.covariance_deviation", "utility.correlation_deviation", "utility.eigenvalue_deviation",
    "utility.quantile_deviation", "utility.total_variation", "utility.propensity", "utility.changed",
    "utility.blanked", "utility.filled", "utility.association_deviation", "utility.contingency_deviation",
    "risk.alone.sd_disclosure", "risk.alone.sd_disclosure_protected", "risk.alone.rank_disclosure",
    "risk.alone.diversity", "risk.alone.individual", "risk.alone.linkage", "risk.alone.record_linkage",
    "risk.with_known.linkage", "risk.with_known.record_linkage",
    "risk.if_confidential_known.linkage", "risk.if_confidential_known.record_linkage",
    "risk.known_columns", "summaries", "cautions",
}  # fmt: skip


def table(n: int = 500) -> pa.Table:
    """Columns of several kinds, missing values, weights, strata, persons with several records."""
    found = mixed_table(n)
    rng = np.random.default_rng(n)
    ill = rng.choice(["no", "flu", "cold"], len(found), p=[0.6, 0.3, 0.1])
    row = pa.array(np.arange(len(found)))
    return found.append_column("ill", pa.array(ill)).append_column("row", row)


def drawn_plan(seed: int, **more) -> Plan:
    """A plan of which a seed decides what it asks for."""
    chance = np.random.default_rng(seed)

    def some(**settings):
        return settings if chance.random() < 0.6 else {}

    return Plan.of(
        **{
            "k": int(chance.integers(3, 6)),
            "columns": ["age", "in.come", "town", "wealth"],
            "kinds": {"town": "nominal", "age": {"kind": "number", "importance": 2.0}},
            "confidential": {"ill": "medical file"},
            "known": ["note"],
            "drop": ["person", "row"],
            "missing": str(chance.choice(["pattern", "majority"])),
            "effort": "fast",
            **some(strata=["region"]),
            **some(weight="weight"),
            **some(unit={"column": "person", "name": "person"}),
            **some(require={"distinct": {"ill": 2}}),
            **some(max_loss=60.0),
            **more,
        }
    )


def measured_again(before: pa.Table, after: pa.Table, said: Evidence) -> dict:
    """The evidence of a written table, measured in memory."""
    plan = said.plan
    for at, column in enumerate(before.schema):
        if column.name not in after.column_names:
            after = after.add_column(at, column, before[column.name])
    after = after.select(before.column_names)
    intake = take_in(Frame(before), plan)
    values = np.column_stack(
        [protected_values(v, Frame(before), Frame(after)) for v in intake.variables.values()]
    )
    shared = known_columns(Frame(after), [*said.roles.protected, *plan.shared_beside()])
    labels = canonical_labels(combine([column.codes for column in shared.values()]))
    part = said.parts[0]
    part = part._replace(
        rows=np.arange(len(before)), partition=replace(part.partition, labels=labels)
    )
    found = Measuring(
        plan,
        intake,
        [part],
        Frame(after),
        values,
        np.isnan(values).astype(np.int64),
        np.repeat(labels[:, None], values.shape[1], axis=1),
        said.cells,
    ).measured()
    return Evidence(plan, replace(found, counted=said.counted)).as_dict()


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
        for j, pair in enumerate(zip(said, found, strict=True)):
            yield from differences(*pair, f"{path}[{j}]", apart)
    elif isinstance(said, float) and isinstance(found, float | int):
        if said != pytest.approx(found, rel=0.011, abs=0.0011):
            yield f"{path}: {said} and {found}"
    elif _without_price(said) != _without_price(found):
        yield f"{path}: {said} and {found}"


def _without_price(words):
    """The advice to require different values, without what it would cost: only a release can try that."""
    if not isinstance(words, str):
        return words
    priced = r"This cures it: (--require [^,]*), at a loss of at most .* in place of .* %\."
    return re.sub(priced, r"Require different values: \1.", words)


def work(folder, engine, plan, before):
    source, target = folder / "in.parquet", folder / f"{engine}.parquet"
    pq.write_table(before, source)
    target = folder / "out" if engine == "spark" else target
    return run(Job(source, target, plan, engine=engine)).evidence, pq.read_table(target)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_the_evidence_is_that_of_the_written_table(tmp_path, engine, seed):
    before = table()
    said, after = work(tmp_path, engine, drawn_plan(seed), before)
    found = measured_again(before, after, said)
    assert list(differences(said.as_dict(), found, apart=APART)) == []
    (told,) = differences(said.as_dict(), {**found, "information_loss": 1.0}, apart=APART)
    assert told.startswith(".information_loss")


def test_the_evidence_of_spark_is_that_of_the_written_table(spark, tmp_path):
    before = table()
    plan = drawn_plan(1, known=["note", "row"], drop=["person"])
    said, after = work(tmp_path, "spark", plan, before)
    found = measured_again(before, after.sort_by("row"), said)
    # Linkage with confidential columns is that of the sample, which here has all records.
    assert list(differences(said.as_dict(), found, apart=APART)) == []


def test_what_is_of_a_sample_is_what_is_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setattr("microagg.scale_out.aggregates._SAMPLED", 150)
    before = table()
    said, after = work(tmp_path, "disk", drawn_plan(0), before)
    assert said.measured.sampled < len(before)
    found = measured_again(before, after, said)
    assert list(differences(said.as_dict(), found, apart=APART | OF_SAMPLE)) == []
    assert said.cautions[-1].words.startswith("Promise, loss, classes and totals are of all")
    assert found["verdict"] == said.verdict
