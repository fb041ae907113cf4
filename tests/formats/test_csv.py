"""CSV: what is not protected comes out to the letter; what is broken is refused by line."""

import encodings.aliases
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg import TableError
from microagg.formats.csv import Csv, CsvText
from microagg.formats.layouts import CsvFormat, FileFormat
from microagg.tables.numbers_in_text import as_typed

# Text that looks like numbers, dates or missing values elsewhere.
ODD_TEXTS = ["00123", "1.50", "9" * 25, "", "  outer blanks ", "NA", "0x1F", "+5", "1e5"]


def read_csv(path: Path, form: CsvFormat) -> tuple[pa.Table, CsvFormat]:
    with path.open("rb") as file:
        text = CsvText(path, form, file)
        return text.read(file), text.form


def write_csv(table: pa.Table, path: Path, form: CsvFormat) -> None:
    Csv().write(table, path, FileFormat(form))


def read(path: Path, data: str | bytes, **form):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_csv(path, CsvFormat(**form))


def read_typed(path: Path, data: str | bytes, numbers=(), **form):
    text, found = read(path, data, **form)
    return as_typed(text, found.decimal, numbers)


def typed(path: Path) -> pa.Table:
    text, found = read_csv(path, CsvFormat())
    return as_typed(text, found.decimal)


def through(path: Path, data: str | bytes, numbers=(), **form) -> bytes:
    """Read a file, write it back in the format that was found, some columns as numbers."""
    table, found = read(path, data, **form)
    typed = as_typed(table, found.decimal)
    for name in numbers:
        table = table.set_column(table.column_names.index(name), name, typed[name])
    copy = path.with_name("copy.csv")
    write_csv(table, copy, found)
    return copy.read_bytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "in.csv"


# To the letter


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(ODD_TEXTS),
            st.text(st.sampled_from('ab,;\t|"\n\r 0')),
        ),
        min_size=1,
    ),
    st.sampled_from(",;\t|#"),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_text_comes_back_to_the_letter(tmp_path_factory, rows, delimiter, newline):
    path = tmp_path_factory.mktemp("csv") / "any.csv"
    form = CsvFormat(delimiter=delimiter, newline=newline)
    table = pa.table({"one": [a for a, _ in rows], "two": [b for _, b in rows]})
    write_csv(table, path, form)
    again, found = read_csv(path, form)
    assert again.to_pydict() == table.to_pydict()
    assert found.newline == newline


@given(st.lists(st.text(st.sampled_from('a,;\t|"\n ')), min_size=1, max_size=4, unique=True))
def test_any_column_names_come_back_without_telling_the_delimiter(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("csv") / "names.csv"
    table = pa.table({name: ["x", "y"] for name in names})
    write_csv(table, path, CsvFormat())
    again, _ = read_csv(path, CsvFormat())
    assert again.column_names == names
    assert again.to_pydict() == table.to_pydict()


@pytest.mark.parametrize(
    "text",
    [
        "id,x,note\n00123,1,a\n00124,2,\n",
        "id;x;note\n00123;1;a,b\n00124;2;\n",
        "id\tx\tnote\n00123\t1\ta\n00124\t2\t\n",
        "id|x|note\n00123|1|a\n00124|2|\n",
        "id,x,note\r\n00123,1,a\r\n00124,2,\r\n",
        "id,x,note\r00123,1,a\r00124,2,\r",
        '"i;d",x,"no\nte"\r\n00123,1,"a\nb"\r\n00124,2,"say ""x"""\r\n',
        ',x,"1,5"\n00123,1,1.50\n00124,2,1e5\n',
    ],
)
def test_a_file_comes_back_byte_for_byte(path, text):
    assert through(path, text, numbers=["x"]) == text.encode()


def test_thousands_of_columns_keep_their_line_ends(path):
    names = ",".join(f"gene_{j:06d}" for j in range(6_000))
    values = ",".join("01" for _ in range(6_000))
    text = f"{names}\r\n{values}\r\n"
    assert through(path, text) == text.encode()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_from_the_header_line(path, delimiter):
    table, form = read(path, f'a{delimiter}"b,;|x"{delimiter}c\n1{delimiter}2{delimiter}3\n')
    assert form.delimiter == delimiter
    assert table.column_names == ["a", "b,;|x", "c"]


def test_a_given_delimiter_wins(path):
    table, _ = read(path, "a;b#c\n1;2#3\n", delimiter="#")
    assert table.to_pydict() == {"a;b": ["1;2"], "c": ["3"]}


def test_a_lone_column_is_no_matter_of_delimiters(path):
    table = read_typed(path, "x\n1\n2\n")
    assert table.to_pydict() == {"x": [1, 2]}


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.decimal128(21, 2), pa.bool_()])
def test_missing_numbers_of_a_lone_column_are_no_blank_lines(path, kind):
    table = pa.table({"x": pa.array([1, None, 0], pa.int64()).cast(kind)})
    write_csv(table, path, CsvFormat())
    assert path.read_text(encoding="utf-8").splitlines()[2] == '""'
    again, _ = read_csv(path, CsvFormat())
    assert again["x"].to_pylist()[1] == ""
    assert again.num_rows == 3


