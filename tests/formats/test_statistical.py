"""Files of SPSS, Stata and SAS: nothing but protected values differs."""

import datetime as dt
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyreadstat._readstat_writer import writer_entry_point

import microagg
from command import here, said
from microagg import DisclosureRiskWarning, Plan, TableError
from microagg.formats.files import read_file, write_file
from microagg.job.job import Job
from microagg.job.run import run
from microagg.tables.file_metadata import Labelled
from statistical_files import differences, everything

AGE = [30.0, 31, 34, 61, 65, 66, 21, 22, 23, 45, 46, 47]
PAY = [1000.5, 1200, 1300.25, 2500, 2600, 2700, 800, 900, 950, 1700, 1800, 1900]
LONG_LABEL = "How many years the person has lived, as of the day of the interview; ü" * 3


def spss_file(path, **changes):
    """A hostile file: unicode names, codes and ranges, labels on them, dates, widths, alignments."""
    day = 86_400.0
    frame = pd.DataFrame(
        {
            "age": AGE,
            "pay": PAY,
            "größe_名": [1.0, 2.0, -9.0, 998.0, np.nan, 1.0, 2.0, 3.0, 1.5, -8.0, 990.0, 0.0],
            "text": pd.Series(
                ["a\0\0\0\0\0\0\0\0\0\0\0", "", "é", "x y", *["no answer"] * 8], dtype=object
            ),
            "code": pd.Series([*"AABBCCDDEE", "9", "9"], dtype=object),
            "day": [13_000_003_200.0 - 13_000_003_200.0 % day + i * day for i in range(11)]
            + [np.nan],
            "moment": [13_000_000_000.5 + i for i in range(12)],
            "clock": [3600.0 * i + 0.25 for i in range(12)],
            "constant": [7.0] * 12,
            "empty": [np.nan] * 12,
        }
    )
    facts = {
        "file_label": "Survey of 2024",
        "note": ["first note", "second note"],
        "column_labels": {"age": LONG_LABEL, "größe_名": "Größe"},
        "variable_value_labels": {
            "größe_名": {1.0: "one", -9.0: "refused", -8.0: "unknown", 990.0: "no"},
            "code": {"A": "first", "9": "none"},
            "age": {30.0: "thirty"},
        },
        "missing_ranges": {
            "größe_名": [{"lo": 990.0, "hi": 999.0}, -9.0],
            "code": ["9"],
            "constant": [97.0, 98.0, 99.0],
        },
        "variable_display_width": {"age": 14, "text": 30},
        "variable_measure": {"age": "scale", "code": "nominal", "größe_名": "ordinal"},
        "variable_format": {
            "age": "F5.1",
            "day": "EDATE10",
            "moment": "DATETIME23.2",
            "clock": "TIME11.2",
        },
        "variable_alignment": {"age": "left", "code": "center", "pay": "right"},
        **changes,
    }
    writer_entry_point(frame, str(path), "sav", **facts)
    return path


def stata_file(path, version=15):
    frame = pd.DataFrame(
        {
            "age": pd.Series(AGE, dtype="int8"),
            "pay": PAY,
            "kids": pd.Series([1, 2, "a", "z", None, 3, 4, 5, 6, 7, 8, 9], dtype=object),
            "share": pd.Series([0.1, "b", None, *[0.25] * 9], dtype=object),
            "text": ["ab", "", "longer text", *"abcdefghi"],
            "day": [dt.date(1959, 12, 31) + dt.timedelta(i) for i in range(11)] + [None],
            "moment": pd.to_datetime(["2020-01-01 10:11:12"] * 12),
        }
    )
    pyreadstat.write_dta(
        frame,
        str(path),
        version=version,
        file_label="Survey of 2024",
        column_labels={"age": "Age in years", "kids": "Children"},
        variable_value_labels={
            "kids": {1: "one", -3: "odd", "a": "refused"},
            "age": {30: "thirty"},
        },
        missing_user_values={"kids": ["a", "z"], "share": ["b"]},
        variable_format={"pay": "%12.2f", "day": "%td", "moment": "%tc"},
    )
    return path


