"""Excel files: cells as text, typed as CSV; what is written are numbers, dates and text."""

import datetime as dt
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import here, said
from microagg import TableError
from microagg.formats.files import read_file, write_file
from microagg.formats.layouts import ExcelFormat, FileFormat

AGE = [30, 31, 34, 61, 65, 66]


def workbook(path, rows, others=()):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Data"
    for row in rows:
        sheet.append(row)
    for name in others:
        book.create_sheet(name).append(["x"])
    book.save(path)
    return path


def hostile(path):
    """Formulas, codes, dates, truth values, columns of several kinds, a blank row."""
    rows = [["age", "zip", "formula", "day", "moment", "yes", "mixed", "share"]]
    for i, age in enumerate(AGE):
        moment = dt.datetime(2024, 1, 1, 10, 11, i)
        mixed = ["a", 5, True, None, dt.date(2024, 2, 1), 1.5][i]
        rows.append([age, f"0012{i}", "=1+1", dt.date(2024, 1, 1 + i), moment, i > 2, mixed, i / 7])
    workbook(path, [*rows[:3], [], *rows[3:]])
    book = openpyxl.load_workbook(path)
    for row, text in {2: "=cmd|' /C calc'!A0", 3: "+1", 5: "-x", 6: "@SUM(1)"}.items():
        cell = book["Data"].cell(row=row, column=2, value=text)
        cell.data_type = "s"
    book.save(path)
    return path


def cells(path):
    rows = openpyxl.load_workbook(path).active.iter_rows()
    return [[(cell.value, cell.data_type) for cell in row] for row in rows]


def test_nothing_but_protected_values_differs(tmp_path):
    source, target = hostile(tmp_path / "in.xlsx"), tmp_path / "out.xlsx"
    words = ("--k", 3, "--columns", "age", "--drop", "formula", "--keep-order")
    done = here("protect", source, target, *words)
    assert done.returncode == 0, done.stderr
    before = [row[:2] + row[3:] for row in cells(source) if any(value for value, _ in row)]
    after = cells(target)
    assert after[0] == before[0]
    for old, new in zip(before[1:], after[1:], strict=True):
        assert new[1:-1] == old[1:-1]
        assert new[-1][0] == old[-1][0]
        assert isinstance(new[0][0], int | float)
    assert "formulas, colours and widths of a sheet are not" in said(done)


def test_text_that_looks_like_a_formula_stays_text(tmp_path):
    target = tmp_path / "out.xlsx"
    hostile_texts = ["=1+1", "#N/A", "#DIV/0!", "+1", "-1", "@x", "=HYPERLINK(0)", "\t=1"]
    write_file(pa.table({"=name": hostile_texts}), target)
    assert [row[0] for row in cells(target)] == [(t, "s") for t in ["=name", *hostile_texts]]
    with zipfile.ZipFile(target) as book:
        assert b"<f>" not in book.read("xl/worksheets/sheet1.xml")


