"""The report: all of it there, nothing of any record, everything escaped, the twin complete."""

import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import Plan
from microagg.formats.atomic import sha256
from microagg.measure.before_and_after import bin_cuts, distribution
from microagg.report.public import band, band_of_times

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


# For tests in which the groups do not matter: the default searches, and proves a bound.
QUICK = {"method": "mdav", "bound": False}
CLAIMED = {"k": 5, "columns": ["income", "age"], "confidential": ["illness"], "method": "mdav"}


@pytest.fixture
def frame():
    return table()


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A release by the defaults, with its report."""
    release = microagg.protect(table(), k=5, columns=["income", "age"])
    return release, *written(release, tmp_path_factory.mktemp("usual") / "r.html")


def table():
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
    release = microagg.protect(frame, **CLAIMED, max_loss=50, max_linkage=0.01)
    release.write(tmp_path / "safe.csv")
    settings = {"source": source, "analyses": ["income ~ age", "income by region"]}
    page, twin = written(release, tmp_path / "report.html", **settings)
    seen = Texts(page).text
    for words in (
        "Protected by microaggregation, k = 5",
        "each combination of income, age is shared by at least 5 records",
        "Red. The record linkage with what an attacker knows is above what the plan accepts.",
        "Read back and counted: 120 records with 24 combinations",
        "information loss at most 50 %",
        "What to decide",
        "by someone who knows the unprotected columns",
        "Decision",
        "ignature",
        "Domingo-Ferrer & Torra 2005",
        "income by region",
        "Confidential columns",
        "Unprotected columns, the most harmful first",
        "left as it is: confidential; we assume that no attacker knows it",
        "left as it is: we assume that an attacker knows it",
        "--plan plan.toml",
        f"microagg {microagg.__version__}",
        hashlib.sha256(source.read_bytes()).hexdigest(),
        hashlib.sha256((tmp_path / "safe.csv").read_bytes()).hexdigest(),
    ):
        assert words in seen, words
    first_screen = seen[: seen.index("What to decide")]
    assert f"{release.utility.information_loss:.3g}" in first_screen
    for linkage in (release.risk.record_linkage, release.with_known.record_linkage):
        assert f"{100 * float(f'{linkage:.3g}'):.1f} %" in first_screen
    assert twin["utility"]["information_loss"] == float(f"{release.utility.information_loss:.3g}")
    alone, with_known = twin["risk"]["alone"], twin["risk"]["with_known"]
    assert alone["record_linkage"] == float(f"{release.risk.record_linkage:.3g}")
    assert with_known["record_linkage"] == float(f"{release.with_known.record_linkage:.3g}")
    assert twin["verified"]["holds"] is True
    assert [t["passed"] for t in twin["thresholds"]] == [True, False]
    assert seen.count("pass") >= 1 <= seen.count("fail")
    assert page.count("<svg") == 2  # distributions


def test_the_plan_in_the_report_is_the_plan(frame, tmp_path, monkeypatch):
    release = microagg.protect(
        frame, k=5, columns=["income", "age"], drop=["region", "illness"], **QUICK
    )
    page, twin = written(release, tmp_path / "r.html")
    assert Plan.from_dict(twin["plan"]) == release.plan
    assert Plan.from_toml_text(twin["plan_text"]) == release.plan
    assert 'drop = ["region", "illness"]' in Texts(page).text
    (tmp_path / "plan.toml").write_text(twin["plan_text"])
    monkeypatch.chdir(tmp_path)
    again = eval(twin["repeat"]["command"], {"microagg": microagg, "frame": frame})
    pd.testing.assert_frame_equal(again.data, release.data)


FORMS = ("g", ".1g", ".2g", ".3g", ".1f", ".2f", ".3f")


def test_every_number_of_the_page_is_in_the_twin(usual):
    """Numbers of the tables, as far as they have a decimal point, come from the model."""
    _, page, twin = usual
    known = set()

    def gather(value):
        if isinstance(value, dict):
            for inner in value.values():
                gather(inner)
        elif isinstance(value, list):
            for inner in value:
                gather(inner)
        elif isinstance(value, int | float):
            for number in (abs(value), 100 * abs(value)):
                known.add(f"{float(f'{number:.3g}'):,.0f}")
                known.update(f"{number:{form}}" for form in FORMS)

    gather(twin)
    cells = re.findall(r"<td[^>]*class=\"n\"[^>]*>(.*?)</td>", page)
    numbers = [n for cell in cells for n in re.findall(r"\d+\.\d+", cell)]
    assert len(numbers) > 20
    assert [n for n in numbers if n not in known] == []


def test_no_script_no_net_and_nothing_but_the_file(usual):
    _, page, _ = usual
    found = Texts(page)
    assert not {"script", "iframe", "object", "form"} & set(found.tags)
    assert [link for link in found.links if not link.startswith(("#", "data:"))] == []
    assert not re.search(r"url\((?!#|&quot;#)", page)
    assert "default-src 'none'" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


PUBLIC = {
    "requirements",
    *("kind", "public", "records", "k", "unit", "columns", "methods", "plan", "bands", "classes"),
    *("pictures", "files", "versions", "promise", "requirements", "verdict", "counted"),
    *("cautions", "judged", "within_groups", "over_time"),
}


def test_public_holds_what_is_listed_and_nothing_else(frame, tmp_path):
    source = tmp_path / "secret-folder" / "in.csv"
    source.parent.mkdir()
    frame.to_csv(source, index=False)
    frame.loc[0, "income"] = 1e6
    release = microagg.protect(frame, **CLAIMED, random_state=47110815020, max_loss=17)
    release.write(tmp_path / "safe.csv")
    settings = {"source": source, "analyses": ["income by region"]}
    page, twin = written(release, tmp_path / "p.html", public=True, **settings)
    board, full = written(release, tmp_path / "b.html", **settings)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert digest in board
    assert set(twin) == PUBLIC
    for word in (digest, "secret-folder", "47110815020", str(tmp_path)):
        assert word not in json.dumps(twin), word
        assert word not in page, word
    assert twin["files"]["output"]["path"] == "safe.csv"
    assert twin["files"]["output"]["sha256"] == sha256(tmp_path / "safe.csv")
    assert twin["plan"]["block"] == full["plan"]["block"]
    assert not {"seed", "accept"} & set(twin["plan"])
    assert twin["bands"] == {
        "information_loss": band(release.utility.information_loss),
        "record_linkage_alone": band(100 * release.risk.record_linkage),
        "record_linkage_with_known": band(100 * release.with_known.record_linkage),
        "unique_before": band(100 * release.risk.unique_before),
        "tables_one": band_of_times(release.fidelity.multiple(1)),
        "tables_two": band_of_times(release.fidelity.multiple(2)),
        "tables_three": band_of_times(release.fidelity.multiple(3)),
        "over_time": None,
    }
    assert "computed from the released file and the plan" in Texts(page).text
    assert "computed from the released file and the plan" not in Texts(board).text


def test_public_counts_what_everybody_can_count_in_the_file(frame, tmp_path):
    release = microagg.protect(frame, k=5, columns=["income", "age"], per_column=True)
    release.write(tmp_path / "safe.csv")
    page, twin = written(release, tmp_path / "p.html", public=True)
    counted = pd.read_csv(tmp_path / "safe.csv")
    for part, columns in (("alone", ["income", "age"]), ("with_known", list(frame.columns))):
        sizes = counted.groupby(columns).size()
        assert twin["classes"][part]["smallest_class"] == sizes.min() < 5
        assert twin["classes"][part]["classes"] == len(sizes)
        assert twin["classes"][part]["unique"] == pytest.approx((sizes == 1).sum() / 120, rel=5e-3)
    assert "Combinations of columns need not be" in page


@pytest.mark.parametrize("seed", range(6))
def test_bins_hold_at_least_k_and_are_cut_by_protected_values(seed):
    rng = np.random.default_rng(seed)
    x = rng.lognormal(sigma=seed, size=rng.integers(5, 400))
    k = int(rng.integers(3, 9))
    k = min(k, len(x))
    y = microagg.Microaggregator(k=k).fit_transform(x.reshape(-1, 1)).ravel()
    found = distribution([x, y], k)
    assert min(found["before"] + found["after"]) >= k
    assert sum(found["before"]) == sum(found["after"]) == len(x)
    assert len(found["cuts"]) == len(found["before"]) - 1
    edges = [-np.inf, *found["cuts"], np.inf]
    for i, count in enumerate(found["before"]):
        assert count == np.sum((x >= edges[i]) & (x < edges[i + 1]))
    shifted = distribution([x + rng.normal(size=len(x)) * 1e-9, y], k)
    assert set(shifted["cuts"]) <= set(bin_cuts(y))


def test_a_table_not_written_is_not_called_verified(usual):
    _, page, twin = usual
    assert "No file was written yet" in page
    assert twin["verified"] is None
    assert twin["files"] == {"input": None, "output": None}


def test_a_bound_is_computed_where_it_takes_seconds_and_nobody_said_no(frame, tmp_path):
    chosen = {"k": 5, "columns": ["income", "age"], "method": "mdav"}
    _, twin = written(microagg.protect(frame, **chosen), tmp_path / "r.html")
    assert twin["parts"][0]["lower_bound"] > 0
    assert twin["parts"][0]["could_do_better"].startswith("by at most")
    page, twin = written(microagg.protect(frame, bound=False, **chosen), tmp_path / "r.html")
    assert twin["parts"][0]["lower_bound"] is None
    assert "Not computed: the method is a heuristic." in Texts(page).text


@pytest.mark.parametrize("columns", [["a"], ["a", "constant"]])
def test_constant_and_tiny_tables(tmp_path, columns):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 3.0], "constant": 5.0})
    page, _ = written(microagg.protect(frame, k=2, columns=columns), tmp_path / "r.html")
    assert "<svg" in page


def test_the_same_release_gives_the_same_page(usual, tmp_path):
    release, page, _ = usual
    pages = [page, written(release, tmp_path / "again.html")[0]]
    plain = [re.sub(r"on \d{4}-\d\d-\d\d \d\d:\d\d UTC", "", page) for page in pages]
    assert plain[0] == plain[1]


def test_many_columns(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(42)]
    frame = pd.DataFrame(rng.lognormal(sigma=2, size=(80, 42)), columns=names)
    release = microagg.protect(frame, k=4, method="mdav", bound=False)
    page, twin = written(release, tmp_path / "r.html")
    assert "The first 40 of 42 columns" in page
    assert len(twin["pictures"]["distributions"]) == 42


def test_auto_names_what_it_ran(frame, usual, tmp_path):
    _, page, twin = usual
    assert "records by auto, k = 5." in Texts(page).text
    assert "auto is a heuristic" in Texts(page).text
    assert (twin["parts"][0]["method"], twin["parts"][0]["guarantee"]) == ("auto", "heuristic")
    page, twin = written(microagg.protect(frame, k=5, columns=["age"]), tmp_path / "e.html")
    assert twin["parts"][0]["guarantee"] == "exact"
    assert "no groups with this k lose less" in page


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cost": "sae"}, "Not computed: bounds are for means"),
        ({"aggregate": "median"}, "Not computed: bounds are for means"),
        ({"group_cost": 1e6}, "others may lose less"),
    ],
)
def test_the_best_groups_for_something_else_are_not_called_the_least_loss(
    frame, tmp_path, settings, words
):
    release = microagg.protect(frame, k=5, columns=["income"], method="wilber", **settings)
    page = written(release, tmp_path / "r.html")[0]
    assert "no groups with this k lose less" not in page
    assert words in page


def test_no_group_of_two_is_shown_even_for_k_of_two(frame, tmp_path):
    """A mean and its interval of two records can be solved for both values."""
    frame["pair"] = [i // 2 if i < 20 else 99 for i in range(len(frame))]
    release = microagg.protect(frame, k=2, columns=["income", "age"], **QUICK)
    page, twin = written(release, tmp_path / "r.html", analyses=["income by pair"])
    shown = twin["utility"]["analyses"][0]
    assert [estimate["name"] for estimate in shown["estimates"]] == ["99"]
    assert shown["left_out"] == 10
    assert re.search(
        r"10 groups are not shown: those with fewer than \d+ records", Texts(page).text
    )


def test_a_public_report_of_swapped_values_says_what_the_file_shows(tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 90).round(1), "pay": rng.normal(9, 2, 90)})
    release = microagg.protect(frame, k=5, columns=["age", "pay"], release="swap")
    release.report(tmp_path / "public.html", public=True)
    model = json.loads((tmp_path / "public.json").read_text())
    assert model["verdict"] == "grey"
    assert model["classes"] is None
    assert model["counted"] == "counted in the file, the rarest value is that of 5 records"
    page = (tmp_path / "public.html").read_text()
    assert "dealt to its rows at random" in page
    assert "releases its mean" not in page
    release.report(tmp_path / "board.html")
    board = (tmp_path / "board.html").read_text()
    assert "No row belongs to one person" in board
    assert "dealt to its rows at random" in board
    assert "Do not look at single rows" in board
    # Rows are nobody's, so that nothing compares them with people one by one.
    for words in (
        "records found by the true values",
        "releases its mean",
        "unique records",
        "record linkage (",
        "equal records",
        "Records linked",
        "records that changed",
    ):
        assert words not in board