def test_empty_values_of_a_lone_column_are_kept(path):
    table = pa.table({"x": ["a", "", "b", ""]})
    write_csv(table, path, CsvFormat())
    again, _ = read_csv(path, CsvFormat())
    assert again.equals(table)


def test_blank_lines_are_skipped_also_before_the_header(path):
    table, form = read(path, "\r\n\r\na;b\r\n001;2\r\n\r\n003;4\r\n\r\n")
    assert table.to_pydict() == {"a": ["001", "003"], "b": ["2", "4"]}
    assert form.newline == "\r\n"


# Encodings


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8", "utf-16", "utf-8-sig"])
def test_encodings_come_back_byte_for_byte(path, encoding):
    data = "naïve,x\n00é,1\nà la,2\n".encode(encoding)
    assert through(path, data, numbers=["x"], encoding=encoding) == data


def test_signs_of_cp1252_are_understood(path):
    table, _ = read(path, "a\n€5\n".encode("cp1252"), encoding="cp1252")
    assert table["a"].to_pylist() == ["€5"]


@pytest.mark.parametrize("given_encoding", [None, "utf-8", "UTF8", "utf-8-sig"])
def test_a_byte_order_mark_is_kept_and_no_part_of_the_first_name(path, given_encoding):
    data = "\ufeffid,x\n001,1\n".encode()
    table, _ = read(path, data, encoding=given_encoding)
    assert table.to_pydict() == {"id": ["001"], "x": ["1"]}
    assert through(path, data, encoding=given_encoding) == data


@pytest.mark.parametrize("given_encoding", [None, "utf-16", "utf-16-le"])
def test_utf_16_is_known_by_its_mark(path, given_encoding):
    data = "id\tx\r\n001\té\r\n".encode("utf-16")
    table, form = read(path, data, encoding=given_encoding)
    assert table.to_pydict() == {"id": ["001"], "x": ["é"]}
    assert (form.delimiter, form.newline) == ("\t", "\r\n")
    assert through(path, data, encoding=given_encoding) == data


@pytest.mark.parametrize("rows_before", [0, 400_000], ids=["first block", "later block"])
@pytest.mark.parametrize("encoding", [None, "ascii"])
def test_a_wrong_encoding_is_refused(path, encoding, rows_before):
    data = b"a,b\n" + b"1,2\n" * rows_before + "é,1\n".encode("latin-1")
    with pytest.raises(TableError, match=r"is not text in the encoding .*--encoding, .*latin-1"):
        read(path, data, encoding=encoding)


def test_utf_16_without_its_mark_is_refused(path):
    with pytest.raises(TableError, match="is not text in the encoding utf-16"):
        read(path, b"a,b\n1,2\n", encoding="utf-16")


def test_a_sign_that_the_encoding_lacks_is_refused_when_writing(path):
    with pytest.raises(TableError, match=r"latin-1 has no sign for '€'.*utf-8"):
        write_csv(pa.table({"a": ["5 €"]}), path, CsvFormat(encoding="latin-1"))


# Numbers


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "-2", " 3 "], [1, -2, 3]),
        (["1.5", "2", "-0.25"], [1.5, 2.0, -0.25]),
        (["1e3", "2.5E-1", "-1e+2"], [1000.0, 0.25, -100.0]),
        (["+5", "1.5"], [5.0, 1.5]),
        (["9223372036854775807", "1"], [9223372036854775807, 1]),
        (["9223372036854775808", "1"], [2.0**63, 1.0]),
        (["1", "", "3"], [1, None, 3]),
        (["1.5", "NA", "N/A", "NULL", "null", "nan"], [1.5, *[None] * 5]),
        (["007", "1"], ["007", "1"]),
        (["0x10", "1"], ["0x10", "1"]),
        (["0", "0.5", "-0.5"], [0.0, 0.5, -0.5]),
        (["1", "one"], ["1", "one"]),
        (["", "NA"], ["", "NA"]),
        (["true", "false"], ["true", "false"]),
        (["2020-01-01", "2020-01-02"], ["2020-01-01", "2020-01-02"]),
        (["1,5", "2"], ["1,5", "2"]),
    ],
)
def test_what_counts_as_numbers(path, values, expected):
    table = read_typed(path, "a;b\n" + "".join(f"{v};x\n" for v in values))
    assert table["a"].to_pylist() == expected
    assert [type(v) for v in table["a"].to_pylist()] == [type(v) for v in expected]


