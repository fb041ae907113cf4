"""Private parts of other packages that we use: each with what it is for and what to do when it moves.

Their versions are bounded in pyproject.toml. Raising a bound means running this file against the new
version: a part that moved is found here by name rather than by a strange fault in a kernel or a file.
"""

import re
import sys
import tomllib
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

_FOUND = tomllib.loads(Path(__file__).with_name("private_parts.toml").read_text(encoding="utf-8"))
PARTS = {(module, name): part for module, own in _FOUND.items() for name, part in own.items()}
_PRIVATE = re.compile(r"(?:from (numba\.core[\w.]*)|needed\(\"(pyreadstat\._\w+)\")")


@pytest.mark.parametrize(("module", "name"), PARTS, ids=lambda part: part)
def test_the_part_is_where_we_look_for_it(module, name):
    what = PARTS[module, name]["what_for"]
    assert hasattr(import_module(module), name), f"{module}.{name} moved. It {what}."


def test_no_other_private_part_is_used():
    used = {
        (
            numba or pyreadstat,
            path.relative_to(ROOT / "src" / "microagg").as_posix(),
        )
        for path in (ROOT / "src").rglob("*.py")
        for numba, pyreadstat in _PRIVATE.findall(path.read_text(encoding="utf-8"))
    }
    assert used == {(module, part["used_by"]) for (module, _), part in PARTS.items()}


@pytest.mark.parametrize(
    ("module", "name"),
    [part for part in PARTS if part[0].startswith("numba")],
    ids=lambda part: part,
)
def test_without_a_part_of_numba_kernels_still_work(module, name):
    spec = spec_from_file_location("jit_without", ROOT / "src/microagg/compile/jit.py")
    jit = module_from_spec(spec)
    with (
        pytest.MonkeyPatch.context() as patch
    ):  # while the module is loaded: numba needs them itself
        patch.delattr(f"{module}.{name}")
        patch.delitem(sys.modules, "microagg.compile.disk_cache", raising=False)
        words = f"lacks one of them.*{name}.*every process compiles again"
        with pytest.warns(RuntimeWarning, match=words):
            spec.loader.exec_module(jit)
    add = jit.subkernel(_add)
    assert jit.kernel(lambda x: add(x, 1) + add(x, x))(2) == 7


def _add(x, y):
    return x + y


@pytest.mark.parametrize("package", ["numba", "pyreadstat"])
def test_versions_are_bounded(package):
    extras = _EXTRAS["optional-dependencies"]
    lines = [*_EXTRAS["dependencies"], *(line for extra in extras.values() for line in extra)]
    found = [line for line in lines if line.startswith(package)]
    assert found
    assert all(re.search(r",<\d+\.\d+$", line) for line in found), found