def transport_file(path, version=8):
    frame = pd.DataFrame(
        {
            "AGE": AGE,
            "PAY": PAY,
            "KIDS": [1.0, np.nan, np.nan, 3.0, 0.1, *[2.0] * 7],
            "TEXT": ["ab", "", "longer text", *"abcdefghi"],
            "DAY": [float(i) for i in range(12)],
        }
    )
    pyreadstat.write_xport(
        frame,
        str(path),
        file_label="Survey",
        table_name="SURVEY",
        file_format_version=version,
        column_labels={"AGE": "Age in years"},
        variable_format={"PAY": "BEST12", "DAY": "DATE9"},
        variable_informat={"PAY": "BEST12"},
    )
    return path


def protect(source, target, *words):
    done = here("protect", source, target, "--k", 3, "--keep-order", *words)
    assert done.returncode == 0, done.stderr
    return done


# Nothing but protected values differs


@pytest.mark.parametrize("ending", ["sav", "zsav"])
def test_spss(tmp_path, ending):
    source = spss_file(tmp_path / f"in.{ending}", compress=ending == "zsav")
    target = tmp_path / f"out.{ending}"
    done = protect(source, target, "--columns", "age,pay")
    assert differences(source, target, released=True) == {"age", "pay"}
    assert everything(source)[1]["notes"] == ["first note", "second note"]
    assert everything(target)[1]["notes"] == []
    assert everything(target)[1]["file_label"] in ("", None)
    assert said(done).count("left out") == 1
    assert (
        "Left out, because a release does not need it: the label of the file; the notes of the file; labels "
        "of codes that no released record has ('age'); missing codes that no released record has "
        "('constant')." in said(done)
    )
    for word in (b"first note", b"Survey of 2024", b"thirty"):
        assert word in source.read_bytes() or ending == "zsav"
        assert word not in target.read_bytes()


@pytest.mark.parametrize("version", [15, 14, 13, 12, 10])
def test_stata(tmp_path, version):
    source, target = stata_file(tmp_path / "in.dta", version), tmp_path / "out.dta"
    done = protect(source, target, "--columns", "age,pay", "--known", "kids")
    # A mean has decimals, for which an integer type has no room.
    widened = {("readstat_variable_types", "age"), ("variable_storage_width", "age")}
    assert differences(source, target, released=True) == {"age", "pay"} | widened
    again = tmp_path / "again.dta"
    protect(source, again, "--columns", "age,pay", "--known", "kids", "--round")
    assert differences(source, again, released=True) == {"age", "pay"}
    old = version < 14
    assert (target.read_bytes()[:50] == source.read_bytes()[:50]) != old  # else the same format
    assert target.read_bytes().startswith(b"<stata_dta><header><release>118" if old else b"<")
    assert ("are read, not written: this one is written in format 118" in said(done)) == old
    assert everything(target)[1]["variable_value_labels"] == {"kids": {1: "one", "a": "refused"}}
    assert b"Survey of 2024" not in target.read_bytes()


@pytest.mark.parametrize("version", [8, 5])
def test_transport(tmp_path, version):
    source, target = transport_file(tmp_path / "in.xpt", version), tmp_path / "out.xpt"
    protect(source, target, "--columns", "AGE,PAY")
    assert differences(source, target, released=True) == {"AGE", "PAY"}
    assert everything(source)[1]["table_name"] == "SURVEY"
    assert everything(target)[1]["table_name"] != "SURVEY"


def test_letters_of_missing_values_in_a_transport_file(tmp_path):
    plain = read_file(transport_file(tmp_path / "plain.xpt")).as_written
    at = plain.column_names.index("KIDS")
    letters = [".A", "._", None, ".Z", "0.1", *["2.0"] * 7]
    table = plain.set_column(
        at, plain.schema.field(at).with_type(pa.string()), pa.array([letters]).flatten()
    )
    source, target = tmp_path / "in.xpt", tmp_path / "out.xpt"
    write_file(table, source)
    assert everything(source)[0]["KIDS"][:4] == ["'A'", "'_'", "None", "'Z'"]
    protect(source, target, "--columns", "AGE,PAY")
    assert differences(source, target, released=True) == {"AGE", "PAY"}


