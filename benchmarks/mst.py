"""mst: the minimum spanning tree against ready-made ones, the share of cutting, many k from one tree."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

import microagg
from benchmarks.harness import best_in_turns, growth_exponent, show
from microagg.algorithms.variable_size.mst import cut_edges
from microagg.algorithms.variable_size.spanning_tree import spanning_edges
from microagg.base.progress import new_state
from microagg.base.typing import Floats
from microagg.encode.scale import fit_scale

K = 4
GOAL = 1.2  # times mlpack's tree alone, for all of mst


def clustered(n: int, d: int = 10) -> Floats:
    """Data of the paper's Tables 2 and 3: 200 clusters, sigma 0.1."""
    X, _ = microagg.simulate_clusters(200, d, n // 200, n // 200, 0.1, random_state=0)
    return fit_scale(X).apply(X)


def normal(n: int, d: int) -> Floats:
    X = np.random.default_rng(0).normal(size=(n, d))
    return fit_scale(X).apply(X)


def weight(X: Floats) -> float:
    return float(spanning_edges(X, new_state())[2].sum())


def by_delaunay(X: Floats) -> float:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import minimum_spanning_tree
    from scipy.spatial import Delaunay

    corners = Delaunay(X).simplices.astype(np.int64)
    a, b = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]).T
    length = np.sqrt(np.square(X[a] - X[b]).sum(axis=1))
    # Sums of double entries would lengthen edges; both triangles of an edge give the same one.
    _, once = np.unique(np.minimum(a, b) * len(X) + np.maximum(a, b), return_index=True)
    graph = coo_matrix((length[once], (a[once], b[once])), shape=(len(X), len(X)))
    return float(minimum_spanning_tree(graph.tocsr()).sum())


def by_matrix(X: Floats) -> float:
    from scipy.sparse.csgraph import minimum_spanning_tree
    from scipy.spatial.distance import pdist, squareform

    return float(minimum_spanning_tree(squareform(pdist(X))).sum())


def by_mlpack(X: Floats) -> float:
    import mlpack

    return float(mlpack.emst(input_=X)["output"][:, 2].sum())


def by_fast_hdbscan(X: Floats) -> float:
    from fast_hdbscan.boruvka import parallel_boruvka
    from fast_hdbscan.numba_kdtree import build_kdtree
    from numba import get_num_threads

    tree = build_kdtree(X.astype(np.float32))
    edges, _, _ = parallel_boruvka(
        tree,
        get_num_threads(),
        min_samples=1,
        sample_weights=np.empty(1, np.float32),
        reproducible=False,
    )
    return float(edges[:, 2].sum())


def peers() -> dict[str, Callable[[Floats], float]]:
    found = {"scipy, n × n": by_matrix, "scipy, Delaunay": by_delaunay}
    if find_spec("mlpack"):
        found["mlpack"] = by_mlpack
    if find_spec("fast_hdbscan"):
        found["fast_hdbscan (float32)"] = by_fast_hdbscan
    return found


def against_peers() -> None:
    """The tree alone, on data that each peer can take."""
    cases = [
        ("clusters", clustered(4_000), {"scipy, n × n"}),
        ("normal", normal(100_000, 2), {"scipy, Delaunay", "mlpack", "fast_hdbscan (float32)"}),
        ("normal", normal(50_000, 5), {"mlpack", "fast_hdbscan (float32)"}),
        ("clusters", clustered(20_000), {"mlpack", "fast_hdbscan (float32)"}),
    ]
    rows = []
    for kind, X, fit in cases:
        ours = weight(X)
        for name, peer in peers().items():
            if name in fit:
                theirs = peer(X)  # also compiles
                mine, other = best_in_turns(
                    lambda X=X: weight(X), lambda X=X, peer=peer: peer(X), rounds=2
                )
                n, d = X.shape
                rows.append(
                    [kind, f"{n:,}", d, name, mine, other, other / mine, f"{theirs / ours - 1:.1e}"]
                )
    show(
        "minimum spanning tree",
        [
            "data",
            "records",
            "d",
            "peer",
            "seconds",
            "peer",
            "times faster",
            "peer's weight over ours",
        ],
        rows,
    )


