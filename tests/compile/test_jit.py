"""How kernels are written: numba infers their types, and nothing else goes without written ones."""

import ast
import gc
from pathlib import Path

import pytest

import microagg
from microagg.compile import jit

ROOT = Path(microagg.__file__).parent
DECORATORS = {"kernel", "subkernel", "lean_kernel", "lean_subkernel", "inlined_subkernel"}
FILES = [
    path
    for part in ("kernels", "algorithms", "bounds")
    for path in sorted((ROOT / part).rglob("*.py"))
]


def untyped(source: str) -> list[str]:
    """Functions that are no kernels and lack the type of a parameter or of what they return."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef):
            continue
        if DECORATORS & {ast.unparse(decorator) for decorator in node.decorator_list}:
            continue
        given = node.args
        named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        parameters = [one for one in named if one is not None and one.arg not in ("self", "cls")]
        if node.returns is None or any(one.annotation is None for one in parameters):
            found.append(node.name)
    return found


def test_only_kernels_go_without_types():
    names = {str(path): untyped(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: functions for path, functions in names.items() if functions} == {}


def test_the_check_sees_what_lacks_types():
    assert untyped("@kernel\ndef f(x):\n    return x") == []
    assert untyped("def f(x: int) -> int:\n    return x") == []
    assert untyped("def f(x: int):\n    return x") == ["f"]
    assert untyped("def f(x, y: int) -> int:\n    return x") == ["f"]
    assert untyped("class C:\n    def f(self, *x: int, **y) -> int: ...") == ["f"]


def test_a_kernel_works_where_no_folder_can_be_written_to(monkeypatch):
    def nowhere(function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(jit, "KernelCache", nowhere)
    assert jit.kernel(lambda x: x + 1)(2) == 3


def test_a_constant_does_not_compile_a_kernel_anew():
    part = jit.subkernel(lambda x, y: x + y)
    whole = jit.kernel(lambda x: part(x, 1) + part(x, 2) + part(1, x))
    assert whole(5) == 6 + 7 + 6
    assert len(part.signatures) == 1


def test_nothing_is_collected_while_a_kernel_is_compiled(monkeypatch):
    collecting, asked = [True], gc.isenabled()
    monkeypatch.setattr(gc, "isenabled", lambda: collecting[-1])
    monkeypatch.setattr(gc, "disable", lambda: collecting.append(False))
    monkeypatch.setattr(gc, "enable", lambda: collecting.append(True))
    part = jit.subkernel(lambda x: 2 * x)
    assert jit.kernel(lambda x: part(x) + 1)(2) == 5
    # Only at the end does it begin again, whatever else is compiled within.
    assert (collecting[0], set(collecting[1:-1]), collecting[-1]) == (True, {False}, True)
    with pytest.raises(ZeroDivisionError):
        jit._without_collecting(lambda: 1 / 0)()
    assert collecting[-2:] == [False, True]
    monkeypatch.undo()
    assert gc.isenabled() == asked


def test_a_part_raises_its_words():
    @jit.subkernel
    def refuse(x):
        if x > 1:
            raise ValueError("too much")
        return x

    whole = jit.kernel(lambda x: refuse(x))
    assert whole(1) == 1
    with pytest.raises(ValueError, match="too much"):
        whole(2)
