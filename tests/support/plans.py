"""Plans of every shape for property tests: all settings, awkward names, each plan a valid one."""

import dataclasses

from hypothesis import strategies as st

from microagg.errors import InputError
from microagg.plan.block import Block, Require
from microagg.plan.column import KINDS, Column
from microagg.plan.plan import Plan
from microagg.plan.registry import METHODS
from microagg.plan.relations import Relation
from microagg.plan.sections import Accept, Missing, Strata, Suppress, Unit, Weight
from microagg.plan.settings import AGGREGATES, EFFORTS, SCALES

# Names as people have them, and as they break parsers; lone surrogates have no place in a text file.
AWKWARD = (
    *("age", "a,b", 'say "x"', "two\nlines", "\ttab", " lead", "trail ", "", "#", "=", "a=b"),
    *("größe", "年齢", "🙂", "--k", "-", "\\", "\\n", "[block]", "a\r\nb", "\x00", "\x7f"),
    *("'''", "\u2028"),
)
NAMES = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
NUMBERS = st.one_of(
    st.integers(1, 10**6), st.floats(0.001, 1e6), st.sampled_from([1e-300, 1e100, 0.1])
)


def settings_in(entry):
    """Settings of an entry of a data file, without what the file says about them."""
    return {key: value for key, value in entry.items() if key not in ("says", "near")}


@st.composite
def options(draw, method):
    found = {}
    for option in METHODS[method].options:
        if option.name == "random_state" or draw(st.booleans()):
            continue
        if option.name == "effort":
            found["effort"] = draw(st.sampled_from(EFFORTS))
        elif option.name == "time_limit":
            found["time_limit"] = draw(NUMBERS)
        elif option.name == "cost":
            found["cost"] = draw(st.sampled_from(["sse", "sae", "max", "round-up", "round-down"]))
        elif isinstance(option.default, bool):
            found[option.name] = draw(st.booleans())
        elif isinstance(option.default, str):
            found[option.name] = option.default
        else:
            found[option.name] = draw(NUMBERS)
    return found


def some(values):
    """Tables of settings for some of the names."""
    return lambda names: (
        st.dictionaries(st.sampled_from(names), values, max_size=2) if names else st.just({})
    )


MODES = st.sampled_from(["count", "together"])
NOUNS = st.none() | st.sampled_from(["household", "sick child", "größe", "a=b", '"', "--k"])
REASONS = NAMES.filter(str.strip)
SHARES = st.floats(0.001, 1)
PERCENTS = st.floats(0.5, 99.5) | st.integers(1, 99)
PAIRS_NK = st.fixed_dictionaries({"n": st.integers(1, 9), "k": PERCENTS})


@st.composite
def requirements(draw, names):
    if draw(st.booleans()):
        return Require()
    return Require(
        distinct=draw(some(st.integers(2, 10**6))(names)),
        entropy=draw(some(st.floats(1.001, 1e6) | st.integers(2, 99))(names)),
        closeness=draw(some(SHARES)(names)),
        p_percent=draw(some(PERCENTS)(names)),
        n_k=draw(some(PAIRS_NK)(names)),
        population=draw(st.none() | NUMBERS),
        individual_risk=draw(st.none() | SHARES),
    )


@st.composite
def blocks(draw, columns, outside):
    method = draw(st.sampled_from(sorted(METHODS)))
    return Block(
        columns=columns,
        k=draw(st.none() | st.integers(1, 10**9)),
        method=method,
        aggregate=draw(st.none() | st.sampled_from(AGGREGATES)),
        scale=draw(st.sampled_from(SCALES)),
        per_column=draw(st.booleans()),
        refine=draw(st.booleans() | st.sampled_from(EFFORTS)),
        bound=draw(st.none() | st.booleans() | st.sampled_from(EFFORTS)),
        require=draw(requirements(outside)),
        options=draw(options(method)),
    )


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
VALUES = st.one_of(
    TEXTS,
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["1", "-8", "01", "a,b", "nan", "1e3", "true", " "]),
)


_OF_NUMBERS = [
    {"bands": 5, "top": 80},
    {"bands": [0.5]},
    {"bands": [-3, 18, 65.5]},
    {"round": 0.1, "bottom": -2},
    {"top": 1e300},
]
RECODINGS = {
    None: [*_OF_NUMBERS, {"rare": 20}, {"prefix": 2}, {"to": "month"}],
    "number": _OF_NUMBERS,
    "integer": _OF_NUMBERS,
    "spiked": _OF_NUMBERS,
    "nominal": [{"rare": 20}, {"prefix": 3}],
    "hierarchy": [{"rare": 2}],
    "ordinal": [{"rare": 20}],
    "date": [{"to": "week"}],
}


