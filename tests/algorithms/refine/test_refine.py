"""Refinement: never worse, sizes kept at every step, the same for any number of threads."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
import naive
import oracles
import published
from entries import entry, in_python
from microagg.algorithms.refine import pool as pools
from microagg.algorithms.refine.anneal import Heat, PoolSettings, anneal_patches
from microagg.algorithms.refine.descend import descend as descend_in_pool
from microagg.algorithms.refine.patches import grouped, labelled
from microagg.algorithms.refine.search_passes import Run, search_patches_once
from microagg.base.progress import STOP, new_state
from microagg.encode.scale import fit_scale
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.kernels.random_numbers import draw_exponential as exponential
from microagg.kernels.require_kinds import no_demands
from oracles import squares_within
from strategies import tables

search = importlib.import_module("microagg.algorithms.refine.refine")
new_pool, measure, rebuild = map(in_python, (pools.new_pool, pools.measure, pools.rebuild))
cost, descend = in_python(pools.cost), in_python(descend_in_pool)
draw_exponential = entry(exponential)


def random_partition(rng, n, k):
    """Groups of at least k, some of them large, drawn without a look at the data."""
    order = rng.permutation(n)
    cuts, at = [], 0
    while n - at >= 2 * k:
        at += int(rng.integers(k, min(3 * k, n - at - k) + 1))
        cuts.append(at)
    labels = np.empty(n, dtype=np.int64)
    for g, part in enumerate(np.split(order, cuts)):
        labels[part] = g
    return labels


@given(table=tables(), seed=st.integers(0, 2**32 - 1))
def test_never_worse_than_given(table, seed):
    X, k = table
    labels = random_partition(np.random.default_rng(seed), len(X), k)
    before = labels.copy()
    p = microagg.refine(X, labels, k, effort="fast", random_state=seed)
    oracles.check_partition(p, X, k)
    oracles.check_loss(p, X)
    at_once = microagg.refine(X, labels, k, effort="fast", time_limit=0)
    assert p.sse <= at_once.sse <= sum_of_squares(fit_scale(X).apply(X), canonical_labels(labels))
    assert np.array_equal(labels, before)


def annealed(X, weights, demands, labels, k, search, steps, heat, seed=0):
    """Anneal one patch; return the new labels and what their groups lose by the search's own sums."""
    run = Run(X, k, seed, new_state(), weights)
    before, each = grouped(X, labels, labels.max() + 1), steps / (labels.max() + 1)

    def work(patches, begin, end):
        rest = (k, search, each, heat, run.state)
        anneal_patches(X, weights, demands, patches, begin, end, *rest)

    after, loss = search_patches_once(run, before, 0, (len(X), len(X)), work)
    return labelled(after), loss


@pytest.mark.parametrize("k", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_step_keeps_sizes_and_books(k, weighted):
    # Hot, so that worse groups are taken too, and as hot at the end: few steps are the first of many.
    heat, rng = Heat(5.0, 5.0, 1.0), np.random.default_rng(k)
    for seed in range(30):
        n = 11 * k + seed % k
        X = rng.normal(size=(n, 2)) if seed % 2 else rng.integers(0, 3, (n, 2)) * 1.0
        labels = np.minimum(rng.permutation(n) // k, 10)
        most = 2 + seed % 9  # groups in a pool
        weights = rng.lognormal(size=n) if weighted else None
        demands = no_demands(n) if weighted else None
        search = PoolSettings(most, most * (2 * k - 1), True, 0.0)
        for steps in (*range(1, 20), 300):
            after, sse = annealed(X, weights, demands, labels, k, search, steps, heat, seed)
            assert sse == pytest.approx(squares_within(X, after, weights))
            assert np.bincount(after).min() >= k
            assert np.bincount(after).max() <= 2 * k - 1


@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 5),
    q=st.integers(1, 4),
    d=st.integers(1, 3),
    weighted=st.booleans(),
)
@np.errstate(all="ignore")
def test_a_pool_keeps_its_books(seed, k, q, d, weighted):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(q * k, q * (2 * k - 1) + 1))
    X = rng.integers(0, 5, size=(m, d)).astype(float)
    weights = rng.integers(1, 30, size=m).astype(float) if weighted else None
    demands = no_demands(m) if weighted else None
    pool = new_pool(m, q + 1, d, weights, demands)
    pool.rows[:m] = rng.permutation(m)
    measure(X, weights, demands, pool, m, True)
    random, rules = np.array([seed], np.uint64), pools.Rules(k, 2 * k - 1, True, 0.0)
    assert rebuild(pool, m, q, rules, random) == q
    built = _check_books(pool, X, weights, m, q, k)
    descend(pool, m, q, rules)
    assert _check_books(pool, X, weights, m, q, k) <= built * (1 + 1e-9)
    assert not _improvable(pool, X, weights, m, q, k)


