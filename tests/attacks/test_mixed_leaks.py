"""What releases of mixed tables once told, or claimed, and must not."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from microagg.engines.memory.protect import protect_table
from microagg.engines.memory.release import Release
from microagg.errors import InputError
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame
from mixed import smallest_class


def released(frame, **settings) -> Release:
    return protect_table(Frame(frame), Plan.of(**settings))


def public(release: Release):
    return release.report_model(public=True)


# The released weight is in the file, too: with known columns it may single out.


def test_green_counts_the_released_weight_together_with_known_columns():
    frame = pd.DataFrame({"a": [1.0] * 4 + [9.0] * 4, "sex": ["f", "m"] * 4})
    frame.insert(1, "w", [1.0, 1, 3, 3, 2, 2, 2, 2])
    found = released(frame, k=2, columns=["a"], weight="w", method="mdav")
    assert smallest_class(found.data, ["a", "sex"]) == 2
    assert smallest_class(found.data, ["a", "w", "sex"]) == 1
    assert found.with_known.smallest_class == 1
    assert found.with_known.below_k == 0.5
    assert found.evidence.verdict == public(found)["verdict"] == "amber"


def test_agreement_in_a_secret_is_counted_within_strata():
    """Two strata have the same released value: by it alone their secrets differ, within each they do not."""
    frame = pd.DataFrame({"a": ["x"] * 4, "s": [1, 1, 2, 2], "ill": ["flu", "flu", "cold", "cold"]})
    found = released(frame, k=2, columns=["a"], strata=["s"], confidential=["ill"])
    agreement = found.risk.diversity["ill"].agreement
    assert agreement.exact + agreement.harmless == 4


# Strata are counted as the file has them.


def test_merged_strata_are_known_as_they_are_released():
    rng = np.random.default_rng(0)
    strata = ["x"] * 9 + ["y"] * 9 + ["z"] * 2
    frame = pd.DataFrame({"a": rng.normal(size=20), "s": strata})
    found = released(frame, k=3, columns=["a"], strata={"columns": ["s"], "small": "merge"})
    assert smallest_class(found.data, ["a", "s"]) == found.with_known.smallest_class == 3
    assert found.evidence.signs.recoded > 0
    assert found.evidence.verdict == "green"


def test_strata_are_merged_only_where_a_record_has_one_group():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    frame["s"] = ["x"] * 79 + ["y"]
    plan = Plan.of(k=2, per_column=True, strata={"columns": ["s"], "small": "merge"})
    with pytest.raises(InputError, match="its own groups"):
        protect_table(Frame(frame), plan)  # columns that nobody named are found in the table


@pytest.mark.parametrize("texts", [["1.0", "1.00"], ["n", "n "], ["1", "1.0"]])
def test_strata_of_a_csv_file_are_told_apart_by_their_text(tmp_path: Path, texts):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    pd.DataFrame({"a": np.arange(8) + 0.5, "s": texts * 4}).to_csv(source, index=False)
    run(Job(source, target, Plan.of(k=2, columns=["a"], strata=["s"], keep_order=True)))
    after = pd.read_csv(target, dtype=str)
    assert after["s"].tolist() == texts * 4
    assert smallest_class(after, ["a", "s"]) >= 2


# A type may list categories that no released record has: they tell of the originals.

VALUES = ["red"] * 5 + ["blue"] * 5 + ["canary"]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"c": pd.Categorical(VALUES)}),
        pd.DataFrame({"c": pd.Categorical(VALUES, ["red", "blue", "canary"], ordered=True)}),
        pd.DataFrame(
            {"c": pd.Series(pd.arrays.ArrowExtensionArray(pa.array(VALUES).dictionary_encode()))}
        ),
        pa.table({"c": pa.array(VALUES).dictionary_encode()}),
        pl.DataFrame({"c": pl.Series(VALUES, dtype=pl.Categorical)}),
    ],
    ids=["pandas", "ordered", "pandas of arrow", "arrow", "polars"],
)
@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_no_list_of_categories_tells_what_only_originals_have(tmp_path: Path, frame, ending):
    found = released(frame, k=3, columns=["c"], kinds={"c": "nominal"})
    path = tmp_path / f"safe{ending}"
    found.write(path)
    assert b"canary" not in path.read_bytes()
    assert b"blue" in path.read_bytes()  # else nothing could be found in it
    assert "canary" not in json.dumps(public(found))


@pytest.mark.parametrize("column", ["c", "d"])
def test_no_list_of_categories_tells_what_left_out_records_have(tmp_path: Path, column):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4, None], "c": list("rrbb?"), "d": list("ssttt")})
    frame.loc[4, column] = "canary"
    frame = frame.astype({"c": "category", "d": "category"})
    found = released(frame, k=2, columns=["a", "c"], missing="drop")
    found.write(tmp_path / "safe.parquet")
    assert b"canary" not in (tmp_path / "safe.parquet").read_bytes()
    assert len(found.data) == 4


# Public words about units are counted in units, or say that they are not.


@pytest.mark.parametrize("what", ["drop", "renumber", "known"])
def test_public_green_is_about_units(what):
    frame = pd.DataFrame(
        {"a": [1.0, 1, 2, 2] * 2, "hh": np.repeat([1, 2, 3, 4], 2), "sex": ["f"] * 4 + ["m"] * 4}
    )
    settings = {} if what == "known" else {what: ["hh"]}
    found = released(frame, k=2, columns=["a"], unit="hh", method="mdav", **settings)
    model = public(found)
    assert found.evidence.verdict == model["verdict"] == "amber"
    assert ("does not tell" in model["counted"]) == (what == "drop")


def test_public_green_where_known_columns_split_no_group():
    frame = pd.DataFrame({"a": [1.0, 1, 2, 2], "hh": [1, 2, 3, 4], "sex": ["f"] * 4})
    found = released(frame, k=2, columns=["a"], unit="hh", drop=["hh"])
    assert found.evidence.verdict == public(found)["verdict"] == "green"


# Mean weights keep totals, whatever the type of the column.


@pytest.mark.parametrize("library", ["pandas", "nullable", "pandas of arrow", "arrow", "polars"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.decimal128(8, 2), pa.int16()], ids=str)
def test_mean_weights_keep_totals_in_columns_of_few_digits(library, kind):
    rng = np.random.default_rng(1)
    weights = pa.array(rng.integers(1, 9, 24), pa.int16()).cast(kind)
    values = pa.array(rng.normal(size=24))
    frame = pa.table({"a": values, "w": weights})
    total = sum(map(float, weights.to_pylist()))
    if library == "polars":
        frame = pl.from_arrow(frame)
    elif library == "nullable":
        frame = frame.to_pandas().convert_dtypes()
    elif library != "arrow":
        mapper = pd.ArrowDtype if library == "pandas of arrow" else None
        frame = frame.to_pandas(types_mapper=mapper)
    found = released(frame, k=3, columns=["a"], weight="w").data
    plain = found.to_pydict() if library == "arrow" else found
    w, a = ([float(value) for value in plain[name]] for name in ("w", "a"))
    assert sum(w) == pytest.approx(total, rel=1e-6)
    given = [float(x) * y for x, y in zip(weights.to_pylist(), values.to_pylist(), strict=True)]
    assert sum(x * y for x, y in zip(w, a, strict=True)) == pytest.approx(
        sum(given), abs=1e-6 * (24 + total)
    )


# Proofs say what they are about.


def claims(release: Release) -> tuple[str, str]:
    bound = release.with_bound().evidence
    return bound.proof(bound.parts[0])


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    return frame.assign(
        s=["x", "y"] * (n // 2), w=rng.uniform(1, 9, n), u=rng.integers(0, n // 3, n)
    )


def test_a_bound_within_strata_is_one_of_groups_that_keep_to_them():
    frame = table()[["a", "b", "s"]]
    word, sentence = claims(released(frame, k=3, columns=["a", "b"], strata=["s"]))
    assert word.startswith("by at most")
    assert "that keep to strata" in sentence


def test_a_bound_without_weights_is_none_of_a_loss_with_them():
    frame = table()[["a", "b", "w"]]
    settings = {"k": 3, "columns": ["a", "b"], "bound": True, "method": "mdav"}
    weight = {"column": "w", "grouping": "plain"}
    word, sentence = claims(released(frame, **settings, weight=weight))
    assert word == "not known"
    assert "plans with a weight" in sentence


@pytest.mark.parametrize(
    "settings",
    [{"unit": "u"}, {"weight": "w", "strata": ["s"]}, {"require": {"distinct": {"u": 2}}}],
    ids=["unit", "weight", "require"],
)
def test_no_part_is_called_exact_that_satisfies_more_than_k(settings):
    found = released(table(), k=3, columns=["a"], drop=["b"], **settings).evidence.as_dict()
    assert found["parts"][0]["guarantee"] == "heuristic"
    assert "exact:" not in found["parts"][0]["proof"]


@pytest.mark.parametrize("keep_order", [None, False, True])
def test_the_public_page_tells_known_values_apart_as_the_file_does(tmp_path, keep_order):
    source, target, report = (tmp_path / name for name in ("in.csv", "out.csv", "r.html"))
    source.write_text("a,wave\n1,1.5\n2,1.50\n8,1.5\n9,1.50\n")
    plan = Plan.of(k=2, columns=["a"], keep_order=keep_order)
    outcome = run(Job(source, target, plan, report=report, public=True))
    assert "1.50" in target.read_text()
    assert outcome.evidence.verdict == "amber"
    assert json.loads(report.with_suffix(".json").read_text())["verdict"] == "amber"