def largest_of_the_paper() -> None:
    """SIM_14: all of mst against mlpack's tree alone; the paper needed 33,894 s."""
    X = clustered(120_000)
    tree = microagg.minimum_spanning_tree(X, scale="none")
    actions: list[Callable[[], object]] = [
        lambda: microagg.partition(X, K, method="mst", scale="none"),
        lambda: cut_edges(tree.first, tree.second, len(X), K),
        lambda: microagg.partition(X, K, method="mst-d", scale="none", tree=tree),
        lambda: microagg.partition(X, K, method="mst-c", scale="none", tree=tree),
    ]
    whole, cutting, split_d, split_c = best_in_turns(*actions, rounds=2)
    rows: list[list[object]] = [
        ["mst, tree and all", whole, "", ""],
        ["  cutting", cutting, f"{100 * cutting / whole:.1f} % of mst", "≤ 5 %"],
        ["mst-d with the tree given", split_d, "", ""],
        ["mst-c with the tree given", split_c, "", ""],
    ]
    if find_spec("mlpack"):
        started = time.perf_counter()
        by_mlpack(X)
        theirs = time.perf_counter() - started
        rows.append(["mlpack's tree alone", theirs, "", ""])
        rows[0][2:] = [f"{whole / theirs:.2f} × mlpack's tree", f"≤ {GOAL} ×"]
    show(f"120,000 × 10 in clusters (SIM_14), k = {K}", ["", "seconds", "", "goal"], rows)


def growth() -> None:
    rows = []
    for kind, make, d, sizes in [
        ("clusters", clustered, 10, [20_000, 40_000, 80_000, 120_000]),
        ("normal", normal, 2, [50_000, 100_000, 200_000, 400_000]),
        ("normal", normal, 5, [25_000, 50_000, 100_000, 200_000]),
        ("normal", normal, 10, [10_000, 20_000, 40_000]),
    ]:
        times = []
        for n in sizes:
            X = make(n, d)
            [seconds] = best_in_turns(lambda X=X: weight(X), rounds=2)
            times.append(seconds)
            rows.append([kind, d, f"{n:,}", seconds, ""])
        rows.append([kind, d, "", "", f"n^{growth_exponent(sizes, times):.2f}"])
    for d in (20, 40, 60, 80, 100, 200):
        X = clustered(10_000, d)
        [seconds] = best_in_turns(lambda X=X: weight(X), rounds=1)
        rows.append(["clusters", d, "10,000", seconds, ""])
    show("minimum spanning tree by size", ["data", "d", "records", "seconds", "growth"], rows)


def many_k() -> None:
    X = clustered(40_000)
    sizes = [3, 4, 5, 10, 20, 50]
    tree = microagg.minimum_spanning_tree(X, scale="none")
    build, given, anew = best_in_turns(
        lambda: microagg.minimum_spanning_tree(X, scale="none"),
        lambda: [microagg.partition(X, k, method="mst", scale="none", tree=tree) for k in sizes],
        lambda: [microagg.partition(X, k, method="mst", scale="none") for k in sizes],
        rounds=1,
    )
    show(
        f"40,000 × 10 in clusters, k in {sizes}",
        ["tree", "all k from it", "all k anew", "times faster with one tree"],
        [[build, given, anew, anew / (build + given)]],
    )


def main() -> None:
    microagg.partition(normal(200, 3), 3, method="mst-d")  # compiles
    microagg.partition(normal(200, 3), 3, method="mst-c")
    against_peers()
    largest_of_the_paper()
    growth()
    many_k()


if __name__ == "__main__":
    main()