def _parts(pool, m, q):
    """Group of each place of the pool; every one is a member of exactly one group."""
    part = np.full(m, -1)
    for g in range(q):
        members = pool.split.members[g, : pool.split.size[g]]
        assert (part[members] < 0).all()
        part[members] = g
    assert part.min() >= 0
    return part


def _check_books(pool, X, weights, m, q, k):
    labels = np.empty(m, dtype=np.int64)
    labels[pool.rows[:m]] = _parts(pool, m, q)
    sizes = np.bincount(labels, minlength=q)
    assert sizes.tolist() == pool.split.size[:q].tolist()
    assert sizes.min() >= k
    assert sizes.max() <= max(2 * k - 1, 1)
    assert cost(pool.split, q) == pytest.approx(squares_within(X, labels, weights), abs=1e-9)
    if weights is not None:
        assert pool.split.mass[:q] == pytest.approx(np.bincount(labels, weights, minlength=q))
    return cost(pool.split, q)


def _improvable(pool, X, weights, m, q, k):
    """Whether some move or swap lowers the loss, found by trying all of them."""
    rows, part = pool.rows[:m], _parts(pool, m, q)
    labels = np.empty(m, dtype=np.int64)

    def loss(parts):
        labels[rows] = parts
        return sum_of_squares(X, labels, weights)

    now = loss(part) * (1 - 1e-9) - 1e-9
    sizes = np.bincount(part, minlength=q)
    for x in range(m):
        for y in range(m):
            swapped = part.copy()
            swapped[x], swapped[y] = part[y], part[x]
            if loss(swapped) < now:
                return True
        for g in range(q):
            if sizes[part[x]] > k and sizes[g] < 2 * k - 1:
                moved = part.copy()
                moved[x] = g
                if loss(moved) < now:
                    return True
    return False


@given(table=tables(max_rows=9, max_columns=2))
def test_finds_the_optimum_of_small_tables(table):
    X, k = table
    if len(X) > 9:
        return
    p = microagg.refine(X, np.zeros(len(X), dtype=int), k, scale="none")
    best = naive.least_sse(X.tolist(), k)
    assert p.sse == pytest.approx(best, rel=1e-6, abs=1e-9 * (1 + p.sst))


def test_exponential_variates_have_mean_and_variance_one():
    random = np.array([7], np.uint64)
    drawn = np.array([draw_exponential(random) for _ in range(20_000)])
    assert drawn.min() >= 0
    assert drawn.mean() == pytest.approx(1, abs=0.03)
    assert drawn.var() == pytest.approx(1, abs=0.08)
    assert np.mean(drawn > 2) == pytest.approx(np.exp(-2), abs=0.01)


@pytest.mark.parametrize(("n", "k"), [(3_000, 3), (6_000, 60)])
def test_does_not_depend_on_the_number_of_threads(n, k, monkeypatch):
    X = np.random.default_rng(0).normal(size=(n, 3))
    labels = canonical_labels(np.arange(n) // k)
    answers = []
    for threads in (1, 2, 5):
        monkeypatch.setattr("microagg.compile.threads.thread_count", lambda t=threads: t)
        answers.append(search.refine(X, labels, k, effort="fast").tolist())
    assert answers[0] == answers[1] == answers[2]


def test_other_seeds_give_other_partitions():
    X = np.random.default_rng(0).normal(size=(300, 3))
    labels = np.arange(300) // 3
    found = {
        tuple(microagg.refine(X, labels, 3, effort="fast", random_state=seed).labels)
        for seed in range(4)
    }
    assert len(found) > 1


@pytest.mark.parametrize("effort", ["balanced", "best"])
def test_time_limit_of_nothing_returns_what_was_given(effort):
    X = np.random.default_rng(0).normal(size=(50, 2))
    labels = canonical_labels(np.arange(50) % 10)
    p = microagg.refine(X, labels, 5, effort=effort, time_limit=0)
    assert oracles.same_groups(p.labels.tolist(), labels.tolist())
    assert not p.stopped


def test_stops_when_asked():
    X = np.random.default_rng(0).normal(size=(50, 2))
    labels = np.arange(50) // 5
    state = new_state()
    state[STOP] = 1
    assert np.array_equal(search.refine(X, labels, 5, state=state), labels)


@pytest.mark.parametrize("data", ["tarragona", "census", "eia"])
@pytest.mark.parametrize("k", [3, 4, 5, 10])
def test_below_every_published_heuristic(data, k, reference):
    names = ("MDAV", "DIAMETER", "CENTROID", "V_MDAV", "MU_APPROX", "IMHM", "IGD", "REP_ORD_MIC")
    tables = [getattr(published, name).get(data, {}) for name in names]
    least = min(table[k] for table in tables if k in table)
    p = microagg.partition(reference(data), k, method="mdav", refine=True)
    assert p.information_loss < least
    assert p.method == "mdav"
    assert p.options["refine"] == "balanced"


def test_an_exact_partition_stays_as_it_is():
    x = np.random.default_rng(1).normal(size=100)
    exact = microagg.partition(x, 4)
    assert np.array_equal(microagg.partition(x, 4, refine=True).labels, exact.labels)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": [0, 0, 0, 1]}, "smallest group given has 1"),
        ({"labels": [0, 0, 1]}, "4 whole numbers"),
        ({"labels": [0.5, 0, 1, 1]}, "whole numbers"),
        ({"effort": "heroic"}, "effort is one of"),
        ({"time_limit": -1}, "time_limit"),
        ({"time_limit": "soon"}, "time_limit"),
        ({"time_limit": float("nan")}, "time_limit"),
        ({"k": 5}, "k=5"),
        ({"scale": "huge"}, "scale"),
    ],
)
def test_bad_input_is_refused(change, words):
    call = {"X": [[1.0], [2.0], [3.0], [4.0]], "labels": [0, 0, 1, 1], "k": 2, **change}
    with pytest.raises(microagg.InputError, match=words):
        microagg.refine(**call)


