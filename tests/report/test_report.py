"""The report: all of it there, nothing of any record, everything escaped, the twin complete."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import InputError, TableError
from microagg.report import html, model
from microagg.report.model import _distribution

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 120
    return pd.DataFrame(
        {
            "income": rng.lognormal(8, 1, n).round(2),
            "age": rng.integers(18, 90, n),
            "region": rng.choice(["north", "south"], n),
            "illness": rng.choice(["flu", "cold", "none"], n),
        }
    )


class Texts(HTMLParser):
    """What a reader sees, and which elements there are."""

    def __init__(self, page):
        super().__init__()
        self.words, self.tags, self.links = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).replace("\xa0", " ").split())


def written(release, path, **settings):
    release.report(path, **settings)
    return path.read_text(encoding="utf-8"), json.loads(path.with_suffix(".json").read_text())


def test_first_screen_and_twin(frame, tmp_path):
    source = tmp_path / "in.csv"
    frame.to_csv(source, index=False)
    release = microagg.protect(frame, k=5, columns=["income", "age"], method="mdav")
    release.write(tmp_path / "safe.csv")
    page, twin = written(
        release,
        tmp_path / "report.html",
        source=source,
        analyses=["income ~ age", "income by region"],
        confidential=["illness"],
    )
    seen = Texts(page).text
    for words in (
        "Protected by microaggregation, k = 5",
        "protected: income, age",
        "Verified. The written file was read back: 120 records, 24 combinations",
        "Domingo-Ferrer & Torra 2005",
        "an attacker links",
        "could a method do better?",
        "income by region",
        "Confidential columns",
        "What other k would give",
        "microagg.protect(frame, k=5, columns=['income', 'age'], method='mdav'",
        f"microagg {microagg.__version__}",
        "record linkage An attack",
        hashlib.sha256(source.read_bytes()).hexdigest(),
        hashlib.sha256((tmp_path / "safe.csv").read_bytes()).hexdigest(),
    ):
        assert words in seen, words
    assert f"{release.utility.information_loss:.2f} %" in seen
    assert twin["utility"]["information_loss"] == release.utility.information_loss
    assert twin["risk"]["record_linkage"] == release.risk.record_linkage
    assert twin["verified"]["holds"] is True
    assert page.count("<svg") == 2 + 2 + 1 + 3 + 1  # distributions, correlations …, map
    assert {row["k"] for row in twin["alternatives"]["cells"]} == {2, 5, 10, 20}


def test_every_number_of_the_page_is_in_the_twin(frame, tmp_path):
    """Numbers of the tables, as far as they have a decimal point, come from the model."""
    release = microagg.protect(frame, k=5, columns=["income", "age"])
    page, twin = written(release, tmp_path / "report.html")
    known = set()

    def gather(value):
        if isinstance(value, dict):
            for inner in value.values():
                gather(inner)
        elif isinstance(value, list):
            for inner in value:
                gather(inner)
        elif isinstance(value, int | float):
            for number in (value, 100 * value):
                known.update(
                    {
                        f"{float(f'{number:.3g}'):,.0f}",
                        f"{number:.3g}",
                        f"{number:.2f}",
                        f"{number:.1g}",
                        f"{number:g}",
                    }
                )

    gather(twin)
    cells = re.findall(r"<td[^>]*class=\"n\"[^>]*>(.*?)</td>", page)
    numbers = [n for cell in cells for n in re.findall(r"\d+\.\d+", cell)]
    assert len(numbers) > 20
    assert [n for n in numbers if n not in known] == []


def test_no_script_no_net_and_nothing_but_the_file(frame, tmp_path):
    page, _ = written(microagg.protect(frame, k=5, columns=["age"]), tmp_path / "report.html")
    found = Texts(page)
    assert "script" not in found.tags
    assert [link for link in found.links if not link.startswith(("#", "data:"))] == []
    assert not re.search(r"url\((?!#|&quot;#)", page)
    assert "default-src 'none'" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


HOSTILE = '<script>alert("x")</script>&$a_b$\x1b[31m\'"'


def test_names_and_values_are_text(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            HOSTILE: rng.normal(size=60),
            "<b>二</b>": rng.normal(size=60),
            "group": ["<img src=x>"] * 30 + ["{{ 7 * 7 }}"] * 30,
        }
    )
    release = microagg.protect(frame, k=5, columns=[HOSTILE, "<b>二</b>"])
    page, twin = written(
        release, tmp_path / "r.html", analyses=[[HOSTILE, "by", "group"]], confidential=["group"]
    )
    found = Texts(page)
    assert not {"script", "img", "b"} & (set(found.tags) - {"b"})
    assert found.tags.count("b") == 4  # those of the cards
    assert "{{ 7 * 7 }}" in found.text
    assert "\x1b" not in page
    assert HOSTILE in twin["columns"]["protected"]


def planted(frame):
    """A table with values that occur once and would be noticed anywhere."""
    frame = frame.copy()
    frame["income"] = frame["income"].astype(float)
    frame.loc[3, "income"] = 987654.321  # an outlier
    frame.loc[7, "income"] = 2345.6789  # in the midst
    frame.loc[8, "income"] = -4242.4242
    frame.loc[11, "age"] = 777
    middle = frame["income"].median()
    frame.loc[12, "income"] = middle  # the middle one of an odd number is a record
    frame["region"] = frame["region"].astype(object)
    frame.loc[20, "region"] = "CANARYLAND"
    frame.loc[21, "illness"] = "CANARYPOX"
    return frame, [987654.321, 2345.6789, -4242.4242, 777]


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("k", [2, 5])
def test_no_original_record_appears(frame, tmp_path, public, k):
    frame, canaries = planted(frame)
    release = microagg.protect(frame, k=k, columns=["income", "age"])
    release.write(tmp_path / "safe.csv")
    page, twin = written(
        release,
        tmp_path / "report.html",
        public=public,
        analyses=["income by region", "income ~ age", "age by illness"],
        confidential=["illness"],
        dominance=["income"],
    )
    for text in (page, json.dumps(twin), Texts(page).text):
        assert "CANARY" not in text
        for value in canaries:
            for form in (f"{value:.7g}", f"{value:.5g}", f"{value:,.0f}", repr(value)):
                # As a number of its own, not as digits of a coordinate.
                assert not re.search(rf"(?<![\d.]){re.escape(form)}(?![\d])", text), form
    numbers = set(_numbers(twin))
    originals = set(frame["income"])  # ages are small whole numbers, as counts are
    assert not numbers & originals


def _numbers(value):
    if isinstance(value, dict):
        return [n for inner in value.values() for n in _numbers(inner)]
    if isinstance(value, list):
        return [n for inner in value for n in _numbers(inner)]
    return [value] if isinstance(value, float) else []


def test_public_leaves_out_what_reveals(frame, tmp_path):
    source = tmp_path / "secret-folder" / "in.csv"
    source.parent.mkdir()
    frame.to_csv(source, index=False)
    frame.loc[0, "income"] = 1e6
    release = microagg.protect(frame, k=5, columns=["income", "age"])
    release.write(tmp_path / "safe.csv")
    settings = {
        "source": source,
        "analyses": ["income by region"],
        "confidential": ["illness"],
        "dominance": ["income"],
        "dominance_percent": 50,
        "command": [
            "microagg",
            "protect",
            str(source),
            "safe.csv",
            "--report",
            str(tmp_path / "p.html"),
        ],
    }
    page, twin = written(release, tmp_path / "p.html", public=True, **settings)
    board, full = written(release, tmp_path / "b.html", **settings)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert digest in board
    assert digest not in page + json.dumps(twin)
    assert "secret-folder" not in page + json.dumps(twin)
    assert "quantile_deviations" not in twin["utility"]
    assert "estimates" not in twin["utility"]["analyses"][0]
    assert twin["risk"]["dominance"]["income"] == {"percent": 50, "holds": False}
    assert "records_disclosed" not in twin["risk"]["diversity"]["illness"]
    assert not any(re.search(r"\d+ groups", caution) for caution in twin["cautions"])
    assert len(twin["cautions"]) == len(full["cautions"]) >= 1
    assert full["risk"]["dominance"]["income"]["largest"] > 0.5
    loss = release.utility.information_loss
    assert twin["utility"]["information_loss"] == float(f"{loss:.3g}")
    assert "Public" in page
    assert "Public" not in board


def test_public_shows_no_group_under_k(frame, tmp_path):
    release = microagg.protect(frame, k=5, columns=["income", "age"], per_column=True)
    _, full = written(release, tmp_path / "b.html")
    page, twin = written(release, tmp_path / "p.html", public=True)
    assert any(row["size"] < 5 for row in full["pictures"]["class_sizes"])
    assert all(row["size"] >= 5 for row in twin["pictures"]["class_sizes"])
    assert "not k-anonymity" in page


@pytest.mark.parametrize("seed", range(6))
def test_bins_hold_at_least_k_and_are_cut_by_protected_values(seed):
    rng = np.random.default_rng(seed)
    x = rng.lognormal(sigma=seed, size=rng.integers(5, 400))
    k = int(rng.integers(3, 9))
    k = min(k, len(x))
    y = microagg.Microaggregator(k=k).fit_transform(x.reshape(-1, 1)).ravel()
    found = _distribution(x, y, k)
    assert min(found["before"] + found["after"]) >= k
    assert sum(found["before"]) == sum(found["after"]) == len(x)
    assert len(found["cuts"]) == len(found["before"]) - 1
    edges = [-np.inf, *found["cuts"], np.inf]
    for i, count in enumerate(found["before"]):
        assert count == np.sum((x >= edges[i]) & (x < edges[i + 1]))
    shifted = _distribution(x + rng.normal(size=len(x)) * 1e-9, y, k)
    assert set(shifted["cuts"]) <= set(np.linspace(*np.quantile(y, [0.01, 0.99]), 25)) | {min(y)}


def test_a_table_not_written_is_not_called_verified(frame, tmp_path):
    page, twin = written(microagg.protect(frame, k=5, columns=["age"]), tmp_path / "r.html")
    assert "No file was written yet" in page
    assert twin["verified"] is None


def test_a_bound_is_shown_when_known(frame, tmp_path):
    from dataclasses import replace

    release = microagg.protect(frame, k=5, columns=["income", "age"])
    part = release.partition
    bound = replace(part, lower_bound=part.sse * 0.75)
    known = replace(release, parts=[(release.columns, bound)])
    page, twin = written(known, tmp_path / "r.html")
    assert "by at most 25.00 %" in Texts(page).text
    assert twin["parts"][0]["gap"] == pytest.approx(0.25)
    exact = microagg.protect(frame, k=5, columns=["age"], method="simple")
    assert "no partition with this k loses less" in written(exact, tmp_path / "e.html")[0]


@pytest.mark.parametrize("columns", [["a"], ["a", "constant"]])
def test_constant_and_tiny_tables(tmp_path, columns):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 3.0], "constant": 5.0})
    page, _ = written(microagg.protect(frame, k=2, columns=columns), tmp_path / "r.html")
    assert "<svg" in page


def test_the_same_release_gives_the_same_page(frame, tmp_path):
    release = microagg.protect(frame, k=5, columns=["income", "age"])
    pages = [written(release, tmp_path / f"{i}.html")[0] for i in range(2)]
    plain = [re.sub(r"on \d{4}-\d\d-\d\d \d\d:\d\d UTC", "", page) for page in pages]
    assert plain[0] == plain[1]


def test_a_report_of_a_comparison(frame, tmp_path):
    found = microagg.compare(frame, k=[3, 5], methods=["mdav"], columns=["income", "age"])
    found.report(tmp_path / "c.html", max_loss=50)
    page = (tmp_path / "c.html").read_text()
    twin = json.loads((tmp_path / "c.json").read_text())
    assert "meets the target" in page
    assert "Risk–utility map" in page
    assert twin["comparison"]["cells"][0]["information_loss"] == found.cells[0].information_loss
    found.report(tmp_path / "p.html", public=True)
    assert json.loads((tmp_path / "p.json").read_text())["public"] is True
    assert "Public report" in (tmp_path / "p.html").read_text()


def test_many_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(html, "_MOST_DISTRIBUTIONS", 3)
    monkeypatch.setattr(html, "_MOST_CORRELATIONS", 3)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.lognormal(sigma=2, size=(80, 5)), columns=list("vwxyz"))
    page, twin = written(microagg.protect(frame, k=4), tmp_path / "r.html")
    assert "The first 3 of 5 columns" in page
    assert "The matrices are in the JSON file" in page
    assert len(twin["pictures"]["distributions"]) == 5


def test_a_large_table_says_why_there_is_no_map(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(model, "_RECORDS_FOR_ALTERNATIVES", 100)
    page, twin = written(microagg.protect(frame, k=5, columns=["age"]), tmp_path / "r.html")
    assert "microagg compare" in page
    assert twin["alternatives"] is None


def test_a_report_that_cannot_be_written(frame, tmp_path):
    release = microagg.protect(frame, k=5, columns=["age"])
    with pytest.raises(InputError, match=r"does not end in \.html"):
        release.report(tmp_path / "report.pdf")
    with pytest.raises(TableError, match="there is no folder"):
        release.report(tmp_path / "none" / "report.html")


def test_auto_names_what_it_ran(frame, tmp_path):
    page, twin = written(
        microagg.protect(frame, k=5, columns=["income", "age"]), tmp_path / "r.html"
    )
    assert "Grouped by auto (heuristic): chooses for you" in Texts(page).text
    assert twin["parts"][0]["method"] == "auto"
    page, twin = written(microagg.protect(frame, k=5, columns=["age"]), tmp_path / "e.html")
    assert twin["parts"][0]["guarantee"] == "exact"
    assert "no partition with this k loses less" in page


@pytest.mark.parametrize(
    "settings", [{"cost": "sae"}, {"aggregate": "median"}, {"group_cost": 1e6}]
)
def test_the_best_groups_for_something_else_are_not_called_the_least_loss(
    frame, tmp_path, settings
):
    release = microagg.protect(frame, k=5, columns=["income"], method="wilber", **settings)
    page = written(release, tmp_path / "r.html")[0]
    assert "no partition with this k loses less" not in page
    assert "others may lose less" in page


def test_no_group_of_two_is_shown_even_for_k_of_two(frame, tmp_path):
    """A mean and its interval of two records can be solved for both values."""
    frame["pair"] = [i // 2 if i < 20 else 99 for i in range(len(frame))]
    release = microagg.protect(frame, k=2, columns=["income", "age"])
    page, twin = written(release, tmp_path / "r.html", analyses=["income by pair"])
    shown = twin["utility"]["analyses"][0]
    assert [estimate["name"] for estimate in shown["estimates"]] == ["99"]
    assert shown["left_out"] == 10
    assert "groups with fewer than 3 records, 10 in number" in page


def test_other_k_are_tried_with_the_same_settings(frame, tmp_path):
    for gamma in (0.0, 3.0):
        release = microagg.protect(
            frame, k=5, columns=["income", "age"], method="v-mdav", gamma=gamma
        )
        _, twin = written(release, tmp_path / "r.html")
        (own,) = (cell for cell in twin["alternatives"]["cells"] if cell["k"] == 5)
        assert own["information_loss"] == pytest.approx(release.utility.information_loss)
