# Two commands: `make demo` shows the main job, `make test` checks everything.
# Paths are relative and tools run as `python -m`, so a folder with a space in its name works.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python

.PHONY: demo test lint types bench clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --editable ".[dev]"
	touch $@

demo: $(VENV)/installed
	$(PY) -m microagg demo

test: lint types
	$(PY) -m pytest

lint: $(VENV)/installed
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(VENV)/installed
	$(PY) -m mypy

bench: $(VENV)/installed
	$(PY) -m benchmarks

clean:
	rm -rf $(VENV) build dist microagg-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