def test_other_columns_keep_their_facts(tmp_path):
    source, target = spss_file(tmp_path / "in.sav"), tmp_path / "out.sav"
    words = ("--columns", "age,pay", "--drop", "text,code", "--renumber", "constant")
    protect(source, target, *words)
    _, before = everything(source)
    values, after = everything(target)
    assert list(values) == [n for n in before["column_names"] if n not in ("text", "code")]
    for fact in ("missing_ranges", "variable_value_labels", "column_names_to_labels"):
        left_out = ("text", "code", "constant")
        kept = {n: told for n, told in before[fact].items() if n not in left_out}
        kept.pop("age", None) if fact == "variable_value_labels" else None  # nobody is 30 any more
        assert {n: told for n, told in after[fact].items() if n != "constant"} == kept
    assert "constant" not in after["missing_ranges"]
    assert b"no answer" not in target.read_bytes()  # of a column that was dropped


def test_through_parquet_and_back(tmp_path):
    source = spss_file(tmp_path / "in.sav")
    middle, target = tmp_path / "middle.parquet", tmp_path / "out.sav"
    protect(source, middle, "--columns", "age,pay")
    protect(middle, target, "--columns", "age,pay")
    assert differences(source, target, released=True) == {"age", "pay"}


numbers = st.floats(allow_nan=False, allow_infinity=False, width=64) | st.integers(-99, 99).map(
    float
)
words = st.text(st.characters(exclude_categories=("C", "Z")), max_size=30)
labels = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=30)


@st.composite
def spss_tables(draw):
    """Columns with facts about them, as pyreadstat takes them."""
    rows = draw(st.integers(1, 5))
    columns, missing, told, names = {}, {}, {}, {}
    for j in range(draw(st.integers(1, 4))):
        name = f"v{j}"
        if draw(st.booleans()):
            values = draw(st.lists(words, min_size=rows, max_size=rows))
            columns[name] = pd.Series(values, dtype=object)
            codes = st.sampled_from(["9", "no", "é"])
        else:
            values = draw(st.lists(numbers | st.none(), min_size=rows, max_size=rows))
            columns[name] = pd.Series(values, dtype="float64")
            codes = st.sampled_from([-9.0, 0.0, 5.0, 1e9])
        if draw(st.booleans()):
            missing[name] = draw(st.lists(codes, min_size=1, max_size=3, unique=True))
        if draw(st.booleans()):
            told[name] = draw(st.dictionaries(codes, labels, min_size=1))
        if draw(st.booleans()):
            names[name] = draw(labels)
    return pd.DataFrame(columns), missing, told, names


@given(table=spss_tables())
def test_any_spss_file(tmp_path_factory, table):
    frame, missing, told, names = table
    folder = tmp_path_factory.mktemp("spss")
    source, target = folder / "in.sav", folder / "out.sav"
    pyreadstat.write_sav(
        frame, str(source), missing_ranges=missing, variable_value_labels=told, column_labels=names
    )
    read = read_file(source)
    write_file(read.as_written, target, read.format)
    assert not differences(source, target)


@st.composite
def stata_tables(draw):
    rows = draw(st.integers(1, 5))
    columns, letters, told = {}, {}, {}
    for j in range(draw(st.integers(1, 4))):
        name = f"v{j}"
        kind = draw(st.sampled_from(["text", "int32", "float64", "tagged"]))
        if kind == "text":
            columns[name] = pd.Series(
                draw(st.lists(words, min_size=rows, max_size=rows)), dtype="str"
            )
        elif kind == "tagged":
            found = draw(
                st.lists(st.sampled_from(["a", "q", 1.5, -2.0]), min_size=rows, max_size=rows)
            )
            columns[name] = pd.Series(found, dtype=object)
            letters[name] = [*"aq"]
        else:
            low = st.integers(-2_147_483_647, 2_147_483_620) if kind == "int32" else numbers
            low = low if kind == "int32" else low.filter(lambda x: abs(x) < 8e307)
            columns[name] = pd.Series(draw(st.lists(low, min_size=rows, max_size=rows)), dtype=kind)
            if kind == "int32" and draw(st.booleans()):
                told[name] = draw(st.dictionaries(st.integers(-99, 99), labels, min_size=1))
    return pd.DataFrame(columns), letters, told