def test_typed_as_csv(tmp_path):
    rows = [
        ["n", "x", "code", "text", "when"],
        [1, 0.1, "007", "a", dt.date(2024, 1, 2)],
        [2, None, "12", "", None],
    ]
    read = read_file(workbook(tmp_path / "in.xlsx", rows))
    assert read.table.to_pydict() == {
        "n": [1, 2],
        "x": [0.1, None],
        "code": ["007", "12"],
        "text": ["a", ""],
        "when": ["2024-01-02", ""],
    }
    assert read_file(tmp_path / "in.xlsx", ["code"]).table["code"].to_pylist() == [7, 12]


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
def test_numbers_keep_all_digits(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("excel") / "out.xlsx"
    write_file(pa.table({"x": values, "y": ["a"] * len(values)}), path)
    assert [float(text) for text in read_file(path).as_written["x"].to_pylist()] == values


def test_a_formula_gives_its_stored_value(tmp_path):
    path = workbook(tmp_path / "in.xlsx", [["a", "b"], [1, "=A2*2"]])
    content = {}
    with zipfile.ZipFile(path) as book:
        content = {name: book.read(name) for name in book.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert b"<v />" in content[sheet] or b"<v></v>" in content[sheet] or b"<v/>" in content[sheet]
    for empty in (b"<v />", b"<v></v>", b"<v/>"):
        content[sheet] = content[sheet].replace(empty, b"<v>2</v>")
    with zipfile.ZipFile(path, "w") as book:
        for name, data in content.items():
            book.writestr(name, data)
    assert read_file(path).table.to_pydict() == {"a": [1], "b": [2]}


def test_the_sheet_is_chosen(tmp_path):
    path = workbook(
        tmp_path / "in.xlsx", [["age"], *([age] for age in AGE)], others=["Other", "Third"]
    )
    assert read_file(path).format.excel.sheet == "Data"
    assert read_file(path, sheet="Other").as_written.column_names == ["x"]
    with pytest.raises(
        TableError, match=r"does not have the sheet 'none', but 'Data', 'Other'.*--sheet"
    ):
        read_file(path, sheet="none")
    target = tmp_path / "out.xlsx"
    done = here("protect", path, target, "--k", 3, "--columns", "age", "--sheet", "Data")
    assert "Only the sheet 'Data' is written, without 'Other', 'Third'" in said(done)
    assert read_file(target, sheet="Data").as_written.num_rows == 6


def test_a_sheet_is_for_excel_files(tmp_path):
    (tmp_path / "in.csv").write_text("age\n1\n")
    done = here("protect", tmp_path / "in.csv", tmp_path / "out.csv", "--k", 3, "--sheet", "Data")
    assert done.returncode == 2
    assert "--sheet is about Excel files" in said(done)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is empty"),
        ([["a", None, "c"], [1, 2, 3]], "column B of 'Data' has none"),
        ([["a", "a"], [1, 2]], "Column names must differ"),
        ([["a"], [1, 2]], "column B of 'Data' has none"),
    ],
)
def test_sheets_that_do_not_fit(tmp_path, rows, message):
    with pytest.raises(TableError, match=message):
        read_file(workbook(tmp_path / "in.xlsx", rows))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"x": ["a", "b\x01"]}, "no control characters; column 'x', row 2 has one"),
        ({"x": ["a" * 40_000]}, "at most 32,767 signs; column 'x', row 1"),
        ({"x": [1.0, float("inf")]}, "a finite number; column 'x' has an infinite one in row 2"),
    ],
)
def test_values_without_a_place(tmp_path, table, message):
    with pytest.raises(TableError, match=message):
        write_file(pa.table(table), tmp_path / "out.xlsx")


def test_dates_before_those_of_excel_are_text(tmp_path):
    path = tmp_path / "out.xlsx"
    days = [dt.date(1850, 1, 1), dt.date(2024, 1, 1)]
    write_file(pa.table({"day": days}), path, FileFormat(excel=ExcelFormat("Old")))
    read = read_file(path)
    assert read.as_written["day"].to_pylist() == ["1850-01-01", "2024-01-01"]
    assert dict(read.format.excel.kinds)["day"] == "text"


# Files that unpack to more than memory holds


def sheet_xml(rows: str, last: str) -> str:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<worksheet xmlns="{space}"><dimension ref="A1:{last}"/><sheetData>{rows}</sheetData></worksheet>'


def with_sheet(tmp_path: Path, rows: str, last: str = "A1") -> Path:
    """A workbook with rows of its own, and the last cell that it declares."""
    plain, path = tmp_path / "plain.xlsx", tmp_path / "large.xlsx"
    write_file(pa.table({"age": AGE}), plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            own = name == "xl/worksheets/sheet1.xml"
            new.writestr(name, sheet_xml(rows, last) if own else old.read(name))
    return path


def test_more_rows_than_a_sheet_can_have_are_refused(tmp_path):
    path = with_sheet(tmp_path, "<row><c><v>1</v></c></row>" * 1_048_577)
    with pytest.raises(TableError, match=r"at most 1,048,576 rows; .* has 1,048,577"):
        read_file(path)


def test_a_file_that_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch):
    path = with_sheet(tmp_path, '<row r="1"><c r="A1"><v>1</v></c></row>' * 40_000)
    assert path.stat().st_size < 50_000
    monkeypatch.setattr("microagg.formats.excel.free_memory", lambda: 1_000_000)
    with pytest.raises(TableError, match=r"unpacks to more than the 1 MB that are free\. Save"):
        read_file(path)


@pytest.mark.parametrize("last", ["XFD1048576", "AAA900000"])
def test_cells_far_away_are_refused_before_they_take_memory(tmp_path, last):
    path = with_sheet(tmp_path, f'<row r="1"><c r="{last}"><v>1</v></c></row>', last)
    with pytest.raises(
        TableError, match=f"the last one is {last}, too far for .* Delete the cells"
    ):
        read_file(path)
