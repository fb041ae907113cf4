"""The list of methods. The command, the docs and the tests iterate over it.

A row says what is known of a method: its paper, its settings, what it guarantees, and where its function is.
To add one: a file under ``algorithms/`` with a function ``name(X, k, *, state=None, ...) -> Outcome``
(result.py), and an entry here. One that can weigh records says ``weighted`` and also takes
``weights=None``, of mean 1; tests/algorithms then finds it. The function's module is imported on
first use only, so that ``import microagg`` loads no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Literal

from microagg.errors import InputError, listed, shown
from microagg.plan.forms import Form
from microagg.plan.settings_table import Setting

Guarantee = Literal["exact", "approximation", "heuristic"]


@dataclass(frozen=True)
class Method:
    """One row of the registry."""

    name: str
    family: str
    time: str  # how the running time grows
    summary: str
    paper: str = ""
    guarantee: Guarantee = "heuristic"
    # The next three are functions of microagg.algorithms, as module:function;
    # {} is the method's name, with _ for -.
    implementation: str = ""  # for any number of columns, on scaled values
    univariate: str = ""  # the same for one column, on its values as they are
    order: str = ""  # gives an order; the optimal cut makes it a method
    order_needs_k: bool = False  # whether that order depends on k
    # Settings other than the data and k; those without a flag are given by --option.
    options: tuple[Setting, ...] = ()
    proves: bool = False  # whether every partition comes with a proved lower bound
    weighted: bool = False  # whether records may have weights in the SSE that it makes small
    categories: bool = False  # whether it is for one column of categories, and for no numbers
    closeness: bool = False  # whether it makes groups for t-closeness of a column
    most_records: int | None = None  # the largest table that it takes
    # Options of similar methods that this one does not take, and why.
    refuses: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def exact(self) -> bool:
        """Whether the partition is proved to have the least possible loss."""
        return self.guarantee == "exact"

    @property
    def for_numbers(self) -> bool:
        """Whether it groups numbers by k alone, as :func:`microagg.partition` does."""
        return not (self.categories or self.closeness)

    @property
    def one_column(self) -> bool:
        """Whether the method works on a single column only."""
        return not (self.implementation or self.order)

    def takes_raw(self, n_columns: int, weighted: bool = False) -> bool:
        """Return whether the method takes values as they are: exact methods are exact for those."""
        return n_columns == 1 and bool(self.univariate) and not weighted

    def guarantee_for(self, n_columns: int, weighted: bool = False) -> Guarantee:
        """Return what is proved for data of this width: one column is done exactly, by auto too.

        With weights nothing is: the univariate methods find the best runs of the sorted values, but
        other groups may lose less (algorithms/univariate/weighted.py).
        """
        if weighted:
            return "heuristic"
        return "exact" if self.takes_raw(n_columns) else self.guarantee

    def function(self, n_columns: int, weighted: bool = False) -> Callable[..., Any]:
        """Load the function ``(X, k, *, state=None, **options) -> Outcome`` for data of this width.

        One that takes raw values numbers the groups by first appearance. For records with weights it also
        takes ``weights=``.
        """
        if self.takes_raw(n_columns, weighted) or self.one_column:
            return self._load(self.univariate)
        if self.implementation:
            return self._load(self.implementation)
        return self._load("ordering.cut:cut_along")(self.order_function())  # type: ignore[no-any-return]

    def order_function(self) -> Callable[..., Any]:
        """Load the function ``(X, k, *, state=None, **options)`` that gives the order."""
        return self._load(self.order)

    def _load(self, path: str) -> Callable[..., Any]:
        module, name = path.format(self.name.replace("-", "_")).split(":")
        function: Callable[..., Any] = getattr(import_module(f"microagg.algorithms.{module}"), name)
        return function

    def as_dict(self) -> dict[str, object]:
        """Plain data, as ``microagg methods --json`` prints it."""
        facts = ["name", "family", "paper", "exact", "guarantee", "time", "summary", "one_column"]
        return {
            **{fact: getattr(self, fact) for fact in facts},
            "orders": bool(self.order),
            **{fact: getattr(self, fact) for fact in ("weighted", "categories", "closeness")},
            "options": {option.name: option.default for option in self.options},
        }


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
_GROUP_COST = _option(
    "group_cost",
    0.0,
    "extra cost of each group, in the unit of the cost of the values as they are: the higher, the "
    "fewer and larger are the groups",
)
_NO_GROUP_COST = {
    _GROUP_COST.name: "it tries only groups of k to 2k−1 records, and with a cost per group larger ones may "
    "be cheaper. Use method 'wilber' or 'galil-park'"
}
_SEED = _option("random_state", 0, "seed of the random numbers; None draws a fresh one")
_CUT = _option(
    "cut",
    "records",
    "whose SSE the cut makes least: records (that of all columns) or projected (that of the "
    "projected values)",
)
_FOR_CLOSENESS = "for plans that require closeness of one column"

# What the methods of a family share.
_ours = partial(Method, family="our own")
_fixed_size = partial(Method, family="fixed size", implementation="fixed_size:{}")
_variable_size = partial(Method, family="variable size", implementation="variable_size.{0}:{0}")
_mst = partial(
    _variable_size,
    paper="Laszlo & Mukherjee 2005",
    time="O(n log n) in few columns, O(n² · d) in many",
    implementation="variable_size.mst:{}",
    options=(_TREE,),
)
_closeness = partial(
    Method,
    family="t-closeness",
    paper="Soria-Comas, Domingo-Ferrer, Sánchez & Martínez 2015",
    closeness=True,
)
_univariate = partial(
    Method,
    family="univariate",
    guarantee="exact",
    univariate="univariate.sorted_cut:{}",
    options=(_COST,),
    weighted=True,
    refuses=_NO_GROUP_COST,
)
_ordering = partial(Method, family="ordering")
_mhm = partial(_ordering, order="ordering.mhm:{}_order", order_needs_k=True)
_projection = partial(
    _ordering, order="ordering.projections:{}_order", implementation="ordering.projections:{}"
)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _ours(
            name="auto",
            time="O(n log n)",
            summary="an exact method for a single column; for several columns, a start that suits the number "
            "of records, then local search. Effort best also combines the groups of many searches by "
            "integer programs",
            implementation="auto:auto",
            univariate="univariate.sorted_cut:fastest",
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
            refuses=_NO_GROUP_COST,
        ),
        _ours(
            name="optimal",
            guarantee="approximation",
            time="O(2ⁿ) at worst; within reach are about 1,000 records for k up to 5, fewer for larger k",
            summary="searches among all groups for the least loss and proves how near it comes: column "
            "generation, cuts, branch and bound; a gap of 0 means proved optimal",
            implementation="optimal.optimal:optimal",
            univariate="univariate.sorted_cut:fastest",
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
        _fixed_size(
            name="mdav",
            paper="Domingo-Ferrer & Torra 2005",
            time="O(n²/k · d)",
            summary="groups of k from the outside in: around the record farthest from the "
            "centroid, then around the record farthest from that one",
            weighted=True,
        ),
        _fixed_size(
            name="diameter",
            paper="Domingo-Ferrer & Mateo-Sanz 2002; Laszlo & Mukherjee 2005",
            time="O(n³/k · d)",
            summary="D: groups of k around the two records that are farthest apart, gathered by "
            "nearness to the group's moving centroid",
        ),
        _fixed_size(
            name="centroid",
            paper="Laszlo & Mukherjee 2005",
            time="O(n² · d)",
            summary="C: groups of k around the record farthest from the centroid, gathered by "
            "nearness to the group's moving centroid",
        ),
        _variable_size(
            name="v-mdav",
            paper="Solanas & Martínez-Ballesté 2006",
            time="O(n²/k · d)",
            summary="groups of k to 2k−1 from the outside in, extended by records that are nearer "
            "to the group than to other records",
            options=(
                _option(
                    "gamma",
                    "auto",
                    "how readily groups are extended: 0.2 for scattered data, 1.1 for clustered "
                    "data; auto tries several and keeps the best",
                ),
            ),
        ),
        _variable_size(
            name="k-ward",
            paper="Domingo-Ferrer & Mateo-Sanz 2002",
            time="O(n² · d) at worst, less with few columns",
            summary="groups of k around the two records farthest apart, then Ward's clustering, in which "
            "two groups that both have k records are never joined. Groups of 2k or more are "
            "partitioned again",
        ),
        _mst(
            name="mst",
            summary="M: the minimum spanning tree, cut at its longest edges while both sides keep k",
        ),
        _mst(
            name="mst-d",
            summary="M-d: as mst, with groups of 2k or more split by diameter",
        ),
        _mst(
            name="mst-c",
            summary="M-c: as mst, with groups of 2k or more split by centroid",
        ),
        _variable_size(
            name="kmeans-merge",
            paper="Stamm & Schaub 2024, section 5.2",
            time="O(n²/k · d) per round",
            summary="k-means, then each group under k joins the nearest one, smallest first",
            options=(
                _option("factor", 2.0, "k-means makes factor·n/k clusters; 0.5, 1 and 2 are usual"),
            ),
        ),
        _variable_size(
            name="mu-approx",
            paper="Domingo-Ferrer, Sebé & Solanas 2008",
            guarantee="approximation",
            time="O(n² · d)",
            summary="trees of nearest neighbours, cut at their longest edges; the SSE is at most "
            "(4k − 2)·max(2k − 1, 3k − 3)² times the least possible",
        ),
        _ours(
            name="nominal-exact",
            guarantee="exact",
            time="O(n), and exponential in the number of levels with fewer than k records",
            summary="one column of categories: levels with k records stay by themselves, a search over "
            "counts finds the best company for rare ones. auto and optimal do so where it ends soon",
            implementation="nominal_column:nominal_exact",
            categories=True,
        ),
        _closeness(
            name="closeness-merging",
            time="O(n²·d)",
            summary="mdav's groups; the group farthest from the table in the confidential column is "
            f"united with its nearest, until all are close; {_FOR_CLOSENESS}",
            implementation="required.soria_comas:merging",
        ),
        _closeness(
            name="k-first",
            time="O(n³/k)",
            summary="groups of k around far records, in which records are exchanged until the confidential "
            f"column is close to the table; then merged where that failed; {_FOR_CLOSENESS}",
            implementation="required.soria_comas:k_first",
        ),
        _closeness(
            name="t-first",
            time="O(n²·d)",
            summary="groups of a record of each quantile of the confidential column, as many quantiles "
            f"as t needs; {_FOR_CLOSENESS}",
            implementation="required.soria_comas:t_first",
        ),
        _univariate(
            name="hansen-mukherjee",
            paper="Hansen & Mukherjee 2003",
            time="O(kn)",
            summary="shortest path through a graph whose arcs are the groups of k to 2k−1 values",
        ),
        _univariate(
            name="simple",
            paper="Stamm & Schaub 2024",
            time="O(kn)",
            summary="dynamic program that tries all k starts of the last group",
        ),
        _univariate(
            name="simple-plus",
            paper="Stamm & Schaub 2024",
            time="O(kn)",
            summary="as simple, but from the last best start on, which never moves back",
        ),
        _univariate(
            name="wilber",
            paper="Wilber 1988; Stamm & Schaub 2024",
            time="O(n)",
            summary="guesses the best starts ahead by matrix searching, then checks them",
            options=(_COST, _GROUP_COST),
            refuses={},
        ),
        _univariate(
            name="galil-park",
            paper="Galil & Park 1990; Stamm & Schaub 2024",
            time="O(n)",
            summary="looks ahead square by square, by matrix searching",
            options=(_COST, _GROUP_COST),
            refuses={},
        ),
        _univariate(
            name="staggered",
            paper="Stamm & Schaub 2024",
            time="O(n)",
            summary="matrix searching in blocks along the diagonal, without guesses",
        ),
        _projection(
            name="pca",
            paper="Rebollo-Monedero et al. 2013; Stamm & Schaub 2024",
            time="O(n·d² + kn·d)",
            summary="sorts along the first principal component, then cuts optimally",
            options=(_CUT,),
        ),
        _projection(
            name="z-score",
            paper="Rebollo-Monedero et al. 2013",
            time="O(n log n + kn·d)",
            summary="sorts by the sum of the standardised columns, then cuts optimally",
            options=(_CUT,),
        ),
        _projection(
            name="random-projection",
            paper="Stamm & Schaub 2024",
            time="O(n_projections · (n log n + kn·d))",
            summary="sorts along random directions, cuts optimally, keeps the best",
            order_needs_k=True,
            options=(
                _option("n_projections", 10, "how many directions are tried"),
                _SEED,
                _CUT,
            ),
        ),
        _ordering(
            name="npn-mhm",
            paper="Domingo-Ferrer et al. 2006",
            time="O(n²·d) at worst, less with few columns",
            summary="starts at the record farthest from the centroid, goes on to the nearest unseen one each "
            "time, then cuts optimally",
            order="ordering.mhm:npn_order",
        ),
        _mhm(
            name="mdav-mhm",
            paper="Domingo-Ferrer et al. 2006",
            time="O(n²/k · d)",
            summary="visits the groups of mdav one after the other, then cuts optimally",
        ),
        _mhm(
            name="cbfs-mhm",
            paper="Domingo-Ferrer et al. 2006",
            time="O(n² · d)",
            summary="visits the groups of centroid one after the other, then cuts optimally",
        ),
        _ordering(
            name="tsp",
            paper="Mortazavi & Jalili 2014",
            time="O(n²·d) at worst, less with few columns",
            summary="finds a short tour through all records by 2-opt and Or-opt, then cuts it optimally",
            order="ordering.tsp:tsp_order",
        ),
        _mhm(
            name="imhm",
            paper="Mortazavi, Jalili & Gohargazi 2013",
            time="O(iterations · n²/k² · d) at worst, after mdav",
            summary="visits the groups of mdav one after the other, cuts optimally, and repeats",
        ),
        _variable_size(
            name="igd",
            paper="Khomnotai et al. 2018",
            time="O(iterations · n²/k · d)",
            summary="starts from mdav, then decomposes and shrinks groups while the loss falls",
        ),
        _variable_size(
            name="genetic",
            paper="Solanas, Martínez-Ballesté, Mateo-Sanz & Domingo-Ferrer 2006",
            time="O(generations · n² · d) at worst",
            summary="a population of partitions that are crossed and mutated; the best live on; "
            "for small tables",
            options=(
                _option("generations", 2_000, "how many times twenty children are born"),
                _SEED,
            ),
            most_records=1_000,
        ),
        _ordering(
            name="rep-ord-mic",
            paper="Mortazavi 2020",
            time="O(starts · iterations · kn·d), plus searches for nearest records",
            summary="orders the records group by group and cuts optimally, again and again, from many "
            "starts by k-means; keeps the best",
            order="ordering.rep_ord_mic:rep_ord_mic_order",
            order_needs_k=True,
            options=(
                _option("starts", 200, "how many clusterings by k-means to start from"),
                _option("start_labels", None, "a clustering of your own to start from instead"),
                _SEED,
            ),
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
