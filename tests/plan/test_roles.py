"""Every column has a role: what points to single records is refused without one, on every way in."""

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here, said
from microagg import InputError
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

N = 120
RNG = np.random.default_rng(8)


def patients() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "row": np.arange(1, N + 1),
            "subject_id": RNG.permutation(N) + 1000,
            "last_name": RNG.choice([f"name{i}" for i in range(20)], N),
            "remark": [f"came in on day {i} with a cough and {i % 7} others" for i in range(N)],
            "age": RNG.integers(0, 90, N),
            "result": RNG.choice(["negative", "positive"], N, p=[0.9, 0.1]),
        }
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "in.csv"
    patients().to_csv(path, index=False)
    return path


def test_all_but_age_called_confidential_is_refused(table, tmp_path):
    rest = ["row", "subject_id", "last_name", "remark", "result"]
    with pytest.raises(InputError, match="never be confidential") as caught:
        microagg.protect(patients(), k=5, columns=["age"], confidential=rest)
    told = str(caught.value)
    assert "--drop row,subject_id,last_name,remark" in told
    assert "result" not in told
    words = ("protect", table, tmp_path / "out.csv", "--k", "5", "--columns", "age")
    done = here(*words, "--confidential", ",".join(rest), "--strict")
    assert done.returncode == 2
    assert "can never be confidential" in said(done)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_without_a_role_the_job_stops_before_any_work(table, tmp_path, engine):
    target = tmp_path / "out.csv"
    plan = Plan.of(k=5, columns=["age"], effort="fast", drop=["remark"])
    with pytest.raises(InputError, match="must have a role; row, subject_id have none") as caught:
        run(Job(table, target, plan, engine=engine))
    for way_out in ("--drop row,subject_id", "--renumber row", "--known row,subject_id"):
        assert way_out in str(caught.value)
    assert not target.exists()
    known = plan.override(known=["row", "subject_id"])
    found = run(Job(table, target, known, engine=engine)).evidence
    assert found.verdict == "amber"
    assert {"row", "subject_id"} <= {name for c in found.cautions for name in c.columns}
    assert found.plan.known == ("row", "subject_id", "last_name", "result")


def test_the_draft_with_a_name_called_confidential_is_refused():
    with pytest.raises(InputError, match=r"never be confidential.*last_name"):
        microagg.protect(patients(), k=5, confidential=["last_name"])
