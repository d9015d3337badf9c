# Each target makes .venv where it is missing and installs what it needs, once (again when setup.cfg changes).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

# Without bytecode on disk each of the many processes of the tests would compile all modules that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow bench docs lint types clean

help:
	@echo "make demo   the main job on 1,797 handwritten digits, and a comparison of two tables"
	@echo "make test   the test suite, doctests included"
	@echo "make test-slow   the other cases of the longest tests"
	@echo "make bench  speed against other libraries; rewrites the table and the plot in docs/"
	@echo "make docs   the documentation, in docs/_build/html"
	@echo "make lint   ruff: rules and format"
	@echo "make types  mypy, strict"
	@echo "make clean  removes .venv and everything built"

demo: $(VENV)/.with-demo
	$(BIN)/klnumba demo digits
	$(BIN)/klnumba demo shift --folder klnumba-demo
	$(BIN)/klnumba compare klnumba-demo/benign.csv klnumba-demo/malignant.csv --html klnumba-demo/report.html

test: $(VENV)/.with-test,peers,demo
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

test-slow: $(VENV)/.with-test,peers,demo
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow

bench: $(VENV)/.with-bench
	$(BIN)/python -m benchmarks

docs: $(VENV)/.with-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

lint: $(VENV)/.with-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.with-lint
	$(BIN)/mypy

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "klnumba needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# the stem is a list of extras, such as `test,peers,demo`; modules are compiled when they are first imported, not all now
$(VENV)/.with-%: setup.cfg pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[$*]"
	@touch $@

clean:
	rm -rf $(VENV) klnumba-demo build dist *.egg-info docs/_build docs/_generated docs/api
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
