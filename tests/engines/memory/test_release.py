"""Release: what leaves the house, in every frame library; units; several blocks; what it shows."""

import pickle
import re
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import microagg
from microagg import VerificationError
from microagg.formats.files import read_file

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

N = 60
RNG = np.random.default_rng(5)
COLUMNS = {
    "name": [f"person {i}" for i in range(N)],
    "household": [f"h{i // 3}" for i in range(N)],
    "age": RNG.integers(18, 90, N).tolist(),
    "income": RNG.lognormal(8, 1, N).round(2).tolist(),
    "illness": RNG.choice(["flu", "cold", "none"], N).tolist(),
}
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.fixture(params=MAKERS)
def frame(request):
    return MAKERS[request.param](COLUMNS)


def columns_of(data):
    """Columns of any frame as lists."""
    if isinstance(data, pa.Table):
        return data.to_pydict()
    return {name: data[name].to_list() for name in data.columns}


def protect(frame, **settings):
    chosen = {"k": 3, "columns": ["age", "income"], "method": "mdav", **settings}
    given = [*chosen.get("drop", ()), *chosen.get("renumber", ())]
    there = frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)
    if "name" in there and "name" not in given:  # it points to single records
        chosen["known"] = ["name"]
    return microagg.protect(frame, **chosen)


# What leaves the house


def test_dropped_columns_are_gone_and_the_others_stay(frame):
    release = protect(frame, drop=["name", "household"])
    assert type(release.data) is type(frame)
    data = columns_of(release.data)
    assert list(data) == ["age", "income", "illness"]
    assert data["illness"] == COLUMNS["illness"]
    assert columns_of(frame) == COLUMNS  # the table given is never changed


def test_renumbered_ids_keep_who_is_equal_and_nothing_else(frame):
    data = columns_of(protect(frame, renumber=["name", "household"]).data)
    assert list(data) == list(COLUMNS)
    for name in ("name", "household"):
        pairs = set(zip(COLUMNS[name], data[name], strict=True))
        values = set(COLUMNS[name])
        assert len(pairs) == len(values)  # one number for each value, and back
        assert sorted({number for _, number in pairs}) == list(range(1, len(values) + 1))
    again = columns_of(protect(frame, renumber=["name", "household"]).data)
    assert data["name"] != again["name"]  # drawn anew: a seed would undo it
    assert data["name"] != list(range(1, N + 1))


def test_shuffled_rows_are_the_same_rows_in_another_order(frame):
    plain = columns_of(protect(frame).data)
    shuffled = columns_of(protect(frame, keep_order=False).data)
    rows = [list(zip(*table.values(), strict=True)) for table in (plain, shuffled)]
    assert rows[0] != rows[1]
    assert sorted(rows[0]) == sorted(rows[1])
    assert columns_of(protect(frame, keep_order=False).data) != shuffled


def test_a_shuffled_frame_of_pandas_does_not_tell_the_order_by_its_labels():
    release = protect(pd.DataFrame(COLUMNS), keep_order=False)
    assert release.data.index.equals(pd.RangeIndex(N))
    named = pd.DataFrame(COLUMNS, index=pd.Index([f"r{i}" for i in range(N)], name="row"))
    shuffled = protect(named, keep_order=False).data
    assert sorted(shuffled.index) == sorted(named.index)
    assert (shuffled["name"] == named["name"].loc[shuffled.index]).all()


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("keep_order", [None, False, True])
def test_a_file_is_in_random_order_unless_its_order_is_kept(tmp_path, frame, ending, keep_order):
    release = protect(frame, keep_order=keep_order, drop=["name"], renumber=["household"])
    assert release.write(tmp_path / f"safe.{ending}").holds
    written = read_file(tmp_path / f"safe.{ending}").table.to_pydict()
    data = columns_of(release.data)
    assert (written == data) is (keep_order is not None)
    assert sorted(zip(*written.values(), strict=True)) == sorted(zip(*data.values(), strict=True))
    given = columns_of(frame)["illness"]
    assert (data["illness"] == given) is (keep_order is not False)


# Units


def test_a_file_with_too_few_units_is_taken_away(tmp_path, frame, monkeypatch):
    # As if merging had failed: rows are k, units are not.
    module = import_module("microagg.grouping.one_cell")
    monkeypatch.setattr(module, "_satisfied", lambda found, *_: found)
    release = protect(frame, unit="household", k=4)
    with pytest.raises(VerificationError, match=r"at least 4 distinct units .* The file was"):
        release.write(tmp_path / "safe.csv")
    assert list(tmp_path.iterdir()) == []


# Measures


def test_risk_and_measure_agree(frame):
    release = protect(frame, confidential=["illness"])
    utility, risk = release.measure()
    assert risk is release.risk
    assert utility == release.utility
    more, same = release.measure(analyses=["income ~ age"])
    assert same is risk
    assert risk.below_k == 0
    assert more.information_loss == release.utility.information_loss
    outside = microagg.risk(frame, release.data, ["age", "income"], k=3, confidential=["illness"])
    assert outside.as_dict() == risk.as_dict()


def test_the_measures_are_those_of_the_rows_given_though_shuffled(frame):
    plain, shuffled = protect(frame), protect(frame, keep_order=False)
    assert shuffled.risk.as_dict() == plain.risk.as_dict()
    assert shuffled.utility.as_dict() == plain.utility.as_dict()
    assert shuffled.with_known.as_dict() == plain.with_known.as_dict()


def test_a_release_is_not_pickled(frame):
    release = protect(frame)
    for thing in (release, release.evidence):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(thing)


def test_the_view_of_a_notebook_tells_and_escapes(tmp_path):
    hostile = "<script>alert(1)</script>"
    frame = pd.DataFrame(COLUMNS).rename(columns={"age": hostile})
    release = microagg.protect(
        frame, k=3, columns=[hostile, "income"], known=["name"], method="mdav"
    )
    view = release._repr_html_()
    assert "<script" not in view
    assert "&lt;script&gt;" in view
    assert "<strong>Amber.</strong>" in view
    assert "not yet written" in view
    assert "<strong>amber</strong> Every record can be narrowed down" in view
    values = {str(value) for value in COLUMNS["income"]}
    assert not values & set(re.findall(r"\d+\.\d+", view))
    release.write(tmp_path / "safe.csv")
    assert "in the written file" in release._repr_html_()
    green = protect(frame[["income"]], columns=["income"])._repr_html_()
    assert "<strong>Green.</strong>" in green
