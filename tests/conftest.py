"""Settings and fixtures that all tests share."""

import functools
import gc
import importlib
import os
import re
import sys
from pathlib import Path
from typing import NoReturn

import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
import typer.main
import typer.testing

from browser import Browser, find_browser

# This loads modules of its own: were one of these collected for its examples before, it would be loaded
# twice, and a test would replace what nobody uses.
importlib.import_module("microagg.evidence")

# The command is built once: for each test anew it takes as long as a small job.
typer.testing._get_command = functools.cache(typer.main.get_command)

# Looking for garbage among all that was imported and collected takes a tenth of the time at the usual rate.
gc.set_threshold(50_000)

# `make test` draws the same examples each time, `make test-all` and the weekly workflow more and new ones. An
# example that fails there is printed, and becomes an explicit one of its test (`@example`).
for _profile, _examples, _same in (("same", 25, True), ("fresh", 100, False)):
    hypothesis.settings.register_profile(
        _profile,
        deadline=None,  # the first example compiles kernels
        max_examples=_examples,
        derandomize=_same,
        print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile(config.getoption("--hypothesis-profile") or "same")
    if hypothesis.settings().derandomize:
        # Hypothesis also draws numbers and texts that stand in our modules, in those imported so far: which
        # these are depends on the tests that ran before in the same process.
        providers = hypothesis.internal.conjecture.providers
        providers._get_local_constants = lambda: getattr(providers, "_local_constants", None)


# What these fixtures give takes seconds to minutes to make, once for each process. Tests that use one come
# first: a process that has no tests left takes over the last ones of another, and so never these.
_COSTLY = ("spark", "cluster", "site", "server", "browser")
_MINUTES = ("spark", "cluster", "site")  # which `make quick` leaves to `make test`


def costly(item: pytest.Item | None) -> str | None:
    """Name of the first costly fixture that a test uses."""
    used = set(getattr(item, "fixturenames", ()))
    used -= set(
        getattr(getattr(item, "callspec", None), "params", ())
    )  # a parameter may be called so too
    if item is not None and (
        asked := re.search(r"/engines/.*[\[-](spark|cluster)[\]-]", item.nodeid)
    ):
        used.add(asked[1])  # asked for when the test runs
    return next((name for name in _COSTLY if name in used), None)


# What a marked test needs of a system, and where that is; tests/test_systems.py finds tests that lack a mark.
_SYSTEMS = {
    "posix": (os.name == "posix", "signals, forks, pipes or permissions as on Linux and macOS"),
    "linux": (sys.platform == "linux", "/proc, affinity or memory as Linux counts it"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if costly(item) in _MINUTES:
            item.add_marker("costly")
        for name, (here, needs) in _SYSTEMS.items():
            if item.get_closest_marker(name) and not here:
                item.add_marker(pytest.mark.skip(reason=f"needs {needs}"))
    place = {name: at for at, name in enumerate((*_COSTLY, None))}
    items.sort(key=lambda item: place[costly(item)])


# Where the generator of a module of tests, ``RNG``, stands once the module is imported.
_AFTER_IMPORT: dict[object, dict[str, object]] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a test draw the same whatever ran before it in its process, which depends on the load."""
    module = getattr(item, "module", None)
    drawn = getattr(module, "RNG", None)
    if isinstance(drawn, np.random.Generator):
        state = drawn.bit_generator.state
        drawn.bit_generator.state = _AFTER_IMPORT.setdefault(module, state)


@pytest.hookimpl(optionalhook=True)  # who runs one test needs no xdist
def pytest_xdist_auto_num_workers() -> int:
    """One process a processor, and two at least: Java, a browser and kernels have threads of their own."""
    return max(os.cpu_count() or 1, 2)


def without(what: str, reason: str) -> NoReturn:
    """Skip a test for want of DATA (which are not ours to ship) or TOOLS (a browser, Java).

    Where MICROAGG_REQUIRE_DATA or MICROAGG_REQUIRE_TOOLS is set, it is a failure instead.
    """
    if os.environ.get(f"MICROAGG_REQUIRE_{what}"):
        pytest.fail(reason)
    pytest.skip(reason)


_FOLDER = Path(
    os.environ.get("MICROAGG_DATA", Path(__file__).parents[1].parent / "shared" / "data")
)


def reference_file(name: str) -> Path:
    """The file of a reference data set; see :func:`without` where it is not there."""
    path = _FOLDER / f"{name}.csv"
    if not path.exists():
        without(
            "DATA",
            f"{name}.csv is not there; python -m benchmarks.reference tells where it comes from",
        )
    return path


def reference_table(name: str) -> pa.Table:
    """A reference data set with all its columns."""
    return pacsv.read_csv(reference_file(name))


def reference_data(name: str) -> np.ndarray:
    """The columns of a reference data set that the literature uses."""
    table = reference_table(name)
    if name == "eia":
        table = table.drop_columns(["UTILNAME", "STATE", "YEAR", "MONTH"])
    return np.column_stack([column.to_numpy().astype(float) for column in table.columns])


@pytest.fixture
def reference():
    return reference_data


@pytest.fixture(name="reference_table")
def whole_reference():
    return reference_table


@pytest.fixture(scope="module")
def browser():
    """A Chromium of this machine."""
    program = find_browser()
    if program is None:
        without("TOOLS", "no Chromium on this machine; Debian's package is called chromium")
    found = Browser(program)
    yield found
    found.close()