def test_leading_zeros_are_numbers_when_asked_for(path):
    table = read_typed(path, "a\n007\n010\n", numbers=["a"])
    assert table["a"].to_pylist() == [7, 10]


def test_hexadecimal_codes_are_text_also_when_asked_for(path):
    table = read_typed(path, "a\n0x10\n-0x11\n", numbers=["a"])
    assert table["a"].to_pylist() == ["0x10", "-0x11"]


def test_decimal_commas_in_and_out(path):
    text = "id;x;n\n1,50;1,5;1\n2,50;-2,25e3;2\n"
    assert read_typed(path, text, decimal=",").to_pydict() == {
        "id": [1.5, 2.5],
        "x": [1.5, -2250.0],
        "n": [1, 2],
    }
    written = through(path, text, numbers=["x", "n"], decimal=",")
    assert written.decode() == "id;x;n\n1,50;1,5;1\n2,50;-2250;2\n"


@pytest.mark.parametrize("value", ["1.5", "1.234,5", "1,234,5"])
def test_other_signs_in_a_column_of_decimal_commas_leave_it_text(path, value):
    table = read_typed(path, f"x;y\n1,5;1\n{value};2\n", decimal=",")
    assert table["x"].to_pylist() == ["1,5", value]


def test_a_table_with_decimal_commas_gets_semicolons(path):
    write_csv(pa.table({"x": [1.5], "y": ["a,b"]}), path, CsvFormat(decimal=","))
    assert path.read_text() == "x;y\n1,5;a,b\n"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_doubles_are_written_so_that_they_read_back_bit_for_bit(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("csv") / "floats.csv"
    write_csv(pa.table({"x": values, "y": ["a"] * len(values)}), path, CsvFormat())
    texts = [line.split(",")[0] for line in path.read_text().splitlines()[1:]]
    assert [struct.pack("d", float(text)) for text in texts] == [
        struct.pack("d", value) for value in values
    ]
    # repr is the shortest text that reads back; ours may write it in another notation only.
    digits = [text.lower().split("e")[0].strip("-").replace(".", "").strip("0") for text in texts]
    shortest = [
        repr(v).lower().split("e")[0].strip("-").replace(".", "").strip("0") for v in values
    ]
    assert digits == shortest
    assert np.array_equal(typed(path)["x"].to_numpy().astype(float), values)


# What is written


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([1, None], pa.int64()), ["1", ""]),
        (pa.array([2**64 - 1, 0], pa.uint64()), ["18446744073709551615", "0"]),
        (pa.array([1.0, 0.1], pa.float64()), ["1", "0.1"]),
        (pa.array([0.1, 1.5], pa.float32()), ["0.1", "1.5"]),
        (pa.array([True, None]), ["true", ""]),
        (pa.array(["a", None]).dictionary_encode(), ["a", ""]),
        (pa.array([0, 1], pa.date32()), ["1970-01-01", "1970-01-02"]),
        (pa.array([None, None]), ["", ""]),
    ],
)
def test_types_as_text(path, column, text):
    write_csv(pa.table({"a": column, "b": ["x", "x"]}), path, CsvFormat())
    assert path.read_text() == f"a,b\n{text[0]},x\n{text[1]},x\n"


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, b"\xff\xfe"])
def test_a_type_that_no_csv_holds_is_refused_by_column(path, value):
    table = pa.table({"a": [1], "deep": [value]})
    with pytest.raises(TableError, match=r"column 'deep' of type .* does not fit.*Parquet"):
        write_csv(table, path, CsvFormat())


# Broken files


@pytest.mark.parametrize("data", ["", "\n\n", "\ufeff"])
def test_an_empty_file_is_refused(path, data):
    with pytest.raises(TableError, match=r"line of column names; .*in.csv' is empty"):
        read(path, data)


@pytest.mark.parametrize("data", ["a,b", "a,b\n", "a,b\r\n\r\n", '\n"a","b"\n'])
def test_a_header_without_records_is_an_empty_table(path, data):
    table, _ = read(path, data)
    assert table.to_pydict() == {"a": [], "b": []}


