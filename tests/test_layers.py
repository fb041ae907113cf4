"""The way of the data: a stage imports earlier stages only, read from the source of each module."""

import ast
import re
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

# Earliest first: a folder is a stage, or a module at the top. The modules of one stage may import each
# other, but not in a circle.
STAGES = [
    "version",
    "errors",
    "base",
    "plan",
    "compile",
    "kernels",
    "tables",
    "formats",
    "encode",
    "drafting",
    "bounds",
    "algorithms",
    "grouping",
    "releasing",
    "ledger",
    "measure",
    "evidence",
    "report",
    "engines",
    "comparing",
    "spark",
    "job",
    "estimator",
    "datasets",
    "page",
    "cli",
]

# Circles there are, each with its reason; a test fails once one is gone.
CIRCLES: list[set[str]] = []


def stage_of(module: str) -> int | None:
    """Return the place of the module's folder, or of a module at the top, among the stages."""
    first = module.partition(".")[0]
    return STAGES.index(first) if first in STAGES else None


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


def test_imports_earlier_stages_only():
    modules = sorted(set(MODULES) - ABOVE_ALL)
    assert [module for module in modules if stage_of(module) is None] == [], (
        f"name their folder in STAGES of {Path(__file__).name}, after all that it imports and before all "
        "that imports it"
    )
    later = {
        module: later_imports(module, MODULES[module].read_text(encoding="utf-8"))
        for module in modules
    }
    assert {module: names for module, names in later.items() if names} == {}, (
        "these are of a later stage: move what both need to an earlier one, or hand it over as an argument"
    )


def test_every_stage_is_there_and_named_once():
    assert sorted(STAGES) == sorted({module.partition(".")[0] for module in MODULES} - ABOVE_ALL)


def test_every_file_and_folder_that_the_guide_names_exists():
    top = Path(__file__).parents[1]
    guide = "".join(
        (top / name).read_text(encoding="utf-8")
        for name in ("CONTRIBUTING.md", "docs/architecture.md")
    )
    named = set(re.findall(r"`([\w./-]*(?:\.(?:py|md|yml|toml|txt|cff)|/))`", guide))
    folders = [top / name for name in ("src", "tests", "docs", "website", "benchmarks", ".github")]
    paths = [*top.glob("*"), *(path for folder in folders for path in folder.rglob("*"))]
    there = {f"/{path.relative_to(top).as_posix()}{'/' * path.is_dir()}" for path in paths}
    assert len(named) > 50
    assert [name for name in sorted(named) if not any(p.endswith(f"/{name}") for p in there)] == []


def test_the_table_in_the_guide_is_the_order_of_the_stages():
    guide = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = [stage for stage in STAGES if (ROOT / stage).is_dir()]
    assert re.findall(r"^\| `(\w+)/` \|", guide, re.MULTILINE) == folders
    walk = guide.split("```")[1]
    named = re.findall(r"\b\w+/\w+\.py", walk)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_no_folder_has_the_name_of_a_public_function():
    functions = {name for name in microagg.__all__ if name.islower()}
    assert functions & set(STAGES) == set()


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
        ("from microagg import protect", {""}),
        ("from microagg.report import html, model", {"report.html", "report.model"}),
        ("import microagg.cli.main as command", {"cli.main"}),
        ("import microagg", {""}),
        ("from microagg import InputError", {""}),
        ("import numpy\nfrom microaggregate import cut", set()),
        ("def f():\n    from microagg.job.run import run", {"job.run"}),
        ("if TYPE_CHECKING:\n    from microagg.job.job import Job", {"job.job"}),
    ],
)
def test_the_reader_sees_every_form_of_import(source, found):
    assert imports(source) == found


def test_the_check_sees_a_wrong_import():
    later = later_imports("bounds.by_effort", "from microagg.grouping.partition import partition")
    assert later == {"grouping.partition"}
    later = later_imports("plan.registry", "from microagg.algorithms.auto import auto")
    assert later == {"algorithms.auto"}
    assert later_imports("kernels.labels", "from microagg.kernels.heap import put") == set()
    assert later_imports("plan.settings", "import microagg") == {""}
    commands = "import microagg\nfrom microagg.cli.show import Speaker"
    assert later_imports("cli.main", commands) == set()
    assert stage_of("a_new_module") is None