@given(table=stata_tables(), version=st.sampled_from([15, 14]))
def test_any_stata_file(tmp_path_factory, table, version):
    frame, letters, told = table
    folder = tmp_path_factory.mktemp("stata")
    source, target = folder / "in.dta", folder / "out.dta"
    pyreadstat.write_dta(
        frame, str(source), version=version, missing_user_values=letters, variable_value_labels=told
    )
    read = read_file(source)
    write_file(read.as_written, target, read.format)
    assert not differences(source, target)


def test_text_of_an_old_stata_file_may_take_more_bytes(tmp_path):
    source, target = tmp_path / "in.dta", tmp_path / "out.dta"
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "name": ["größe", "", "äöü"]})
    frame.to_stata(source, write_index=False, version=114)
    protect(source, target, "--columns", "x", "--known", "name")
    assert pd.read_stata(target)["name"].tolist() == frame["name"].tolist()


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "float32", "float64"])
def test_storage_types_of_stata(tmp_path, kind):
    # pandas writes all storage types, and strL; it shares no code with us.
    source, target = tmp_path / "in.dta", tmp_path / "out.dta"
    frame = pd.DataFrame(
        {"x": np.array([-3, 100, 7], dtype=kind), "essay": ["q" * 3000, "", "q" * 3000]}
    )
    frame.to_stata(source, write_index=False, version=118, convert_strl=["essay"])
    read = read_file(source)
    write_file(read.as_written, target, read.format)
    assert not differences(source, target)
    again = pd.read_stata(target)
    assert again["x"].dtype == kind
    pd.testing.assert_frame_equal(again, pd.read_stata(source))


@pytest.mark.parametrize("version", [117, 118, 119])
def test_pandas_reads_what_we_write(tmp_path, version):
    source = stata_file(tmp_path / "in.dta", 14)
    table = read_file(source).as_written
    facts = Labelled.of(table.schema)
    changed = Labelled(facts.columns, "stata", label="Survey", notes=("a note",), version=version)
    target = tmp_path / "out.dta"
    write_file(table.cast(changed.on(table.schema)), target)
    with pd.io.stata.StataReader(
        target, convert_categoricals=False, convert_dates=False, convert_missing=True
    ) as reader:
        found = reader.read()
        assert reader.variable_labels()["age"] == "Age in years"
        assert reader.data_label == "Survey"
    assert [str(value) for value in found["kids"][2:5]] == [".a", ".z", "."]
    assert found["text"].tolist() == table["text"].to_pylist()
    assert everything(target)[1]["notes"] == ["a note"]


# What the typed table shows


def test_missing_codes_are_null_and_told(tmp_path):
    read = read_file(spss_file(tmp_path / "in.sav"))
    assert read.table["größe_名"].to_pylist()[:5] == [1.0, 2.0, None, None, None]
    assert read.as_written["größe_名"].to_pylist()[2:4] == [-9.0, 998.0]
    assert read.table["code"].to_pylist()[-2:] == [None, None]
    columns = read.labelled.columns.items()
    assert {name: list(facts.missing) for name, facts in columns if facts.missing} == {
        "größe_名": [(990.0, 999.0), -9.0],
        "code": ["9"],
        "constant": [97.0, 98.0, 99.0],
    }
    coded = read_file(stata_file(tmp_path / "in.dta")).coded()
    assert {name: sorted(column.codes) for name, column in coded.items()} == {
        "kids": [".a", ".z"],
        "share": [".b"],
    }


def test_types(tmp_path):
    spss = read_file(spss_file(tmp_path / "in.sav")).table.schema
    assert spss.field("age").type == pa.int64()
    assert spss.field("pay").type == pa.float64()
    assert spss.field("day").type == pa.date32()
    assert spss.field("moment").type == pa.timestamp("us")
    assert spss.field("clock").type == pa.float64()
    stata = read_file(stata_file(tmp_path / "in.dta")).table
    assert stata.schema.field("kids").type == pa.int32()
    assert stata.schema.field("share").type == pa.float64()
    assert stata["day"].to_pylist()[0] == dt.date(1959, 12, 31)
    assert stata["moment"].to_pylist()[0] == dt.datetime(2020, 1, 1, 10, 11, 12)


