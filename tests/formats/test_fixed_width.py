"""Files of fixed width, or separated fields, with a description as µ-ARGUS writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import here, said
from microagg import TableError
from microagg.formats.argus import read_description
from microagg.formats.files import read_file, write_file

DESCRIPTION = """\
SEX 1 1 "9"
    <RECODABLE>
    <CODELIST> "sex.cdl"
AGE 2 3
    <NUMERIC>
PAY 6 9 "99999.99"
    <NUMERIC>
    <DECIMALS> 2
ZEROS 16 5
    <NUMERIC>
NAME 22 6
HID 28 3
    <HOUSE_ID>
W 31 6
    <WEIGHT>
"""
ROWS = [
    ("1", " 30", "  1000.50", "00012", "Ann   ", "  1", "  1.25"),
    ("2", " 31", "  1200.00", "00013", "Béa   ", "  1", "  2.50"),
    ("1", " 34", "  1300.25", "00014", "Cy    ", "  2", "  1.00"),
    ("9", " 61", "  2500.00", "00215", "Di    ", "  3", "  1.00"),
    ("1", " 65", "  2600.00", "00216", "  Ed  ", "  3", "  1.00"),
    ("2", " 66", "  2700.10", "01217", "      ", "  4", " 10.00"),
]


def line(row):
    """SEX AGE, a position that nobody describes, PAY, another one, ZEROS, …."""
    sex, age, pay, zeros, name, hid, weight = row
    return f"{sex}{age}#{pay}#{zeros}#{name}{hid}{weight}"


def survey(folder, description=DESCRIPTION, rows=ROWS, newline="\n", name="in.asc"):
    path = folder / name
    path.write_bytes("".join(line(row) + newline for row in rows).encode())
    path.with_suffix(".rda").write_text(description)
    (folder / "sex.cdl").write_text('1,"Male"\n2,"Female"\n')
    return path


def protect(source, target, *words):
    done = here("protect", source, target, "--k", 3, *words)
    assert done.returncode == 0, done.stderr
    return done


def test_typed(tmp_path):
    read = read_file(survey(tmp_path))
    assert read.table.to_pydict() == {
        "SEX": ["1", "2", "1", None, "1", "2"],
        "AGE": [30, 31, 34, 61, 65, 66],
        "PAY": [1000.5, 1200.0, 1300.25, 2500.0, 2600.0, 2700.1],
        "ZEROS": [12, 13, 14, 215, 216, 1217],
        "NAME": ["Ann", "Béa", "Cy", "Di", "Ed", None],
        "HID": ["1", "1", "2", "3", "3", "4"],
        "W": [1.25, 2.5, 1.0, 1.0, 1.0, 10.0],
    }
    assert read.missing_codes == {"SEX": ["9"], "PAY": ["99999.99"]}
    assert read.labelled["SEX"].value_labels == (("1", "Male"), ("2", "Female"))
    assert read.format.fixed is not None
    assert read_file(tmp_path / "in.asc", ["HID"]).table["HID"].to_pylist() == [1, 1, 2, 3, 3, 4]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_nothing_but_protected_values_differs(tmp_path, newline):
    source, target = survey(tmp_path, newline=newline), tmp_path / "out.asc"
    done = protect(source, target, "--columns", "PAY,ZEROS")
    before, after = (p.read_bytes().decode().split(newline) for p in (source, target))
    assert len(after) == len(before)
    for old, new in zip(before[:-1], after[:-1], strict=True):
        assert len(new) == len(old)
        assert new[:4] == old[:4]
        assert new[21:] == old[21:]
        assert (new[4], new[14], new[20]) == (
            " ",
            " ",
            " ",
        )  # what nobody describes is not released
    assert [new[5:14] for new in after[:3]] == ["  1166.92"] * 3
    assert [new[15:20] for new in after[:6]] == ["00013"] * 3 + ["00549"] * 3
    assert "Positions that no column describes (5, 15, 21) are written as blanks" in said(done)
    assert (tmp_path / "out.rda").read_text() == DESCRIPTION
    assert here("verify", target, "--k", 3, "--columns", "PAY,ZEROS").returncode == 0


def test_dropped_and_renumbered_columns(tmp_path):
    source, target = survey(tmp_path), tmp_path / "out.dat"
    protect(source, target, "--columns", "PAY", "--drop", "NAME", "--renumber", "SEX,HID")
    assert "NAME" not in (tmp_path / "out.rda").read_text()
    assert "sex.cdl" not in (tmp_path / "out.rda").read_text()
    assert all(new[21:27] == " " * 6 for new in target.read_text().splitlines())
    again = read_file(target).table
    assert sorted(set(again["HID"].to_pylist())) == ["1", "2", "3", "4"]
    assert sorted(set(again["SEX"].to_pylist())) == ["1", "2", "3"]


def test_to_and_from_other_formats(tmp_path):
    source, target = survey(tmp_path), tmp_path / "out.parquet"
    protect(source, target, "--columns", "PAY,AGE")
    again = read_file(target)
    assert again.table["NAME"].to_pylist() == ["Ann", "Béa", "Cy", "Di", "Ed", None]
    assert again.labelled["SEX"].value_labels == (("1", "Male"), ("2", "Female"))
    done = here("protect", target, tmp_path / "out.asc", "--k", 3, "--columns", "PAY,AGE")
    assert done.returncode == 2
    assert "only a file of this kind brings along" in said(done)


FREE = '<SEPARATOR> ";"\nSEX 1 "9"\nAGE 3\n    <NUMERIC>\nPAY 9\n    <NUMERIC>\n    <DECIMALS> 1\n'


@pytest.mark.parametrize("front", [False, True])
def test_separated_fields(tmp_path, front):
    source, target = tmp_path / "in.asc", tmp_path / "out.asc"
    content = "SEX;AGE;PAY\n" * front + "".join(
        f"{r[0]};{r[1].strip()};{r[2].strip()}\n" for r in ROWS
    )
    source.write_text(content)
    description = FREE.replace("SEX", "<NAMESINFRONT>\nSEX", 1) if front else FREE
    source.with_suffix(".rda").write_text(description)
    assert read_file(source).table["SEX"].to_pylist() == ["1", "2", "1", None, "1", "2"]
    protect(source, target, "--columns", "PAY")
    before, after = (p.read_text().splitlines() for p in (source, target))
    assert [new.rpartition(";")[0] for new in after] == [old.rpartition(";")[0] for old in before]
    assert after[-1].endswith(";2600.03")
    assert (tmp_path / "out.rda").read_text() == description
    assert read_file(target).table.num_rows == 6


# Descriptions and data that do not fit


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("AGE 2 3", "AGE 2 4", r"column 'PAY' has|something else|overlap"),
        ("AGE 2 3", "AGE 1 3", "column 'SEX' ends at position 1 and 'AGE' starts at 1"),
        ("W 31 6", "W 31 9", "row 1 of .* ends before position 39, where column 'W' ends"),
        ("NAME 22 6", "NAME 22 6\n    <NUMERIC>", "column 'NAME' has something else in row 1"),
        ("AGE 2 3", "AGE two 3", "line 4 of .* behind column 'AGE' stand its start and its width"),
        ("AGE 2 3", "SEX 2 3", "has 'SEX' more than once"),
        ("<NUMERIC>", "<NUMERICAL>", "line 5 of .* '<NUMERICAL>' is not known"),
        ("<DECIMALS> 2", "<DECIMALS>", "line 8 of .* needs a number from 0 to 15"),
        ('SEX 1 1 "9"', 'SEX 1 1 "99"', "a missing code of column 'SEX' is wider"),
        ('SEX 1 1 "9"', 'SEX 1 1 "9', "line 1 of .* a quote is opened and not closed"),
        ("SEX 1 1", "<NUMERIC>\nSEX 1 1", "line 1 of .* stands above the first column"),
        (
            "sex.cdl",
            "gone.cdl",
            "list of codes of column 'SEX' must be in the folder of the description",
        ),
        ('SEX 1 1 "9"', "SEX 1 1", "column 'SEX' has one in row 4 that .*sex.cdl' lacks"),
    ],
)
def test_descriptions_that_do_not_fit(tmp_path, old, new, message):
    assert old in DESCRIPTION
    if new == "AGE 2 4":  # it now reads the position behind it too
        message = "column 'AGE' has something else in row 1"
    with pytest.raises(TableError, match=message):
        read_file(survey(tmp_path, DESCRIPTION.replace(old, new, 1)))


def test_messages_show_no_value_of_a_record(tmp_path):
    rows = [*ROWS[:3], ("1", " 6x", *ROWS[3][2:])]
    with pytest.raises(TableError, match="column 'AGE' has something else in row 4") as error:
        read_file(survey(tmp_path, rows=rows))
    assert "6x" not in str(error.value)


def test_a_line_that_is_too_short(tmp_path):
    path = survey(tmp_path)
    path.write_text(path.read_text() + "1 30\n")
    with pytest.raises(
        TableError, match=r"row 7 of .* ends before position 14, where column 'PAY' ends"
    ):
        read_file(path)


def test_no_description(tmp_path):
    path = survey(tmp_path)
    path.with_suffix(".rda").unlink()
    with pytest.raises(TableError, match=r"there is no .*in\.rda.*NAME START WIDTH"):
        read_file(path)


def test_a_list_of_codes_without_commas(tmp_path):
    path = survey(tmp_path)
    (tmp_path / "sex.cdl").write_text("1,Male\n2 Female\n")
    with pytest.raises(TableError, match=r"line 2 of .*sex\.cdl', for column 'SEX', has no comma"):
        read_file(path)


def test_another_encoding(tmp_path):
    path = survey(tmp_path)
    path.write_bytes(path.read_text().encode("latin-1"))
    with pytest.raises(TableError, match="is not text in the encoding utf-8"):
        read_file(path)
    protect(path, tmp_path / "out.asc", "--columns", "PAY", "--encoding", "latin-1")
    assert "Béa".encode("latin-1") in (tmp_path / "out.asc").read_bytes()


def test_a_value_that_does_not_fit_is_an_error_and_leaves_nothing(tmp_path):
    rows = [(*row[:2], "9999999.9" if i < 3 else row[2], *row[3:]) for i, row in enumerate(ROWS)]
    source = survey(tmp_path, rows=rows)
    before = sorted(p.name for p in tmp_path.iterdir())
    done = here("protect", source, tmp_path / "out.asc", "--k", 3, "--columns", "PAY")
    assert done.returncode == 2
    assert "column 'PAY' takes 9 signs and row 1 needs 11" in said(done)
    assert sorted(p.name for p in tmp_path.iterdir()) == before


widths = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6)), min_size=1, max_size=5)


@given(places=widths, data=st.data())
def test_any_layout(tmp_path_factory, places, data):
    folder = tmp_path_factory.mktemp("fixed")
    at, lines, texts = 1, [], [""] * 3
    for j, (gap, width) in enumerate(places):
        lines.append(f"V{j} {at + gap} {width}")
        at += gap + width
        signs = st.text(st.sampled_from("aé 0"), min_size=width, max_size=width)
        texts = [text + " " * gap + data.draw(signs) for text in texts]
    (folder / "in.dat").write_text("\n".join(texts) + "\n")
    (folder / "in.rda").write_text("\n".join(lines))
    read = read_file(folder / "in.dat")
    assert read_description(folder / "in.rda").names == read.as_written.column_names
    write_file(read.as_written, folder / "out.dat", read.format)
    assert (folder / "out.dat").read_bytes() == (folder / "in.dat").read_bytes()
