"""The list of methods. The command, the docs and the tests iterate over it.

To add one: a file under ``algorithms/`` with a function ``name(X, k, *, state=None, ...) -> Outcome``
(result.py), and an entry here. One that can weigh records says ``weighted`` and also takes
``weights=None``, of mean 1; tests/algorithms then finds it. The function's module is imported on
first use only, so that ``import microagg`` loads no compiler.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from microagg.errors import InputError, listed, shown
from microagg.plan.forms import Form
from microagg.plan.method import Method
from microagg.plan.settings_table import Setting


def _option(name: str, default: object, words: str, **row: Any) -> Setting:
    return Setting(words, name=name, default=default, **row)


_COST = _option(
    "cost",
    "sse",
    "what is minimised: sse, sae, max, round-up or round-down (one column only)",
    flag="--cost",
)
_TIME_LIMIT = _option(
    "time_limit",
    None,
    "seconds after which the best partition so far is returned",
    flag="--time-limit",
    form=Form(float, "SECONDS"),
)


_TREE = _option(
    "tree",
    None,
    "the tree of the same data and scale, made once for many k by microagg.minimum_spanning_tree",
)


def _mst(letter: str, summary: str) -> Method:
    name = f"mst-{letter}" if letter else "mst"
    return Method(
        name=name,
        family="variable size",
        paper="Laszlo & Mukherjee 2005",
        time="O(n log n) in few columns, O(n² · d) in many",
        summary=summary,
        implementation=f"microagg.algorithms.variable_size.mst:{name.replace('-', '_')}",
        options=(_TREE,),
    )


_GROUP_COST = _option(
    "group_cost",
    0.0,
    "extra cost of each group, in the unit of the cost of the values as they are: the higher, the "
    "fewer and larger are the groups",
)
_NO_GROUP_COST = (
    "it tries only groups of k to 2k−1 records, and with a cost per group larger ones may be "
    "cheaper. Use method 'wilber' or 'galil-park'"
)


def _univariate(
    name: str, paper: str, time: str, summary: str, *, any_size: bool = False
) -> Method:
    return Method(
        name=name,
        family="univariate",
        paper=paper,
        guarantee="exact",
        time=time,
        summary=summary,
        univariate=f"microagg.algorithms.univariate.sorted_cut:{name.replace('-', '_')}",
        options=(_COST, _GROUP_COST) if any_size else (_COST,),
        weighted=True,
        refuses={} if any_size else {_GROUP_COST.name: _NO_GROUP_COST},
    )


def _closeness(name: str, time: str, summary: str, function: str) -> Method:
    return Method(
        name=name,
        family="t-closeness",
        paper="Soria-Comas, Domingo-Ferrer, Sánchez & Martínez 2015",
        time=time,
        summary=f"{summary}; for plans that require closeness of one column",
        implementation=f"microagg.algorithms.required.soria_comas:{function}",
        closeness=True,
    )


_SEED = _option("random_state", 0, "seed of the random numbers; None draws a fresh one")
_CUT = _option(
    "cut",
    "records",
    "whose SSE the cut makes least: records (that of all columns) or projected (that of the "
    "projected values)",
)
_ORDERING = "microagg.algorithms.ordering."


def _ordering(
    name: str, paper: str, time: str, summary: str, order: str, needs_k: bool, *options: Setting
) -> Method:
    return Method(
        name=name,
        family="ordering",
        paper=paper,
        time=time,
        summary=summary,
        order=_ORDERING + order,
        order_needs_k=needs_k,
        options=options,
    )


def _projection(name: str, paper: str, time: str, summary: str, *options: Setting) -> Method:
    function = f"projections:{name.replace('-', '_')}"
    order, needs_k = f"{function}_order", bool(options)
    method = _ordering(name, paper, time, summary, order, needs_k, *options, _CUT)
    return replace(method, implementation=_ORDERING + function)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="auto",
            family="our own",
            time="O(n log n)",
            summary="an exact method for a single column; for several columns, a start that suits the number "
            "of records, then local search. Effort best also combines the groups of many searches by "
            "integer programs",
            implementation="microagg.algorithms.auto:auto",
            univariate="microagg.algorithms.univariate.sorted_cut:fastest",
            options=(
                _COST,
                _option(
                    "effort",
                    "balanced",
                    "how long to search: fast, balanced or best (half a minute for a thousand records); "
                    "Ctrl-C ends the search with the best groups so far",
                    flag="--effort",
                ),
                _TIME_LIMIT,
                _SEED,
            ),
            weighted=True,
            refuses={_GROUP_COST.name: _NO_GROUP_COST},
        ),
        Method(
            name="optimal",
            family="our own",
            guarantee="approximation",
            time="O(2ⁿ) at worst; within reach are about 1,000 records for k up to 5, fewer for larger k",
            summary="searches among all groups for the least loss and proves how near it comes: column "
            "generation, cuts, branch and bound; a gap of 0 means proved optimal",
            implementation="microagg.algorithms.optimal.optimal:optimal",
            univariate="microagg.algorithms.univariate.sorted_cut:fastest",
            options=(
                _TIME_LIMIT,
                _option(
                    "nodes",
                    10_000,
                    "largest number of parts into which branch and bound splits the problem",
                ),
                _SEED,
            ),
            proves=True,
        ),
        Method(
            name="mdav",
            family="fixed size",
            paper="Domingo-Ferrer & Torra 2005",
            time="O(n²/k · d)",
            summary="groups of k from the outside in: around the record farthest from the "
            "centroid, then around the record farthest from that one",
            implementation="microagg.algorithms.fixed_size:mdav",
            weighted=True,
        ),
        Method(
            name="diameter",
            family="fixed size",
            paper="Domingo-Ferrer & Mateo-Sanz 2002; Laszlo & Mukherjee 2005",
            time="O(n³/k · d)",
            summary="D: groups of k around the two records that are farthest apart, gathered by "
            "nearness to the group's moving centroid",
            implementation="microagg.algorithms.fixed_size:diameter",
        ),
        Method(
            name="centroid",
            family="fixed size",
            paper="Laszlo & Mukherjee 2005",
            time="O(n² · d)",
            summary="C: groups of k around the record farthest from the centroid, gathered by "
            "nearness to the group's moving centroid",
            implementation="microagg.algorithms.fixed_size:centroid",
        ),
        Method(
            name="v-mdav",
            family="variable size",
            paper="Solanas & Martínez-Ballesté 2006",
            time="O(n²/k · d)",
            summary="groups of k to 2k−1 from the outside in, extended by records that are nearer "
            "to the group than to other records",
            implementation="microagg.algorithms.variable_size.v_mdav:v_mdav",
            options=(
                _option(
                    "gamma",
                    "auto",
                    "how readily groups are extended: 0.2 for scattered data, 1.1 for clustered "
                    "data; auto tries several and keeps the best",
                ),
            ),
        ),
        Method(
            name="k-ward",
            family="variable size",
            paper="Domingo-Ferrer & Mateo-Sanz 2002",
            time="O(n² · d) at worst, less with few columns",
            summary="groups of k around the two records farthest apart, then Ward's clustering, in which "
            "two groups that both have k records are never joined. Groups of 2k or more are "
            "partitioned again",
            implementation="microagg.algorithms.variable_size.k_ward:k_ward",
        ),
        _mst(
            "",
            "M: the minimum spanning tree, cut at its longest edges while both sides keep k",
        ),
        _mst("d", "M-d: as mst, with groups of 2k or more split by diameter"),
        _mst("c", "M-c: as mst, with groups of 2k or more split by centroid"),
        Method(
            name="kmeans-merge",
            family="variable size",
            paper="Stamm & Schaub 2024, section 5.2",
            time="O(n²/k · d) per round",
            summary="k-means, then each group under k joins the nearest one, smallest first",
            implementation="microagg.algorithms.variable_size.kmeans_merge:kmeans_merge",
            options=(
                _option("factor", 2.0, "k-means makes factor·n/k clusters; 0.5, 1 and 2 are usual"),
            ),
        ),
        Method(
            name="mu-approx",
            family="variable size",
            paper="Domingo-Ferrer, Sebé & Solanas 2008",
            guarantee="approximation",
            time="O(n² · d)",
            summary="trees of nearest neighbours, cut at their longest edges; the SSE is at most "
            "(4k − 2)·max(2k − 1, 3k − 3)² times the least possible",
            implementation="microagg.algorithms.variable_size.mu_approx:mu_approx",
        ),
        Method(
            name="nominal-exact",
            family="our own",
            guarantee="exact",
            time="O(n), and exponential in the number of levels with fewer than k records",
            summary="one column of categories: levels with k records stay by themselves, a search over "
            "counts finds the best company for rare ones. auto and optimal do so where it ends soon",
            implementation="microagg.algorithms.nominal_column:nominal_exact",
            categories=True,
        ),
        _closeness(
            "closeness-merging",
            "O(n²·d)",
            "mdav's groups; the group farthest from the table in the confidential column is united with its "
            "nearest, until all are close",
            "merging",
        ),
        _closeness(
            "k-first",
            "O(n³/k)",
            "groups of k around far records, in which records are exchanged until the confidential column is "
            "close to the table; then merged where that failed",
            "k_first",
        ),
        _closeness(
            "t-first",
            "O(n²·d)",
            "groups of a record of each quantile of the confidential column, as many quantiles as t needs",
            "t_first",
        ),
        _univariate(
            "hansen-mukherjee",
            "Hansen & Mukherjee 2003",
            "O(kn)",
            "shortest path through a graph whose arcs are the groups of k to 2k−1 values",
        ),
        _univariate(
            "simple",
            "Stamm & Schaub 2024",
            "O(kn)",
            "dynamic program that tries all k starts of the last group",
        ),
        _univariate(
            "simple-plus",
            "Stamm & Schaub 2024",
            "O(kn)",
            "as simple, but from the last best start on, which never moves back",
        ),
        _univariate(
            "wilber",
            "Wilber 1988; Stamm & Schaub 2024",
            "O(n)",
            "guesses the best starts ahead by matrix searching, then checks them",
            any_size=True,
        ),
        _univariate(
            "galil-park",
            "Galil & Park 1990; Stamm & Schaub 2024",
            "O(n)",
            "looks ahead square by square, by matrix searching",
            any_size=True,
        ),
        _univariate(
            "staggered",
            "Stamm & Schaub 2024",
            "O(n)",
            "matrix searching in blocks along the diagonal, without guesses",
        ),
        _projection(
            "pca",
            "Rebollo-Monedero et al. 2013; Stamm & Schaub 2024",
            "O(n·d² + kn·d)",
            "sorts along the first principal component, then cuts optimally",
        ),
        _projection(
            "z-score",
            "Rebollo-Monedero et al. 2013",
            "O(n log n + kn·d)",
            "sorts by the sum of the standardised columns, then cuts optimally",
        ),
        _projection(
            "random-projection",
            "Stamm & Schaub 2024",
            "O(n_projections · (n log n + kn·d))",
            "sorts along random directions, cuts optimally, keeps the best",
            _option("n_projections", 10, "how many directions are tried"),
            _SEED,
        ),
        _ordering(
            "npn-mhm",
            "Domingo-Ferrer et al. 2006",
            "O(n²·d) at worst, less with few columns",
            "starts at the record farthest from the centroid, goes on to the nearest unseen one each "
            "time, then cuts optimally",
            "mhm:npn_order",
            False,
        ),
        _ordering(
            "mdav-mhm",
            "Domingo-Ferrer et al. 2006",
            "O(n²/k · d)",
            "visits the groups of mdav one after the other, then cuts optimally",
            "mhm:mdav_mhm_order",
            True,
        ),
        _ordering(
            "cbfs-mhm",
            "Domingo-Ferrer et al. 2006",
            "O(n² · d)",
            "visits the groups of centroid one after the other, then cuts optimally",
            "mhm:cbfs_mhm_order",
            True,
        ),
        _ordering(
            "tsp",
            "Mortazavi & Jalili 2014",
            "O(n²·d) at worst, less with few columns",
            "finds a short tour through all records by 2-opt and Or-opt, then cuts it optimally",
            "tsp:tsp_order",
            False,
        ),
        _ordering(
            "imhm",
            "Mortazavi, Jalili & Gohargazi 2013",
            "O(iterations · n²/k² · d) at worst, after mdav",
            "visits the groups of mdav one after the other, cuts optimally, and repeats",
            "mhm:imhm_order",
            True,
        ),
        Method(
            name="igd",
            family="variable size",
            paper="Khomnotai et al. 2018",
            time="O(iterations · n²/k · d)",
            summary="starts from mdav, then decomposes and shrinks groups while the loss falls",
            implementation="microagg.algorithms.variable_size.igd:igd",
        ),
        Method(
            name="genetic",
            family="variable size",
            paper="Solanas, Martínez-Ballesté, Mateo-Sanz & Domingo-Ferrer 2006",
            time="O(generations · n² · d) at worst",
            summary="a population of partitions that are crossed and mutated; the best live on; "
            "for small tables",
            implementation="microagg.algorithms.variable_size.genetic:genetic",
            options=(
                _option("generations", 2_000, "how many times twenty children are born"),
                _SEED,
            ),
            most_records=1_000,
        ),
        _ordering(
            "rep-ord-mic",
            "Mortazavi 2020",
            "O(starts · iterations · kn·d), plus searches for nearest records",
            "orders the records group by group and cuts optimally, again and again, from many "
            "starts by k-means; keeps the best",
            "rep_ord_mic:rep_ord_mic_order",
            True,
            _option("starts", 200, "how many clusterings by k-means to start from"),
            _option("start_labels", None, "a clustering of your own to start from instead"),
            _SEED,
        ),
    )
}


def methods() -> list[Method]:
    """List the methods, one row for each: name, family, paper, guarantee, time, summary, options.

    >>> [m.guarantee for m in methods() if m.name in ("mdav", "wilber")]
    ['heuristic', 'exact']
    """
    return list(METHODS.values())


def find(name: str) -> Method:
    """Look a method up by name."""
    try:
        return METHODS[name]
    except (KeyError, TypeError):
        raise InputError(
            f"method={shown(name)} is not known; choose one of {listed(METHODS, limit=99)}."
        ) from None
