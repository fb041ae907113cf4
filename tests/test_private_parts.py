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

# Module and name, the file of ours that uses it, what for, and what to do when it is gone.
PARTS = {
    ("numba.core.caching", "FunctionCache"): (
        "compile/disk_cache.py",
        "keeps machine code on disk by a digest of all kernels; without it njit(cache=True) would do, "
        "which does not see changes in the kernels that a kernel calls",
    ),
    ("numba.core.caching", "IndexDataCacheFile"): (
        "compile/disk_cache.py",
        "the file of one kernel; we override load and save and use _data_path, _open_for_write and _dump",
    ),
    ("numba.core.runtime.nrt", "rtsys"): (
        "compile/disk_cache.py",
        "numba's memory management, which kept code needs; without it the whole compiler is loaded first",
    ),
    ("numba.core.codegen", "JITCodeLibrary"): (
        "compile/jit.py",
        "code of a subkernel before optimisation; without it subkernels compile as kernels, twice as long",
    ),
    ("numba.core.compiler", "Compiler"): (
        "compile/jit.py",
        "puts a subkernel's code into our library class; see JITCodeLibrary",
    ),
    ("numba.core.types", "unliteral"): (
        "compile/jit.py",
        "a call with a constant shares the code of any number; without it more is compiled",
    ),
    ("pyreadstat._readstat_parser", "parser_entry_point"): (
        "formats/statistical.py",
        "reads .por and .xpt with the codes they declare as missing; read_por and read_xport drop these",
    ),
    ("pyreadstat._readstat_writer", "writer_entry_point"): (
        "formats/spss.py",
        "writes the alignment of columns, which pyreadstat.write_sav leaves out",
    ),
}
_PRIVATE = re.compile(r"(?:from (numba\.core[\w.]*)|needed\(\"(pyreadstat\._\w+)\")")


@pytest.mark.parametrize(("module", "name"), PARTS, ids=lambda part: part)
def test_the_part_is_where_we_look_for_it(module, name):
    what = PARTS[module, name][1]
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
    assert used == {(module, where) for (module, _), (where, _) in PARTS.items()}


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
