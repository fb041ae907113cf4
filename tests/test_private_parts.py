"""Private parts of other packages that we use: each with what it is for and what to do when it moves.

Their versions are bounded in pyproject.toml. Raising a bound means running this file against the new
version: a part that moved is found here by name rather than by a strange fault in a kernel or a file.
"""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Module and name, the file of ours that uses it, what for, and what to do when it is gone.
PARTS = {
    ("numba.core.caching", "FunctionCache"): (
        "kernels/kept.py",
        "keeps machine code on disk by a digest of all kernels; without it njit(cache=True) would do, "
        "which does not see changes in the kernels that a kernel calls",
    ),
    ("numba.core.caching", "IndexDataCacheFile"): (
        "kernels/kept.py",
        "the file of one kernel; we override load and save and use _data_path, _open_for_write and _dump",
    ),
    ("numba.core.codegen", "JITCodeLibrary"): (
        "kernels/jit.py",
        "code of a subkernel before optimisation; without it subkernels compile as kernels, twice as long",
    ),
    ("numba.core.compiler", "Compiler"): (
        "kernels/jit.py",
        "puts a subkernel's code into our library class; see JITCodeLibrary",
    ),
    ("numba.core.registry", "cpu_target"): (
        "kernels/jit.py",
        "loads the compiler ahead; without it the first kernel does",
    ),
    ("numba.core.types", "unliteral"): (
        "kernels/jit.py",
        "a call with a constant shares the code of any number; without it more is compiled",
    ),
    ("pyreadstat._readstat_parser", "parser_entry_point"): (
        "tables/statistical.py",
        "reads SPSS, Stata and SAS files into arrays without pandas; pyreadstat.read_* are the public way",
    ),
    ("pyreadstat._readstat_writer", "writer_entry_point"): (
        "tables/statistical.py",
        "writes formats and widths that pyreadstat.write_* leave out",
    ),
}
_PRIVATE = re.compile(r"(?:from |needed\(\")((?:numba\.core|pyreadstat\._)[\w.]*)")


@pytest.mark.parametrize(("module", "name"), PARTS, ids=lambda part: part)
def test_the_part_is_where_we_look_for_it(module, name):
    what = PARTS[module, name][1]
    assert hasattr(import_module(module), name), f"{module}.{name} moved. It {what}."


def test_no_other_private_part_is_used():
    used = {
        (match, path.relative_to(ROOT / "src" / "microagg").as_posix())
        for path in (ROOT / "src").rglob("*.py")
        for match in _PRIVATE.findall(path.read_text(encoding="utf-8"))
    }
    listed = {(module, where) for (module, _), (where, _) in PARTS.items()}
    modules = {(module, where) for module, where in used if module != "numba.core"}
    assert modules <= listed
    assert all(where == "kernels/jit.py" for module, where in used if module == "numba.core")


@pytest.mark.parametrize("package", ["numba", "pyreadstat"])
def test_versions_are_bounded(package):
    extras = _EXTRAS["optional-dependencies"]
    lines = [*_EXTRAS["dependencies"], *(line for extra in extras.values() for line in extra)]
    found = [line for line in lines if line.startswith(package)]
    assert found
    assert all(re.search(r",<\d+\.\d+$", line) for line in found), found
