"""The reference data: what is here is what the published figures refer to."""

import pytest
from benchmarks import reference

from conftest import reference_file


@pytest.mark.parametrize("name", reference.REFERENCES)
def test_the_data_are_those_of_the_literature(name):
    assert reference.digest(reference_file(name)) == reference.REFERENCES[name].digest


def test_how_numbers_are_written_does_not_matter(tmp_path):
    first, second, other = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
    first.write_text("a,b\n1,x\n2.50,\n")
    second.write_text("a,b\n1.0,x\n2.5,\n")
    other.write_text("a,b\n1.0,x\n2.6,\n")
    assert reference.digest(first) == reference.digest(second) != reference.digest(other)


def test_what_is_missing_or_different_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    monkeypatch.setattr(reference.fault, "__defaults__", (tmp_path,))
    (tmp_path / "census.csv").write_text("AGI\n1\n")
    with pytest.raises(SystemExit, match="1"):
        reference.main()
    said = capsys.readouterr().out
    assert "census.csv, 1,080 records: other names or values than expected" in said
    assert "tarragona.csv, 834 records: missing" in said
    assert "sdcMicro" in said
    assert "MICROAGG_DATA" in said


@pytest.mark.parametrize("required", [True, False])
def test_a_missing_set_fails_only_where_data_are_required(required, monkeypatch):
    monkeypatch.delenv("MICROAGG_REQUIRE_DATA", raising=False)
    if required:
        monkeypatch.setenv("MICROAGG_REQUIRE_DATA", "1")
    expected = pytest.fail.Exception if required else pytest.skip.Exception
    with pytest.raises(expected, match=r"python -m benchmarks\.reference"):
        reference_file("no such set")