# What a format cannot hold


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("out.csv", "A CSV file has no place for labels of values ('age', 'größe_名', 'code')"),
        ("out.csv", "declarations of missing codes ('größe_名', 'code', 'constant')"),
        ("out.dta", "A Stata file has no place for declarations of missing codes"),
        ("out.xlsx", "An Excel file has no place for the label and the notes of a table"),
    ],
)
def test_said_before_the_run(tmp_path, target, words):
    done = protect(spss_file(tmp_path / "in.sav"), tmp_path / target, "--columns", "age,pay")
    said_so = said(done)
    assert words in said_so
    assert said_so.index("left out") < said_so.index("grouped")


def test_left_out_is_part_of_the_outcome(tmp_path):
    source = stata_file(tmp_path / "in.dta")
    plan = Plan.of(k=3, columns=["age", "pay"], known=["kids"])
    outcome = run(Job(source, tmp_path / "out.parquet", plan))
    assert outcome.left_out == [
        "A Parquet file has no place for the letters that tell why a value is missing, such as .a ('kids', "
        "'share'): these values are missing without a reason.",
        "Left out, because a release does not need it: the label of the file; labels of codes that no "
        "released record has ('age', 'kids').",
    ]
    assert run(Job(source, tmp_path / "out.dta", plan)).left_out == [
        outcome.left_out[1]
    ]  # the letters have a place


def test_what_pyreadstat_does_not_tell_is_said(tmp_path):
    source, target = spss_file(tmp_path / "in.sav"), tmp_path / "out.sav"
    content = bytearray(source.read_bytes())
    content[76] = 1  # cases are weighted by the first column
    source.write_bytes(content)
    done = protect(source, target, "--columns", "age,pay")
    assert "The settings that weight cases by a column cannot be written and are left out" in said(
        done
    )


def test_characteristics_of_stata_are_said_to_be_left_out(tmp_path):
    source = stata_file(tmp_path / "in.dta", 14)
    table = read_file(source).as_written
    facts = Labelled.of(table.schema)
    noted = Labelled(facts.columns, "stata", notes=("first", "second"), version=118)
    write_file(table.cast(noted.on(table.schema)), source)
    assert read_file(source).labelled.lost == ()
    assert read_file(source).labelled.notes == ("first", "second")
    content = source.read_bytes().replace(
        b"_dta\0", b"age\0\0", 1
    )  # the number of notes: of one column
    source.write_bytes(content.replace(b"_dta\0", b"pay\0\0", 1))
    assert read_file(source).labelled.lost == ("the notes and characteristics of single columns",)


def test_a_frame_is_written_too(tmp_path):
    frame = pd.DataFrame({"age": AGE, "city": list("ABCDABCDABCD")}, index=range(5, 17))
    with pytest.warns(DisclosureRiskWarning):
        release = microagg.protect(frame, k=3, columns=["age"], keep_order=True)
    release.write(tmp_path / "out.sav")
    again = read_file(tmp_path / "out.sav").table
    assert again.column_names == ["age", "city"]
    assert again["city"].to_pylist() == list("ABCDABCDABCD")
    with pytest.raises(TableError, match="ending of a file's name tells its format"):
        release.write(tmp_path / "out.dat")


def test_the_help_names_the_endings():
    words = " ".join(here("protect", "--help").stdout.split())
    assert all(ending in words for ending in (".sav", ".dta", ".xpt", ".xlsx"))


def test_letters_from_stata_to_sas(tmp_path):
    source, target = stata_file(tmp_path / "in.dta"), tmp_path / "out.xpt"
    protect(source, target, "--columns", "age,pay", "--known", "kids")
    assert everything(target)[0]["kids"][2:5] == ["'A'", "'Z'", "None"]


