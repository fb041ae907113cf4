"""The way of the data: a stage imports earlier stages only, read from the source of each module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import microagg

ROOT = Path(microagg.__file__).parent

# The public names, and the command as a module: they may import anything.
ABOVE_ALL = {"", "__main__"}


def name_of(path: Path) -> str:
    """Dotted name within microagg; a package has that of its folder, microagg itself none."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}

# Earliest first. The modules of one stage may import each other, but not in a circle. A package stands
# for all of its modules that no other stage names.
STAGES = {
    "base": [
        *("version", "errors", "own_process", "words", "groups", "progress"),
        *(f"kernels.{name}" for name in ("stamp", "kept", "part", "jit", "labels", "threads")),
    ],
    "plan": [
        *(
            "method",
            "registry",
            "settings",
            "relations",
            "plan",
            "plan_checks",
            "plan_text",
            "plan_coarsen",
        ),
        "plan_analyses",
        *("plan_parts", "plan_blocks", "plan_rules", "plan_forms"),
    ],
    "kernels": ["kernels"],
    "tables": ["tables"],
    "encode": ["drafting", "aggregate", "encode", "draft"],
    "methods": ["results", "bounds", "methods"],
    "grouping": [
        *("improve", "partition", "require", "by_release", "grouping", "intake", "households"),
    ],
    "releasing": ["released", "counts"],
    "measure": ["measure", "verify"],
    "evidence": ["evidence"],
    "steps": ["engines", "writing", "scale_out"],
    "report": ["report"],
    "comparing": ["choices", "release", "suppressing", "protect", "plan_roles", "comparing"],
    "delivery": ["observer", "delivery"],
    "compile": ["warm_parts", "warm"],
    "spark": ["spark", "scale_out.spark"],
    "job": ["job_settings", "job"],
    "page": ["page"],
    "cli": ["estimator", "datasets", "cli"],
}
STAGES["spark"] += [name for name in MODULES if name.startswith("scale_out.spark_")]

# Circles there are, each with its reason; a test fails once one is gone.
CIRCLES = [
    {"groups", "kernels.labels"},  # the types of labels, and the kernels that number them
    {"plan", "plan_forms", "plan_rules"},  # rules and forms are methods of Plan, written beside it
    {"methods.refine.best", "methods.refine.refine"},  # the best search is made of refining passes
]


def stage_of(module: str) -> int | None:
    """The stage whose entry names the module, or the nearest package around it."""
    while module:
        for number, names in enumerate(STAGES.values()):
            if module in names:
                return number
        module = module.rpartition(".")[0]
    return None


def imports(source: str) -> set[str]:
    """Modules of microagg that are imported anywhere: at the top, in functions, for types only."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not read here; write the full name"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = whole.removeprefix("microagg.") in MODULES
                found.add(whole if is_module else str(node.module))
    ours = {name for name in found if name.partition(".")[0] == "microagg"}
    return {name.removeprefix("microagg").removeprefix(".") for name in ours}


def later_imports(module: str, source: str) -> set[str]:
    """What a module imports that only later stages have."""
    own = stage_of(module)
    assert own is not None
    later = set()
    for other in imports(source):
        # The public names are for the last stage, the command, to use.
        stage = len(STAGES) - 1 if other in ABOVE_ALL else stage_of(other)
        if stage is not None and stage > own:
            later.add(other)
    return later


@pytest.mark.parametrize("module", sorted(set(MODULES) - ABOVE_ALL))
def test_imports_earlier_stages_only(module):
    assert stage_of(module) is not None, (
        f"microagg.{module} is in no stage: name it in STAGES of {Path(__file__).name}, after all that "
        "it imports and before all that imports it"
    )
    later = later_imports(module, MODULES[module].read_text(encoding="utf-8"))
    assert not later, (
        f"microagg.{module} imports {sorted(later)} of a later stage: move what both need to an earlier "
        "one, or hand it over as an argument"
    )


def test_every_stage_is_named_once():
    names = [name for stage in STAGES.values() for name in stage]
    assert len(names) == len(set(names))


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules each of which imports, through others, all of its set."""
    reached = {module: set(others) for module, others in graph.items()}
    for middle in graph:  # Warshall: after this, what can be reached through any modules
        for others in reached.values():
            if middle in others:
                others |= reached[middle]
    found = []
    for module, others in reached.items():
        own = {other for other in others if module in reached.get(other, ())}
        if own and own not in found:
            found.append(own)
    return found


def test_no_modules_import_each_other_in_a_circle():
    graph = {
        module: (imports(path.read_text(encoding="utf-8")) & set(MODULES)) - {module}
        for module, path in MODULES.items()
        if module not in ABOVE_ALL
    }
    found = circles(graph)
    assert [own for own in found if own not in CIRCLES] == [], (
        "move what both need to a third module"
    )
    assert [own for own in CIRCLES if own not in found] == [], (
        "this circle is gone: take it out of CIRCLES"
    )


def test_the_check_sees_a_circle():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [{"a", "b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from microagg.report.html import write_report", {"report.html"}),
        ("from microagg import protect", {"protect"}),
        ("from microagg.report import html, model", {"report.html", "report.model"}),
        ("import microagg.cli.main as command", {"cli.main"}),
        ("import microagg", {""}),
        ("from microagg import InputError", {""}),
        ("import numpy\nfrom microaggregate import cut", set()),
        ("def f():\n    from microagg.job import run", {"job"}),
        ("if TYPE_CHECKING:\n    from microagg.job import Job", {"job"}),
    ],
)
def test_the_reader_sees_every_form_of_import(source, found):
    assert imports(source) == found


def test_the_check_sees_a_wrong_import():
    assert later_imports("bounds.prices", "from microagg.partition import partition") == {
        "partition"
    }
    assert later_imports("registry", "from microagg.methods.auto import auto") == {"methods.auto"}
    assert later_imports("groups", "from microagg.kernels.labels import renumber") == set()
    assert later_imports("groups", "from microagg.kernels.heap import put") == {"kernels.heap"}
    assert later_imports("settings", "import microagg") == {""}
    assert (
        later_imports("cli.main", "import microagg\nfrom microagg.cli.show import Speaker") == set()
    )
    assert stage_of("a_new_module") is None
