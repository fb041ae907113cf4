"""The way of the data: a stage imports earlier stages only, read from the source of each module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import microagg

ROOT = Path(microagg.__file__).parent

# Earliest first; the modules of one line may import each other. A package stands for all of its
# modules that no other line names.
STAGES = [
    ["errors", "deprecated", "own_process"],
    ["words"],
    ["kernels.stamp", "kernels.kept", "kernels.part", "kernels.jit"],
    [
        "groups",
        "progress",
        "kernels.labels",
        "kernels.threads",
    ],  # the arithmetic of labels, in threads
    ["registry"],
    ["settings"],
    ["plan_checks", "plan_text"],
    ["relations"],
    ["plan_coarsen", "plan_parts", "plan_blocks"],
    [
        "plan",
        "plan_rules",
        "plan_forms",
    ],  # the rules and forms are methods of Plan, written beside it
    ["kernels"],
    ["tables"],
    ["drafting"],
    ["aggregate"],
    ["encode"],
    ["draft"],
    ["results"],
    ["bounds"],
    ["methods"],
    ["improve"],
    ["partition"],
    ["require"],
    ["by_release"],
    ["grouping", "intake"],
    ["households"],
    ["released"],
    ["counts"],
    ["measure"],
    ["verify"],
    ["evidence"],
    ["writing"],
    ["scale_out"],
    ["report"],
    ["choices"],
    ["trials"],
    ["compare"],
    ["release"],
    ["protect"],
    ["plan_roles", "comparing"],
    ["observer", "engines"],
    ["delivery"],
    ["warm_parts"],
    ["warm"],
    ["scale_out.spark_session"],
    ["scale_out.spark_column"],
    ["scale_out.spark"],
    ["scale_out.spark_counts"],
    ["scale_out.spark_evidence"],
    ["scale_out.spark_release"],
    ["scale_out.spark_warm"],
    ["scale_out.spark_job", "spark"],
    ["job_settings"],
    ["job"],
    ["rehearse"],
    ["page"],
    ["estimator", "datasets"],
    ["cli"],
]

# The public names, and the command as a module: they may import anything.
ABOVE_ALL = {"", "__main__"}


def name_of(path: Path) -> str:
    """Dotted name within microagg; a package has that of its folder, microagg itself none."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def stage_of(module: str) -> int | None:
    """The stage whose entry names the module, or the nearest package around it."""
    while module:
        for number, names in enumerate(STAGES):
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
    names = [name for stage in STAGES for name in stage]
    assert len(names) == len(set(names))


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
    assert later_imports("bounds.prices", "from microagg.methods.auto import auto") == {
        "methods.auto"
    }
    assert later_imports("registry", "from microagg.methods.auto import auto") == {"methods.auto"}
    assert later_imports("groups", "from microagg.kernels.labels import renumber") == set()
    assert later_imports("groups", "from microagg.kernels.heap import put") == {"kernels.heap"}
    assert later_imports("settings", "import microagg") == {""}
    assert (
        later_imports("cli.main", "import microagg\nfrom microagg.cli.show import Speaker") == set()
    )
    assert stage_of("a_new_module") is None
