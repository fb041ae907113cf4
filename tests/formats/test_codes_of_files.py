"""What stands for missing values in files of statistical packages is released where a whole group has it."""

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from command import here, said

N = 200
RNG = np.random.default_rng(5)


def survey():
    frame = pd.DataFrame(
        {
            "income": np.round(RNG.lognormal(8, 1, N)),
            "sex": RNG.integers(1, 3, N).astype(float),
            "age": RNG.integers(20, 80, N).astype(float),
        }
    )
    rows = RNG.permutation(N)
    return frame, rows[:30], rows[30:55], rows[55:70]


def protect(source, target, *flags):
    done = here(
        "protect", source, target, "--k", 5, "--columns", "income,sex,age", "--kind", "sex=nominal",
        "--effort", "fast", "--keep-order", *flags,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return said(done)


def shared_by(frame, columns):
    return frame.groupby(columns, dropna=False).size().min()


def test_codes_of_spss_are_kept_by_groups_that_share_them(tmp_path):
    frame, refused, not_asked, gone = survey()
    frame.loc[refused, "income"], frame.loc[not_asked, "income"] = -8, -9
    frame.loc[gone, "income"] = np.nan
    source, target = tmp_path / "in.sav", tmp_path / "out.sav"
    pyreadstat.write_sav(frame, str(source), missing_ranges={"income": [-8, {"lo": -20, "hi": -9}]})
    words = protect(source, target)
    assert "70 values missing in income, all stay missing, shared by whole groups" in words
    found, facts = pyreadstat.read_sav(str(target), user_missing=True)
    before = pyreadstat.read_sav(str(source), user_missing=True)[1]
    assert facts.missing_ranges == before.missing_ranges
    assert set(np.flatnonzero(found.income == -8)) == set(refused)
    assert set(np.flatnonzero(found.income == -9)) == set(not_asked)
    assert set(np.flatnonzero(found.income.isna())) == set(gone)
    assert shared_by(found, ["income", "sex", "age"]) >= 5


def test_a_code_that_few_have_is_released_as_missing(tmp_path):
    frame, refused, *_ = survey()
    frame.loc[refused[:2], "income"] = -8
    frame.loc[refused[2:10], "income"] = np.nan
    source, target = tmp_path / "in.sav", tmp_path / "out.sav"
    pyreadstat.write_sav(frame, str(source), missing_ranges={"income": [-8]})
    words = protect(source, target)
    assert "2 codes for missing released as plainly missing" in words
    found, _ = pyreadstat.read_sav(str(target), user_missing=True)
    assert not (found.income == -8).any()
    assert set(np.flatnonzero(found.income.isna())) == set(refused[:10])


def test_tags_of_stata_are_kept_by_groups_that_share_them(tmp_path):
    frame, refused, *_ = survey()
    frame["income"] = frame["income"].astype(object)
    frame.loc[refused, "income"] = "a"
    source, target = tmp_path / "in.dta", tmp_path / "out.dta"
    pyreadstat.write_dta(frame, str(source), missing_user_values={"income": ["a"]})
    protect(source, target)
    found, _ = pyreadstat.read_dta(str(target), user_missing=True)
    assert set(np.flatnonzero(found.income == "a")) == set(refused)
    assert shared_by(found.astype(str), ["income", "sex", "age"]) >= 5


def test_codes_of_a_plan_in_a_csv_file(tmp_path):
    frame, refused, not_asked, _ = survey()
    frame["income"] = frame["income"].astype(object)
    frame.loc[refused, "income"], frame.loc[not_asked, "income"] = "refused", -8
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    frame.to_csv(source, index=False)
    protect(source, target, "--missing-code", "income=refused,-8")
    found = pd.read_csv(target)
    assert set(np.flatnonzero(found.income == "refused")) == set(refused)
    numbers = pd.to_numeric(found.income, errors="coerce")
    assert set(np.flatnonzero(numbers == -8)) == set(not_asked)
    rest = ~found.index.isin([*refused, *not_asked])
    assert numbers[rest].mean() == pytest.approx(frame.income[rest].astype(float).mean())


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_named_code_keeps_its_zeros(tmp_path, engine):
    """Digits of one length and of several; as quantities only where the plan says so."""
    codes = {"plz": ["01067", "80331", "01069"] * 20, "site": ["007", "12", "0450"] * 20}
    frame = pd.DataFrame({**codes, "x": np.arange(60) / 8})
    frame.to_csv(tmp_path / "in.csv", index=False)
    asked = ["protect", tmp_path / "in.csv", "--k", 3, "-c", "plz,site,x", "--engine", engine]
    done = here(*asked[:2], tmp_path / "out.csv", *asked[2:])
    assert done.returncode == 0, said(done)
    after = pd.read_csv(tmp_path / "out.csv", dtype=str)
    for name, values in codes.items():
        assert set(after[name]) <= set(values)
    flags = ["--kind", "plz=number", "--kind", "site=integer"]
    done = here(*asked[:2], tmp_path / "averaged.csv", *asked[2:], *flags)
    assert done.returncode == 0, said(done)
    after = pd.read_csv(tmp_path / "averaged.csv")
    assert after["plz"].mean() == pytest.approx(np.mean([int(code) for code in codes["plz"]]))
