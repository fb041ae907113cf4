"""The same groups on every processor: matrix products add up in an order that depends on it."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import microagg

ROOT = Path(microagg.__file__).parent
DECIDING = ("drafting", "encode", "grouping", "releasing")  # what they compute decides about groups
PRODUCTS = {"dot", "inner", "matmul", "tensordot", "vdot"}


def products(source: str) -> list[int]:
    """Lines with a matrix product."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (isinstance(node, ast.Attribute) and node.attr in PRODUCTS)
    ]


def test_no_matrix_product_decides_about_groups():
    assert products("a @ b\nnp.dot(a, b)\n(a * b).sum()") == [1, 2]
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for folder in DECIDING
        for path in (ROOT / folder).rglob("*.py")
        for line in products(path.read_text(encoding="utf-8"))
    }
    # A number of missing values: whole numbers have no last digits.
    assert {one.partition(":")[0] for one in found} <= {"grouping/read_table.py"}


@pytest.mark.long
def test_categories_have_the_same_groups_with_the_products_of_other_processors():
    work = (
        "import hashlib, numpy as np, pyarrow as pa, microagg\n"
        "chance = np.random.default_rng(5)\n"
        "columns = {f'c{j}': chance.choice(list('abcdefgh'), 600) for j in range(5)}\n"
        "columns['x'] = chance.normal(size=600)\n"
        "columns['w'] = chance.uniform(1, 9, 600)\n"
        "kinds = {name: 'nominal' for name in columns if name[0] == 'c'}\n"
        "r = microagg.protect(pa.table(columns), 5, columns=[*kinds, 'x'], kinds=kinds, weight='w')\n"
        "print(hashlib.sha256(r.partition.labels.tobytes()).hexdigest())\n"
    )
    labels = {
        subprocess.check_output(
            [sys.executable, "-c", work], env={**os.environ, "OPENBLAS_CORETYPE": processor}
        )
        for processor in ("Prescott", "Haswell", "SkylakeX")
    }
    assert len(labels) == 1