@pytest.mark.parametrize("target", ["out.por", "out.sas7bdat", "out.xls"])
def test_formats_that_are_only_read(tmp_path, target):
    done = here("protect", spss_file(tmp_path / "in.sav"), tmp_path / target, "--k", 3)
    assert done.returncode == 2
    assert "are read, not written" in said(done)


def test_portable_files_are_read(tmp_path):
    frame = pd.DataFrame({"AGE": AGE, "PAY": PAY})
    pyreadstat.write_por(frame, str(tmp_path / "in.por"), column_labels={"AGE": "Age in years"})
    protect(tmp_path / "in.por", tmp_path / "out.sav", "--columns", "AGE,PAY")
    assert everything(tmp_path / "out.sav")[1]["column_names_to_labels"]["AGE"] == "Age in years"


# Files that are not what their name says


@pytest.mark.parametrize("version", [15, 14, 13, 12])
def test_a_file_that_claims_more_records_than_it_has(tmp_path, version):
    path = stata_file(tmp_path / "in.dta", version)
    content = bytearray(path.read_bytes())
    at = content.index(b"<N>") + 3 if version > 12 else 6
    content[at + 3] = 200  # billions
    path.write_bytes(content)
    with pytest.raises(TableError, match="claims more records than it has room for"):
        read_file(path)


def test_an_spss_file_that_claims_more_records_than_it_has(tmp_path):
    for ending in ("sav", "zsav"):
        path = spss_file(tmp_path / f"in.{ending}", compress=ending == "zsav")
        content = bytearray(path.read_bytes())
        content[83] = 100
        path.write_bytes(content)
        with pytest.raises(TableError, match="claims more records than it has room for"):
            read_file(path)


@pytest.mark.parametrize("ending", ["sav", "zsav"])
def test_a_labelled_text_that_is_none(tmp_path, ending):
    # pyreadstat would end the whole process.
    path = spss_file(tmp_path / f"in.{ending}", compress=ending == "zsav")
    content = bytearray(path.read_bytes())
    content[content.index(b"A       \x05first") + 7] = 255
    path.write_bytes(content)
    with pytest.raises(TableError, match="one belongs to bytes that are no UTF-8"):
        read_file(path)


@pytest.mark.parametrize(
    ("place", "byte", "message"),
    [
        (b"\x04\0\0\0\x01\0\0\0\x03", 99, "labels belong to a column that does not exist"),
        (b"\x04\0\0\0\x01", 99, "labels belong to more columns than there are"),
        (b"\x02\0\0\0\0", 20, "a column has another width than its parts"),
    ],
)
def test_dictionaries_that_contradict_themselves(tmp_path, place, byte, message):
    path = spss_file(tmp_path / "in.sav")
    content = bytearray(path.read_bytes())
    content[content.index(place, 176) + len(place) - 1] = byte
    path.write_bytes(content)
    with pytest.raises(TableError, match=f"is no complete spss file: {message}"):
        read_file(path)


@pytest.mark.parametrize(
    ("ending", "missing"), [("dta", "its end is missing"), ("xpt", "its last block is cut off")]
)
@pytest.mark.parametrize("lacking", [1, 41, 250])
def test_a_file_that_lacks_its_end_is_refused(tmp_path, ending, missing, lacking):
    # pyreadstat reads these with fewer labels, or fewer records.
    path = {"dta": stata_file, "xpt": transport_file}[ending](tmp_path / f"in.{ending}")
    path.write_bytes(path.read_bytes()[:-lacking])
    with pytest.raises(TableError, match=f"is no complete .* file: {missing}"):
        read_file(path)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    path = spss_file(tmp_path / "in.sav")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(
        TableError, match=r'need the package pyreadstat.*pip install "microagg\[files\]"'
    ):
        read_file(path)


def test_metadata_of_another_shape_is_refused(tmp_path):
    path = tmp_path / "in.parquet"
    field = pa.field("age", pa.int64(), metadata={b"microagg.value_labels": b'{"a": 1}'})
    write_file(pa.table([[1, 2]], schema=pa.schema([field])), path)
    with pytest.raises(TableError, match="those of column 'age' are something else"):
        _ = read_file(path).table
