"""Every method gives the same result whatever the number of threads of the libraries that it uses."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import microagg
from algorithms.test_methods import METHODS, ONE_COLUMN, ORDERS, SMALL, few_attempts
from microagg.compile import threads

_VARIABLES = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"]

# All methods in one process: to start one takes longer than most of them.
_CODE = """\
import hashlib, json, sys
import numpy as np
import microagg
answers = {}
for method, n, d, k, options in json.load(sys.stdin):
    X = np.random.default_rng(0).normal(size=(n, d))
    p = microagg.partition(X, k, method=method, **options)
    answers[method] = [hashlib.sha256(p.labels.tobytes()).hexdigest(), p.sse.hex(), p.sst.hex()]
print(json.dumps(answers))
"""


def task(method):
    k = 5 if method in ORDERS else 1200  # the cut of an order takes O(kn), and is done often
    n, k = (40, 3) if method in SMALL else (12_000, k)
    options = {"effort": "fast"} if method == "auto" else few_attempts(method)
    return method, n, 1 if method in ONE_COLUMN else 3, k, options


def test_result_does_not_depend_on_the_number_of_threads():
    tasks = json.dumps([task(method) for method in METHODS])
    code, settings = [sys.executable, "-c", _CODE], {"input": tasks, "text": True}
    environments = ({**os.environ, **dict.fromkeys(_VARIABLES, count)} for count in ("1", "3"))
    one, three = (
        json.loads(subprocess.check_output(code, env=environment, **settings))
        for environment in environments
    )
    assert set(one) == set(METHODS) <= {method.name for method in microagg.methods()}
    assert [name for name in METHODS if one[name] != three[name]] == []


@pytest.mark.parametrize(
    "options",
    [
        {"method": "mdav"},
        {"method": "centroid"},
        {"method": "v-mdav"},
        {"method": "kmeans-merge"},
        {"method": "mu-approx"},
        {"method": "auto", "effort": "fast"},
    ],
    ids=lambda options: options["method"],
)
def test_a_large_table_has_the_same_groups_whatever_the_number_of_threads(options, monkeypatch):
    X = np.random.default_rng(0).normal(size=(26_000, 8))  # so many that each of them uses threads
    found = []
    for count in (1, 16):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        p = microagg.partition(X, 3, **options)
        found.append((p.labels.tobytes(), p.sse))
    assert found.count(found[0]) == len(found)