def test_duplicate_names_are_refused(path):
    with pytest.raises(TableError, match=r"names must differ; .* 'a' occurs more than once"):
        read(path, "a,b,a\n1,2,3\n")


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        ("a,b\n1,2\n3\n4,5\n", "2 columns, but line 3 has 1 field."),
        ("a,b\n1,2,3\n", "2 columns, but line 2 has 3 fields."),
        ('a,b\n1,"x\ny"\n\n2,3,4\n', "2 columns, but line 5 has 3 fields."),
        ('"a\nb",c\r\n1,2\r\n3,4,5\r\n', "2 columns, but line 4 has 3 fields."),
        ("\n\na,b\n1\n", "2 columns, but line 4 has 1 field."),
        ("a,b\n" + "1,2\n" * 600_000 + "1,2,3\n", "2 columns, but line 600002 has 3 fields."),
    ],
)
def test_a_wrong_number_of_fields_is_refused_by_line(path, data, fact):
    with pytest.raises(TableError) as caught:
        read(path, data)
    assert fact in str(caught.value)
    assert "Fix that line, or give the right --delimiter." in str(caught.value)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ('a,b\n1,"x\n2,y\n3,z\n', 2),
        ('a,b\n0,w\n1,"x\n2,y\n3,z', 3),
        ('a,b\n0,w\n"1,x\n2,y\n3,z\n', 3),
        ('"a,b\n1,2\n', 1),
        ('"a,b\n' + "1,2\n" * 100_000, 1),
        ('a,b\n1,"x\n' + "2,y\n" * 600_000, 2),
        ('a,b\n1,"x"y"\n2,"z\n', 2),
    ],
)
def test_a_quote_never_closed_is_refused_by_line(path, data, line):
    with pytest.raises(TableError, match=rf"quote that opens .* begins on line {line} "):
        read(path, data)


def test_zero_bytes_in_numbers_make_text_of_them(path):
    table = read_typed(path, b"a,x\nb,1\nc,2\0\n", numbers=["x"])
    assert table["x"].to_pylist() == ["1", "2\0"]


# Large files


def test_a_file_of_many_blocks_with_line_ends_in_its_values(path):
    n = 60_000
    note = [f"{i:06d}\nline two, {i}" if i % 3 else f"plain {i}" for i in range(n)]
    table = pa.table({"x": np.arange(n), "note": note})
    write_csv(table, path, CsvFormat())
    assert path.stat().st_size > 1 << 20
    again, form = read_csv(path, CsvFormat())
    assert again["note"].to_pylist() == note
    assert typed(path)["x"].to_pylist() == list(range(n))
    copy = path.with_name("copy.csv")
    write_csv(again, copy, form)
    assert copy.read_bytes() == path.read_bytes()


def test_rows_beyond_one_block_of_writing_stay_in_order(path):
    n = 250_001
    write_csv(pa.table({"x": np.arange(n), "y": np.arange(n) / 4}), path, CsvFormat())
    again = typed(path)
    assert np.array_equal(again["x"], np.arange(n))
    assert np.array_equal(again["y"], np.arange(n) / 4)


@pytest.mark.parametrize("place", ["header", "first", "last"])
def test_a_value_longer_than_a_block_is_read(path, place):
    long = "long text, " * 300_000
    rows = {"header": (long, "a", "b"), "first": ("t", long, "b"), "last": ("t", "a", long)}[place]
    table = pa.table({rows[0]: [rows[1], *["x"] * 5, rows[2]], "n": list(range(7))})
    write_csv(table, path, CsvFormat())
    assert typed(path).to_pydict() == table.to_pydict()


# Options


@pytest.mark.parametrize("delimiter", ["", ",,", "€", "\0", '"', "\n", "\r"])
def test_impossible_delimiters(delimiter):
    with pytest.raises(TableError, match="The delimiter must be"):
        CsvFormat(delimiter=delimiter)


@pytest.mark.parametrize("decimal", ["", ";", ".,"])
def test_impossible_decimal_signs(decimal):
    with pytest.raises(TableError, match=r"The decimal sign must be \. or ,"):
        CsvFormat(decimal=decimal)


def test_delimiter_and_decimal_sign_must_differ():
    with pytest.raises(TableError, match=r"must differ; both are ','.*;"):
        CsvFormat(delimiter=",", decimal=",")


@pytest.mark.parametrize(
    "encoding",
    [
        *("no-such-encoding", "a\0b", "", "hex", "rot13", "bz2", "base64", "undefined"),
        *("idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7"),
    ],
)
def test_what_is_no_encoding_of_text_files(encoding):
    with pytest.raises(TableError, match=r"encoding must be one of text files; .* Try utf-8"):
        CsvFormat(encoding=encoding)


@pytest.mark.parametrize("encoding", sorted(set(encodings.aliases.aliases.values())))
def test_every_codec_of_python_reads_back_what_it_wrote_or_is_refused(path, encoding):
    try:
        form = CsvFormat(encoding=encoding)
    except TableError:
        return
    table = pa.table({"id": ["001", "002"], "x": ["1", "2"]})
    write_csv(table, path, form)
    again, _ = read_csv(path, form)
    assert again.equals(table)


# Hostile files


def test_a_column_that_is_text_late_is_text(path):
    table = read_typed(path, "a,b\n" + "1,\n" * 30_000 + "x,2\n")
    assert table.schema.types == [pa.string(), pa.int64()]
    assert table["b"].null_count == 30_000