@st.composite
def columns(draw):
    """Columns of every kind, with settings that fit it."""
    kind = draw(st.sampled_from([None, *KINDS]))
    found = {"kind": kind, "importance": draw(st.just(1.0) | NUMBERS)}
    quantity = kind in (None, "number", "integer", "date", "spiked")
    if kind in ("nominal", "ordinal"):
        lists = st.lists(VALUES, min_size=2, max_size=4, unique=True) | st.just([True, False])
        found["levels"] = draw(st.none() | lists)
    if quantity:
        found["transform"] = draw(st.sampled_from([None, None, "log", "rank"]))
    found["round"] = draw(st.sampled_from([None, None, "no", *["nearest", "totals"] * quantity]))
    if kind == "spiked":
        found["spike"] = draw(st.none() | st.integers() | st.floats(-1e9, 1e9))
    found["coarsen"] = (
        draw(st.none() | st.sampled_from(RECODINGS[kind])) if kind in RECODINGS else None
    )
    releases = {"ordinal": "median", "hierarchy": "node", "spiked": "spike"}
    if kind in releases:
        found["release"] = draw(st.sampled_from([None, releases[kind]]))
    if kind == "hierarchy":
        lengths = st.sets(st.integers(1, 20), min_size=1, max_size=4).map(sorted)
        # Codes with a letter more than their parents: no cycle.
        parents = st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=3).map(
            lambda table: {f"{len(parent)}{parent}x": parent for parent in table}
        )
        found[draw(st.sampled_from(["prefixes", "parents"]))] = draw(st.none() | lengths)
        if found.get("parents") is not None:
            found["parents"] = draw(parents)
    return Column(**found)


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


@st.composite
def relation_texts(draw, names):
    """Relations between some of the names."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    factors = [draw(st.sampled_from(["", "2 * ", "0.5*", "- "])) for _ in chosen]
    terms = " + ".join(f"{f}{quoted(name)}" for f, name in zip(factors, chosen, strict=True))
    terms = terms.replace("+ - ", "- ")
    return f"{terms} {draw(st.sampled_from(['=', '<=', '≥']))} {draw(st.integers(0, 9))}"


ANALYSES = st.sampled_from(
    [
        (),
        ("income ~ age + sex", "poverty(income, 0.5) by region"),
        (("quantile", "net, gross", 0.9, "by", "a = b"),),
    ]
)


@st.composite
def plans(draw, several=True):
    names = draw(st.lists(NAMES, max_size=10, unique=True))
    cuts = sorted(draw(st.lists(st.integers(0, len(names)), min_size=7, max_size=7)))
    parts = [tuple(names[a:b]) for a, b in zip([0, *cuts], [*cuts, len(names)], strict=True)]
    in_blocks = [part for part in parts[:2] if part]
    if not several:
        in_blocks = in_blocks[:1]
    rest = list(parts[6])
    weight = rest.pop() if rest and draw(st.booleans()) else None
    protected = [name for part in in_blocks for name in part]
    described = [name for name in protected if draw(st.booleans())]
    outside = [*parts[4], *parts[6]]
    found = tuple(draw(blocks(part, outside)) for part in in_blocks)
    found = found or (draw(blocks(None, outside)),)
    releases, smalls = ["keep", "drop"], ["error"]
    if len(found) == 1 and not (found[0].per_column and len(found[0].columns or ()) > 1):
        releases.append("mean")
        smalls.append("merge")
    coded = [*protected, *rest]
    plan = Plan(
        blocks=found,
        columns={name: draw(columns()) for name in described},
        drop=parts[2],
        renumber=parts[3],
        confidential=parts[4],
        reasons={name: draw(REASONS) for name in parts[4] if draw(st.booleans())},
        known=[*parts[7], *(name for name in parts[5] if draw(st.booleans()))],
        strata=Strata(parts[5], draw(st.sampled_from(smalls)) if parts[5] else "error"),
        weight=None
        if weight is None
        else Weight(
            weight,
            draw(st.sampled_from(releases)),
            draw(st.sampled_from(["weighted", "plain"])),
        ),
        missing=Missing(
            draw(st.sampled_from(["pattern", "pattern", "majority", "fill", "drop", "error"])),
            draw(st.just(0.01) | st.floats(0, 1)),
            {
                name: draw(st.lists(VALUES, min_size=1, max_size=3, unique=True))
                for name in coded
                if draw(st.booleans())
            },
        ),
        suppress=Suppress(draw(st.just(0.0) | st.floats(0.001, 0.5)), True)
        if draw(st.booleans())
        else Suppress(),
        keep_order=draw(st.sampled_from([None, False, True])),
        round=draw(st.sampled_from(["no", "no", "nearest", "totals"])),
        digits=draw(st.none() | st.integers(-15, 15)),
        seed=draw(st.none() | st.integers(0, 2**70)),
        accept=Accept(
            agreeing=draw(st.just(0.0) | st.floats(0, 1)),
            **{name: draw(st.none() | st.floats(0, 1e6)) for name in ("loss", "moved", "tables")},
            **{
                name: draw(st.none() | st.floats(0, 1))
                for name in ("linkage", "pairing", "inference")
            },
        ),
        analyses=draw(ANALYSES),
        notes={name: draw(NAMES) for name in names if draw(st.booleans())},
    )
    units = [*parts[2], *parts[3], *parts[7], *rest, "longer than eight"]
    if len(plan.blocks) > 1:
        plan = dataclasses.replace(
            plan,
            blocks=tuple(
                dataclasses.replace(
                    block,
                    unit=draw(st.none() | st.builds(Unit, st.sampled_from(units), MODES, NOUNS)),
                    strata=draw(st.none() | st.sampled_from([Strata(), Strata(parts[5][:1])])),
                )
                for block in plan.blocks
            ),
        )
    unit = draw(st.none() | st.sampled_from(units))
    if unit is not None and all(block.unit is None for block in plan.blocks):
        plan = plan.override(unit={"column": unit, "mode": draw(MODES), "name": draw(NOUNS)})
    for names in (list(protected), rest):
        if names and draw(st.booleans()):
            text = draw(relation_texts(names))
            try:
                plan = plan.override(relations=[*plan.relations, Relation(text)])
            except InputError:  # one that the plan would break
                continue
    return plan