@pytest.mark.parametrize("k", [33, 100, 1_000])
def test_large_groups_are_parted_two_by_two(k):
    X = np.random.default_rng(0).normal(size=(5_000, 2))
    plain = microagg.partition(X, k, method="mdav")
    p = microagg.refine(X, plain.labels, k, effort="fast")
    oracles.check_partition(p, X, k)
    assert p.sizes.max() <= 2 * k - 1
    assert p.sse < 0.97 * plain.sse
    assert microagg.refine(X, plain.labels, k, time_limit=0).sse == plain.sse


@given(seed=st.integers(0, 2**32 - 1))
def test_two_large_groups_on_a_line_are_cut_at_one_place(seed):
    rng = np.random.default_rng(seed)
    k, n = 40, int(rng.integers(80, 119))
    x = np.sort(rng.choice([rng.normal(size=n), rng.exponential(size=n), rng.integers(0, 9, n)]))
    X = x.reshape(-1, 1) * 1.0
    labels = canonical_labels(rng.permutation(n) >= n // 2)
    found = search.refine(X, labels, k)
    cuts = [squares_within(X, np.arange(n) >= cut) for cut in range(k, n - k + 1)]
    # 2-means ends at a local optimum: the best place in most cases, but not in all.
    assert squares_within(X, found) <= squares_within(X, labels)
    assert np.isclose(squares_within(X, found), cuts, rtol=1e-9, atol=1e-9).any()
    assert squares_within(X, found) <= min(cuts) * 1.25


@pytest.mark.parametrize("k", [3, 50])
def test_an_offset_changes_nothing(k):
    X = np.random.default_rng(0).integers(0, 1_000, size=(700, 3)).astype(float)
    labels = np.arange(700) // k
    labels = np.minimum(labels, 700 // k - 1)
    near, far = (microagg.refine(Y, labels, k, effort="fast") for Y in (X, X + 1e9))
    assert np.array_equal(near.labels, far.labels)


def test_auto_starts_large_tables_in_blocks():
    auto = importlib.import_module("microagg.algorithms.auto")
    X = np.random.default_rng(0).normal(size=(3_003, 3))
    for k in (3, 7, 400, 2_000):
        labels = auto.mdav_in_blocks(X, k, new_state(), 500)
        assert np.unique(labels, return_counts=True)[1].min() >= k
    whole = squares_within(X, auto.mdav_labels(X, 7, new_state()))
    assert squares_within(X, auto.mdav_in_blocks(X, 7, new_state(), 500)) < 1.5 * whole


def test_blocks_of_many_columns_are_small_and_part_few_categories(monkeypatch):
    """MDAV takes the square of a block: the pairs of records in blocks stay in proportion to the table."""
    auto = importlib.import_module("microagg.algorithms.auto")
    rng, n, levels, blocks = np.random.default_rng(0), 66_000, 330, []
    level = rng.integers(levels, size=n)
    X = np.column_stack([rng.normal(size=(levels, 16))[level] / 4, rng.lognormal(sigma=2, size=n)])

    def groups(records, k, *rest):
        blocks.append(records)
        return np.minimum(np.arange(len(records)) // k, len(records) // k - 1)

    monkeypatch.setattr(auto, "mdav_labels", groups)
    auto.mdav_in_blocks(X, 5, new_state())
    assert sum(len(block) for block in blocks) == n
    assert sum(len(block) ** 2 for block in blocks) <= 4_096 * n
    # A cut lies within one level at most.
    assert sum(len(np.unique(block[:, 0])) for block in blocks) < levels + len(blocks)
